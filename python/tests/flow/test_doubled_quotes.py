"""Texts of Spark with doubled quotes: each way to write one is a text of its own."""

from __future__ import annotations

import itertools

import pytest
from linked_tables import table_relation

from dbt_ripple.flow.canonical import canonical
from dbt_ripple.flow.link import link
from dbt_ripple.flow.lower import lower
from dbt_ripple.flow.relation import Relation

TEXTS = (
    "'it''s'",
    "'it' 's'",
    "'its'",
    r"'it\'s'",
    '"it""s"',
    "'it''''s'",
    r"'it\'\'s'",
    "''''",
    "''",
)


def table(*_: str) -> Relation:
    return table_relation("a", ["id"])


def column(text: str, dialect: str) -> tuple[bytes, bytes | None]:
    """The fingerprint of a text, as it is and in the form of the second comparison."""
    sql = f"select id, {text} as x from a"
    linked = link(lower(sql, dialect), table, dialect)
    assert not linked.missing
    form = canonical(sql, dialect, linked, table)
    return linked.relation.fps[1], form.linked.relation.fps[1] if form is not None else None


@pytest.mark.parametrize("dialect", ["spark", "databricks"])
def test_no_two_ways_to_write_a_text_are_taken_for_one(dialect: str) -> None:
    for one, other in itertools.combinations(TEXTS, 2):
        for a, b in zip(column(one, dialect), column(other, dialect), strict=True):
            assert a is None or a != b, (one, other)
        assert column(one, dialect) == column(one, dialect)


def test_another_engine_doubles_a_quote_to_say_one() -> None:
    assert column("'it''s'", "duckdb") == column("'it''s' /* one */", "duckdb")
    assert column("'it''s'", "duckdb") != column("'its'", "duckdb")
