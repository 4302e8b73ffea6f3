"""Names that only the engine knows, across models: fields of structs, repeated and made-up names."""

from __future__ import annotations

import hashlib
import sqlite3
from pathlib import Path
from typing import TYPE_CHECKING, Any

import duckdb
import pytest
from hand_made import check, names, node, project
from msgspec.structs import replace

from dbt_ripple.artifacts import Node, Project
from dbt_ripple.graph.analyse_project import analyse
from dbt_ripple.graph.cache import Cache

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

RAW = "source.p.raw.events"
TYPES = {RAW: {"id": "integer", "payload": "STRUCT(a INTEGER, b STRUCT(c VARCHAR))"}}


def events(adapter: str = "duckdb", payload: str = "payload", a: str = "payload.a") -> Project:
    return project(
        node(RAW),
        node("model.p.passed", f"select id, {payload} as payload from s.events", RAW),
        node("model.p.flat", "select id, payload.* from s.passed", "model.p.passed"),
        node("model.p.deep", "select b.*, a from s.flat", "model.p.flat"),
        check("c", "select * from s.deep where c is null", "model.p.deep"),
        types=TYPES,
        adapter=adapter,
    )


def test_fields_come_from_the_catalog_through_models() -> None:
    by_id = {a.unique_id: a for a in analyse(events()).nodes.values()}
    assert [a.status for a in by_id.values() if a.unique_id != RAW] == ["analysed"] * 3
    assert by_id["model.p.flat"].columns == ["id", "a", "b"]
    assert by_id["model.p.deep"].columns == ["c", "a"]


def test_they_are_kept_with_what_is_kept_of_a_query(tmp_path: Path) -> None:
    for _ in range(2):
        with Cache(tmp_path) as cache:
            analysis = analyse(events(), cache=cache)
        assert analysis.nodes["model.p.deep"].columns == ["c", "a"]
    other = events()
    other.catalog[RAW][1].type = "STRUCT(a INTEGER, b STRUCT(d VARCHAR))"
    with Cache(tmp_path) as cache:
        assert analyse(other, cache=cache).nodes["model.p.deep"].columns == ["d", "a"]


def test_a_field_is_what_it_is_made_of() -> None:
    assert names(events(), events()) == []
    assert names(events(), events(payload="coalesce(payload, null)")) == ["c"]


def renamed(made: str, reads: str) -> Project:
    return project(
        node(RAW, columns=["id", "v", "w"]),
        node("model.p.made", made, RAW),
        node("model.p.reads", f"select {reads} as x from s.made", "model.p.made"),
        check("c", "select * from s.reads where x is null", "model.p.reads"),
        catalog={RAW: ["id", "v", "w"]},
        adapter="duckdb",
    )


MADE = "select sum(v), sum(w), count(*) from s.events"
JOINED = "select a.id, b.id, a.v, b.v from s.events as a join (select id, {0} as v from s.events) as b using (id)"


@pytest.mark.parametrize(
    ("made", "edited", "reads", "moves"),
    [
        (JOINED.format("v"), JOINED.format("w"), "v_1", True),
        (JOINED.format("v"), JOINED.format("w"), "v", False),
        (MADE, MADE.replace("sum(v)", "sum(v + 1)"), '"sum(v)"', True),
        (MADE, MADE.replace("sum(v)", "max(v)"), '"sum(w)"', False),
        (MADE, MADE.replace("sum(w)", "max(w)"), '"count_star()"', False),
    ],
)
def test_an_engines_own_name_is_found(made: str, edited: str, reads: str, moves: bool) -> None:
    base, head = renamed(made, reads), renamed(edited, reads)
    node_analysis = analyse(base).nodes["model.p.reads"]
    assert (node_analysis.status, node_analysis.reason) == ("analysed", None)
    assert names(base, head) == (["c"] if moves else [])


# --- names of relations and their columns, as each engine compares them ---------------------------


def placed(unique_id: str, relation: str, sql: str | None = None, *parents: str) -> Node:
    """A node in the database, the schema and under the name that its relation's name has."""
    *_, database, schema, name = ("", *relation.split("."))
    made = node(unique_id, sql, *parents)
    named = {"identifier": name} if made.resource_type == "source" else {"alias": name}
    return replace(made, database=database or None, schema=schema, relation_name=relation, **named)


@pytest.mark.parametrize("adapter", ["snowflake", "oracle"])
def test_one_name_in_quotes_does_not_hide_the_others(adapter: str) -> None:
    def side(amount: str) -> Project:
        return project(
            placed(RAW, "DB.RAW.EVENTS"),
            placed(
                "model.p.stg",
                "DB.S.STG",
                f'select "Id", {amount} as amount from db.raw.events',
                RAW,
            ),
            placed("model.p.mart", "DB.S.MART", "select amount from db.s.stg", "model.p.stg"),
            check("t", "select amount from db.s.mart", "model.p.mart"),
            catalog={RAW: ["Id", "AMOUNT"], "model.p.stg": ["Id", "AMOUNT"]},
            adapter=adapter,
        )

    analysed = analyse(side("amount")).nodes["model.p.mart"]
    assert (analysed.status, analysed.columns) == ("analysed", ["amount"])
    assert names(side("amount"), side("amount + 1")) == ["t"]


@pytest.mark.parametrize("adapter", ["snowflake", "oracle"])
def test_a_seed_has_the_names_that_its_adapter_makes(adapter: str, tmp_path: Path) -> None:
    text = "id,Name\n1,a\n"
    (tmp_path / "things.csv").write_text(text, encoding="utf-8")
    checksum = {"name": "sha256", "checksum": hashlib.sha256(text.strip().encode()).hexdigest()}
    for quoted, status in ((None, "analysed"), (True, "opaque")):
        seed = replace(
            placed("seed.p.things", "DB.S.THINGS"),
            root_path=str(tmp_path),
            original_file_path="things.csv",
            checksum=checksum,
            config={"materialized": "seed", "quote_columns": quoted},
        )
        model = placed("model.p.m", "DB.S.M", "select id, name from db.s.things", "seed.p.things")
        assert analyse(project(seed, model, adapter=adapter)).nodes["model.p.m"].status == status


@pytest.mark.parametrize("adapter", ["snowflake", "duckdb", "postgres", "databricks", "bigquery"])
def test_relations_of_two_databases_are_two(adapter: str) -> None:
    upper = str.upper if adapter == "snowflake" else str

    def side(rows: str) -> Project:
        return project(
            placed("source.p.raw.t", upper("db.raw.t")),
            placed("model.p.t", upper("an.raw.t"), f"select 1 as id {rows}"),
            placed(
                "model.p.of_source",
                upper("an.s.of_source"),
                "select id from db.raw.t",
                "source.p.raw.t",
            ),
            placed(
                "model.p.of_model", upper("an.s.of_model"), "select id from an.raw.t", "model.p.t"
            ),
            check("source", "select id from an.s.of_source", "model.p.of_source"),
            check("model", "select id from an.s.of_model", "model.p.of_model"),
            adapter=adapter,
        )

    assert names(side(""), side("where 1 = 0")) == ["model"]


def test_a_name_without_a_database_is_that_of_the_project() -> None:
    def side(rows: str) -> Project:
        return project(
            placed("model.p.t", "an.raw.t", f"select 1 as id {rows}"),
            placed("model.p.m", "an.s.m", "select id from raw.t", "model.p.t"),
            check("t", "select id from an.s.m", "model.p.m"),
            adapter="duckdb",
        )

    assert names(side(""), side("where 1 = 0")) == ["t"]


def test_a_name_with_a_database_is_that_of_a_relation_without() -> None:
    def side(rows: str) -> Project:
        return project(
            placed("model.p.t", "raw.t", f"select 1 as id {rows}"),
            placed("model.p.m", "raw.m", "select id from spark_catalog.raw.t", "model.p.t"),
            check("t", "select id from raw.m", "model.p.m"),
            adapter="spark",
        )

    assert names(side(""), side("where 1 = 0")) == ["t"]


def test_a_declared_column_is_the_one_that_is_read() -> None:
    source = placed(RAW, "DB.RAW.EVENTS")
    declared = node(RAW, columns=["order_id", "Id"]).columns
    declared["Id"] = replace(declared["Id"], quote=True)
    source = replace(source, columns=declared)
    model = placed("model.p.m", "DB.S.M", 'select order_id, "Id" as i from db.raw.events', RAW)
    analysis = analyse(project(source, model, adapter="snowflake"))
    assert analysis.nodes[RAW].columns == ["order_id", "Id"]


@pytest.mark.parametrize("adapter", ["duckdb", "sqlite", "spark"])
def test_only_some_engines_fold_more_than_ascii(adapter: str) -> None:
    model = node("model.p.m", "select É as a from s.events", RAW)
    analysed = analyse(project(node(RAW), model, catalog={RAW: ["é", "ID"]}, adapter=adapter))
    told_apart = adapter != "spark"
    assert (analysed.nodes["model.p.m"].status == "broken") == told_apart
    if adapter == "spark":
        return
    connect = duckdb.connect if adapter == "duckdb" else sqlite3.connect
    connection: Any = connect(":memory:")
    connection.execute('create table t (É int, é int, "ID" int)')
    connection.execute("insert into t values (1, 2, 3)")
    assert connection.execute('select "É", "é", id from t').fetchall() == [(1, 2, 3)]


IN_BETWEEN = (
    "select t1.id from s.o as t1 where not exists (select 1 from s.i as a where t1.en = 'x')"
)


@pytest.mark.parametrize("adapter", ["duckdb", "spark", "bigquery"])
def test_a_struct_of_the_inner_query_comes_before_a_relation_around_it(adapter: str) -> None:
    structs = {
        "duckdb": "{{'en': {}}}",
        "spark": "named_struct('en', {})",
        "bigquery": "struct({} as en)",
    }

    def side(inner: str, en: str = "en") -> Project:
        return project(
            node(RAW),
            node("model.p.o", f"select id, {en} as en from s.events", RAW),
            node("model.p.i", f"select {inner} as t1, 1 as n from s.events", RAW),
            node("model.p.m", IN_BETWEEN, "model.p.o", "model.p.i"),
            check("t", "select id from s.m", "model.p.m"),
            catalog={RAW: ["id", "en"]},
            adapter=adapter,
        )

    inner = structs[adapter]
    assert names(side(inner.format("'x'")), side(inner.format("'y'"))) == ["t"]
    # If it is a struct for certain, the relation around is not meant; else both count.
    of_outer = names(side(inner.format("'x'")), side(inner.format("'x'"), "en || '1'"))
    assert of_outer == (["t"] if adapter == "bigquery" else [])
    assert names(side("id"), side("id", "en || '1'")) == ["t"]


def test_duckdb_takes_the_struct_of_the_inner_query() -> None:
    connection = duckdb.connect()
    connection.execute("create schema s; create table s.o as select 1 as id, 'o' as en")
    for inner, rows in (("{'en': 'x'}", []), ("{'en': 'y'}", [(1,)]), ("5", [(1,)])):
        connection.execute(f"create or replace table s.i as select {inner} as t1")
        assert connection.execute(IN_BETWEEN).fetchall() == rows


@pytest.mark.spark
def test_spark_takes_the_struct_of_the_inner_query(spark: SparkSession) -> None:
    spark.sql("select 1 as id, 'o' as en").createOrReplaceTempView("o")
    try:
        for inner, rows in (("named_struct('en', 'x')", 0), ("named_struct('en', 'y')", 1)):
            spark.sql(f"select {inner} as t1").createOrReplaceTempView("i")
            assert spark.sql(IN_BETWEEN.replace("s.", "")).count() == rows
    finally:
        for view in ("o", "i"):
            spark.catalog.dropTempView(view)
