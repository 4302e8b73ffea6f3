"""What the semantic layer offers no more: `impact` says before the edit what `gate` says after it."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hand_made import node
from msgspec.structs import replace
from semantic_world import COLUMNS, shop

from dbt_ripple.artifacts import Node, Project
from dbt_ripple.errors import RippleError
from dbt_ripple.governance.gate import GateReport, gate
from dbt_ripple.governance.hypothetical_changes import Change
from dbt_ripple.governance.impact import impact

BOARD = node("exposure.p.board", None, "metric.p.costs", owner={"name": "o"})
Layer = dict[str, Node]
Edit = Callable[[Layer], None]


def without(model: str, name: str) -> Edit:
    def edit(layer: Layer) -> None:
        for of in (layer[model].entities, layer[model].dimensions, layer[model].measures):
            of[:] = [e for e in of if e["name"] != name]

    return edit


def called(model: str, name: str, to: str) -> Edit:
    def edit(layer: Layer) -> None:
        of = layer[model]
        for elements in (of.entities, of.dimensions, of.measures):
            for e in elements:
                if e["name"] == name:
                    e |= {"name": to, "expr": e.get("expr") or name}

    return edit


def metric_called(name: str, to: str) -> Edit:
    def edit(layer: Layer) -> None:
        metric = layer.pop(f"metric.{name}")
        layer[f"metric.{to}"] = replace(metric, name=to, unique_id=f"metric.p.{to}")

    return edit


def not_grouped(layer: Layer) -> None:
    params = layer["saved_query.by_region"].query_params
    params["group_by"] = [g for g in params["group_by"] if "region" not in g]


def findings_of(report: GateReport) -> dict[str, str]:
    return {
        ".".join(filter(None, (f.unique_id, f.column))): f.reason.message
        for f in report.findings
        if f.rule == "semantic_removed"
    }


EDITS: dict[str, tuple[str, Change, Edit, str, dict[str, str]]] = {
    "a dimension that nobody asks for": (
        *("semantic_model.p.customers", Change("drop", "region")),
        *(without("semantic_model.customers", "region"), "BLOCKED"),
        {"semantic_model.p.customers.region": "the dimension is removed"},
    ),
    "an entity that nobody asks for": (
        *("semantic_model.p.orders", Change("drop", "order__status")),
        *(without("semantic_model.orders", "status"), "BLOCKED"),
        {"semantic_model.p.orders.status": "the dimension is removed"},
    ),
    "a measure that a metric reads": (
        *("semantic_model.p.orders", Change("drop", "costs")),
        *(without("semantic_model.orders", "costs"), "BLOCKED"),
        {"semantic_model.p.orders.costs": "the measure is removed"},
    ),
    "a measure under another name": (
        *("semantic_model.p.orders", Change("rename", "costs", "expenses")),
        *(called("semantic_model.orders", "costs", "expenses"), "BLOCKED"),
        {"semantic_model.p.orders.costs": "the measure is renamed to expenses"},
    ),
    "a metric that nobody reads": (
        *("metric.p.bought", Change("remove")),
        *(lambda layer: layer.pop("metric.bought"), "CAUTION"),
        {"metric.p.bought": "the metric is removed"},
    ),
    "a metric that others read": (
        *("metric.p.costs", Change("remove")),
        *(lambda layer: layer.pop("metric.costs"), "BLOCKED"),
        {"metric.p.costs": "the metric is removed"},
    ),
    "a metric under another name": (
        *("metric.p.bought", Change("rename", "bought", "converted")),
        *(metric_called("bought", "converted"), "CAUTION"),
        {"metric.p.bought": "the metric is renamed to converted"},
    ),
    "a metric that others read, under another name": (
        *("metric.p.revenue", Change("rename", "revenue", "income")),
        *(metric_called("revenue", "income"), "BLOCKED"),
        {"metric.p.revenue": "the metric is renamed to income"},
    ),
    "a saved query": (
        *("saved_query.p.paid", Change("remove")),
        *(lambda layer: layer.pop("saved_query.paid"), "CAUTION"),
        {"saved_query.p.paid": "the saved query is removed"},
    ),
    "a group-by of a saved query": (
        *("saved_query.p.by_region", Change("drop", "customer__region")),
        *(not_grouped, "CAUTION"),
        {"saved_query.p.by_region.customer__region": "the column is removed"},
    ),
    "a semantic model": (
        *("semantic_model.p.customers", Change("remove")),
        *(lambda layer: layer.pop("semantic_model.customers"), "BLOCKED"),
        {"semantic_model.p.customers": "the semantic model is removed"},
    ),
}


@pytest.mark.parametrize("what", EDITS)
def test_before_and_after_the_same_edit(what: str) -> None:
    unique_id, change, edit, decision, findings = EDITS[what]
    base = shop(more=(BOARD,))
    before = impact(base, base.nodes[unique_id], [change])
    after = gate(base, shop(edit=edit, more=(BOARD,)))
    assert (before.decision, after.decision) == (decision, decision)
    assert findings_of(after) == findings
    assert before.affected_assets == after.affected


def test_what_nobody_asks_for_is_named_all_the_same() -> None:
    def more(layer: Layer) -> None:
        layer["semantic_model.orders"].dimensions.append({"name": "note", "type": "categorical"})

    base = shop(edit=more)
    report = impact(base, base.nodes["semantic_model.p.orders"], [Change("drop", "note")])
    assert (report.decision, report.affected_assets) == ("CAUTION", [])
    assert "from outside" in report.recommendation
    judged = gate(base, shop())
    assert judged.decision == "CAUTION"
    assert findings_of(judged) == {"semantic_model.p.orders.note": "the dimension is removed"}


def test_what_comes_is_no_finding() -> None:
    def fewer(layer: Layer) -> None:
        layer.pop("saved_query.paid")

    assert findings_of(gate(shop(edit=fewer), shop())) == {}


REFUSED: dict[str, tuple[str, list[Change], str]] = {
    "a typo": ("semantic_model.p.orders", [Change("drop", "statsu")], "did you mean status"),
    "a type": ("metric.p.costs", [Change("retype", "costs", "int")], "no type"),
    "a column of a metric": ("metric.p.costs", [Change("drop", "costs")], "--deprecate"),
    "nothing": ("metric.p.costs", [], "--rename costs:NEW"),
    "a name that is taken": (
        *("semantic_model.p.orders", [Change("rename", "status", "costs")]),
        "has costs already",
    ),
    "a metric's name that is taken": (
        *("metric.p.costs", [Change("rename", "costs", "revenue")]),
        "there is a metric revenue already",
    ),
    "twice": (
        *("semantic_model.p.orders", [Change("drop", "status"), Change("rename", "status", "s")]),
        "changed twice",
    ),
    "all of it and a part": (
        *("metric.p.costs", [Change("remove"), Change("rename", "costs", "c")]),
        "give it alone",
    ),
    "the name it has": (
        *("semantic_model.p.orders", [Change("rename", "status", "status")]),
        "is its name already",
    ),
    "another name in a saved query": (
        *("saved_query.p.paid", [Change("rename", "orders", "o")]),
        "rename the metric",
    ),
}


@pytest.mark.parametrize("what", REFUSED)
def test_what_makes_no_sense_is_refused(what: str) -> None:
    unique_id, changes, message = REFUSED[what]
    base: Project = shop()
    with pytest.raises(RippleError) as refused:
        impact(base, base.nodes[unique_id], changes)
    assert message in f"{refused.value.what} {refused.value.fix}"


def test_who_says_the_name_is_to_be_edited_and_nobody_else() -> None:
    base = shop()
    report = impact(base, base.nodes["model.p.orders"], [Change("drop", "status")])
    assert "move semantic_model:orders off status" in report.recommendation.lower()
    after = gate(base, shop({k: v for k, v in COLUMNS.items() if k != "status"}))
    (reach,) = (f.reason.message for f in after.findings if f.rule == "blast_radius")
    assert "(semantic_model:orders, " in reach
