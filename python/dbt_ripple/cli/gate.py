"""`dbt-ripple gate`: may this change be merged? APPROVED, CAUTION or BLOCKED, for CI."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from dbt_ripple.cli.dbt import DbtOptions
from dbt_ripple.cli.options import (
    analysis_options,
    answer,
    as_json,
    count,
    open_cache,
    project_options,
    warn,
)
from dbt_ripple.cli.shown import styled
from dbt_ripple.cli.state import open_sides, sides_options

if TYPE_CHECKING:
    from dbt_ripple.artifacts import Project
    from dbt_ripple.governance.affected import Affected
    from dbt_ripple.governance.gate import Finding, GateReport

COLOURS: Final = {"APPROVED": "green", "CAUTION": "yellow", "BLOCKED": "red"}
_OF_LEVEL: Final = {"block": "red", "warn": "yellow", "approved": "green"}
SHOWN: Final = 20
"""Affected assets that the text and the comment spell out."""


@click.command(
    epilog="""\b
Examples:
  dbt-ripple gate --state prod-artifacts
  dbt-ripple gate --base-ref origin/main --format markdown > comment.md
  dbt-ripple gate --state prod-artifacts --approved-by "$REVIEWER" --fail-on caution
  dbt-ripple gate --state prod-artifacts --format sarif > gate.sarif
""",
)
@sides_options
@click.option(
    "--fail-on",
    type=click.Choice(["caution", "blocked"]),
    default="blocked",
    show_default=True,
    help="The mildest decision that exits with 1.",
)
@click.option(
    "--approved-by",
    metavar="NAME",
    help="Who says yes to what needs approval (blast_radius, certified_reached); it is recorded.",
)
@click.option(
    "--format",
    "style",
    type=click.Choice(["text", "json", "markdown", "github", "sarif"]),
    default="text",
    show_default=True,
    help="How to print it; markdown is a comment for a pull request, github annotations of a "
    "workflow.",
)
@analysis_options
@project_options
def gate(
    state: Path | None,
    base_ref: str | None,
    fail_on: str,
    approved_by: str | None,
    style: str,
    cache_dir: Path | None,
    no_cache: bool,
    threads: int | None,
    project_dir: Path,
    target_path: Path | None,
    **dbt_arguments: Any,
) -> int:
    """Judge the change from base to this project by the rules of the gate.

    Each rule is off, warns or blocks, by ripple.yml at the project's root or by its own default.
    The gravest finding decides: one that blocks gives BLOCKED and exit 1, one that warns CAUTION,
    none APPROVED. What is so on base and not touched is counted, and decides nothing. What cannot be seen through counts as changed, and is named.
    """
    from dbt_ripple.governance.config import read_config
    from dbt_ripple.governance.gate import gate as judge

    config = read_config(project_dir)
    name = " ".join((approved_by or "").split())
    if approved_by is not None and not name:
        raise click.BadParameter("the name is empty", param_hint="'--approved-by'")
    options = DbtOptions.taken({**dbt_arguments, "threads": threads})
    with (
        open_cache(cache_dir, no_cache) as cache,
        open_sides(*(project_dir, target_path, state, base_ref, options, cache, threads)) as (
            base,
            head,
        ),
    ):
        report = judge(
            base.project,
            head.project,
            base_analysis=base.analysis(),
            head_analysis=head.analysis(),
            cache=cache,
            config=config,
            approved_by=name or None,
        )
    for note in report.notes:
        warn(note)
    for unique_id, reason in report.opaque.items():
        warn(f"{unique_id} cannot be seen through ({reason}): all of it is taken as changed")
    answer(
        printed(report, head.project, base.project, style, project_dir),
        fit="wrap" if style == "text" else None,
        commands=style == "github",
    )
    return int(_fails(report.decision, fail_on))


def _fails(decision: str, fail_on: str) -> bool:
    return decision == "BLOCKED" or (decision == "CAUTION" and fail_on == "caution")


def printed(
    report: GateReport, head: Project, base: Project, style: str, project_dir: Path
) -> Iterable[str]:
    """The report in one of the formats of the command, line by line."""
    if style == "json":
        return as_json(report.document())
    if style == "text":
        return _text(report, head, base)
    from dbt_ripple.cli import gate_formats

    if style == "sarif":
        return as_json(gate_formats.sarif(report, head, base, project_dir))
    lines = gate_formats.markdown if style == "markdown" else gate_formats.github
    return lines(report, head, base, project_dir)


def subject(finding: Finding, head: Project, base: Project) -> str:
    """What a finding is about, as people call it."""
    if finding.unique_id is None:
        return "the change"
    node = head.nodes.get(finding.unique_id) or base.nodes.get(finding.unique_id)
    name = node.display_name if node else finding.unique_id
    return f"{name}.{finding.column}" if finding.column else name


def new_findings(report: GateReport) -> list[Finding]:
    """What the change brought or touches."""
    return [finding for finding in report.findings if finding.level != "known"]


def known_findings(report: GateReport) -> str:
    """What it found there and left alone: how much of each rule."""
    rules = Counter(finding.rule for finding in report.findings if finding.level == "known")
    return ", ".join(f"{rule} {number:,}" for rule, number in rules.items())


def _text(report: GateReport, head: Project, base: Project) -> Iterator[str]:
    decision = styled(report.decision, fg=COLOURS[report.decision], bold=True)
    yield f"{decision}  risk {report.risk_level}, reaches {count(report.blast_radius, 'asset')}"
    for finding in new_findings(report):
        level = styled(f"{finding.level:<8}", fg=_OF_LEVEL[finding.level])
        yield f"  {level} {finding.rule}: {subject(finding, head, base)}: {finding.message}"
    if known := known_findings(report):
        yield f"  known    already so on base: {known}"
    yield from affected_lines(report.affected)
    if report.opaque:
        yield f"not seen through: {', '.join(report.opaque)}"


def affected_lines(affected: list[Affected]) -> Iterator[str]:
    """The assets a change reaches, in a few lines."""
    if affected:
        yield "affected:"
    for asset in affected[:SHOWN]:
        reads = (
            f"  reads {', '.join(asset.affected_references)}" if asset.affected_references else ""
        )
        owner = styled(f"  ({asset.owner or 'nobody owns it'})", dim=True)
        yield f"  {asset.severity:<8} {asset.name} [{asset.asset_type}]{reads}{owner}"
    if len(affected) > SHOWN:
        yield f"  and {len(affected) - SHOWN:,} more (--format json has them all)"
