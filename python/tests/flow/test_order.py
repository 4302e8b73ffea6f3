"""An ORDER BY is in what can see it, and nowhere else: executed with the rows one way and the other."""

from __future__ import annotations

from collections.abc import Iterator

import duckdb
import pytest
from linked_tables import table_relation

from dbt_ripple.flow.link import link
from dbt_ripple.flow.lower import lower
from dbt_ripple.flow.relation import Relation

TABLES = {"t": ["id", "k", "v", "l"], "r": ["id", "w"]}
T = "(select * from t order by v {way})"


def table(key: str, _: str) -> Relation:
    return table_relation(key, TABLES[key])


def fingerprints(sql: str, dialect: str = "duckdb") -> tuple[bytes, list[bytes]]:
    """N and every V of a query."""
    lowered = lower(sql, dialect)
    assert lowered.rel is not None, lowered.reason
    linked = link(lowered, table, dialect)
    assert not linked.missing
    return linked.relation.rows.fp, linked.relation.fps


@pytest.fixture(scope="module")
def data() -> Iterator[duckdb.DuckDBPyConnection]:
    with duckdb.connect(":memory:", config={"threads": 1}) as connection:
        connection.execute("create table t (id integer, k integer, v integer, l integer[])")
        connection.execute(
            "insert into t values (1, 1, 5, [10, 20]), (2, 1, 4, [20, 30]), (3, 2, 3, [1]), "
            "(4, 2, 2, [40, 40, 40]), (5, 3, 1, null)"
        )
        connection.execute("create table r (id integer, w integer)")
        connection.execute("insert into r values (5, 50), (4, 40), (3, 30), (2, 20), (1, 10)")
        yield connection


SEEN = [
    f"select id from {T} limit 2",
    f"select id from {T} limit 2 offset 1",
    # Rows that are equal to an outer ORDER BY.
    f"select id from {T} order by k limit 1",
    # Through what keeps the order.
    f"select id from {T} as o where k < 3 limit 1",
    f"select id from (select id, v from {T} union all select id, w from r) limit 2",
    f"select id from ({T} union all by name select id, w from r) limit 1",
    f"select id, u from (select id, unnest(l) as u from {T}) limit 2",
    f"select list(u) as us from (select unnest(l) as u from {T})",
    f"select k from (select distinct k from {T}) limit 1",
    f"select id from (select id from {T} intersect select id from r) limit 1",
    f"select list(o.id) as ids from r left join {T} as o on o.k >= 1",
    f"select list(id) as ids from {T} unpivot (x for n in (k, v))",
    f"with recursive c as (select id from {T} union all select id + 9 from c where id < 9) "
    "select list(id) as ids from c",
    # Aggregates and windows.
    f"select list(id) as ids from {T}",
    f"select list(id) filter (where k = 1) as ids from {T}",
    f"select string_agg(id::varchar, ',') as ids from {T}",
    f"select k, first(id) as id from {T} group by k",
    f"select any_value(id) as id from {T}",
    f"select arg_max(id, k > 0) as id from {T}",
    f"select max(case when v > 3 then -0.0::double else 0.0::double end) as x from {T}",
    f"select id, row_number() over () as n from {T}",
    f"select id, row_number() over (partition by k) as n from {T}",
    f"select id, lag(id) over () as n from {T}",
    f"select * from (select 1 as g, k, id from {T}) pivot (first(id) for k in (1, 2))",
    f"select array(select id from {T}) as ids",
    "select array(select id from t order by v {way}) as ids",
    "select (select id from t order by v {way} limit 1) as id",
    # Which rows meet, or are taken.
    f"select * from {T} as o positional join r",
    f"select id from {T} using sample 2 rows (reservoir, 1)",
    f"select distinct on (k) id, k from {T}",
    "select distinct on (k) id, k from t order by k, v {way}",
    # Windows leave the rows as they sorted them.
    "select id, n from (select id, row_number() over (order by v {way}) as n from t) limit 2",
    "select id, n > 0 as p from (select id, k, row_number() over (order by v {way}) as n from t) "
    "qualify row_number() over (partition by k order by k) = 1",
    "select id from (select id from t qualify row_number() over (order by v {way}) < 9) limit 2",
]
UNSEEN = [
    "select * from t order by v {way}",
    f"select id, k from {T} where k > 1",
    f"select k, count(*) as n, count(v) as m from {T} group by k",
    f"select distinct k from {T}",
    f"select id from {T} union all select id from r",
    f"select id from r where id in (select id from {T})",
    f"select o.id, r.w from {T} as o join r on o.id = r.id",
    f"select id from r where exists (select 1 from {T} as o where o.id = r.id)",
    f"select r.id from r semi join {T} as o on o.id = r.id limit 5",
]


def ways(sql: str) -> tuple[str, str]:
    return sql.format(way="asc"), sql.format(way="desc")


def bag(connection: duckdb.DuckDBPyConnection, sql: str) -> list[str]:
    return sorted(map(repr, connection.execute(sql).fetchall()))


@pytest.mark.parametrize("sql", SEEN)
def test_an_order_that_something_sees_counts(sql: str, data: duckdb.DuckDBPyConnection) -> None:
    one, other = ways(sql)
    assert bag(data, one) != bag(data, other)
    assert fingerprints(one) != fingerprints(other)


@pytest.mark.parametrize("sql", UNSEEN)
def test_an_order_that_nobody_sees_does_not(sql: str, data: duckdb.DuckDBPyConnection) -> None:
    one, other = ways(sql)
    assert bag(data, one) == bag(data, other)
    assert fingerprints(one) == fingerprints(other)


BY_AN_ITEM = [
    ("select id, v from t union all by name select id, l as m from t", "l", "m"),
    ("select id, v as z from t union all by name select id, k as y from t", "k", "y"),
    ("select id, v as z from t union all by name select id, v + k as y from t", "v + k", "y"),
    ("select id, v as z from t union all select id, k as y from t", "k", "2"),
]


@pytest.mark.parametrize(("sql", "item", "output"), BY_AN_ITEM)
def test_behind_a_union_an_item_of_a_branch_is_its_output(
    sql: str, item: str, output: str, data: duckdb.DuckDBPyConnection
) -> None:
    texts = [f"{sql} order by {by}, 1 limit 4" for by in (item, output)]
    one, other = (data.execute(text).fetchall() for text in texts)
    assert one == other
    assert fingerprints(texts[0]) == fingerprints(texts[1])
