"""What a peer says an edit reaches: ``run_selection.py NAME FOLDER``, in the peer's environment.

FOLDER holds base/ and a folder an edit, each with manifest.json and catalog.json. Writes
FOLDER/NAME.json: for each edit the tests, or why there is no answer. No peer names tests of its own
accord; what it calls impacted is turned into tests in the way that is kindest to it: a model means
all tests that read it, a column the generic tests on that column and those that name no column.
"""

from __future__ import annotations

import json
import logging
import os
import sys
import tempfile
import time
from collections.abc import Callable, Iterable
from functools import lru_cache
from pathlib import Path
from types import SimpleNamespace
from typing import Any

Reached = dict[str, "set[str] | None"]
"""Columns by unique_id of a node; None where it is the node as a whole."""


_READ: dict[Path, Any] = {}


def once(read: Callable[[Path], Any], base: Path) -> Any:
    """What is read of base, which all edits are compared with."""
    if base not in _READ:
        _READ[base] = read(base)
    return _READ[base]


@lru_cache(4)
def manifest_of(folder: Path) -> dict[str, Any]:
    document: dict[str, Any] = json.loads((folder / "manifest.json").read_text())
    return document


def tests_of(manifest: dict[str, Any], reached: Reached) -> list[str]:
    """The tests that what was reached asks for."""
    tests = []
    for unique_id, node in manifest["nodes"].items():
        if node["resource_type"] != "test":
            continue
        column = (node.get("column_name") or "").lower().strip('"')
        for parent in node["depends_on"]["nodes"]:
            if parent not in reached:
                continue
            columns = reached[parent]
            if columns is None or not column or column in columns:
                tests.append(unique_id)
                break
    return tests


def below(manifest: dict[str, Any], starts: Iterable[str]) -> set[str]:
    """These nodes and all below them."""
    reached = set(starts)
    ahead = list(reached)
    while ahead:
        for child in manifest["child_map"].get(ahead.pop(), ()):
            if child not in reached:
                reached.add(child)
                ahead.append(child)
    return reached


def edited(base: Path, head: Path) -> list[str]:
    """The nodes whose code or settings differ."""
    then, now = manifest_of(base)["nodes"], manifest_of(head)["nodes"]
    return [u for u, n in now.items() if any(n[k] != then[u][k] for k in ("checksum", "config"))]


def dbt(base: Path, head: Path) -> list[str]:
    """``state:modified+``: dbt's own comparison of nodes, and all below."""
    from dbt.artifacts.schemas.manifest import WritableManifest
    from dbt.contracts.graph.manifest import Manifest

    def read(folder: Path) -> Manifest:
        return Manifest.from_writable_manifest(
            WritableManifest.read_and_check_versions(str(folder / "manifest.json"))
        )

    then, now = once(read, base), read(head)
    changed = [
        u
        for u, n in now.nodes.items()
        if u not in then.nodes or not n.same_contents(then.nodes[u], "duckdb")
    ]
    manifest = manifest_of(head)
    return [u for u in below(manifest, changed) if u.startswith("test.")]


def parrant(base: Path, head: Path) -> list[str]:
    """``parrant impact``: the changed columns and all that it finds downstream of them."""
    from parrant.lineage.changeset import ChangesetBuilder
    from parrant.lineage.service import LineageService

    def service(folder: Path) -> LineageService:
        return LineageService(folder / "catalog.json", folder / "manifest.json")

    then, now = once(service, base), service(head)
    changes = ChangesetBuilder(then.registry, now.registry).build()
    impact = now.get_changeset_impact(changes, base_service=then)
    manifest = manifest_of(head)
    ids = {
        n["name"].lower(): u for u, n in manifest["nodes"].items() if n["resource_type"] != "test"
    }
    reached: Reached = {}

    def reach(model: str, column: str | None) -> None:
        unique_id = ids.get(model.lower())
        if unique_id is None:
            return
        if column is None:
            reached[unique_id] = None
        elif reached.get(unique_id, ()) is not None:
            columns = reached.setdefault(unique_id, set())
            assert columns is not None
            columns.add(column.lower())

    for change in changes:
        reach(change.model, change.column if change.column not in (None, "", "*") else None)
    for column in impact["affected_columns"]:
        reach(column["model"], column["column"])
    for model in impact["affected_models"]:
        if ids.get(model["name"].lower()) not in reached:
            reach(model["name"], None)
    return tests_of(manifest, reached)


def guard(base: Path, head: Path) -> list[str]:
    """``dbt-guard diff --column-lineage``: the models with changes, and those it calls impacted."""
    from dbt_guard.cli import PipelineConfig, run_pipeline

    config = PipelineConfig(base, head, "duckdb", include_snapshots=True, column_lineage=True)
    report = run_pipeline(config)
    reached: Reached = {}
    for change in (*report.breaking_changes, *report.non_breaking_changes):
        columns = reached.setdefault(change.model_id, set())
        assert columns is not None
        columns.update(
            n.lower() for n in (change.column_name, change.old_value, change.new_value) if n
        )
    for model in report.impacted_models:
        reached[model.model_id] = None
    return tests_of(manifest_of(head), reached)


def recce(base: Path, head: Path) -> list[str]:
    """recce's impact radius: its change analysis, and the column lineage downstream of it."""
    from recce.adapter import dbt_adapter as adapter

    def read(folder: Path) -> tuple[Any, Any]:
        return (
            adapter.load_manifest(path=str(folder / "manifest.json")),
            adapter.load_catalog(path=str(folder / "catalog.json")),
        )

    adapter.log_performance = lambda *_: None
    sides, catalogs = zip(once(read, base), read(head), strict=True)
    asked = adapter.DbtAdapter(
        adapter=SimpleNamespace(type=lambda: "duckdb"),
        manifest=adapter.as_manifest(sides[1]),
        previous_state=SimpleNamespace(manifest=adapter.as_manifest(sides[0])),
        base_manifest=sides[0],
        curr_manifest=sides[1],
        base_catalog=catalogs[0],
        curr_catalog=catalogs[1],
    )
    # It asks dbt for state:modified, which takes a project's folder; this is the same.
    asked.select_nodes = lambda **_: set(edited(base, head))
    lineage = asked.get_cll(change_analysis=True, no_upstream=True)
    reached: Reached = {}
    for unique_id, node in lineage.nodes.items():
        columns = {c.lower() for c in node.columns}
        reached[unique_id] = None if node.impacted else columns
    return tests_of(manifest_of(head), reached)


def sqlmesh(base: Path, head: Path) -> list[str]:
    """sqlmesh's automatic categories: breaking is the model and all below, else the model."""
    from sqlglot import parse_one
    from sqlmesh.core.model import create_sql_model

    manifests = [manifest_of(base), manifest_of(head)]
    wide: list[str] = []
    own: list[str] = []
    for unique_id in edited(base, head):
        sides = [m["nodes"][unique_id] for m in manifests]
        settings = sides[0]["config"] != sides[1]["config"]  # a hook: part of what it hashes
        if settings or sides[0]["resource_type"] != "model":
            wide.append(unique_id)
            continue
        models = [
            create_sql_model(
                f"a.{n['name']}", parse_one(n["compiled_code"], dialect="duckdb"), dialect="duckdb"
            )
            for n in sides
        ]
        # None is what it leaves to the user, who is not asked in CI: breaking, then.
        (own if models[1].is_breaking_change(models[0]) is False else wide).append(unique_id)
    reached: Reached = dict.fromkeys((*below(manifests[1], wide), *own))
    return tests_of(manifests[1], reached)


TOOLS: dict[str, Callable[[Path, Path], list[str]]] = {
    "dbt": dbt,
    "parrant": parrant,
    "guard": guard,
    "recce": recce,
    "sqlmesh": sqlmesh,
}


def main() -> None:
    """Ask one tool about all edits."""
    name, folder = sys.argv[1], Path(sys.argv[2])
    home = Path(tempfile.mkdtemp())
    os.environ["HOME"] = str(home)
    (home / ".recce").mkdir()
    (home / ".recce" / "profile.yml").write_text("user_id: bench\nanonymous_tracking: false\n")
    logging.disable(logging.CRITICAL)
    answers: dict[str, Any] = {}
    for head in sorted(f for f in folder.iterdir() if f.is_dir() and f.name != "base"):
        start = time.perf_counter()
        try:
            selected: Any = TOOLS[name](folder / "base", head)
        except Exception as error:  # whatever it is, this tool has no answer here
            selected = f"{type(error).__name__}: {error}"[:300]
        answers[head.name] = {"said": selected, "seconds": time.perf_counter() - start}
    (folder / f"{name}.json").write_text(json.dumps(answers))


if __name__ == "__main__":
    main()
