"""The figures of a report, out of the artifacts of a project that were kept, one set after the other.

Incidents are found in their run results as the package's models find them. Failures of a node or test in a row, until
it succeeds, are one failure (``int_failures``). Those that the same change caused, or that came of one above, are one
incident (``incident_failures``, ``incidents``). What only the package's own record of runs knows (checksums, the
commit, counted rows) no artifact has: a change is dated by the artifacts that have it first, and tests of service
levels are those tagged ``slo``.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from typing import Final

from dbt_ripple.artifacts.project import as_utc
from dbt_ripple.graph.traversal import Vertex, reach
from dbt_ripple.pages.consecutive_loads import CHECKS, Load, LoadPair, pairs
from dbt_ripple.pages.health import health, incomplete_paths, unknown_downstreams
from dbt_ripple.pages.report import monday_of
from dbt_ripple.pages.report_from_tables import (
    NO_DOMAIN,
    IncidentRow,
    domain_weeks,
    incident_week,
    united,
    weeks_without,
)
from dbt_ripple.rendering.page_documents import Absent, DomainWeek, ReportDocument, WeekFigures

_SUCCESS: Final = frozenset({"success", "pass"})
_FAILURE: Final = frozenset({"error", "fail", "runtime error", "partial success"})
_PACKAGE: Final = "dbt_ripple"
_DEPTH: Final = 12
"""Steps that a change is followed back: the package's default of ``ripple_max_depth``."""
_STEPS_UP: Final = 4


@dataclass(frozen=True)
class NodeRun:
    """The result of one node in one invocation: a row of ``fct_runs``; ``of_adapter`` are dbt's words."""

    unique_id: str
    target: str
    invocation_id: str
    ran_at: datetime
    status: str
    is_slo: bool
    of_adapter: str | None
    node_id: str | None


@dataclass(frozen=True)
class FailuresInARow:
    """Failures of one node or test in a row.

    Attributes:
        cause: where the change began that is taken to be the cause: the number of the pair of loads and
            the unique_id; None where there is none.
        distance: how many nodes away that is.
    """

    unique_id: str
    target: str
    node_id: str | None
    invocation_id: str
    opened_at: datetime
    last_failed_at: datetime
    last_passed_at: datetime | None
    closed_at: datetime | None
    cause: tuple[int, str] | None
    distance: int | None


def runs_of(loads: Sequence[Load]) -> list[NodeRun]:
    """Every run that the artifacts tell of, once."""
    runs: dict[tuple[str, str], NodeRun] = {}
    for load in sorted(loads, key=lambda load: load.seen_at):
        parents: dict[str, list[str]] = {}
        for edge in load.edges:
            parents.setdefault(edge.child_id, []).append(edge.parent_id)
        for result in load.project.executed:
            node = load.nodes.get(result.unique_id)
            key = (result.invocation_id, result.unique_id)
            if node is None or node.package_name == _PACKAGE or key in runs:
                continue
            above = parents.get(result.unique_id, [])
            at = result.completed_at or result.started_at or load.seen_at
            # A test with several parents does not say which one it is about.
            of = result.unique_id if node.resource_type not in CHECKS else None
            runs[key] = NodeRun(
                unique_id=result.unique_id,
                target=load.target,
                invocation_id=result.invocation_id,
                ran_at=as_utc(at),
                status=result.status,
                is_slo="slo" in (node.tags or "").split(","),
                of_adapter=result.message,
                node_id=of or (above[0] if len(above) == 1 else None),
            )
    return sorted(runs.values(), key=lambda run: (run.ran_at, run.invocation_id, run.unique_id))


def contract_refusals(runs: Iterable[NodeRun]) -> list[NodeRun]:
    """The runs in which dbt refused to build what does not keep its contract."""
    text = "enforced contract that failed"
    return [
        run for run in runs if run.status in _FAILURE and text in (run.of_adapter or "").lower()
    ]


def incidents_of(
    runs: Sequence[NodeRun], changes: Sequence[LoadPair], latest: Load
) -> list[IncidentRow]:
    """The incidents of some runs.

    Args:
        runs: ordered by time.
        changes: pairs of loads in a row.
        latest: the project as it is now.
    """
    failures = list(_failures(runs, changes))
    upper = _upper(failures, latest)
    groups: dict[object, list[int]] = {}
    for number, failure in enumerate(failures):
        key: object = (failure.target, *failure.cause) if failure.cause else upper[number]
        groups.setdefault(key, []).append(number)
    incidents = []
    for key, numbers in groups.items():
        first = min(
            numbers,
            key=lambda n: (
                n != key,
                failures[n].opened_at,
                failures[n].distance is not None,
                failures[n].distance or 0,
                failures[n].unique_id,
            ),
        )
        own = [failures[n] for n in numbers]
        states = {_state(failure, latest) for failure in own}
        closed = [failure.closed_at for failure in own if failure.closed_at is not None]
        node = latest.nodes.get(failures[first].node_id or "")
        incidents.append(
            IncidentRow(
                (node.domain if node is not None else None) or NO_DOMAIN,
                min(failure.opened_at for failure in own),
                max(closed) if closed and "open" not in states else None,
                "open" in states,
            )
        )
    return sorted(incidents, key=lambda one: (one.opened_at, one.domain))


def _state(failure: FailuresInARow, latest: Load) -> str:
    if failure.closed_at is not None:
        return "closed"
    is_gone = latest.seen_at > failure.last_failed_at and failure.unique_id not in latest.nodes
    return "gone" if is_gone else "open"


def _failures(runs: Sequence[NodeRun], changes: Sequence[LoadPair]) -> Iterable[FailuresInARow]:
    by_node: dict[tuple[str, str], list[NodeRun]] = {}
    for run in runs:
        if run.status in _SUCCESS | _FAILURE or (run.status == "warn" and run.is_slo):
            by_node.setdefault((run.target, run.unique_id), []).append(run)
    for of in by_node.values():
        passed: NodeRun | None = None
        failed: list[NodeRun] = []
        ended: tuple[NodeRun | None, ...] = (*of, None)
        for one in ended:
            if one is not None and one.status not in _SUCCESS:
                failed.append(one)
                continue
            if failed:
                yield _failure(failed, passed, one, changes)
            passed, failed = one, []


def _failure(
    failed: Sequence[NodeRun],
    passed: NodeRun | None,
    ended: NodeRun | None,
    changes: Sequence[LoadPair],
) -> FailuresInARow:
    first = failed[0]
    cause = _cause(first, passed, changes)
    return FailuresInARow(
        unique_id=first.unique_id,
        target=first.target,
        node_id=first.node_id,
        invocation_id=first.invocation_id,
        opened_at=first.ran_at,
        last_failed_at=failed[-1].ran_at,
        last_passed_at=passed.ran_at if passed else None,
        closed_at=ended.ran_at if ended else None,
        cause=cause[0] if cause else None,
        distance=cause[1] if cause else None,
    )


def _cause(
    first: NodeRun, passed: NodeRun | None, changes: Sequence[LoadPair]
) -> tuple[tuple[int, str], int] | None:
    """The nearest origin of the newest change that reaches it, made since it last passed."""
    reaching = [
        number
        for number, pair in enumerate(changes)
        if pair.head.target in ("", first.target)
        and pair.changed_at <= first.ran_at
        and (passed is None or passed.ran_at < pair.changed_at)
        and any(vertex[0] == first.unique_id for vertex in pair.changes)
    ]
    if not reaching:
        return None
    number = max(reaching, key=lambda n: (changes[n].changed_at, n))
    pair = changes[number]
    at: dict[Vertex, int] = {v: 0 for v in pair.changes if v[0] == first.unique_id}
    for _ in range(_DEPTH):
        following: dict[Vertex, int] = {}
        for vertex, distance in at.items():
            ahead = [(p, distance + (p[0] != vertex[0])) for p in pair.edges.get(vertex, ())]
            if pair.changes[vertex].is_origin:
                ahead.append((vertex, distance))
            for other, far in ahead:
                following[other] = min(far, following.get(other, far))
        at = following
    origins = [(far, v[0], v[1]) for v, far in at.items() if pair.changes[v].is_origin]
    if not origins:
        return None
    far, unique_id, _ = min(origins)
    return (number, unique_id), far


def _upper(failures: Sequence[FailuresInARow], latest: Load) -> list[int]:
    """Of each failure, the highest above it that it came of; itself where there is none."""
    parents: dict[str, list[str]] = {}
    for edge in latest.edges:
        node = latest.nodes.get(edge.child_id)
        if node is not None and node.resource_type not in CHECKS:
            parents.setdefault(edge.child_id, []).append(edge.parent_id)
    on_node: dict[str, list[int]] = {}
    for number, failure in enumerate(failures):
        if failure.cause is None and failure.node_id is not None:
            on_node.setdefault(failure.node_id, []).append(number)
    above = [_above(number, failures, on_node, parents, latest) for number in range(len(failures))]
    roots = list(range(len(failures)))
    for _ in range(_STEPS_UP):
        roots = [number if (up := above[number]) is None else up for number in roots]
    return roots


def _above(
    number: int,
    failures: Sequence[FailuresInARow],
    on_node: Mapping[str, list[int]],
    parents: Mapping[str, list[str]],
    latest: Load,
) -> int | None:
    failure = failures[number]
    if failure.cause is not None or failure.node_id not in latest.nodes:
        return None
    candidates: list[tuple[int, datetime, str, int]] = []
    for unique_id, depth in reach(failure.node_id, parents).items():
        for other in on_node.get(unique_id, ()):
            upper = failures[other]
            if upper.target != failure.target:
                continue
            together = upper.invocation_id == failure.invocation_id
            if depth:
                is_open = (
                    upper.opened_at <= failure.opened_at
                    and (failure.last_passed_at is None or failure.last_passed_at < upper.opened_at)
                    and (upper.closed_at is None or upper.closed_at > failure.opened_at)
                )
                is_above = together or is_open
            else:
                earlier = (upper.opened_at, upper.unique_id) < (
                    failure.opened_at,
                    failure.unique_id,
                )
                is_above = together and earlier
            if is_above:
                candidates.append((-depth, upper.opened_at, upper.unique_id, other))
    return min(candidates)[3] if candidates else None


def from_artifacts(loads: Sequence[Load], weeks: Sequence[date], now: datetime) -> ReportDocument:
    """The report of some weeks.

    Args:
        loads: of each set of artifacts; the last is the project as it is.
        weeks: their Mondays, oldest first.
        now: until when what is open has been open.
    """
    latest = loads[-1]
    changes = pairs(loads)
    runs = runs_of(loads)
    incidents = incidents_of(runs, changes, latest)
    ran = {monday_of(run.ran_at) for run in runs}
    newest: dict[date, Load] = {}
    for load in sorted(loads, key=lambda load: load.seen_at):
        newest[monday_of(load.seen_at)] = load
    compared = {monday_of(pair.changed_at) for pair in changes}
    violations = [
        *(
            (monday_of(p.changed_at), unique_id)
            for p in changes
            for unique_id in p.broken_promises()
        ),
        *((monday_of(r.ran_at), r.node_id or r.unique_id) for r in contract_refusals(runs)),
    ]
    figures = []
    for week in weeks:
        counted = incident_week(incidents, week) if week in ran else None
        figures.append(
            _week(
                WeekFigures(
                    week=week,
                    incidents_opened=counted.opened if counted else None,
                    incidents_closed=counted.closed if counted else None,
                    mttr_minutes=counted.mttr_minutes if counted else None,
                ),
                newest.get(week),
                [p for p in changes if monday_of(p.changed_at) == week]
                if week in compared
                else None,
                sum(at == week for at, _ in violations),
            )
        )
    domains = united(
        _domains(weeks, changes, violations, latest),
        domain_weeks(incidents, weeks, ran, now),
        weeks,
    )
    absent = [
        *weeks_without(figures, "there are no artifacts of", "there are no results of runs in")
    ]
    missing = [str(week) for week in weeks if week in newest and week not in compared]
    if missing:
        why = f"there are no earlier artifacts to compare with in the week of {', '.join(missing)}"
        absent.append(Absent(what="changes, blast radius and contract violations", why=why))
    if any(load.project.run_args.get("target") is None for load in loads):
        why = "some artifacts do not say it: they are taken to be of one target"
        absent.append(Absent(what="the target that was built", why=why))
    return ReportDocument(
        project=latest.project.name,
        source="artifacts",
        first_week=weeks[0],
        last_week=weeks[-1],
        weeks=figures,
        domains=domains,
        absent=absent,
    )


def _week(
    figures: WeekFigures, load: Load | None, changes: list[LoadPair] | None, violations: int
) -> WeekFigures:
    """What a week's newest artifacts, and its changes, say."""
    if load is not None:
        nodes = list(load.nodes.values())
        health_figures = health(
            nodes,
            load.columns,
            unknown_downstreams(nodes, load.edges, load.column_edges),
            incomplete_paths(nodes, load.edges),
            (),
        )
        figures.node_coverage = health_figures.node_coverage
        figures.tier1_node_coverage = health_figures.tier1_node_coverage
        figures.tier1_column_coverage = health_figures.tier1_column_coverage
        figures.certified_path_integrity = health_figures.certified_path_integrity
        figures.unknown_downstreams = health_figures.unknown_downstreams
    if changes is not None:
        radius = sorted(pair.blast_radius() for pair in changes if pair.changed_nodes)
        figures.changes = len(radius)
        figures.contract_violations = violations
        if radius:
            half = len(radius) // 2
            middle = radius[half : half + 1] if len(radius) % 2 else radius[half - 1 : half + 1]
            figures.median_blast_radius = sum(middle) / len(middle)
            figures.largest_blast_radius = radius[-1]
            figures.violations_per_change = violations / len(radius)
    return figures


def _domains(
    weeks: Sequence[date],
    changes: Sequence[LoadPair],
    violations: Sequence[tuple[date, str]],
    latest: Load,
) -> dict[tuple[str, date], DomainWeek]:
    """Contracts and changes by domain and week; which change failed is not told."""

    def domain_of(unique_id: str) -> str:
        node = latest.nodes.get(unique_id)
        return (node.domain if node is not None else None) or NO_DOMAIN

    broken: dict[tuple[str, date], int] = {}
    for week, unique_id in violations:
        key = (domain_of(unique_id), week)
        broken[key] = broken.get(key, 0) + 1
    changes_of: dict[tuple[str, date], int] = {}
    for pair in changes:
        for domain in {domain_of(unique_id) for unique_id in pair.changed_nodes}:
            key = (domain, monday_of(pair.changed_at))
            changes_of[key] = changes_of.get(key, 0) + 1
    return {
        key: DomainWeek(
            domain=key[0],
            week=key[1],
            contract_violations=broken.get(key, 0),
            changes=changes_of.get(key, 0),
        )
        for key in sorted({*broken, *changes_of})
        if key[1] in weeks
    }
