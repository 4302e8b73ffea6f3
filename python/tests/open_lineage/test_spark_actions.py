"""What Spark's listener tells of one write, as openlineage-spark 1.53 tells it on PySpark 4.1."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from collected_events import Event, collected, dataset, made_of, run_event
from hand_made import project

from dbt_ripple.artifacts.assets_file import DeclaredAsset
from dbt_ripple.governance.hypothetical_changes import Change
from dbt_ripple.governance.impact import impact
from dbt_ripple.graph.assets.declared_graph import DeclaredGraph

CTAS = "execute_create_data_source_table_as_select_command"
PLAN = "adaptive_spark_plan"
INSERT = "execute_insert_into_hadoop_fs_relation_command"
WAREHOUSE = "file:/wh"


def table(name: str, *, named: bool = True, place: str = "", **facets: object) -> Event:
    """A table of the warehouse; its name in the catalog is a symlink."""
    link = {"namespace": f"{WAREHOUSE}{place}", "name": f"ml.{name}", "type": "TABLE"}
    more = {"symlinks": {"identifiers": [link]}} if named else {}
    return dataset("file", f"/wh{place}/ml.db/{name}", **more, **facets)


def action(
    command: str, name: str, seconds: tuple[int, int], run: int = 1, **more: object
) -> list[Event]:
    """The start and the end of a job of the application `nightly` that makes a table of ml.raw."""
    kind = ("DIRECT", "AGGREGATION")
    made = made_of({"total": [("file", "/wh/ml.db/raw", "amount", kind)]})
    told = {
        "inputs": [table("raw", schema=["amount"])],
        "outputs": [table(name, named=command != PLAN, columnLineage=made, schema=["total"])],
        "integration": "SPARK",
        "namespace": "spark",
        "run": run,
        **more,
    }
    suffix = f"{'ml_db' if command in (PLAN, INSERT) else 'ml'}_{name}"
    job = f"{told.pop('app', 'nightly')}.{command}.{suffix}"
    return [
        run_event(job, kind, at=f"2026-11-27T21:47:{at:02d}Z", **told)  # type: ignore[arg-type]
        for kind, at in zip(("START", "COMPLETE"), seconds, strict=True)
    ]


def jobs(folder: Path, events: list[Event]) -> list[str]:
    """The names of the jobs, without the application's."""
    found = collected(folder, events, project()).assets
    return sorted(a.name.partition(".")[2] for a in found if a.type == "spark_job")


def test_a_write_that_is_told_as_two_jobs_is_one(tmp_path: Path) -> None:
    rows = {"outputStatistics": {"rowCount": 7}}
    inner = action(PLAN, "scored", (12, 18), run=2)
    inner[1]["outputs"][0]["outputFacets"] = rows
    events = [*action(CTAS, "scored", (10, 20)), *inner]
    events += [*action(CTAS, "scored", (30, 40), run=3), *action(PLAN, "scored", (31, 39), run=4)]
    for seed in range(3):
        random.Random(seed).shuffle(events)
        assets = collected(tmp_path, events, project()).assets
        assert [a.id for a in assets if a.type == "spark_job"] == [
            f"spark:nightly.{CTAS}.ml_scored"
        ]
    (job,) = [a for a in assets if a.type == "spark_job"]
    assert [run.rows_affected for run in job.runs] == [7, None]
    graph = DeclaredGraph(project(), assets)
    raw = graph.whole.nodes["asset.table.ml.raw"]
    report = impact(project(), raw, [Change("drop", "amount")], assets=graph)
    # Once the job, once the table: not the job of the plan besides.
    assert [a.unique_id for a in report.affected_assets] == [
        f"asset.spark.nightly.{CTAS}.ml_scored",
        "asset.table.ml.scored",
    ]


def test_a_write_in_a_write_in_a_write_is_one(tmp_path: Path) -> None:
    events = [
        *action("execute_save_into_data_source_command", "scored", (10, 30)),
        *action(CTAS, "scored", (11, 29), run=2),
        *action(PLAN, "scored", (12, 28), run=3),
    ]
    assert jobs(tmp_path, events) == ["execute_save_into_data_source_command.ml_scored"]


@pytest.mark.parametrize(
    "other",
    [
        action(INSERT, "scored", (21, 25), run=2),  # afterwards
        action(INSERT, "scored", (15, 25), run=2),  # beside it
        action(PLAN, "other", (12, 18), run=2),  # another table
        action(PLAN, "scored", (12, 18), run=2, app="weekly"),
        action(PLAN, "scored", (12, 18), run=2, integration="AIRFLOW"),
        # Once within, once alone.
        [*action(PLAN, "scored", (12, 18), run=2), *action(PLAN, "scored", (50, 55), run=3)],
        action(PLAN, "scored", (12, 18), run=2)[:1],  # its end is not known
    ],
)
def test_two_writes_are_two(tmp_path: Path, other: list[Event]) -> None:
    found = collected(tmp_path, [*action(CTAS, "scored", (10, 20)), *other], project()).assets
    assert len([a for a in found if a.writes]) == 2


def tables(folder: Path, events: list[Event]) -> list[DeclaredAsset]:
    return [a for a in collected(folder, events, project()).assets if a.type == "table"]


def test_a_table_that_is_dropped_and_made_is_found_by_its_name(tmp_path: Path) -> None:
    # The listener has the folder of the database twice there, and as the symlink's namespace.
    gone = table("scored", place="/ml.db", lifecycleStateChange={"lifecycleStateChange": "DROP"})
    drop = run_event(
        "nightly.drop_table", outputs=[gone], integration="SPARK", namespace="spark", run=9
    )
    made = action(CTAS, "scored", (10, 20))
    ids = {asset.id for asset in tables(tmp_path, [*made, drop])}
    assert ids == {"table:ml.raw", "table:ml.scored"}


def test_tables_of_two_warehouses_are_two(tmp_path: Path) -> None:
    events = action(CTAS, "scored", (10, 20))
    link = {"namespace": "file:/other/wh", "name": "ml.scored", "type": "TABLE"}
    there = dataset("file", "/other/wh/ml.db/scored", symlinks={"identifiers": [link]})
    events.append(run_event("x", outputs=[there], integration="SPARK", namespace="spark", run=9))
    assert len(tables(tmp_path, events)) == 3
