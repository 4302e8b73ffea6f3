"""The gate: every rule on the twin projects, and that a stricter gate is never milder."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import msgspec
import pytest
import twin_project
from hand_made import node as made
from hand_made import project
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from dbt_ripple.artifacts import Project, read_project
from dbt_ripple.changes import compare
from dbt_ripple.governance.gate import GateAnswer, GateReport, gate, gate_from
from dbt_ripple.governance.ripple_yml import Config, Excepted, read_config
from dbt_ripple.governance.rules import LEVELS, RULES
from dbt_ripple.rendering.gate import rendered_gate

ALL_OFF = dict.fromkeys(RULES, "off")


def findings_of(report: GateReport) -> list[dict[str, str]]:
    return [
        {
            "rule": f.rule,
            "level": f.level,
            "unique_id": f.unique_id or "",
            "column_name": f.column or "",
        }
        for f in report.findings
    ]


def rules(report: GateReport) -> list[str]:
    return [f.rule for f in report.findings]


def test_the_bad_twin_breaks_every_rule_exactly_once(
    good: Project, bad: Project, twin: Path
) -> None:
    report = gate(good, bad, config=read_config(twin / "bad"))
    assert report.decision == "BLOCKED"
    assert findings_of(report) == twin_project.expected("gate_findings")
    assert Counter(rules(report)) == dict.fromkeys(twin_project.BROKEN, 1)


def test_each_rule_that_no_build_can_break_is_broken_once_by_a_project_that_is_only_compiled(
    good: Project, tmp_path: Path
) -> None:
    head = read_project(twin_project.build("unbuilt", tmp_path) / "target")
    report = gate(good, head)
    assert findings_of(report) == twin_project.expected("gate_findings_unbuilt")
    assert Counter(rules(report)) == dict.fromkeys(twin_project.UNBUILT, 1)
    assert {*twin_project.BROKEN, *twin_project.UNBUILT} == {*RULES}


def test_the_good_twin_breaks_none(good: Project) -> None:
    report = gate(good, good)
    assert (report.decision, report.risk_level, report.blast_radius) == ("APPROVED", "low", 0)
    assert (report.findings, report.affected) == ([], [])


def test_what_base_does_not_keep_either_is_reported_and_decides_nothing(bad: Project) -> None:
    report = gate(bad, bad)
    assert report.decision == "APPROVED"
    assert {f.level for f in report.findings} == {"known"}
    assert set(rules(report)) == {
        *("owner_missing", "tier1_key_untested", "pii_untagged", "pii_exposed", "source_drift"),
        "lineage_broken",
    }
    assert all("already so on base" in f.reason.message for f in report.findings)


def test_nor_does_it_where_the_change_touches_it(bad: Project, twin: Path) -> None:
    head = read_project(twin / "bad" / "target")
    node = head.nodes["model.twin.mailing_list"]
    words = ("email as", "upper(email) as")
    head.nodes[node.unique_id] = replace(
        node,
        raw_code=node.raw_code.replace(*words),
        compiled_code=(node.compiled_code or "").replace(*words),
    )
    report = gate(bad, head)
    of_node = {f.level for f in report.findings if f.unique_id == node.unique_id}
    assert "known" in of_node
    assert {f.rule for f in report.findings if f.level != "known"} == {"certified_reached"}


@pytest.mark.parametrize("edit", ["rows", "a column", "a column is gone"])
@pytest.mark.parametrize("valued", [True, False])
def test_an_edit_of_a_certified_model_is_looked_at(edit: str, valued: bool) -> None:
    sql = {
        "rows": "select id, v from s.raw where v > 0",
        "a column": "select id, v + 1 as v from s.raw",
        "a column is gone": "select id from s.raw",
    }
    raw = made("source.p.raw", None, columns=["id", "v"])
    meta = {"certified": True} if valued else {}

    def side(text: str) -> Project:
        return project(raw, replace(made("model.p.m", text, raw.unique_id), meta=meta))

    report = gate(side("select id, v from s.raw"), side(sql[edit]), config=Config())
    reached = [f.unique_id for f in report.findings if f.rule == "certified_reached"]
    assert reached == (["model.p.m"] if valued else [])


def test_a_change_that_changes_nothing_is_approved(good: Project, twin: Path) -> None:
    head = read_project(twin / "good" / "target")
    for node in head.nodes.values():
        head.nodes[node.unique_id] = replace(node, description=f"{node.description} and more")
        for column in node.columns.values():
            column.description += " and more"
    test = next(n for n in head.nodes.values() if n.resource_type == "test")
    test.config["severity"] = "warn"
    report = gate(good, head)
    assert (report.decision, report.findings, report.affected) == ("APPROVED", [], [])


def test_to_declare_personal_data_is_no_finding_where_it_went_before(
    good: Project, twin: Path
) -> None:
    head = read_project(twin / "good" / "target")
    for side in (good, head):
        for node in side.nodes.values():
            for column in node.columns.values():
                column.meta.pop("pii", None)
                column.tags.clear()
    source = "source.twin.raw.raw_customers"
    head.nodes[source].columns["email"].meta["pii"] = "email"
    report = gate(good, head)
    levels = {f.level for f in report.findings if f.rule.startswith("pii_")}
    assert (report.decision, levels) == ("APPROVED", {"known"})
    # A value that goes somewhere else with the change is one.
    good.nodes[source].columns["email"].meta["pii"] = "email"
    bad = read_project(twin / "bad" / "target")
    assert "warn" in {f.level for f in gate(good, bad).findings if f.rule == "pii_untagged"}


@pytest.mark.parametrize("declared_on_base", [True, False])
@pytest.mark.parametrize("by_tag", [True, False])
def test_to_show_personal_data_to_anybody_is_a_finding_where_it_is_declared(
    good: Project, twin: Path, declared_on_base: bool, by_tag: bool
) -> None:
    head = read_project(twin / "good" / "target")
    source = "source.twin.raw.raw_customers"
    for side in (good, head):
        for unique_id, node in side.nodes.items():
            for column in node.columns.values():
                column.meta.pop("pii", None)
                column.tags.clear()
            if unique_id == source and (side is head or declared_on_base):
                node.columns["email"].meta["pii"] = "email"
    assert not [f for f in gate(good, head).findings if f.rule == "pii_exposed"]
    node = head.nodes[source]
    shown = {"tags": ["Public"]} if by_tag else {"meta": {**node.meta, "public": True}}
    head.nodes[source] = replace(node, **shown)
    (exposed,) = [f for f in gate(good, head).findings if f.rule == "pii_exposed"]
    assert (exposed.unique_id, exposed.column) == (source, "email")
    assert exposed.level != "known"
    # Where it was public before, it is known.
    good.nodes[source] = replace(good.nodes[source], **shown)
    (exposed,) = [f for f in gate(good, head).findings if f.rule == "pii_exposed"]
    assert exposed.level == "known"


def test_where_nobody_owns_anything_a_new_model_is_not_asked_for_an_owner(
    good: Project, twin: Path
) -> None:
    def ownerless(project: Project) -> Project:
        project.groups.clear()
        for node in project.nodes.values():
            node.meta.pop("owner", None)
            project.nodes[node.unique_id] = replace(node, owner={}, group=None)
        return project

    head = ownerless(read_project(twin / "good" / "target"))
    base = ownerless(good)
    del base.nodes["model.twin.customer_labels"]
    for links in (base.parents, base.children):
        links.pop("model.twin.customer_labels")
        for unique_id in links:
            links[unique_id] = [u for u in links[unique_id] if u in base.nodes]
    assert "owner_missing" not in rules(gate(base, head))
    asked = gate(base, head, config=Config(levels={"owner_missing": "block"}))
    blocked = [f.unique_id for f in asked.findings if f.level == "block"]
    assert blocked == ["model.twin.customer_labels"]


def test_the_removal_of_a_model_is_named(good: Project, twin: Path) -> None:
    base = read_project(twin / "good" / "target")
    base.nodes["model.twin.old"] = msgspec.structs.replace(
        base.nodes["model.twin.customer_labels"], unique_id="model.twin.old", name="old"
    )
    base.parents["model.twin.old"] = base.children["model.twin.old"] = []
    comparison = compare(base, good)
    report = gate_from(comparison, Config())
    assert (report.decision, report.removed) == ("APPROVED", ["model.twin.old"])
    answer = GateAnswer(report, comparison)
    assert "  removed  model old" in list(rendered_gate(answer, "text", twin))
    assert "`old` (removed)" in list(rendered_gate(answer, "markdown", twin))


def test_a_source_column_renamed_on_friday_is_blocked(good: Project, friday: Path) -> None:
    report = gate(good, read_project(friday))
    assert report.decision == "BLOCKED"
    assert report.risk_level == "high"
    assert [(f.rule, f.unique_id, f.column) for f in report.findings] == [
        ("reader_broken", "model.twin.stg_orders", None),
        ("blast_radius", None, None),
        ("certified_reached", "model.twin.fct_orders", None),
        ("source_drift", "source.twin.raw.raw_orders", "order_total"),
    ]
    assert [(a.name, a.asset_type, a.affected_references, a.severity) for a in report.affected] == [
        ("stg_orders", "dbt_model", ["order_total"], "breaking"),
        ("fct_orders", "dbt_model", ["order_total"], "breaking"),
        ("daily_revenue_report", "dag", ["order_total"], "breaking"),
        ("customer_ltv_model", "spark_job", ["order_total"], "warning"),
    ]


def test_an_approval_is_recorded_and_counts_for_the_reach_only(good: Project, bad: Project) -> None:
    report = gate(good, bad, approved_by="Ada")
    approved = [f for f in report.findings if f.level == "approved"]
    assert [f.rule for f in approved] == ["blast_radius", "certified_reached"]
    assert all(f.reason.message.endswith("approved by Ada") for f in approved)
    assert report.approved_by == "Ada"
    assert report.decision == "BLOCKED"
    only = {**ALL_OFF, "blast_radius": "block", "certified_reached": "block"}
    assert gate(good, bad, config=Config(levels=only)).decision == "BLOCKED"
    assert gate(good, bad, config=Config(levels=only), approved_by="Ada").decision == "APPROVED"


def test_the_threshold_is_of_what_is_above_it(good: Project, bad: Project) -> None:
    for above, expected in ((5, ["blast_radius"]), (6, [])):
        config = Config({**ALL_OFF, "blast_radius": "warn"}, {"blast_radius": above})
        assert rules(gate(good, bad, config=config)) == expected


def test_a_reformat_is_approved_whatever_base_breaks(bad: Project, twin: Path) -> None:
    """Every rule that a state can break, broken on both sides; the change is layout alone."""
    config = read_config(twin / "bad")
    head = read_project(twin / "bad" / "target")
    for node in head.nodes.values():
        if node.compiled_code and node.resource_type == "model":
            head.nodes[node.unique_id] = replace(
                node,
                compiled_code=f"-- laid out anew\n{node.compiled_code}\n",
                checksum={"name": "sha256", "checksum": "another"},
            )
    report = gate(bad, head, config=config)
    assert (report.decision, report.risk_level, report.blast_radius) == ("APPROVED", "low", 0)
    rules_broken = {f.rule for f in report.findings}
    assert {f.level for f in report.findings} == {"known"}
    state = {"owner_missing", "tags_required", "tier1_key_untested", "pii_untagged", "pii_exposed"}
    assert rules_broken >= state


def test_required_tags() -> None:
    """A new asset without one is blocked; what lacked it on base is known; asked anew, it counts."""
    config = Config(
        required={"tier1": ["owner", "contract_version"], "exposure": ["owner_channel"]}
    )
    tier1 = {"meta": {"criticality": "tier1"}}
    old = made("model.p.old", "select 1 as id", **tier1)
    plain = made("model.p.plain", "select 1 as id")
    raised = made("model.p.plain", "select 1 as id", **tier1)
    new = made(
        "model.p.new", "select 1 as id", meta={"criticality": "Tier1", "contract_version": 1}
    )
    seen = made("exposure.p.seen", None, "model.p.new", owner={"name": "Ann", "slack": "#ann"})
    report = gate(project(old, plain), project(old, raised, new, seen), config=config)
    findings = [
        (f.level, f.unique_id, f.reason.message)
        for f in report.findings
        if f.rule == "tags_required"
    ]
    message = "it has no {}, which tier1 needs (already so on base)"
    assert findings == [
        ("block", "model.p.new", "it has no owner, which tier1 needs"),
        ("known", "model.p.old", message.format("contract_version")),
        ("known", "model.p.old", message.format("owner")),
        ("block", "model.p.plain", "it has no contract_version, which tier1 needs"),
        ("block", "model.p.plain", "it has no owner, which tier1 needs"),
    ]
    assert report.decision == "BLOCKED"


def test_an_exception_is_of_one_rule_on_one_node(good: Project, bad: Project) -> None:
    excepted = Excepted("pii_untagged", "model.twin.mailing_list", "a test list", "ADDRESS")
    other = Excepted("pii_untagged", "model.twin.mailing_list", "a test list", "name")
    assert "pii_untagged" not in rules(gate(good, bad, config=Config(exceptions=(excepted,))))
    assert "pii_untagged" in rules(gate(good, bad, config=Config(exceptions=(other,))))


def test_a_new_contract_version_with_notes_may_change_everything(
    good: Project, bad: Project
) -> None:
    for name in ("dim_customers", "fct_orders", "customer_contacts"):
        meta = bad.nodes[f"model.twin.{name}"].meta
        meta.update(contract_version="9", migration="ask the owner")
    report = gate(good, bad)
    assert not {r for r in rules(report) if r.startswith(("column_", "contract_"))}
    # Notes that stood there for the version before are no word on this one.
    good.nodes["model.twin.fct_orders"].meta["migration"] = "ask the owner"
    assert rules(gate(good, bad))[1] == "contract_version_without_migration"


def test_a_contract_cannot_be_left_by_taking_its_version_away(good: Project, bad: Project) -> None:
    node = bad.nodes["model.twin.dim_customers"]
    node.meta.pop("contract_version")
    node = bad.nodes["model.twin.dim_customers"] = replace(node, access="private")
    report = gate(good, bad)
    of_it = [f.rule for f in report.findings if f.unique_id == node.unique_id]
    assert of_it == [
        "column_removed",
        "column_renamed",
        "contract_version_without_migration",
        "promise_lowered",
    ]


def test_a_public_relation_that_is_gone(good: Project, twin: Path) -> None:
    head = read_project(twin / "good" / "target")
    gone_ids = {u for u in head.nodes if "dim_customers" in u or "every_country" in u}
    for unique_id in gone_ids:
        del head.nodes[unique_id]
    for links in (head.parents, head.children):
        for unique_id in [*links]:
            links[unique_id] = [other for other in links[unique_id] if other not in gone_ids]
            if unique_id in gone_ids:
                del links[unique_id]
    report = gate(good, head)
    gone = [f for f in report.findings if f.rule == "column_removed"]
    assert [(f.unique_id, f.column) for f in gone] == [("model.twin.dim_customers", None)]
    good.nodes["model.twin.dim_customers"] = replace(
        good.nodes["model.twin.dim_customers"], deprecation_date="2026-11-01"
    )
    assert "column_removed" not in rules(gate(good, head))


def test_a_declared_type_is_held_against_the_warehouse(good: Project, twin: Path) -> None:
    head = read_project(twin / "good" / "target")
    declared = head.nodes["source.twin.raw.raw_orders"].columns
    types = {"order_id": "BIGINT", "order_total": "decimal(10, 2)", "status": "struct<a: int>"}
    for name, data_type in types.items():
        declared[name].data_type = data_type
    (report,) = gate(good, head).findings
    assert (report.rule, report.level, report.column) == ("source_drift", "warn", "order_total")
    assert str(report.reason) == "is declared decimal(10, 2) and is DECIMAL(12,2)"


def test_every_rule_has_a_page_and_a_line_in_the_table() -> None:
    docs = twin_project.TWIN.parents[1] / "docs"
    table = (docs / "gate.md").read_text()
    for rule in RULES.values():
        threshold = "" if rule.above is None else f", above {rule.above}"
        assert f"| [{rule.name}](rules/{rule.name}.md) | {rule.level}{threshold} |" in table
        page = (docs / "rules" / f"{rule.name}.md").read_text()
        assert page.startswith(f"# {rule.name}\n")
        assert all(f"\n## {part}\n" in page for part in ("Example", "Why", "How to fix it"))


def test_every_rule_says_how_its_findings_are_counted_and_what_to_do() -> None:
    """But for the reach, which is about the change as a whole, and for what is mended where it is."""
    assert {rule.name for rule in RULES.values() if rule.counted is None} == {"blast_radius"}
    assert {rule.name for rule in RULES.values() if rule.to_do is None} == {"reader_broken"}


def test_findings_come_in_one_order(good: Project, bad: Project) -> None:
    once, twice = gate(good, bad), gate(good, bad)
    assert once == twice


@pytest.fixture(scope="module")
def comparison(twin: Path):
    sides = [read_project(twin / side / "target") for side in ("good", "bad")]
    return compare(*sides)


_ORDER = {"APPROVED": 0, "CAUTION": 1, "BLOCKED": 2}
_LEVELS = st.fixed_dictionaries({name: st.sampled_from(LEVELS) for name in RULES})


@given(_LEVELS, _LEVELS, st.integers(0, 12), st.sampled_from([None, "Ada"]))
@settings(max_examples=60, deadline=None)
def test_a_rule_added_or_raised_is_never_milder(comparison, one, other, above, approved_by) -> None:
    stricter = {name: max(one[name], other[name], key=LEVELS.index) for name in RULES}
    thresholds = {"blast_radius": above}
    before = gate_from(comparison, Config(one, thresholds), approved_by)
    after = gate_from(comparison, Config(stricter, thresholds), approved_by)
    assert _ORDER[after.decision] >= _ORDER[before.decision]
    # Nothing that was said is left out, and nothing is said more mildly.
    level_after = {(f.rule, f.unique_id, f.column, f.reason): f.level for f in after.findings}
    severity = ["known", "approved", "warn", "block"]
    for f in before.findings:
        level = level_after[f.rule, f.unique_id, f.column, f.reason]
        assert severity.index(level) >= severity.index(f.level)
