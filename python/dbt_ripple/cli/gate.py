"""`dbt-ripple gate`: may this change be merged? APPROVED, CAUTION or BLOCKED, for CI."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from dbt_ripple.artifacts.paths import artifacts_folder
from dbt_ripple.cli.options import (
    Command,
    analysis_options,
    format_option,
    open_cache,
    other_projects_option,
    project_options,
)
from dbt_ripple.cli.sides_options import sides_of_run_options
from dbt_ripple.dbt_runner.invoke import DbtOptions
from dbt_ripple.rendering.gate import rendered_gate
from dbt_ripple.rendering.output import answer, count, say, warn
from dbt_ripple.session.base_and_head import state_folder


@click.command(
    cls=Command,
    epilog="""\b
Examples:
  dbt-ripple gate --init
  dbt-ripple gate --state prod-artifacts
  dbt-ripple gate --base-ref origin/main --with select --format markdown > comment.md
  dbt-ripple gate --state prod-artifacts --approved-by "$REVIEWER" --fail-on caution
  dbt-ripple gate --state prod-artifacts --format sarif > gate.sarif
""",
)
@sides_of_run_options
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
@other_projects_option("the gate also judges its nodes that read what this project builds")
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
@format_option(
    "text",
    "json",
    "markdown",
    "github",
    "sarif",
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
    others: tuple[Path, ...],
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

    Each rule is off, warns or blocks, by base's ripple.yml or by its own default; a change of ripple.yml
    is a finding and holds from the next change on.
    The most severe finding decides: BLOCKED (exit code 1) if one blocks, CAUTION if one warns, else
    APPROVED. Findings that base has, too, are counted and never decide. Nodes that cannot be
    analysed count as changed if anything above them changed, and are listed.
    """
    from dbt_ripple.governance.ripple_yml import read_config
    from dbt_ripple.session.project import Project

    if begin:
        from dbt_ripple.artifacts import read_project
        from dbt_ripple.governance.initial_config import write_config

        answer(
            str(write_config(read_project(artifacts_folder(project_dir, target_path)), project_dir))
        )
        return 0
    if run and also is None:
        raise click.UsageError("--run runs the tests that --with select finds: give that, too")
    read_config(project_dir)  # what is wrong with it is said before anything is compiled
    name = " ".join((approved_by or "").split())
    if approved_by is not None and not name:
        raise click.BadParameter("the name is empty", param_hint="'--approved-by'")
    options = DbtOptions.taken({**dbt_arguments, "threads": threads})
    with open_cache(cache_dir, no_cache) as cache:
        project = Project(
            *(project_dir, target_path),
            assets=dbt_arguments["assets"],
            others=others,
            cache=cache,
            threads=threads,
            dbt=options,
            aloud=True,
        )
        with project.against(state, base_ref) as sides:
            gate_answer = sides.gate(name or None, with_tests=also is not None)
    report, ran = gate_answer.report, None
    if run and gate_answer.selection is not None:
        from dbt_ripple.dbt_runner.run_selection import run_selection

        folder = artifacts_folder(project_dir, target_path)
        deferred = state_folder(project_dir, state) if state is not None else None
        ran = run_selection(gate_answer.selection, project_dir, folder, options, state=deferred)
        gate_answer.ran = ran
    say(report.notes)
    if report.opaque and style != "text":
        warn(
            f"{count(len(report.opaque), 'node')} cannot be analysed, so each counts as changed;"
            " --format text says why"
        )
    answer(
        rendered_gate(gate_answer, style, project_dir),
        fit="wrap" if style == "text" else None,
        commands=style == "github",
    )
    return int(_fails(report.decision, fail_on) or (ran is not None and ran.failed))


def _fails(decision: str, fail_on: str) -> bool:
    return decision == "BLOCKED" or (decision == "CAUTION" and fail_on == "caution")
