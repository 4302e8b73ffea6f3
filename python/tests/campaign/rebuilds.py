"""One project built twice by dbt, on top of base's tables and from scratch, and what came out otherwise."""

from __future__ import annotations

import shutil
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import duckdb
from dbt_builds import Folder
from engines import DuckDB, EngineError, bag_of_rows
from random_project import CATALOG
from world import BELOW, Outcome, World, relation, topological

from dbt_ripple.artifacts import Node, Project
from dbt_ripple.graph.linking.project_context import ProjectContext

WAYS: Final = ("later", "afresh")
"""On top of base's tables, with later data in the sources; and from scratch, with the data of base's run."""

LEFT_OUT: Final = ("dbt_updated_at", "dbt_valid_from", "dbt_valid_to", "dbt_scd_id", "by_chance")
"""Columns whose values are others with each build: a snapshot's clock, and what is named so."""


class Built:
    """The tables and tests of a warehouse that dbt has built: signatures and rows."""

    def __init__(self, database: Path, project: Project) -> None:
        engine = DuckDB.reading(CATALOG, database)
        self.tables = {
            u: _signature(engine, n)
            for u, n in project.nodes.items()
            if n.resource_type in ("model", "seed", "snapshot") and not n.is_ephemeral
        }
        self.rows = {
            n.unique_id: _rows(engine, n.compiled_code or "") for n in project.of_type("test")
        }
        engine.close()


def _rows(engine: DuckDB, sql: str) -> list[str] | str:
    """A query's rows as a sorted bag, or the kind of the engine's error, whose words quote the query."""
    rows = bag_of_rows(engine, sql)
    return rows.partition(":")[0] if isinstance(rows, str) else rows


def _signature(engine: DuckDB, node: Node) -> tuple[Any, ...] | None:
    """What a relation holds, None where it is not there or cannot be read."""
    try:
        return engine.signature(relation(node), LEFT_OUT)
    except EngineError:
        return None


@dataclass(frozen=True)
class Rebuild:
    """A project as dbt has built it.

    Attributes:
        built: its tables and tests.
        failed: the nodes that could not be built, with the words of dbt.
    """

    built: Built
    failed: dict[str, str]


def restore(folder: Folder, database: Path) -> None:
    """Put a warehouse as it was kept into the place where dbt builds."""
    folder.work.mkdir(parents=True, exist_ok=True)
    for suffix in ("", ".wal"):
        Path(str(folder.duckdb) + suffix).unlink(missing_ok=True)
    shutil.copyfile(database, folder.duckdb)


def rebuild(
    folder: Folder, database: Path, compiled: Project, way: str, later: Sequence[str]
) -> Rebuild:
    """Build a project as its files are.

    Args:
        folder: of the project.
        database: base's warehouse, as the last deployment left it.
        compiled: the project's artifacts, with the SQL of its tests.
        way: one of `WAYS`.
        later: what happens in the sources between two runs.
    """
    restore(folder, database)
    if way == "later":
        with duckdb.connect(str(folder.duckdb)) as connection:
            for statement in later:
                connection.execute(statement)
    folder.build(*(["--full-refresh"] if way == "afresh" else []), check=False)
    failed = {}
    for result in folder.read().run_results:
        if result.status == "error":
            failed[result.unique_id] = result.message or "error"
        elif result.status == "skipped":
            failed[result.unique_id] = BELOW
    return Rebuild(Built(folder.copy_database(folder.work / "seen.duckdb"), compiled), failed)


def compare_rebuilds(
    projects: tuple[Project, Project],
    rebuilds: tuple[Rebuild, Rebuild],
    passed: Collection[str],
    outcome: Outcome,
) -> None:
    """Add to an outcome what came out otherwise.

    Args:
        projects: base and head; only their nodes are looked at.
        rebuilds: both, built in the same way.
        passed: the tests that passed in base's results.
        outcome: of the edit.
    """
    base, head = projects
    before, after = rebuilds
    outcome.unbuilt.update((u, w) for u, w in after.failed.items() if u not in before.failed)
    stale = {*after.failed, *before.failed}
    # A hook of what was not built did not run: what it writes to, and all that reads this, holds
    # what was there before. CI is red by then, as it is for what stands below.
    for side in (head, base):
        ahead = [
            u for h in ProjectContext(side).hooks_that_write if h.owner in stale for u in h.writes
        ]
        while ahead:
            unwritten = ahead.pop()
            if unwritten not in stale:
                stale.add(unwritten)
                ahead += side.children.get(unwritten, ())
    for unique_id in topological(head):
        if unique_id not in after.built.tables or unique_id in stale:
            continue
        if after.built.tables[unique_id] != before.built.tables.get(unique_id):
            outcome.relations.add(unique_id)
    # Base's results are of the data of its own run.
    outdated = {test for test in passed if before.built.rows.get(test)}
    for test in (u for u in after.built.rows if u in head.nodes):
        rows = after.built.rows[test]
        if stale.intersection([*World.stored_parents(head, test), *World.inlines(head, test)]):
            outcome.blocked.add(test)
            continue
        if rows:
            outcome.failing.add(test)
        if rows != before.built.rows.get(test):
            outcome.tests.add(test)
            outcome.outdated[test] = outdated & outcome.outdated.get(test, outdated)
