"""The figures of a report, out of the models that the dbt package builds on the lineage tables.

Figures of incidents by week (how many, how long until the recovery, and for how long something was wrong) follow the
definitions of the models ``lineage_kpis`` and ``domain_kpis``, which a test compares: an incident is
counted in the week in which it was opened, and in the one in which it was closed; downtime is the time in
which at least one incident of a domain was open, cut at the weeks it reaches into.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from typing import Final

import msgspec

from dbt_ripple.artifacts.project import as_utc
from dbt_ripple.pages.report import monday_of
from dbt_ripple.rendering.page_documents import Absent, DomainWeek, ReportDocument, WeekFigures
from dbt_ripple.spark.package_models import Plain, Rows

NO_DOMAIN: Final = "no domain"


@dataclass(frozen=True)
class IncidentRow:
    """An incident, as the model ``incidents`` has it.

    Attributes:
        closed_at: None where it is open, or what failed is gone.
        is_open: whether it still fails.
    """

    domain: str
    opened_at: datetime
    closed_at: datetime | None
    is_open: bool


@dataclass(frozen=True)
class IncidentWeek:
    """Incidents of one week.

    Attributes:
        mttr_minutes: None where none was closed.
    """

    opened: int
    closed: int
    mttr_minutes: float | None


def incident_week(incidents: Iterable[IncidentRow], week: date) -> IncidentWeek:
    """What a week was like; the week is named by its Monday."""
    begins, ends = week_bounds(week)
    opened = 0
    took: list[float] = []
    for one in incidents:
        opened += begins <= one.opened_at < ends
        if one.closed_at is not None and begins <= one.closed_at < ends:
            took.append((one.closed_at - one.opened_at).total_seconds() / 60)
    return IncidentWeek(opened, len(took), sum(took) / len(took) if took else None)


def downtime_hours(incidents: Iterable[IncidentRow], week: date, now: datetime) -> float:
    """Hours of a week in which at least one of some incidents was open."""
    begins, ends = week_bounds(week)
    spans = sorted(
        (max(one.opened_at, begins), min(until, ends))
        for one in incidents
        if (until := one.closed_at or (now if one.is_open else None)) is not None
        and until > begins
        and one.opened_at < ends
    )
    seconds, covered = 0.0, begins
    for start, end in spans:
        seconds += max((end - max(start, covered)).total_seconds(), 0.0)
        covered = max(covered, end)
    return seconds / 3600


def domain_weeks(
    incidents: Sequence[IncidentRow],
    weeks: Collection[date],
    counted_weeks: Collection[date],
    now: datetime,
) -> list[DomainWeek]:
    """Each domain that had an incident, in each of some weeks in which something of it was wrong.

    Args:
        incidents: all that there are.
        weeks: their Mondays.
        counted_weeks: those in which something ran: in another, what was open stayed open, and whether
            anything else was is not known.
        now: until when what is open has been open.
    """
    by_domain: dict[str, list[IncidentRow]] = {}
    for one in incidents:
        by_domain.setdefault(one.domain, []).append(one)
    rows = []
    for domain, own in sorted(by_domain.items()):
        for week in sorted(weeks):
            counted = incident_week(own, week) if week in counted_weeks else None
            hours = downtime_hours(own, week, now)
            if hours or (counted and (counted.opened or counted.closed)):
                rows.append(
                    DomainWeek(
                        domain=domain,
                        week=week,
                        downtime_hours=hours,
                        incidents_opened=counted.opened if counted else None,
                        incidents_closed=counted.closed if counted else None,
                        mttr_minutes=counted.mttr_minutes if counted else None,
                    )
                )
    return rows


def week_bounds(week: date) -> tuple[datetime, datetime]:
    """When a week begins and when the next does, in UTC."""
    begins = as_utc(datetime.combine(week, time(), UTC))
    return begins, begins + timedelta(weeks=1)


MODELS: Final = ("lineage_kpis", "median_blast_radius", "incidents", "domain_kpis")
RUNS: Final = "fct_runs"
"""The model that tells in which weeks something ran, by its column ``ran_at``."""


def from_tables(
    project: str,
    weeks: Sequence[date],
    rows: Mapping[str, Rows],
    unread: Mapping[str, str],
    run_weeks: Collection[date],
    now: datetime,
) -> ReportDocument:
    """The report of some weeks.

    A week in which nothing ran says nothing of incidents, and one in which nothing was loaded nothing of
    coverage and changes: these are not known, and not 0.

    Args:
        project: its name.
        weeks: their Mondays, oldest first.
        rows: of each of `MODELS` that could be read.
        unread: why the others could not.
        run_weeks: the Mondays of the weeks in which a run was recorded.
        now: until when what is open has been open.
    """
    kpis = _by_week(rows.get("lineage_kpis", ()))
    radius = _by_week(rows.get("median_blast_radius", ()))
    incidents = [*_incidents(rows.get("incidents", ()))]
    of_domains = _domains(rows.get("domain_kpis", ()))
    counted_weeks = {week for week in weeks if "incidents" in rows and week in run_weeks}
    figures = []
    for week in weeks:
        row = kpis.get(week, {})
        is_loaded = row.get("snapshot_id") is not None
        changes = _whole(row.get("changes")) if is_loaded else None
        violations = None
        if "domain_kpis" in rows and (is_loaded or week in run_weeks):
            of_week = (one for (_, at), one in of_domains.items() if at == week)
            violations = sum(one.contract_violations or 0 for one in of_week)
        counted = incident_week(incidents, week) if week in counted_weeks else None
        figures.append(
            WeekFigures(
                week=week,
                node_coverage=_number(row.get("node_coverage")),
                tier1_node_coverage=_number(row.get("tier1_node_coverage")),
                tier1_column_coverage=_number(row.get("tier1_column_coverage")),
                certified_path_integrity=_number(row.get("certified_path_integrity")),
                unknown_downstreams=_whole(row.get("unknown_downstreams")),
                changes=changes,
                median_blast_radius=_number(row.get("median_blast_radius")),
                largest_blast_radius=_whole(radius.get(week, {}).get("largest_blast_radius")),
                incidents_opened=counted.opened if counted else None,
                incidents_closed=counted.closed if counted else None,
                mttr_minutes=counted.mttr_minutes if counted else None,
                contract_violations=violations,
                violations_per_change=violations / changes
                if violations is not None and changes
                else None,
            )
        )
    absent = [Absent(what=f"what the model {name} says", why=why) for name, why in unread.items()]
    return ReportDocument(
        project=project,
        source="tables",
        first_week=weeks[0],
        last_week=weeks[-1],
        weeks=figures,
        domains=united(of_domains, domain_weeks(incidents, weeks, counted_weeks, now), weeks),
        absent=[
            *absent,
            *weeks_without(figures, "no lineage was loaded in", "no run was recorded in"),
        ],
    )


def weeks_without(weeks: Sequence[WeekFigures], loads: str, runs: str) -> Iterable[Absent]:
    """The weeks of which something is not known, because nothing happened that would tell.

    Args:
        weeks: all of the report.
        loads: what there is not of a week without lineage.
        runs: what there is not of a week without runs.
    """
    for name, what, why in (
        ("node_coverage", "coverage and changes", loads),
        ("incidents_opened", "incidents, MTTR and downtime", runs),
    ):
        missing = [str(week.week) for week in weeks if getattr(week, name) is None]
        if missing:
            of = "any of these weeks"
            if len(missing) < len(weeks):
                of = f"the {'week' if len(missing) == 1 else 'weeks'} of {', '.join(missing)}"
            yield Absent(what=what, why=f"{why} {of}")


def _incidents(rows: Iterable[Mapping[str, Plain]]) -> Iterable[IncidentRow]:
    for row in rows:
        opened = _moment(row.get("opened_at"))
        if opened is not None:
            yield IncidentRow(
                str(row.get("domain") or NO_DOMAIN),
                opened,
                _moment(row.get("closed_at")),
                row.get("state") == "open",
            )


def _domains(rows: Iterable[Mapping[str, Plain]]) -> dict[tuple[str, date], DomainWeek]:
    """What domain_kpis says of contracts and changes, by domain and week."""
    by_domain_and_week = {}
    for row in rows:
        week = week_in(row.get("week"))
        if week is not None:
            domain = str(row.get("domain"))
            by_domain_and_week[domain, week] = DomainWeek(
                domain=domain,
                week=week,
                contract_violations=_whole(row.get("contract_violations")),
                changes=_whole(row.get("changes")),
                change_failure_rate=_number(row.get("change_failure_rate")),
            )
    return by_domain_and_week


def united(
    of_domains: Mapping[tuple[str, date], DomainWeek],
    of_incidents: Iterable[DomainWeek],
    weeks: Collection[date],
) -> list[DomainWeek]:
    """The figures of contracts and changes, and those of incidents, joined by week."""
    by_domain_and_week = {key: one for key, one in of_domains.items() if key[1] in weeks}
    for one in of_incidents:
        other = by_domain_and_week.get((one.domain, one.week))
        by_domain_and_week[one.domain, one.week] = (
            one
            if other is None
            else msgspec.structs.replace(
                one,
                contract_violations=other.contract_violations,
                changes=other.changes,
                change_failure_rate=other.change_failure_rate,
            )
        )
    return [by_domain_and_week[key] for key in sorted(by_domain_and_week)]


def _by_week(rows: Iterable[Mapping[str, Plain]]) -> dict[date, Mapping[str, Plain]]:
    return {week: row for row in rows if (week := week_in(row.get("week"))) is not None}


def week_in(value: Plain) -> date | None:
    """The Monday that a model's column ``week`` means.

    It is midnight in the session's time zone, whatever that is: the nearest Monday.

    Example:
        >>> str(week_in("2026-11-22T23:00:00+00:00")), str(week_in("2026-11-23T05:00:00+00:00"))
        ('2026-11-23', '2026-11-23')
    """
    moment = _moment(value)
    return None if moment is None else monday_of(moment + timedelta(days=3, hours=12))


def _moment(value: Plain) -> datetime | None:
    try:
        return as_utc(datetime.fromisoformat(str(value)))
    except ValueError:
        return None


def _number(value: Plain) -> float | None:
    return float(value) if isinstance(value, int | float) else None


def _whole(value: Plain) -> int | None:
    return int(value) if isinstance(value, int | float) else None
