"""A dbt project on DuckDB that installs the package from this clone, and what its tests need of it."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any

import duckdb
from dbt.artifacts.schemas.results import NodeResult

from dbt_ripple.artifacts import Project
from dbt_ripple.graph.analyse_project import analyse
from dbt_ripple.graph.lineage_rows import build_rows
from dbt_ripple.spark.load import arrow_table

REPOSITORY = Path(__file__).parents[3]

PROJECT = """
name: duck
version: 1.0.0
profile: duck
# Twice: the second finds the run recorded.
on-run-end: ["{{ dbt_ripple.record_run(results) }}", "{{ dbt_ripple.record_run(results) }}"]
flags: {send_anonymous_usage_stats: false, require_generic_test_arguments_property: false}
vars: {dbt_ripple: {ripple_parts: all, ripple_volume_min_days: 3}}
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
    from dbt.deprecations import reset_deprecations

    reset_deprecations()  # dbt adds up what it has seen in this process, of other projects, too
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
        frame = connection.sql(query)
        return frame.fetchall() if frame else []


def loaded(folder: Path, of: Project, git_sha: str) -> None:
    """What `dbt-ripple load` does, a minute after the artifacts were made, into DuckDB."""
    assert of.metadata.generated_at is not None
    snapshot = build_rows(
        of,
        analyse(of, expressions=True, own=True),
        git_sha=git_sha,
        target_name="dev",
        loaded_at=of.metadata.generated_at + timedelta(minutes=1),
    )
    insert_all(folder, snapshot.rows)


def insert(folder: Path, table: str, table_rows: list[Any]) -> None:
    """Append rows of the loader to a raw table."""
    insert_all(folder, {table: table_rows})


def insert_all(folder: Path, rows_of: Mapping[str, Sequence[Any]]) -> None:
    """Append rows of the loader to raw tables, in one transaction: DuckDB writes the file once."""
    with duckdb.connect(str(folder / "duck.duckdb")) as connection:
        connection.sql("set timezone = 'UTC'")
        connection.begin()
        for table, table_rows in rows_of.items():
            connection.register("found", arrow_table(table, table_rows))
            connection.sql(f'insert into dev_ripple_raw."{table}" by name select * from found')
        connection.commit()
