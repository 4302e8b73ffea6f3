"""`dbt-ripple prune`: retire declared assets that nothing has reported for some days."""

from __future__ import annotations

from pathlib import Path

import click

from dbt_ripple.cli.options import Command, format_option, project_options
from dbt_ripple.cli.register import file_option, print_edits
from dbt_ripple.rendering.output import warn
from dbt_ripple.session.registering import files_of


@click.command(
    cls=Command,
    epilog="""\b
Examples:
  dbt-ripple prune --days 90 --dry-run
  dbt-ripple prune --days 30 --file jobs/assets.yml
""",
)
@click.option(
    "--days",
    type=click.IntRange(min=1),
    default=90,
    show_default=True,
    metavar="N",
    help="Retire assets that were last seen N days ago or earlier.",
)
@file_option
@format_option("text", "json")
@project_options
def prune(
    days: int,
    file: Path | None,
    dry_run: bool,
    style: str,
    project_dir: Path,
    target_path: Path | None,
) -> None:
    """Retire the assets that nothing has reported for N days.

    `register` and `capture` write the day into `last_seen`; an asset without one is kept by hand and
    never retired. What is retired gets `retired: DAY`, stays in the file as history, and is no part of
    the graph any more. An asset that is read or written by one that stays is kept.
    """
    from dbt_ripple.governance.asset_edits import pruned

    where, others = files_of(file, project_dir)
    edited, kept = pruned(where, days, others)
    for name, by in kept.items():
        warn(f"{name} is kept: {by}, which was shown, reads or writes it")
    if edited.changed and not dry_run:
        edited.write()
    print_edits(edited, style, dry_run)
