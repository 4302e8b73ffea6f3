"""`dbt-ripple analyze`: how much of a project can be analysed, without a connection."""

from __future__ import annotations

from pathlib import Path

import click

from dbt_ripple.artifacts.paths import artifacts_folder
from dbt_ripple.cli.options import (
    Command,
    analysis_options,
    format_option,
    open_cache,
    project_options,
)
from dbt_ripple.cli.sides_options import with_asset_options
from dbt_ripple.rendering.analysis_coverage import expressions_of, render, writer
from dbt_ripple.rendering.output import answer, count, warn
from dbt_ripple.session.assets import AssetOptions, open_assets
from dbt_ripple.session.open_artifacts import open_target, print_notes


@click.command(
    cls=Command,
    epilog="""\b
Examples:
  dbt-ripple analyze
  dbt-ripple analyze --project-dir shop --target-path target-docs --format json
  dbt-ripple analyze --edges column_edges.parquet
""",
)
@format_option("text", "json", "markdown")
@click.option(
    "--edges",
    "edges_file",
    metavar="FILE",
    type=click.Path(path_type=Path),
    help="Also write the column edges to FILE; its suffix says how: .jsonl, .csv or .parquet.",
)
@with_asset_options
@analysis_options
@project_options
def analyze(
    style: str,
    edges_file: Path | None,
    assets: AssetOptions,
    cache_dir: Path | None,
    no_cache: bool,
    threads: int | None,
    project_dir: Path,
    target_path: Path | None,
) -> None:
    """Print how much of this project can be analysed, and why the rest cannot.

    Counts models, columns and edges, and lists opaque and broken models with the reason, also for the
    assets that ripple_assets.yml declares. Reads the artifacts that `dbt docs generate` or `dbt
    compile` wrote to the target folder. Needs no Spark and no connection, and writes nothing but FILE.
    """
    write = None
    if edges_file:
        write = writer(edges_file)
    with open_cache(cache_dir, no_cache) as cache:
        target = open_target(artifacts_folder(project_dir, target_path), cache, threads)
        if write:
            target.analysis(tests=False, expressions=True)
        summary = target.summary()
        if not target.was_read:
            print_notes(summary.notes, summary.notes_count)
        with_expressions = target.analysis(tests=False, expressions=True) if write else None
        declared = open_assets(project_dir, assets, lambda: target.project)
        if declared is not None:
            from dbt_ripple.graph.analysis_coverage import with_assets
            from dbt_ripple.graph.assets.asset_lineage import AssetLineage

            analysis = with_expressions or target.analysis(tests=False)
            lineage = AssetLineage(declared, analysis, cache)
            summary = with_assets(summary, declared.whole, lineage.analysis)
            with_expressions = lineage.analysis if write else None
    if write and edges_file and with_expressions is not None:
        write(edges_file, with_expressions.edges, expressions_of(with_expressions))
        warn(f"wrote {count(len(with_expressions.edges), 'edge')} to {edges_file}")
    answer(render(summary, style), fit="wrap" if style == "text" else None)
