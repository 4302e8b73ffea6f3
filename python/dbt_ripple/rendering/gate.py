"""The gate's report as text and JSON, and what all its formats share."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from dbt_ripple.artifacts.source_locations import FileLine, Places
from dbt_ripple.changes.verdict import verdict_of
from dbt_ripple.governance.rules import RULES
from dbt_ripple.reasons import names_missing
from dbt_ripple.rendering.causes import cause_lines
from dbt_ripple.rendering.diff import name_of
from dbt_ripple.rendering.escaping import one_line, styled
from dbt_ripple.rendering.output import as_document, as_json, count

if TYPE_CHECKING:
    from dbt_ripple.artifacts import Project
    from dbt_ripple.changes import Comparison
    from dbt_ripple.changes.removed_columns import RemovedColumn
    from dbt_ripple.governance.affected_assets import Affected
    from dbt_ripple.governance.gate import Finding, GateReport
    from dbt_ripple.graph.joined_projects import JoinedProjects
    from dbt_ripple.selection import Selection
    from dbt_ripple.selection.result import SelectionRun


COLOURS: Final = {"APPROVED": "green", "CAUTION": "yellow", "BLOCKED": "red"}
_OF_LEVEL: Final = {"block": "red", "warn": "yellow", "approved": "green"}
SHOWN: Final = 20
"""Affected assets that the text and the comment spell out."""


@dataclass
class GateAnswer:
    """All that the gate prints.

    Attributes:
        selection: the tests that the change can break, where they were asked for.
        ran: dbt's results of them, where they were run.
        joined: head's project and others that read what it builds, where they were asked.
    """

    report: GateReport
    comparison: Comparison
    selection: Selection | None = None
    ran: SelectionRun | None = None
    joined: JoinedProjects | None = None

    @property
    def shown(self) -> Project:
        """Head, with the nodes of the other projects."""
        head = self.comparison.head
        if self.joined is None:
            return head
        return head.having(nodes={**self.joined.union.nodes, **head.nodes})

    @property
    def head(self) -> Project:
        """What is proposed."""
        return self.comparison.head

    @property
    def base(self) -> Project:
        """What is deployed."""
        return self.comparison.base

    def gone(self, finding: Finding) -> list[RemovedColumn]:
        """The columns that a reader asks for and that the change took away or renamed."""
        broken = verdict_of(self.comparison).broken.get(finding.unique_id or "")
        return broken.gone if broken is not None else []


def rendered_gate(gate_answer: GateAnswer, style: str, project_dir: Path) -> Iterable[str]:
    """The report in one of the formats of the command, line by line."""
    if style == "json":
        return as_document(document(gate_answer))
    if style == "text":
        return _text(gate_answer)
    if style == "markdown":
        from dbt_ripple.rendering.pull_request_comment import comment

        return comment(gate_answer)
    if style == "sarif":
        from dbt_ripple.rendering.sarif import sarif

        return as_json(sarif(gate_answer, project_dir))
    from dbt_ripple.rendering.github_annotations import github

    return github(gate_answer, project_dir)


def document(gate_answer: GateAnswer) -> dict[str, object]:
    """The report as ``--format json`` prints it."""
    document = gate_answer.report.document()
    if gate_answer.selection is not None:
        document["selection"] = gate_answer.selection
    if gate_answer.ran is not None:
        document["results"] = gate_answer.ran.statuses
    return document


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


def _text(gate_answer: GateAnswer) -> Iterator[str]:

    report, head, base = gate_answer.report, gate_answer.shown, gate_answer.base
    decision = styled(report.decision, fg=COLOURS[report.decision], bold=True)
    yield f"{decision}  risk {report.risk_level}, reaches {reach(report.affected)}"
    yield f"reason: {report.reason}"
    if report.causes:
        yield "changed:"
        yield from cause_lines(report.causes, head)
    for finding in new_findings(report):
        level = styled(f"{finding.level:<8}", fg=_OF_LEVEL[finding.level])
        yield f"  {level} {finding.rule}: {subject(finding, head, base)}: {finding.reason.message}"
    if on_base_already := known_findings(report):
        yield f"  known    already so on base: {on_base_already}"
    for unique_id in report.removed:
        yield f"  removed  {named(unique_id, base)}"
    if any(f.level == "block" and RULES[f.rule].approval for f in report.findings):
        yield "what is about reach can be approved: --approved-by NAME"
    yield from affected_lines(report.affected)
    if report.opaque:
        yield f"not analysed: {', '.join(report.opaque)}"
    yield f"recommendation: {report.recommendation}"
    if gate_answer.selection is not None:
        from dbt_ripple.rendering.selection import selection_lines

        yield ""
        yield from selection_lines(gate_answer.selection, head, causes=False)
    if gate_answer.ran is not None:
        from dbt_ripple.selection.result import PASSED

        yield from (
            f"  {unique_id}: {status}"
            for unique_id, status in gate_answer.ran.statuses.items()
            if status not in PASSED
        )


def named(unique_id: str, base: Project) -> str:
    """A node of base, with what it is."""
    node = base.nodes[unique_id]
    return f"{node.resource_type} {node.display_name}"


def reach(affected: Sequence[Affected]) -> str:
    """How many assets break or may change, and apart from these how many only stand below them."""
    counted = sum(asset.counts for asset in affected)
    below = len(affected) - counted
    stand = "stands" if below == 1 else "stand"
    return count(counted, "asset") + (f" ({below:,} more only {stand} below)" if below else "")


_OF_ONE = 3
"""Columns of one asset whose SQL is shown."""


def affected_lines(affected: list[Affected], *, expressions: bool = False) -> Iterator[str]:
    """The assets a change reaches, in a few lines; assets without an owner are counted in one line.

    Args:
        affected: the assets.
        expressions: whether to show the SQL that reads the change, too.
    """
    if affected:
        ownerless = sum(asset.owner is None for asset in affected)
        whose = "any of them" if ownerless == len(affected) else f"{ownerless:,} of them"
        yield f"affected: (nobody owns {whose})" if ownerless else "affected:"
    for asset in affected[:SHOWN]:
        references = ", ".join(asset.affected_references)
        reads = f"  {asset.verb()} {references}" if references else ""
        owner = styled(f"  ({asset.owner})", dim=True) if asset.owner else ""
        yield f"  {asset.severity:<8} {asset.full_name} [{asset.asset_type}]{reads}{owner}"
        for change in asset.expressions[: _OF_ONE if expressions else 0]:
            yield styled(f"{'':<11}{change.column} = {one_line(change.expression)}", dim=True)
        if expressions and (more := len(asset.expressions) - _OF_ONE) > 0:
            yield styled(f"{'':<11}and {count(more, 'column')} more", dim=True)
    if len(affected) > SHOWN:
        yield f"  and {len(affected) - SHOWN:,} more (--format json has them all)"


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
