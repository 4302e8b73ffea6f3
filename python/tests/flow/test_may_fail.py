"""Which expressions may fail: each that does is executed, and each that is called safe."""

from __future__ import annotations

from collections.abc import Iterator

import duckdb
import pytest

from dbt_ripple.flow.may_fail import Evaluated, may_fail
from dbt_ripple.flow.reading.reader import parse_statement
from dbt_ripple.flow.varying_columns import EVERYTHING


@pytest.fixture(scope="module")
def data() -> Iterator[duckdb.DuckDBPyConnection]:
    with duckdb.connect(":memory:") as connection:
        connection.execute("create table a (x integer, s varchar, d date, p boolean)")
        connection.execute(
            "insert into a values (0, 'u', '2024-01-02', true), (-1, '', null, null),"
            " (null, null, '1999-12-31', false), (2147483, 'ß', '2024-02-29', true)"
        )
        yield connection


def of(expression: str, dialect: str = "duckdb") -> bool:
    (shown,) = parse_statement(f"select {expression} as v from a", dialect).selects
    return may_fail(shown, dialect)


@pytest.mark.parametrize(
    "expression",
    [
        *("s::int", "cast(s as date)", "coalesce(s::int, 1)", "case when p then s::int end"),
        *("x // 0", "x % 0", "mod(x, 0)", "strptime(s, '%Y')", "error(s)", "(select x from a)"),
        *("x + (select x from a)", "sum(s::int)", "upper(s)::int > 1 and p"),
    ],
)
def test_what_fails_may_fail(expression: str, data: duckdb.DuckDBPyConnection) -> None:
    with pytest.raises(duckdb.Error):
        data.execute(f"select {expression} as v from a").fetchall()
    assert of(expression)


@pytest.mark.parametrize(
    "expression",
    [
        *("x + 1", "x / 0", "d is null", "try_cast(s as int)", "x::text", "s::varchar"),
        *("'1'::int", "null::int", "coalesce(x, 1)", "case when x > 1 then s end", "if(p, x, 1)"),
        *("nullif(x, 0)", "lower(upper(s))", "trim(s)", "length(s)", "concat(s, x)", "left(s, -3)"),
        *("right(s, 9)", "replace(s, 'u', '')", "substring(s, 9, 1)", "abs(x)", "greatest(x, 1)"),
        *("year(d)", "date_trunc('month', d)", "starts_with(s, 'u')", "round(x, 1)", "not p or p"),
        *("x in (select x from a)", "exists (select s from a)", "sum(x)", "count(*)", "max(s)"),
        *("row_number() over (order by x)", "lag(x) over (order by s)", "x > 1 and s is null"),
    ],
)
def test_what_is_called_safe_does_not_fail(
    expression: str, data: duckdb.DuckDBPyConnection
) -> None:
    data.execute(f"select {expression} as v from a").fetchall()
    assert not of(expression)


def test_dialects_fail_of_their_own() -> None:
    for dialect in ("duckdb", "hive", "mysql", "sqlite", "spark2"):
        assert not of("x / 2", dialect), dialect
    for dialect in ("postgres", "spark", "snowflake", "bigquery", "redshift", "trino"):
        assert of("x / 2", dialect), dialect
    for dialect in ("hive", "spark2"):
        assert not of("cast(s as int)", dialect), dialect
    for dialect in ("spark", "databricks", "postgres", "snowflake"):
        assert of("cast(s as int)", dialect), dialect


@pytest.mark.parametrize(
    ("sql", "columns"),
    [
        ("select x, s::int as V, x + 1 as w, x + 1 > 2 as b, 1 + 1 as c from a", {"v", "w", "b"}),
        ("select v, w from (select s::int as v, x as w from a) as o", {"v"}),
        ("select x from a where s = 'u'", set()),
        ("select x from", {EVERYTHING}),
    ],
)
def test_the_columns_that_may_fail(sql: str, columns: set[str]) -> None:
    assert Evaluated(sql, "duckdb").may_fail() == columns


FORCED = "with c as {} (select k, s::int as n from t) select {} from {}"


@pytest.mark.parametrize(
    ("sql", "dialect", "forced"),
    [
        (FORCED.format("materialized", "k, n", "c"), "duckdb", True),
        (FORCED.format("", "k, n", "c"), "duckdb", False),
        (FORCED.format("", "a.k, b.n", "c as a join c as b on a.k = b.k"), "postgres", True),
        (FORCED.format("", "a.k, b.n", "c as a join c as b on a.k = b.k"), "duckdb", False),
        (FORCED.format("", "a.k, b.n", "c as a join t as b on a.k = b.k"), "postgres", False),
        (FORCED.format("", "k, n", "c order by n"), "duckdb", True),
        (FORCED.format("", "k, n", "c order by 2"), "duckdb", True),
        (FORCED.format("", "k, n", "c order by k"), "duckdb", False),
        (FORCED.format("", "k, n", "c order by k, 2"), "duckdb", True),
        (FORCED.format("", "*", "c order by 2"), "duckdb", True),
        (FORCED.format("", "distinct *", "c"), "duckdb", True),
        (FORCED.format("", "distinct k, count(*) over () as r", "c"), "duckdb", False),
        (FORCED.format("", "k, row_number() over (order by n) as r", "c"), "duckdb", False),
        (FORCED.format("", "distinct k, n", "c"), "duckdb", True),
        (FORCED.format("", "distinct k", "c"), "duckdb", False),
        (FORCED.format("", "k, n", "c union select k, k from t"), "duckdb", True),
        (FORCED.format("", "k, n", "c union all select k, k from t"), "duckdb", False),
        (FORCED.format("", "k, n", "c union select k, n from u").replace("s::int", "s"), "duckdb", False),
    ],
)  # fmt: skip
def test_what_has_an_engine_evaluate_what_nobody_reads(
    sql: str, dialect: str, forced: bool
) -> None:
    assert bool(Evaluated(sql, dialect).forced) is forced


def test_columns_fail_by_what_they_are_made_of() -> None:
    sql = "with c as (select s::int as n, b::int as m from t) select n + 1 as v, m, n as w, u, x from c"
    failing = Evaluated(sql, "duckdb", {"u": ["there"]}).fails_by()
    assert {name: sorted(texts) for name, texts in failing.items()} == {
        "n": ["CAST(s AS INT)"],
        "v": ["CAST(s AS INT)", "n + 1"],
        "m": ["CAST(b AS INT)"],
        "w": ["CAST(s AS INT)"],
        "u": ["there"],
    }


@pytest.mark.parametrize(
    ("expression", "fails"),
    [
        ("split_part(s, '-', 1)", False),
        ("split_part(s, '-', x)", True),
        ("regexp_replace(s, '[0-9]', '')", False),
        ("regexp_replace(s, t, '')", True),
        ("cast(date_trunc('week', date '2026-01-04') as date)", False),
        ("cast(date_trunc('week', d) as date)", True),
        ("1 % 0", True),
        ("(select max(x) from b)", False),
        ("(select x from b)", True),
    ],
)
def test_what_a_row_decides(expression: str, fails: bool) -> None:
    assert of(expression) is fails
