"""Two queries of one type shape have the same types: tried by DuckDB."""

from __future__ import annotations

from collections import defaultdict
from itertools import product

import duckdb
import pytest

from dbt_ripple.flow.type_shapes import type_shape

TABLE = """
    create table t as select 1::tinyint a, 200::utinyint u, 1.5::decimal(10, 2) d, 7 i, 9::bigint b,
        'x' s, 1.5::double f, date '2020-01-01' dt, timestamp '2020-01-01' ts, true q, [1, 2] l,
        {'k': 1} st, {'k': 1, 'v': 'x'} st2
"""
NUMBERS = ("1", "2", "9", "10", "100", "127", "128", "200", "256", "300", "40000", "3000000000")
EXPRESSIONS = (
    *(f"{c} {op} {n}" for c, op, n in product("auidb", "+-*", NUMBERS)),
    *(f"{c} {op} {n}" for c, op, n in product("aidf", ("/", "//", "%"), ("2", "3", "2.5", "2.55"))),
    *(
        f"case when {p} then {c} else {n} end"
        for p, c, n in product(("q", "i > 2", "s = 'a'"), "aubd", NUMBERS)
    ),
    *(f"coalesce({c}, {n})" for c, n in product("aubdf", NUMBERS)),
    *(
        f"case i when {n} then {v} end"
        for n, v in product("12", ("'a'", "'bb'", "1", "2", "300", "1.5"))
    ),
    *(f"round(d, {n})" for n in ("1", "2", "(1)", "(2)", "1 + 0", "1 + 1", "-1", "-2", "3 - 2")),
    *(f"round(d, case when true then {n} else 1 end)" for n in "12"),
    *(f"struct_extract(st2, {name})" for name in ("'k'", "'v'", "('k')", "('v')")),
    *(f"date_trunc({part}, dt)" for part in ("'day'", "'hour'", "('day')", "('hour')")),
    *(f"sum({c} * {n})" for c, n in product("aid", ("2", "3", "300"))),
    *(f"d::decimal(10, {n})" for n in "123"),
    *(f"-{n}" for n in NUMBERS),
    *NUMBERS,
    *("'a'", "'bb'", "q", "not q", "i > 3", "i between 1 and 2", "s like 'a%'", "s in ('a', 'b')"),
    *("date_trunc('day', dt)", "date_part('year', ts)", "date_part('epoch', ts)", "l[1]", "l[1:2]"),
    *(
        "dt + 1",
        "dt + 30",
        "dt + interval 1 day",
        "ts - ts",
        "dt - dt",
        "coalesce(dt, '2020-01-01')",
    ),
    *(
        "sum(i) over (order by i)",
        "sum(i) over (partition by a)",
        "sum(d) over ()",
        "list_value(1, 2)",
    ),
    *("coalesce(dt, '2021-01-01')", "st.k", "struct_pack(k := 1)", "struct_pack(k := 'a')"),
    *(
        "nullif(a, 1)",
        "nullif(a, 300)",
        "greatest(a, 1)",
        "greatest(a, 300)",
        "i is null",
        "1.5",
        "1.55",
    ),
)
SOURCES = (
    "t",
    "t where i > 3",
    "t qualify row_number() over (order by i) = 1",
    "t left join (select 8 as seven) t2 on i = seven",
    "(select * from t limit 3) t",
    "(select distinct * from t order by i) t",
    "(select * from t union all select * from t) t",
    "(select * from t union select * from t) t",
)


@pytest.fixture(scope="module")
def engine() -> duckdb.DuckDBPyConnection:
    connection = duckdb.connect()
    connection.execute(TABLE)
    return connection


def test_one_shape_has_one_type(engine: duckdb.DuckDBPyConnection) -> None:
    types: dict[str, dict[str, str]] = defaultdict(dict)
    for expression in dict.fromkeys(EXPRESSIONS):
        query = f"select {expression} as x from t"
        types[type_shape(query, "duckdb")][query] = _type(engine, query)
    differ = {shape: queries for shape, queries in types.items() if len({*queries.values()}) > 1}
    assert not differ
    assert len(types) < 0.6 * len(dict.fromkeys(EXPRESSIONS))  # not each a shape of its own


def test_which_rows_there_are_says_no_type(engine: duckdb.DuckDBPyConnection) -> None:
    for expression in ("a + 1", "sum(i) over (order by i)", "s", "d"):
        shapes: dict[str, str] = {}
        for source in SOURCES:
            query = f"select {expression} as x from {source}"
            kind = _type(engine, query)
            assert shapes.setdefault(type_shape(query, "duckdb"), kind) == kind


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("select a from t where b > 1", "select distinct a from t limit 3", True),
        ("select t.a from t join u on t.b = u.b", "select t.a from t left join u on true", True),
        ("select * from t join u on t.b = u.b", "select * from t semi join u on t.b = u.b", False),
        ("select b from t left join u using (b)", "select b from t right join u using (b)", False),
        (
            "select case when a then 1 end as x from t",
            "select case when b then 2 end as x from t",
            True,
        ),
        ("select sum(a) as x from t", "select sum(distinct a) as x from t", True),
        ("select a from ci.t", "select a from prod.t", True),
        ("select a from t", "select a from u", False),
        ("select false as x from t", "select a = 1 as x from t", True),
        ("select true as x from t", "select 1 as x from t", False),
        ("select a::int as a from t", "select a::bigint as a from t", False),
        ("select round(a, 1) as a from t", "select round(a, 2) as a from t", False),
        ("select a + 1 as a from t", "select a + 1.5 as a from t", False),
        ("select a, from t", "select a from from t", False),
    ],
)
def test_what_says_a_type(one: str, other: str, same: bool) -> None:
    shapes = {type_shape(sql, "duckdb", schemas=False) for sql in (one, other)}
    assert (len(shapes) == 1) == same


def _type(engine: duckdb.DuckDBPyConnection, query: str) -> str:
    return str(engine.execute(f"describe {query}").fetchall()[0][1])
