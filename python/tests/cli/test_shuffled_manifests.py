"""No answer depends on the order of the artifacts: each side is shuffled, as `shuffling` says."""

from __future__ import annotations

import gc
import json
import random
import re
import shutil
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec
import pytest
from cli_shell import FIXTURE, Shell
from shuffling import manifest_in_another_order, shuffle_folder
from two_sides import FROM_RAW, STG, Sides

from dbt_ripple.artifacts import read_project
from dbt_ripple.graph.analyse_project import analyse
from dbt_ripple.graph.lineage_rows import build_rows

pytestmark = pytest.mark.slow

NOON = datetime(2026, 3, 2, 12, tzinfo=UTC)

COMMANDS: list[tuple[str, ...]] = [
    *(("select", "--state", "state", "--format", style) for style in ("text", "json", "markdown")),
    ("select", "--state", "state", "--full"),
    ("select", "--state", "state", "--output", "names"),
    *(("diff", "--state", "state", "--format", style) for style in ("text", "json", "markdown")),
    *(
        ("gate", "--state", "state", "--format", style)
        for style in ("text", "json", "markdown", "github", "sarif")
    ),
    *(
        ("impact", "raw_orders", "--drop", "amount", "--format", style)
        for style in ("text", "json", "markdown")
    ),
    ("impact", "stg_orders", "--rename", "amount:total"),
    ("trace", "stg_orders"),
    ("trace", "stg_orders.amount"),
    *(("trace", "stg_orders", "-d", "both", "--format", style) for style in ("json", "mermaid")),
    ("trace", "stg_orders", "--include-tests", "--format", "markdown"),
    *(("analyze", "--format", style) for style in ("text", "json", "markdown")),
    ("analyze", "--edges", "edges.csv"),
    ("gate", "--state", "state", "--with", "select", "--format", "markdown"),
    ("impact", "stg_orders", "--deprecate"),
    *(
        ("incident", "no_negative_amount", "--state", "state", "--format", style)
        for style in ("text", "json", "slack", "pagerduty")
    ),
    ("explain", "no_negative_amount", "--state", "state"),
    ("explain", "unique_stg_orders_order_id", "--state", "state", "--format", "json"),
]


def derived_first(manifest: dict[str, Any]) -> None:
    """A metric that is derived of another, and stands before it by name and by place."""
    (name, metric), *_ = manifest["metrics"].items()
    derived = json.loads(json.dumps(metric))
    unique_id = "metric.shop.a_derived_one"
    derived |= {"unique_id": unique_id, "name": "a_derived_one", "type": "derived"}
    derived["depends_on"] = {"macros": [], "nodes": [name]}
    manifest["metrics"] = {unique_id: derived, **manifest["metrics"]}
    manifest["parent_map"][unique_id] = [name]
    manifest["child_map"][unique_id] = []
    manifest["child_map"].setdefault(name, []).append(unique_id)


def rows_to_load(folder: Path) -> dict[str, list[dict[str, Any]]]:
    """What `load` and `build` write, but for what says which artifacts they were."""
    project = read_project(folder)
    snapshot = build_rows(project, analyse(project, expressions=True, own=True), loaded_at=NOON)
    same = {"snapshot_id": "", "invocation_id": ""}
    return {
        table: [msgspec.structs.asdict(row) | same for row in rows]
        for table, rows in snapshot.rows.items()
    }


def answer_of(shell: Shell, command: tuple[str, ...]) -> tuple[int, str]:
    """Exit code and answer, without how long `analyze` took."""
    done = shell(*command)
    timed = command[0] == "analyze"
    return done.code, re.sub(r"\d+\.\d+", "", done.out) if timed else done.out


@pytest.mark.parametrize(
    "shuffles", [pytest.param(20, id="20"), pytest.param(200, id="200", marks=pytest.mark.campaign)]
)
def test_the_order_of_the_artifacts_is_in_no_answer(
    sides: Sides, shell: Shell, shuffles: int
) -> None:
    sides.write_sql(STG, f"{FROM_RAW.replace('amount', 'amount * 2 as amount')} where amount > 0")
    for side in ("target", "state"):
        sides.edit(derived_first, f"{side}/manifest.json")
        shutil.copytree(shell.folder / side, shell.folder / "kept" / side)
    expected = {command: answer_of(shell, command) for command in COMMANDS}
    edges = (shell.folder / "edges.csv").read_bytes()
    rows = rows_to_load(shell.folder / "target")
    assert all(code in (0, 1) for code, _ in expected.values())
    gated = json.loads(expected["gate", "--state", "state", "--format", "json"][1])
    assert "a_derived_one" in {asset["name"] for asset in gated["affected"]}
    for number in range(shuffles):
        rng = random.Random(number)
        for side in ("target", "state"):
            shuffle_folder(shell.folder / side, shell.folder / "kept" / side, rng)
        for command in COMMANDS:
            assert answer_of(shell, command) == expected[command], (number, command)
        assert (shell.folder / "edges.csv").read_bytes() == edges, number
        assert rows_to_load(shell.folder / "target") == rows, number
        gc.unfreeze()  # a command leaves what it made to the end of its process, which this is not
        gc.collect()


def test_what_is_shuffled_is_not_what_it_was() -> None:
    manifest = json.loads((FIXTURE / "manifest.json").read_text())
    other = manifest_in_another_order(json.loads(json.dumps(manifest)), random.Random(1))
    assert list(other["nodes"]) != list(manifest["nodes"])
    assert list(other["parent_map"]) != list(manifest["parent_map"])
    assert other["nodes"].keys() == manifest["nodes"].keys()
