"""`dbt-ripple run`: build and test what a change affects, and stop where rows come out equal."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from dbt_ripple.cli.options import Command, analysis_options, format_option, project_options
from dbt_ripple.cli.select import choice_options, select
from dbt_ripple.cli.sides_options import facts_options, sides_of_run_options
from dbt_ripple.session.assets import AssetOptions


@click.command(
    cls=Command,
    epilog="""\b
Examples:
  dbt-ripple run --state prod-artifacts
  dbt-ripple run --base-ref origin/main --target ci --format markdown
""",
)
@sides_of_run_options
@format_option("text", "json", "markdown")
@choice_options
@facts_options
@analysis_options
@project_options
@click.pass_context
def run(
    context: click.Context, /, style: str, project_dir: Path, assets: AssetOptions, **given: Any
) -> Any:
    """Build and test what the change from base to this project affects.

    The same as `select --run --cutoff`: models that can differ are built level by level. Where a
    relation comes out equal to base's, models and tests that only read what is equal are skipped.
    """
    return context.invoke(
        select,
        **given,
        style=style,
        project_dir=project_dir,
        assets=assets.files,
        events=assets.events,
        dataset_namespace=assets.namespace,
        run=True,
        cutoff=True,
        output=None,
        full=False,
    )
