"""Which nodes dbt itself selects: `dbt ls`."""

from __future__ import annotations

from pathlib import Path

from dbt_ripple.artifacts.target_path import artifacts_folder
from dbt_ripple.dbt_runner.invoke import DbtOptions
from dbt_ripple.errors import RippleError
from dbt_ripple.rendering.output import warn


def chosen_by_dbt(
    project_dir: Path,
    target_path: Path | None,
    state: Path,
    selected: tuple[str, ...],
    excluded: tuple[str, ...],
    options: DbtOptions,
) -> set[str]:
    """The unique_ids that dbt's own selection grammar selects.

    Raises:
        RippleError: dbt is not installed here, or refuses the selection.
    """
    import json

    from dbt_ripple.dbt_runner.invoke import Dbt, temporary_folder

    arguments = list(_LIST)
    for option, specs in (("--select", selected), ("--exclude", excluded)):
        if specs:
            arguments += [option, *(word for spec in specs for word in spec.split())]
    arguments += ["--state", str(state.resolve())]
    # In a folder of its own: `dbt ls` overwrites manifest.json with one that is not compiled.
    with temporary_folder() as folder:
        kept = artifacts_folder(project_dir, target_path) / "partial_parse.msgpack"
        if kept.is_file():
            (folder / kept.name).write_bytes(kept.read_bytes())
        dbt = Dbt(project_dir.resolve(), folder, options, log_level="none")
        lines = dbt(*arguments).result or []
    if not lines:
        warn(f"dbt itself selects nothing by `{' '.join(arguments[_SPECS:-2])}`")
    try:
        return {json.loads(line)["unique_id"] for line in lines}
    except (ValueError, KeyError, TypeError):
        raise RippleError(
            "dbt lists nodes in a form that is not known", "--select", "upgrade dbt-ripple"
        ) from None


_LIST = ("ls", "--output", "json", "--output-keys", "unique_id")
_SPECS = len(_LIST)
