"""Which queries give the same bag of rows of the same bags, and what keeps the others from it."""

from __future__ import annotations

import duckdb
import pytest

from dbt_ripple.flow.determinism import (
    Cause,
    changes_only,
    inexact_type,
    nondeterminism,
    reads_only,
)
from dbt_ripple.flow.varying_columns import OrderRead, other_each_time


def by(sql: str, dialect: str = "duckdb", inexact: list[str] | None = None) -> Cause | None:
    nondeterminism_of_query = nondeterminism(sql, dialect, ["f"] if inexact is None else inexact)
    return nondeterminism_of_query and nondeterminism_of_query.by


@pytest.mark.parametrize(
    "sql",
    [
        "select a, count(*) as n, sum(b) as s, max(d) from t group by a",
        "select sum(s) from (select sum(b) as s from t group by a)",
        "select avg(case when b > 1 then b else 0 end) from t",
        "select sum(b) over (partition by a) as s, rank() over (order by b) as r from t",
        "select distinct a from t",
        "select a from t union select b from u",
        "select t.a, f / 2 as half from t join u using (a) where exists (select 1 from u) order by 1",
        "select a, (select max(b) from u) as m from t",
        "select date_trunc('month', d) as m, count(distinct a) from t group by all",
        "select * from t where b in (select b from u)",
        "select unnest(l) as x from t",
        "select lower(a) as a, coalesce(b, 0) as b, cast(f as int) as i from t",
    ],
)
def test_repeatable(sql: str) -> None:
    assert by(sql) is None


@pytest.mark.parametrize(
    "sql",
    [
        "select sum(f) from t",
        "select sum(x) from (select a, f as x from t)",
        "select sum(a / b) from t",
        "select max(f) from t",
        "select distinct f from t",
        "select a from t group by a, f",
        "select f as x, count(*) from t group by 1",
        "select f from t union select b from u",
        "select a from t order by b limit 3",
        "select row_number() over (partition by a order by b) as n from t",
        "select lag(b) over (order by a) as n from t",
        "select list(a order by b) from t",
        "select arg_max(a, b) from t",
        "select distinct on (a) a, b from t order by b",
        "select stddev(b) from t",
        "select t.a, u.b from t asof join u on t.a >= u.a",
    ],
)
def test_up_to_ties(sql: str) -> None:
    assert by(sql) == Cause.TIES


@pytest.mark.parametrize(
    "sql",
    [
        "select a from t limit 3",
        "select row_number() over () as n from t",
        "select row_number() over (partition by a) as n from t",
        "select any_value(a) from t",
        "select first(a) from t",
        "select string_agg(a, ',') from t",
        "select distinct on (a) a, b from t",
        "select array(select a from t) as l",
        "select (select a from t) as x",
        "select (select max(a) from t group by b) as x",
        "select (select max(a) over () from t) as x",
        "select * from t positional join u",
    ],
)
def test_up_to_the_order_of_rows(sql: str) -> None:
    assert by(sql) == Cause.ORDER


@pytest.mark.parametrize(
    ("dialect", "sql"),
    [
        ("duckdb", "select random() as x from t"),
        ("duckdb", "select a from t where d > current_date"),
        ("duckdb", "select a from t where d > now() - interval 1 day order by a limit 1"),
        ("duckdb", "select age(d) from t"),
        ("duckdb", "select a, my_macro(b) from t"),
        ("duckdb", "select nextval('s') from t"),
        ("duckdb", "select rowid from t"),
        ("spark", "select uuid() from t"),
        ("spark", "select unix_timestamp() from t"),
        ("spark", "select cast('today' as date) from t"),
        ("spark", "select monotonically_increasing_id() from t"),
        ("snowflake", "select sysdate() from t"),
        ("snowflake", "select metadata$filename from t"),
        ("bigquery", "select session_user() from t"),
    ],
)
def test_by_chance(dialect: str, sql: str) -> None:
    assert by(sql, dialect) == Cause.CHANCE


@pytest.mark.parametrize(
    ("dialect", "sql"),
    [
        ("duckdb", "select my_macro(a) from t"),
        ("duckdb", "select * from t using sample 10"),
        ("spark", "select * from t version as of 3"),
        ("snowflake", "select a from t at(offset => -60)"),
        ("bigquery", "select @@query_label from t"),
        ("duckdb", "this is no query"),
    ],
)
def test_by_anything(dialect: str, sql: str) -> None:
    """What is not followed, and a function that may be an aggregate, may see the order of rows, too."""
    assert by(sql, dialect) == Cause.UNKNOWN


def test_types_that_are_not_known_may_be_floats() -> None:
    sql = "select sum(b) from t"
    assert nondeterminism(sql, "duckdb", []) is None
    assert nondeterminism(sql, "duckdb", None) is not None
    assert [
        t
        for t in ("DOUBLE", "FLOAT", "STRUCT(a INT)", "MAP(INT, INT)")
        if inexact_type(t, "duckdb")
    ]
    exact = (
        "INTEGER",
        "DECIMAL(18,3)",
        "DATE",
        "TIMESTAMP",
        "BOOLEAN",
        "BIGINT",
        "HUGEINT",
    )
    assert [t for t in exact if inexact_type(t, "duckdb")] == []


def test_a_collation_of_text_is_no_part_of_its_type_everywhere() -> None:
    assert inexact_type("VARCHAR", "duckdb")
    assert inexact_type("TEXT", "postgres")
    assert not inexact_type("STRING", "spark")
    assert nondeterminism("select s from t group by s", "duckdb", ["s"]) is not None
    assert nondeterminism("select count(*) over (partition by s) from t", "duckdb", ["s"]) is None


def test_every_function_that_duckdb_calls_volatile_is_one() -> None:
    called = duckdb.sql(
        "select distinct function_name, len(parameters) from duckdb_functions() "
        "where stability <> 'CONSISTENT' and function_type in ('scalar', 'macro')"
    ).fetchall()
    assert len(called) > 20
    for name, arguments in called:
        sql = f"select {name}({', '.join(['a'] * arguments)}) from t"
        assert by(sql, "duckdb", []) == Cause.CHANCE, name


@pytest.mark.parametrize(
    ("statement", "so"),
    [
        ("delete from this where a > 3", True),
        ("update this set a = a + 1 where b is null", True),
        ("delete from this where a in (select max(a) from this)", False),
        ("delete from other where a > 3", False),
        ("delete from this where a in (select a from other)", False),
        ("update this set a = random()", False),
        ("insert into this select * from this", False),
        ("grant select on this to x", False),
        ("vacuum", False),
    ],
)
def test_statements_on_own_rows(statement: str, so: bool) -> None:
    assert changes_only(statement, "duckdb", "this") == so


@pytest.mark.parametrize(
    ("sql", "so"),
    [
        ("select * from a.b", True),
        ("from a.b", True),
        ("select * exclude (x), columns('y.*') from a.b", True),
        ("select * like 'v%' from (select x from a.b)", True),
        ("with b as (select * from a.b) select * from b", True),
        ("select g from (pivot (select x as g, y from a.b) on y in (1) using max(g) group by g)", True),
        ("select n from (unpivot (select x, y from a.b) on x, y into name n value v)", True),
        ("select * from a.c", False),
        ("select * from b", False),
        ("with b as (select * from b) select * from b", False),
        ("with c as (with b as (select * from a.b) select 1) select * from b", False),
        ("select * from a.b, read_csv('f')", False),
        ("select * from 'file.csv'", False),
        ("select * from a.b using sample 3", False),
        ("select * from a.b at (version => 3)", False),
        ("select * from a.b where x in (select x from other.t)", False),
        ("select * from a.b match_recognize (pattern (z) define z as x > 1)", False),
        ("select percentile(x, 0.5, 3) from a.b", False),
    ],
)  # fmt: skip
def test_queries_that_read_no_other_tables(sql: str, so: bool) -> None:
    dialect = "spark" if "percentile" in sql else "duckdb"
    assert reads_only(sql, dialect, ["a.b"]) == so


def test_what_a_pivot_turns_is_no_value() -> None:
    assert (
        by("select n from (unpivot (select a, b from t) on a, b into name n value v)") == Cause.TIES
    )


@pytest.mark.parametrize(
    ("sql", "columns"),
    [
        ("select a, b from t union all select a, now() from u", {"b"}),
        ("select a, now() as b from t union all select a, c from u", {"b"}),
        ("select a, b from t union all (select a, now() from u)", {"b"}),
        ("select a, c + 1 as d from (select 1 as a, 2 as c union all select 3, random()) x", {"c", "d"}),
        ("select a, b from t union select a, now() from u", {"*"}),
        ("select a from t except select now() as a from u", {"*"}),
        ("select * from t union all select a, now() as x from u", {"*"}),
        ("select a, b from t union all by name select now() as b, 1 as a", {"*"}),
        ("select a from t where b in (select now() union all select 1)", {"*"}),
        ("select s.upper(a) as b, c from t", {"b"}),
        ("select x.s.upper(a) as b, c from t", {"b"}),
        ("select ('elm').bit_length() as b, (a || 'b').upper() as c, 'a'.upper() as d from t", set()),
        ("select pg_catalog.upper(a) as b from t", set()),
        ("with x as (select now() as b) select a from t", set()),
        ("with x as (select now() as b) select a from t, query('select * from x') as q", {"*"}),
        ("with x as (select now() as b), y as (select b from x) select a from t", set()),
        ("with x as (select now() as b) select a, b from t, x", {"b"}),
        ("with x as (select now() as b), y as (select b as c from x) select c from y", {"b", "c"}),
        ("with x as (select now() as b) select a from t where exists (select 1 from x)", {"b"}),
    ],
)  # fmt: skip
def test_which_columns_are_other_values_each_time(sql: str, columns: set[str]) -> None:
    """The first branch of a union names its columns by place; no row of a CTE is made that nothing reads."""
    assert other_each_time(sql, "duckdb") == columns


@pytest.mark.parametrize(
    ("sql", "columns"),
    [
        ("select list(a) as l from t", {"l"}),
        ("select list(a) as l from u", set()),
        ("select list(a) as l from u join t on u.k = t.k", {"l"}),
        ("select a from t where d > (select d from u)", set()),
        ("select a from u where d > (select d from t)", {"*"}),
        ("select a from t where d > (select d from u limit 1)", set()),
        ("select a from u where d > (select d from t limit 1)", {"*"}),
        ("select a, (select list(b) from u) as l from t", set()),
        ("with x as (select * from u), y as (select first(a) as f from x) select f, b from y, t", set()),
        ("with x as (select * from t), y as (select first(a) as f from x) select f, b from y, u", {"f"}),
        ("with x as (with t as (select * from u) select * from t) select first(a) as f from x", set()),
        ("with x as (select * from s.T) select first(a) as f from x", {"f"}),
        ("with u as (select * from t) select first(a) as f from u", {"f"}),
        ("with t as (select * from t) select first(a) as f from t", {"f"}),
        ("select first(a) as f from (select a from u union all select a from t) as x", {"f"}),
        ("select k, (select list(t.a)) as l from t group by k", {"*"}),
        ("select a from u order by b limit 1", set()),
        ("select picked(a) as f from t", {"f"}),
        ("select b, picked(a) as f from t group by b", {"f"}),
        ("select picked(a) over (order by b) as f, a from t", {"f"}),
        ("select b, picked(a) as f from t", set()),
        ("select b, sum(picked(a)) as f from t group by b", set()),
        ("select count(*) as n from t where picked(a) > 1", set()),
        ("select s.first(a) as f from t", {"f"}),
        ("select a from t using sample 5", {"*"}),
    ],
)  # fmt: skip
def test_who_sees_the_order_of_the_rows_of_a_table(sql: str, columns: set[str]) -> None:
    assert OrderRead(sql, "duckdb", set()).by({"t"}).open == columns
