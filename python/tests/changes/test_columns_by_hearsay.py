"""A source of which no catalog tells the columns: that nobody reads one any more is no change of it."""

from __future__ import annotations

import pytest
from hand_made import node, project

from dbt_ripple.artifacts import Project
from dbt_ripple.changes import compare
from dbt_ripple.changes.diff import diff
from dbt_ripple.governance.gate import gate
from dbt_ripple.governance.hypothetical_changes import Change
from dbt_ripple.governance.impact import impact

RAW, STAGED, MART = "source.p.raw.orders", "model.p.staged", "model.p.mart"


def shop(columns: str, *, listed: bool = False, declared: tuple[str, ...] = ()) -> Project:
    return project(
        node(RAW, columns=list(declared)),
        node(STAGED, f"select {columns} from s.orders", RAW),
        node(MART, "select * from s.staged", STAGED),
        catalog={RAW: ["id", "note"]} if listed else None,
    )


@pytest.mark.parametrize("listed", [False, True])
@pytest.mark.parametrize("both", [("id, note", "id"), ("id", "id, note")])
def test_a_reader_that_comes_or_goes_changes_no_source(both: tuple[str, str], listed: bool) -> None:
    base, head = (shop(columns, listed=listed) for columns in both)
    assert [n.unique_id for n in diff(compare(base, head)).nodes] == [STAGED, MART]


def test_what_is_affected_reads_the_model_only() -> None:
    base = shop("id, note")
    before = impact(base, base.nodes[STAGED], [Change("drop", "note")])
    after = gate(base, shop("id"))
    assert before.affected_assets == after.affected
    assert [a.affected_references for a in after.affected] == [["note"]]


def test_what_was_declared_and_is_not_any_more_is_gone() -> None:
    base = shop("id", declared=("id", "note"))
    (change,) = compare(base, shop("id", declared=("id",))).changed.values()
    assert (change.unique_id, change.removed) == (RAW, ["note"])


def test_impact_of_a_column_that_only_readers_tell_of() -> None:
    base = shop("id, note")
    report = impact(base, base.nodes[RAW], [Change("drop", "note")])
    assert [a.unique_id for a in report.affected_assets] == [STAGED, MART]
    assert report.decision == "BLOCKED"
