"""A hypothetical change: who would break if a relation's columns were different.

The project is linked once more with the relation as it would be, and compared with itself. A
reader that cannot find its columns any more breaks, and a column with another name passes through
every ``select *`` under its new name. For the semantic layer, the project is compared with one
without the metric, saved query or element (`governance.semantic_layer`). The decision is the gate's for the
same change, with the default levels of its rules.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Sequence
from typing import Literal, NamedTuple

import msgspec

from dbt_ripple.artifacts import Node, Project, did_you_mean
from dbt_ripple.changes import Comparison, compare
from dbt_ripple.errors import RippleError
from dbt_ripple.flow.data_types import TYPE_NAMES, canonical_type, same_type
from dbt_ripple.flow.identifiers import dialect_of
from dbt_ripple.governance.affected_assets import (
    Affected,
    RiskLevel,
    affected_by,
    edited,
    newly_broken,
    risk_level,
)
from dbt_ripple.governance.checks import reader_breaches
from dbt_ripple.governance.column_types import types_of
from dbt_ripple.governance.contracts import contract_breaches, promises
from dbt_ripple.governance.rules import RULES
from dbt_ripple.governance.semantic_layer import layer_after, layer_breaches
from dbt_ripple.graph.analyse_project import analyse
from dbt_ripple.graph.cache import Cache
from dbt_ripple.graph.hypothetical import HypotheticalChange
from dbt_ripple.graph.lineage import Analysis, column_names
from dbt_ripple.graph.lineage_tables import ROWS
from dbt_ripple.graph.relations import RELATIONS
from dbt_ripple.graph.semantic_references import SEMANTIC
from dbt_ripple.reasons import Code, Reason

Decision = Literal["APPROVED", "CAUTION", "BLOCKED"]
Kind = Literal["rename", "drop", "retype", "deprecate"]


class Change(NamedTuple):
    """One change to a relation: ``to`` is the new name or type; deprecate has no column."""

    kind: Kind
    column: str = ""
    to: str = ""


class ImpactReport(msgspec.Struct, kw_only=True):
    """Who is reached by a change, and what to do.

    Attributes:
        decision: BLOCKED where something breaks for certain (it will not compile, it is known to read
            what is gone, or a promise is not kept), CAUTION where anything may differ.
        risk_level: as `governance.affected_assets.risk_level`.
        affected_assets: nearest first; empty where nothing reads what would change.
        recommendation: what to do next, in one sentence.
        opaque: nodes downstream that could not be analysed, with the reason.
        broken_tests: the data tests that will not compile.
        tests: the other data tests, and the unit tests, that read something of the change.
        promises: what is promised of the relation and would not be kept.
    """

    decision: Decision
    risk_level: RiskLevel
    affected_assets: list[Affected]
    recommendation: str
    opaque: dict[str, Reason] = {}
    broken_tests: list[str] = []
    tests: list[str] = []
    promises: list[Reason] = []

    def document(self) -> dict[str, object]:
        """The report as ``--format json`` prints it."""
        return {
            "decision": self.decision,
            "risk_level": self.risk_level,
            "affected_count": len(self.affected_assets),
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
) -> ImpactReport:
    """Who breaks if a relation were changed so.

    Args:
        project: as it is.
        node: a model, seed, snapshot or source, or a node of the semantic layer.
        changes: what would be done to it, at least one.
        analysis: `analyse(project)`, where it is at hand.
        cache: for the analyses that are made here.

    Raises:
        RippleError: a change is malformed: no such column or type, a new name that is taken, or two
            changes that contradict each other. The nearest valid one is given.
    """
    seen = analysis or analyse(project, cache=cache)
    if not changes:
        raise RippleError("no change is given", node.spoken_name, f"say {_options(node)}")
    if len(changes) > 1 and any(change.kind == "deprecate" for change in changes):
        raise RippleError(
            f"removes {node.spoken_name} with all that is in it", "--deprecate", "give it alone"
        )
    for change in changes:
        if change.kind == "rename" and change.column.strip() == change.to.strip():
            raise RippleError(
                f"{change.to} is its name already",
                f"--rename {change.column}:{change.to}",
                "give a new name",
            )
    if node.resource_type in SEMANTIC:
        after = layer_after(project, node, changes)
        comparison = compare(project, after, base_analysis=seen, cache=cache)
        affected = affected_by(comparison, edited(comparison))
        promised: list[Reason] = []
        stops = False
    else:
        node = _relation(project, seen, node)
        hypothetical = _supposed(project, seen, node, changes)
        then = analyse(project, cache=cache, hypothetical={node.unique_id: hypothetical})
        comparison = compare(project, project, base_analysis=seen, head_analysis=then)
        contract_types = _broken_contracts(project, seen, node.unique_id, hypothetical.retyped)
        affected = affected_by(comparison, [node.unique_id], contract_types=contract_types)
        promised = _promises(comparison, node, changes, hypothetical)
        stops = bool(contract_types) or (
            hypothetical.gone and any(a.severity == "breaking" for a in affected)
        )
    _in_order(affected, [change.column for change in changes])
    broken = [b for b in reader_breaches(comparison) if b.unique_id != node.unique_id]
    broken_tests, tests = _tests(comparison)
    decision: Decision = "APPROVED"
    if broken or promised or stops:
        decision = "BLOCKED"
    elif {a.severity for a in affected} & {"breaking", "warning"} or any(
        layer_breaches(comparison)
    ):
        decision = "CAUTION"
    reached = {a.unique_id for a in affected}
    return ImpactReport(
        decision=decision,
        risk_level=risk_level(affected, project),
        affected_assets=affected,
        recommendation=_recommendation(
            node, changes, affected, project, [b.unique_id for b in broken if b.unique_id]
        ),
        opaque={
            unique_id: found.reason or Code.NO_REASON_GIVEN()
            for unique_id, found in seen.nodes.items()
            if found.status == "opaque" and unique_id in reached
        },
        broken_tests=broken_tests,
        tests=tests,
        promises=promised,
    )


# --- what is asked ---------------------------------------------------------------------------------


def _relation(project: Project, seen: Analysis, node: Node) -> Node:
    """The node whose columns are meant: a source that a node builds is that node."""
    if node.unique_id in seen.nodes and node.resource_type in RELATIONS:
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
        "name a model, seed, snapshot or source, or a metric, a semantic model or a saved query",
    )


def _options(node: Node) -> str:
    """What can be done to a node, in the words of the command line."""
    if node.resource_type == "metric":
        return f"--deprecate, or --rename {node.name}:NEW"
    if node.resource_type == "saved_query":
        return "--drop a or --deprecate"
    if node.resource_type == "semantic_model":
        return "--rename a:b, --drop c or --deprecate"
    return "--rename a:b, --drop c, --retype d:type or --deprecate"


def _article(noun: str) -> str:
    said = noun.replace("_", " ")
    return f"an {said}" if said[:1] in "aeio" else f"a {said}"


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
    for change in changes:
        if change.kind == "deprecate":
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
        any(change.kind == "deprecate" for change in changes),
    )


def _column(node: Node, names: dict[str, str], change: Change) -> str:
    found = names.get(change.column.strip().lower())
    if found is not None and found != ROWS:
        return found
    known = list(names.values())
    otherwise = "none of its columns is known: `dbt docs generate` lists them"
    if known:
        otherwise = f"it has {', '.join(known[:8])}"
    raise RippleError(
        f"{node.display_name} has no column {change.column!r}",
        f"--{change.kind}",
        did_you_mean(change.column, known, otherwise),
    )


def _type(column: str, to: str, was: str | None, dialect: str, option: str) -> str:
    canonical = canonical_type(to, dialect) or (to if was and same_type(was, to, dialect) else None)
    if canonical is None:
        raise RippleError(
            f"{to!r} is no type of {dialect}",
            option,
            did_you_mean(to.partition("(")[0], TYPE_NAMES, f"say --retype {column}:TYPE"),
        )
    if was is not None and same_type(was, to, dialect):
        raise RippleError(f"{column} is {was} already", option, "give another type")
    return canonical


# --- what follows ----------------------------------------------------------------------------------


def _promises(
    comparison: Comparison, node: Node, changes: Sequence[Change], hypothetical: HypotheticalChange
) -> list[Reason]:
    """What the gate would say of the contracts: only what blocks."""
    found = [
        Code.OF_COLUMN(column=breach.column, because=breach.reason)
        if breach.column
        else breach.reason
        for breach in contract_breaches(comparison, newly_broken(comparison))
        if RULES[breach.rule].level == "block" and breach.unique_id == node.unique_id
    ]
    if promises(node):
        found += [
            Code.OF_COLUMN(column=c.column, because=Code.RETYPED_TO(to=c.to))
            for c in changes
            if c.kind == "retype"
        ]
        if hypothetical.gone and node.deprecation_date is None:
            found = [Code.RELATION_REMOVED(name=node.display_name)]
    return found


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
    same: dict[tuple[str, str], list[tuple[str, str]]] = {}
    for edge in seen.edges:
        if edge.subtype == "IDENTITY" and edge.parent_column != ROWS:
            same.setdefault((edge.parent_id, edge.parent_column), []).append(
                (edge.child_id, edge.child_column)
            )
    found: set[str] = set()
    stack = [(unique_id, column) for column in retyped]
    known = set(stack)
    while stack:
        for child in same.get(stack.pop(), ()):
            if child in known:
                continue
            known.add(child)
            node = project.nodes.get(child[0])
            if node is not None and node.contract_enforced:
                found.add(child[0])  # dbt refuses to build it: nothing is handed on
            else:
                stack.append(child)
    return found


def _in_order(affected: list[Affected], columns: list[str]) -> None:
    """References in the order of the changes."""
    place = {column.lower(): i for i, column in reversed(list(enumerate(columns)))}
    for asset in affected:
        asset.affected_references.sort(key=lambda name: place.get(name.lower(), len(place)))


def _recommendation(
    node: Node,
    changes: Sequence[Change],
    affected: list[Affected],
    project: Project,
    broken: Sequence[str],
) -> str:
    semantic = node.resource_type in SEMANTIC
    if not affected and semantic:
        return (
            f"Nothing in the project reads what would change in {node.spoken_name}: ask who does from "
            "outside, dashboards and queries, before it goes."
        )
    if not affected:
        return f"Go ahead: nothing known reads what would change in {node.display_name}."
    direct = [
        project.nodes[a.unique_id].spoken_name
        for a in affected
        if a.severity == "breaking" and (len(a.path) == 2 or _declares(a, project))
    ]
    asking = {a.unique_id for a in affected} & set(broken)
    if asking and "deprecate" not in {change.kind for change in changes}:
        # Who says the name; what only hands it on with a `*` needs no edit.
        direct = [project.nodes[a.unique_id].spoken_name for a in affected if a.unique_id in asking]
    others = (a.unique_id for a in affected if a.severity != "info")
    readers = _listed(direct or [project.nodes[u].spoken_name for u in others])
    owners = _listed(sorted({a.owner for a in affected if a.owner}))
    tell = f", and tell {owners}" if owners else ""
    kinds = {change.kind for change in changes}
    breaks = any(a.severity == "breaking" for a in affected)
    if "deprecate" in kinds and semantic:
        return (
            f"Move {readers} to what replaces {node.spoken_name}, and remove it when nothing reads it "
            f"any more, dashboards and queries included{tell}."
        )
    if "deprecate" in kinds:
        return (
            f"Give {node.display_name} a deprecation_date, move {readers} to what replaces it, and "
            f"remove it when nothing reads it any more{tell}."
        )
    if not breaks and kinds == {"retype"}:
        types = _listed([f"{c.column} as {c.to}" for c in changes])
        return f"Build {readers} with {types} beside what is there and compare the values{tell}."
    if not breaks:
        return f"Look at {readers} before it is merged{tell}."
    steps = []
    if renames := [c for c in changes if c.kind == "rename"]:
        pairs = _listed([f"{c.to} beside {c.column}" for c in renames])
        steps.append(f"add {pairs}")
    if retypes := [c for c in changes if c.kind == "retype"]:
        steps.append(
            f"cast {_listed([c.column for c in retypes])} back where the old type is promised"
        )
    gone = _listed([c.column for c in changes if c.kind in ("rename", "drop")])
    if gone:
        steps.append(f"move {readers} off {gone} one by one")
        steps.append(f"then drop {gone}")
    text = ", ".join(steps)
    return f"{text[:1].upper()}{text[1:]}{tell}."


def _declares(asset: Affected, project: Project) -> bool:
    return project.nodes[asset.unique_id].resource_type == "exposure"


def _listed(names: Sequence[str]) -> str:
    if len(names) > 5:
        return f"{', '.join(names[:5])} and {len(names) - 5} more"
    return " and ".join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else names)
