"""Loading on a real Spark: types, idempotence, what a reader sees when a load dies at any step."""

from __future__ import annotations

from types import SimpleNamespace

import msgspec
import pytest
from snapshots_by_hand import MOMENT, snapshot_by_hand

from dbt_ripple.artifacts import Metadata, Node, Project
from dbt_ripple.errors import RippleError
from dbt_ripple.graph.lineage_rows import LineageSnapshot
from dbt_ripple.graph.lineage_tables import TABLES
from dbt_ripple.spark import server as serving
from dbt_ripple.spark.load import Destination, arrow_table, columns, create_table, destination, load
from dbt_ripple.spark.server import SessionServer


def visible(session, to, table):
    """Rows a reader sees, by snapshot."""
    frame = session.sql(
        f"select snapshot_id, count(*) as n from {to.table(table)} where snapshot_id in "
        f"(select snapshot_id from {to.table('snapshots')}) group by snapshot_id"
    ).collect()
    return {row["snapshot_id"]: row["n"] for row in frame}


def counts(snapshot):
    return {table: len(rows) for table, rows in snapshot.rows.items()}


@pytest.fixture
def to(spark, request):
    there = Destination((request.node.name.split("[")[0][:60] + "_raw",))
    spark.sql(f"drop schema if exists {there.schema} cascade")
    return there


# --- without Spark ---------------------------------------------------------------------------------


def test_arrow_keeps_every_value_and_type():
    for table, rows in snapshot_by_hand("s1").rows.items():
        arrow = arrow_table(table, rows)
        assert arrow.schema.names == list(columns(table))
        assert arrow.to_pylist() == [msgspec.structs.asdict(row) for row in rows]
    assert arrow_table("nodes", []).num_rows == 0


def test_types_of_the_columns():
    assert columns("run_results") == {
        "snapshot_id": "string",
        "invocation_id": "string",
        "unique_id": "string",
        "status": "string",
        "execution_time": "double",
        "started_at": "timestamp",
        "completed_at": "timestamp",
        "rows_affected": "bigint",
        "failures": "bigint",
        "message": "string",
    }
    assert columns("nodes")["certified"] == "boolean"


def test_all_tables_but_the_commit_are_partitioned():
    for table in TABLES:
        statement = create_table(f"raw.{table}", table, "delta")
        assert ("partitioned by (snapshot_id)" in statement) == (table != "snapshots")
        assert "using delta" in statement


def project_with(**source):
    nodes = {}
    if source:
        unique_id = "source.dbt_ripple.ripple_raw.snapshots"
        nodes[unique_id] = Node(unique_id=unique_id, resource_type="source", **source)
    return Project(target_path="t", metadata=Metadata(), nodes=nodes, parents={}, children={})


def test_destination_is_where_the_package_reads():
    project = project_with(database=None, schema="dev_raw", meta={"file_format": "delta"})
    assert destination(project) == Destination(("dev_raw",), "delta")
    assert destination(project_with(schema="s", database="s")).namespace == ("s",)
    assert destination(project_with(schema="s", database="main")).schema == "`main`.`s`"


def test_destination_may_be_given():
    project = project_with(schema="dev_raw", meta={"file_format": "delta"})
    assert destination(project, "lake.raw", "parquet") == Destination(("lake", "raw"), "parquet")
    assert destination(project_with(), "raw") == Destination(("raw",), "parquet")


def test_destination_unknown_says_what_to_do():
    with pytest.raises(RippleError, match=r"packages\.yml.*--schema"):
        destination(project_with())
    with pytest.raises(RippleError, match="use one of parquet, delta, iceberg"):
        destination(project_with(), "raw", "csv")


def test_another_adapter_is_told_in_one_line():
    project = project_with(schema="dev_raw")
    project.metadata.adapter_type = "snowflake"
    with pytest.raises(
        RippleError, match=r"for Spark and Databricks only.*on snowflake.*need no tables"
    ):
        destination(project)
    assert destination(project, "raw") == Destination(("raw",), "parquet")


def test_a_table_without_rows_needs_no_frame():
    """Spark Connect makes none of an empty Arrow table; this session could make none at all."""
    server = SessionServer(SimpleNamespace(version="4.1.4"))
    (batch,) = server.batches("run_results", ["status", "started_at"], [])
    assert batch.rows == 0
    assert "array<struct<c0: string, c1: bigint>>" in batch.relation
    assert "timestamp_micros(c1) as `started_at`" in batch.relation


# --- on Spark --------------------------------------------------------------------------------------


@pytest.mark.spark
def test_values_arrive_and_a_second_load_adds_nothing(spark, to):
    snapshot = snapshot_by_hand("s1")
    first = load(SessionServer(spark), snapshot, to)
    assert (first.already, first.rows) == (False, counts(snapshot))
    second = load(SessionServer(spark), snapshot, to)
    assert (second.already, second.rows) == (True, counts(snapshot))
    for table, rows in snapshot.rows.items():
        frame = spark.table(to.table(table)).select(*columns(table)).toArrow().to_pylist()
        expected = [msgspec.structs.asdict(row) for row in rows]
        key = lambda row: [str(value) for value in row.values()]  # noqa: E731
        assert sorted(frame, key=key) == sorted(expected, key=key)
    (row,) = spark.table(to.table("snapshots")).selectExpr("unix_micros(loaded_at) as at").collect()
    assert row["at"] == int(MOMENT.timestamp()) * 1_000_000 + MOMENT.microsecond


@pytest.mark.spark
def test_a_load_that_fails_at_any_step_shows_nothing_and_can_be_repeated(spark, to, monkeypatch):
    before = snapshot_by_hand("before")
    load(SessionServer(spark), before, to)

    class StopError(Exception):
        pass

    # Several chunks a table, so that there are steps inside one too.
    monkeypatch.setattr(serving, "CHUNK", 2)
    snapshot = snapshot_by_hand("after", nodes=3)
    steps = 0

    class Failing(SessionServer):
        def execute(self, statement):
            nonlocal steps
            if steps == limit:
                raise StopError
            steps += 1
            super().execute(statement)

    limit = 0
    while True:
        steps = 0
        try:
            load(Failing(spark), snapshot, to)
        except RippleError as error:
            assert isinstance(error.__cause__, StopError)
            assert visible(spark, to, "nodes") == {"before": 3}
            # Every third is enough: the next attempt starts on what this one left.
            limit += 3
        else:
            break
    assert limit > 9
    for table in TABLES:
        assert visible(spark, to, table) == {
            "before": len(before.rows[table]),
            "after": len(snapshot.rows[table]),
        }


@pytest.mark.spark
def test_leftovers_of_a_dead_load_are_replaced_even_by_nothing(spark, to):
    dead = snapshot_by_hand("s1", nodes=5)

    class Dying(SessionServer):
        def execute(self, statement):
            if to.table("snapshots") in statement and statement.startswith("insert"):
                raise KeyError
            super().execute(statement)

    with pytest.raises(RippleError):
        load(Dying(spark), dead, to)
    assert spark.table(to.table("nodes")).count() == 5
    assert visible(spark, to, "nodes") == {}
    rows = {**snapshot_by_hand("s1", nodes=2).rows, "run_results": []}
    load(SessionServer(spark), LineageSnapshot("s1", rows, None), to)
    assert visible(spark, to, "nodes") == {"s1": 2}
    assert visible(spark, to, "run_results") == {}


@pytest.mark.spark
def test_missing_columns_are_added_and_yours_stay(spark, to):
    spark.sql(f"create schema {to.schema}")
    spark.sql(
        f"create table {to.table('nodes')} (unique_id string, mine int, snapshot_id string)"
        " using parquet partitioned by (snapshot_id)"
    )
    spark.sql(f"insert into {to.table('nodes')} values ('old', 1, 's0')")
    load(SessionServer(spark), snapshot_by_hand("s1"), to)
    frame = spark.table(to.table("nodes"))
    assert set(columns("nodes")) | {"mine"} == set(frame.columns)
    assert frame.where("snapshot_id = 's0' and mine = 1 and name is null").count() == 1
    assert frame.where("snapshot_id = 's1' and mine is null and name is not null").count() == 3


@pytest.mark.spark
def test_what_spark_refuses_is_one_line(spark, to):
    with pytest.raises(RippleError) as caught:
        load(
            SessionServer(spark), snapshot_by_hand("s1"), Destination(to.namespace, "nosuchformat")
        )
    assert str(caught.value).startswith(f"{to}: the lineage tables cannot be written (")
    assert "\n" not in str(caught.value)
