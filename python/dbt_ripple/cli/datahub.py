"""`dbt-ripple datahub`: what is known of a project, as DataHub's metadata."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from dbt_ripple.artifacts.paths import artifacts_folder
from dbt_ripple.cli.options import Command, analysis_options, open_cache, project_options
from dbt_ripple.cli.sides_options import assets_option
from dbt_ripple.datahub.client import require_client, send, write
from dbt_ripple.errors import RippleError
from dbt_ripple.rendering.output import answer, count, warn
from dbt_ripple.session.assets import AssetOptions, open_assets
from dbt_ripple.session.open_artifacts import open_target

if TYPE_CHECKING:
    from dbt_ripple.datahub.dataset_urns import DatasetIds
    from dbt_ripple.datahub.proposals import Proposal
    from dbt_ripple.graph.assets.declared_graph import DeclaredGraph
    from dbt_ripple.graph.cache import Cache
    from dbt_ripple.graph.target_folder import TargetFolder


@click.command(
    cls=Command,
    epilog="""\b
Examples:
  dbt build; dbt docs generate --no-compile; dbt-ripple datahub --output metadata.json
  datahub check metadata-file metadata.json
  dbt-ripple datahub --server http://localhost:8080
  dbt-ripple datahub --platform-instance eu --env DEV --output -
""",
)
@click.option(
    "--output",
    metavar="FILE",
    help="Write the metadata to FILE, as DataHub's file source reads it, in place of sending it; - is stdout.",
)
@click.option(
    "--server",
    metavar="URL",
    help="Send it to this server.  [default: DATAHUB_GMS_URL, ~/.datahubenv]",
)
@click.option("--platform", help="DataHub's platform of the warehouse.  [default: the adapter's]")
@click.option("--platform-instance", metavar="NAME", help="The instance of the platform.")
@click.option("--env", default="PROD", show_default=True, help="DataHub's environment.")
@click.option(
    "--lowercase/--no-lowercase",
    default=None,
    help="Write names in lower case, as convert_urns_to_lowercase of a recipe.  [default: on Snowflake]",
)
@assets_option
@analysis_options
@project_options
def datahub(
    output: str | None,
    server: str | None,
    platform: str | None,
    platform_instance: str | None,
    env: str,
    lowercase: bool | None,
    assets: AssetOptions,
    cache_dir: Path | None,
    no_cache: bool,
    threads: int | None,
    project_dir: Path,
    target_path: Path | None,
) -> None:
    """Send lineage, schemas, owners, tags and test results to DataHub, or write them to a file.

    Reads the artifacts in the target folder; connects to no warehouse. Datasets get the names that
    DataHub's ingestion of the warehouse gives them, so that both describe the same dataset. The same
    artifacts give the same metadata, so it does no harm to send it twice.
    """
    require_client()
    if output is not None and server is not None:
        raise click.UsageError("--output writes a file, --server sends: give one of them")
    from datahub.emitter.mce_builder import ALL_ENV_TYPES

    from dbt_ripple.datahub.dataset_urns import DatasetIds

    if env.upper() not in ALL_ENV_TYPES:
        raise click.UsageError(f"--env is one of {', '.join(sorted(ALL_ENV_TYPES))}, not {env}")
    folder = artifacts_folder(project_dir, target_path)
    with open_cache(cache_dir, no_cache) as cache:
        target = open_target(folder, cache, threads)
        declared = open_assets(project_dir, assets, lambda: target.project)
        project = declared.whole if declared is not None else target.project
        ids = DatasetIds(project, platform, platform_instance, lowercase)
        proposals, untyped = proposals_of(target, declared, ids, env.upper(), cache)
    if output is None:
        where = send(proposals, server)
        answer([f"sent {count(len(proposals), 'proposal')} to {where}"])
    elif output == "-":
        warn(f"wrote {count(write(proposals, sys.stdout, 'stdout'), 'proposal')} to stdout")
    else:
        where = f"--output {output}"
        try:
            with Path(output).open("w", encoding="utf-8") as file:
                sent = write(proposals, file, where)
        except OSError as error:
            what = f"cannot be written ({error.strerror})"
            raise RippleError(what, where, "name another file") from error
        answer([f"wrote {count(sent, 'proposal')} to {output}"])
    if untyped:
        warn(
            f"the schemas of {count(untyped, 'relation')} are left out, because not all columns and types"
            " are known; `dbt docs generate --no-compile` finds them out"
        )


def proposals_of(
    target: TargetFolder,
    declared: DeclaredGraph | None,
    ids: DatasetIds,
    env: str,
    cache: Cache | None,
) -> tuple[list[Proposal], int]:
    """All metadata of a project, and how many schemas are left out of it.

    Raises:
        RippleError: nothing is compiled.
    """
    from dbt_ripple.datahub.assertions import TestProposals
    from dbt_ripple.datahub.proposals import DatasetUrns, ProjectProposals
    from dbt_ripple.openlineage.column_lineage import LineageFinder
    from dbt_ripple.openlineage.invocation import read_invocation
    from dbt_ripple.openlineage.project_facts import ProjectFacts

    project = target.project
    analysis = target.analysis(expressions=True)
    results = project.executed
    invocation = read_invocation(target.folder, results) if results else None
    if declared is not None:
        from dbt_ripple.graph.assets.asset_lineage import AssetLineage

        project = declared.whole
        analysis = AssetLineage(declared, analysis, cache).analysis
    facts = ProjectFacts(project, analysis)
    urns = DatasetUrns(ids, facts, env)
    of_project = ProjectProposals(facts, LineageFinder(project, analysis, project.nodes), urns)
    proposals: list[Proposal] = [*of_project.all()]
    proposals += TestProposals(facts, analysis, urns).all(results, invocation)
    return proposals, len(of_project.untyped)
