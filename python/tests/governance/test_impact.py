"""A change nobody has written yet: whom it reaches, how badly, and what is refused."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hand_made import check, node, project
from twin_project import Command

from dbt_ripple.artifacts import Node, Project, find_node
from dbt_ripple.errors import RippleError
from dbt_ripple.governance.gate import gate
from dbt_ripple.governance.hypothetical_changes import Change
from dbt_ripple.governance.impact import ImpactReport, impact

RAW = node("source.p.raw", columns={"id": "bigint", "amount": "decimal(12,2)", "code": "string"})


def of(world: Project, name: str, *changes: Change) -> ImpactReport:
    return impact(world, find_node(world, name)[0], changes)


def severities_of(report: ImpactReport) -> dict[str, tuple[str, list[str]]]:
    return {a.name: (a.severity, a.affected_references) for a in report.affected_assets}


def world(*nodes: Node) -> Project:
    return project(RAW, *nodes, catalog={RAW.unique_id: ["id", "amount", "code"]})


def exposure(name: str, *parents: str, **meta: object) -> Node:
    return node(f"exposure.p.{name}", None, *parents, type="dashboard", meta=meta)


# --- the worked day --------------------------------------------------------------------------------

TUTORIAL = [
    ("stg_orders", "dbt_model", ["order_total", "legacy_discount_code"], "breaking"),
    ("fct_orders", "dbt_model", ["order_total"], "breaking"),
    ("daily_revenue_report", "dag", ["order_total"], "breaking"),
    ("customer_ltv_model", "spark_job", ["order_total"], "warning"),
]


def test_the_worked_day(twin: Path, command: Command) -> None:
    code, out, _ = command(
        *("impact", "raw_orders", "--project-dir", twin / "good", "--format", "json"),
        *("--rename", "order_total:total_amount", "--drop", "legacy_discount_code"),
    )
    report = json.loads(out)
    assert code == 1
    assert list(report) == [
        "schema_version",
        *("decision", "risk_level", "affected_count", "affected_assets"),
        *("reason", "recommendation"),
        *("broken_tests", "affected_tests", "broken_promises", "broken_promises_coded"),
    ]
    assert (report["decision"], report["risk_level"]) == ("BLOCKED", "high")
    assert report["affected_count"] == 4
    keys = ("name", "asset_type", "affected_references", "severity")
    assert [tuple(a[k] for k in keys) for a in report["affected_assets"]] == TUTORIAL
    assert [a["owner"] for a in report["affected_assets"]] == [
        *("data-platform@twin.example", "Finance Analytics", "Finance Analytics", "Data Science")
    ]
    assert report["affected_assets"][2]["path"] == [
        *("source.twin.raw.raw_orders", "model.twin.stg_orders", "model.twin.fct_orders"),
        "exposure.twin.daily_revenue_report",
    ]
    assert "total_amount beside order_total" in report["recommendation"]
    assert report["reason"] == (
        "stg_orders, fct_orders and daily_revenue_report would break (what reads order_total and "
        "legacy_discount_code); customer_ltv_model may differ."
    )


def test_text_and_markdown(twin: Path, command: Command) -> None:
    arguments = ("impact", "raw_orders", "--project-dir", twin / "good", "--drop", "order_total")
    code, out, _ = command(*arguments)
    assert code == 1
    assert out.startswith(
        "BLOCKED  raw_orders: order_total dropped\nrisk high, 4 assets affected\nreason: "
    )
    assert "to tell: Data Science, Finance Analytics, data-platform@twin.example\n" in out
    code, out, _ = command(*arguments, "--format", "markdown")
    assert code == 1
    assert out.startswith("### BLOCKED: `raw_orders`, order_total dropped\n")
    assert "```mermaid\nflowchart LR\n" in out


def test_what_nothing_reads_may_go(twin: Path, command: Command) -> None:
    code, out, _ = command(
        "impact", "raw_customers", "--project-dir", twin / "good", "--drop", "fax"
    )
    assert code == 0
    assert out.startswith("APPROVED  raw_customers: fax dropped\nrisk low, 0 assets affected\n")


# --- severities ------------------------------------------------------------------------------------


def test_a_rename_passes_by_a_star_until_somebody_says_the_name() -> None:
    report = of(
        world(
            node("model.p.stg", "select * from s.raw", "source.p.raw"),
            node("model.p.int", "select * from s.stg where id > 0", "model.p.stg"),
            node("model.p.named", "select id, amount from s.int", "model.p.int"),
            node("model.p.other", "select id from s.int", "model.p.int"),
            exposure("reader", "model.p.int", referenced_columns=["int.amount"]),
            exposure("below", "model.p.named", referenced_columns=["amount"]),
            exposure("aside", "model.p.other", referenced_columns=["id"]),
        ),
        "raw",
        Change("rename", "amount", "total"),
    )
    assert severities_of(report) == {
        "stg": ("warning", ["amount"]),
        "int": ("warning", ["amount"]),
        "named": ("breaking", ["amount"]),
        "reader": ("breaking", ["amount"]),
        "below": ("breaking", ["amount"]),
    }


def test_a_column_that_is_dropped_is_lost_by_whoever_passes_it_on() -> None:
    report = of(
        world(
            node("model.p.stg", "select * from s.raw", "source.p.raw"),
            node("model.p.count", "select count(*) as n from s.stg", "model.p.stg"),
        ),
        "raw",
        Change("drop", "amount"),
    )
    assert severities_of(report) == {"stg": ("breaking", ["amount"])}


def test_what_only_stands_on_a_broken_model_is_told_apart() -> None:
    report = of(
        world(
            node("model.p.stg", "select id, amount, code is null as c from s.raw", "source.p.raw"),
            node("model.p.m", "select id, amount from s.stg", "model.p.stg"),
            exposure("e", "model.p.m", referenced_columns=["amount"]),
            exposure("unknown", "model.p.m"),
        ),
        "raw",
        Change("drop", "code"),
    )
    assert severities_of(report) == {
        "stg": ("breaking", ["code"]),
        "m": ("info", []),
        "e": ("info", []),
        "unknown": ("info", []),
    }
    assert report.risk_level == "medium"


def test_what_only_stands_below_is_not_counted() -> None:
    """One reader breaks; the seven that stand below it read nothing of the column."""
    below = [
        node(f"model.p.m{i}", f"select id from s.{up}", f"model.p.{up}", meta={"owner": "zoe"})
        for i, up in enumerate(["stg", *(f"m{n}" for n in range(6))])
    ]
    stg = node("model.p.stg", "select id, amount, code is null as c from s.raw", "source.p.raw")
    base = world(stg, *below)
    report = of(base, "raw", Change("drop", "code"))
    assert [a.severity for a in report.affected_assets] == ["breaking", *["info"] * 7]
    assert (report.document()["affected_count"], report.risk_level) == (1, "medium")
    assert "zoe" not in report.recommendation
    now = project(RAW, stg, *below, catalog={RAW.unique_id: ["id", "amount"]})
    judged = gate(base, now)
    assert (judged.blast_radius, judged.risk_level) == (1, "medium")


def test_a_filter_is_a_reference_and_below_it_only_the_rows_may_differ() -> None:
    report = of(
        world(
            node("model.p.stg", "select id, amount, code from s.raw", "source.p.raw"),
            node("model.p.m", "select id, amount from s.stg where code = 'x'", "model.p.stg"),
            exposure("e", "model.p.m", referenced_columns=["amount"]),
        ),
        "raw",
        Change("drop", "code"),
    )
    assert severities_of(report) == {
        "stg": ("breaking", ["code"]),
        "m": ("breaking", ["code"]),
        "e": ("warning", ["code"]),
    }


def test_a_retype_may_change_values_and_breaks_an_enforced_contract() -> None:
    contract = node(
        "model.p.promised",
        "select id, amount from s.stg",
        "model.p.stg",
        columns={"id": "bigint", "amount": "decimal(12,2)"},
        config={"contract": {"enforced": True}},
    )
    report = of(
        world(
            node("model.p.stg", "select id, amount from s.raw", "source.p.raw"),
            node("model.p.rounded", "select id, round(amount) as amount from s.stg", "model.p.stg"),
            contract,
            node("model.p.ids", "select id from s.stg", "model.p.stg"),
        ),
        "raw",
        Change("retype", "amount", "double"),
    )
    assert severities_of(report) == {
        "stg": ("warning", ["amount"]),
        "rounded": ("warning", ["amount"]),
        "promised": ("breaking", ["amount"]),
    }


def test_what_cannot_be_seen_through_is_warned_of_and_named() -> None:
    blind = node("model.p.blind", None, "source.p.raw", language="python")
    report = of(
        world(blind, node("model.p.below", "select * from s.blind", "model.p.blind")),
        "raw",
        Change("drop", "code"),
    )
    assert severities_of(report)["blind"] == ("warning", ["code"])
    assert report.decision == "CAUTION"
    assert "model.p.blind" in report.opaque


def test_deprecation_takes_everything_from_every_reader() -> None:
    report = of(
        world(
            node("model.p.stg", "select id, amount from s.raw", "source.p.raw"),
            node("model.p.n", "select count(*) as n from s.raw", "source.p.raw"),
            exposure("direct", "source.p.raw"),
        ),
        "raw",
        Change("remove"),
    )
    assert severities_of(report) == {
        "stg": ("breaking", ["id", "amount"]),
        "n": ("breaking", ["*rows*"]),
        "direct": ("breaking", ["id", "amount", "code"]),
    }


def test_tests_of_a_removed_relation_do_not_block_because_dbt_leaves_them_out() -> None:
    stg = node("model.p.stg", "select id, amount from s.raw", "source.p.raw")
    unique = check("unique", "select id from s.stg group by id having count(*) > 1", "model.p.stg")
    asked = world(stg, unique)
    report = of(asked, "stg", Change("remove"))
    assert (report.decision, report.broken_tests, report.tests) == (
        "APPROVED",
        [],
        ["test.p.unique"],
    )
    assert gate(asked, world()).decision == report.decision
    dropped = of(asked, "stg", Change("drop", "id"))
    assert (dropped.decision, dropped.broken_tests) == ("BLOCKED", ["test.p.unique"])
    below = node("model.p.top", "select id from s.stg", "model.p.stg")
    assert of(world(stg, unique, below), "stg", Change("remove")).decision == "BLOCKED"


def test_names_may_be_swapped() -> None:
    report = of(
        world(node("model.p.stg", "select id from s.raw", "source.p.raw")),
        "raw",
        Change("rename", "amount", "code"),
        Change("rename", "code", "amount"),
    )
    assert report.decision == "APPROVED"


# --- what is refused -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ([], "no change is given"),
        ([Change("drop", "amuont")], "did you mean amount?"),
        ([Change("drop", "zzzzz")], "it has id, amount, code"),
        ([Change("rename", "amount", "code")], "has a column code already"),
        ([Change("rename", "amount", "AMOUNT")], None),
        ([Change("rename", "amount", "x"), Change("rename", "code", "X")], "already"),
        (
            [Change("rename", "amount", "x"), Change("rename", "amount", "y")],
            "already renamed to x",
        ),
        ([Change("rename", "amount", "x"), Change("drop", "amount")], "at once"),
        ([Change("retype", "amount", "dubble")], "did you mean double"),
        ([Change("retype", "amount", "DECIMAL(12, 2)")], "is decimal(12,2) already"),
    ],
)
def test_a_malformed_change_is_refused(changes: list[Change], says: str | None) -> None:
    if says is None:  # another spelling of its own name
        assert of(world(), "raw", *changes).decision == "APPROVED"
        return
    with pytest.raises(RippleError, match=says.replace("(", r"\(").replace(")", r"\)")):
        of(world(), "raw", *changes)


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("raw_orders",), "no change is given"),
        (("raw_order", "--drop", "x"), "did you mean raw_orders"),
        (("raw_orders", "--rename", "order_total"), "not COLUMN:NEW_NAME"),
        (("raw_orders", "--retype", "order_total:"), "not COLUMN:TYPE"),
        (("raw_orders.order_total", "--deprecate"), "names a column"),
        (("crm_sync", "--drop", "x"), "is an exposure, which has no columns"),
        (("raw_orders", "--remane", "a:b"), "No such option"),
    ],
)
def test_the_command_refuses_in_one_line(
    twin: Path, command: Command, arguments: tuple[str, ...], says: str
) -> None:
    code, out, err = command("impact", *arguments, "--project-dir", twin / "good")
    assert (code, out) == (2, "")
    assert err.count("\n") == 1
    assert says in err


# --- what the gate says of the same edit -----------------------------------------------------------


def _gated(base: Project, *nodes: Node) -> str:
    return gate(base, world(*nodes)).decision


def test_impact_before_and_the_gate_after_the_same_edit_agree() -> None:
    stg = "select id, amount, code from s.raw"
    dropped = "select id, code from s.raw"
    reads = "select id, amount from s.stg"
    contract = {"config": {"contract": {"enforced": True}}, "columns": {"id": None, "amount": None}}
    worlds: list[tuple[list[Node], str]] = [
        ([], "APPROVED"),
        ([node("model.p.top", reads, "model.p.stg")], "BLOCKED"),
        ([node("model.p.top", "select id from s.stg", "model.p.stg")], "APPROVED"),
        ([node("model.p.top", "select * from s.stg", "model.p.stg")], "CAUTION"),
        ([node("model.p.top", None, "model.p.stg", language="python")], "CAUTION"),
        ([check("t", "select amount from s.stg where amount < 0", "model.p.stg")], "BLOCKED"),
        ([exposure("e", "model.p.stg")], "CAUTION"),
        ([exposure("e", "model.p.stg", referenced_columns=["amount"])], "BLOCKED"),
        ([exposure("e", "model.p.stg", referenced_columns=["id"])], "APPROVED"),
    ]
    for readers, decision in worlds:
        base = world(node("model.p.stg", stg, "source.p.raw"), *readers)
        report = of(base, "stg", Change("drop", "amount"))
        assert report.decision == decision, readers
        assert _gated(base, node("model.p.stg", dropped, "source.p.raw"), *readers) == decision
    base = world(node("model.p.stg", stg, "source.p.raw", access="public"))
    assert of(base, "stg", Change("drop", "amount")).decision == "BLOCKED"
    assert _gated(base, node("model.p.stg", dropped, "source.p.raw", access="public")) == "BLOCKED"
    base = world(node("model.p.stg", stg, "source.p.raw", **contract))
    report = of(base, "stg", Change("retype", "amount", "double"))
    assert (report.decision, [*map(str, report.promises)]) == (
        "BLOCKED",
        ["amount: retyped to double"],
    )


def test_tests_are_counted() -> None:
    base = world(
        node("model.p.stg", "select id, amount, code from s.raw", "source.p.raw"),
        check("positive", "select amount from s.stg where amount < 0", "model.p.stg"),
        check("none", "select id from s.stg where id is null", "model.p.stg"),
        node("unit_test.p.adds", None, "model.p.stg", model="stg"),
    )
    report = of(base, "raw", Change("retype", "amount", "double"))
    assert (report.broken_tests, report.tests[0]) == ([], "test.p.positive")
    report = of(base, "stg", Change("drop", "amount"))
    assert report.broken_tests == ["test.p.positive"]
    assert "test.p.none" not in report.tests
    assert report.document()["broken_tests"] == ["test.p.positive"]


def test_what_only_a_test_reads_is_not_said_to_be_free_to_go() -> None:
    reads = check("test.p.amount", "select amount from s.stg where amount is null", "model.p.stg")
    base = world(node("model.p.stg", "select id, amount from s.raw", "source.p.raw"), reads)
    report = of(base, "stg", Change("drop", "amount"))
    assert report.decision == "BLOCKED"
    assert report.recommendation == "Edit the tests with it: amount."
