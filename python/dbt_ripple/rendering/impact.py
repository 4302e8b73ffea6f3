"""Who a hypothetical change would break, as text and Markdown."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from dbt_ripple.rendering.escaping import code, prose, styled

if TYPE_CHECKING:
    from dbt_ripple.artifacts import Project
    from dbt_ripple.governance.affected_assets import Affected
    from dbt_ripple.governance.hypothetical_changes import Change
    from dbt_ripple.governance.impact import ImpactReport


_WORDS: Final = {
    "rename": "{0} renamed to {1}",
    "drop": "{0} dropped",
    "retype": "{0} made {1}",
    "add": "{0} {1} added",
    "deprecate": "deprecated",
    "remove": "removed",
}


def _described(changes: list[Change]) -> str:
    return ", ".join(
        _WORDS[c.kind].format(c.column, c.to) + (", required" if c.required else "")
        for c in changes
    )


_SHOWN = 5


def _announced(report: ImpactReport) -> Iterator[str]:
    """The day of a deprecation, and how long that is."""
    if deprecation := report.deprecation:
        days = f"{deprecation.grace_days:,} day{'' if deprecation.grace_days == 1 else 's'}"
        yield f"goes on {deprecation.date}: {days} for its readers to move"


def _affected(affected: list[Affected]) -> str:
    from dbt_ripple.rendering.findings import reach

    number, bracket, below = reach(affected).partition(" (")
    return f"{number} affected{bracket}{below}"


def impact_text(
    report: ImpactReport, name: str, changes: list[Change], project: Project
) -> Iterator[str]:
    """Who would break, as text, line by line."""
    from dbt_ripple.rendering.gate import COLOURS, affected_lines

    affected = report.affected_assets
    decision = styled(report.decision, fg=COLOURS[report.decision], bold=True)
    yield f"{decision}  {name}: {_described(changes)}"
    yield f"risk {report.risk_level}, {_affected(affected)}"
    yield f"reason: {report.reason}"
    yield from _announced(report)
    yield from (f"  promised {promise.message}" for promise in report.promises)
    yield from affected_lines(affected, expressions=True)
    if reading := [*report.broken_tests, *report.tests]:
        broken = len(report.broken_tests)
        broken_text = f", {broken:,} of them will not compile" if broken else ""
        names = [project.nodes[u].display_name for u in reading[:_SHOWN]]
        more = f" and {len(reading) - len(names):,} more" if len(reading) > len(names) else ""
        yield f"tests it can break: {len(reading):,}{broken_text} ({', '.join(names)}{more})"
    if report.opaque:
        yield f"not analysed: {', '.join(report.opaque)}"
    if owners := sorted({asset.owner for asset in affected if asset.owner and asset.counts}):
        yield f"to tell: {', '.join(owners)}"
    yield f"recommendation: {report.recommendation}"


def impact_markdown(
    report: ImpactReport, name: str, changes: list[Change], project: Project
) -> Iterator[str]:
    """Who would break, as Markdown, line by line."""
    from dbt_ripple.rendering.findings import SHOWN
    from dbt_ripple.rendering.mermaid import mermaid
    from dbt_ripple.rendering.pull_request_comment import affected_table

    affected = report.affected_assets
    yield f"### {report.decision}: {code(name)}, {prose(_described(changes))}"
    yield ""
    yield f"Risk {report.risk_level}, {_affected(affected)}. {prose(report.reason)}"
    for line in _announced(report):
        yield ""
        yield prose(f"{line}.")
    if report.promises:
        yield ""
        yield from (f"- promised: {prose(promise.message)}" for promise in report.promises)
    if affected:
        yield ""
        yield "```mermaid"
        yield from mermaid(affected, project, project)
        yield "```"
        yield ""
        yield from affected_table(affected[:SHOWN])
        if len(affected) > SHOWN:
            yield ""
            yield f"and {len(affected) - SHOWN:,} more; `--format json` has them all"
    for title, unique_ids in (
        ("Tests that will not compile", report.broken_tests),
        ("Tests it can break", report.tests),
    ):
        if unique_ids:
            yield ""
            yield f"{title}: {', '.join(code(project.nodes[u].display_name) for u in unique_ids)}."
    if report.opaque:
        yield ""
        yield f"Not analysed: {', '.join(map(code, report.opaque))}."
    yield ""
    yield prose(report.recommendation)
