"""What other programs tell of their jobs, as a part of the graph."""

from __future__ import annotations

import itertools
import json
import os
import random
import tracemalloc
from pathlib import Path

import msgspec
import pytest
from collected_events import (
    BROKER,
    DB,
    Event,
    collected,
    dataset,
    edges,
    linked,
    made_of,
    run_event,
    written,
)
from hand_made import LISTED, RAW, node, orders, project

from dbt_ripple.artifacts import Project
from dbt_ripple.artifacts.assets_file import parse_assets
from dbt_ripple.errors import RippleError
from dbt_ripple.governance.hypothetical_changes import Change
from dbt_ripple.governance.impact import impact
from dbt_ripple.graph.analyse_project import analyse
from dbt_ripple.graph.assets.asset_lineage import AssetLineage
from dbt_ripple.graph.assets.declared_graph import DeclaredGraph
from dbt_ripple.graph.lineage_rows import build_rows
from dbt_ripple.graph.lineage_tables import ROWS
from dbt_ripple.openlineage.collected.stored_events import read_events

WEB = "postgres://web:5432"
FCT = "model.p.fct"
LOAD = "insert into s.orders (id, amount, status) select id, cents / 100, state from checkout where spare"
TOLD = made_of(
    {"n": [(DB, "d.s.fct", "id", ("DIRECT", "AGGREGATION"))]},
    [(DB, "d.s.fct", "status", ("INDIRECT", "FILTER"))],
)


def shop(adapter: str = "postgres") -> Project:
    """orders -> stg -> fct."""
    return project(
        orders(),
        node("model.p.stg", 'select id, amount, status from "s"."orders"', RAW),
        node(FCT, 'select id, amount, status from "s"."stg"', "model.p.stg"),
        catalog=LISTED,
        adapter=adapter,
    )


def load(**more: object) -> Event:
    """A task that loads orders; its producer tells columns without kinds, as Airflow's SQL parser does."""
    told = made_of(
        {
            "id": [(WEB, "web.public.checkout", "id", None)],
            "_0": [(WEB, "web.public.checkout", "cents", None)],
        }
    )
    return run_event(
        "load_orders.load",
        inputs=[dataset(WEB, "web.public.checkout", schema=["id", "cents", "state", "spare"])],
        outputs=[dataset(DB, "d.s.orders", schema=["id", "amount", "status"], columnLineage=told)],
        **{"sql": {"query": LOAD}, **more},  # type: ignore[arg-type]
    )


def train(**more: object) -> Event:
    """A job that reads fct; its producer tells all."""
    return run_event(
        "train",
        integration="SPARK",
        inputs=[dataset(DB, "d.s.fct")],
        outputs=[dataset("s3://lake", "churn/v1", schema=["n"], columnLineage=TOLD)],
        **more,  # type: ignore[arg-type]
    )


# --- one graph -------------------------------------------------------------------------------------


def test_jobs_and_datasets_stand_around_dbt(tmp_path: Path) -> None:
    publish = run_event(
        "publish",
        integration="",
        inputs=[dataset("s3://lake", "churn/v1")],
        outputs=[dataset(BROKER, "churn.v1")],
    )
    lineage = linked(tmp_path, [load(), train(), publish], shop())
    children = lineage.graph.whole.children
    way = [RAW, "model.p.stg", FCT, "asset.spark.train", "asset.file.churn/v1"]
    way = ["asset.table.web.public.checkout", "asset.airflow.load_orders.load", *way]
    way += ["asset.job.publish", "asset.topic.churn.v1"]
    for parent, child in itertools.pairwise(way):
        assert child in children[parent]
    types = {u: lineage.graph.whole.nodes[u].type for u in way if u.startswith("asset.")}
    assert list(types.values()) == ["table", "dag", "spark_job", "file", "job", "topic"]


def test_column_lineage_is_edges_with_their_kinds(tmp_path: Path) -> None:
    masked = made_of({"who": [(DB, "d.s.fct", "id", ("DIRECT", "TRANSFORMATION"))]})
    masked["fields"]["who"]["inputFields"][0]["transformations"][0]["masking"] = True
    rank = made_of({"rank": [(DB, "d.s.fct", "amount", ("INDIRECT", "WINDOW"))]})
    events = [
        train(),
        run_event("hide", inputs=[], outputs=[dataset("s3://lake", "who", columnLineage=masked)]),
        run_event("rank", inputs=[], outputs=[dataset("s3://lake", "rank", columnLineage=rank)]),
    ]
    found = edges(linked(tmp_path, events, shop()))
    assert {
        "DIRECT AGGREGATION p.fct.id spark.train.n",
        "INDIRECT FILTER p.fct.status spark.train.*rows*",
        "DIRECT IDENTITY spark.train.n file.churn/v1.n",
        "DIRECT TRANSFORMATION masked p.fct.id airflow.hide.who",
        "INDIRECT WINDOW p.fct.amount airflow.rank.rank",
    } <= found
    assert not [edge for edge in found if "p.fct.amount spark.train" in edge]


def test_the_lineage_facet_says_the_same(tmp_path: Path) -> None:
    source = {"namespace": DB, "name": "d.s.fct", "type": "DATASET"}
    kinds = [{"type": "DIRECT", "subtype": "AGGREGATION"}]
    said = {
        "fields": {
            "n": {"inputs": [{**source, "field": "id", "transformations": kinds}]},
            "rows": {"inputs": [{**source, "transformations": kinds}]},
        },
        "inputs": [
            {
                **source,
                "field": "status",
                "transformations": [{"type": "INDIRECT", "subtype": "JOIN"}],
            }
        ],
    }
    of_dataset = run_event("a", outputs=[dataset("s3://lake", "one", lineage=said)])
    entry = {"namespace": "s3://lake", "name": "one", "type": "DATASET", **said}
    of_job = run_event("a", lineage={"entries": [entry]})
    for event in (of_dataset, of_job):
        found = edges(linked(tmp_path, [event], shop()))
        assert {
            "DIRECT AGGREGATION p.fct.id airflow.a.n",
            "DIRECT AGGREGATION p.fct.*rows* airflow.a.rows",
            "INDIRECT JOIN p.fct.status airflow.a.*rows*",
            "DIRECT IDENTITY airflow.a.n file.one.n",
        } <= found


def test_lineage_between_jobs(tmp_path: Path) -> None:
    before = {"namespace": "prod", "name": "extract", "type": "JOB"}
    entries = [
        {"namespace": "s3://lake", "name": "one", "type": "DATASET", "inputs": [before]},
        {"type": "JOB", "inputs": [{"namespace": DB, "name": "d.s.fct", "type": "DATASET"}]},
        {"namespace": "prod", "name": "after", "type": "JOB", "inputs": [before]},
    ]
    graph = linked(tmp_path, [run_event("main", lineage={"entries": entries})], shop()).graph
    assert {"asset.airflow.main", "asset.file.one"} & set(graph.whole.children["asset.job.extract"])
    assert "asset.airflow.main" in graph.whole.children[FCT]
    assert "asset.job.after" in graph.whole.children["asset.job.extract"]


def test_without_column_lineage_a_job_says_so(tmp_path: Path) -> None:
    event = run_event("copy", inputs=[dataset(DB, "d.s.fct")], outputs=[dataset(BROKER, "orders")])
    lineage = linked(tmp_path, [event], shop())
    seen = lineage.analysis.nodes["asset.airflow.copy"]
    assert seen.status == "opaque"
    assert seen.reason is not None and seen.reason.code.value == "reads_without_columns"


def copies(*, silent: bool = True, **facets: object) -> Event:
    """A job that reads fct and writes two files; the producer tells the columns of one of them."""
    return run_event(
        "copies",
        integration="SPARK",
        inputs=[dataset(DB, "d.s.fct")],
        outputs=[
            dataset("s3://lake", "counts", schema=["n"], columnLineage=TOLD),
            dataset(
                "s3://lake", "raw", schema=["a", "b"], **({} if silent else {"columnLineage": TOLD})
            ),
        ],
        **facets,  # type: ignore[arg-type]
    )


@pytest.mark.parametrize("facets", [{}, {"sql": {"query": "call some_procedure()"}}])
def test_an_output_without_columns_leaves_those_of_the_others(
    tmp_path: Path, facets: dict[str, object]
) -> None:
    lineage = linked(tmp_path, [copies(**facets)], shop())
    found = edges(lineage)
    # What is told of the one file is what its columns come of, and no more.
    assert {edge for edge in found if edge.endswith(" spark.copies.counts.n")} == {
        "DIRECT AGGREGATION p.fct.id spark.copies.counts.n"
    }
    assert {edge for edge in found if edge.endswith(" file.counts.n")} == {
        "DIRECT IDENTITY spark.copies.counts.n file.counts.n"
    }
    # The other one may come of everything.
    for column in ("id", "amount", "status", "*rows*"):
        assert f"DIRECT TRANSFORMATION p.fct.{column} spark.copies.raw.*" in found
    for column in ("a", "b", "*rows*"):
        assert f"DIRECT TRANSFORMATION spark.copies.raw.* file.raw.{column}" in found
    seen = lineage.analysis.nodes["asset.spark.copies"]
    assert seen.status == "analysed"
    assert seen.reason is not None and seen.reason.code.value == "writes_without_columns"


def test_a_change_reaches_the_output_that_may_read_it(tmp_path: Path) -> None:
    found = collected(tmp_path, [copies()], shop())
    graph = DeclaredGraph(shop(), found.assets)
    report = impact(
        shop(), graph.whole.nodes[FCT], [Change("rename", "amount", "total")], assets=graph
    )
    reached = {a.unique_id: a.severity for a in report.affected_assets}
    assert reached == {"asset.spark.copies": "warning", "asset.file.raw": "warning"}


def test_columns_without_kinds_are_believed_and_more_may_be_read(tmp_path: Path) -> None:
    event = load()
    del event["job"]["facets"]["sql"]
    lineage = linked(tmp_path, [event], shop())
    assert (
        "DIRECT TRANSFORMATION table.web.public.checkout.id airflow.load_orders.load.id"
        in edges(lineage)
    )
    seen = lineage.analysis.nodes["asset.airflow.load_orders.load"]
    assert seen.status == "opaque"
    assert seen.reason is not None and seen.reason.code.value == "kinds_missing"
    # What the parser could give no name is one of the columns that it does not name.
    assert "DIRECT TRANSFORMATION airflow.load_orders.load._0 p.raw.orders.amount" in edges(lineage)


def test_sql_says_what_a_producer_leaves_out(tmp_path: Path) -> None:
    lineage = linked(tmp_path, [load()], shop())
    assert lineage.analysis.nodes["asset.airflow.load_orders.load"].status == "analysed"
    assert {
        "INDIRECT FILTER table.web.public.checkout.spare airflow.load_orders.load.*rows*",
        "DIRECT TRANSFORMATION table.web.public.checkout.cents airflow.load_orders.load.amount",
        "DIRECT IDENTITY airflow.load_orders.load.amount p.raw.orders.amount",
    } <= edges(lineage)


def test_sql_of_an_insert_goes_by_position(tmp_path: Path) -> None:
    event = load(
        sql={"query": "insert into s.orders select id as k, cents / 100, state from checkout"}
    )
    found = edges(linked(tmp_path, [event], shop()))
    assert "DIRECT IDENTITY airflow.load_orders.load.k p.raw.orders.id" in found
    assert "DIRECT IDENTITY airflow.load_orders.load.state p.raw.orders.status" in found


def test_sql_that_drops_its_table_gives_it_no_values(tmp_path: Path) -> None:
    event = load(sql={"query": "drop table if exists s.orders; truncate table s.orders"})
    del event["outputs"][0]["facets"]["columnLineage"]
    event["inputs"] = []
    found = edges(linked(tmp_path, [event], shop()))
    name = "airflow.load_orders.load"
    assert {e for e in found if name in e} == {f"DIRECT IDENTITY {name}.*rows* p.raw.orders.*rows*"}


def test_names_that_a_parser_gives_are_not_those_of_the_table(tmp_path: Path) -> None:
    """As a real Airflow sends it: an empty `dataset`, and columns called as where they come from."""
    event = load()
    event["outputs"][0]["facets"]["columnLineage"]["dataset"] = []
    lineage = linked(tmp_path, [event], shop())
    assert lineage.analysis.nodes["asset.airflow.load_orders.load"].status == "analysed"
    assert lineage.analysis.nodes["asset.airflow.load_orders.load"].columns == [
        "id",
        "amount",
        "status",
    ]
    event["job"]["facets"]["sql"]["query"] = (
        "merge into s.orders using checkout on true when matched then delete"
    )
    lineage = linked(tmp_path, [event], shop())
    assert lineage.analysis.nodes["asset.airflow.load_orders.load"].status == "opaque"


def test_what_dbt_says_of_itself_is_no_second_graph(tmp_path: Path) -> None:
    own = run_event(
        FCT, integration="DBT", inputs=[dataset(DB, "d.s.stg")], outputs=[dataset(DB, "d.s.fct")]
    )
    # dbt on Spark is seen by Spark's listener, too.
    seen = run_event(
        "sql",
        integration="SPARK",
        inputs=[dataset(DB, "d.s.stg")],
        outputs=[dataset(DB, "d.s.fct")],
    )
    found = collected(tmp_path, [own, seen], shop())
    assert [(a.id, a.writes) for a in found.assets] == [("spark:sql", ())]
    assert not found.notes


def test_who_else_writes_what_dbt_builds_is_reported(tmp_path: Path) -> None:
    event = run_event("patch", inputs=[dataset(BROKER, "fixes")], outputs=[dataset(DB, "d.s.fct")])
    (note,) = collected(tmp_path, [event], shop()).notes
    assert note.startswith("airflow:patch writes model.p.fct, which dbt builds")


# --- names -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("namespace", "name", "adapter"),
    [
        (DB, "d.s.orders", "postgres"),
        ("postgresql://db:5432", "s.orders", "postgres"),
        (DB, 'd."S".ORDERS', "postgres"),
        ("snowflake://org-acc", "D.S.ORDERS", "snowflake"),
        ("somewhere", "s.orders", "postgres"),
        ("hive://meta:9083", "s.orders", "spark"),
        ("hive://meta:9083", "spark_catalog.s.orders", "spark"),
        ("arn:aws:glue:eu-west-1:1234", "table/s/orders", "spark"),
    ],
)
def test_a_dataset_that_is_a_relation(
    tmp_path: Path, namespace: str, name: str, adapter: str
) -> None:
    event = run_event("job", outputs=[dataset(namespace, name)])
    lineage = linked(tmp_path, [event], shop(adapter))
    assert RAW in lineage.graph.whole.children["asset.airflow.job"]


@pytest.mark.parametrize(
    ("namespace", "name", "adapter"),
    [
        ("mysql://db:3306", "s.orders", "postgres"),
        (BROKER, "s.orders", "postgres"),
        ("file", "/lake/s.orders", "spark"),
        (DB, "d.t.orders", "postgres"),
        (DB, "orders", "postgres"),
    ],
)
def test_a_dataset_of_another_engine_or_schema(
    tmp_path: Path, namespace: str, name: str, adapter: str
) -> None:
    event = run_event("job", outputs=[dataset(namespace, name)])
    lineage = linked(tmp_path, [event], shop(adapter))
    assert RAW not in lineage.graph.whole.children["asset.airflow.job"]


def test_symlinks_are_names_of_one_dataset(tmp_path: Path) -> None:
    same = {"identifiers": [{"namespace": "file:/warehouse", "name": "s.orders", "type": "TABLE"}]}
    events = [
        run_event("job", outputs=[dataset("file", "/warehouse/s.db/orders", symlinks=same)]),
        run_event("other", inputs=[dataset("file", "/warehouse/s.db/orders")]),
    ]
    children = linked(tmp_path, events, shop("spark")).graph.whole.children
    assert RAW in children["asset.airflow.job"]
    assert "asset.airflow.other" in children[RAW]
    # For another engine's project it is a table of Spark's, by the name that people give it.
    children = linked(tmp_path, events, shop()).graph.whole.children
    assert children["asset.table.s.orders"] == ["asset.airflow.other"]


def test_a_given_namespace_is_the_only_one(tmp_path: Path) -> None:
    events = [
        run_event("dev", outputs=[dataset("postgres://dev:5432", "d.s.orders")]),
        run_event("prod", outputs=[dataset(DB, "d.s.orders")]),
    ]
    found = collected(tmp_path, events, shop())
    assert len(found.notes) == 1 and "postgres://dev:5432" in found.notes[0]
    found = collected(tmp_path, events, shop(), namespace=DB)
    assert not found.notes
    assert {a.id: [w.node for w in a.writes] for a in found.assets if a.writes} == {
        "airflow:dev": ["asset.table.d.s.orders"],
        "airflow:prod": [RAW],
    }


def test_a_declared_asset_and_a_collected_job_of_one_name_are_one(tmp_path: Path) -> None:
    declared = parse_assets(
        """
assets:
  - id: airflow:load_orders.load
    owner: data@shop.example
    writes: [raw.orders]
    reads: [topic:clicks]
  - id: topic:clicks
  - id: table:checkout
    owner: web@shop.example
""",
        "f.yml",
    )
    found = collected(tmp_path, [load()], shop(), declared)
    assert [a.id for a in found.assets] == [
        "airflow:load_orders.load",
        "topic:clicks",
        "table:checkout",
    ]
    job, _, table = found.assets
    assert job.owner == {"email": "data@shop.example"} and len(job.runs) == 1
    assert [c.name for c in table.columns] == ["id", "cents", "state", "spare"]
    lineage = linked(tmp_path, [load()], shop(), declared)
    assert set(lineage.graph.whole.parents[job.unique_id]) == {
        "asset.topic.clicks",
        "asset.table.checkout",
    }


def test_names_of_several_namespaces_are_told_apart(tmp_path: Path) -> None:
    events = [
        run_event("load", namespace="a"),
        run_event("load", namespace="b"),
        run_event("x y:z"),
    ]
    ids = sorted(asset.id for asset in collected(tmp_path, events, shop()).assets)
    assert ids == ["airflow:a/load", "airflow:b/load", "airflow:x_y_z"]


# --- runs ------------------------------------------------------------------------------------------


def test_runs_are_history(tmp_path: Path) -> None:
    failed = {"errorMessage": {"message": "no space", "programmingLanguage": "SQL"}}
    events = [
        train(kind="START", at="2026-11-23T09:00:00Z", run=1),
        train(kind="COMPLETE", at="2026-11-23T09:00:05Z", run=1),
        train(kind="START", at="2026-11-23T11:00:00+01:00", run=2),
        train(kind="FAIL", at="2026-11-23T10:00:01Z", run=2, run_facets=failed),
        train(kind="START", at="2026-11-23T12:00:00Z", run=3),
    ]
    events[1]["outputs"][0]["outputFacets"] = {"outputStatistics": {"rowCount": 7}}
    lineage = linked(tmp_path, events, shop())
    rows = build_rows(lineage.graph.acyclic, lineage.analysis).rows["run_results"]
    found = [
        (r["status"], r["execution_time"], r["rows_affected"], r["message"])
        for r in msgspec.to_builtins(rows)
        if r["unique_id"] == "asset.spark.train"
    ]
    assert found == [("success", 5.0, 7, None), ("error", 1.0, None, "no space")]


def test_lineage_is_that_of_the_latest_complete_run(tmp_path: Path) -> None:
    def copy(topic: str, **more: object) -> Event:
        return run_event("copy", outputs=[dataset(BROKER, topic)], **more)  # type: ignore[arg-type]

    events = [
        copy("new", at="2026-11-23T10:00:00Z", run=1),
        copy("old", at="2026-11-22T10:00:00Z", run=2),
        copy("failed", kind="FAIL", at="2026-11-23T11:00:00Z", run=3),
        copy("running", kind="RUNNING", at="2026-11-23T12:00:00Z", run=4),
        run_event("copy", at="2026-11-23T13:00:00Z", run=5),
        copy("late", kind="START", at="2026-11-23T09:00:00Z", run=1),
    ]
    (job, *_) = (a for a in collected(tmp_path, events, shop()).assets if a.id == "airflow:copy")
    assert [flow.node for flow in job.writes] == ["asset.topic.late", "asset.topic.new"]
    streaming = [e for e in events if e["eventType"] == "RUNNING"]
    (job, *_) = (a for a in collected(tmp_path, streaming, shop()).assets if a.id == "airflow:copy")
    assert [flow.node for flow in job.writes] == ["asset.topic.running"]


def test_complete_is_believed_before_start(tmp_path: Path) -> None:
    wrong = made_of({"n": [(DB, "d.s.fct", "amount", ("DIRECT", "IDENTITY"))]})
    start = train(kind="START", at="2026-11-23T11:00:00Z")  # a clock that runs ahead
    start["outputs"][0]["facets"]["columnLineage"] = wrong
    found = edges(linked(tmp_path, [start, train()], shop()))
    assert "DIRECT AGGREGATION p.fct.id spark.train.n" in found
    assert not [edge for edge in found if "p.fct.amount" in edge and "train" in edge]


def test_a_job_event_counts_as_what_is_declared_then(tmp_path: Path) -> None:
    static = run_event("copy", at="2026-11-24T10:00:00Z", outputs=[dataset(BROKER, "planned")])
    del static["run"], static["eventType"]
    run = run_event("copy", outputs=[dataset(BROKER, "done")])
    found = collected(tmp_path, [run, static], shop()).assets
    (job,) = (asset for asset in found if asset.id == "airflow:copy")
    assert [flow.node for flow in job.writes] == ["asset.topic.planned"]


# --- checks ----------------------------------------------------------------------------------------


def checked(success: bool, **more: object) -> Event:
    said = [
        {"assertion": "expect_column_values_to_not_be_null", "column": "ID", "success": success},
        {
            "assertion": "row_count",
            "success": True,
            "severity": "warn",
            "expected": "9",
            "actual": "9",
        },
    ]
    read = dataset(DB, "d.s.fct")
    read["inputFacets"] = {"dataQualityAssertions": {"assertions": said}}
    return run_event("great_expectations", integration="", inputs=[read], **more)  # type: ignore[arg-type]


def test_assertions_are_tests_with_results(tmp_path: Path) -> None:
    events = [
        checked(True, at="2026-11-23T10:00:00Z", run=1),
        checked(False, at="2026-11-23T11:00:00Z", run=2),
    ]
    lineage = linked(tmp_path, events, shop())
    rows = build_rows(lineage.graph.acyclic, lineage.analysis).rows
    nodes = {n["unique_id"]: n for n in msgspec.to_builtins(rows["nodes"])}
    tests = {u: n["name"] for u, n in nodes.items() if n["resource_type"] == "test"}
    assert sorted(tests.values()) == ["expect_column_values_to_not_be_null", "row_count"]
    (null,) = (u for u, name in tests.items() if name != "row_count")
    (count,) = (u for u, name in tests.items() if name == "row_count")
    read = {
        (t["test_id"], t["unique_id"], t["column_name"])
        for t in msgspec.to_builtins(rows["test_columns"])
    }
    assert {(null, FCT, "id"), (count, FCT, ROWS)} <= read
    results = [
        r["status"] for r in msgspec.to_builtins(rows["run_results"]) if r["unique_id"] == null
    ]
    assert results == ["pass", "fail"]


def test_the_test_facet_of_a_run(tmp_path: Path) -> None:
    facet = {
        "test": {
            "tests": [{"name": "freshness", "status": "FAIL", "severity": "warn", "type": "soda"}]
        }
    }
    event = run_event("soda", inputs=[dataset(DB, "d.s.fct")], run_facets=facet)
    (job,) = collected(tmp_path, [event], shop()).assets
    (said,) = job.assertions
    assert (said.name, said.kind, said.node, said.column) == ("freshness", "soda", FCT, None)
    assert [result.status for result in said.results] == ["warn"]


# --- order, repetition, nonsense -------------------------------------------------------------------


def test_order_and_repetition_change_nothing(tmp_path: Path) -> None:
    events = [
        *(
            load(kind=kind, at=f"2026-11-23T10:00:0{i}Z")
            for i, kind in enumerate(("START", "COMPLETE"))
        ),
        train(kind="START", run=2),
        train(run=2),
        train(at="2026-11-22T10:00:00Z", run=3),
        checked(True, run=4),
        checked(False, run=4),
        run_event("load", namespace="a", outputs=[dataset(BROKER, "t")]),
        run_event("load", namespace="b", outputs=[dataset("kafka://other:9092", "t")]),
    ]

    def tables() -> object:
        lineage = linked(tmp_path, events, shop())
        return msgspec.to_builtins(
            {
                table: rows
                for table, rows in build_rows(lineage.graph.acyclic, lineage.analysis).rows.items()
                if table != "snapshots"
            }
        )

    first = tables()
    for seed in range(20):
        dice = random.Random(seed)
        events = [*events[:9], *(dice.choice(events[:9]) for _ in range(5))]
        dice.shuffle(events)
        events = [*dict.fromkeys(map(json.dumps, events))]  # type: ignore[arg-type]
        events = [json.loads(e) for e in events]  # type: ignore[arg-type]
        doubled = [*events, *dice.sample(events, 4)]
        dice.shuffle(doubled)
        kept, events = events, doubled
        assert tables() == first
        events = kept


NONSENSE = [
    "", "{", "null", "[]", "7", '"text"', "{}", '{"eventTime": 3}', "\ufeff{}", "[" * 100_000,
    '{"eventTime": "2026-11-23T10:00:00Z", "job": {"namespace": "a", "name": 3}}',
    '{"eventTime": "2026-11-23T10:00:00Z", "job": {"namespace": "", "name": " "}, "run": {"runId": "1"}}',
    '{"eventTime": "yesterday", "job": {"namespace": "a", "name": "b"}, "run": {"runId": "1"}}',
    '{"eventTime": "0001-01-01T00:00:00+23:00", "job": {"namespace": "a", "name": "b"}}',
    '{"eventTime": "2026-11-23T10:00:00Z", "run": {"runId": "1"}}',
]  # fmt: skip


def test_what_is_no_event_is_one_line(tmp_path: Path) -> None:
    file = written(tmp_path, [json.dumps(train()), *NONSENSE])
    events = read_events([file])
    (note,) = events.notes
    assert f"{len(NONSENSE) - 1} of {len(NONSENSE)} lines are left out" in note
    assert "line 3" in note
    assert len(events.jobs) == 1


@pytest.mark.parametrize("nonsense", [None, 3, "text", [], [3, None], {}, {"a": []}, True, 1e300])
def test_nonsense_where_the_schema_has_something_else(tmp_path: Path, nonsense: object) -> None:
    """Each part of an event in turn is replaced; the other events count as before."""
    whole = [load(), train(), checked(False)]
    of = shop()
    analysis = analyse(of)
    for event in whole:
        for path in _paths(event):
            broken = json.loads(json.dumps(event))
            at = broken
            for step in path[:-1]:
                at = at[step]
            at[path[-1]] = nonsense
            events = [broken, *(e for e in whole if e is not event), _other()]
            graph = DeclaredGraph(of, collected(tmp_path, events, of).assets)
            lineage = AssetLineage(graph, analysis)
            assert "asset.job.other" in lineage.analysis.nodes


def _other() -> Event:
    return run_event("other", integration="", inputs=[dataset(DB, "d.s.fct")])


def _paths(value: object, path: tuple[object, ...] = ()) -> list[tuple[object, ...]]:
    found = [path] if path else []
    if isinstance(value, dict):
        for key, inner in value.items():
            found += _paths(inner, (*path, key))
    if isinstance(value, list):
        for i, inner in enumerate(value):
            found += _paths(inner, (*path, i))
    return found


@pytest.mark.parametrize(
    "name", ["\x1b[31mred", "a\nb", "x" * 1999, "ä ö", "..", "a'b\"c", "\u202e"]
)
def test_hostile_names(tmp_path: Path, name: str) -> None:
    event = run_event(name, inputs=[dataset(DB, name)], outputs=[dataset(name, name)])
    lineage = linked(tmp_path, [event, train()], shop())
    build_rows(lineage.graph.acyclic, lineage.analysis)
    assert "asset.spark.train" in lineage.analysis.nodes


def test_a_ring_of_jobs(tmp_path: Path) -> None:
    events = [
        run_event("a", inputs=[dataset(DB, "d.s.fct")], outputs=[dataset(DB, "d.s.orders")]),
        run_event("b", inputs=[dataset(BROKER, "t")], outputs=[dataset(BROKER, "t")]),
    ]
    lineage = linked(tmp_path, events, shop())
    rows = build_rows(lineage.graph.acyclic, lineage.analysis).rows
    edges = {(edge.parent_id, edge.child_id) for edge in rows["edges"]}
    closing = {("asset.airflow.a", "source.p.raw.orders"), ("asset.topic.t", "asset.airflow.b")}
    assert set(lineage.graph.closing) == closing
    assert ("model.p.fct", "asset.airflow.a") in edges
    assert ("asset.airflow.b", "asset.topic.t") in edges
    assert not edges & closing


def test_what_nobody_reads_of_an_event_takes_no_memory(tmp_path: Path) -> None:
    """Spark sends its plans: of a store of these a small part is in memory at a time."""
    plan = {"spark.logicalPlan": {"plan": [{"class": "org.apache.spark.Project", "id": 7}] * 1000}}
    many = [train(run=i, run_facets=plan) for i in range(100)]
    many += [run_event(f"job{i}", run=i, run_facets=plan) for i in range(100)]
    file = written(tmp_path, many)
    del many
    read_events([file])
    tracemalloc.start()
    read_events([file])
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    share = peak / file.stat().st_size
    print(f"peak memory of reading, to the size of the store: {share:.2f}")
    assert share < 0.2


def test_a_change_goes_through_many_jobs_that_read_what_they_fill(tmp_path: Path) -> None:
    events = []
    for i in range(25):
        own = (BROKER, f"t{i}")
        above = (BROKER, f"t{i - 1}") if i else (DB, "d.s.fct")
        column = "v" if i else "amount"
        told = made_of(
            {"v": [(*above, column, ("DIRECT", "IDENTITY"))]}, [(*own, "v", ("INDIRECT", "JOIN"))]
        )
        read = [dataset(*own), dataset(*above)]
        events.append(run_event(f"j{i}", inputs=read, outputs=[dataset(*own, columnLineage=told)]))
    graph = DeclaredGraph(shop(), collected(tmp_path, events, shop()).assets)
    report = impact(
        shop(), graph.whole.nodes[FCT], [Change("retype", "amount", "text")], assets=graph
    )
    assert {"j0", "t0", "j24", "t24"} <= {a.name for a in report.affected_assets}
    first = graph.whole.nodes["asset.topic.t0"]
    report = impact(shop(), first, [Change("drop", "v")], assets=graph)
    assert {"j0", "j1", "j24", "t24"} <= {a.name for a in report.affected_assets}


# --- where events are ------------------------------------------------------------------------------


def test_files_of_any_shape(tmp_path: Path) -> None:
    for text in (
        json.dumps([train(), load()]),
        json.dumps([train(), load()], indent=2),
        json.dumps(train(), indent=2),
        f"\ufeff{json.dumps(train())}\r\n\r\n{json.dumps(load())}",
    ):
        file = tmp_path / "events.json"
        file.write_text(text, encoding="utf-8")
        events = read_events([file])
        assert not events.notes and any(job.name == "train" for job in events.jobs)


def test_a_place_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(RippleError, match="no such file or folder"):
        read_events([tmp_path / "none"])
    with pytest.raises(RippleError, match="no collected events in this folder"):
        read_events([tmp_path])


def examples() -> list[Event]:
    folder = os.environ.get("OPENLINEAGE_SPEC")
    found = sorted(Path(folder, "tests").glob("*/*.json")) if folder else []
    return [json.loads(file.read_text(encoding="utf-8")) for file in found]


@pytest.mark.skipif(not examples(), reason="OPENLINEAGE_SPEC names no spec folder of OpenLineage")
def test_every_example_of_the_specification_is_read(tmp_path: Path) -> None:
    events = []
    for i, facets in enumerate(examples()):
        read = {**dataset(DB, "d.s.fct"), "facets": facets, "inputFacets": facets}
        wrote = {**dataset(DB, "d.s.orders"), "facets": facets, "outputFacets": facets}
        events.append(run_event(f"job{i}", inputs=[read], outputs=[wrote], run_facets=facets, **{
            name: said for name, said in facets.items() if name != "jobType"
        }))  # fmt: skip
    lineage = linked(tmp_path, events, shop())
    assert len(lineage.graph.assets) >= len(examples())
    build_rows(lineage.graph.acyclic, lineage.analysis)


# --- questions -------------------------------------------------------------------------------------


def test_impact_names_a_column_that_only_a_job_uses(tmp_path: Path) -> None:
    graph = DeclaredGraph(shop(), collected(tmp_path, [train()], shop()).assets)
    report = impact(shop(), graph.whole.nodes[FCT], [Change("drop", "status")], assets=graph)
    assert [(a.name, a.severity) for a in report.affected_assets][:1] == [("train", "breaking")]
    report = impact(shop(), graph.whole.nodes[FCT], [Change("drop", "amount")], assets=graph)
    assert not report.affected_assets
