"""Figures of incidents by week: how many, how long until the recovery, and for how long something was wrong.

By the definitions of the models ``lineage_kpis`` and ``domain_kpis``, which a test compares: an incident is
counted in the week in which it was opened, and in the one in which it was closed; downtime is the time in
which at least one incident of a domain was open, cut at the weeks it reaches into.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from typing import Final

from dbt_ripple.artifacts.project import as_utc
from dbt_ripple.rendering.page_documents import DomainWeek

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
