"""What relations are called: OpenLineage's naming rules, adapter by adapter."""

from __future__ import annotations

from pathlib import Path

import pytest

from dbt_ripple.artifacts import Metadata, Node, Project
from dbt_ripple.dbt_runner.invoke import DbtOptions
from dbt_ripple.dbt_runner.profile import connection_of
from dbt_ripple.errors import RippleError
from dbt_ripple.openlineage.dataset_names import Connection, DatasetNames

METASTORE = {"spark.hadoop.hive.metastore.uris": "thrift://meta:9083,thrift://meta2:9083"}


@pytest.mark.parametrize(
    ("adapter", "values", "namespace"),
    [
        ("athena", {"region_name": "eu-west-1"}, "awsathena://athena.eu-west-1.amazonaws.com"),
        ("bigquery", {"project": "p"}, "bigquery"),
        ("clickhouse", {"host": "ch", "port": 8123}, "clickhouse://ch:8123"),
        (
            "databricks",
            {"host": "dbc-1.cloud.databricks.com"},
            "databricks://dbc-1.cloud.databricks.com",
        ),
        ("duckdb", {"path": "shop.duckdb"}, "duckdb://shop.duckdb"),
        ("duckdb", {}, "duckdb://:memory:"),
        (
            "fabric",
            {"server": "s.fabric.com", "port": 1433},
            "fabric-warehouse://s.fabric.com:1433",
        ),
        (
            "glue",
            {"region": "eu-west-1", "role_arn": "arn:aws:iam::123:role/r"},
            "arn:aws:glue:eu-west-1:123",
        ),
        ("mysql", {"server": "m", "port": 3306}, "mysql://m:3306"),
        ("postgres", {"host": "h", "port": 5433}, "postgres://h:5433"),
        ("postgres", {"host": "h"}, "postgres://h:5432"),
        (
            "redshift",
            {"host": "shop.abc123.eu-west-1.redshift.amazonaws.com", "port": 5439},
            "redshift://shop.eu-west-1:5439",
        ),
        ("redshift", {"host": "tunnel", "port": 5439}, "redshift://tunnel:5439"),
        ("snowflake", {"account": "shop-prod"}, "snowflake://shop-prod"),
        ("snowflake", {"account": "xy12345"}, "snowflake://xy12345.us-west-1.aws"),
        ("snowflake", {"account": "xy12345.us-east-2"}, "snowflake://xy12345.us-east-2.aws"),
        (
            "snowflake",
            {"account": "xy12345.east-us-2.azure"},
            "snowflake://xy12345.east-us-2.azure",
        ),
        ("spark", {"method": "thrift", "host": "s", "port": 10001}, "spark://s:10001"),
        ("spark", {"method": "session", "host": "localhost", "port": 443}, "spark://localhost"),
        ("spark", {"method": "session", "server_side_parameters": METASTORE}, "hive://meta:9083"),
        ("sqlserver", {"server": "s", "port": 1433}, "mssql://s:1433"),
        ("synapse", {"server": "s", "port": 1433}, "sqlserver://s:1433"),
        ("trino", {"host": "t", "port": 8080}, "trino://t:8080"),
    ],
)
def test_namespaces(adapter: str, values: dict[str, object], namespace: str) -> None:
    assert Connection(adapter, values).namespace() == namespace


def test_what_is_not_known_is_reported() -> None:
    with pytest.raises(RippleError, match=r"no rule .* adapter cobol.*--dataset-namespace"):
        Connection("cobol").namespace()
    with pytest.raises(RippleError, match="the profile has no host"):
        Connection("postgres").namespace()


def names(adapter: str, *nodes: Node, values: dict[str, object] | None = None) -> DatasetNames:
    by_id = {node.unique_id: node for node in nodes}
    project = Project(
        target_path="",
        metadata=Metadata(adapter_type=adapter),
        nodes=by_id,
        parents={key: [] for key in by_id},
        children={key: [] for key in by_id},
    )
    return DatasetNames(project, "ns", Connection(adapter, values or {}))


def model(relation: str | None, database: str | None = "Db", **more: object) -> Node:
    return Node(
        unique_id="model.p.Orders",
        name="Orders",
        alias="Orders",
        resource_type="model",
        database=database,
        schema="Sales",
        relation_name=relation,
        **more,
    )


@pytest.mark.parametrize(
    ("adapter", "relation", "name"),
    [
        ("postgres", '"Db"."Sales"."Orders"', "Db.Sales.Orders"),
        ("postgres", "Db.Sales.Orders", "db.sales.orders"),
        ("snowflake", "Db.Sales.Orders", "DB.SALES.ORDERS"),
        ("snowflake", '"Db".Sales."Orders"', "Db.SALES.Orders"),
        ("redshift", '"Db"."Sales"."Orders"', "db.sales.orders"),
        ("bigquery", "`Db`.`Sales`.`Orders`", "Db.Sales.Orders"),
        ("bigquery", "`Db.Sales.Orders`", "Db.Sales.Orders"),
        ("databricks", "`Main`.`Sales`.`Orders`", "main.sales.orders"),
        ("spark", "`Sales`.`Orders`", "sales.orders"),
        ("spark", "Sales.Orders", "sales.orders"),
        ("mysql", "`Sales`.`Orders`", "Sales.Orders"),
        ("glue", "Sales.Orders", "table/Sales/Orders"),
        ("duckdb", '"Db"."Sales"."Orders"', "Db.Sales.Orders"),
        ("duckdb", '"Sales"."Orders"', "Db.Sales.Orders"),
        ("duckdb", None, "Db.Sales.Orders"),
        ("duckdb", '"a.b"."Sales"."Or""ders"', 'a.b.Sales.Or"ders'),
    ],
)
def test_names(adapter: str, relation: str | None, name: str) -> None:
    assert names(adapter, model(relation)).of("model.p.Orders") == ("ns", name)


def test_what_dbt_does_not_know_is_in_the_projects_schema() -> None:
    dataset_names = names("duckdb", model('"Db"."Sales"."Orders"'))
    assert dataset_names.of("dataset.raw") == ("ns", "Db.Sales.raw")
    assert dataset_names.of("dataset.lake.raw") == ("ns", "Db.lake.raw")
    assert dataset_names.of("dataset.other.lake.raw") == ("ns", "other.lake.raw")


@pytest.mark.parametrize(
    ("properties", "place"),
    [
        ({"config": {"location_root": "s3a://lake/silver/"}}, ("s3a://lake", "silver/Orders")),
        ({"config": {"location": "/data/orders.parquet"}}, ("file", "/data/orders.parquet")),
        ({"external": {"location": "gs://lake/raw/orders/"}}, ("gs://lake", "raw/orders")),
        ({"meta": {"external_location": "read_csv('x.csv')"}}, None),
        ({}, None),
    ],
)
def test_where_the_files_are(properties: dict[str, object], place: tuple[str, str] | None) -> None:
    node = model(None, **properties)
    assert names("duckdb", node).locations(node) == ([place] if place else [])


def test_what_is_no_dataset() -> None:
    ephemeral = model(None, config={"materialized": "ephemeral"})
    test = Node(unique_id="test.p.t", resource_type="test", schema="s", name="t")
    dataset_names = names("duckdb", ephemeral, test)
    assert [dataset_names.of(u) for u in ("model.p.Orders", "test.p.t", "model.p.gone")] == [
        None
    ] * 3


def profile(folder: Path, text: str) -> Path:
    (folder / "dbt_project.yml").write_text("name: p\nprofile: p\nversion: 1.0.0\n")
    (folder / "profiles.yml").write_text(f"p:\n  target: dev\n  outputs:\n{text}")
    return folder


def test_dbt_reads_the_profile_of_a_spark_session(tmp_path: Path) -> None:
    folder = profile(
        tmp_path,
        "    dev: {type: spark, method: session, host: NA, schema: s}\n"
        "    prod: {type: spark, method: session, host: NA, schema: s, server_side_parameters:"
        " {hive.metastore.uris: 'thrift://meta:9083'}}\n",
    )
    options = DbtOptions(profiles_dir=folder)
    assert connection_of(folder, options, {}).namespace() == "spark://NA"
    assert connection_of(folder, options, {"target": "prod"}).namespace() == "hive://meta:9083"
    given = DbtOptions(profiles_dir=folder, target="dev")
    assert connection_of(folder, given, {"target": "prod"}).namespace() == "spark://NA"


def test_dbt_says_why_it_cannot_read_the_profile(tmp_path: Path) -> None:
    folder = profile(tmp_path, "    dev: {type: cobol, schema: s}\n")
    with pytest.raises(RippleError, match=r"dbt cannot read the profile .*--dataset-namespace"):
        connection_of(folder, DbtOptions(profiles_dir=folder), {})
