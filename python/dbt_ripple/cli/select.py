"""`dbt-ripple select`: the tests that a change can break, and the models to build for them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from dbt_ripple.artifacts.paths import artifacts_folder
from dbt_ripple.cli.options import (
    Command,
    analysis_options,
    format_option,
    open_cache,
    project_options,
)
from dbt_ripple.cli.sides_options import facts_options, sides_of_run_options
from dbt_ripple.dbt_runner.invoke import DbtOptions
from dbt_ripple.rendering.output import answer, say, warn
from dbt_ripple.rendering.selection import show, show_cutoff
from dbt_ripple.session.base_and_head import state_folder

if TYPE_CHECKING:
    from dbt_ripple.artifacts import Project
    from dbt_ripple.selection.cutoff import Cutoff


CUTOFF_BASE = click.option(
    "--cutoff-base",
    type=click.Choice(["beside", "state"]),
    help="What --cutoff compares with. beside: base's SQL, built in a schema beside over the same "
    "parents; state: base's relations as they are, if you know that they were built from the same "
    "inputs (a clone).  [default: beside]",
)


def choice_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options that say what is compared by `--cutoff`, and which tests are in the answer."""
    options = (
        CUTOFF_BASE,
        click.option(
            "--critical",
            metavar="TIER",
            help="Add all tests of nodes below the change whose meta.criticality is TIER; by default "
            "what ripple.yml says (select: {critical: TIER}); none: no such tests.",
        ),
        click.option(
            "--select",
            "selected",
            metavar="SPEC",
            multiple=True,
            help="Only what dbt selects by SPEC.",
        ),
        click.option(
            "--exclude",
            "excluded",
            metavar="SPEC",
            multiple=True,
            help="Leave out what dbt selects by SPEC.",
        ),
    )
    for option in reversed(options):
        command = option(command)
    return command


@click.command(
    cls=Command,
    epilog="""\b
Examples:
  dbt-ripple select --state prod-artifacts
  dbt-ripple select --state prod-artifacts --run
  dbt-ripple select --state prod-artifacts --run --cutoff
  dbt-ripple select --base-ref origin/main --format json
  dbt-ripple select --state prod-artifacts --critical tier1 --exclude tag:slow
  dbt build --indirect-selection empty --select $(dbt-ripple select --state prod --output names)
""",
)
@sides_of_run_options
@format_option("text", "json", "markdown")
@click.option(
    "--output",
    type=click.Choice(["names", "selector"]),
    help="Print models and tests for `dbt build`. names: one on each line; selector: write a selector "
    "to selectors.yml and print its name.",
)
@click.option(
    "--run", is_flag=True, help="Build the models and run the tests; defer everything else to base."
)
@click.option(
    "--cutoff",
    is_flag=True,
    help="With --run: build level by level, and skip models and tests whose parents come out equal "
    "to base's.",
)
@choice_options
@click.option(
    "--full", is_flag=True, help="Answer with what state:modified+ selects, for comparison."
)
@facts_options
@analysis_options
@project_options
def select(
    state: Path | None,
    base_ref: str | None,
    style: str,
    output: str | None,
    run: bool,
    cutoff: bool,
    cutoff_base: str | None,
    critical: str | None,
    selected: tuple[str, ...],
    excluded: tuple[str, ...],
    full: bool,
    facts: bool,
    assume_passed: bool,
    cache_dir: Path | None,
    no_cache: bool,
    threads: int | None,
    project_dir: Path,
    target_path: Path | None,
    **dbt_arguments: Any,
) -> int:
    """Print the tests that the change from base to this project can break.

    Base is the project whose artifacts are in --state, or the project at --base-ref.

    The change can break no other test: everything that an unlisted test reads, down to the sources,
    is defined as before. Nodes that cannot be analysed count as changed if anything above them
    changed, and are listed.
    """
    from dbt_ripple.selection.select import state_modified
    from dbt_ripple.session.project import Project
    from dbt_ripple.session.sides import tier_asked

    critical = tier_asked(critical, project_dir)
    if output and style != "text":
        raise click.UsageError("--output and --format are two ways to print it: give one of them")
    _check_cutoff(cutoff, cutoff_base, run, full, output)
    deciding: Cutoff | None = None
    options = DbtOptions.taken({**dbt_arguments, "threads": threads})
    with open_cache(cache_dir, no_cache) as cache:
        project = Project(
            *(project_dir, target_path),
            assets=dbt_arguments["assets"],
            cache=cache,
            threads=threads,
            dbt=options,
            aloud=True,
        )
        with project.against(state, base_ref, or_count=not run) as sides:
            only, shown, head = None, sides.head.project, sides.head.project
            if selected or excluded:
                only = project.chosen_by_dbt(sides, selected, excluded)
            if critical is not None:
                _check_tier(head, critical)
            if full:
                selection = state_modified(sides.base.project, head, only)
                nothing = "dbt's state:modified+ would run nothing"
            else:
                selection = sides.select(
                    critical=critical, only=only, facts=facts, assume_passed=assume_passed
                )
                shown, nothing = sides.shown, sides.nothing_changed(only is not None)
                if cutoff:
                    from dbt_ripple.dbt_runner.run_cutoff import cutoff_of

                    deciding = cutoff_of(
                        sides.comparison,
                        selection,
                        critical,
                        as_it_is=cutoff_base == "state",
                        anew=base_ref is not None,
                    )
    if deciding is not None:
        from dbt_ripple.dbt_runner.run_cutoff import run_cutoff

        say(selection.notes)
        folder = artifacts_folder(project_dir, target_path)
        deferred = state_folder(project_dir, state) if state is not None else None
        ran = run_cutoff(deciding, project_dir, folder, options, state=deferred)
        show_cutoff(deciding, shown, style, nothing)
        return int(ran.failed)
    show(selection, shown, style, output, nothing)
    if output == "selector":
        from dbt_ripple.dbt_runner.selectors_yml import NAME, write_selector

        write_selector(selection, head, project_dir)
        answer(NAME)
    if not run:
        return 0
    from dbt_ripple.dbt_runner.run_selection import run_selection

    folder = artifacts_folder(project_dir, target_path)
    deferred = state_folder(project_dir, state) if state is not None else None
    ran = run_selection(selection, project_dir, folder, options, state=deferred)
    return int(ran.failed)


def _check_cutoff(
    cutoff: bool, cutoff_base: str | None, run: bool, full: bool, output: str | None
) -> None:
    """Refuse options that say nothing together.

    Raises:
        click.UsageError: they do.
    """
    if cutoff_base and not cutoff:
        raise click.UsageError("--cutoff-base says what --cutoff compares with: give that, too")
    if cutoff and not run:
        raise click.UsageError("--cutoff looks at what is built: give --run, too")
    if cutoff and full:
        raise click.UsageError(
            "--cutoff needs the tests that can differ, and --full does not compute them"
        )
    if cutoff and output:
        raise click.UsageError(
            "--output prints what to run before anything runs; with --cutoff that is known only afterwards"
        )


def _check_tier(head: Project, tier: str) -> None:
    """Say it where no node has the tier: a typo would select as if nothing were critical."""
    from dbt_ripple.artifacts import criticality

    tiers = sorted({t for node in head.nodes.values() if (t := criticality(node)) is not None})
    if tier not in tiers:
        there = f"; there are {', '.join(tiers)}" if tiers else ""
        warn(f"no node of this project has meta.criticality {tier!r}{there}")
