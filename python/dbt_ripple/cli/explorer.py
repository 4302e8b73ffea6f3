"""`dbt-ripple explorer`: the project's lineage as one page that opens from disk."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from dbt_ripple.artifacts.paths import artifacts_folder
from dbt_ripple.cli.options import (
    Command,
    analysis_options,
    open_cache,
    partial_option,
    project_options,
)
from dbt_ripple.cli.sides_options import sides_options
from dbt_ripple.dbt_runner.invoke import DbtOptions
from dbt_ripple.errors import RippleError
from dbt_ripple.rendering.output import answer, count, say, warn
from dbt_ripple.session.assets import open_assets
from dbt_ripple.session.base_and_head import open_sides
from dbt_ripple.session.complete_artifacts import open_complete
from dbt_ripple.session.sides import Sides

if TYPE_CHECKING:
    from dbt_ripple.artifacts import Project
    from dbt_ripple.graph.assets.declared_graph import DeclaredGraph
    from dbt_ripple.graph.cache import Cache
    from dbt_ripple.graph.target_folder import TargetFolder
    from dbt_ripple.pages.explorer_compare import Compared
    from dbt_ripple.pages.project_document import ProjectDocument


@click.command(
    cls=Command,
    epilog="""\b
Examples:
  dbt-ripple explorer
  dbt-ripple explorer -o site/explorer.html --target-path target/ripple
  dbt-ripple explorer --state prod-artifacts -o pull-request.html
  dbt-ripple explorer --base-ref origin/main
""",
)
@click.option(
    "--output",
    "-o",
    type=click.Path(path_type=Path, dir_okay=False),
    default=Path("explorer.html"),
    show_default=True,
    help="The page to write.",
)
@sides_options
@partial_option
@analysis_options
@project_options
def explorer(
    output: Path,
    state: Path | None,
    base_ref: str | None,
    cache_dir: Path | None,
    no_cache: bool,
    threads: int | None,
    project_dir: Path,
    target_path: Path | None,
    **dbt_arguments: Any,
) -> None:
    """Write the project's lineage as one page: search it, and follow columns up and down.

    The page needs no server and no network: open the file, or put it beside the site of dbt docs.

    With --state or --base-ref it also shows what the change from base to this project does: what is
    changed, impacted and broken, and where it stops.
    """
    from dbt_ripple.pages.explorer import explorer_page

    compared: Compared | None = None
    assets = dbt_arguments["assets"]
    with open_cache(cache_dir, no_cache) as cache:
        if state is None and base_ref is None:
            folder = artifacts_folder(project_dir, target_path)
            target = open_complete(folder, cache, threads, project_dir=project_dir)
            declared = open_assets(project_dir, assets, lambda: target.project)
            document = described(target, declared, cache)
        else:
            options = DbtOptions.taken({**dbt_arguments, "threads": threads})
            with open_sides(
                *(project_dir, target_path, state, base_ref, options, cache, threads),
                assets=assets,
            ) as (base, head):
                named = base_ref or (state.name if state and state.is_absolute() else str(state))
                sides = Sides(project_dir, base, head, cache, threads)
                document, compared = _compared(sides, named)
    page = explorer_page(document, compared)
    try:
        output.parent.mkdir(parents=True, exist_ok=True)
        output.write_text(page, encoding="utf-8", newline="\n")
    except OSError as error:
        raise RippleError(
            f"the page cannot be written: {error.strerror}", str(output), "name another: -o FILE"
        ) from error
    for note in document.notes:
        warn(note)
    say(compared.notes if compared else ())
    size = len(page.encode()) / 1_000_000
    answer([f"{output}: {count(len(document.nodes), 'node')}, {size:.1f} MB"])


def described(
    target: TargetFolder,
    declared: DeclaredGraph | None,
    cache: Cache | None,
    earlier: tuple[Project, ...] = (),
) -> ProjectDocument:
    """The document of a project, with the declared assets."""
    from dbt_ripple.pages.describe_project import describe_project

    project, analysis = target.project, target.analysis(expressions=True)
    if declared is not None:
        from dbt_ripple.graph.assets.asset_lineage import AssetLineage

        project, analysis = declared.whole, AssetLineage(declared, analysis, cache).analysis
    return describe_project(project, analysis, earlier)


def _compared(sides: Sides, named: str) -> tuple[ProjectDocument, Compared]:
    """The document of head, and the change from base to it."""
    from dbt_ripple.graph.assets.declared_graph import DeclaredGraph
    from dbt_ripple.pages.explorer_compare import compared

    base, head, cache = sides.base, sides.head, sides.cache
    declared = DeclaredGraph(head.project, head.declared) if head.declared else None
    document = described(head, declared, cache, (base.project,))
    difference = compared(
        *(sides.comparison, sides.diff(), sides.select(), document, named),
        lambda: described(base, None, cache),
    )
    return document, difference
