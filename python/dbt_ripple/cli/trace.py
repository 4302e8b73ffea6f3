"""`dbt-ripple trace`: what is upstream and downstream of a node or of one column."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from dbt_ripple.cli.asset_options import with_asset_options
from dbt_ripple.cli.help import Command
from dbt_ripple.cli.options import (
    analysis_options,
    format_option,
    open_cache,
    other_projects_option,
    partial_option,
    project_options,
)
from dbt_ripple.cli.select_option import selection_options
from dbt_ripple.cli.shell_completion import node_names
from dbt_ripple.errors import RippleError
from dbt_ripple.rendering import terminal
from dbt_ripple.rendering.output import answer
from dbt_ripple.rendering.trace import TraceView, column_view, node_view, render
from dbt_ripple.session.assets import AssetOptions, open_assets, open_dbt_or_assets
from dbt_ripple.session.complete_artifacts import complete
from dbt_ripple.session.open_artifacts import open_joined
from dbt_ripple.session.typed_names import as_typed, chosen

if TYPE_CHECKING:
    from dbt_ripple.artifacts import Project
    from dbt_ripple.artifacts.node_selection import Operators
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
    default="downstream",
    show_default=True,
    help="Direction to follow.",
)
@selection_options("Show only paths to what dbt selects by SPEC.")
@click.option(
    "--depth", type=click.IntRange(min=0), help="Number of steps to follow.  [default: all]"
)
@other_projects_option("the trace goes on where it reads what this one builds, or the reverse")
@with_asset_options
@click.option("--include-tests", is_flag=True, help="Show data tests, unit tests and hooks, too.")
@format_option(
    "tree", "text", "json", "mermaid", "markdown", help="Output format; text is the same as tree."
)
@partial_option
@analysis_options
@project_options
def trace(
    node: str,
    direction: Direction,
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
    from dbt_ripple.artifacts.node_selection import named, named_in_any

    with open_cache(cache_dir, no_cache) as cache:
        target = open_dbt_or_assets(project_dir, target_path, assets, cache, threads)
        typed = as_typed(node, project_dir)
        if others or _names_column(target.project, typed):  # of nodes dbt knows all without SQL
            target = complete(target, cache, project_dir=project_dir, tests=include_tests)
        project, whose = target.project, {}
        joined = open_joined(target, others, cache, threads)
        dbt_projects = joined.union if joined is not None else project
        declared = open_assets(project_dir, assets, lambda: dbt_projects)
        everything = declared.whole if declared is not None else dbt_projects
        if joined is not None:
            root, column, asked = named_in_any(project, everything, typed)
            project, whose = everything, joined.project_of
        else:
            project = everything
            root, column, asked = named(project, typed)
        direction, depth = _way(asked, direction, depth)
        wanted = chosen(project, selected, excluded, project_dir)
        analysis = None
        if column is not None and joined is not None:
            analysis = joined.united(joined.analyses())
        elif column is not None:
            analysis = target.analysis(tests=include_tests)
        if analysis is not None and declared is not None:
            from dbt_ripple.graph.assets.asset_lineage import AssetLineage

            analysis = AssetLineage(declared, analysis, cache).analysis
    view: TraceView[Any]
    if column is None or analysis is None:
        view = node_view(
            project=project,
            root=root,
            direction=direction,
            depth=depth,
            include_tests=include_tests,
            wanted=wanted,
            whose=whose,
        )
    else:
        view = column_view(
            *(project, analysis, root, column, direction, depth, include_tests, wanted, whose)
        )
    width = terminal.width_of(sys.stdout)
    answer(render(view, style, width), fit="cut" if style in ("tree", "text") else None)


def _names_column(project: Project, typed: str) -> bool:
    from dbt_ripple.artifacts.node_selection import named

    try:
        return named(project, typed)[1] is not None
    except RippleError:  # it may be an asset
        return "." in typed


def _way(asked: Operators, direction: Direction, depth: int | None) -> tuple[Direction, int | None]:
    """Which way to go, and how far: the operators beside the name say it, or else the options."""
    depths = [steps for steps in (asked.up, asked.down) if steps is not None]
    if not depths:
        return direction, depth
    context = click.get_current_context()
    for option in ("direction", "depth"):
        given = context.get_parameter_source(option) is click.core.ParameterSource.COMMANDLINE
        if given and (option == "direction" or max(depths) >= 0):
            raise click.UsageError(f"+ and --{option} both say how to go: give one of them")
    if len(set(depths)) > 1:
        raise click.UsageError("one depth for both ways: say +NODE+ and --depth")
    if max(depths) >= 0:
        depth = depths[0]
    if len(depths) > 1:
        return "both", depth
    return "upstream" if asked.up is not None else "downstream", depth
