"""The edits of `caused_edits`, each executed once: what comes out otherwise is among what is said to differ."""

from __future__ import annotations

import gc
import json
from collections.abc import Collection
from pathlib import Path
from typing import Any

import duckdb
import pytest
import tiny_project
from caused_edits import ROWS, SILENT, Row, build_lab, edited
from dbt.adapters.duckdb.connections import DuckDBConnectionManager
from dbt.adapters.factory import reset_adapters

from dbt_ripple.changes import compare
from dbt_ripple.dbt_runner.base_ref import both_sides
from dbt_ripple.dbt_runner.invoke import DbtOptions
from dbt_ripple.selection.select import select_from

pytestmark = pytest.mark.campaign

Outcomes = dict[str, tuple[str, int | None]]
Contents = dict[str, list[str]]


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build_lab(tmp_path_factory.mktemp("lab"))


def let_go() -> None:
    """Close the database file, so that the next to open it may be another, or open it otherwise."""
    DuckDBConnectionManager.close_all_connections()
    reset_adapters()
    gc.collect()


def results(folder: Path) -> list[Any]:
    return list(json.loads((folder / "run_results.json").read_text())["results"])


def outcomes(folder: Path) -> Outcomes:
    return {
        r["unique_id"]: (r["status"], r["failures"])
        for r in results(folder)
        if "test." in r["unique_id"]
    }


def skipped(folder: Path, said: Collection[str]) -> set[str]:
    """What dbt skips, where something fails that is to be built or to be run: so the failure is found."""
    found = any(
        r["status"] in ("error", "fail") and r["unique_id"] in said for r in results(folder)
    )
    return {r["unique_id"] for r in results(folder) if found and r["status"] == "skipped"}


def contents(project: Path, artifacts: Path) -> Contents:
    """The rows of each relation, without regard to order; of snapshots without the time they were taken."""
    manifest = json.loads((artifacts / "manifest.json").read_text())
    found: Contents = {}
    let_go()
    with duckdb.connect(str(project / "lab.duckdb"), read_only=True) as connection:
        for unique_id, node in manifest["nodes"].items():
            if node["resource_type"] in ("model", "seed", "snapshot") and node["relation_name"]:
                try:
                    table = connection.sql(f"select * from {node['relation_name']}")
                except duckdb.Error as error:
                    found[unique_id] = [type(error).__name__]
                    continue
                keep = [c for c in table.columns if not c.startswith("dbt_")]
                rows = table.project(", ".join(f'"{c}"' for c in keep)).fetchall() if keep else []
                found[unique_id] = [repr(keep), *sorted(map(repr, rows))]
    return found


@pytest.mark.parametrize("row", [*ROWS, *SILENT], ids=[row.what for row in (*ROWS, *SILENT)])
def test_what_comes_out_otherwise_is_said(
    row: Row, lab: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    state = lab.parent / "state"
    before = outcomes(state), contents(lab, state)
    project = edited(lab, row, tmp_path)
    monkeypatch.chdir(project)
    with both_sides(project, "main", DbtOptions(), cache=None) as sides:
        comparison = compare(sides.base, sides.head)
        selection = select_from(comparison)
    let_go()
    (project / "lab.duckdb").unlink()
    tiny_project.dbt(project, "build")
    now = outcomes(project / "target"), contents(project, project / "target")
    tests = {u for u, outcome in now[0].items() if before[0].get(u, outcome) != outcome}
    said = {test.unique_id for test in (*selection.tests, *selection.blocked)}
    said |= {*selection.unit_tests}
    below = skipped(project / "target", said | {*selection.models})
    assert tests <= said | below
    relations = {u for u, rows in now[1].items() if before[1].get(u, rows) != rows}
    assert relations - below <= {
        *(*comparison.changed, *selection.models, *said, *comparison.modified)
    }
