"""The gate's report as annotations of a GitHub workflow."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Final

from dbt_ripple.artifacts.source_locations import Places
from dbt_ripple.rendering.escaping import workflow_command
from dbt_ripple.rendering.findings import failures, new_findings, place_of, reach, subject

if TYPE_CHECKING:
    from dbt_ripple.governance.gate import GateAnswer


_GITHUB_LEVELS: Final = {"block": "error", "warn": "warning", "approved": "notice"}


def github(gate_answer: GateAnswer, project_dir: Path) -> Iterator[str]:
    """Workflow commands: each finding becomes an annotation of the line it is about.

    So does each test that failed and each model that could not be built. Of the tests that passed, or
    were not run, their number is given: GitHub shows ten annotations of a kind and drops the others.
    """
    report, head, base = gate_answer.report, gate_answer.head, gate_answer.base
    places = Places(head, base, project_dir)
    for finding in new_findings(report):
        place = place_of(finding, places, gate_answer)
        at: dict[str, str | int] = place._asdict() if place else {}
        message = f"{subject(finding, gate_answer.shown, base)}: {finding.reason.message}"
        yield workflow_command(_GITHUB_LEVELS[finding.level], message, **at, title=finding.rule)
    for failure in failures(gate_answer):
        place = places.of(failure.unique_id)
        at = place._asdict() if place else {}
        yield workflow_command(failure.level, failure.message, **at, title=failure.rule)
    if (tests := _of_tests(gate_answer)) is not None:
        failed = gate_answer.ran is not None and gate_answer.ran.failed
        yield workflow_command("error" if failed else "notice", tests, title="dbt-ripple select")
    reached = f"risk {report.risk_level}, reaches {reach(report.affected)}"
    level = {"APPROVED": "notice", "CAUTION": "warning", "BLOCKED": "error"}[report.decision]
    yield workflow_command(level, f"{report.decision}: {reached}", title="dbt-ripple gate")


def _of_tests(gate_answer: GateAnswer) -> str | None:
    """How many tests there are to run, or their results."""
    from dbt_ripple.rendering.pull_request_comment import run_in_short
    from dbt_ripple.rendering.selection import headline

    if gate_answer.selection is None:
        return None
    return (
        headline(gate_answer.selection)
        if gate_answer.ran is None
        else run_in_short(gate_answer.selection, gate_answer.ran)
    )
