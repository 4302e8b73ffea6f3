"""`dbt-ripple diagnose NODE.COLUMN`: a number looks wrong; all that it comes from, down to the sources."""

from __future__ import annotations

from pathlib import Path

import click

from dbt_ripple.artifacts.target_path import artifacts_folder
from dbt_ripple.cli.options import (
    analysis_options,
    assets_option,
    format_option,
    open_assets,
    open_cache,
    open_target,
    project_options,
)
from dbt_ripple.cli.select_option import as_typed
from dbt_ripple.cli.shell_completion import node_names
from dbt_ripple.rendering.diagnosis import diagnosis_markdown, diagnosis_text
from dbt_ripple.rendering.output import answer, as_document


@click.command(
    epilog="""\b
Examples:
  dbt-ripple diagnose revenue_daily.total_usd
  dbt-ripple diagnose revenue_daily.total_usd --state last-good-artifacts
  dbt-ripple diagnose metric:revenue --format markdown
""",
)
@click.argument("node", metavar="NODE[.COLUMN]", shell_complete=node_names)
@click.option(
    "--state",
    type=click.Path(path_type=Path, exists=True, file_okay=False),
    help="Folder with the artifacts of when the number was right: what changed since then on the "
    "way is in the answer.",
)
@assets_option
@format_option("text", "json", "markdown")
@analysis_options
@project_options
def diagnose(
    node: str,
    state: Path | None,
    assets: tuple[Path, ...],
    style: str,
    cache_dir: Path | None,
    no_cache: bool,
    threads: int | None,
    project_dir: Path,
    target_path: Path | None,
) -> None:
    """Show all that NODE, or one of its columns, is computed from: nearest first, down to the sources.

    Of each step: how it computes the columns, when it last ran and how that ended (run_results.json),
    how fresh the source is (sources.json of `dbt source freshness`), what changed since --state, which
    tests guard it and how they ended, and who answers for it.
    """
    from dbt_ripple.artifacts.node_selection import named
    from dbt_ripple.changes import compare
    from dbt_ripple.governance.diagnose import diagnosis
    from dbt_ripple.graph.traversal import column_graph
    from dbt_ripple.rendering.trace import column_of, expressions_of

    with open_cache(cache_dir, no_cache) as cache:
        target = open_target(artifacts_folder(project_dir, target_path), cache, threads)
        project = target.project
        declared = open_assets(project_dir, assets, lambda: target.project)
        if declared is not None:
            project = declared.whole
        root, column, _ = named(project, as_typed(node, project_dir))
        analysis = target.analysis()
        if declared is not None:
            from dbt_ripple.graph.assets.asset_lineage import AssetLineage

            analysis = AssetLineage(declared, analysis, cache).analysis
        if column is not None:
            column = column_of(analysis, column_graph(analysis.edges), root, column)
        comparison = None
        if state is not None:
            from dbt_ripple.cli.base_and_head import state_folder

            base = open_target(state_folder(project_dir, state), cache, threads)
            comparison = compare(
                base.project,
                target.project,
                base_analysis=base.analysis(),
                head_analysis=target.analysis(),
                cache=cache,
            )
            if declared is not None:
                from dbt_ripple.changes.asset_changes import around
                from dbt_ripple.graph.assets.declared_graph import DeclaredGraph

                known = declared.declared.values()
                comparison = around(
                    comparison,
                    DeclaredGraph(comparison.base, known, lenient=True),
                    DeclaredGraph(comparison.head, known, formerly=comparison.base),
                    cache,
                )
        before = None if comparison is None else expressions_of(comparison.base)
        found = diagnosis(project, analysis, root, column, expressions_of(project))
        if comparison is not None and before is not None:
            found.add_changes(comparison, expressions_of(project), before)
    if style == "json":
        answer(as_document(found))
    elif style == "markdown":
        answer(diagnosis_markdown(found))
    else:
        answer(diagnosis_text(found), fit="wrap")
