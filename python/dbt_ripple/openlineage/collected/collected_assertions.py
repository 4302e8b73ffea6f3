"""Assertions of collected events as tests of the project, and their results."""

from __future__ import annotations

from typing import Any, Final

from dbt_ripple.artifacts import RunResult, Timing
from dbt_ripple.artifacts.assets_file import Assertion
from dbt_ripple.openlineage.collected.facet_values import short_hash, spelled, text
from dbt_ripple.openlineage.collected.stored_events import CollectedRun, ReportedAssertion

_PASSED: Final = frozenset({"ok", "pass", "passed", "success", "succeeded"})
_FAILED: Final = frozenset({"error", "fail", "failed", "failure"})


def order_of_check(check: ReportedAssertion) -> tuple[Any, ...]:
    """One order of checks, whatever the order of events."""
    return check.at, check.run_id, repr(check.dataset), repr(check.assertion)


def assertion_of(job_id: str, check: ReportedAssertion, name: str, node: str) -> Assertion:
    """What a job checks of a node, as a test of it."""
    column = text(check.assertion.get("column")) or None
    kind = text(check.assertion.get("assertion")) or text(check.assertion.get("type")) or name
    key = (job_id, node, (column or "").casefold(), kind, name)
    parts = (*job_id.split(":", 1), node.split(".", 1)[1], *([column] if column else ()), name)
    words = ".".join(spelled(part) for part in parts)
    return Assertion(
        unique_id=f"test.{words}.{short_hash(key)}",
        name=name,
        kind=kind,
        node=node,
        column=column,
        severity=text(check.assertion.get("severity")).lower() or None,
        description=text(check.assertion.get("description"), None),
    )


def result_of_check(
    assertion: Assertion, check: ReportedAssertion
) -> tuple[RunResult, tuple[Any, ...]]:
    """What a check found, and a rank by which the last result of a run counts."""
    success = check.assertion.get("success")
    status = text(check.assertion.get("status")).lower()
    if isinstance(success, bool):
        status = "pass" if success else "fail"
    elif status in _PASSED:
        status = "pass"
    elif status in _FAILED:
        status = "fail"
    if status == "fail" and assertion.severity == "warn":
        status = "warn"
    seen = [
        f"{word} {value}"
        for word in ("expected", "actual")
        if (value := text(check.assertion.get(word), None))
    ]
    result = RunResult(
        unique_id=assertion.unique_id,
        invocation_id=check.run_id,
        status=status or "unknown",
        timing=[Timing(name="execute", started_at=check.at, completed_at=check.at)],
        message=", ".join(seen) or None,
    )
    return result, (check.at, check.run_id, status != "pass", status, result.message or "")


def result_of_run(unique_id: str, run: CollectedRun) -> RunResult:
    """How a run of a job ended, as dbt has results of its nodes."""
    start = min(run.first_seen, run.ended_at) if run.ended_at is not None else run.first_seen
    end = run.ended_at
    return RunResult(
        unique_id=unique_id,
        invocation_id=run.run_id,
        status=run.status or "",
        execution_time=(end - start).total_seconds() if end is not None else None,
        timing=[Timing(name="execute", started_at=start, completed_at=end)],
        message=run.message if run.status != "success" else None,
        adapter_response={} if run.rows is None else {"rows_affected": run.rows},
    )
