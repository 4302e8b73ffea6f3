"""`dbt-ripple gate`: may this change be merged? APPROVED, CAUTION or BLOCKED, for CI."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from dbt_ripple.cli.dbt import DbtOptions
from dbt_ripple.cli.diff import name_of
from dbt_ripple.cli.options import (
    analysis_options,
    answer,
    artifacts_folder,
    as_document,
    as_json,
    count,
    open_cache,
    project_options,
    warn,
)
from dbt_ripple.cli.shown import styled
from dbt_ripple.cli.state import open_sides, sides_options, state_folder

if TYPE_CHECKING:
    from dbt_ripple.artifacts import Project
    from dbt_ripple.changes import Comparison
    from dbt_ripple.cli.run_selection import Ran
    from dbt_ripple.governance.affected import Affected
    from dbt_ripple.governance.gate import Finding, GateReport
    from dbt_ripple.selection import Selection

COLOURS: Final = {"APPROVED": "green", "CAUTION": "yellow", "BLOCKED": "red"}
_OF_LEVEL: Final = {"block": "red", "warn": "yellow", "approved": "green"}
SHOWN: Final = 20
"""Affected assets that the text and the comment spell out."""


@click.command(
    epilog="""\b
Examples:
  dbt-ripple gate --init
  dbt-ripple gate --state prod-artifacts
  dbt-ripple gate --base-ref origin/main --with select --format markdown > comment.md
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
    help="Exit with 1 from this decision on.",
)
@click.option(
    "--approved-by",
    metavar="NAME",
    help="Name of the person who approves findings of blast_radius and certified_reached; the answer records it.",
)
@click.option(
    "--with",
    "also",
    type=click.Choice(["select"]),
    help="Also list the tests that the change can break.",
)
@click.option(
    "--run",
    is_flag=True,
    help="With --with select: also build the models and run the tests; exit with 1 if one fails.",
)
@click.option(
    "--format",
    "style",
    type=click.Choice(["text", "json", "markdown", "github", "sarif"]),
    default="text",
    show_default=True,
    help="Output format; markdown is a comment for a pull request, github prints workflow "
    "annotations.",
)
@click.option(
    "--init",
    "begin",
    is_flag=True,
    help="Write a commented ripple.yml that suits the project, and check nothing.",
)
@analysis_options
@project_options
def gate(
    state: Path | None,
    base_ref: str | None,
    fail_on: str,
    approved_by: str | None,
    also: str | None,
    run: bool,
    style: str,
    begin: bool,
    cache_dir: Path | None,
    no_cache: bool,
    threads: int | None,
    project_dir: Path,
    target_path: Path | None,
    **dbt_arguments: Any,
) -> int:
    """Judge the change from base to this project by the rules of the gate.

    Each rule is off, warns or blocks, by ripple.yml at the project's root or by its own default.
    The most severe finding decides: BLOCKED (exit code 1) if one blocks, CAUTION if one warns, else
    APPROVED. Findings that base has, too, are counted and never decide. Nodes that cannot be
    analysed count as changed if anything above them changed, and are listed.
    """
    from dbt_ripple.changes import compare
    from dbt_ripple.governance.config import read_config
    from dbt_ripple.governance.gate import gate_from
    from dbt_ripple.selection import select_from

    if begin:
        from dbt_ripple.artifacts import read_project
        from dbt_ripple.governance.init import write_config

        answer(
            str(write_config(read_project(artifacts_folder(project_dir, target_path)), project_dir))
        )
        return 0
    if run and also is None:
        raise click.UsageError("--run runs the tests that --with select finds: give that, too")
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
        comparison = compare(
            base.project,
            head.project,
            base_analysis=base.analysis(),
            head_analysis=head.analysis(),
            cache=cache,
        )
        report = gate_from(comparison, config, name or None)
        selection = select_from(comparison, cache=cache) if also else None
    ran = None
    if run and selection is not None:
        from dbt_ripple.cli.run_selection import run_selection

        folder = artifacts_folder(project_dir, target_path)
        deferred = state_folder(project_dir, state) if state is not None else None
        ran = run_selection(selection, project_dir, folder, options, state=deferred)
    said = Said(report, comparison, selection, ran)
    for note in report.notes:
        warn(note.message)
    for unique_id, reason in report.opaque.items():
        warn(f"{unique_id} cannot be analysed ({reason.message}): it counts as changed")
    answer(
        printed(said, style, project_dir),
        fit="wrap" if style == "text" else None,
        commands=style == "github",
    )
    return int(_fails(report.decision, fail_on) or (ran is not None and ran.failed))


def _fails(decision: str, fail_on: str) -> bool:
    return decision == "BLOCKED" or (decision == "CAUTION" and fail_on == "caution")


@dataclass
class Said:
    """All that the gate prints.

    Attributes:
        selection: the tests that the change can break, where they were asked for.
        ran: what dbt said of them, where they were run.
    """

    report: GateReport
    comparison: Comparison
    selection: Selection | None = None
    ran: Ran | None = None

    @property
    def head(self) -> Project:
        """What is proposed."""
        return self.comparison.head

    @property
    def base(self) -> Project:
        """What is deployed."""
        return self.comparison.base


def printed(said: Said, style: str, project_dir: Path) -> Iterable[str]:
    """The report in one of the formats of the command, line by line."""
    if style == "json":
        return as_document(document(said))
    if style == "text":
        return _text(said)
    if style == "markdown":
        from dbt_ripple.cli.comment import comment

        return comment(said)
    from dbt_ripple.cli import gate_formats

    if style == "sarif":
        return as_json(gate_formats.sarif(said, project_dir))
    return gate_formats.github(said, project_dir)


def document(said: Said) -> dict[str, object]:
    """The report as ``--format json`` prints it."""
    found = said.report.document()
    if said.selection is not None:
        found["selection"] = said.selection
    if said.ran is not None:
        found["results"] = said.ran.statuses
    return found


def subject(finding: Finding, head: Project, base: Project) -> str:
    """What a finding is about, as people call it."""
    if finding.unique_id is None:
        return "the change"
    name = name_of(finding.unique_id, head, base)
    return f"{name}.{finding.column}" if finding.column else name


def new_findings(report: GateReport) -> list[Finding]:
    """What the change brought or touches."""
    return [finding for finding in report.findings if finding.level != "known"]


def known_findings(report: GateReport) -> str:
    """What it found there and left alone: how much of each rule."""
    rules = Counter(finding.rule for finding in report.findings if finding.level == "known")
    return ", ".join(f"{rule} {number:,}" for rule, number in rules.items())


def _text(said: Said) -> Iterator[str]:
    from dbt_ripple.governance.rules import RULES

    report, head, base = said.report, said.head, said.base
    decision = styled(report.decision, fg=COLOURS[report.decision], bold=True)
    yield f"{decision}  risk {report.risk_level}, reaches {count(report.blast_radius, 'asset')}"
    for finding in new_findings(report):
        level = styled(f"{finding.level:<8}", fg=_OF_LEVEL[finding.level])
        yield f"  {level} {finding.rule}: {subject(finding, head, base)}: {finding.reason.message}"
    if known := known_findings(report):
        yield f"  known    already so on base: {known}"
    for unique_id in report.removed:
        yield f"  removed  {named(unique_id, base)}"
    if any(f.level == "block" and RULES[f.rule].approval for f in report.findings):
        yield "what is about reach can be approved: --approved-by NAME"
    yield from affected_lines(report.affected)
    if report.opaque:
        yield f"not analysed: {', '.join(report.opaque)}"
    if said.selection is not None:
        from dbt_ripple.cli.select import selection_lines

        yield ""
        yield from selection_lines(said.selection, head)
    if said.ran is not None:
        from dbt_ripple.cli.run_selection import PASSED

        yield from (
            f"  {unique_id}: {status}"
            for unique_id, status in said.ran.statuses.items()
            if status not in PASSED
        )


def named(unique_id: str, base: Project) -> str:
    """A node of base, with what it is."""
    node = base.nodes[unique_id]
    return f"{node.resource_type} {node.display_name}"


def affected_lines(affected: list[Affected]) -> Iterator[str]:
    """The assets a change reaches, in a few lines; that nobody owns some is said once."""
    if affected:
        ownerless = sum(asset.owner is None for asset in affected)
        whose = "any of them" if ownerless == len(affected) else f"{ownerless:,} of them"
        yield f"affected: (nobody owns {whose})" if ownerless else "affected:"
    for asset in affected[:SHOWN]:
        references = ", ".join(asset.affected_references)
        reads = f"  {asset.verb()} {references}" if references else ""
        owner = styled(f"  ({asset.owner})", dim=True) if asset.owner else ""
        yield f"  {asset.severity:<8} {asset.name} [{asset.asset_type}]{reads}{owner}"
    if len(affected) > SHOWN:
        yield f"  and {len(affected) - SHOWN:,} more (--format json has them all)"
