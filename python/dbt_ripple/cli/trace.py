"""`dbt-ripple trace`: what is upstream and downstream of a node or of one column."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from dbt_ripple.cli.options import (
    Command,
    analysis_options,
    format_option,
    open_cache,
    other_projects_option,
    partial_option,
    project_options,
    selection_options,
)
from dbt_ripple.cli.shell_completion import node_names
from dbt_ripple.cli.sides_options import with_asset_options
from dbt_ripple.rendering import terminal
from dbt_ripple.rendering.output import answer
from dbt_ripple.rendering.trace import render
from dbt_ripple.session.assets import AssetOptions

if TYPE_CHECKING:
    from dbt_ripple.graph.traversal import Direction


@click.command(
    cls=Command,
    epilog="""\b
Examples:
  dbt-ripple trace raw_orders
  dbt-ripple trace fct_orders --direction upstream --depth 2
  dbt-ripple trace raw.raw_orders.order_total --format json
  dbt-ripple trace +models/marts/fct_orders.sql
  dbt-ripple trace raw_orders --select resource_type:exposure
  dbt-ripple trace dim_customers.v2 --format mermaid > lineage.mmd
  dbt-ripple trace fct_orders.amount --other-project ../finance
  dbt-ripple trace airflow:load_orders --assets jobs/assets.yml
""",
)
@click.argument("node", metavar="NODE[.COLUMN]", shell_complete=node_names)
@click.option(
    "--direction",
    "-d",
    type=click.Choice(["upstream", "downstream", "both"]),
    help="Direction to follow.  [default: downstream]",
)
@selection_options("Show only paths to what dbt selects by SPEC.")
@click.option(
    "--depth", type=click.IntRange(min=0), help="Number of steps to follow.  [default: all]"
)
@other_projects_option("the trace goes on where it reads what this one builds, or the reverse")
@with_asset_options
@click.option("--include-tests", is_flag=True, help="Show data tests, unit tests and hooks, too.")
@format_option(
    *("tree", "text", "json", "mermaid", "dot", "markdown"),
    help="Output format; text is the same as tree.",
)
@partial_option
@analysis_options
@project_options
def trace(
    node: str,
    direction: Direction | None,
    depth: int | None,
    include_tests: bool,
    selected: tuple[str, ...],
    excluded: tuple[str, ...],
    others: tuple[Path, ...],
    assets: AssetOptions,
    style: str,
    cache_dir: Path | None,
    no_cache: bool,
    threads: int | None,
    project_dir: Path,
    target_path: Path | None,
) -> None:
    """Show what is upstream or downstream of NODE, or of one of its columns.

    NODE is a name, a versioned name (dim_customers.v2), source.table, a unique_id, the file it is
    defined in or, where names clash, exposure:name; or a declared asset (airflow:load_orders). +NODE is what is upstream, NODE+ downstream,
    2+NODE two steps up.

    With a COLUMN, everything that depends on its values is followed. Where the column decides which
    rows a relation has (a filter, a join key), these are shown as "(rows)", and everything below
    depends on them. "may read" marks nodes that may read the column, but are not known to: exposures
    that list no columns, Python models, SQL that cannot be parsed.
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
        traced = project.trace(
            node,
            direction=direction,
            depth=depth,
            tests=include_tests,
            select=selected,
            exclude=excluded,
        )
    width = terminal.width_of(sys.stdout)
    answer(render(traced.view, style, width), fit="cut" if style in ("tree", "text") else None)
