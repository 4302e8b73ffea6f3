"""Values that are in a list by the way they are made, whatever the rows: `accepted_values` is proven.

Each is executed on rows with NULLs and duplicates: where it is said that nothing else can come out,
nothing else does; of each near miss something does.
"""

from __future__ import annotations

import random

import duckdb
import pytest
from hand_made import RAW, check, node, orders, project

from dbt_ripple.artifacts import Project, RunResult
from dbt_ripple.selection.select import select

AB = "('a', 'b')"
CASE = "case when amount > 2 then 'a' when status is null then 'b' end"
PLAIN = "select {} as k from s.orders"
GROUPED = "select status, {} as k from (select *, {} as c from s.orders) as made group by status"
MADE = {
    "case": (PLAIN.format(CASE), AB, True),
    "case with one more value": (PLAIN.format(CASE.replace("end", "else 'c' end")), AB, False),
    "case of a column": (PLAIN.format(CASE.replace("end", "else status end")), AB, False),
    "case of a value": (PLAIN.format("case amount when 1 then 'a' else 'b' end"), AB, True),
    "if": (PLAIN.format("if(amount > 2, 'a', 'b')"), AB, True),
    "coalesce": (PLAIN.format(f"coalesce(nullif({CASE}, 'a'), 'b')"), AB, True),
    "coalesce with one more": (PLAIN.format(f"coalesce(nullif({CASE}, 'a'), 'x')"), AB, False),
    "changed after": (PLAIN.format(f"upper({CASE})"), AB, False),
    "put together": (PLAIN.format(f"{CASE} || ''"), AB, True),
    "numbers": (PLAIN.format("case when amount > 2 then 1 else 0 end"), "(0, 1)", True),
    "tiles": (PLAIN.format("ntile(3) over (order by amount)"), "(1, 2, 3)", True),
    "more tiles": (PLAIN.format("ntile(4) over (order by amount)"), "(1, 2, 3)", False),
    "the row before": (PLAIN.format(f"lag({CASE}) over (order by id)"), AB, True),
    "or a default": (PLAIN.format(f"lag({CASE}, 1, 'c') over (order by id)"), AB, False),
    "first of a window": (
        PLAIN.format(f"first_value({CASE}) over (partition by status order by id)"),
        AB,
        True,
    ),
    "largest": (GROUPED.format("max(c)", CASE), AB, True),
    "of the largest": (GROUPED.format("max_by(c, amount) filter (where id > 1)", CASE), AB, True),
    "all in one": (GROUPED.format("string_agg(c)", CASE), AB, False),
    "sets": (
        f"select k from (select {CASE} as k from s.orders) as x group by rollup (k)",
        AB,
        True,
    ),
    "joined": (
        f"select r.k from s.orders as l left join (select id, {CASE} as k from s.orders) as r "
        "on l.amount = r.id",
        AB,
        True,
    ),
    "outer joined": (
        f"select r.k from s.orders as l full join (select id, {CASE} as k from s.orders) as r "
        "on l.amount = r.id",
        AB,
        True,
    ),
    "union": (
        f"select 'a' as k from s.orders union all select {CASE} from s.orders",
        AB,
        True,
    ),
    "union with another": (
        f"select {CASE} as k from s.orders union all select 'c' from s.orders",
        AB,
        False,
    ),
    "union with a column": (
        f"select {CASE} as k from s.orders union all select status from s.orders",
        AB,
        False,
    ),
    "taken by its values": (
        f"select status as k from s.orders where status = 'a' union all select {CASE} from s.orders",
        AB,
        True,
    ),
    "taken and chosen": (
        "select coalesce(status, 'b') as k from s.orders where status in ('a', 'b')",
        AB,
        True,
    ),
    "taken elsewhere": (
        "select l.k from (select id, coalesce(status, 'b') as k from s.orders) as l left join "
        "(select id, coalesce(status, 'b') as k from s.orders where status in ('a', 'b')) as r "
        "on l.id = r.id",
        AB,
        False,
    ),
    "taken, and more": (
        "select k from (select id, coalesce(status, 'b') as k from s.orders where status = 'a') as x "
        "union all select coalesce(status, 'b') from s.orders",
        AB,
        False,
    ),
    "taken as another type": (
        "select status as k from s.orders where amount = 1 or status = 'a'",
        AB,
        False,
    ),
    "distinct and some": (f"select distinct {CASE} as k from s.orders limit 3", AB, True),
}
PROVED_OTHERWISE = frozenset({"put together"})
"""What is so, and is not seen."""


def side(sql: str, values: str, where: str, materialized: str = "table") -> Project:
    """Below a model whose rows become more: what is known of base's rows says nothing."""
    above = node("model.p.some", f"select * from s.orders where {where}", RAW)
    made = node("model.p.a", sql.replace("s.orders", "s.some"), "model.p.some")
    made.config["materialized"] = materialized
    test = (
        "with all_values as (select k as value_field, count(*) as n_records from s.a group by k) "
        f"select * from all_values where value_field not in {values}"
    )
    built = project(
        orders(),
        above,
        made,
        check("listed", test, "model.p.a"),
        check("other", "select 1", "model.p.a"),
        types={RAW: {"id": "integer", "amount": "integer", "status": "varchar"}},
        adapter="duckdb",
    )
    return built.having(
        run_results=[
            RunResult(unique_id=f"test.p.{name}", status="pass", failures=0)
            for name in ("listed", "other")
        ]
    )


def is_proven(sql: str, values: str, materialized: str = "table") -> bool:
    base = side(sql, values, "amount > 5", materialized)
    selection = select(base, side(sql, values, "true", materialized))
    assert "test.p.listed" in {t.unique_id for t in (*selection.proven, *selection.tests)}
    return "test.p.listed" in {t.unique_id for t in selection.proven}


@pytest.mark.parametrize("name", MADE)
def test_values_that_can_be_no_others_need_no_test(name: str) -> None:
    sql, values, so = MADE[name]
    assert is_proven(sql, values) == (so and name not in PROVED_OTHERWISE)
    others = 0
    for seed in range(8):
        rng = random.Random(seed)
        rows = [
            (rng.randrange(4), rng.choice([None, 1, 2, 3, 4]), rng.choice([None, "a", "z"]))
            for _ in range(rng.randrange(12))
        ]
        rows += rows[:2]
        with duckdb.connect() as connection:
            connection.execute("create schema s")
            connection.execute("create table s.orders (id int, amount int, status varchar)")
            if rows:
                connection.executemany("insert into s.orders values (?, ?, ?)", rows)
            found_rows = connection.execute(
                f"select count(*) from ({sql}) as made where k not in {values}"
            ).fetchone()
        assert found_rows is not None
        others += found_rows[0]
    assert (others == 0) == so


def test_what_keeps_older_rows_may_hold_values_of_older_code() -> None:
    assert not is_proven(PLAIN.format(CASE), AB, "incremental")
