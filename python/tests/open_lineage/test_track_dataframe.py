"""`track.dataframe`: inputs and columns out of the plan of a real Spark DataFrame."""

from __future__ import annotations

import logging
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import schemas
from collected_events import edges, linked
from hand_made import project
from open_lineage.test_track import Sent
from open_lineage.test_track import sent as sent  # the fixture
from oracle.agreement import create_tables, drop_schemas, fixtures
from oracle.catalyst import Catalyst
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql import types as T  # noqa: N812

from dbt_ripple import Dataset, track
from dbt_ripple.flow.ir import AGGREGATION, FILTER, IDENTITY, TRANSFORMATION
from dbt_ripple.graph.lineage_tables import ROWS
from dbt_ripple.openlineage.dataframe_lineage import jdbc_relation, read_dataframe
from dbt_ripple.spark.plan_expressions import PlanGapError

pytestmark = pytest.mark.spark
LTV = "s3://lake/gold/ltv"


@pytest.fixture(scope="module")
def tables(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A table, and files that no catalog knows; their folder is given."""
    folder = tmp_path_factory.mktemp("lake")
    spark.sql("create schema if not exists tracked")
    spark.sql(
        "create table tracked.fct_orders using parquet as select 1 as order_id, 7 as customer_id,"
        " 9.5D as total, 1.5D as shipping_cost, 'web' as channel"
    )
    spark.range(1).selectExpr("id as customer_id", "'x' as email").write.parquet(
        f"file://{folder}/customers"
    )
    yield folder
    spark.sql("drop schema tracked cascade")


def ltv(spark: SparkSession, folder: Path) -> DataFrame:
    customers = spark.read.parquet(f"file://{folder}/customers")
    return (
        spark.table("tracked.fct_orders")
        .where("channel != 'staff'")
        .join(customers, "customer_id")
        .groupBy("customer_id", F.upper("email").alias("mail"))
        .agg(F.sum(F.col("total") - F.col("shipping_cost")).alias("ltv"))
    )


def test_a_dataframe(sent: Sent, spark: SparkSession, tables: Path) -> None:
    @track(outputs=[LTV], job="customer_ltv")
    def customer_ltv() -> Any:
        df = ltv(spark, tables)
        assert track.dataframe(df) is df
        return df.collect()

    assert customer_ltv() == []
    start, complete = sent.events()
    assert start["inputs"] == []
    orders, customers = sorted(complete["inputs"], key=lambda each: "customers" in each["name"])
    assert orders["namespace"] == customers["namespace"] == "file"
    assert customers["name"] == f"{tables}/customers"
    (link,) = orders["facets"]["symlinks"]["identifiers"]
    assert (link["name"], link["type"]) == ("tracked.fct_orders", "TABLE")
    assert "symlinks" not in customers["facets"]
    (output,) = complete["outputs"]
    assert {f["name"]: f["type"] for f in output["facets"]["schema"]["fields"]} == {
        "customer_id": "int",
        "mail": "string",
        "ltv": "double",
    }
    lineage = output["facets"]["columnLineage"]

    def said(inputs: list[Any]) -> set[tuple[str, str, str]]:
        return {
            (Path(each["name"]).name, each["field"], each["transformations"][0]["subtype"])
            for each in inputs
        }

    fields = {name: said(of["inputFields"]) for name, of in lineage["fields"].items()}
    assert fields == {
        "customer_id": {("fct_orders", "customer_id", "IDENTITY")},
        "mail": {("customers", "email", "TRANSFORMATION")},
        "ltv": {
            ("fct_orders", "total", "AGGREGATION"),
            ("fct_orders", "shipping_cost", "AGGREGATION"),
        },
    }
    assert said(lineage["dataset"]) == {
        ("fct_orders", "channel", "FILTER"),
        ("fct_orders", "customer_id", "JOIN"),
        ("customers", "customer_id", "JOIN"),
        ("fct_orders", "customer_id", "GROUP_BY"),
        ("customers", "email", "GROUP_BY"),
    }


def test_what_counts_rows_comes_of_the_rows(
    sent: Sent, spark: SparkSession, tables: Path, tmp_path: Path
) -> None:
    orders = spark.table("tracked.fct_orders")
    by_channel = orders.groupBy("channel").agg(
        F.count("*").alias("n"), F.count("total").alias("totals"), F.lit(1).alias("one")
    )
    counted = by_channel.withColumn("twice", F.col("n") * 2)
    ones = orders.select(F.lit(1).alias("one")).agg(F.count("*").alias("all_of_them"))
    with track(job="counts") as run:
        run.dataframe(counted, Dataset("s3://lake", "counts"))
        run.dataframe(ones, Dataset("s3://lake", "ones"))
    event = sent.events()[-1]
    counts, all_of_them = event["job"]["facets"]["lineage"]["entries"]

    def said(of: Any) -> set[tuple[str | None, str]]:
        return {(i.get("field"), i["transformations"][0]["subtype"]) for i in of["inputs"]}

    fields = {name: said(of) for name, of in counts["fields"].items()}
    assert fields == {
        "channel": {("channel", "IDENTITY")},
        "n": {(None, "AGGREGATION")},
        "totals": {("total", "AGGREGATION")},  # of a column: as before
        "twice": {(None, "AGGREGATION")},
    }
    assert said(all_of_them["fields"]["all_of_them"]) == {(None, "AGGREGATION")}
    # The older facet has no rows: it leaves them out.
    (older, _) = event["outputs"]
    assert [*older["facets"]["columnLineage"]["fields"]] == ["channel", "totals"]
    # And that is what is read of it.
    read = edges(linked(tmp_path, [event], project()))
    assert "DIRECT AGGREGATION table.tracked.fct_orders.*rows* job.counts.counts.n" in read


def test_the_example_of_the_page(sent: Sent, spark: SparkSession, tables: Path) -> None:
    page = Path(__file__).parents[3] / "docs" / "track.md"
    blocks = re.findall(r"^```python\n(.*?)^```", page.read_text(encoding="utf-8"), re.S | re.M)
    (block,) = [each for each in blocks if "track.dataframe" in each]
    names: dict[str, Any] = {"track": track}
    block = block.replace("shop.", "tracked.").replace("s3://lake", str(tables))
    exec(compile(block.replace("order_total", "total"), str(page), "exec"), names)
    names["customer_ltv"](spark)
    assert spark.read.parquet(f"{tables}/gold/customer_ltv").columns == [
        "customer_id",
        "sum(total)",
    ]
    (output,) = sent.events()[-1]["outputs"]
    assert output["name"] == f"{tables}/gold/customer_ltv"
    assert [*output["facets"]["columnLineage"]["fields"]] == ["customer_id", "sum(total)"]


def test_two_dataframes_of_one_run(sent: Sent, spark: SparkSession, tables: Path) -> None:
    """Each output has the rows and columns of its own DataFrame, and what was declared stays."""
    orders = spark.table("tracked.fct_orders")
    with track(job="two") as run:
        run.dataframe(orders.where("total > 1").select("order_id"), "/lake/a")
        run.dataframe(orders.select(F.col("channel").alias("c")), Dataset("s3://lake", "b"))
    complete = sent.events()[-1]
    a, b = complete["outputs"]
    assert [*a["facets"]["columnLineage"]["fields"]] == ["order_id"]
    assert [each["field"] for each in a["facets"]["columnLineage"]["dataset"]] == ["total"]
    assert [*b["facets"]["columnLineage"]["fields"]] == ["c"]
    assert b["facets"]["columnLineage"].get("dataset", []) == []
    assert len(complete["inputs"]) == 1


def test_what_is_not_known_is_logged_and_breaks_nothing(
    sent: Sent, spark: SparkSession, tables: Path, caplog: pytest.LogCaptureFixture
) -> None:
    orders = spark.table("tracked.fct_orders")
    assert track.dataframe(orders) is orders
    assert "outside of a tracked run" in caplog.text
    with track(job="no_output") as run:
        assert run.dataframe(orders) is orders
    assert "of which output is the DataFrame?" in caplog.text
    with track(outputs=["/lake/a"], job="no_dataframe") as run:
        run.dataframe("nothing")  # type: ignore[type-var]
    assert "does not show its plan" in caplog.text
    # A relation is an input although nothing is known of its columns.
    with track(outputs=["/lake/a"], job="gap") as run:
        run.dataframe(asof(orders))
    assert "the columns of a DataFrame are not known: plan node " in caplog.text
    events = [e for e in sent.events() if e["eventType"] == "COMPLETE"]
    gap = next(e for e in events if e["job"]["name"] == "gap")
    assert [each["facets"]["symlinks"]["identifiers"][0]["name"] for each in gap["inputs"]] == [
        "tracked.fct_orders"
    ]
    assert "columnLineage" not in gap["outputs"][0]["facets"]
    assert schemas.Events(events)


def asof(orders: DataFrame) -> DataFrame:
    """A plan with a node that is not read."""
    return orders._joinAsOf(
        orders.withColumnRenamed("order_id", "other"), F.lit(1), F.lit(1), on="customer_id"
    )


def test_data_of_python_comes_from_nowhere(spark: SparkSession, tables: Path) -> None:
    made = spark.createDataFrame([(7, "a")], ["customer_id", "a"])
    found = read_dataframe(spark.table("tracked.fct_orders").join(made, "customer_id"))
    assert found.gap == ""
    (key,) = found.relations
    assert found.columns["a"] == {}
    assert found.columns["total"] == {(key, "total"): IDENTITY}


def test_functions_in_python(spark: SparkSession, tables: Path) -> None:
    """A column function reads its arguments; a function of rows may make anything of anything."""
    orders = spark.table("tracked.fct_orders").select("order_id", "total")
    twice = F.udf(lambda value: 2 * value, T.DoubleType())
    found = read_dataframe(orders.select(twice("total").alias("t")))
    (key,) = found.relations
    assert found.columns == {"t": {(key, "total"): TRANSFORMATION}}
    mapped = read_dataframe(orders.mapInPandas(lambda batches: batches, "a int, b double"))
    every = {(key, "order_id"): TRANSFORMATION, (key, "total"): TRANSFORMATION}
    assert mapped.columns == {"a": every, "b": every}
    assert {column for _, column in mapped.rows} == {"order_id", "total"}


def test_a_self_join_and_a_subquery(spark: SparkSession, tables: Path) -> None:
    found = read_dataframe(
        spark.sql(
            "with a as (select * from tracked.fct_orders where channel = 'web')"
            " select a.total, (select max(shipping_cost) from tracked.fct_orders) as most"
            " from a join tracked.fct_orders b on a.order_id = b.customer_id"
        )
    )
    (key,) = found.relations
    assert found.columns["total"] == {(key, "total"): IDENTITY}
    assert found.columns["most"] == {(key, "shipping_cost"): AGGREGATION}
    assert found.rows[key, "channel"] == FILTER


def test_as_catalyst_reads_the_same_statements(spark: SparkSession) -> None:
    """Over fixtures of all constructs: what is a table to the oracle is a relation here.

    Every third one: the oracle's own tests have them all, and here only the relations differ.
    """
    logging.getLogger("SQLQueryContextLogger").setLevel(logging.CRITICAL)
    corpus, oracle, compared = fixtures(), Catalyst(spark), 0
    cases = corpus.cases[::3]
    made = create_tables(spark, corpus)
    try:
        spark.sql(f"use {corpus.schema}")
        for case in cases:
            try:
                theirs = oracle.read(case.sql)
                df = spark.sql(case.sql)
            except Exception:
                continue
            if len(theirs.names) != len(set(theirs.names)) or df.columns != theirs.names:
                continue  # two columns of one name cannot be written; a command shows no columns
            ours = read_dataframe(df)
            assert ours.gap == "", case.name

            def named(deps: Any, ours: Any = ours) -> dict[tuple[str, str], int]:
                return {
                    (ours.relations[key].table[1].lower(), column.lower()): kinds
                    for (key, column), kinds in deps.items()
                    if column != ROWS  # Catalyst's are not told: see `plan_lineage`
                }

            assert [named(deps) for deps in ours.columns.values()] == theirs.columns, case.name
            assert named(ours.rows) == theirs.rows, case.name
            compared += 1
    finally:
        drop_schemas(spark, made)
    assert compared > 0.8 * len(cases)


@pytest.mark.parametrize(
    ("url", "table", "expected"),
    [
        (
            "jdbc:postgresql://db:5433/shop?user=x",
            "orders",
            "postgres://db:5433 shop.public.orders",
        ),
        ("jdbc:mysql://db/shop", "orders", "mysql://db:3306 shop.orders"),
        ("jdbc:mysql://db/shop", "`web`.`orders`", "mysql://db:3306 web.orders"),
        ("jdbc:postgresql://db/shop", '"raw"."orders"', "postgres://db:5432 shop.raw.orders"),
    ],
)
def test_tables_behind_jdbc(url: str, table: str, expected: str) -> None:
    found = jdbc_relation(url, table, {})
    assert found is not None
    assert f"{found.namespace} {found.name}" == expected


def test_a_query_behind_jdbc_has_no_name() -> None:
    assert jdbc_relation("jdbc:postgresql://db/shop", "(select 1) t", {}) is None
    assert jdbc_relation("jdbc:h2:mem:x", "t", {}) is None


def test_a_dataframe_without_a_plan() -> None:
    with pytest.raises(PlanGapError, match="does not show its plan"):
        read_dataframe(object())
