"""What a number comes from, as text and Markdown."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from typing import TYPE_CHECKING

from dbt_ripple.artifacts.project import as_utc
from dbt_ripple.rendering.escaping import code, in_one_line, prose, styled
from dbt_ripple.rendering.output import count

if TYPE_CHECKING:
    from dbt_ripple.governance.diagnose import Diagnosis, Step


def _facts(diagnosis: Diagnosis, step: Step) -> Iterator[tuple[str, str]]:
    """The text of a step, line by line: what it is about, and the text."""
    for column in step.columns:
        if column.expression:
            yield "computes", f"{column.name} = {in_one_line(column.expression)}"
    if step.freshness is not None:
        loaded = step.freshness.max_loaded_at
        yield "fresh", f"{step.freshness.status}, newest row {_moment(loaded) or 'unknown'}"
    if step.last_run is not None:
        at = f" at {_moment(step.last_run.at)}" if step.last_run.at else ""
        yield "last run", f"{step.last_run.status}{at}"
    for change in step.changes:
        where = change.column or "its rows"
        texts = f": {change.before} → {change.after}" if change.before and change.after else ""
        along = "" if change.began_here else ", because something above did"
        yield "changed", f"{where} {change.change}{along}{texts}"
    if step.tests:
        failed = [f"{t.name} ({t.status})" for t in step.tests if t.status in _FAILED]
        names = ", ".join(failed or [t.name for t in step.tests[:_SHOWN]])
        more = f" and {len(step.tests) - _SHOWN:,} more" if len(step.tests) > _SHOWN else ""
        tests = f"{count(len(step.tests), 'test')}, failed: {names}" if failed else names + more
        yield "guarded by", tests
    elif diagnosis.can_be_tested(step):
        yield "guarded by", "no test"
    if step.owner:
        whose = (step.owner, step.owner_email, step.owner_channel)
        yield "owner", ", ".join(dict.fromkeys(filter(None, whose)))


def _moment(at: datetime | None) -> str:
    return as_utc(at).strftime("%Y-%m-%d %H:%M:%S UTC") if at else ""


_FAILED = ("fail", "error", "warn", "runtime error")
_SHOWN = 5


def diagnosis_text(diagnosis: Diagnosis) -> Iterator[str]:
    """Each step with what is known of it, line by line."""
    for step in diagnosis.steps:
        names = ", ".join(column.name for column in step.columns)
        may = styled("  may read", dim=True) if step.may_read else ""
        yield f"{step.depth:<2} {styled(step.asset_type.upper(), fg='cyan')} {step.full_name}  {names}{may}"
        for about, text in _facts(diagnosis, step):
            yield f"     {about:<11} {text}"


def diagnosis_markdown(diagnosis: Diagnosis) -> Iterator[str]:
    """The same as a list."""
    yield f"### What {code(diagnosis.spoken)} comes from"
    for step in diagnosis.steps:
        yield ""
        columns = ", ".join(code(column.name) for column in step.columns)
        yield f"{step.depth}. {step.asset_type.upper()} {code(step.full_name)}{': ' if columns else ''}{columns}"
        yield from (f"   - {about}: {prose(text)}" for about, text in _facts(diagnosis, step))
