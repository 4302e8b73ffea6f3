"""The figures of a report, out of the artifacts of a project that were kept, one set after the other."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date, datetime

from dbt_ripple.pages.consecutive_loads import Load, LoadPair, pairs
from dbt_ripple.pages.failures_of_runs import contract_refusals, incidents_of, runs_of
from dbt_ripple.pages.health import health, incomplete_paths, unknown_downstreams
from dbt_ripple.pages.incident_figures import NO_DOMAIN, domain_weeks, incident_week
from dbt_ripple.pages.report import monday_of
from dbt_ripple.pages.report_from_tables import united, weeks_without
from dbt_ripple.rendering.page_documents import Absent, DomainWeek, ReportDocument, WeekFigures


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
