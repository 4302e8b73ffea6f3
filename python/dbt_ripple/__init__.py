"""dbt_ripple: which columns, tests and people a change to a dbt project affects.

dbt imports every top-level module named ``dbt_*`` at each of its commands, so this file must be
fast and free of side effects: nothing is imported here. `track`, `Dataset` and `ColumnLineage` are
imported when they are asked for.
"""

__version__ = "0.1.0"

TYPE_CHECKING = False  # as type checkers know it; importing `typing` takes longer than all of this
if TYPE_CHECKING:
    from dbt_ripple.openlineage.declared_lineage import ColumnLineage, Dataset
    from dbt_ripple.openlineage.track import track

__all__ = ["ColumnLineage", "Dataset", "track"]


def __getattr__(name: str) -> object:
    if name == "track":
        from dbt_ripple.openlineage.track import track

        return track
    if name in ("ColumnLineage", "Dataset"):
        from dbt_ripple.openlineage import declared_lineage

        return getattr(declared_lineage, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
