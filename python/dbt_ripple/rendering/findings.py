"""What all formats of the gate's answer say of its findings, and of what was run."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Final, NamedTuple

from dbt_ripple.artifacts.source_locations import FileLine, Places
from dbt_ripple.reasons import names_missing
from dbt_ripple.rendering.diff import name_of
from dbt_ripple.rendering.output import count

if TYPE_CHECKING:
    from dbt_ripple.artifacts import Project
    from dbt_ripple.governance.affected_assets import Affected
    from dbt_ripple.governance.gate import Finding, GateAnswer, GateReport

SHOWN: Final = 20
"""Affected assets that the text and the comment spell out."""


def subject(finding: Finding, head: Project, base: Project) -> str:
    """What a finding is about, as people call it."""
    if finding.unique_id is None:
        return "the change"
    name = name_of(finding.unique_id, head, base)
    if finding.project is not None:
        name = f"{finding.project}.{name}"
    return f"{name}.{finding.column}" if finding.column else name


def new_findings(report: GateReport) -> list[Finding]:
    """What the change brought or touches."""
    return [finding for finding in report.findings if finding.level != "known"]


def known_findings(report: GateReport) -> str:
    """The findings that base has, too: how many of each rule."""
    rules = Counter(finding.rule for finding in report.findings if finding.level == "known")
    return ", ".join(f"{rule} {number:,}" for rule, number in rules.items())


def reach(affected: Sequence[Affected]) -> str:
    """How many assets break or may change, and apart from these how many only stand below them."""
    counted = sum(asset.counts for asset in affected)
    below = len(affected) - counted
    stand = "stands" if below == 1 else "stand"
    return count(counted, "asset") + (f" ({below:,} more only {stand} below)" if below else "")


class FailedNode(NamedTuple):
    """A node that was run and did not pass."""

    unique_id: str
    rule: str
    level: str
    message: str


RUN_RULES: Final = {
    "test_failed": "A test that the change can break passes.",
    "build_failed": "What the change affects can be built.",
}
"""What is asked of what was run (``--run``); the rules of the gate are about definitions."""


def failures(gate_answer: GateAnswer) -> Iterator[FailedNode]:
    """What was run and did not pass; what dbt skipped stands below one of these."""
    from dbt_ripple.selection.result import PASSED

    if gate_answer.ran is None:
        return
    for unique_id, status in gate_answer.ran.statuses.items():
        if status in PASSED or status == "skipped":
            continue
        node = gate_answer.head.nodes.get(unique_id)
        is_test = node is None or node.resource_type in ("test", "unit_test")
        message = " ".join(gate_answer.ran.messages.get(unique_id, "").split())
        yield FailedNode(
            unique_id,
            "test_failed" if is_test else "build_failed",
            "warning" if status == "warn" else "error",
            f"{name_of(unique_id, gate_answer.head, gate_answer.base)}: {status}{': ' if message else ''}{message}",
        )


_PLAIN: Final = re.compile(r"[\w.]+")


def place_of(finding: Finding, places: Places, gate_answer: GateAnswer) -> FileLine | None:
    """The line that a finding is about; None where it is not certain."""
    if finding.rule == "syntax_error" and finding.unique_id:
        return places.of_compiled_line(
            finding.unique_id, int(str(finding.reason.arguments["line"]))
        )
    missing = []
    if finding.rule == "reader_broken":
        missing = [n for n in names_missing(finding.reason) if _PLAIN.fullmatch(n)]
        missing += [gone.column for gone in gate_answer.gone(finding)]
    return places.of(finding.unique_id, finding.column, finding.rule, missing)
