"""What a column is computed as, written over the relations that the query reads."""

from __future__ import annotations

import duckdb
import pytest
import sqlglot

from dbt_ripple.flow.definitions import MAX_LENGTH, definitions
from dbt_ripple.flow.lower import lower

A = "with a as (select k, x + 1 as y from t)"
UNION = "with a as (select x + 1 as y from t union all select k from t union all select k from t)"

CASES = [
    ("select x from t", {"x": "x"}),
    ("with d as (select o.x * o.k as v from t as o) select sum(v) as total from d",
     {"total": "SUM(o.x * o.k)"}),
    (f"{A} select y from a", {"y": "x + 1"}),
    (f"{A}, b as (select * from a) select b.* from b", {"k": "k", "y": "x + 1"}),
    (f"{A} select y * 2 as z from a", {"z": "(x + 1) * 2"}),
    (f"{A} select -y as z, y > 2 as big from a", {"z": "-(x + 1)", "big": "x + 1 > 2"}),
    (f"{A} select * exclude (k) replace (y * 3 as y) from a", {"y": "(x + 1) * 3"}),
    (f"{A} select * rename (y as z) from a", {"k": "k", "z": "x + 1"}),
    (f"{A} select q.z from (select y as z from a) as q", {"z": "x + 1"}),
    (f"{A} select q.z from a as q(j, z)", {"z": "x + 1"}),
    ("with a(j, z) as (select k, x + 1 from t) select z from a", {"z": "x + 1"}),
    ("with a as (select x + 1 as y from t), b as (with a as (select 5 as y) select y from a) "
     "select a.y, b.y as z from a, b", {"y": "x + 1", "z": "5"}),
    (f"{UNION} select y * 2 as z from a", {"z": "(x + 1 UNION ALL k) * 2"}),
    ("select x as a, k as b from t union all by name select k as b, x as a from t",
     {"a": "x", "b": "k"}),
    ("with recursive r(n) as (select 1 union all select n + 1 from r) select n from r",
     {"n": "(1 UNION ALL n + 1)"}),
    # An alias of the same select list, where the CTE is known to have no such column.
    (f"{A} select y + k as b, b * 2 as c from a", {"b": "(x + 1) + k", "c": "((x + 1) + k) * 2"}),
    # A `*` over a relation hides columns, so that a name may be one of them.
    ("with a as (select *, 1 as one from t) select x + 1 as x, x * 2 as z, one from a",
     {"x": "x + 1", "z": "x * 2", "one": "1"}),
    # A query inside of an expression stays as it is written.
    (f"{A} select (select max(y) from a) as m from t", {"m": "(SELECT MAX(y) FROM a)"}),
    (f"create table n as {A} select y from a", {"y": "x + 1"}),
]  # fmt: skip


@pytest.mark.parametrize(("sql", "wanted"), CASES)
def test_columns_are_written_over_relations(sql: str, wanted: dict[str, str]) -> None:
    parsed = sqlglot.parse_one(sql, dialect="duckdb")
    before = parsed.sql(dialect="duckdb")
    assert definitions(parsed, "duckdb") == wanted
    assert parsed.sql(dialect="duckdb") == before
    assert lower(sql, "duckdb", expressions=True).expressions == wanted


@pytest.mark.parametrize(
    "sql",
    [
        f"{A} select -y as a, y * 2 + y as b, y between 1 and 2 as c, not y > 2 as d from a",
        f"{A} select b.y - b.z as v from (select y, y - k as z from a) as b",
        f"{A} select case when y > 2 then y else -y end as v, y in (2, 3) is false as w from a",
        f"{A}, b as (select y > 2 or k = 1 as p from a) select p and p as q, not p as r from b",
        f"{A} select y::varchar || 'x' as v, (y || k) || y as w from a",
    ],
)
def test_what_is_written_gives_the_same_values(sql: str) -> None:
    engine = duckdb.connect()
    engine.execute("create table t as select * from (values (1, 2), (2, 0), (3, null)) as v(k, x)")
    wanted = definitions(sqlglot.parse_one(sql, dialect="duckdb"), "duckdb")
    flat = f"select {', '.join(f'{text} as {name}' for name, text in wanted.items())} from t"
    assert len(wanted) > 0
    assert engine.execute(flat).fetchall() == engine.execute(sql).fetchall()


def test_what_is_too_long_says_what_it_leaves_out() -> None:
    doubled = [f"c{i} as (select a + a as a from c{i - 1})" for i in range(1, 40)]
    sql = f"with c0 as (select x as a from t), {', '.join(doubled)} select a as v from c39"
    [text] = definitions(sqlglot.parse_one(sql), "duckdb").values()
    assert len(text) < MAX_LENGTH + 100
    assert text.endswith("/* too long to write out: a */")
