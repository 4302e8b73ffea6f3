"""A diagnosis as text and Markdown, an incident as text, and the sentences that all forms of an incident share."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Final

from dbt_ripple.artifacts.assets_file import DATASETS
from dbt_ripple.artifacts.project import as_utc
from dbt_ripple.rendering.escaping import code, in_one_line, prose, styled, two_lines
from dbt_ripple.rendering.output import count

if TYPE_CHECKING:
    from dbt_ripple.governance.diagnose import Diagnosis, Step, StepChange
    from dbt_ripple.governance.incident_document import (
        Commands,
        Failure,
        Impacted,
        Incident,
        JobRun,
        LastSuccess,
        SourceState,
        Suspect,
    )


def _facts_of_step(diagnosis: Diagnosis, step: Step) -> Iterator[tuple[str, str]]:
    """The text of a step, line by line: what it is about, and the text."""
    for column in step.columns:
        if column.expression:
            yield "computes", f"{column.name} = {in_one_line(column.expression)}"
    if step.freshness is not None:
        loaded = step.freshness.max_loaded_at
        yield "fresh", f"{step.freshness.status}, newest row {moment(loaded) or 'unknown'}"
    if step.last_run is not None:
        at = f" at {moment(step.last_run.at)}" if step.last_run.at else ""
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


_FAILED = ("fail", "error", "warn", "runtime error")
_SHOWN = 5


def diagnosis_text(diagnosis: Diagnosis) -> Iterator[str]:
    """Each step with what is known of it, line by line."""
    for step in diagnosis.steps:
        names = ", ".join(column.name for column in step.columns)
        may = styled("  may read", dim=True) if step.may_read else ""
        yield f"{step.depth:<2} {styled(step.asset_type.upper(), fg='cyan')} {step.full_name}  {names}{may}"
        for about, text in _facts_of_step(diagnosis, step):
            yield f"     {about:<11} {text}"


def diagnosis_markdown(diagnosis: Diagnosis) -> Iterator[str]:
    """The same as a list."""
    yield f"### What {code(diagnosis.spoken)} comes from"
    for step in diagnosis.steps:
        yield ""
        columns = ", ".join(code(column.name) for column in step.columns)
        yield f"{step.depth}. {step.asset_type.upper()} {code(step.full_name)}{': ' if columns else ''}{columns}"
        yield from (
            f"   - {about}: {prose(text)}" for about, text in _facts_of_step(diagnosis, step)
        )


_TIME: Final = re.compile(r"(\d{1,6})\s*([mhd])", re.IGNORECASE)


def timedelta_of(text: str) -> timedelta | None:
    """A time in minutes, hours or days; None of anything else.

    Example:
        >>> timedelta_of("90m"), timedelta_of("soon")
        (datetime.timedelta(seconds=5400), None)
    """
    match = _TIME.fullmatch(text.strip())
    if match is None:
        return None
    unit = {"m": "minutes", "h": "hours", "d": "days"}[match[2].lower()]
    return timedelta(**{unit: int(match[1])})


SHOWN: Final = 10
"""Suspects, and assets below, that text lists; JSON has them all."""

_COLOURS: Final = {"critical": "red", "error": "red", "warning": "yellow", "info": "green"}
_STATES: Final = {"failing": "fails", "passing": "passes again", "unknown": "is reported as wrong"}


def moment(at: datetime | None) -> str:
    """A time in UTC, to the second; nothing for None.

    Example:
        >>> moment(datetime(2026, 1, 2, 3, 4, 5, 678))
        '2026-01-02 03:04:05 UTC'
    """
    return as_utc(at).strftime("%Y-%m-%d %H:%M:%S UTC") if at is not None else ""


def headline(incident: Incident) -> str:
    """One line: what it is, and since when."""
    since = moment(incident.opened_at)
    first = incident.failed[0] if incident.failed else None
    what = incident.spoken
    if incident.state != "failing" or first is None:
        return f"{what} {_STATES[incident.state]}"
    when = f" since {since}" if since else ""
    if first.unique_id != incident.root:
        return f"{what}: {count(len(incident.failed), 'test')} on it failed{when}"
    return f"{what} {_STATES['failing']}{when}"


def failure_line(failure: Failure) -> str:
    """What failed, how, and when it last passed."""
    parts = [failure.name, failure.status or "no result at hand"]
    if failure.failures:
        parts.append(count(failure.failures, "row"))
    if failure.error_kind:
        parts.append(failure.error_kind)
    if failure.at:
        parts.append(f"at {moment(failure.at)}")
    if failure.invocation_id:
        parts.append(f"dbt invocation {failure.invocation_id}")
    passed = success_line(failure.last_passed)
    well = "last passed" if failure.resource_type in ("test", "unit_test") else "last built"
    return f"{', '.join(parts)}; {well} {passed or 'not known'}"


def success_line(success: LastSuccess | None) -> str:
    """When something was last well; empty where that is not known."""
    if success is None:
        return ""
    by = f" (dbt invocation {success.invocation_id})" if success.invocation_id else ""
    return f"{moment(success.at) or 'at a time that dbt does not give'}{by}"


def change_line(change: StepChange) -> str:
    """What was changed, with both expressions where there are any."""
    before, after = two_lines(change.before, change.after)
    what = f"{change.column or 'its rows'} {change.change}"
    if before and after:
        return f"{what}: {before} → {after}"
    if after:
        return f"{what}: now {after}"
    return f"{what}: was {before}" if before else what


def suspect_line(suspect: Suspect) -> str:
    """A likely cause in one line: what, why, when."""
    where = "here" if not suspect.depth else f"{count(suspect.depth, 'step')} above"
    parts = [f"{suspect.name} ({where}{', may be on the way' if suspect.may_read else ''})"]
    text = f"{parts[0]}: {suspect.reason.message}"
    when = []
    if suspect.changed_at:
        when.append(f"in use since {moment(suspect.changed_at)}")
    if suspect.git_sha:
        at = f" of {moment(suspect.committed_at)}" if suspect.committed_at else ""
        when.append(f"commit {suspect.git_sha}{at}")
    if not suspect.recent:
        when.append("older than --since")
    if suspect.ruled_out is not None:
        when.append(f"ruled out: {suspect.ruled_out.message}")
    return f"{text}; {', '.join(when)}" if when else text


def whose(asset: Impacted | Suspect | SourceState | JobRun | Incident) -> str:
    """Whom to tell, with address and channel."""
    return ", ".join(
        dict.fromkeys(filter(None, (asset.owner, asset.owner_email, asset.owner_channel)))
    )


def impacted_line(asset: Impacted) -> str:
    """An asset below in one line."""
    name = f"{asset.project}.{asset.name}" if asset.project else asset.name
    tier = f", {asset.criticality}" if asset.criticality else ""
    uses = asset.unique_id.startswith(("exposure.", "asset.")) and asset.asset_type not in DATASETS
    sure = "reads" if uses else "affected:"
    maybe = "may read" if uses else "may be affected:"
    verb = maybe if asset.may_read else sure
    some = ", ".join(asset.columns[:5])
    more = f" and {len(asset.columns) - 5:,} more" if len(asset.columns) > 5 else ""
    return f"{name} [{asset.asset_type}{tier}]  {verb} {some}{more}  ({whose(asset) or 'no owner'})"


def source_line(source: SourceState) -> str:
    """How fresh a source is."""
    if source.freshness is None:
        return f"{source.name}: freshness not known"
    loaded = moment(source.freshness.max_loaded_at) or "unknown"
    return f"{source.name}: {source.freshness.status}, newest row {loaded}"


def job_line(job: JobRun) -> str:
    """How a job outside of dbt last ran."""
    name = f"{job.name} [{job.asset_type}]"
    if job.status is None:
        return f"{name}: no run of it was collected"
    run = f", run {job.run_id}" if job.run_id else ""
    at = f" at {moment(job.at)}" if job.at else ""
    if job.last_success is None or job.last_success.invocation_id == job.run_id:
        return f"{name}: {job.status}{at}{run}"
    well = job.last_success
    return f"{name}: {job.status}{at}{run}; last well {moment(well.at)}, run {well.invocation_id}"


def incident_text(incident: Incident) -> Iterator[str]:
    """All of it, line by line; of long lists the beginning."""
    severity = styled(incident.severity.upper(), fg=_COLOURS[incident.severity], bold=True)
    yield f"{severity}  {headline(incident)}"
    owner = whose(incident)
    yield f"owner: {owner or 'nobody is named'}"
    yield "failed:" if incident.failed else "failed: nothing, by what is at hand"
    yield from (f"  {failure_line(failure)}" for failure in incident.failed)
    for failure in incident.failed:
        if failure.dbt_message:
            yield f"  {failure.name} says: {' '.join(failure.dbt_message.split())}"
    yield f"last successful run: {success_line(incident.last_successful_run) or 'not known'}"
    if incident.sources:
        yield "sources:"
        yield from (f"  {source_line(source)}" for source in incident.sources)
    if incident.jobs:
        yield "jobs above it:"
        yield from (f"  {job_line(job)}" for job in incident.jobs[:SHOWN])
        yield from _more(len(incident.jobs), "job")
    yield "likely causes:" if incident.suspects else "likely causes: none found"
    for number, suspect in enumerate(incident.suspects[:SHOWN], start=1):
        yield f"  {number}. {suspect_line(suspect)}"
        yield from (f"       {change_line(change)}" for change in suspect.changes)
        for promise in suspect.promises_broken:
            yield f"       promised: {promise.message}"
        if suspect.owner:
            yield f"       owner: {whose(suspect)}"
    yield from _more(len(incident.suspects), "cause")
    if incident.contract_violations:
        yield f"contracts not kept above it: {len(incident.contract_violations):,}"
        for violation in incident.contract_violations[:SHOWN]:
            column = f".{violation.column}" if violation.column else ""
            why = f": {violation.reason.message}" if violation.reason is not None else ""
            yield f"  {violation.name}{column}  {violation.rule}{why}"
        yield from _more(len(incident.contract_violations), "contract")
    yield "reached below it:" if incident.impacted else "reached below it: nothing"
    yield from (f"  {impacted_line(asset)}" for asset in incident.impacted[:SHOWN])
    yield from _more(len(incident.impacted), "asset")
    for what, commands in _commands(incident):
        yield f"{what}: {commands.command}"
    if incident.containment.dags:
        yield f"DAGs to pause: {', '.join(incident.containment.dags)}"
    if incident.containment.elsewhere:
        yield f"to pause in other projects: {', '.join(incident.containment.elsewhere)}"
    if incident.messages_withheld is not None:
        yield f"not shown: {incident.messages_withheld.message}"
    yield from (f"not at hand: {reason.message}" for reason in incident.not_at_hand)


def _commands(incident: Incident) -> Iterator[tuple[str, Commands]]:
    for what, commands in (
        ("until it is mended", incident.containment.pause),
        ("once it is mended", incident.containment.rebuild),
        ("well again, if this passes", incident.containment.check),
    ):
        if commands.command:
            yield what, commands


def _more(number: int, noun: str) -> Iterator[str]:
    if number > SHOWN:
        yield f"  and {count(number - SHOWN, noun)} more; `--format json` has them all"
