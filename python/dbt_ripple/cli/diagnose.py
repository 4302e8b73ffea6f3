"""`dbt-ripple diagnose NODE.COLUMN`: a number looks wrong; all that it comes from, down to the sources."""

from __future__ import annotations

from pathlib import Path

import click

from dbt_ripple.cli.options import (
    Command,
    analysis_options,
    format_option,
    open_cache,
    other_projects_option,
    partial_option,
    project_options,
    states_option,
)
from dbt_ripple.cli.shell_completion import node_names
from dbt_ripple.cli.sides_options import with_asset_options
from dbt_ripple.rendering.incident import diagnosis_markdown, diagnosis_text
from dbt_ripple.rendering.output import answer, as_document
from dbt_ripple.session.assets import AssetOptions


@click.command(
    cls=Command,
    epilog="""\b
Examples:
  dbt-ripple diagnose revenue_daily.total_usd
  dbt-ripple diagnose revenue_daily.total_usd --state last-good-artifacts
  dbt-ripple diagnose metric:revenue --format markdown
  dbt-ripple diagnose mart.total --other-project ../core --state last-good --state ../core/last-good
""",
)
@click.argument("node", metavar="NODE[.COLUMN]", shell_complete=node_names)
@states_option(
    "Folder with the artifacts of when the number was right: what changed since then on the "
    "way is in the answer. Once for each project that is to be compared."
)
@with_asset_options
@other_projects_option("the answer goes on where this one reads what that one builds")
@format_option("text", "json", "markdown")
@partial_option
@analysis_options
@project_options
def diagnose(
    node: str,
    states: tuple[Path, ...],
    others: tuple[Path, ...],
    assets: AssetOptions,
    style: str,
    cache_dir: Path | None,
    no_cache: bool,
    threads: int | None,
    project_dir: Path,
    target_path: Path | None,
) -> None:
    """Show all that NODE, or one of its columns, is computed from: nearest first, down to the sources.

    For each step: how it computes the columns, when it last ran and how that ended (run_results.json),
    how fresh the source is (sources.json of `dbt source freshness`), what changed since --state, which
    tests guard it and how they ended, and who owns it.
    """
    from dbt_ripple.session.project import Project

    with open_cache(cache_dir, no_cache) as cache:
        project = Project(
            *(project_dir, target_path),
            assets=assets,
            others=others,
            cache=cache,
            threads=threads,
            aloud=True,
        )
        steps_up = project.diagnose(node, since=states).diagnosis
    if style == "json":
        answer(as_document(steps_up))
    elif style == "markdown":
        answer(diagnosis_markdown(steps_up))
    else:
        answer(diagnosis_text(steps_up), fit="wrap")
