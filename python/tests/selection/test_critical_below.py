"""Impacted plus critical downstreams: the tests of critical assets below a change."""

from __future__ import annotations

import pytest
from hand_made import check, node, project

from dbt_ripple.artifacts import Project
from dbt_ripple.selection.select import select

RAW = node("source.p.raw", columns={"id": "bigint", "amount": "int"})
TIER1 = {"meta": {"criticality": "Tier1"}}


def world(amount: str) -> Project:
    return project(
        RAW,
        node("model.p.stg", f"select id, {amount} as amount from s.raw", "source.p.raw"),
        node("model.p.reads", "select id, amount from s.stg", "model.p.stg", **TIER1),
        node("model.p.ids", "select id from s.stg", "model.p.stg", **TIER1),
        node("model.p.plain", "select id from s.stg", "model.p.stg"),
        node("model.p.aside", "select id from s.raw", "source.p.raw", **TIER1),
        check("amount", "select amount from s.reads where amount is null", "model.p.reads"),
        check("reads_id", "select id from s.reads where id is null", "model.p.reads"),
        check("ids_id", "select id from s.ids where id is null", "model.p.ids"),
        check("plain_id", "select id from s.plain where id is null", "model.p.plain"),
        check("aside_id", "select id from s.aside where id is null", "model.p.aside"),
        catalog={RAW.unique_id: ["id", "amount"]},
    )


def test_what_is_below_and_critical_is_added_and_told_apart() -> None:
    base, head = world("amount"), world("amount * 2")
    selection = select(base, head, critical="tier1")
    assert {test.name: test.reason.message for test in selection.tests} == {
        "amount": "stg.amount changed",
        "reads_id": "reads is impacted and tier1",
        "ids_id": "ids is below the change and tier1",
    }
    assert selection.critical == ["test.p.reads_id", "test.p.ids_id"]
    assert [test.name for test in select(base, head).tests] == ["amount"]


@pytest.mark.parametrize("critical", ["tier1", "tier9"])
def test_without_a_change_there_is_nothing_below(critical: str) -> None:
    selection = select(world("amount"), world("amount"), critical=critical)
    assert (selection.tests, selection.critical) == ([], [])
