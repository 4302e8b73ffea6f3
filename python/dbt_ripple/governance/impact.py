"""A hypothetical change: who would break if a relation's columns were different.

The project is linked once more with the relation as it would be, and compared with itself. A
reader that cannot find its columns any more breaks, and a column with another name passes through
every ``select *`` under its new name. For the semantic layer, the project is compared with one
without the metric, saved query or element (`governance.semantic_layer`). The decision is the gate's for the
same change, with the default levels of its rules.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, date, datetime, timedelta
from typing import Final, Literal

import msgspec

from dbt_ripple.artifacts import Node, Project
from dbt_ripple.artifacts.assets_file import AssetColumn
from dbt_ripple.changes import Comparison, compare
from dbt_ripple.changes.asset_changes import carried_through, with_assets, with_declared_assets
from dbt_ripple.changes.verdict import verdict_of
from dbt_ripple.errors import RippleError
from dbt_ripple.governance.affected_assets import (
    Affected,
    Ripple,
    RiskLevel,
    affected_by,
    counted,
    edited,
    risk_level,
)
from dbt_ripple.governance.checks import reader_breaches
from dbt_ripple.governance.contracts import (
    Breach,
    contract_breaches,
    in_grace,
    promise_ends,
    promises,
)
from dbt_ripple.governance.hypothetical_changes import (
    Change,
    changed_relation,
    checked,
    hypothetical_change,
)
from dbt_ripple.governance.other_projects import Elsewhere, reached_projects
from dbt_ripple.governance.rules import RULES
from dbt_ripple.governance.semantic_layer import layer_after, layer_breaches
from dbt_ripple.governance.sentences import impact_reason, listed, recommendation
from dbt_ripple.graph.analyse_project import analyse
from dbt_ripple.graph.assets.asset_lineage import AssetLineage
from dbt_ripple.graph.assets.asset_nodes import ASSET, DATASET
from dbt_ripple.graph.assets.declared_graph import DeclaredGraph
from dbt_ripple.graph.cache import Cache
from dbt_ripple.graph.hypothetical import HypotheticalChange
from dbt_ripple.graph.joined_projects import JoinedProjects
from dbt_ripple.graph.lineage import Analysis
from dbt_ripple.graph.lineage_tables import ROWS
from dbt_ripple.graph.semantic_references import SEMANTIC
from dbt_ripple.graph.traversal import Vertex, column_graph, reach_all
from dbt_ripple.reasons import Code, Reason, names_missing

Decision = Literal["APPROVED", "CAUTION", "BLOCKED"]
GRACE_DAYS: Final = 30
"""How long readers have after a deprecation that names no date."""


class Deprecation(msgspec.Struct, frozen=True):
    """What is announced of a relation.

    Attributes:
        date: the day from which it may be removed.
        grace_days: how many days from today readers have to move.
    """

    date: str
    grace_days: int


class ImpactReport(msgspec.Struct, kw_only=True):
    """Who is reached by a change, and what to do.

    Attributes:
        decision: BLOCKED where something breaks for certain (it will not compile, it is known to read
            what is gone, or a promise is not kept), CAUTION where anything may differ.
        risk_level: as `governance.affected_assets.risk_level`.
        affected_assets: nearest first; empty where nothing reads what would change. Those of severity
            info only stand below what breaks, and are not counted.
        reason: why it is decided so, in one sentence.
        recommendation: what to do next, in one sentence.
        opaque: nodes downstream that could not be analysed, with the reason.
        broken_tests: the data tests that will not compile.
        tests: the other data tests, and the unit tests, that read something of the change.
        promises: what is promised of the relation and would not be kept.
        deprecation: what is announced, where that is the change.
    """

    decision: Decision
    risk_level: RiskLevel
    affected_assets: list[Affected]
    reason: str
    recommendation: str
    opaque: dict[str, Reason] = {}
    broken_tests: list[str] = []
    tests: list[str] = []
    promises: list[Reason] = []
    deprecation: Deprecation | None = None

    def document(self) -> dict[str, object]:
        """The report as ``--format json`` prints it."""
        announced = {"deprecation": self.deprecation} if self.deprecation else {}
        return {
            **announced,
            "decision": self.decision,
            "risk_level": self.risk_level,
            "affected_count": counted(self.affected_assets),
            "affected_assets": self.affected_assets,
            "reason": self.reason,
            "recommendation": self.recommendation,
            "broken_tests": self.broken_tests,
            "affected_tests": self.tests,
            "broken_promises": [promise.message for promise in self.promises],
            "broken_promises_coded": self.promises,
        }


def impact(
    project: Project,
    node: Node,
    changes: Sequence[Change],
    *,
    analysis: Analysis | None = None,
    cache: Cache | None = None,
    today: date | None = None,
    joined: JoinedProjects | None = None,
    assets: DeclaredGraph | None = None,
) -> ImpactReport:
    """Say who would break if a relation were changed in this way.

    Args:
        project: as it is.
        node: a model, seed, snapshot or source, a node of the semantic layer, or a declared asset.
        changes: what would be done to it, at least one.
        analysis: `analyse(project)`, where it is at hand.
        cache: for the analyses that are made here.
        today: the day by which a grace period is over; by default this one, in UTC.
        joined: this project and those that read what it builds, where they are to be asked, too.
        assets: the declared ones, where there are any.

    Raises:
        RippleError: a change is malformed: no such column or type, a new name that is taken, or two
            changes that contradict each other. The nearest valid one is given.
    """
    whole = checked(node, changes)
    day = today or datetime.now(UTC).date()
    announced = None
    if whole is not None and whole.kind == "deprecate":
        announced = _announced(node, whole.to, day)
        changes = [Change("remove")]
    question = _Question(
        project=project,
        analysis=analysis or analyse(project, cache=cache),
        node=node,
        changes=changes,
        is_whole=whole is not None,
        day=day,
        cache=cache,
        joined=joined,
        assets=assets,
    )
    return _report(question, announced)


def _report(question: _Question, announced: Deprecation | None) -> ImpactReport:
    """The answer; what is only announced breaks nothing yet."""
    of_layer = question.node.resource_type in SEMANTIC
    consequences = _in_semantic_layer(question) if of_layer else _in_relations(question)
    _in_order(consequences.affected, [change.column for change in question.changes])
    broken, broken_tests, tests = _readers(consequences)
    decision = _decision(consequences, broken)
    advice = _advice(question, consequences, broken)
    affected, promised = consequences.affected, consequences.promised
    if broken_tests and not counted(affected):  # no asset reads it, and yet it cannot just go
        nodes = {**consequences.elsewhere.nodes, **consequences.project.nodes}
        advice = f"Edit the tests with it: {listed([nodes[t].display_name for t in broken_tests])}."
    if announced is None:
        waits = in_grace(consequences.node, question.day) if question.is_whole else []
        if waits:
            rest = f" {advice}" if counted(affected) else ""
            advice = f"Wait: {listed([*map(str, waits)])}.{rest}"
    else:
        # Nothing goes yet: who reads it has until then.
        for asset in affected:
            asset.severity = "info" if asset.severity == "info" else "warning"
        affected.sort(key=lambda a: (len(a.path), a.severity == "info", a.unique_id))
        outside = promises(consequences.node) or of_layer
        decision = "CAUTION" if counted(affected) or broken_tests or outside else "APPROVED"
        tests, broken_tests, promised = sorted({*tests, *broken_tests}), [], []
        advice = _until(consequences.node, announced, affected)
    reached = {a.unique_id for a in affected}
    elsewhere = consequences.elsewhere
    everything = consequences.project.having(
        nodes={**elsewhere.nodes, **consequences.project.nodes}
    )
    return ImpactReport(
        decision=decision,
        risk_level=risk_level(affected, everything),
        affected_assets=affected,
        reason=impact_reason(
            affected, everything.nodes, broken_tests, promised, later=announced is not None
        ),
        recommendation=advice,
        opaque={
            unique_id: node_analysis.reason or Code.NO_REASON_GIVEN()
            for unique_id, node_analysis in consequences.analysis.nodes.items()
            if node_analysis.status == "opaque" and unique_id in reached
        }
        | elsewhere.opaque,
        broken_tests=broken_tests,
        tests=tests,
        promises=promised,
        deprecation=announced,
    )


@dataclass(frozen=True)
class _Question:
    """What is asked: the arguments of `impact`, and whether the relation goes as a whole."""

    project: Project
    analysis: Analysis
    node: Node
    changes: Sequence[Change]
    is_whole: bool
    day: date
    cache: Cache | None
    joined: JoinedProjects | None
    assets: DeclaredGraph | None


@dataclass(frozen=True)
class _Consequences:
    """What the change does.

    Attributes:
        project: the project as it is, with the declared assets where there are any.
        analysis: of `project`.
        node: the node whose columns are meant.
        comparison: of the project as it is with what it would be.
        affected: who is reached, here and in other projects.
        promised: promises that would not be kept.
        stops: whether something cannot be built, or reads what is gone.
        gone: whether the relation goes as a whole.
        elsewhere: what happens in other projects.
    """

    project: Project
    analysis: Analysis
    node: Node
    comparison: Comparison
    affected: list[Affected]
    promised: list[Reason]
    stops: bool = False
    gone: bool = False
    elsewhere: Elsewhere = field(default_factory=Elsewhere)


def _in_semantic_layer(question: _Question) -> _Consequences:
    """What a change of a metric, a saved query or a semantic model does."""
    project, cache = question.project, question.cache
    after = layer_after(project, question.node, question.changes)
    comparison = compare(project, after, base_analysis=question.analysis, cache=cache)
    if question.assets is not None:
        declared = question.assets.declared.values()
        then_declared = DeclaredGraph(after, declared, formerly=project)
        comparison = with_declared_assets(comparison, question.assets, then_declared, cache)
        project = comparison.base
    return _Consequences(
        project=project,
        analysis=question.analysis,
        node=question.node,
        comparison=comparison,
        affected=affected_by(comparison, edited(comparison)),
        promised=in_grace(question.node, question.day) if question.is_whole else [],
    )


def _in_relations(question: _Question) -> _Consequences:
    """What a change of a relation or an asset does."""
    project, seen = question.project, question.analysis
    before = None
    if question.assets is not None:
        question, before = _listing_what_is_asked(question)
        assert question.assets is not None
        project, seen = question.assets.whole, before.analysis
    node = changed_relation(project, seen, question.node)
    hypothetical = hypothetical_change(project, seen, node, question.changes)
    comparison = _with_and_without(question, before, node.unique_id, hypothetical)
    contract_types = _broken_contracts(project, seen, node.unique_id, hypothetical.retyped)
    contract_types |= _refuses_new(comparison, node.unique_id) if hypothetical.added else set()
    ripple = Ripple(comparison, [node.unique_id], contract_types)
    affected = ripple.assets()
    _refer_to_new(affected, hypothetical, comparison)
    promised = _promises(comparison, node, question.changes, hypothetical, question.day)
    breaks = any(a.severity == "breaking" for a in affected)
    stops = bool(contract_types) or (hypothetical.gone and breaks)
    elsewhere = Elsewhere()
    joined = question.joined
    if joined is not None:
        refused = _refused_elsewhere(joined, question.analysis, node.unique_id, hypothetical)
        changed = {node.unique_id: hypothetical}
        elsewhere = Elsewhere(
            joined, reached_projects(joined, comparison, ripple, changed, refused)
        )
        for other in elsewhere.reached:
            _refer_to_new(other.affected, hypothetical, other.comparison)
            breaks = any(a.severity == "breaking" for a in other.affected)
            refuses = refused(other.number, other.comparison)
            stops = stops or bool(refuses) or (hypothetical.gone and breaks)
        affected = elsewhere.and_here(affected)
    return _Consequences(
        project=project,
        analysis=seen,
        node=node,
        comparison=comparison,
        affected=affected,
        promised=promised,
        stops=stops,
        gone=hypothetical.gone,
        elsewhere=elsewhere,
    )


def _listing_what_is_asked(question: _Question) -> tuple[_Question, AssetLineage]:
    """The question with the assets linked; an asset of which no column is known has those that are asked about.

    Whoever reads it without naming columns may read these.
    """
    assets, node = question.assets, question.node
    assert assets is not None
    before = AssetLineage(assets, question.analysis, question.cache)
    declared = assets.declared.get(node.unique_id)
    asked = {c.column.strip(): None for c in question.changes if c.column.strip()}
    known = column_graph(before.analysis.edges).columns(node.unique_id)
    analysed = before.analysis.nodes.get(node.unique_id)
    adds = any(change.kind == "add" for change in question.changes)
    if (
        declared is None
        or declared.columns
        or adds
        or not asked
        or (analysed is not None and analysed.columns)
        or set(known) - {ROWS}
    ):
        return question, before
    listed = msgspec.structs.replace(
        declared, columns=tuple(AssetColumn(name=name) for name in asked)
    )
    every = [listed if a.id == declared.id else a for a in assets.declared.values()]
    graph = DeclaredGraph(assets.project, every)
    question = replace(question, assets=graph, node=graph.whole.nodes[node.unique_id])
    return question, AssetLineage(graph, question.analysis, question.cache)


def _with_and_without(
    question: _Question,
    before: AssetLineage | None,
    unique_id: str,
    hypothetical: HypotheticalChange,
) -> Comparison:
    """The comparison of the project as it is with what it would be, with the assets where there are any."""
    own, seen = question.project, question.analysis
    changes = {unique_id: hypothetical}
    if before is None:
        then = analyse(own, cache=question.cache, hypothetical=changes)
        return compare(own, own, base_analysis=seen, head_analysis=then)
    project = before.graph.whole
    after = carried_through(before, changes, question.cache)
    return with_assets(
        compare(own, own, base_analysis=seen, head_analysis=after.analysis),
        (project, before.analysis),
        (project, after.assets.analysis),
    )


def _readers(consequences: _Consequences) -> tuple[list[Breach], list[str], list[str]]:
    """The readers that break, the data tests that will not compile, and the other tests that are affected."""
    unique_id, elsewhere = consequences.node.unique_id, consequences.elsewhere
    broken = [b for b in reader_breaches(consequences.comparison) if b.unique_id != unique_id]
    broken_tests, tests = _tests(consequences.comparison)
    if consequences.gone:  # dbt warns of a test that refers to nothing, and goes on without it
        without = {t for t in broken_tests if unique_id in consequences.project.parents.get(t, ())}
        broken = [b for b in broken if b.unique_id not in without]
        broken_tests = [t for t in broken_tests if t not in without]
        tests = sorted({*tests, *without})
    for test in elsewhere.broken:
        if elsewhere.nodes[test].resource_type == "test":
            broken_tests.append(test)
    return broken, broken_tests, tests


def _decision(consequences: _Consequences, broken: Sequence[Breach]) -> Decision:
    severities = {a.severity for a in consequences.affected}
    if broken or consequences.promised or consequences.stops or consequences.elsewhere.broken:
        return "BLOCKED"
    nodes = consequences.project.nodes
    kinds = {
        nodes[a.unique_id].resource_type
        for a in consequences.affected
        if a.severity == "breaking" and a.unique_id in nodes
    }
    if kinds & {ASSET, DATASET}:  # no rule of the gate speaks of these
        return "BLOCKED"
    if severities & {"breaking", "warning"} or any(layer_breaches(consequences.comparison)):
        return "CAUTION"
    return "APPROVED"


def _advice(question: _Question, consequences: _Consequences, broken: Sequence[Breach]) -> str:
    """What to do about it, in one sentence."""
    comparison, elsewhere = consequences.comparison, consequences.elsewhere
    exists_after = consequences.node.unique_id in comparison.head.nodes
    side = comparison.head if exists_after else comparison.base
    return recommendation(
        consequences.node,
        question.changes,
        consequences.affected,
        {**elsewhere.nodes, **side.nodes},
        [*(b.unique_id for b in broken if b.unique_id), *elsewhere.broken],
        verdict_of(comparison).relations | elsewhere.missing,
    )


# --- what follows ----------------------------------------------------------------------------------


def _promises(
    comparison: Comparison,
    node: Node,
    changes: Sequence[Change],
    hypothetical: HypotheticalChange,
    day: date,
) -> list[Reason]:
    """What the gate would say of the contracts: only what blocks."""
    if hypothetical.gone:
        released = promise_ends(node) is not None
        kept = not released and promises(node)
        return in_grace(node, day) + (
            [Code.RELATION_REMOVED(name=node.display_name)] if kept else []
        )
    reasons = [
        Code.OF_COLUMN(column=breach.column, because=breach.reason)
        if breach.column
        else breach.reason
        for breach in contract_breaches(comparison, day)
        if RULES[breach.rule].level == "block" and breach.unique_id == node.unique_id
    ]
    if promises(node):
        reasons += [
            Code.OF_COLUMN(column=c.column, because=Code.RETYPED_TO(to=c.to))
            for c in changes
            if c.kind == "retype"
        ]
    return reasons


def _announced(node: Node, announced: str, day: date) -> Deprecation:
    """The day on which the relation is removed: the one that is given, or declared for it, or after a grace period."""
    if announced:
        try:
            ends = date.fromisoformat(announced.strip())
        except ValueError:
            raise RippleError(
                f"{announced!r} is no date", "--date", "say it as YYYY-MM-DD"
            ) from None
    else:
        ends = promise_ends(node) or day + timedelta(days=GRACE_DAYS)
    if ends < day:
        raise RippleError(
            f"{ends.isoformat()} is over",
            node.spoken_name,
            "announce a day to come, or ask --remove",
        )
    return Deprecation(ends.isoformat(), (ends - day).days)


def _until(node: Node, announced: Deprecation, affected: Sequence[Affected]) -> str:
    names = listed([a.name for a in affected if a.counts])
    owners = listed(sorted({a.owner for a in affected if a.owner and a.counts}))
    move = f"move {names} to what replaces it" if names else "ask who reads it from outside"
    tell = f", and tell {owners}" if owners else ""
    declared = promise_ends(node)
    declared_already = declared is not None and declared.isoformat() == announced.date
    give = "Keep" if declared_already else f"Give {node.spoken_name}"
    return (
        f"{give} the deprecation_date {announced.date}, {move} within "
        f"{announced.grace_days} day{'' if announced.grace_days == 1 else 's'}{tell}; "
        "before that day its removal is blocked."
    )


def _refuses_new(comparison: Comparison, unique_id: str) -> set[str]:
    """What dbt refuses to build because a new column reaches it by ``*``.

    A model with an enforced contract that does not list it, and an incremental one with
    ``on_schema_change: fail``.
    """
    return {
        u
        for u, change in comparison.changed.items()
        if u != unique_id
        and change.added
        and (node := comparison.head.nodes.get(u)) is not None
        and (
            node.contract_enforced
            or (
                node.materialized == "incremental" and node.config.get("on_schema_change") == "fail"
            )
        )
    }


def _refer_to_new(
    affected: list[Affected], hypothetical: HypotheticalChange, comparison: Comparison
) -> None:
    """What the new columns break reads none of them: it is their names, or their number."""
    broken = verdict_of(comparison).relations
    for asset in affected:
        if hypothetical.added and not asset.affected_references and asset.unique_id in broken:
            missing = " ".join(names_missing(broken[asset.unique_id])).lower()
            named = [name for name in hypothetical.added if name.lower() in missing]
            asset.affected_references = named or list(hypothetical.added)


def _refused_elsewhere(
    joined: JoinedProjects, seen: Analysis, unique_id: str, hypothetical: HypotheticalChange
) -> Callable[[int, Comparison], set[str]]:
    """What says of another project which models of it dbt refuses to build by their contract."""
    types: set[str] = set()
    if hypothetical.retyped:
        everything = joined.united(joined.analyses(seen))
        types = _broken_contracts(joined.union, everything, unique_id, hypothetical.retyped)

    def refused(number: int, comparison: Comparison) -> set[str]:
        named = {u for u in comparison.head.nodes if joined.id_of(number, u) in types}
        return named | (_refuses_new(comparison, unique_id) if hypothetical.added else set())

    return refused


def _tests(comparison: Comparison) -> tuple[list[str], list[str]]:
    """The tests that will not compile, and the others that read something of the change, by id."""
    before, now = comparison.base_analysis, comparison.head_analysis
    differ = {u for u, seen in now.tests.items() if before.tests.get(u) not in (None, seen)}
    broken = differ & {one.unique_id for one in verdict_of(comparison).newly_broken}
    reached = [*(differ - broken)]
    reached += [u for u, seen in now.unit_tests.items() if before.unit_tests.get(u) != seen]
    return sorted(broken), sorted(reached)


def _broken_contracts(
    project: Project, seen: Analysis, unique_id: str, retyped: Iterable[str]
) -> set[str]:
    """Models whose enforced contract names the type a column had, and which pass it on as it is."""
    same: dict[Vertex, list[Vertex]] = {}
    for edge in seen.edges:
        if edge.subtype == "IDENTITY" and edge.parent_column != ROWS:
            same.setdefault((edge.parent_id, edge.parent_column), []).append(
                (edge.child_id, edge.child_column)
            )

    def is_refused(vertex: Vertex) -> bool:
        node = project.nodes.get(vertex[0])
        return node is not None and node.contract_enforced

    starts = [(unique_id, column) for column in retyped]
    # What dbt refuses to build passes nothing on.
    reached = reach_all(starts, same, through=lambda vertex: not is_refused(vertex))
    return {vertex[0] for vertex in reached if vertex not in starts and is_refused(vertex)}


def _in_order(affected: list[Affected], columns: list[str]) -> None:
    """References in the order of the changes."""
    place = {column.lower(): i for i, column in reversed(list(enumerate(columns)))}
    for asset in affected:
        asset.affected_references.sort(key=lambda name: place.get(name.lower(), len(place)))
