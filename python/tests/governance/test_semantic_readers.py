"""Whom a change reaches in the semantic layer, and what it breaks there, to the gate and to impact."""

from __future__ import annotations

import json
import random
from pathlib import Path

import pytest
from hand_made import node
from msgspec.structs import replace
from semantic_world import COLUMNS, ORDERS, layer, shop

from dbt_ripple.artifacts import Node, Project
from dbt_ripple.governance.affected_assets import Affected
from dbt_ripple.governance.gate import GateReport, gate
from dbt_ripple.governance.hypothetical_changes import Change
from dbt_ripple.governance.impact import impact
from dbt_ripple.governance.ripple_yml import Config

DASHBOARD = node("exposure.p.board", None, "metric.p.revenue", owner={"name": "o"})
FEED = node("exposure.p.feed", None, ORDERS, owner={"name": "o"})


def reached(affected: list[Affected]) -> dict[str, tuple[str, list[str], bool]]:
    return {
        a.unique_id.replace(".p.", "."): (a.severity, a.affected_references, a.may_read)
        for a in affected
    }


def broken(report: GateReport) -> dict[str | None, str]:
    return {f.unique_id: f.reason.message for f in report.findings if f.rule == "reader_broken"}


def gone(column: str) -> Project:
    return shop({k: v for k, v in COLUMNS.items() if k != column}, more=(DASHBOARD, FEED))


def test_an_edit_reaches_who_reads_it() -> None:
    base = shop(more=(DASHBOARD, FEED))
    report = gate(base, shop({**COLUMNS, "cost": "cost + 1"}, more=(DASHBOARD, FEED)))
    assert reached(report.affected) == {
        "semantic_model.orders": ("warning", ["cost"], False),
        "metric.costs": ("warning", ["cost"], False),
        "metric.profit": ("warning", ["cost"], False),
        "metric.margin": ("warning", ["cost"], False),
        "exposure.feed": ("warning", ["cost"], True),
    }
    assert broken(report) == {}
    paths = {a.unique_id: a.path for a in report.affected}
    assert paths["metric.p.margin"] == [
        *("model.p.orders", "semantic_model.p.orders"),
        *("metric.p.costs", "metric.p.profit", "metric.p.margin"),
    ]


def test_an_exposure_of_a_metric_reads_the_metric() -> None:
    base = shop(more=(DASHBOARD,))
    report = gate(base, shop({**COLUMNS, "amount": "amount * 2"}, more=(DASHBOARD,)))
    assert reached(report.affected)["exposure.board"] == ("warning", ["amount"], False)
    report = gate(base, shop({**COLUMNS, "cost": "cost * 2"}, more=(DASHBOARD,)))
    assert "exposure.board" not in reached(report.affected)


def test_a_column_that_a_measure_reads_is_a_broken_reader() -> None:
    report = gate(shop(more=(DASHBOARD, FEED)), gone("amount"))
    assert report.decision == "BLOCKED"
    assert broken(report) == {
        "semantic_model.p.orders": "cannot find amount, which measure revenue reads: "
        "orders.amount is gone"
    }
    reached_assets = reached(report.affected)
    breaking = {name for name, (severity, *_) in reached_assets.items() if severity == "breaking"}
    assert breaking == {
        "semantic_model.orders",
        *(f"metric.{n}" for n in ("revenue", "profit", "margin", "revenue_so_far")),
        "metric.orders_of_spenders",
        *("saved_query.by_region", "exposure.board"),
    }
    assert reached_assets["exposure.feed"] == ("warning", ["amount"], True)


def test_a_column_that_nobody_reads_reaches_who_may_read_it() -> None:
    report = gate(shop(more=(FEED,)), gone("note"))
    assert report.decision != "BLOCKED"
    assert reached(report.affected) == {"exposure.feed": ("warning", ["note"], True)}


def test_a_dimension_that_is_asked_for_is_not_taken_away() -> None:
    def edit(nodes: dict[str, Node]) -> None:
        of = nodes["semantic_model.orders"]
        dimensions = [d for d in of.dimensions if d["name"] != "status"]
        nodes["semantic_model.orders"] = replace(of, dimensions=dimensions)

    report = gate(shop(), shop(edit=edit))
    assert report.decision == "BLOCKED"
    assert broken(report).keys() == {"metric.p.paid_orders", "saved_query.p.paid"}
    assert "cannot find dimension order__status" in broken(report)["saved_query.p.paid"]
    reached_assets = reached(report.affected)
    assert reached_assets["metric.paid_orders"] == ("breaking", ["status"], False)
    assert reached_assets["saved_query.paid"] == ("breaking", ["status"], False)
    assert reached_assets.keys() == {"metric.paid_orders", "saved_query.paid"}


def test_a_metric_that_is_read_is_not_taken_away() -> None:
    base = shop(more=(DASHBOARD,))
    report = gate(base, shop(edit=lambda nodes: nodes.pop("metric.revenue"), more=(DASHBOARD,)))
    broken_nodes = broken(report)
    assert broken_nodes.keys() == {
        *("metric.p.profit", "metric.p.margin", "metric.p.orders_of_spenders"),
        *("saved_query.p.by_region", "exposure.p.board"),
    }
    assert broken_nodes["metric.p.profit"].startswith("cannot find metric revenue")
    assert broken_nodes["exposure.p.board"] == "reads revenue, which is gone"


def test_a_dimension_that_nobody_asks_for_may_go() -> None:
    def edit(nodes: dict[str, Node]) -> None:
        of = nodes["semantic_model.orders"]
        entities = [e for e in of.entities if e["name"] != "order"]
        nodes["semantic_model.orders"] = replace(of, entities=entities, primary_entity="order")

    report = gate(shop(), shop(edit=edit))
    assert broken(report) == {}
    assert report.affected == []


def test_what_was_broken_before_decides_nothing() -> None:
    def edit(nodes: dict[str, Node]) -> None:
        nodes["semantic_model.orders"].measures.append(
            {"name": "odd", "agg": "sum", "expr": "nowhere"}
        )

    report = gate(shop(edit=edit), shop({**COLUMNS, "cost": "cost + 1"}, edit=edit))
    assert report.decision != "BLOCKED"
    assert broken(report) == {}


def test_impact_says_the_same_as_the_gate() -> None:
    base = shop(more=(DASHBOARD, FEED))
    for column in COLUMNS:
        report = impact(base, base.nodes[ORDERS], [Change("drop", column)])
        after = gate(base, gone(column), config=Config())
        assert reached(report.affected_assets) == reached(after.affected)
        assert (report.decision == "BLOCKED") == bool(broken(after))


def test_impact_of_what_is_no_relation_is_refused() -> None:
    project = shop(more=(DASHBOARD,))
    with pytest.raises(Exception, match="has no columns"):
        impact(project, DASHBOARD, [Change("drop", "revenue")])


def python_model() -> Node:
    return node(
        "model.p.forecast", None, ORDERS, language="python", original_file_path="models/forecast.py"
    )


def opaque_model() -> Node:
    return node("model.p.strange", "select from from from", ORDERS)


def over(name: str) -> Node:
    return node(
        f"model.p.over_{name}",
        f"select any_of_it from s.{name}",
        f"model.p.{name}",
        columns=["any_of_it"],
    )


@pytest.mark.parametrize("reader", [python_model(), opaque_model()])
def test_what_cannot_be_seen_through_may_read_it_and_never_breaks(reader: Node) -> None:
    more = (reader, over(reader.name))
    base = shop(more=more)
    head = shop({k: v for k, v in COLUMNS.items() if k != "note"}, more=more)
    for affected in (
        gate(base, head).affected,
        impact(base, base.nodes[ORDERS], [Change("drop", "note")]).affected_assets,
    ):
        reached_assets = reached(affected)
        assert reached_assets[f"model.{reader.name}"] == ("warning", ["note"], True)
        assert reached_assets[f"model.over_{reader.name}"] == ("warning", ["note"], True)
    assert gate(base, head).decision != "BLOCKED"


def test_a_filter_that_cannot_be_read_never_breaks() -> None:
    def edit(nodes: dict[str, Node]) -> None:
        nodes["metric.revenue"] = replace(
            nodes["metric.revenue"], filter="{{ Dimension(var('x')) }}"
        )

    head = shop({k: v for k, v in COLUMNS.items() if k != "status"}, edit=edit)
    reached_assets = reached(gate(shop(edit=edit), head).affected)
    assert reached_assets["metric.paid_orders"][0] == "breaking"
    assert reached_assets["metric.revenue"] == ("warning", ["status"], True)
    assert reached_assets["metric.profit"] == ("warning", ["status"], True)


def test_how_a_manifest_is_ordered_decides_nothing() -> None:
    head = {**COLUMNS, "amount": "amount + 1", "status": "upper(status)"}
    expected = gate(shop(), shop(head))
    names = [n.unique_id.replace(".p.", ".") for n in layer()]
    for seed in range(20):
        random.Random(seed).shuffle(names)

        def edit(nodes: dict[str, Node], order: list[str] = names) -> None:
            reordered = {name: nodes[name] for name in order}
            nodes.clear()
            nodes.update(reordered)

        assert gate(shop(), shop(head, edit=edit)).document() == expected.document()


def test_a_manifest_of_dbt_is_read(tmp_path: Path) -> None:
    """What the fields are called in a manifest, whatever its version."""
    fixture = Path(__file__).parents[1] / "artifacts/fixtures/v12_dbt_1_11/manifest.json"
    manifest = json.loads(fixture.read_text())
    model = manifest["semantic_models"]["semantic_model.shop.orders"]
    assert {"entities", "dimensions", "measures", "defaults"} <= model.keys()
    assert "type_params" in manifest["metrics"]["metric.shop.revenue"]
    assert "query_params" in manifest["saved_queries"]["saved_query.shop.revenue_by_day"]
