"""Constructs of single dialects: a change of any part of one moves the fingerprints.

What they read is in `tests/fixtures/lineage`.
"""

from __future__ import annotations

import duckdb
import pytest
from linked_tables import table_relation

from dbt_ripple.flow.link import link
from dbt_ripple.flow.lower import lower
from dbt_ripple.flow.relation import Relation


def table(key: str, _: str) -> Relation:
    return table_relation(key, ["a", "b", "c"])


def meaning(sql: str, dialect: str) -> tuple[bytes, list[bytes], list[bytes]]:
    lowered = lower(sql, dialect)
    assert lowered.rel is not None, lowered.reason
    relation = link(lowered, table, dialect).relation
    return relation.rows.fp, relation.fps, [unlisted.fp() for unlisted in relation.unlisted]


MATCH = (
    "select * from t match_recognize (partition by a order by {} measures last(p.{}) as m "
    "one row per match after match skip to {} p pattern ({}) define p as p.c > {})"
)
DIFFERENT = [
    ("tsql", "select * from t pivot (sum(a) for b in ([1], [{}])) as p", ["2", "3"]),
    ("clickhouse", "with a + {} as n select n as x from t", ["1", "2"]),
    ("clickhouse", "with {} as n select (select max(c + n) from t) as x from u", ["1", "2"]),
    ("clickhouse", "with 1 as n, w as (select {} as n) select n as x from w", ["1", "2"]),
    ("clickhouse", "select b from t {} a", ["array join", "left array join"]),
    ("clickhouse", "select a from t{}", ["", " array join a"]),
    ("clickhouse", "select x from t array join {} as x", ["a", "b", "arrayReverse(a)"]),
    ("redshift", "select {} from t, t.a as x at y", ["x as z", "y as z"]),
    ("redshift", "select x from t, {} as x at y", ["t.a", "t.b", "unpivot t.a"]),
    ("redshift", "select * exclude ({}) from t", ["a", "b"]),
    ("bigquery", "select struct({} as x, b as y).{} as z from t", ["a x", "b x"]),
    ("bigquery", "select any_value(a having {} {}) as x from t", ["max b", "min b", "max c"]),
    ("bigquery", "from t |> rename {} as x |> select x", ["a", "b"]),
    ("bigquery", "select a, _table_suffix as s from {}", ["t", "u"]),
    ("bigquery", "select a, {} as s from t", ["_partitiontime", "_partitiondate"]),
    (
        "bigquery",
        "select a, b from t {} union all by name select b, c from u",
        ["", "inner", "left outer", "full outer"],
    ),
    (
        "bigquery",
        "select r.{} from (select array_agg({} order by b {} limit 1)[offset(0)] as r from t as x)",
        ["a x asc", "b x asc", "a x desc"],
    ),
    ("snowflake", "select * from t pivot (sum(a) for b in ({}))", ["any", "select a from u"]),
    ("snowflake", MATCH, ["b b last p+ 1", "b b last p* 1", "c b last p+ 1"]),
    ("snowflake", MATCH, ["b b last p+ 1", "b c last p+ 1", "b b last p+ 2", "b b first p+ 1"]),
    ("trino", "select a = {} as x from t", ["0x", "0x0a", "0x0b"]),
    ("spark", "select x from t lateral view {}(a) v x", ["explode", "inline"]),
    ("postgres", "select n from t, f({}) with ordinality as e(v, n)", ["t.a", "t.b"]),
]


@pytest.mark.parametrize(
    ("dialect", "sql", "parts"), DIFFERENT, ids=[f"{d}: {sql[:60]}" for d, sql, _ in DIFFERENT]
)
def test_each_part_counts(dialect: str, sql: str, parts: list[str]) -> None:
    holes = sql.count("{}")
    queries = [sql.format(*(part.split() if holes > 1 else [part])) for part in parts]
    assert len({str(meaning(query, dialect)) for query in queries}) == len(parts)


def test_a_field_that_is_not_read_does_not_count() -> None:
    one, other = (f"select struct(a as x, {e} as y).x as z from t" for e in ("b", "c"))
    assert meaning(one, "bigquery") == meaning(other, "bigquery")


@pytest.mark.parametrize("twice", ["struct(a as x, {} as x)", "struct(a as x, {} as y, b + 1)"])
def test_a_field_whose_place_is_not_sure_is_the_whole_struct(twice: str) -> None:
    one, other = (f"select {twice.format(e)}.x as z from t" for e in ("b", "c"))
    assert meaning(one, "bigquery") != meaning(other, "bigquery")


def test_duckdb_has_no_hexadecimal_literals() -> None:
    with duckdb.connect() as connection:
        assert connection.execute("select 0xFF").description[0][0] == "xFF"
    assert lower("select 0xFF", "duckdb").rel.keys == ["xff"]


@pytest.mark.parametrize("name", ['"0x"', "`0x`"])
def test_a_quoted_name_is_no_hexadecimal_literal(name: str) -> None:
    dialect = "trino" if name[0] == '"' else "bigquery"
    lowered = lower(f"select {name} as x from t", dialect)
    assert link(lowered, table, dialect).missing == ["0x"]
