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
