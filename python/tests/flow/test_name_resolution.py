"""What a bare name means in each place: the table of `flow.alias_resolution`, executed and followed."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import duckdb
import pytest
from flow.name_rules import ALIAS_ONLY, CONSTANTS, DATA, POSITIONS, RULES, Rule, expected, meaning
from linked_tables import table_relation

from dbt_ripple.flow.alias_resolution import (
    ALIAS_FIRST,
    EITHER,
    KEY_FIRST,
    PLACES,
    RESOLUTION,
    SOURCE,
    SOURCE_FIRST,
    resolution,
)
from dbt_ripple.flow.link import Linked, link
from dbt_ripple.flow.lower import lower
from dbt_ripple.flow.relation import Relation

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

COLUMNS = {name: [c.split()[0] for c in columns.split(", ")] for name, (columns, _) in DATA.items()}


def table(key: str, _: str) -> Relation:
    return table_relation(key, COLUMNS[key])


def linked(sql: str, dialect: str) -> Linked:
    lowered = lower(sql, dialect)
    assert lowered.rel is not None, lowered.reason
    return link(lowered, table, dialect)


def fingerprints(sql: str, dialect: str) -> tuple[bytes, list[bytes]]:
    relation = linked(sql, dialect).relation
    return relation.rows.fp, relation.fps


DIALECTS = [*RESOLUTION, "clickhouse"]


@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize("rule", RULES, ids=lambda r: r.title)
def test_the_linker_follows_the_table(rule: Rule, dialect: str) -> None:
    if lower(rule.sql.replace("{}", rule.name), dialect).rel is None:
        pytest.skip("not of this dialect's syntax")
    says = resolution(dialect)[rule.place]
    means = expected(rule, says)
    linked_query = linked(rule.sql.replace("{}", rule.name), dialect)
    bare = linked_query.relation.rows.fp, linked_query.relation.fps
    alias = fingerprints(rule.sql.replace("{}", rule.alias), dialect)
    assert bool(linked_query.missing) == (means == "missing")
    if rule.kind == ALIAS_ONLY:
        assert (bare == alias) == (means == "alias")
        return
    column = fingerprints(rule.sql.replace("{}", "t." + rule.name), dialect)
    assert column != alias
    assert means == {bare == column: "column", bare == alias: "alias"}.get(True, "either")


REFUSED_BY_SPARK = {
    "window, alias only",
    "order by, in a subquery",
    "qualify",
    "qualify, in a window",
    "qualify of groups",
    "qualify, alias only",
    "distinct on",
    "distinct on, alias only",
    "distinct on expression",
    "order by under distinct",  # it is run, but knows no t.k there
    "order by aggregate",
    "order by window",
}
REFUSED_BY_DUCKDB = {"having, in a subquery"}


def agrees(rule: Rule, dialect: str, actual: str, refused: set[str]) -> None:
    says = resolution(dialect)[rule.place]
    means = expected(rule, says)
    if rule.title in refused:
        assert actual in ("refused", "neither")
    else:
        assert actual == ("refused" if means == "missing" else means)


@pytest.fixture(scope="module")
def data() -> Iterator[duckdb.DuckDBPyConnection]:
    with duckdb.connect(":memory:", config={"threads": 1}) as connection:
        for name, (columns, rows) in DATA.items():
            connection.execute(f"create table {name} ({columns})")
            connection.executemany(
                f"insert into {name} values ({', '.join('?' * len(rows[0]))})", rows
            )
        yield connection


@pytest.mark.parametrize("rule", RULES, ids=lambda r: r.title)
def test_duckdb_does_what_the_table_says(rule: Rule, data: duckdb.DuckDBPyConnection) -> None:
    actual = meaning(rule, lambda sql: data.execute(sql).fetchall())
    agrees(rule, "duckdb", actual, REFUSED_BY_DUCKDB)


@pytest.mark.spark
def test_spark_does_what_the_table_says(spark: SparkSession) -> None:
    for name, (columns, rows) in DATA.items():
        spark.createDataFrame(rows, columns).coalesce(1).createOrReplaceTempView(name)
    try:
        for rule in RULES:
            actual = meaning(rule, lambda sql: [tuple(row) for row in spark.sql(sql).collect()])
            agrees(rule, "spark", actual, REFUSED_BY_SPARK)
    finally:
        for name in DATA:
            spark.catalog.dropTempView(name)


@pytest.mark.parametrize(("sql", "same", "other"), POSITIONS)
def test_a_position_is_what_stands_there(
    sql: str, same: str, other: str, data: duckdb.DuckDBPyConnection
) -> None:
    rows, same_rows, other_rows = (
        sorted(data.execute(q).fetchall(), key=repr) for q in (sql, same, other)
    )
    assert rows == same_rows != other_rows
    for dialect in ("duckdb", "spark"):
        assert fingerprints(sql, dialect)[0] != fingerprints(other, dialect)[0]


@pytest.mark.parametrize(("sql", "other"), CONSTANTS)
def test_an_integer_inside_an_expression_is_no_position(
    sql: str, other: str, data: duckdb.DuckDBPyConnection
) -> None:
    assert [row[1] for row in data.execute(sql).fetchall()] == [1, 2, 3]
    assert fingerprints(sql, "duckdb")[0] == fingerprints(other, "duckdb")[0]


def test_no_row_is_settled_by_poor_data(data: duckdb.DuckDBPyConnection) -> None:
    """Each query tells its two meanings apart, wherever DuckDB runs both."""
    for rule in RULES:
        assert meaning(rule, lambda sql: data.execute(sql).fetchall()) != "column and alias"


WORDS = {
    SOURCE: "column",
    SOURCE_FIRST: "column, alias",
    ALIAS_FIRST: "alias, column",
    KEY_FIRST: "key, alias",
    EITHER: "both",
}


def test_the_page_says_what_the_table_says() -> None:
    page = Path(__file__).parents[3] / "docs" / "name-resolution.md"
    rows = [
        [cell.strip() for cell in line.strip("| ").split(" | ")]
        for line in page.read_text().splitlines()
        if line.startswith("| ")
    ]
    head = next(row for row in rows if "duckdb" in row)
    start = rows.index(head) + 2
    cells = [row[1:] for row in rows[start : start + len(PLACES)]]
    assert set(head[1:]) == set(RESOLUTION)
    assert cells == [[WORDS[resolution(d)[p]] for d in head[1:]] for p in PLACES]


A, B = "(select v, k from t) as a", "(select w, k from u2) as b"
MERGED = [
    (f"select * from {A} join {B} using (k)", "v, a.k, w"),
    (f"select * from {A} left join {B} using (k)", "v, a.k, w"),
    (f"select * from {A} right join {B} using (k)", "v, b.k, w"),
    (f"select * from {A} full join {B} using (k)", "v, coalesce(a.k, b.k), w"),
    (f"select * from {A} natural join {B}", "v, a.k, w"),
    (f"select * from {A} natural right join {B}", "v, b.k, w"),
    (f"select * from {A} natural full join {B}", "v, coalesce(a.k, b.k), w"),
    (f"select b.*, a.v from {A} right join {B} using (k)", "w, b.k, v"),
    (f"select k + 1 as n from {A} full join {B} using (k)", "coalesce(a.k, b.k) + 1"),
    (f"select v from {A} full join {B} using (k) where k = 9", ""),
]
"""A join that merges `k`, and its select list with what `k` is spelled out."""


@pytest.mark.parametrize(("sql", "spelled"), MERGED)
def test_a_merged_column_is_what_the_join_makes_it(
    sql: str, spelled: str, data: duckdb.DuckDBPyConnection
) -> None:
    _, _, tail = sql.partition(" from ")
    column, _, _ = sql.removeprefix("select ").partition(" from ")
    other = f"select {spelled or column} from {tail}"
    if not spelled:
        other = other.replace("where k", "where coalesce(a.k, b.k)")
    one, two = data.sql(sql), data.sql(other)
    assert sorted(one.fetchall(), key=repr) == sorted(two.fetchall(), key=repr)
    assert linked(sql, "duckdb").relation.keys == [c.lower() for c in one.columns]
    # Coalesced here, it is a call there: which column it is, and of which side, is what counts.
    if "coalesce" not in other:
        assert fingerprints(sql, "duckdb") == fingerprints(other, "duckdb")


@pytest.mark.spark
def test_merged_columns_come_first_on_spark(spark: SparkSession) -> None:
    for name, (columns, rows) in DATA.items():
        spark.createDataFrame(rows, columns).coalesce(1).createOrReplaceTempView(name)
    try:
        for sql, _ in MERGED:
            assert spark.sql(sql).columns == linked(sql, "spark").relation.names
    finally:
        for name in DATA:
            spark.catalog.dropTempView(name)


def test_behind_a_set_operation_only_names_of_outputs_are_known(
    data: duckdb.DuckDBPyConnection,
) -> None:
    union = "select abs(k) as z, v from t union all select 50 as y, 60 as m order by {}, v limit 3"
    assert linked(union.format("k"), "duckdb").missing == ["k"]
    for dialect in ("duckdb", "spark", "postgres"):
        is_known = linked(union.format("y"), dialect).missing == []
        assert is_known == (dialect == "duckdb")
    rows = [data.execute(union.format(name)).fetchall() for name in ("y", "z")]
    assert rows[0] == rows[1]
    assert fingerprints(union.format("y"), "duckdb") == fingerprints(union.format("z"), "duckdb")


def test_distinct_on_a_position_or_an_alias(data: duckdb.DuckDBPyConnection) -> None:
    sql = "select distinct on ({}) abs(k) as k, 1 as one from t"
    rows = [
        sorted(data.execute(sql.format(key)).fetchall()) for key in ("1", "k", "abs(t.k)", "t.k")
    ]
    assert rows[0] == rows[1] == rows[2] != rows[3]
    fps = [fingerprints(sql.format(key), "duckdb") for key in ("1", "k", "abs(t.k)", "t.k")]
    assert fps[0] == fps[1] == fps[2] != fps[3]


REPEATED = [
    # Of aliases that are repeated, an engine takes one or another.
    (
        "select v as z, -v as z from t qualify z > 0 and row_number() over (order by k) > 0",
        "select v as z, k as z from t qualify z > 0 and row_number() over (order by k) > 0",
    ),
    ("select 3 as y, 3 as y from t where y > 0", "select 3 as y, k as y from t where y > 0"),
    (
        "select g, max(v) as k, min(v) as z from t group by all having k + 0 < 3",
        "select g, max(v) as k, min(v) as k from t group by all having k + 0 < 3",
    ),
    # Behind a set operation DuckDB knows an item by what it reads like, too.
    (
        "select k + k as g, v % 3 as y, v as k from t union all select 3, 4, 5 order by -k limit 3",
        "select k + k as g, -k as y, v as k from t union all select 3, 4, 5 order by -k limit 3",
    ),
    (
        "select v as k, g from t union all select 3, 9 order by v desc limit 2",
        "select v as k, g from t union all select 7, 9 order by v desc limit 2",
    ),
    (
        "select g as y, 1 as g, v from t union all select 3, 4, 5 order by 1 desc, v limit 2",
        "select k + v as y, 1 as g, v from t union all select 3, 4, 5 order by 1 desc, v limit 2",
    ),
]


@pytest.mark.parametrize(("one", "other"), REPEATED)
def test_a_name_that_stands_for_several_items(
    one: str, other: str, data: duckdb.DuckDBPyConnection
) -> None:
    rows = [sorted(data.execute(sql).fetchall(), key=repr) for sql in (one, other)]
    assert rows[0] != rows[1]
    assert fingerprints(one, "duckdb") != fingerprints(other, "duckdb")
    if len(rows[0]) != len(rows[1]):
        assert fingerprints(one, "duckdb")[0] != fingerprints(other, "duckdb")[0]


@pytest.mark.parametrize("dialect", ["duckdb", "spark", "databricks"])
@pytest.mark.parametrize("kind", ["semi", "anti"])
def test_a_name_behind_a_semi_join_is_that_of_a_later_relation(kind: str, dialect: str) -> None:
    """DuckDB and Spark do not see what a SEMI or ANTI join looked into."""
    data = "with b as (select k, w from t), a as (select k, v from t) "
    query = data + f"select a.k, b.w from a {kind} join b on a.k = b.k join ({{}}) b on a.k = b.k"
    one, other = (query.format(f"select k, {w} as w from t") for w in ("v", "w + v"))
    plain = query.format("select k, v as w from t").replace(f"{kind} join b on a.k = b.k ", "")

    def of(sql: str) -> Linked:
        lowered = lower(sql, dialect)
        assert lowered.rel is not None, lowered.reason
        return link(lowered, small_table, dialect)

    assert of(one).missing == []
    assert of(one).relation.fps[1] != of(other).relation.fps[1]
    assert of(one).relation.columns[1].deps.keys() == of(plain).relation.columns[1].deps.keys()
    # Nothing else has the name, and both engines refuse it.
    alone = data + f"select a.k, b.w from a {kind} join b on a.k = b.k"
    assert of(alone).missing == ["b.w"]
    if dialect == "duckdb":
        with duckdb.connect() as connection:
            connection.execute("create table t as select 1 as k, 2 as v, 3 as w")
            rows = {sql: connection.execute(sql).fetchall() for sql in (one, other)}
            assert rows == (
                {one: [(1, 2)], other: [(1, 5)]} if kind == "semi" else {one: [], other: []}
            )
            with pytest.raises(duckdb.BinderException):
                connection.execute(alone)


def small_table(key: str, _: str) -> Relation:
    return table_relation(key, ["k", "v", "w"])


@pytest.mark.parametrize("dialect", ["duckdb", "postgres", "snowflake", "clickhouse"])
def test_a_name_that_two_relations_have_is_not_the_first_of_them(dialect: str) -> None:
    sql = "with b as (select k, w from t) select b.w from b cross join (select v as w from t) b"
    lowered = lower(sql, dialect)
    assert lowered.rel is None
    assert "the name of two relations" in str(lowered.reason)


@pytest.mark.parametrize("dialect", ["duckdb", "spark"])
def test_a_column_that_is_there_twice_is_not_asked_for_where_an_alias_is_meant(
    dialect: str,
) -> None:
    def of(sql: str) -> Linked:
        lowered = lower(sql, dialect)
        assert lowered.rel is not None, lowered.reason
        return link(lowered, small_table, dialect)

    assert of("select v as w, count(*) from a as t (w, v, w) group by v having w > 1").missing == []
    twice = of("select w, count(*) from a as t (w, v, w) group by w having w > 1")
    assert twice.missing == ["w is ambiguous"]
