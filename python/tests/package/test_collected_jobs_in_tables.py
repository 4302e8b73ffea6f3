"""Jobs that collected events tell of, in the models of the dbt package."""

from __future__ import annotations

import os
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("dbt.adapters.duckdb")

import duck_project
from collected_events import Event, collected, dataset, made_of, run_event
from duck_project import dbt, insert, rows
from hand_made import LISTED, RAW, node, orders, project

from dbt_ripple.graph.analyse_project import analyse
from dbt_ripple.graph.assets.asset_lineage import AssetLineage
from dbt_ripple.graph.assets.declared_graph import DeclaredGraph
from dbt_ripple.graph.lineage_rows import build_rows

HOUR = timedelta(hours=1)
NOW = datetime.now(UTC).replace(minute=0, second=0, microsecond=0)
WAREHOUSE = "duckdb://shop.duckdb"


def task(hours: int, kind: str = "COMPLETE", run: int = 1, column: str = "cents") -> Event:
    """A task that loads orders, some hours ago."""
    told = made_of(
        {
            "id": [("kafka://b", "clicks", "id", ("DIRECT", "IDENTITY"))],
            "amount": [("kafka://b", "clicks", column, ("DIRECT", "TRANSFORMATION"))],
        }
    )
    return run_event(
        "load_orders.load",
        kind,
        at=(NOW - hours * HOUR).isoformat(),
        run=run,
        inputs=[dataset("kafka://b", "clicks", schema=["id", "cents", "gross"])],
        outputs=[dataset(WAREHOUSE, "d.s.orders", schema=["id", "amount"], columnLineage=told)],
    )


def train(hours: int, run: int) -> Event:
    """A Spark job that reads fct."""
    told = made_of({"n": [(WAREHOUSE, "d.s.fct", "id", ("DIRECT", "AGGREGATION"))]})
    return run_event(
        "train",
        at=(NOW - hours * HOUR).isoformat(),
        run=run,
        integration="SPARK",
        inputs=[dataset(WAREHOUSE, "d.s.fct")],
        outputs=[dataset("s3://lake", "churn", columnLineage=told)],
    )


def check(hours: int, success: bool, run: int) -> Event:
    """A check of Great Expectations on orders."""
    read = dataset(WAREHOUSE, "d.s.orders")
    said = [{"assertion": "not_null", "column": "amount", "success": success}]
    read["inputFacets"] = {"dataQualityAssertions": {"assertions": said}}
    at = (NOW - hours * HOUR).isoformat()
    return run_event("expectations", at=at, run=run, integration="", inputs=[read])


FIRST = [task(30), train(29, 2), check(29, True, 3)]
SECOND = [*FIRST, task(3, run=4, column="gross"), check(2, False, 5), task(1, "FAIL", run=6)]


def loaded(folder: Path, events: list[Event], hours: int) -> None:
    """What `dbt-ripple load` does some hours ago."""
    made = project(
        orders(),
        node("model.p.fct", "select id, amount from s.orders", RAW),
        catalog=LISTED,
        adapter="duckdb",
    )
    made.metadata.generated_at = NOW - hours * HOUR
    graph = DeclaredGraph(made, collected(folder, events, made).assets)
    seen = AssetLineage(graph, analyse(made, expressions=True, own=True)).analysis
    snapshot = build_rows(
        graph.acyclic, seen, target_name="dev", loaded_at=made.metadata.generated_at
    )
    for table, found in snapshot.rows.items():
        insert(folder, table, found)


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    folder = tmp_path_factory.mktemp("collected")
    with pytest.MonkeyPatch.context() as patch:
        for name in [name for name in os.environ if name.startswith("DBT_")]:
            patch.delenv(name)
        patch.chdir(folder)
        duck_project.make(folder, {})
        dbt(folder, "run", "--select", "ripple_dim_snapshots")
        loaded(folder, FIRST, 28)
        loaded(folder, SECOND, 0)
        results = dbt(folder, "build", "--select", "package:dbt_ripple")
        bad = [(r.node.name, r.message) for r in results if str(r.status) in ("fail", "error")]
        assert results and not bad
        yield folder


def answered(folder: Path, name: str, columns: str, **asked: str) -> list[tuple[Any, ...]]:
    """What a question of the package answers."""
    variables = ", ".join(f"{key}: '{value}'" for key, value in asked.items())
    dbt(folder, "compile", "--select", name, "--vars", f"{{{variables}}}")
    file = folder / "target" / "compiled" / "dbt_ripple" / "analyses" / f"{name}.sql"
    return rows(folder, f"select {columns} from ({file.read_text()}) as answered")


def test_last_successful_run_names_runs_of_jobs(told: Path) -> None:
    found = rows(
        told,
        "select unique_id, invocation_id[-1:], last_status from dev_ripple.ripple_last_successful_run"
        " order by unique_id",
    )
    assert found == [
        ("asset.airflow.load_orders.load", "4", "error"),
        ("asset.job.expectations", "5", "success"),
        ("asset.spark.train", "2", "success"),
    ]


def test_changed_upstream_names_jobs_that_changed_and_ran(told: Path) -> None:
    columns = "name, column_name, change, right(run_id, 1)"
    found = answered(told, "changed_upstream", columns, ripple_node="fct")
    name = "load_orders.load"
    assert {row for row in found if row[3]} == {
        (name, "*rows*", "ran", "4"),
        (name, "*rows*", "run failed", "6"),
    }
    assert (name, "amount", "redefined", None) in found
    # What only moved along, as the model, did not change.
    assert not [row for row in found if row[0] == "fct"]
    # Further back, and from a job's point of view.
    found = answered(told, "changed_upstream", columns, ripple_node="train", ripple_since="7d")
    assert {row[3] for row in found if row[3]} == {"1", "2", "4", "6"}


def test_assertions_are_in_the_history_of_tests(told: Path) -> None:
    found = rows(
        told,
        "select name, node_id, previous_status, status from dev_ripple.ripple_test_history order by ran_at",
    )
    assert found == [
        ("not_null", RAW, None, "pass"),
        ("not_null", RAW, "pass", "fail"),
    ]


def test_the_closure_goes_from_a_topic_to_the_last_consumer(told: Path) -> None:
    found = rows(
        told,
        "select descendant_id, depth from dev_ripple.ripple_fct_node_closure"
        " where ancestor_id = 'asset.topic.clicks' order by depth, descendant_id",
    )
    assert [row for row in found if row[1]] == [
        ("asset.airflow.load_orders.load", 1),
        (RAW, 2),
        ("asset.job.expectations", 3),
        ("model.p.fct", 3),
        ("asset.spark.train", 4),
        ("asset.file.churn", 5),
    ]
