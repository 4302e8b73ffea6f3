"""Positions of GROUP BY count the columns of a `*`, one by one: executed, and told by the fingerprints."""

from __future__ import annotations

import duckdb
import pytest
from linked_tables import table_relation

from dbt_ripple.flow.link import Linked, link
from dbt_ripple.flow.lower import lower
from dbt_ripple.flow.relation import Relation

NAMES = ["a", "b", "c"]
ROWS_OF_T = "(values (1, 1, 1), (1, 2, 1), (1, 3, 2), (2, 2, 2)) as q(a, b, c)"


def linked(sql: str, dialect: str = "duckdb") -> Linked:
    def table(key: str, _: str) -> Relation:
        return table_relation(key, NAMES)

    lowered = lower(sql, dialect)
    assert lowered.rel is not None, lowered.reason
    return link(lowered, table, dialect)


# The CTE's second column is another one: where it is a key, the groups are others.
GROUPED = [
    "select *, count(*) as n from x group by 1, 2",
    "select *, count(*) as n from x group by 2, 1",
    "select *, 7 as seven from x group by 1, 2",
    "select 7 as seven, *, count(*) as n from x group by 3, 2",
    "select x.*, count(*) as n from x group by 1, 2",
    "select *, count(*) as n from x group by rollup (1, 2)",
    "select * replace (a as a), count(*) as n from x group by 1, 2",
]


@pytest.mark.parametrize("sql", GROUPED)
def test_a_key_behind_a_star_is_the_column_that_stands_there(sql: str) -> None:
    queries = [f"with x as (select a, {b} as b from t) {sql}" for b in ("b", "b // 2")]
    counts = []
    for query in queries:
        executed = f"create temp table t as select * from {ROWS_OF_T}"
        with duckdb.connect() as connection:
            connection.execute(executed)
            counts.append(len(connection.execute(query).fetchall()))
    assert counts[0] != counts[1]
    before, after = (linked(query) for query in queries)
    assert not before.missing and not after.missing
    assert before.relation.rows.fp != after.relation.rows.fp


@pytest.mark.parametrize("dialect", ["duckdb", "spark", "postgres"])
def test_what_is_no_key_does_not_move_the_groups(dialect: str) -> None:
    sql = "with x as (select a, c from t) select *, max({b}) over () as m from x, t group by 1, 2"
    one, other = (linked(sql.format(b=b), dialect) for b in ("t.b", "t.c"))
    assert one.relation.rows.fp == other.relation.rows.fp


def test_a_position_behind_all_columns_of_a_star_is_not_there() -> None:
    assert linked("select *, count(*) as n from t group by 1, 2, 3").missing == []
    assert linked("select *, a as z from t group by 5").missing == ["GROUP BY 5"]
