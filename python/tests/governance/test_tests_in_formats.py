"""The tests a change can break, and what they said, as annotations and in SARIF."""

from __future__ import annotations

from pathlib import Path

import pytest
from hand_made import check, node, project

from dbt_ripple.changes import compare
from dbt_ripple.governance.gate import GateAnswer, gate_from
from dbt_ripple.governance.ripple_yml import Config
from dbt_ripple.rendering.github_annotations import github
from dbt_ripple.rendering.sarif import sarif
from dbt_ripple.selection.result import SelectionRun
from dbt_ripple.selection.select import select_from

RAW, ORDERS, PAID = "source.p.raw.orders", "model.p.orders", "model.p.paid"
ONE, TWO, THREE = "test.p.one", "test.p.two", "test.p.three"


def gate_answer(sql: str, ran: SelectionRun | None, *, also: bool = True) -> GateAnswer:
    def side(amount: str) -> object:
        return project(
            node(RAW, columns=["id", "amount"]),
            node(ORDERS, f"select id, {amount} as amount from s.orders_raw", RAW),
            node(PAID, "select amount from s.orders", ORDERS),
            check("one", "select * from s.orders where amount is null", ORDERS),
            check("two", "select * from s.paid where amount < 0", PAID),
            check("three", "select * from s.paid where amount > 9", PAID),
        )

    comparison = compare(side("amount"), side(sql))  # type: ignore[arg-type]
    report = gate_from(comparison, Config())
    return GateAnswer(report, comparison, select_from(comparison) if also else None, ran)


RAN = SelectionRun(
    statuses={
        ORDERS: "success",
        PAID: "error",
        ONE: "warn",
        TWO: "fail",
        THREE: "skipped",
    },
    messages={
        PAID: "Binder Error:\n  no such thing\n::add-mask::x",
        ONE: "Got 1 result",
        TWO: "Got 3 results, configured to fail if != 0",
    },
    failed=True,
)


def test_what_failed_is_an_annotation_and_what_was_skipped_is_none() -> None:
    lines = list(github(gate_answer("amount * 2", RAN), Path()))
    assert [line for line in lines if "_failed::" in line] == [
        "::error title=build_failed::paid: error: Binder Error: no such thing ::add-mask::x",
        "::warning title=test_failed::one: warn: Got 1 result",
        "::error title=test_failed::two: fail: Got 3 results, configured to fail if != 0",
    ]
    assert lines[-2].startswith("::error title=dbt-ripple select::0 of 3 tests passed")
    assert lines[-1].startswith("::warning title=dbt-ripple gate::CAUTION")


def test_the_tests_to_run_are_counted_where_they_were_not_run() -> None:
    lines = list(github(gate_answer("amount * 2", None), Path()))
    assert lines[-2].startswith("::notice title=dbt-ripple select::3 of 3 tests")
    assert not any(
        "dbt-ripple select" in line for line in github(gate_answer("1", None, also=False), Path())
    )


@pytest.mark.parametrize("ran", [None, RAN])
def test_sarif_has_the_tests_and_the_failures(ran: SelectionRun | None) -> None:
    (run,) = sarif(gate_answer("amount * 2", ran), Path())["runs"]
    properties = run["properties"]
    assert properties["tests"] == [ONE, TWO, THREE]
    assert properties["models"] == [ORDERS, PAID]
    rules = [rule["id"] for rule in run["tool"]["driver"]["rules"]]
    assert all(rules[result["ruleIndex"]] == result["ruleId"] for result in run["results"])
    failures = {
        result["message"]["text"].partition(":")[0]: (result["ruleId"], result["level"])
        for result in run["results"]
        if result["ruleId"].endswith("_failed")
    }
    if ran is None:
        assert (failures, "results" in properties) == ({}, False)
    else:
        assert failures == {
            "paid": ("build_failed", "error"),
            "one": ("test_failed", "warning"),
            "two": ("test_failed", "error"),
        }
        assert properties["results"] == RAN.statuses


def test_sarif_without_select_says_nothing_of_tests() -> None:
    (run,) = sarif(gate_answer("amount * 2", None, also=False), Path())["runs"]
    assert run["properties"].keys() == {"decision", "risk_level", "approved_by"}
    assert not any(rule["id"].endswith("_failed") for rule in run["tool"]["driver"]["rules"])
