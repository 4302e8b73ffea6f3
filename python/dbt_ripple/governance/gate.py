"""The gate: may this change be merged?

The most severe finding decides: BLOCKED, CAUTION or, without a finding, APPROVED. Every rule is
checked on its own and does not depend on the level of another, so adding a rule or raising a level
never makes the decision milder. A finding that base has, too, is reported and never decides: a
change is not stopped because of older problems.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import msgspec

from dbt_ripple.artifacts import (
    Node,
    Project,
    domain,
    ownership,
)
from dbt_ripple.changes import Comparison, compare
from dbt_ripple.changes.causes import Cause, causes_of
from dbt_ripple.changes.removed_columns import RemovedColumn
from dbt_ripple.changes.verdict import verdict_of
from dbt_ripple.governance.affected_assets import (
    Affected,
    Ripple,
    RiskLevel,
    counted,
    edited,
    matters,
    risk_level,
)
from dbt_ripple.governance.checks import CHECKS, newly_deprecated
from dbt_ripple.governance.contracts import Breach, contract_breaches
from dbt_ripple.governance.other_projects import Elsewhere, reached_projects
from dbt_ripple.governance.policy import Policy, mask_changes
from dbt_ripple.governance.ripple_yml import Config
from dbt_ripple.governance.rules import RULES
from dbt_ripple.governance.semantic_layer import layer_breaches
from dbt_ripple.governance.sentences import gate_reason, gate_recommendation, spoken
from dbt_ripple.governance.tags import tag_breaches
from dbt_ripple.graph.cache import Cache
from dbt_ripple.graph.joined_projects import JoinedProjects
from dbt_ripple.graph.lineage import Analysis
from dbt_ripple.reasons import Code, Reason

if TYPE_CHECKING:
    from dbt_ripple.selection.result import Selection, SelectionRun

Decision = Literal["APPROVED", "CAUTION", "BLOCKED"]
FindingLevel = Literal["warn", "block", "approved", "known"]


class Finding(msgspec.Struct, kw_only=True, omit_defaults=True, rename={"reason": "message"}):
    """One place where a rule is not kept.

    Attributes:
        level: warn or block; approved where somebody approved it; known where it is so on base:
            it is listed, and decides nothing.
        unique_id: None where it is about the change as a whole.
        column: None where it is about the whole node.
        project: the dbt project it is of, where that is another one.
        owner: who answers for the node. Where it is declared, JSON also has the owner_name, the
            owner_email, the owner_channel (Slack) and the domain.
    """

    rule: str
    level: FindingLevel
    unique_id: str | None
    column: str | None
    reason: Reason
    owner: str | None = None
    owner_name: str | None = None
    owner_email: str | None = None
    owner_channel: str | None = None
    domain: str | None = None
    project: str | None = None


class GateReport(msgspec.Struct, kw_only=True):
    """What the gate says.

    Attributes:
        blast_radius: how many assets break or may change.
        reason: what decided, in one sentence.
        recommendation: what to do next, in one sentence.
        findings: by rule in the order of the registry, then by node and column.
        affected: those assets and what only stands below them (severity info), nearest first.
        approved_by: who approved the reach; None where nobody did.
        opaque: affected nodes that could not be analysed, with the reason.
        removed: the nodes of base, except sources, that head does not have.
        causes: what was edited, each with the nodes that are not the same because of it.
        notes: what the answer had to assume.
    """

    decision: Decision
    risk_level: RiskLevel
    blast_radius: int
    reason: str
    recommendation: str
    findings: list[Finding]
    affected: list[Affected]
    approved_by: str | None = None
    opaque: dict[str, Reason] = {}
    removed: list[str] = []
    notes: list[Reason] = []
    causes: list[Cause] = []

    def document(self) -> dict[str, object]:
        """The report as ``--format json`` prints it."""
        return {
            "decision": self.decision,
            "risk_level": self.risk_level,
            "blast_radius": self.blast_radius,
            "reason": self.reason,
            "recommendation": self.recommendation,
            "findings": self.findings,
            "affected": self.affected,
            "removed": self.removed,
            "causes": self.causes,
        }


@dataclass
class GateAnswer:
    """The gate's answer: the report, and what was compared for it; every format takes the same.

    Attributes:
        selection: the tests that the change can break, where they were asked for.
        ran: dbt's results of them, where they were run.
        joined: head's project and others that read what it builds, where they were asked.
    """

    report: GateReport
    comparison: Comparison
    selection: Selection | None = None
    ran: SelectionRun | None = None
    joined: JoinedProjects | None = None

    @property
    def shown(self) -> Project:
        """Head, with the nodes of the other projects."""
        head = self.comparison.head
        if self.joined is None:
            return head
        return head.having(nodes={**self.joined.union.nodes, **head.nodes})

    @property
    def head(self) -> Project:
        """What is proposed."""
        return self.comparison.head

    @property
    def base(self) -> Project:
        """What is deployed."""
        return self.comparison.base

    def gone(self, finding: Finding) -> list[RemovedColumn]:
        """The columns that a reader asks for and that the change took away or renamed."""
        broken = verdict_of(self.comparison).broken.get(finding.unique_id or "")
        return broken.gone if broken is not None else []


def gate(
    base: Project,
    head: Project,
    *,
    base_analysis: Analysis | None = None,
    head_analysis: Analysis | None = None,
    cache: Cache | None = None,
    config: Config | None = None,
    approved_by: str | None = None,
) -> GateReport:
    """Judge the change from base to head.

    Args:
        base: what is deployed.
        head: what is proposed.
        base_analysis: `analyse(base)`, where it is at hand.
        head_analysis: `analyse(head)`, where it is at hand.
        cache: for the analyses that are not.
        config: levels and thresholds.
        approved_by: who says yes to what needs approval.

    Raises:
        RippleError: the two are not sides of one project.
    """
    comparison = compare(
        base, head, base_analysis=base_analysis, head_analysis=head_analysis, cache=cache
    )
    return gate_from(comparison, config or Config(), approved_by)


def gate_from(
    comparison: Comparison,
    config: Config | Policy,
    approved_by: str | None = None,
    joined: JoinedProjects | None = None,
) -> GateReport:
    """Judge a comparison that was made already; arguments as in `gate`.

    Args:
        comparison: base and head.
        config: levels and thresholds, or by whose these are judged by.
        approved_by: who says yes to what needs approval.
        joined: head's project and those that read what it builds, where they are to be asked, too.
    """
    policy = config if isinstance(config, Policy) else Policy(config)
    config = policy.config
    origins = edited(comparison)
    ripple = Ripple(comparison, origins, of_an_edit=True)
    elsewhere = Elsewhere()
    if joined is not None:
        elsewhere = Elsewhere(joined, reached_projects(joined, comparison, ripple))
    affected = elsewhere.and_here(ripple.assets())
    nodes = {**elsewhere.nodes, **comparison.head.nodes}
    breaches = _breaches(comparison, config, origins, affected, nodes)
    findings = _all_findings(comparison, policy, approved_by, elsewhere, breaches)
    reached = {asset.unique_id for asset in affected} | origins
    decided = decision(findings)

    def called(unique_id: str) -> str:
        node = nodes.get(unique_id) or comparison.base.nodes.get(unique_id)
        return node.display_name if node is not None else unique_id

    return GateReport(
        decision=decided,
        risk_level=_risk(findings, risk_level(affected, comparison.head.having(nodes=nodes))),
        blast_radius=counted(affected),
        reason=gate_reason(decided, findings, approved_by, called, affected),
        recommendation=gate_recommendation(decided, findings),
        findings=findings,
        affected=affected,
        approved_by=approved_by,
        opaque={
            unique_id: analysed.reason or Code.NO_REASON_GIVEN()
            for unique_id, analysed in comparison.head_analysis.nodes.items()
            if analysed.status == "opaque"
            and unique_id in reached
            and unique_id not in verdict_of(comparison).syntax_errors
        }
        | elsewhere.opaque,
        removed=sorted(comparison.removed),
        causes=causes_of(comparison).at_the_beginning,
        notes=[
            *policy.notes,
            *(n for n in comparison.notes if n.code is not Code.EVERY_TEST_SELECTED),
            *(Code.HOOK_NOT_FOLLOWED(because=hook) for hook in comparison.everything),
            *_unknown_types(comparison),
            *newly_deprecated(comparison),
        ],
    )


def _all_findings(
    comparison: Comparison,
    policy: Policy,
    approved_by: str | None,
    elsewhere: Elsewhere,
    breaches: Iterable[Breach],
) -> list[Finding]:
    """What is found, here and in other projects, in the order of the report.

    Args:
        comparison: base and head.
        policy: levels and thresholds.
        approved_by: who says yes to what needs approval.
        elsewhere: what happens in other projects.
        breaches: what base and head themselves do not keep, but for the policy and personal data.
    """
    config, joined = policy.config, elsewhere.joined
    of_others = joined.project_of if joined is not None else {}
    personal = list(elsewhere.personal_data(comparison))
    own_breaches = [
        *(
            Breach("policy_changed", None, None, change)
            for change in (*policy.changes, *mask_changes(comparison.base, comparison.head))
        ),
        *(breach for breach in personal if breach.unique_id not in of_others),
        *breaches,
    ]
    other_breaches = [
        *(breach for breach in personal if breach.unique_id in of_others),
        *(
            msgspec.structs.replace(breach, unique_id=unique_id)
            for unique_id, breaches in elsewhere.broken.items()
            for breach in breaches
            if unique_id in of_others
        ),
    ]
    here = (comparison.head, comparison.base)  # of what is removed, who answered for it
    findings = [*_findings(own_breaches, config, approved_by, here)]
    if joined is not None:
        for finding in _findings(other_breaches, config, approved_by, (joined.union,)):
            finding.project = joined.project_of[finding.unique_id or ""]
            findings.append(finding)
    place = {name: i for i, name in enumerate(RULES)}
    findings.sort(
        key=lambda f: (place[f.rule], f.unique_id or "", f.column or "", f.reason.message)
    )
    return findings


def decision(findings: list[Finding]) -> Decision:
    """The decision that the most severe level gives."""
    levels = {finding.level for finding in findings}
    return "BLOCKED" if "block" in levels else "CAUTION" if "warn" in levels else "APPROVED"


def _risk(findings: list[Finding], reach: RiskLevel) -> RiskLevel:
    """A change that is blocked is never of low risk, however little it reaches."""
    return "medium" if reach == "low" and decision(findings) == "BLOCKED" else reach


def _breaches(
    comparison: Comparison,
    config: Config,
    origins: set[str],
    affected: list[Affected],
    every: Mapping[str, Node],
) -> Iterator[Breach]:
    yield from contract_breaches(comparison)
    for check in (*CHECKS, layer_breaches):
        yield from check(comparison)
    yield from tag_breaches(comparison, config.required)
    yield from _reach(comparison, config.threshold("blast_radius"), origins, affected, every)


def _reach(
    comparison: Comparison,
    above: int,
    origins: set[str],
    affected: list[Affected],
    every: Mapping[str, Node],
) -> Iterator[Breach]:
    reached = [asset for asset in affected if asset.counts]
    if len(reached) > above:
        names: list[str | Reason] = [spoken(a, every[a.unique_id]) for a in reached]
        reason = (
            Code.REACHES_MORE_THAN(assets=names, most=above)
            if above
            else Code.REACHES(assets=names)
        )
        yield Breach("blast_radius", None, None, reason)
    nodes = comparison.head.nodes
    reasons = {
        asset.unique_id: Code.CERTIFIED_REACHED()
        for asset in affected
        if asset.counts
        and (
            matters(every[asset.unique_id])
            or ((then := comparison.base.nodes.get(asset.unique_id)) is not None and matters(then))
        )
    }
    for unique_id in origins:
        change = comparison.changed.get(unique_id)
        then = comparison.base.nodes.get(unique_id)  # a relation nobody declared has no node
        if then is None or not (matters(then) or matters(nodes.get(unique_id, then))):
            continue
        if unique_id in comparison.removed:
            reasons[unique_id] = Code.CERTIFIED_REMOVED()
        elif change is not None and (change.rows or change.redefined or change.removed):
            reasons[unique_id] = Code.CERTIFIED_CHANGED()
    for unique_id, what in reasons.items():
        yield Breach("certified_reached", unique_id, None, what)


def _findings(
    breaches: Iterable[Breach], config: Config, approved_by: str | None, projects: Sequence[Project]
) -> Iterator[Finding]:
    """What the rules make of breaches, each with who answers for it in the first of the projects that has it."""
    for breach in breaches:
        level = config.level(breach.rule)
        if level == "off" or config.excepts(breach.rule, breach.unique_id, breach.column):
            continue
        reason = breach.reason
        given: FindingLevel = "warn" if breach.mild else level
        if breach.usual and breach.rule not in config.levels:
            continue
        if breach.old:
            given = "known"
        elif approved_by and RULES[breach.rule].approval:
            given = "approved"
            reason = Code.APPROVED_BY(because=reason, who=approved_by)
        unique_id = breach.unique_id or ""
        project = next((p for p in projects if unique_id in p.nodes), projects[0])
        node = project.nodes.get(unique_id)
        yield Finding(
            rule=breach.rule,
            level=given,
            unique_id=breach.unique_id,
            column=breach.column,
            reason=reason,
            **ownership(node, project),
            domain=domain(node, project) if node is not None else None,
        )


def _unknown_types(comparison: Comparison) -> Iterator[Reason]:
    sides = [("base", comparison.base), ("head", comparison.head)]
    missing = [name for name, project in sides if not project.catalog]
    if missing:
        yield Code.NO_CATALOG(sides=missing)
