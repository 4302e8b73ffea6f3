"""The hash of a bag of rows, executed on DuckDB: equal where the bags are, and nowhere else."""

from __future__ import annotations

from typing import Any

import duckdb
import pytest

from dbt_ripple.selection.relation_hashes import (
    HashedColumn,
    NotHashed,
    engines,
    hash_sql,
    hashes_of,
    hashes_sql,
    row_sql,
)


def hashed(rows: str, *, in_order: bool = False) -> tuple[Any, ...]:
    with duckdb.connect() as connection:
        connection.execute(f"create table t as {rows}")
        described = connection.execute("describe t").fetchall()
        columns = [HashedColumn(name, type_) for name, type_, *_ in described]
        sql = hash_sql("duckdb", "t", columns, in_order=in_order)
        return connection.execute(sql).fetchall()[0]


OTHERS = {
    "another value": ("select 1 as a", "select 2 as a"),
    "NULL and the empty text": ("select null::varchar as a", "select '' as a"),
    "NULL and its word": ("select null::varchar as a", "select 'n' as a"),
    "a NULL in another column": ("select null::int as a, 1 as b", "select 1 as a, null::int as b"),
    "a border moved": ("select 'ab' as a, 'c' as b", "select 'a' as a, 'bc' as b"),
    "a text like two": ("select '1:a1:b' as a, '' as b", "select '1:a' as a, '1:b' as b"),
    "a row more": ("select 1 as a", "select 1 as a union all select 1"),
    "no rows and none": ("select 1 as a where false", "select 1 as a"),
    "other duplicates": (
        "from (values (1), (1), (2)) t(a)",
        "from (values (1), (2), (2)) t(a)",
    ),
    "values swapped between rows": (
        "from (values (1, 'x'), (2, 'y')) t(a, b)",
        "from (values (1, 'y'), (2, 'x')) t(a, b)",
    ),
    "the sign of zero": ("select 0.0::double as a", "select -0.0::double as a"),
    "the last digit": ("select 0.1::double + 0.2::double as a", "select 0.3::double as a"),
    "not a number": ("select 'nan'::double as a", "select null::double as a"),
    "a microsecond": (
        "select timestamp '2026-01-01 00:00:00.000001' as a",
        "select timestamp '2026-01-01' as a",
    ),
    "bytes": ("select '\\x00'::blob as a", "select '\\x01'::blob as a"),
}


@pytest.mark.parametrize("pair", OTHERS.values(), ids=OTHERS)
def test_other_bags_hash_otherwise(pair: tuple[str, str]) -> None:
    one, other = map(hashed, pair)
    assert one != other
    assert hashed(pair[0]) == one


@pytest.mark.parametrize("where", ["true", "false"])
def test_one_scan_gives_the_hashes_of_several_sets_of_columns(where: str) -> None:
    a, b = HashedColumn("a", "INTEGER"), HashedColumn("b", "VARCHAR")
    asked = [([a], False), ([a, b], False), ([], False), ([b], True), ([a], False)]
    rows = [row_sql("duckdb", columns, in_order=in_order) for columns, in_order in asked]
    with duckdb.connect() as connection:
        values = f"from (values (1, 'x'), (1, null), (null, 'x')) t(a, b) where {where}"
        connection.execute(f"create table t as {values}")
        found_rows = connection.execute(hashes_sql("duckdb", "t", rows)).fetchall()[0]
        hashes = hashes_of("duckdb", rows, found_rows)
        for row, (columns, in_order) in zip(rows, asked, strict=True):
            alone = connection.execute(hash_sql("duckdb", "t", columns, in_order=in_order))
            assert hashes[row] == alone.fetchall()[0]
    assert len(found_rows) == 7


def test_the_order_of_rows_counts_where_it_is_asked_for() -> None:
    pair = ("from (values (1), (2), (2)) t(a)", "from (values (2), (1), (2)) t(a)")
    assert hashed(pair[0]) == hashed(pair[1])
    assert hashed(pair[0], in_order=True) != hashed(pair[1], in_order=True)


def test_gaps_between_rows_are_no_order() -> None:
    with duckdb.connect() as connection:
        connection.execute("create table t as select range as a from range(5)")
        connection.execute("delete from t where a = 2")
        connection.execute("create table u as from t")
        rows = [
            connection.execute(
                hash_sql("duckdb", name, [HashedColumn("a", "BIGINT")], in_order=True)
            ).fetchall()
            for name in ("t", "u")
        ]
    assert rows[0] == rows[1]


@pytest.mark.parametrize(
    "type_", ["INTEGER[]", "STRUCT(a DOUBLE)", "MAP(INTEGER, INTEGER)", "JSON"]
)
def test_what_has_no_exact_text_is_not_hashed(type_: str) -> None:
    with pytest.raises(NotHashed, match="no exact hash of c"):
        hash_sql("duckdb", "t", [HashedColumn("a", "INTEGER"), HashedColumn("c", type_)])


def test_engines_that_round_floats_do_not_hash_them() -> None:
    for adapter, type_ in (
        ("snowflake", "FLOAT"),
        ("bigquery", "FLOAT64"),
        ("spark", "map<int,int>"),
    ):
        with pytest.raises(NotHashed):
            hash_sql(adapter, "t", [HashedColumn("c", type_)])
    for adapter in engines():
        assert hash_sql(adapter, "t", []) == "select count(*) from t"
        if adapter != "duckdb":
            with pytest.raises(NotHashed, match="no order"):
                hash_sql(adapter, "t", [], in_order=True)
