"""The second comparison at work: what means the same in other words selects no test."""

from __future__ import annotations

import pytest
from hand_made import LISTED, RAW, check, node, orders, picked, project

from dbt_ripple.artifacts import Project
from dbt_ripple.changes import compare
from dbt_ripple.selection.explain import explain, find_test
from dbt_ripple.selection.result import Selection
from dbt_ripple.selection.select import select

STG = "select id, amount, status from s.orders where not (status = 'a' or amount < 1)"
SAME = "select id, amount, status from s.orders where amount >= 1 and status <> 'a'"
OTHER = "select id, amount, status from s.orders where amount > 1 and status <> 'a'"
MART = "select id, case when amount is null then 0 else amount end as paid from s.stg"
TESTS = (
    check("on_id", "select id from s.mart where id is null", "model.p.mart"),
    check("on_paid", "select paid from s.mart where paid is null", "model.p.mart"),
)


def side(stg: str = STG, mart: str = MART, tests: tuple[object, ...] = TESTS) -> Project:
    return project(
        orders(),
        node("model.p.stg", stg, RAW),
        node("model.p.mart", mart, "model.p.stg"),
        *tests,  # type: ignore[arg-type]
        catalog=LISTED,
    )


def names(selection: Selection) -> list[str]:
    return [test.name for test in selection.tests]


def test_a_condition_in_other_words_selects_nothing() -> None:
    selection = picked(side(), side(SAME))
    assert names(selection) == []
    assert selection.models == ["model.p.stg"]  # it was edited: CI builds it
    assert any("stg (De Morgan" in note.message for note in selection.notes)


def test_other_words_are_seen_beside_a_cte_that_nothing_refers_to() -> None:
    """DuckDB does not look into it, so it may hold what cannot be followed."""
    beside = "with unread as (select coalesce(*columns('i.')) as c from s.orders where {}) " + STG
    same = beside.format("1 = 1").replace(STG, SAME)
    other = beside.format("1 = 1").replace(STG, OTHER)
    base, head, changed = side(beside.format("true")), side(same), side(other)
    for project_ in (base, head, changed):
        project_.metadata.adapter_type = "duckdb"
    assert names(picked(base, head)) == []
    assert names(picked(base, changed)) == ["on_id", "on_paid"]


def test_what_is_not_the_same_still_selects() -> None:
    assert names(picked(side(), side(OTHER))) == ["on_id", "on_paid"]


def test_a_change_beside_other_words_selects_only_what_reads_it() -> None:
    mart = "select id, coalesce(amount, 1) as paid from s.stg"
    assert names(picked(side(), side(SAME, mart))) == ["on_paid"]
    assert (
        names(picked(side(), side(SAME, "select id, coalesce(amount, 0) as paid from s.stg"))) == []
    )


def test_a_test_in_other_words_is_the_same_test() -> None:
    again = (
        TESTS[0],
        check("on_paid", "select paid from s.mart where not (paid is not null)", "model.p.mart"),
    )
    comparison = compare(side(), side(tests=again))
    assert "test.p.on_paid" in comparison.reworded


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("select id from s.orders limit 3", "select id from s.orders where true limit 3"),
        (
            "select id from s.orders union all select amount from s.orders",
            "select amount as id from s.orders union all select id from s.orders",
        ),
    ],
)
def test_rows_in_another_order_are_the_same_rows(one: str, other: str) -> None:
    tests = (check("on_id", "select id from s.stg where id is null", "model.p.stg"),)
    mart = "select id from s.stg"
    assert names(picked(side(one, mart, tests), side(other, mart, tests))) == []


def test_a_reader_of_the_first_rows_sees_branches_in_another_order() -> None:
    one = "select id from s.orders union all select amount from s.orders"
    other = "select amount as id from s.orders union all select id from s.orders"
    mart = "select id from s.stg limit 1"
    tests = (check("on_id", "select id from s.mart where id is null", "model.p.mart"),)
    assert names(picked(side(one, mart, tests), side(other, mart, tests))) == ["on_id"]


def test_explain_says_by_which_rules_it_is_the_same() -> None:
    comparison = compare(side(), side(SAME))
    explanation = explain(comparison, select(side(), side(SAME)), find_test(side(), "on_id"))
    assert explanation.verdict == "not selected"
    assert "stg means the same in other words: De Morgan" in str(explanation.reason)


OPAQUE = "select * from s.stg where whatever nobody can parse ("
ON_OPAQUE = (check("on_opaque", "select id from s.mart where id is null", "model.p.mart"),)
OPAQUE_TEST = (check("opaque", OPAQUE, "model.p.stg"),)


def test_what_cannot_be_parsed_may_see_the_order_that_other_words_give() -> None:
    base = side(mart=OPAQUE, tests=(*ON_OPAQUE, *OPAQUE_TEST))
    for stg, selected in (
        (STG.replace("select", "select  "), []),
        (SAME, ["on_opaque", "opaque"]),
        (OTHER, ["on_opaque", "opaque"]),
    ):
        selection = picked(base, side(stg, OPAQUE, (*ON_OPAQUE, *OPAQUE_TEST)))
        assert names(selection) == selected
    edited = side(STG, f"{OPAQUE} (", (*ON_OPAQUE, *OPAQUE_TEST))
    assert names(picked(base, edited)) == ["on_opaque"]


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (
            "select id from s.orders where id > 1 union all select amount from s.orders",
            "select amount as id from s.orders union all select id from s.orders where id > 1",
        ),
        (
            "select a.id from s.orders as a join s.items as b on a.id = b.x",
            "select a.id from s.items as b join s.orders as a on a.id = b.x",
        ),
    ],
)
def test_what_cannot_be_parsed_may_take_the_first_row(one: str, other: str) -> None:
    base, head = (side(sql, OPAQUE, (*ON_OPAQUE, *OPAQUE_TEST)) for sql in (one, other))
    assert names(picked(base, head)) == ["on_opaque", "opaque"]
    plain = (check("on_mart", "select id from s.mart where id is null", "model.p.mart"),)
    base, head = (side(sql, "select id from s.stg", plain) for sql in (one, other))
    assert names(picked(base, head)) == []
