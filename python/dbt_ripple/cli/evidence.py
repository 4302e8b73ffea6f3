"""`dbt-ripple evidence NODE -o DIR`: what an auditor asks of a number, in one folder with its sums."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING

import click

from dbt_ripple.artifacts.paths import artifacts_folder
from dbt_ripple.cli.options import (
    Command,
    analysis_options,
    format_option,
    open_cache,
    project_options,
    states_option,
)
from dbt_ripple.cli.shell_completion import node_names
from dbt_ripple.cli.sides_options import with_asset_options
from dbt_ripple.cli.spark_server import SparkOptions, Way, with_spark_options
from dbt_ripple.rendering.output import answer, as_document, count
from dbt_ripple.session.assets import AssetOptions, open_assets
from dbt_ripple.session.open_artifacts import open_target
from dbt_ripple.session.typed_names import as_typed

if TYPE_CHECKING:
    from dbt_ripple.artifacts import Project
    from dbt_ripple.graph.cache import Cache
    from dbt_ripple.pages.consecutive_loads import State
    from dbt_ripple.pages.gather_evidence import Gathering


@click.command(
    cls=Command,
    epilog="""\b
Examples:
  dbt-ripple evidence fct_orders -o evidence/fct_orders
  dbt-ripple evidence revenue_daily.total_usd -o evidence/revenue --state artifacts/2026-06 --state artifacts/2026-09
  dbt-ripple evidence fct_orders -o evidence/fct_orders --tables --format json
  dbt-ripple verify evidence/fct_orders --digest 5f3c...
""",
)
@click.argument("node", metavar="NODE[.COLUMN]", shell_complete=node_names)
@click.option(
    "--output",
    "-o",
    "folder",
    metavar="DIR",
    required=True,
    type=click.Path(path_type=Path),
    help="Folder of the pack: new, or empty.",
)
@states_option(
    "Folder with artifacts of earlier, for the history of definitions and contracts. May be repeated."
)
@click.option(
    "--tables",
    is_flag=True,
    help="Also read the models of the dbt package on Spark: incidents, runs, broken contracts.",
)
@click.option(
    "--namespace",
    default="dbt",
    show_default=True,
    help="Namespace of the jobs in OpenLineage events.",
)
@format_option("text", "json")
@with_asset_options
@with_spark_options
@analysis_options
@project_options
def evidence(
    node: str,
    folder: Path,
    states: tuple[Path, ...],
    tables: bool,
    namespace: str,
    style: str,
    assets: AssetOptions,
    where: SparkOptions,
    cache_dir: Path | None,
    no_cache: bool,
    threads: int | None,
    project_dir: Path,
    target_path: Path | None,
) -> None:
    """Write the evidence of NODE, or of one of its columns, into a folder for an auditor.

    The pack has a page to read or to print (index.html), its data (evidence.json), a picture of the
    lineage, the SQL of everything upstream, OpenLineage events, and SHA-256 sums (SHA256SUMS). It lists
    what was not available. The same artifacts give the same bytes.

    Keep the digest that is printed where the owner of the folder cannot change it: `dbt-ripple verify DIR
    --digest DIGEST` finds any change with it.
    """
    from dbt_ripple.artifacts.node_selection import named
    from dbt_ripple.graph.traversal import column_graph
    from dbt_ripple.pages.checksummed_folder import check_empty, seal
    from dbt_ripple.pages.evidence_pack import definition_files, events_of, files_of, summary
    from dbt_ripple.pages.gather_evidence import gather, lineage_of
    from dbt_ripple.rendering.page_documents import WrittenEvidence
    from dbt_ripple.rendering.trace import column_of

    check_empty(folder)
    with open_cache(cache_dir, no_cache) as cache:
        at_hand = _at_hand(
            *(
                artifacts_folder(project_dir, target_path),
                project_dir,
                states,
                assets,
                cache,
                threads,
            )
        )
        project, analysis = at_hand.project, at_hand.analysis
        root, column, _ = named(project, as_typed(node, project_dir))
        if column is not None:
            column = column_of(analysis, column_graph(analysis.edges), root, column)
        lineage = lineage_of(at_hand.document, root.unique_id, column)
        if tables:
            from dbt_ripple.spark.package_models import rows_about

            with ExitStack() as stack:
                at_hand.recorded, unread = rows_about(
                    lambda: stack.enter_context(Way.of(where, project_dir).server()),
                    project,
                    lineage.made_of,
                )
            at_hand.add_unread(unread)
        datasets = assets.namespace or project.metadata.adapter_type or "unknown"
        events, absent = events_of(project, analysis, lineage.sides, (namespace, datasets))
        at_hand.absent += absent
        definitions = definition_files(project, lineage.made_of)
        pack = gather(at_hand, lineage, root.unique_id, column, definitions, cache)
        files = files_of(pack, lineage, project, events)
    digest = seal(files, folder)
    if style == "json":
        answer(
            as_document(
                WrittenEvidence(
                    root=pack.root,
                    column=pack.column,
                    folder=str(folder),
                    files=sorted(files),
                    digest=digest,
                    absent=pack.absent,
                )
            )
        )
        return
    answer(
        [
            summary(pack),
            f"wrote {count(len(files), 'file')} and their sums to {folder}",
            *(f"not at hand: {one.what}: {one.why}" for one in pack.absent),
            f"digest of SHA256SUMS: {digest}",
        ]
    )


def _at_hand(
    folder: Path,
    project_dir: Path,
    states: tuple[Path, ...],
    assets: AssetOptions,
    cache: Cache | None,
    threads: int | None,
) -> Gathering:
    """The project with its earlier states, described."""
    from dbt_ripple.graph.assets.asset_lineage import AssetLineage
    from dbt_ripple.pages.consecutive_loads import State
    from dbt_ripple.pages.describe_project import describe_project
    from dbt_ripple.pages.gather_evidence import Gathering

    target = open_target(folder, cache, threads)
    of_dbt = project = target.project
    seen = analysis = target.analysis(expressions=True)
    declared = open_assets(project_dir, assets, lambda: of_dbt)
    if declared is not None:
        project = declared.whole
        analysis = AssetLineage(declared, analysis, cache).analysis
    earlier, folders = _earlier(of_dbt, project_dir, states, cache, threads)
    return Gathering(
        project=project,
        analysis=analysis,
        document=describe_project(project, analysis, [state.project for state in earlier]),
        states=[*earlier, State(None, of_dbt, seen)],
        folders=[*folders, folder],
    )


def _earlier(
    project: Project,
    project_dir: Path,
    folders: tuple[Path, ...],
    cache: Cache | None,
    threads: int | None,
) -> tuple[list[State], list[Path]]:
    """Earlier states of a project, oldest first, whatever order they were given in."""
    from dbt_ripple.errors import RippleError
    from dbt_ripple.pages.consecutive_loads import State, written_at
    from dbt_ripple.session.base_and_head import check_side, state_folder

    earlier = []
    for given in folders:
        folder = state_folder(project_dir, given)
        if not folder.is_dir():
            raise RippleError("no such folder", f"--state {given}", "name a folder of artifacts")
        target = open_target(folder, cache, threads)
        if target.project.name != project.name:
            raise RippleError(
                f"these are artifacts of {target.project.name or 'a project without a name'}",
                f"--state {given}",
                f"name artifacts of {project.name}",
            )
        fix = "compile the whole project by `dbt compile` or `dbt docs generate`"
        check_side(target.project, "this state", fix)
        earlier.append((target, folder))
    earlier.sort(key=lambda pair: (written_at(pair[0].project), pair[0].project.digest))
    states = [
        State(number, target.project, target.analysis(expressions=True))
        for number, (target, _) in enumerate(earlier, start=1)
    ]
    return states, [folder for _, folder in earlier]
