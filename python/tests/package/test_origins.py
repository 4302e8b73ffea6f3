"""Where a change was made, and what caused an incident, where parent and child moved at once."""

from __future__ import annotations

import os
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

pytest.importorskip("dbt.adapters.duckdb")

import duck_project
from duck_project import dbt, insert, loaded, rows
from hand_made import LISTED, RAW, check, node, orders, project

from dbt_ripple.artifacts import Project
from dbt_ripple.graph.lineage_tables import RunHistoryRow

pytestmark = pytest.mark.slow

MONDAY = datetime.now(UTC).replace(hour=9, minute=0, second=0, microsecond=0) - timedelta(days=7)

BEFORE = {
    "stg": "select id, amount, status from s.orders",
    "edited": "with x as (select sum(amount) as total from s.stg) select total from x",
    "reworded": "with x as (select amount * 3 as total from s.stg) select total from x",
    "filtered": "select id from s.stg where id > 1",
    "counted": "select status, count(*) as orders from s.stg group by status",
    "summed": "select status, sum(id) as ids from s.stg group by status",
    "starred": "with x as (select * from s.stg) select * from x",
}
NOW = {
    "stg": "select id, amount * 2 as amount, status, 1 as one from s.orders where id > 7",
    "edited": "with x as (select sum(amount + 1) as total from s.stg) select total from x",
    "reworded": "select t.amount * 3 as total from s.stg as t",
    "filtered": "select id from s.stg where id > 2",
    "counted": BEFORE["counted"],
    "summed": BEFORE["summed"],
    "starred": BEFORE["starred"],
}
ORIGINS = {
    ("edited", "total"),
    ("filtered", "*rows*"),
    ("stg", "*rows*"),
    ("stg", "amount"),
    ("stg", "one"),
    ("test_edited", "*rows*"),
}
MOVED_ALONG = {
    ("counted", "*rows*"),
    ("counted", "orders"),
    ("edited", "*rows*"),
    ("reworded", "*rows*"),
    ("reworded", "total"),
    ("starred", "*rows*"),
    ("starred", "amount"),
    ("starred", "one"),
    ("summed", "*rows*"),
    ("summed", "ids"),
    ("test_counted", "*rows*"),
    ("test_reworded", "*rows*"),
    ("test_summed", "*rows*"),
}


def side(queries: dict[str, str], when: datetime, test: str) -> Project:
    models = [
        node(f"model.p.{name}", sql, RAW if name == "stg" else "model.p.stg")
        for name, sql in queries.items()
    ]
    made = project(
        orders(),
        *models,
        check("test_edited", f"select total from s.edited where total < {test}", "model.p.edited"),
        check("test_counted", "select orders from s.counted where orders < 1", "model.p.counted"),
        check("test_summed", "select ids from s.summed where ids < 1", "model.p.summed"),
        check("test_reworded", "select total from s.reworded where total < 1", "model.p.reworded"),
        catalog=LISTED,
        adapter="duckdb",
    )
    made.metadata.generated_at = when
    return made.having(digest=when.isoformat())


def ran(name: str, status: str, when: datetime) -> RunHistoryRow:
    values = dict.fromkeys(RunHistoryRow.__struct_fields__)
    fields = {
        "invocation_id": when.isoformat(),
        "unique_id": f"test.p.{name}",
        "project_name": "p",
        "target_name": "dev",
        "command": "build",
        "resource_type": "test",
        "name": name,
        "node_id": f"model.p.{name.removeprefix('test_')}",
        "tags": "",
        "status": status,
        "started_at": when,
        "completed_at": when,
        "recorded_at": when,
    }
    return RunHistoryRow(**values | fields)


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    folder = tmp_path_factory.mktemp("origins")
    with pytest.MonkeyPatch.context() as patch:
        for name in [name for name in os.environ if name.startswith("DBT_")]:
            patch.delenv(name)
        patch.chdir(folder)
        duck_project.make(folder, {})
        dbt(folder, "run", "--select", "ripple_dim_snapshots")
        loaded(folder, side(BEFORE, MONDAY, "1"), "a")
        loaded(folder, side(NOW, MONDAY + timedelta(hours=1), "2"), "b")
        tests = ("test_edited", "test_counted", "test_reworded", "test_summed")
        passed = [ran(name, "pass", MONDAY + timedelta(minutes=10)) for name in tests]
        failed = [ran(name, "fail", MONDAY + timedelta(hours=2)) for name in tests]
        insert(folder, "run_history", [*passed, *failed])
        results = dbt(folder, "run", "--select", "+ripple_incidents")
        assert results and {str(r.status) for r in results} == {"success"}
        yield folder


def test_what_was_edited_itself_is_an_origin_whatever_moved_above(told: Path) -> None:
    result_rows = rows(
        told, "select name, column_name, is_origin from dev_ripple.ripple_definition_changes"
    )
    assert {(name, column) for name, column, is_origin in result_rows if is_origin} == ORIGINS
    assert {
        (name, column) for name, column, is_origin in result_rows if not is_origin
    } == MOVED_ALONG


def test_the_expressions_are_over_relations(told: Path) -> None:
    result_rows = rows(
        told,
        "select name, old_expression, new_expression from dev_ripple.ripple_definition_changes"
        " where column_name = 'total' order by name",
    )
    assert result_rows == [
        ("edited", "SUM(amount)", "SUM(amount + 1)"),
        ("reworded", "amount * 3", "t.amount * 3"),
    ]


def test_the_cause_of_an_incident_is_the_nearest_edit(told: Path) -> None:
    result_rows = rows(
        told,
        "select name, cause_unique_id, cause_column, cause_new_expression, cause_distance"
        " from dev_ripple.ripple_incident_failures order by name",
    )
    assert result_rows == [
        ("test_counted", "model.p.stg", "*rows*", None, 2),
        ("test_edited", "test.p.test_edited", "*rows*", None, 0),
        ("test_reworded", "model.p.stg", "*rows*", None, 2),
        ("test_summed", "model.p.stg", "*rows*", None, 2),
    ]
    # One cause is one incident.
    assert rows(
        told,
        "select cause_unique_id, failures from dev_ripple.ripple_incidents order by cause_unique_id",
    ) == [("model.p.stg", 3), ("test.p.test_edited", 1)]


def test_a_load_without_own_fingerprints_is_told_by_its_text(told: Path) -> None:
    rows(told, "update dev_ripple_raw.columns set own_fingerprint = null")
    dbt(
        told,
        "run",
        "--select",
        "ripple_int_moved_definitions",
        "ripple_int_moved_edges",
        "ripple_definition_changes",
    )
    result_rows = rows(
        told, "select name, column_name, is_origin from dev_ripple.ripple_definition_changes"
    )
    origins = {(name, column) for name, column, is_origin in result_rows if is_origin}
    assert origins == ORIGINS | {("reworded", "total"), ("summed", "ids")}
