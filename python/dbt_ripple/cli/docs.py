"""`dbt-ripple docs`: the site that `dbt docs generate` made, with lineage, owners and health in it."""

from __future__ import annotations

from pathlib import Path

import click

from dbt_ripple.artifacts.paths import artifacts_folder
from dbt_ripple.cli.options import (
    Command,
    analysis_options,
    open_cache,
    partial_option,
    project_options,
    states_option,
)
from dbt_ripple.cli.sides_options import with_asset_options
from dbt_ripple.errors import RippleError
from dbt_ripple.rendering.output import answer, count, warn
from dbt_ripple.session.assets import AssetOptions, open_assets
from dbt_ripple.session.complete_artifacts import open_complete
from dbt_ripple.session.open_artifacts import open_target


@click.command(
    cls=Command,
    epilog="""\b
Examples:
  dbt docs generate; dbt-ripple docs
  dbt-ripple docs --static --output public
  dbt-ripple docs --state last_run --state last_month
""",
)
@click.option(
    "--output",
    "-o",
    type=click.Path(path_type=Path),
    help="Folder to write the site into, relative to the current folder.  [default: ripple_docs in the target folder]",
)
@click.option("--static", is_flag=True, help="Also write the site as one file, static_index.html.")
@states_option(
    "Artifacts of an earlier run, or of an earlier version of the project: they tell when a model was"
    " last built, how its tests ended and which versions its contract had. May be repeated.",
)
@with_asset_options
@partial_option
@analysis_options
@project_options
def docs(
    output: Path | None,
    static: bool,
    states: tuple[Path, ...],
    assets: AssetOptions,
    cache_dir: Path | None,
    no_cache: bool,
    threads: int | None,
    project_dir: Path,
    target_path: Path | None,
) -> None:
    """Write a copy of dbt's docs site that shows where each model and column comes from.

    For each model and column, the copy shows what it comes from and what it feeds (with links), how it
    is computed, who owns it, its contract version, personal data, tests, last success and blast radius;
    and on the first page the health of the project, with badges. dbt's own files stay as they are.

    `dbt docs generate` also replaces run_results.json, so give the artifacts of the last `dbt build` with
    --state.
    """
    from dbt_ripple.pages.badges import read_red_below
    from dbt_ripple.pages.describe_project import describe_project
    from dbt_ripple.pages.docs_site import copy_assets, enriched_site
    from dbt_ripple.session.base_and_head import state_folder

    red_below = read_red_below(project_dir)
    folder = artifacts_folder(project_dir, target_path)
    output = output or folder / "ripple_docs"
    if output.resolve() == folder.resolve():
        raise RippleError(
            "is the target folder, whose files stay as they are",
            f"--output {output}",
            "name another folder",
        )
    with open_cache(cache_dir, no_cache) as cache:
        earlier = [
            open_target(state_folder(project_dir, state), cache, threads).project
            for state in states
        ]
        target = open_complete(folder, cache, threads, project_dir=project_dir, others=earlier)
        analysis = target.analysis(expressions=True)
        declared = open_assets(project_dir, assets, lambda: target.project)
        project = target.project
        if declared is not None:
            from dbt_ripple.graph.assets.asset_lineage import AssetLineage

            project = declared.whole
            analysis = AssetLineage(declared, analysis, cache).analysis
        document = describe_project(project, analysis, earlier)
        site = enriched_site(folder, document, red_below, static=static)
    try:
        site.write(output)
        copy_assets(project_dir, folder, output)
    except OSError as error:
        what = f"cannot be written ({error.strerror})"
        raise RippleError(what, f"--output {output}", "name another folder") from error
    answer([f"wrote the docs of {count(len(document.nodes), 'node')} to {output}"])
    if document.tests and all(test.last_run is None for test in document.tests.values()):
        warn(
            "no result of a test is known, as `dbt docs generate` replaces run_results.json: "
            "name the artifacts of the last `dbt build` by --state"
        )
