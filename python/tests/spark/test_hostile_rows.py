"""Hostile names in the lineage tables, on a real Spark: a name is read back as it was.

Every thing of the project (nodes, columns, owners, tags, paths, descriptions) has a name of its own.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hostile import PARTS, SURROGATES, hostile
from hostile_project import Naming, write
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dbt_ripple.artifacts import read_project
from dbt_ripple.graph.analyse_project import analyse
from dbt_ripple.graph.lineage_rows import LineageSnapshot, build_rows
from dbt_ripple.spark.load import Destination, arrow_table, columns, load
from dbt_ripple.spark.server import SessionServer

TO = Destination(("hostile_rows_raw",))


def named(drawn: list[str]) -> Naming:
    """Of each tame name a hostile one, in turn; two of the same text are still two."""
    places: dict[str, int] = {}

    def name(of: str) -> str:
        return f"{drawn[places.setdefault(of, len(places)) % len(drawn)]}/{of}"

    return name


def snapshot_of(folder: Path, name: Naming) -> LineageSnapshot:
    write(folder, name)
    project = read_project(folder / "target")
    return build_rows(project, analyse(project, expressions=True, own=True))


def expected(snapshot: LineageSnapshot, table: str) -> list[dict[str, Any]]:
    return [msgspec.structs.asdict(row) for row in snapshot.rows[table]]


def held(spark: Any, snapshot: LineageSnapshot, table: str) -> list[dict[str, Any]]:
    frame = spark.table(TO.table(table)).where(f"snapshot_id = '{snapshot.snapshot_id}'")
    return list(frame.select(*columns(table)).toArrow().to_pylist())


def in_order(rows: list[dict[str, Any]]) -> list[str]:
    return sorted(json.dumps(row, sort_keys=True, default=str) for row in rows)


def check(spark: Any, snapshot: LineageSnapshot) -> None:
    load(SessionServer(spark), snapshot, TO)
    assert load(SessionServer(spark), snapshot, TO).already
    for table in snapshot.rows:
        assert in_order(held(spark, snapshot, table)) == in_order(expected(snapshot, table)), table


@pytest.mark.parametrize("text", SURROGATES)
def test_half_a_character_can_be_loaded(tmp_path: Path, text: str) -> None:
    snapshot = snapshot_of(tmp_path, named([f"a{text}b"]))
    for table, rows in snapshot.rows.items():
        assert arrow_table(table, rows).num_rows == len(rows)


@pytest.mark.spark
def test_every_hostile_part_comes_back(spark: Any, tmp_path: Path) -> None:
    texts = ["".join(PARTS[start::20]) for start in range(20)]
    snapshot = snapshot_of(tmp_path, named(texts))
    rows = repr([expected(snapshot, table) for table in snapshot.rows])
    assert all(repr(text)[1:-1] in rows for text in texts)
    check(spark, snapshot)


@pytest.mark.spark
@pytest.mark.slow
@settings(
    max_examples=4,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(st.lists(hostile, min_size=10, max_size=30))
def test_any_hostile_names_come_back(spark: Any, tmp_path: Path, drawn: list[str]) -> None:
    check(spark, snapshot_of(tmp_path, named(drawn)))
