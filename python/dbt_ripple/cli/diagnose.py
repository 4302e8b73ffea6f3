"""`dbt-ripple diagnose NODE.COLUMN`: a number looks wrong; all that it comes from, down to the sources."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import click

from dbt_ripple.artifacts.target_path import artifacts_folder
from dbt_ripple.cli.options import (
    analysis_options,
    format_option,
    open_cache,
    open_joined,
    open_target,
    other_projects_option,
    project_options,
)
from dbt_ripple.cli.select_option import as_typed
from dbt_ripple.cli.shell_completion import node_names
from dbt_ripple.cli.surroundings import Surroundings, open_assets, surroundings_options
from dbt_ripple.errors import RippleError
from dbt_ripple.rendering.diagnosis import diagnosis_markdown, diagnosis_text
from dbt_ripple.rendering.output import answer, as_document

if TYPE_CHECKING:
    from dbt_ripple.artifacts import Project
    from dbt_ripple.graph.joined_projects import JoinedProjects


@click.command(
    epilog="""\b
Examples:
  dbt-ripple diagnose revenue_daily.total_usd
  dbt-ripple diagnose revenue_daily.total_usd --state last-good-artifacts
  dbt-ripple diagnose metric:revenue --format markdown
  dbt-ripple diagnose mart.total --other-project ../core --state last-good --state ../core/last-good
""",
)
@click.argument("node", metavar="NODE[.COLUMN]", shell_complete=node_names)
@click.option(
    "--state",
    "states",
    multiple=True,
    type=click.Path(path_type=Path, exists=True, file_okay=False),
    help="Folder with the artifacts of when the number was right: what changed since then on the "
    "way is in the answer. Once for each project that is to be compared.",
)
@surroundings_options
@other_projects_option("the answer goes on where this one reads what that one builds")
@format_option("text", "json", "markdown")
@analysis_options
@project_options
def diagnose(
    node: str,
    states: tuple[Path, ...],
    others: tuple[Path, ...],
    assets: Surroundings,
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
    from dbt_ripple.artifacts.node_selection import named, named_in_any
    from dbt_ripple.changes import compare
    from dbt_ripple.cli.base_and_head import state_folder
    from dbt_ripple.governance.diagnose import diagnosis
    from dbt_ripple.graph.traversal import column_graph
    from dbt_ripple.rendering.trace import column_of, expressions_of

    with open_cache(cache_dir, no_cache) as cache:
        target = open_target(artifacts_folder(project_dir, target_path), cache, threads)
        joined = open_joined(target, others, cache, threads)
        typed = as_typed(node, project_dir)
        project, whose = target.project, {}
        projects, analyses = [project], [target.analysis()]
        around, analysis = project, analyses[0]
        if joined is not None:
            projects, analyses = [m.project for m in joined.members], joined.analyses()
            around, whose = joined.union, joined.project_of
            analysis = joined.united(analyses)
        declared = open_assets(project_dir, assets, lambda: around)
        everything = declared.whole if declared is not None else around
        if joined is None:
            root, column, _ = named(everything, typed)
        else:
            root, column, _ = named_in_any(project, everything, typed)
        project = everything
        if declared is not None:
            from dbt_ripple.graph.assets.asset_lineage import AssetLineage

            analysis = AssetLineage(declared, analysis, cache).analysis
        if column is not None:
            column = column_of(analysis, column_graph(analysis.edges), root, column)
        found = diagnosis(project, analysis, root, column, expressions_of(project), whose)
        for folder in states:
            base = open_target(state_folder(project_dir, folder), cache, threads)
            number = _number_of(base.project, projects, folder)
            head = projects[number]
            # Of another project the own columns: what comes to it from elsewhere is said there.
            seen = analyses[0] if joined is None else joined.members[number].analysis()
            comparison = compare(
                base.project, head, base_analysis=base.analysis(), head_analysis=seen, cache=cache
            )
            if declared is not None and joined is None:
                from dbt_ripple.changes.asset_changes import around as with_assets
                from dbt_ripple.graph.assets.declared_graph import DeclaredGraph

                known = declared.declared.values()
                comparison = with_assets(
                    comparison,
                    DeclaredGraph(comparison.base, known, lenient=True),
                    DeclaredGraph(comparison.head, known, formerly=comparison.base),
                    cache,
                )
                head = project
            before, after = expressions_of(comparison.base), expressions_of(head)
            found.add_changes(
                comparison,
                after,
                before,
                None if joined is None else partial(_id_in, joined, number),
            )
    if style == "json":
        answer(as_document(found))
    elif style == "markdown":
        answer(diagnosis_markdown(found))
    else:
        answer(diagnosis_text(found), fit="wrap")


def _number_of(base: Project, projects: Sequence[Project], folder: Path) -> int:
    """Which of the projects was as these artifacts say."""
    if len(projects) == 1:
        return 0
    for number, project in enumerate(projects):
        if project.name == base.name:
            return number
    raise RippleError(
        f"these are artifacts of {base.name or 'a project without a name'}",
        f"--state {folder}",
        f"name artifacts of {' or '.join(str(project.name) for project in projects)}",
    )


def _id_in(joined: JoinedProjects, number: int, id_: str) -> str | None:
    place = joined.place_of(id_)
    return place.unique_id if place is not None and place.project == number else None
