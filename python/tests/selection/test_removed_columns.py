"""A reader of a column that is gone says which column of which relation it was, and its new name."""

from __future__ import annotations

import pytest
from hand_made import check, node, project

from dbt_ripple.artifacts import Project
from dbt_ripple.changes import compare
from dbt_ripple.changes.diff import diff
from dbt_ripple.changes.verdict import verdict_of
from dbt_ripple.selection.explain import explain
from dbt_ripple.selection.select import select_from

RAW = "source.p.raw"
LISTED = {RAW: ["id", "amount", "code"]}
COLUMNS = "select id, amount, code from s.raw"
TEST = "test.p.positive"


def shop(stg: str = COLUMNS, other: str = COLUMNS, mart: str = "") -> Project:
    mart = mart or "select o.id, o.amount from s.stg as o join s.other on o.id = other.id"
    return project(
        node(RAW),
        node("model.p.stg", stg, RAW),
        node("model.p.other", other, RAW),
        node("model.p.mart", mart, "model.p.stg", "model.p.other"),
        check("positive", "select * from s.stg where amount < 0", "model.p.stg"),
        catalog=LISTED,
    )


def unfound(base: Project, head: Project) -> dict[str, str]:
    return {b.unique_id: str(b.reason) for b in verdict_of(compare(base, head)).newly_broken}


@pytest.mark.parametrize(
    ("sql", "message"),
    [
        ("select id, code from s.raw", "stg.amount is gone"),
        ("select id, amount as total, code from s.raw", "stg.amount is gone (renamed to total)"),
        # Another value under another name is no rename.
        ("select id, amount + 1 as total, code from s.raw", "stg.amount is gone"),
    ],
)
def test_what_became_of_the_column(sql: str, message: str) -> None:
    assert unfound(shop(), shop(sql)) == {
        "model.p.mart": f"cannot find o.amount: {message}",
        TEST: f"cannot find amount: {message}",
    }


def test_of_two_parents_that_lost_the_name_the_one_that_was_read_is_meant() -> None:
    without = "select id, code from s.raw"
    assert unfound(shop(), shop(without, without))["model.p.mart"] == (
        "cannot find o.amount: stg.amount is gone"
    )


def test_a_name_that_nothing_took_away_is_a_typo() -> None:
    typo = "select o.id, o.amuont as amount from s.stg as o join s.other on o.id = other.id"
    assert unfound(shop(), shop(mart=typo)) == {"model.p.mart": "cannot find o.amuont"}
    # Not even where another column is gone.
    reasons = unfound(shop(), shop("select id, amount from s.raw", mart=typo))
    assert reasons == {"model.p.mart": "cannot find o.amuont"}


def test_a_new_reader_of_a_column_that_is_gone() -> None:
    head = shop("select id, amount as total, code from s.raw")
    base = project(node(RAW), node("model.p.stg", COLUMNS, RAW), catalog=LISTED)
    assert unfound(base, head)[TEST] == "cannot find amount: stg.amount is gone (renamed to total)"


def test_what_is_broken_on_base_in_the_same_way_is_not_new() -> None:
    broken = shop("select id, code from s.raw")
    assert unfound(broken, broken) == {}


def test_select_explain_and_diff_say_the_same() -> None:
    comparison = compare(shop(), shop("select id, amount as total, code from s.raw"))
    message = "cannot find amount: stg.amount is gone (renamed to total)"
    selection = select_from(comparison)
    assert [(t.unique_id, str(t.reason)) for t in selection.tests] == [(TEST, message)]
    assert {b.unique_id: str(b.reason) for b in selection.broken}[TEST] == message
    assert {b.unique_id: str(b.reason) for b in diff(comparison).broken}[TEST] == message
    explained = explain(comparison, selection, comparison.head.nodes[TEST])
    assert (explained.verdict, str(explained.reason), str(explained.broken)) == (
        "selected",
        message,
        message,
    )
    (gone,) = next(b.gone for b in selection.broken if b.unique_id == TEST)
    assert (gone.unique_id, gone.column, gone.renamed_to) == ("model.p.stg", "amount", "total")


def test_a_test_that_waits_for_what_an_ephemeral_model_reads_says_so() -> None:
    through = "with __dbt__cte__eph as (select amount from s.stg) select * from __dbt__cte__eph"

    def side(stg: str) -> Project:
        return project(
            node(RAW),
            node("model.p.stg", stg, RAW),
            node(
                *("model.p.eph", "select amount from s.stg", "model.p.stg"),
                config={"materialized": "ephemeral"},
            ),
            node("model.p.top", through, "model.p.eph"),
            check("on_top", "select * from s.top where amount is null", "model.p.top"),
            catalog=LISTED,
        )

    selection = select_from(
        compare(side(COLUMNS), side("select id, amount as total from s.raw")), facts=True
    )
    (blocked,) = selection.blocked
    assert blocked.reason.message.endswith("stg.amount is gone (renamed to total)")
