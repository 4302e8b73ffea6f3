"""A lowered query that was stored links to what it linked to before."""

from __future__ import annotations

from typing import Any

import pytest
from flow.lineage_fixtures import Fixture, read_fixtures
from flow.test_fixtures import table

from dbt_ripple.flow.identifiers import dialect_of
from dbt_ripple.flow.ir import lower_packed, pack, unpack
from dbt_ripple.flow.link import Linked, link
from dbt_ripple.flow.lower import lower
from dbt_ripple.flow.relation import Relation


def told(linked: Linked) -> dict[str, Any]:
    """All that a linked query says. What its unknown columns are is asked of it."""
    relation = linked.relation
    parts = {
        slot: getattr(relation, slot)
        for slot in Relation.__slots__
        if slot not in ("by_key", "duplicates", "unlisted", "unresolved")
    }
    for kind, rests in (("unlisted", relation.unlisted), ("unresolved", relation.unresolved)):
        parts[kind] = [(rest.fp(), rest.get("some", "some")) for rest in rests]
    return {**parts, "missing": linked.missing, "unknown": linked.unknown}


@pytest.mark.parametrize("fixture", read_fixtures(), ids=lambda f: f.id)
def test_what_comes_back_links_to_the_same(fixture: Fixture) -> None:
    dialect = dialect_of(fixture.dialect)
    lowered = lower(fixture.sql, dialect, expressions=True)
    again = unpack(pack(lowered))
    assert (again.reason, again.ctes, again.tables, again.expressions) == (
        lowered.reason,
        lowered.ctes,
        lowered.tables,
        lowered.expressions,
    )
    assert pack(again) == pack(lowered)
    if lowered.rel is not None:
        assert told(link(again, table, dialect)) == told(link(lowered, table, dialect))


def test_a_deeply_nested_query_can_be_packed() -> None:
    sql = "select " + "(" * 150 + "a" + " + 1)" * 150 + " as x from t"
    lowered = lower(sql, "spark")
    assert lowered.rel is not None
    assert pack(unpack(pack(lowered))) == pack(lowered)


def test_many_come_back_in_order() -> None:
    queries = ["select a from t", "select (((", "select b from u"]
    packed = lower_packed(queries, "spark", False)
    assert [unpack(p).tables for p in packed] == [["t"], [], ["u"]]
    assert unpack(packed[1]).reason
