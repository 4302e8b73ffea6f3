"""dbt_ripple: which columns, tests and people a change to a dbt project affects.

    from dbt_ripple import Project, lineage, equivalent, track

dbt imports every top-level module named ``dbt_*`` at each of its commands, so this file must be
fast and free of side effects: nothing is imported here. What it has is imported when it is asked for.
"""

__version__ = "0.1.0"

TYPE_CHECKING = False  # as type checkers know it; importing `typing` takes longer than all of this
if TYPE_CHECKING:
    from dbt_ripple.dbt_runner.invoke import DbtOptions
    from dbt_ripple.errors import RippleError
    from dbt_ripple.openlineage.declared_lineage import ColumnLineage, Dataset
    from dbt_ripple.openlineage.track import track
    from dbt_ripple.session.project import Project
    from dbt_ripple.session.sql import equivalent, lineage

__all__ = [
    "ColumnLineage",
    "Dataset",
    "DbtOptions",
    "Project",
    "RippleError",
    "equivalent",
    "lineage",
    "track",
]

_WHERE = {
    "ColumnLineage": "openlineage.declared_lineage",
    "Dataset": "openlineage.declared_lineage",
    "DbtOptions": "dbt_runner.invoke",
    "Project": "session.project",
    "RippleError": "errors",
    "equivalent": "session.sql",
    "lineage": "session.sql",
    "track": "openlineage.track",
}
"""The module that each of them is in."""


def __getattr__(name: str) -> object:
    if name not in _WHERE:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(f"{__name__}.{_WHERE[name]}"), name)


def __dir__() -> list[str]:
    return [*globals(), *__all__]
