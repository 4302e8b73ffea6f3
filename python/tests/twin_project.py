"""The twin projects of integration_tests/twin, built on DuckDB by a real dbt, in seconds."""

from __future__ import annotations

import contextlib
import csv
import os
import shutil
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from dbt_ripple.governance.rules import RULES

Command = Callable[..., tuple[int, str, str]]
"""``dbt-ripple``, as a shell would run it: the exit code, stdout and stderr."""

UNBUILT = ("syntax_error", "unread_sql")
"""The rules that ``unbuilt`` breaks: no build comes to an end with such a model."""
BROKEN = [name for name in RULES if name not in UNBUILT]
"""The rules that the bad twin breaks."""

REPOSITORY = Path(__file__).parents[2]
TWIN = REPOSITORY / "integration_tests" / "twin"


def expected(name: str) -> list[dict[str, str]]:
    """Rows of a file in ``integration_tests/twin/expected``."""
    with (TWIN / "expected" / f"{name}.csv").open() as file:
        return list(csv.DictReader(file))


def build(side: str, folder: Path) -> Path:
    """Build ``good`` or ``bad`` in a copy below `folder`, without dbt_ripple's own models.

    ``unbuilt`` is only compiled: it is ``good`` and some models more.

    Returns:
        The project; its artifacts are in ``target``, catalog.json of a built one among them.
    """
    from dbt.adapters.duckdb.connections import DuckDBConnectionManager
    from dbt.adapters.factory import reset_adapters
    from dbt.cli.main import dbtRunner

    project = folder / side
    ignore = shutil.ignore_patterns("target", "dbt_packages", "logs")
    for part in ("good", side) if side == "unbuilt" else (side,):
        shutil.copytree(TWIN / part, project, ignore=ignore, dirs_exist_ok=True)
    (project / "packages.yml").unlink()
    _install_tests(project)
    with pytest.MonkeyPatch.context() as patch, _in(project):
        for name in [name for name in os.environ if name.startswith("DBT_")]:
            patch.delenv(name)
        patch.setenv("RIPPLE_DUCKDB_PATH", str(folder / f"{side}.duckdb"))
        patch.setenv("RIPPLE_SCHEMA", f"twin_{side}")
        try:
            built = [["run-operation", "load_raw_data"], ["run"], ["docs", "generate"]]
            for command in [["compile"]] if side == "unbuilt" else built:
                with contextlib.redirect_stdout(sys.stderr):
                    done = dbtRunner().invoke(
                        [
                            *("--quiet", "--no-send-anonymous-usage-stats", *command),
                            *("--target", "duckdb", "--project-dir", ".", "--profiles-dir", "."),
                        ]
                    )
                assert done.success, done.exception
        finally:
            DuckDBConnectionManager.close_all_connections()
            reset_adapters()
    return project


def _install_tests(project: Path) -> None:
    """The package's macros and generic tests, without its models."""
    package = project / "dbt_packages" / "dbt_ripple"
    for part in ("macros", "tests/generic"):
        shutil.copytree(REPOSITORY / part, package / part)
    (package / "dbt_project.yml").write_text("name: dbt_ripple\nversion: 0.1.0\n")


@contextlib.contextmanager
def _in(folder: Path) -> Iterator[None]:
    here = Path.cwd()
    os.chdir(folder)
    try:
        yield
    finally:
        os.chdir(here)
