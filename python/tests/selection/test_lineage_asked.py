"""Tests of lineage: selected where the lineage may change, and judged by the gate before the merge."""

from __future__ import annotations

from typing import Any

import pytest
from hand_made import LISTED, RAW, names, node, orders, picked, project

from dbt_ripple.artifacts import Project
from dbt_ripple.artifacts.project import Column, TestMetadata
from dbt_ripple.changes import compare
from dbt_ripple.governance.gate import gate
from dbt_ripple.reasons import Code
from dbt_ripple.selection.explain import explain
from dbt_ripple.selection.select import select_from

STG = "select id, amount, status from s.orders"
FCT = "select id, amount * 2 as net, status from s.stg"


def side(
    stg: str = STG,
    fct: str = FCT,
    kind: str = "comes_from",
    health: bool = False,
    severity: str = "ERROR",
    language: str = "sql",
    **asks: Any,
) -> Project:
    test = node(
        "test.p.t",
        "select 1 as problem",
        "model.p.fct",
        config={"severity": severity},
        test_metadata=TestMetadata(
            name=kind, namespace="dbt_ripple", kwargs={"column_name": "net", **asks}
        ),
        column_name="net",
        attached_node="model.p.fct",
    )
    source = orders()
    if health:
        source.columns["status"] = Column(name="status", meta={"pii": "health"})
    made = [
        node("model.p.stg", stg, RAW, language=language),
        node("model.p.fct", fct, "model.p.stg"),
    ]
    return project(source, *made, test, catalog=LISTED, adapter="duckdb")


AMOUNT = {"columns": ["orders.amount"]}
ONLY = {**AMOUNT, "only": True}
NOT_STATUS = {"kind": "not_from", "columns": ["orders.status"]}
LEAKS = FCT.replace("amount * 2", "concat(amount, status)")


@pytest.mark.parametrize(
    ("asks", "edit", "selected"),
    [
        # Another value, and the same lineage.
        (AMOUNT, {"fct": FCT.replace("2", "3")}, []),
        (AMOUNT, {"stg": STG + " where id > 3"}, []),
        (AMOUNT, {"fct": "with x as (select * from s.stg) select id, x.amount * 2 as net, status from x"}, []),
        # Another lineage.
        (AMOUNT, {"fct": LEAKS}, ["t"]),
        (AMOUNT, {"stg": STG.replace("amount", "id as amount", 1)}, ["t"]),
        (AMOUNT, {"fct": FCT.replace("amount * 2", "2")}, ["t"]),
        (AMOUNT, {"language": "python"}, ["t"]),
        # What is declared to be personal is part of what the test is about.
        ({"kind": "not_from", "pii": True}, {"fct": FCT.replace("2", "3")}, []),
    ],
)  # fmt: skip
def test_it_is_selected_where_the_lineage_may_change(
    asks: dict[str, Any], edit: dict[str, Any], selected: list[str]
) -> None:
    base, head = side(**asks), side(**{**asks, **edit})
    assert names(base, head) == selected
    (reason,) = [t.reason for t in picked(base, head).tests] or [None]
    assert reason in (None, Code.LINEAGE_CHANGED(name="fct", column="net"))


def test_it_is_selected_where_personal_data_is_declared_or_the_test_asks_otherwise() -> None:
    asks = {"kind": "not_from", "pii": "health", "fct": LEAKS}
    assert names(side(**asks), side(**asks)) == []
    assert names(side(**asks), side(**asks, health=True)) == ["t"]
    assert names(side(**AMOUNT), side(**ONLY)) == ["t"]


def test_explain_says_that_the_lineage_is_as_it_was() -> None:
    comparison = compare(side(**AMOUNT), side(**AMOUNT, fct=FCT.replace("2", "3")))
    test = comparison.head.nodes["test.p.t"]
    explanation = explain(comparison, select_from(comparison), test)
    assert explanation.reason == Code.LINEAGE_AS_BEFORE(name="fct", column="net")


def findings_of(base: Project, head: Project) -> list[tuple[str, str | None, str]]:
    findings = [f for f in gate(base, head).findings if f.rule == "lineage_broken"]
    assert {f.unique_id for f in findings} <= {"model.p.fct"}
    return [(f.level, f.column, f.reason.message) for f in findings]


def test_the_gate_judges_what_head_declares() -> None:
    assert findings_of(side(**ONLY), side(**ONLY)) == []
    way = "orders.status > stg.status > fct.net"
    broken = [("block", "net", f"comes from orders.status, too: {way}")]
    assert findings_of(side(**ONLY), side(**ONLY, fct=LEAKS)) == broken
    assert findings_of(side(**NOT_STATUS), side(**NOT_STATUS, fct=LEAKS)) == [
        ("block", "net", f"comes from orders.status: {way}")
    ]
    lost = FCT.replace("amount * 2", "2")
    assert findings_of(side(**AMOUNT), side(**AMOUNT, fct=lost)) == [
        ("block", "net", "does not come from orders.amount")
    ]
    # A test that somebody adds, and that does not hold, is of this change.
    assert findings_of(side(**AMOUNT, fct=LEAKS), side(**ONLY, fct=LEAKS)) == broken


def test_what_base_has_is_known_whatever_way_it_goes() -> None:
    renamed = (
        "with y as (select status as s2, * from s.stg) select concat(amount, s2) as net from y"
    )
    ((level, _, message),) = findings_of(side(**ONLY, fct=LEAKS), side(**ONLY, fct=renamed))
    assert (level, message.endswith("(already so on base)")) == ("known", True)


def test_what_cannot_be_analysed_is_reported_and_does_not_block() -> None:
    for asks in (AMOUNT, ONLY, NOT_STATUS, {"kind": "not_from", "pii": True}):
        findings = findings_of(side(**asks), side(**asks, language="python"))
        assert findings
        assert {level for level, *_ in findings} == {"warn"}
        assert all("stg cannot be analysed: a Python model" in message for *_, message in findings)


def test_personal_data() -> None:
    asks = {"kind": "not_from", "pii": True, "health": True}
    way = "orders.status > stg.status > fct.net"
    assert findings_of(side(**asks), side(**asks, fct=LEAKS)) == [
        ("block", "net", f"comes from orders.status, which is health: {way}")
    ]
    assert (
        findings_of(side(**asks), side(**asks, fct=LEAKS.replace("status)", "md5(status))"))) == []
    )
    tagged = side(**asks)
    tagged.nodes["model.p.fct"].columns["net"] = Column(name="net", meta={"pii": "name"})
    assert findings_of(side(**asks), tagged) == [("block", "net", "is declared to be name")]


def test_the_rows_of_a_source() -> None:
    counts = FCT.replace("amount * 2", "amount + count(*) over ()")
    ((*_, message),) = findings_of(side(**ONLY), side(**ONLY, fct=counts))
    assert message.startswith("comes from the number of rows of orders")


def test_a_test_that_warns_does_not_block() -> None:
    ((level, *_),) = findings_of(side(**ONLY), side(**ONLY, fct=LEAKS, severity="warn"))
    assert level == "warn"


def test_a_name_that_is_not_there_is_one_line_with_the_nearest() -> None:
    for name, like in {
        "orders.amuont": "did you mean orders.amount?",
        "ordesr.amount": "did you mean orders?",
        "orders": "name one of its columns, or orders.* for all",
    }.items():
        ((level, _, message),) = findings_of(side(**AMOUNT), side(columns=[name]))
        assert level == "block"
        assert message.startswith(f"{name}: there is no") or name in message
        assert like in message
    ((_, _, message),) = findings_of(side(**AMOUNT), side(kind="not_from"))
    assert message == "it asks for nothing: give `columns` or `pii`"
