"""The report of some weeks: what is shown of the figures, and how it is written as a page, Markdown and text.

The figures are those of the dbt package's models ``lineage_kpis`` and ``domain_kpis``, whoever computed them
(`pages.report_from_tables`, `pages.report_from_artifacts`). What is not known is called so, and is never a zero.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from itertools import pairwise
from typing import Final
from xml.sax.saxutils import escape, quoteattr

from dbt_ripple.pages.html import page
from dbt_ripple.rendering.escaping import code, prose
from dbt_ripple.rendering.output import percent
from dbt_ripple.rendering.page_documents import DomainWeek, ReportDocument, WeekFigures

_WIDTH: Final = 300.0
_HEIGHT: Final = 74.0
_LEFT: Final = 12.0
_TOP: Final = 8.0
_BOTTOM: Final = 18.0
_BARS: Final = "▁▂▃▄▅▆▇█"
GAP: Final = "·"
"""Stands for a week of which the figure is not known."""


def trend(
    title: str,
    weeks: Sequence[str],
    values: Sequence[float | None],
    spelled: Callable[[float], str],
    top: float | None = None,
) -> str:
    """A line over the weeks; where a figure is not known there is a gap, and never a zero.

    Args:
        title: what is shown, for who cannot see it.
        weeks: as they are written below.
        values: one for each week.
        spelled: how a value is written.
        top: the largest value there can be, where there is one.

    Example:
        >>> "not known" in trend("t", ["a", "b"], [1.0, None], str)
        True
    """
    numbers = [value for value in values if value is not None]
    highest = top if top is not None else max([*numbers, 0.0])
    label = ", ".join(
        f"{week}: {'not known' if value is None else spelled(value)}"
        for week, value in zip(weeks, values, strict=True)
    )
    step = (_WIDTH - 2 * _LEFT) / max(len(weeks) - 1, 1)
    space = _HEIGHT - _TOP - _BOTTOM
    # One value alone stands in the middle; a line of zeros lies on the ground.
    points = [
        None
        if value is None
        else (
            _LEFT + step * number if len(weeks) > 1 else _WIDTH / 2,
            _TOP + space * (1 - (value / highest if highest > 0 else 0.0)),
        )
        for number, value in enumerate(values)
    ]
    baseline = _HEIGHT - _BOTTOM
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" class="trend" role="img" aria-label={quoteattr(f"{title}. {label}")}'
        f' viewBox="0 0 {_WIDTH:g} {_HEIGHT:g}" width="{_WIDTH:g}" height="{_HEIGHT:g}">',
        f"<style>{_STYLE}</style>",
        f'<path class="ground" d="M{_LEFT:g} {baseline:g}H{_WIDTH - _LEFT:g}"/>',
    ]
    lines += [
        f'<path class="line" d="M{one[0]:g} {one[1]:g}L{other[0]:g} {other[1]:g}"/>'
        for one, other in pairwise(points)
        if one is not None and other is not None
    ]
    for week, value, point in zip(weeks, values, points, strict=True):
        if value is not None and point is not None:
            about = escape(f"{week}: {spelled(value)}")
            lines.append(
                f'<circle class="point" cx="{point[0]:g}" cy="{point[1]:g}" r="3"><title>{about}</title></circle>'
            )
    if not numbers:
        lines.append(f'<text class="none" x="{_LEFT:g}" y="{_HEIGHT / 2:g}">not known</text>')
    if weeks:
        below = _HEIGHT - 5
        lines.append(f'<text class="week" x="{_LEFT:g}" y="{below:g}">{escape(weeks[0])}</text>')
        if len(weeks) > 1:
            lines.append(
                f'<text class="week" x="{_WIDTH - _LEFT:g}" y="{below:g}" text-anchor="end">{escape(weeks[-1])}</text>'
            )
    return "\n".join([*lines, "</svg>"])


def sparkline(values: Sequence[float | None], top: float | None = None) -> str:
    """The same in characters, one a week.

    Example:
        >>> sparkline([0, None, 2, 4])
        '▁·▅█'
        >>> sparkline([0.5, 1.0], top=1)
        '▅█'
    """
    numbers = [value for value in values if value is not None]
    highest = top if top is not None else max(numbers, default=0.0)
    return "".join(
        GAP
        if value is None
        else _BARS[
            min(round(value / highest * (len(_BARS) - 1) + 0.01), len(_BARS) - 1)
            if highest > 0
            else 0
        ]
        for value in values
    )


_STYLE: Final = (
    ".trend{--line:#0b4ea2;--small:#4b5563;--ground:#8b93a0;font-family:system-ui,sans-serif;max-width:100%}"
    "@media screen and (prefers-color-scheme:dark){.trend{--line:#8ab8ff;--small:#b6bcc6;--ground:#7b8492}}"
    ".trend .line{stroke:var(--line);stroke-width:2;fill:none}.trend .point{fill:var(--line)}"
    ".trend .ground{stroke:var(--ground);stroke-width:1}"
    ".trend .week,.trend .none{font-size:11px;fill:var(--small)}"
)


NOT_KNOWN: Final = "not known"
TREND: Final = 3
"""Weeks from which on a figure is drawn: fewer are no trend, and a table says more of them."""


def mondays(last: date, weeks: int) -> list[date]:
    """The Mondays of some weeks, oldest first; the last week is that of a day.

    Example:
        >>> [str(day) for day in mondays(date(2026, 11, 25), 2)]
        ['2026-11-16', '2026-11-23']
    """
    monday = monday_of(last)
    return [monday - timedelta(weeks=ago) for ago in range(weeks - 1, -1, -1)]


def monday_of(day: date | datetime) -> date:
    """The Monday of a day's week, as the package's macro ``week_of``."""
    plain = day.date() if isinstance(day, datetime) else day
    return plain - timedelta(days=plain.weekday())


def number(value: float) -> str:
    """A number with at most one digit behind the point.

    Example:
        >>> number(3.0), number(2.25), number(1234.5)
        ('3', '2.2', '1,234.5')
    """
    return f"{value:,.0f}" if float(value).is_integer() else f"{value:,.1f}"


def minutes(value: float) -> str:
    """A duration.

    Example:
        >>> minutes(42), minutes(90), minutes(60 * 50)
        ('42 min', '1.5 h', '2.1 d')
    """
    if value < 60:
        return f"{number(value)} min"
    return f"{number(value / 60)} h" if value < 48 * 60 else f"{number(value / 60 / 24)} d"


def hours(value: float) -> str:
    """The same of hours."""
    return minutes(value * 60)


@dataclass(frozen=True)
class Series:
    """One figure over the weeks.

    Attributes:
        meaning: what it says, in one sentence.
        spelled: how a value is written.
        values: one for each week.
        whole: over all weeks, None where it is not known.
        top: the largest value there can be, where there is one.
    """

    title: str
    meaning: str
    spelled: Callable[[float], str]
    values: tuple[float | None, ...]
    whole: float | None
    top: float | None = None

    def as_text(self, value: float | None) -> str:
        """A value in words."""
        return NOT_KNOWN if value is None else self.spelled(value)


def series_of(report: ReportDocument) -> list[Series]:
    """All figures of a report, in the order in which they are shown."""
    weeks = report.weeks

    def column(name: str) -> tuple[float | None, ...]:
        return tuple(getattr(week, name) for week in weeks)

    def last(values: Sequence[float | None]) -> float | None:
        return next((value for value in reversed(values) if value is not None), None)

    def total(values: Sequence[float | None]) -> float | None:
        numbers = [value for value in values if value is not None]
        return sum(numbers) if numbers else None

    def state(title: str, meaning: str, name: str, top: float | None = 1.0) -> Series:
        values = column(name)
        spelled = percent if top == 1.0 else number
        return Series(
            title=title,
            meaning=meaning,
            spelled=spelled,
            values=values,
            whole=last(values),
            top=top,
        )

    def sum_of(title: str, meaning: str, name: str) -> Series:
        values = column(name)
        return Series(title, meaning, number, values, total(values))

    changes, violations = column("changes"), column("contract_violations")
    both = [(v, c) for v, c in zip(violations, changes, strict=True) if None not in (v, c)]
    total_changes = sum(c or 0 for _, c in both)
    rate = sum(v or 0 for v, _ in both) / total_changes if total_changes else None
    radius, down = column("median_blast_radius"), _downtime(report)
    radii = [value for value in radius if value is not None]
    return [
        state(
            "Coverage",
            "Share of the nodes with a query whose columns are followed.",
            "node_coverage",
        ),
        state(
            "Coverage of tier 1",
            "Share of the columns of tier 1 that are followed.",
            "tier1_column_coverage",
        ),
        state(
            "Certified paths",
            "Share of the certified nodes above which everything is followed.",
            "certified_path_integrity",
        ),
        state(
            "Unknown readers",
            "Relations of which it is not known who reads which columns.",
            "unknown_downstreams",
            top=None,
        ),
        sum_of("Incidents", "Incidents that were opened.", "incidents_opened"),
        Series(
            "MTTR",
            "Mean time from the first failure to the recovery, of the incidents that were closed.",
            minutes,
            column("mttr_minutes"),
            _mttr(weeks),
        ),
        Series(
            "Downtime",
            "Time in which an incident was open, added up over the domains.",
            hours,
            down,
            total(down),
        ),
        sum_of("Contract violations", "Broken promises that were found.", "contract_violations"),
        Series(
            "Contract violation rate",
            "Broken promises by change of a definition.",
            lambda value: f"{value:.2f}",
            column("violations_per_change"),
            rate,
        ),
        sum_of("Changes", "Loads that changed a definition.", "changes"),
        Series(
            "Blast radius",
            "Assets that a change broke or may have changed: the middle of the week's changes; over all weeks, the largest of these.",
            number,
            radius,
            max(radii, default=None),
        ),
    ]


def _mttr(weeks: Sequence[WeekFigures]) -> float | None:
    """Over all incidents that were closed, each counted once."""
    means = [
        (week.mttr_minutes, week.incidents_closed)
        for week in weeks
        if week.mttr_minutes is not None and week.incidents_closed
    ]
    closed = sum(count for _, count in means)
    return sum(mean * count for mean, count in means) / closed if closed else None


def _downtime(report: ReportDocument) -> tuple[float | None, ...]:
    """Of each week; not known where nothing is known of incidents."""
    by_week: dict[date, float] = {}
    for one in report.domains:
        if one.downtime_hours is not None:
            by_week[one.week] = by_week.get(one.week, 0.0) + one.downtime_hours
    return tuple(
        by_week.get(week.week, None if week.incidents_opened is None else 0.0)
        for week in report.weeks
    )


def labels(report: ReportDocument) -> list[str]:
    """The weeks as they are written: by their Mondays."""
    return [week.week.isoformat() for week in report.weeks]


def domains_of(report: ReportDocument) -> list[tuple[str, list[str]]]:
    """Each domain with its figures over all weeks, in the order of `DOMAIN_COLUMNS`."""
    by_domain: dict[str, list[DomainWeek]] = {}
    for one in report.domains:
        by_domain.setdefault(one.domain, []).append(one)

    def total(weeks: list[DomainWeek], name: str) -> float | None:
        numbers = [getattr(week, name) for week in weeks if getattr(week, name) is not None]
        return sum(numbers) if numbers else None

    rows = []
    for domain, weeks in sorted(by_domain.items()):
        closed = [(w.mttr_minutes, w.incidents_closed) for w in weeks if w.mttr_minutes is not None]
        count = sum(n or 0 for _, n in closed)
        mttr = sum((m or 0) * (n or 0) for m, n in closed) / count if count else None
        figures: list[tuple[float | None, Callable[[float], str]]] = [
            (total(weeks, "downtime_hours"), hours),
            (total(weeks, "incidents_opened"), number),
            (mttr, minutes),
            (total(weeks, "contract_violations"), number),
            (total(weeks, "changes"), number),
        ]
        rows.append((domain, [NOT_KNOWN if v is None else spell(v) for v, spell in figures]))
    return rows


DOMAIN_COLUMNS: Final = ("Downtime", "Incidents", "MTTR", "Contract violations", "Changes")
_SOURCES: Final = {
    "tables": "the lineage tables of the dbt package",
    "artifacts": "artifacts of dbt",
}


def title_of(report: ReportDocument) -> str:
    """The heading of a report."""
    end = report.last_week + timedelta(days=6)
    return f"Lineage report of {report.project}: {report.first_week} to {end}"


def source_of(report: ReportDocument) -> str:
    """Where the figures come from, in words."""
    return _SOURCES[report.source]


def html(report: ReportDocument) -> str:
    """The report as a page that needs no other file."""
    from markupsafe import Markup

    all_series = series_of(report)
    weeks = labels(report)
    known = [one for one in all_series if any(value is not None for value in one.values)]
    return page(
        "report.html.jinja",
        {
            "title": title_of(report),
            "source": source_of(report),
            "report": report,
            "series": known,
            "unknown": [one.title for one in all_series if one not in known],
            "trends": [
                Markup(trend(one.title, weeks, one.values, one.spelled, one.top)) for one in known
            ]
            if len(weeks) >= TREND
            else [],
            "weeks": weeks,
            "domain_columns": DOMAIN_COLUMNS,
            "domains": domains_of(report),
        },
    )


def markdown(report: ReportDocument) -> Iterator[str]:
    """The report in Markdown, line by line."""
    weeks = labels(report)
    has_trend, has_whole = len(weeks) >= TREND, len(weeks) > 1
    yield f"## {prose(title_of(report))}"
    yield ""
    gap = "; `·` is a week of which a figure is not known" if has_trend else ""
    yield f"Computed of {source_of(report)}. Weeks begin on the day that is named{gap}."
    yield ""
    yield f"| figure |{' all weeks |' * has_whole}{' trend |' * has_trend} {' | '.join(weeks)} |"
    yield f"| --- |{' ---: |' * has_whole}{' --- |' * has_trend}{' ---: |' * len(weeks)}"
    for one in series_of(report):
        cells = [one.as_text(value) for value in one.values]
        cells[:0] = [sparkline(one.values, one.top)] * has_trend
        cells[:0] = [one.as_text(one.whole)] * has_whole
        yield f"| {one.title} | {' | '.join(cells)} |"
    if report.domains:
        yield ""
        yield f"| domain | {' | '.join(name.lower() for name in DOMAIN_COLUMNS)} |"
        yield f"| --- |{' ---: |' * len(DOMAIN_COLUMNS)}"
        for domain, cells_ in domains_of(report):
            yield f"| {code(domain)} | {' | '.join(cells_)} |"
    if report.absent:
        yield ""
        yield "Not known:"
        yield ""
        for absent in report.absent:
            yield f"* {prose(absent.what)}: {prose(absent.why)}"


def text(report: ReportDocument) -> Iterator[str]:
    """The report for a terminal, line by line."""
    all_series = series_of(report)
    yield title_of(report)
    width = max(len(one.title) for one in all_series)
    has_trend = len(report.weeks) >= TREND
    for one in all_series:
        drawn = f"{sparkline(one.values, one.top)}  " * has_trend
        yield f"  {one.title:<{width}}  {drawn}{one.as_text(one.whole)}"
    for domain, cells in domains_of(report):
        figures = ", ".join(
            f"{name.lower()} {cell}" for name, cell in zip(DOMAIN_COLUMNS, cells, strict=True)
        )
        yield f"  domain {domain}: {figures}"
    for absent in report.absent:
        yield f"not known: {absent.what}: {absent.why}"
