"""The second comparison: what means the same in other words is proven equal, and nothing else.

Whatever it calls equal is executed, on data with NULLs and repeated rows.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator

import duckdb
import pytest
from linked_tables import table_relation
from reworded_pairs import COLUMNS, FORMS, NEAR_MISSES

from dbt_ripple.flow.canonical import Canonical, canonical
from dbt_ripple.flow.link import Linked, link
from dbt_ripple.flow.lower import lower
from dbt_ripple.flow.reading.reader import parse_statement
from dbt_ripple.flow.relation import Relation
from dbt_ripple.flow.rewrites import RULES
from dbt_ripple.flow.rewrites.queries import sees_order

NAMES = list(COLUMNS)
SEEDS = (1, 2, 3)
UNPROVEN = frozenset[str]()
"""Forms that no rule knows yet."""


def table(key: str, _: str) -> Relation:
    return table_relation(key, NAMES)


def plain(sql: str, dialect: str = "duckdb") -> Linked:
    lowered = lower(sql, dialect)
    assert lowered.rel is not None, lowered.reason
    linked = link(lowered, table, dialect)
    assert not linked.missing
    return linked


def in_form(sql: str, dialect: str = "duckdb") -> Canonical:
    form = canonical(sql, dialect, plain(sql, dialect), table, types=lambda key: COLUMNS)
    assert form is not None
    return form


def fingerprints(linked: Linked) -> tuple[bytes, list[bytes]]:
    return linked.relation.rows.fp, linked.relation.fps


def equal(one: str, other: str, dialect: str = "duckdb") -> bool:
    if fingerprints(plain(one, dialect)) == fingerprints(plain(other, dialect)):
        return True
    forms = [in_form(sql, dialect).linked for sql in (one, other)]
    return fingerprints(forms[0]) == fingerprints(forms[1])


def rows_of(rng: random.Random, count: int) -> list[list[object]]:
    """Few values and many NULLs, so that rows meet, repeat and do not."""
    kinds: dict[str, list[object]] = {
        "integer": [None, 0, 1, 2],
        "boolean": [None, True, False],
        "varchar": [None, "u", "v", "uv", ""],
        "date": [None, "2023-12-31", "2024-01-02"],
        "double": [None, 0.5, -1.0, 3.25],
    }
    return [[rng.choice(kinds[t]) for t in COLUMNS.values()] for _ in range(count)]


@pytest.fixture(scope="module")
def engines() -> Iterator[list[duckdb.DuckDBPyConnection]]:
    made = []
    for seed in SEEDS:
        connection = duckdb.connect(":memory:", config={"threads": 1})
        rng = random.Random(seed)
        drawn = "macro {}draw(v) as case when random() < 0.5 then v end"
        connection.execute(f"create {drawn.format('')}; create schema m")
        connection.execute(f"create {drawn.format('m.')}")
        for name in ("a", "b", "c"):
            columns = ", ".join(f"{c} {t}" for c, t in COLUMNS.items())
            connection.execute(f"create table {name} ({columns})")
            marks = ", ".join("?" * len(COLUMNS))
            rows = rows_of(rng, 14)
            connection.executemany(f"insert into {name} values ({marks})", [*rows, *rows[:4]])
        made.append(connection)
    yield made
    for connection in made:
        connection.close()


def result(engine: duckdb.DuckDBPyConnection, sql: str) -> tuple[list[str], Counter[str]]:
    """The names and types of the columns, and the rows."""
    types = engine.execute(f"describe {sql}").fetchall()
    return [f"{n} {t}" for n, t, *_ in types], Counter(map(repr, engine.execute(sql).fetchall()))


@pytest.mark.parametrize("form", FORMS)
def test_a_form_means_the_same(form: str, engines: list[duckdb.DuckDBPyConnection]) -> None:
    one, other = FORMS[form]
    for engine in engines:
        assert result(engine, one) == result(engine, other)
    assert equal(one, other) != (form in UNPROVEN), (in_form(one).rules, in_form(other).rules)


@pytest.mark.parametrize("miss", NEAR_MISSES)
def test_a_near_miss_is_not_proven(miss: str, engines: list[duckdb.DuckDBPyConnection]) -> None:
    one, other = NEAR_MISSES[miss]
    assert any(result(engine, one)[1] != result(engine, other)[1] for engine in engines)
    assert not equal(one, other)


TELL_NAN_APART = ("select x from a where not (f < 1)", "select x from a where f >= 1")


def test_not_smaller_is_larger_or_equal_only_where_nan_is_the_largest(
    engines: list[duckdb.DuckDBPyConnection],
) -> None:
    """BigQuery compares NaN with nothing: `not (f < 1)` is true of it, and `f >= 1` is false."""
    for engine in engines:
        engine.execute("begin; update a set f = 'nan' where x = 1")
        assert result(engine, TELL_NAN_APART[0]) == result(engine, TELL_NAN_APART[1])
        engine.execute("rollback")
    for dialect in ("duckdb", "postgres", "spark", "databricks", "snowflake", "redshift"):
        assert equal(*TELL_NAN_APART, dialect), dialect
    for dialect in ("bigquery", "trino", "mysql", "tsql"):
        assert not equal(*TELL_NAN_APART, dialect), dialect


def test_three_branches_whose_types_are_merged_in_order_keep_it() -> None:
    """Of the first two, a type is made that meets the third: elsewhere all are seen at once."""
    columns = ("x", "f", "s")
    one, other = (
        " union all ".join(f"select {c} as v from a" for c in of) for of in (columns, columns[::-1])
    )
    first, second, third = (f"select {c} as v from a" for c in columns)
    nested = f"{first} union all ({second} union all {third})"
    turned = f"{third} union all ({second} union all {first})"
    for dialect in ("spark", "databricks", "snowflake", "trino"):
        assert not equal(one, other, dialect), dialect
        assert not equal(nested, turned, dialect), dialect
    for dialect in ("bigquery", "duckdb", "postgres"):
        assert equal(one, other, dialect), dialect
        assert equal(nested, turned, dialect), dialect


@pytest.mark.parametrize(
    ("sql", "sees"),
    [
        ("select x from a limit 3", True),
        ("select x from a order by x offset 3", True),
        ("select x from a fetch first 3 rows only", True),
        ("select row_number() over () as v from a", True),
        ("select x from a qualify count(*) over () > 1", True),
        ("select x from a tablesample 10%", True),
        ("select distinct on (k) x from a", True),
        ("select first(x) as v from a", True),
        ("select string_agg(s, ',') as v from a", True),
        ("select unheard_of(x) as v from a", True),
        ("select a.x from a asof join b on a.k >= b.k", True),
        ("select a.x from a positional join b", True),
        ("select array(select x from a) as v", True),
        ("select * from (select x from a limit 3) as o", True),
        ("select count(*) as n, sum(x) as t, avg(x) as m, min(x) as l, max(x) as g from a", False),
        ("select distinct x from a where k in (select k from b) order by x", False),
        ("select upper(s) as v from a join b on a.k = b.k", False),
    ],
)
def test_who_asks_in_which_order_rows_come(sql: str, sees: bool) -> None:
    assert sees_order(parse_statement(sql, "duckdb"), "duckdb") == sees


def test_keys_of_a_partition_in_another_order_are_told_to_readers() -> None:
    one, other = (in_form(sql) for sql in FORMS["PARTITION BY in another order"])
    orders = [form.linked.relation.rows.incidental for form in (one, other)]
    assert fingerprints(one.linked) == fingerprints(other.linked) and orders[0] != orders[1]


def test_a_plus_that_joins_texts_keeps_its_order() -> None:
    one, other = "select s + 'u' as v from a", "select 'u' + s as v from a"
    assert not equal(one, other, "tsql") and equal(one, other, "postgres")


@pytest.mark.parametrize("end", ["limit 3", "qualify row_number() over (order by 1) < 3"])
def test_keys_of_a_partition_keep_their_order_where_something_sees_the_rows_in_it(end: str) -> None:
    """DuckDB sorts by them, and leaves the rows as they were sorted."""
    sides = [
        f"select * from (select k, ntile(x) over (partition by {keys}) as v from a) as o {end}"
        for keys in ("k, y", "y, k")
    ]
    assert not equal(*sides)


def test_a_join_of_what_is_pivoted_is_not_made_a_cross_join(
    engines: list[duckdb.DuckDBPyConnection],
) -> None:
    """Behind CROSS JOIN, DuckDB's UNPIVOT turns all that is joined: that is not followed."""
    with_condition, without = (
        f"select count(*) as n from range(4) as c (x) {join} (select k, x as one, y as two from b)"
        f" unpivot (x for name in (one, two)) as u {on}"
        for join, on in (("join", "on true"), ("cross join", ""))
    )
    assert any(result(engine, with_condition) != result(engine, without) for engine in engines)
    assert str(lower(without, "duckdb").reason) == "PIVOT of a join"
    form = canonical(
        with_condition, "duckdb", plain(with_condition), table, types=lambda _: COLUMNS
    )
    assert form is None or "ON true" not in form.rules


def test_every_rule_has_a_form_it_is_executed_in() -> None:
    used: set[str] = set()
    for sides in FORMS.values():
        used.update(*(in_form(sql).rules for sql in sides))
    assert RULES.keys() - used == set()


def test_forms_and_near_misses_do_not_meet_by_chance(
    engines: list[duckdb.DuckDBPyConnection],
) -> None:
    """Of all queries here, any two that are called equal give equal rows."""
    queries = list(
        dict.fromkeys(q for pairs in (FORMS, NEAR_MISSES) for pair in pairs.values() for q in pair)
    )
    groups: dict[object, list[str]] = {}
    for sql in queries:
        rows, fps = fingerprints(in_form(sql).linked)
        groups.setdefault((rows, tuple(fps)), []).append(sql)
    for group in groups.values():
        for engine in engines:
            results = [
                Counter(map(repr, engine.execute(sql).fetchall()))
                for sql in group
                if "random()" not in sql and "draw(" not in sql
            ]
            assert all(r == results[0] for r in results), group


def test_what_the_optimizer_does_not_follow_is_no_message(
    caplog: pytest.LogCaptureFixture,
) -> None:
    name = NAMES[0]
    sql = f"select * from (pivot (select * from t) on {name} in (1, 2) using count(*)) as q"
    canonical(sql, "duckdb", plain(sql), table, types=lambda key: COLUMNS)
    assert not caplog.records
