"""A hypothetical change: who would break if a relation's columns were different.

The project is linked once more with the relation as it would be, and compared with itself. A
reader that cannot find its columns any more breaks, and a column with another name passes through
every ``select *`` under its new name. For the semantic layer, the project is compared with one
without the metric, saved query or element (`governance.semantic_layer`). The decision is the gate's for the
same change, with the default levels of its rules.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Sequence
from datetime import UTC, date, datetime, timedelta
from typing import Final, Literal, NamedTuple

import msgspec

from dbt_ripple.artifacts import Node, Project, did_you_mean
from dbt_ripple.changes import Comparison, compare
from dbt_ripple.changes.asset_changes import carried_through, with_assets, with_declared_assets
from dbt_ripple.errors import RippleError
from dbt_ripple.flow.data_types import TYPE_NAMES, canonical_type, same_type
from dbt_ripple.flow.identifiers import dialect_of
from dbt_ripple.governance.affected_assets import (
    Affected,
    Ripple,
    RiskLevel,
    affected_by,
    counted,
    edited,
    newly_broken,
    risk_level,
)
from dbt_ripple.governance.checks import reader_breaches
from dbt_ripple.governance.column_types import types_of
from dbt_ripple.governance.contracts import contract_breaches, in_grace, promise_ends, promises
from dbt_ripple.governance.other_projects import Elsewhere, reached_projects
from dbt_ripple.governance.recommendations import listed, recommendation
from dbt_ripple.governance.rules import RULES
from dbt_ripple.governance.semantic_layer import layer_after, layer_breaches
from dbt_ripple.graph.analyse_project import analyse
from dbt_ripple.graph.assets.asset_lineage import AssetLineage
from dbt_ripple.graph.assets.asset_nodes import ASSET, DATASET
from dbt_ripple.graph.assets.declared_graph import DeclaredGraph
from dbt_ripple.graph.cache import Cache
from dbt_ripple.graph.hypothetical import HypotheticalChange
from dbt_ripple.graph.joined_projects import JoinedProjects
from dbt_ripple.graph.lineage import Analysis, column_names
from dbt_ripple.graph.lineage_tables import ROWS
from dbt_ripple.graph.relations import RELATIONS
from dbt_ripple.graph.semantic_references import SEMANTIC
from dbt_ripple.graph.traversal import Vertex, reach_all
from dbt_ripple.reasons import Code, Reason, names_missing

Decision = Literal["APPROVED", "CAUTION", "BLOCKED"]
Kind = Literal["rename", "drop", "retype", "add", "deprecate", "remove"]
GRACE_DAYS: Final = 30
"""How long readers have after a deprecation that names no date."""


class Change(NamedTuple):
    """One change to a relation.

    Attributes:
        kind: deprecate announces that the relation goes, remove takes it away.
        column: empty of these two.
        to: the new name, or the type; of deprecate the day it goes (ISO), if one is given.
        required: of a new column, whether each row must have a value.
    """

    kind: Kind
    column: str = ""
    to: str = ""
    required: bool = False


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
    seen = analysis or analyse(project, cache=cache)
    if not changes:
        raise RippleError("no change is given", node.spoken_name, f"say {_options(node)}")
    day = today or datetime.now(UTC).date()
    whole = next((change for change in changes if change.kind in ("deprecate", "remove")), None)
    if whole is not None and len(changes) > 1:
        raise RippleError(
            f"{whole.kind}s {node.spoken_name} with all that is in it",
            f"--{whole.kind}",
            "give it alone",
        )
    announced = None
    if whole is not None and whole.kind == "deprecate":
        announced = _announced(node, whole.to, day)
        changes = [Change("remove")]
    for change in changes:
        if change.kind == "rename" and change.column.strip() == change.to.strip():
            raise RippleError(
                f"{change.to} is its name already",
                f"--rename {change.column}:{change.to}",
                "give a new name",
            )
    elsewhere = Elsewhere()
    if node.resource_type in SEMANTIC:
        after = layer_after(project, node, changes)
        comparison = compare(project, after, base_analysis=seen, cache=cache)
        if assets is not None:
            then_declared = DeclaredGraph(after, assets.declared.values(), formerly=project)
            comparison = with_declared_assets(comparison, assets, then_declared, cache)
            project = comparison.base
        affected = affected_by(comparison, edited(comparison))
        promised: list[Reason] = in_grace(node, day) if whole is not None else []
        stops = left_out = False
    else:
        own, before = project, None
        of_dbt = seen
        if assets is not None:
            before = AssetLineage(assets, seen, cache)
            project, seen = assets.whole, before.analysis
        node = _relation(project, seen, node)
        hypothetical = _supposed(project, seen, node, changes)
        hypothetical_changes = {node.unique_id: hypothetical}
        if before is None:
            then = analyse(project, cache=cache, hypothetical=hypothetical_changes)
            comparison = compare(project, project, base_analysis=seen, head_analysis=then)
        else:
            assets_after = carried_through(before, hypothetical_changes, cache)
            comparison = with_assets(
                compare(own, own, base_analysis=of_dbt, head_analysis=assets_after.analysis),
                (project, seen),
                (project, assets_after.assets.analysis),
            )
        contract_types = _broken_contracts(project, seen, node.unique_id, hypothetical.retyped)
        contract_types |= _refuses_new(comparison, node.unique_id) if hypothetical.added else set()
        ripple = Ripple(comparison, [node.unique_id], contract_types)
        affected = ripple.assets()
        _refer_to_new(affected, hypothetical, comparison)
        promised = _promises(comparison, node, changes, hypothetical, day)
        left_out = hypothetical.gone
        stops = bool(contract_types) or (
            hypothetical.gone and any(a.severity == "breaking" for a in affected)
        )
        if joined is not None:
            refused = _refused_elsewhere(joined, of_dbt, node.unique_id, hypothetical)
            elsewhere = Elsewhere(
                joined,
                reached_projects(
                    joined, comparison, ripple, {node.unique_id: hypothetical}, refused
                ),
            )
            for other in elsewhere.reached:
                _refer_to_new(other.affected, hypothetical, other.comparison)
                breaks = any(a.severity == "breaking" for a in other.affected)
                refuses = refused(other.number, other.comparison)
                stops = stops or bool(refuses) or (hypothetical.gone and breaks)
            affected = elsewhere.and_here(affected)
    _in_order(affected, [change.column for change in changes])
    broken = [b for b in reader_breaches(comparison) if b.unique_id != node.unique_id]
    broken_tests, tests = _tests(comparison)
    if left_out:  # dbt warns of a test that refers to nothing, and goes on without it
        without = {t for t in broken_tests if node.unique_id in project.parents.get(t, ())}
        broken = [b for b in broken if b.unique_id not in without]
        broken_tests = [t for t in broken_tests if t not in without]
        tests = sorted({*tests, *without})
    for test in elsewhere.broken:
        if elsewhere.nodes[test].resource_type == "test":
            broken_tests.append(test)
    decision: Decision = "APPROVED"
    if broken or promised or stops or elsewhere.broken:
        decision = "BLOCKED"
    elif {a.severity for a in affected} & {"breaking", "warning"} or any(
        layer_breaches(comparison)
    ):
        decision = "CAUTION"
    reached = {a.unique_id for a in affected}
    waits = in_grace(node, day) if whole is not None else []
    side = comparison.head if node.unique_id in comparison.head.nodes else comparison.base
    advice = recommendation(
        node,
        changes,
        affected,
        {**elsewhere.nodes, **side.nodes},
        [*(b.unique_id for b in broken if b.unique_id), *elsewhere.broken],
        newly_broken(comparison) | elsewhere.missing,
    )
    if waits and announced is None:
        rest = f" {advice}" if counted(affected) else ""
        advice = f"Wait: {listed([*map(str, waits)])}.{rest}"
    if announced is not None:
        # Nothing goes yet: who reads it has until then.
        for asset in affected:
            asset.severity = "info" if asset.severity == "info" else "warning"
        affected.sort(key=lambda a: (len(a.path), a.severity == "info", a.unique_id))
        outside = promises(node) or node.resource_type in SEMANTIC
        decision = "CAUTION" if counted(affected) or broken_tests or outside else "APPROVED"
        tests, broken_tests, promised = sorted({*tests, *broken_tests}), [], []
        advice = _until(node, announced, affected)
    return ImpactReport(
        decision=decision,
        risk_level=risk_level(affected, project.having(nodes={**elsewhere.nodes, **project.nodes})),
        affected_assets=affected,
        recommendation=advice,
        opaque={
            unique_id: node_analysis.reason or Code.NO_REASON_GIVEN()
            for unique_id, node_analysis in seen.nodes.items()
            if node_analysis.status == "opaque" and unique_id in reached
        }
        | elsewhere.opaque,
        broken_tests=broken_tests,
        tests=tests,
        promises=promised,
        deprecation=announced,
    )


# --- what is asked ---------------------------------------------------------------------------------


def _relation(project: Project, seen: Analysis, node: Node) -> Node:
    """The node whose columns are meant: a source that a node builds is that node."""
    if node.unique_id in seen.nodes and node.resource_type in (*RELATIONS, ASSET, DATASET):
        return node
    if node.resource_type == "source" and node.relation_name:
        for other in project.nodes.values():
            if (
                other.unique_id in seen.nodes
                and (other.relation_name or "").lower() == node.relation_name.lower()
            ):
                return other
    raise RippleError(
        f"is {_article(node.resource_type)}, which has no columns",
        node.display_name,
        "name a model, seed, snapshot, source or asset, or a metric, a semantic model or a saved query",
    )


def _options(node: Node) -> str:
    """What can be done to a node, in the words of the command line."""
    if node.resource_type == "metric":
        return f"--deprecate, --remove, or --rename {node.name}:NEW"
    if node.resource_type == "saved_query":
        return "--drop a, --deprecate or --remove"
    if node.resource_type == "semantic_model":
        return "--rename a:b, --drop c, --deprecate or --remove"
    return "--rename a:b, --drop c, --retype d:type, --add e:type, --deprecate or --remove"


def _article(noun: str) -> str:
    words = noun.replace("_", " ")
    return f"an {words}" if words[:1] in "aeio" else f"a {words}"


def _supposed(
    project: Project, seen: Analysis, node: Node, changes: Sequence[Change]
) -> HypotheticalChange:
    analysed = seen.nodes[node.unique_id]
    names = column_names(node, analysed, project.catalog.get(node.unique_id, ()))
    dialect = dialect_of(project.metadata.adapter_type)
    types = types_of(project, node.unique_id)
    renamed: dict[str, str] = {}
    dropped: dict[str, None] = {}
    retyped: dict[str, str] = {}
    added: dict[str, str] = {}
    for change in changes:
        if change.kind == "remove":
            continue
        if change.kind == "add":
            name = change.column.strip()
            option = f"--add {name}:{change.to}"
            if not name or name.lower() in map(str.lower, added):
                raise RippleError(f"{name!r} is no new name", option, "give each column one name")
            added[name] = _type(name, change.to, None, dialect, option, "add")
            continue
        column = _column(node, names, change)
        option = f"--{change.kind} {change.column}"
        if change.kind == "drop":
            dropped[column] = None
        elif change.kind == "rename":
            if column in renamed and renamed[column] != change.to:
                raise RippleError(
                    f"{column} is already renamed to {renamed[column]}", option, "give one new name"
                )
            if not change.to.strip():
                raise RippleError("the new name is missing", option, f"say --rename {column}:NEW")
            renamed[column] = change.to
        else:
            retyped[column] = _type(column, change.to, types.get(column.lower()), dialect, option)
    for column in [*renamed, *retyped]:
        if column in dropped:
            raise RippleError(
                f"{column} is dropped and changed at once", "--drop", "do one of the two"
            )
    left = {key for key, name in names.items() if name not in renamed and name not in dropped}
    for column, to in renamed.items():
        if to.lower() in left:
            raise RippleError(
                f"{node.display_name} has a column {names.get(to.lower(), to)} already",
                f"--rename {column}:{to}",
                "choose another name, or rename or drop the other column as well",
            )
        left.add(to.lower())
    for column in added:
        if column.lower() in left:
            raise RippleError(
                f"{node.display_name} has a column {names.get(column.lower(), column)} already",
                f"--add {column}:{added[column]}",
                "choose another name",
            )
    # Of what nothing reads, the analysis may not know.
    more = [
        name
        for name in names.values()
        if name not in analysed.columns and (name in renamed or name in dropped or name in retyped)
    ]
    return HypotheticalChange(
        dataclasses.replace(
            analysed,
            columns=[*analysed.columns, *more],
            fingerprints=[*analysed.fingerprints, *("00" for _ in more)],
            expressions=[*analysed.expressions, *(None for _ in more)],
        ),
        renamed,
        frozenset(dropped),
        retyped,
        any(change.kind == "remove" for change in changes),
        added,
    )


def _column(node: Node, names: dict[str, str], change: Change) -> str:
    column = names.get(change.column.strip().lower())
    if column is not None and column != ROWS:
        return column
    column_names = list(names.values())
    otherwise = "none of its columns is known: `dbt docs generate` lists them"
    if column_names:
        otherwise = f"it has {', '.join(column_names[:8])}"
    raise RippleError(
        f"{node.display_name} has no column {change.column!r}",
        f"--{change.kind}",
        did_you_mean(change.column, column_names, otherwise),
    )


def _type(
    column: str, to: str, was: str | None, dialect: str, option: str, do: str = "retype"
) -> str:
    canonical = canonical_type(to, dialect) or (to if was and same_type(was, to, dialect) else None)
    if canonical is None:
        raise RippleError(
            f"{to!r} is no type of {dialect}",
            option,
            did_you_mean(to.partition("(")[0], TYPE_NAMES, f"say --{do} {column}:TYPE"),
        )
    if was is not None and same_type(was, to, dialect):
        raise RippleError(f"{column} is {was} already", option, "give another type")
    return canonical


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
        for breach in contract_breaches(comparison, newly_broken(comparison), day)
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
    broken = newly_broken(comparison)
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
    broken: list[str] = []
    reached: list[str] = []
    for unique_id, seen in now.tests.items():
        then = before.tests.get(unique_id)
        if then is None or then == seen:
            continue
        gone = seen.status == "broken" and seen.reason != then.reason
        (broken if gone else reached).append(unique_id)
    reached += [u for u, seen in now.unit_tests.items() if before.unit_tests.get(u) != seen]
    return sorted(broken), sorted(reached)


def _broken_contracts(
    project: Project, seen: Analysis, unique_id: str, retyped: Iterable[str]
) -> set[str]:
    """Models whose enforced contract names the type a column had, and which hand it on as it is."""
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
    # What dbt refuses to build hands nothing on.
    reached = reach_all(starts, same, through=lambda vertex: not is_refused(vertex))
    return {vertex[0] for vertex in reached if vertex not in starts and is_refused(vertex)}


def _in_order(affected: list[Affected], columns: list[str]) -> None:
    """References in the order of the changes."""
    place = {column.lower(): i for i, column in reversed(list(enumerate(columns)))}
    for asset in affected:
        asset.affected_references.sort(key=lambda name: place.get(name.lower(), len(place)))
