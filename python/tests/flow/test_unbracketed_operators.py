"""Operators side by side without a bracket: engines differ in what binds to what."""

from __future__ import annotations

import pytest
from linked_tables import table_relation

from dbt_ripple.flow.canonical import canonical
from dbt_ripple.flow.link import link
from dbt_ripple.flow.lower import lower
from dbt_ripple.flow.relation import Relation

ALIKE = [
    ("a | b & c", "(a | b) & c", "a | (b & c)"),
    ("a ^ b | c", "(a ^ b) | c", "a ^ (b | c)"),
    ("a | b << c", "(a | b) << c", "a | (b << c)"),
    ("a || b + c", "(a || b) + c", "a || (b + c)"),
    ("a + b || c", "(a + b) || c", "a + (b || c)"),
    ("a || b || c + d", "a || (b || c) + d", "a || b || (c + d)"),
    ("a = b < c", "(a = b) < c", "a = (b < c)"),
    ("a = b in (c, d)", "(a = b) in (c, d)", "a = (b in (c, d))"),
    ("a = b not in (c, d)", "(a = b) not in (c, d)", "a = (b not in (c, d))"),
    ("a = b between c and d", "(a = b) between c and d", "a = (b between c and d)"),
    ("a between b and c = d", "(a between b and c) = d", "a between b and (c = d)"),
    ("a = b like c", "(a = b) like c", "a = (b like c)"),
    ("a & b || c + d", "(a & b) || (c + d)", "a & b || (c + d)"),
    ("a like b = c like d", "(a like b) = (c like d)", "a like b = (c like d)"),
]
"""A text, and what one and another engine read it as."""


def table(*_: str) -> Relation:
    return table_relation("t", ["id", "a", "b", "c", "d", "s"])


def fingerprints(sql: str, dialect: str = "spark") -> list[tuple[bytes, ...] | None]:
    """The fingerprints of a query, as it is and in the form of the second comparison."""
    linked = link(lower(sql, dialect), table, dialect)
    assert not linked.missing
    form = canonical(sql, dialect, linked, table)
    relations = [linked.relation, form.linked.relation if form is not None else None]
    return [None if r is None else (r.rows.fp, *r.fps) for r in relations]


def differ(one: str, other: str) -> bool:
    pairs = zip(fingerprints(one), fingerprints(other), strict=True)
    return all(a is None or a != b for a, b in pairs)


@pytest.mark.parametrize(("bare", "left", "right"), ALIKE)
def test_an_operator_without_a_bracket_is_taken_for_neither(
    bare: str, left: str, right: str
) -> None:
    for one, other in ((bare, left), (bare, right), (left, right)):
        assert differ(f"select {one} as x from t", f"select {other} as x from t")
        assert differ(f"select id from t where {one}", f"select id from t where {other}")


def test_brackets_that_no_engine_needs_say_nothing() -> None:
    for one, other in (("a + b * c", "a + (b * c)"), ("a | b | c", "(a | b) | c")):
        assert fingerprints(f"select {one} as x from t") == fingerprints(
            f"select ({other}) as x from t"
        )


@pytest.mark.parametrize("bare", ["~a + b", "a - ~b + c", "~a * b", "-~a + b"])
def test_what_a_tilde_binds_is_not_guessed(bare: str) -> None:
    for dialect in ("duckdb", "postgres", "spark"):
        assert lower(f"select {bare} as x from t", dialect).rel is None
    assert (
        lower("select (~a) + b as x, ~(a + b) as y, ~a & b as z from t", "duckdb").rel is not None
    )


def test_an_arrow_of_duckdb_is_followed_where_nothing_binds_before_it() -> None:
    for bare in (
        "s -> 'a' = b",
        "a = s -> 'b'",
        "a or s -> 'b'",
        "not s -> 'b'",
        "s -> 'b' in (a)",
    ):
        assert lower(f"select {bare} as x from t", "duckdb").rel is None, bare
    for clear in ("(s -> 'a') = b", "s -> 'a' ->> 'b'", "json_extract(s, 'a') = b", "f(s -> 'a')"):
        assert lower(f"select {clear} as x from t", "duckdb").rel is not None, clear
    assert lower("select s -> 'a' = b as x from t", "postgres").rel is not None


def test_a_mark_is_not_wherever_the_engine_says_so() -> None:
    for dialect, followed in (("duckdb", False), ("postgres", False), ("spark", True)):
        lowered = lower("select a ! in (1) as x from t", dialect)
        assert (lowered.rel is not None) is followed
    assert lower("select a !~ b as x, a != b as y from t", "duckdb").rel is not None


@pytest.mark.parametrize("dialect", ["duckdb", "postgres", "spark", "snowflake"])
def test_a_number_that_begins_with_a_point_is_one_of_its_own(dialect: str) -> None:
    one, other = (f"select a * {n} as x from t where b > -{n}" for n in (".5", "0.5"))
    assert fingerprints(one, dialect)[0] != fingerprints(other, dialect)[0]
    assert fingerprints(one, dialect) == fingerprints(one.replace("* .5", "*.5"), dialect)
