"""A dbt project on DuckDB that installs the package from this clone, and what its tests need of it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import duckdb
from dbt.artifacts.schemas.results import NodeResult

REPOSITORY = Path(__file__).parents[3]

PROJECT = """
name: duck
version: 1.0.0
profile: duck
# Twice: the second finds the run recorded.
on-run-end: ["{{ dbt_ripple.record_run(results) }}", "{{ dbt_ripple.record_run(results) }}"]
flags: {send_anonymous_usage_stats: false, require_generic_test_arguments_property: false}
vars: {dbt_ripple: {ripple_volume_min_days: 3}}
"""
PROFILE = """
duck:
  target: dev
  outputs:
    dev: {type: duckdb, path: duck.duckdb, schema: dev, threads: 1}
"""


def make(folder: Path, files: dict[str, str]) -> Path:
    """Write a project and install the package in it."""
    packages = json.dumps({"packages": [{"local": str(REPOSITORY)}]})
    basis = {
        "dbt_project.yml": PROJECT,
        "profiles.yml": PROFILE,
        "packages.yml": packages,
    }
    for name, text in {**basis, **files}.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    assert dbt(folder, "deps") == []
    return folder


def dbt(folder: Path, *arguments: str) -> list[NodeResult]:
    """What a dbt command said of each node; it runs in this process, in the folder."""
    from dbt.adapters.duckdb.connections import DuckDBConnectionManager
    from dbt.adapters.factory import reset_adapters
    from dbt.cli.main import dbtRunner

    done = dbtRunner().invoke(
        [*("--quiet", *arguments), "--project-dir", str(folder), "--profiles-dir", str(folder)]
    )
    DuckDBConnectionManager.close_all_connections()
    reset_adapters()
    assert done.exception is None, done.exception
    results = getattr(done.result, "results", [])
    return [result for result in results if str(result.node.resource_type) != "operation"]


def statuses(results: list[NodeResult]) -> dict[str, str]:
    """The status of each node of the project itself, by its name as one writes it."""
    return {
        result.node.name: str(result.status)
        for result in results
        if result.node.package_name == "duck"
    }


def rows(folder: Path, query: str) -> list[tuple[Any, ...]]:
    """The rows of a query on the project's database."""
    with duckdb.connect(str(folder / "duck.duckdb")) as connection:
        found = connection.sql(query)
        return found.fetchall() if found else []
