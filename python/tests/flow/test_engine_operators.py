"""Operators and calls that Oracle and T-SQL read and sqlglot does not."""

from __future__ import annotations

import pytest
from linked_tables import table_relation

from dbt_ripple.flow.link import link
from dbt_ripple.flow.lower import lower
from dbt_ripple.flow.relation import Relation

JOINED = "select a multiset {} b as x from t"
OPENED = "select r.k from t cross apply {}"
DIFFERENT = [
    ("oracle", JOINED.format("union"), JOINED.format("except")),
    ("oracle", JOINED.format("union all"), JOINED.format("union")),
    ("oracle", JOINED.format("union all"), JOINED.format("union distinct")),
    ("oracle", JOINED.format("union all"), "select b multiset union all a as x from t"),
    ("tsql", "select a from t where a ! < 3", "select a from t where a ! > 3"),
    (
        "tsql",
        OPENED.format("openxml(t.d, '/x') with (k int '@k') as r"),
        OPENED.format("openxml(t.d, '/x') with (k int '@j') as r"),
    ),
    (
        "tsql",
        OPENED.format("openxml(t.d, '/x') with (k int '@k') as r"),
        OPENED.format("openxml(t.c, '/x') with (k int '@k') as r"),
    ),
]
EQUAL = [
    ("oracle", "select a from t where a < = 3", "select a from t where a <= 3"),
    ("oracle", "select a from t where a !  = 3", "select a from t where a <> 3"),
    ("tsql", "select a from t where a ! < 3", "select a from t where a >= 3"),
    ("tsql", "select a from t where a !\n> 3", "select a from t where a <= 3"),
    ("oracle", JOINED.format("union\nall"), JOINED.format("UNION ALL")),
]


def fingerprints(sql: str, dialect: str) -> tuple[bytes, ...]:
    def table(*_: str) -> Relation:
        return table_relation("t", ["id", "a", "b", "c", "d"])

    linked = link(lower(sql, dialect), table, dialect)
    assert linked.relation is not None, sql
    return (linked.relation.rows.fp, *linked.relation.fps)


@pytest.mark.parametrize(("dialect", "one", "other"), DIFFERENT)
def test_what_an_engine_reads_otherwise_differs(dialect: str, one: str, other: str) -> None:
    assert fingerprints(one, dialect) != fingerprints(other, dialect)


@pytest.mark.parametrize(("dialect", "one", "other"), EQUAL)
def test_white_space_within_an_operator_says_nothing(dialect: str, one: str, other: str) -> None:
    assert fingerprints(one, dialect) == fingerprints(other, dialect)


def test_a_name_that_is_like_an_operator_is_a_name() -> None:
    quoted = lower('select a "MULTISET" from t union all select b from t', "oracle")
    assert quoted.rel is not None
    assert list(quoted.rel.branches[0].names) == ["MULTISET"]
    text = lower("select a || '< =' as x from t", "oracle")
    assert fingerprints("select a || '< =' as x from t", "oracle") != fingerprints(
        "select a || '<=' as x from t", "oracle"
    )
    assert text.rel is not None
    # A text is no sign, whatever it holds.
    assert fingerprints("select a from t where '<' = a and b < = 3", "oracle") == fingerprints(
        "select a from t where '<' = a and b <= 3", "oracle"
    )


def test_elsewhere_such_an_operator_is_not_read() -> None:
    assert lower("select a from t where a < = 3", "postgres").rel is None
    assert lower(JOINED.format("union all"), "postgres").rel is None


def test_hints_of_a_table_stay_hints() -> None:
    hinted = lower("select a from t with (nolock)", "tsql")
    assert hinted.tables == lower("select a from t", "tsql").tables
