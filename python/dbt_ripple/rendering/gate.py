"""The gate's answer in each of its formats; here as text and JSON."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Final

from dbt_ripple.governance.rules import RULES
from dbt_ripple.rendering.causes import cause_lines
from dbt_ripple.rendering.escaping import one_line, styled
from dbt_ripple.rendering.findings import SHOWN, known_findings, new_findings, reach, subject
from dbt_ripple.rendering.output import as_document, as_json, count

if TYPE_CHECKING:
    from dbt_ripple.artifacts import Project
    from dbt_ripple.governance.affected_assets import Affected
    from dbt_ripple.governance.gate import GateAnswer


COLOURS: Final = {"APPROVED": "green", "CAUTION": "yellow", "BLOCKED": "red"}
_OF_LEVEL: Final = {"block": "red", "warn": "yellow", "approved": "green"}


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
        from dbt_ripple.rendering.selection import section_lines, spoken

        unread = [(spoken(u, head), reason.message) for u, reason in report.opaque.items()]
        yield from section_lines("not analysed, so each counts as changed", unread)
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
