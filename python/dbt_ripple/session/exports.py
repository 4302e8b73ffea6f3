"""The nodes of a trace as OpenLineage events."""

from __future__ import annotations

from collections.abc import Collection
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from dbt_ripple.extras import require_extra

if TYPE_CHECKING:
    from pathlib import Path

    from dbt_ripple.artifacts import Project
    from dbt_ripple.dbt_runner.invoke import DbtOptions
    from dbt_ripple.graph.lineage import Analysis


def openlineage_events(
    project: Project,
    analysis: Analysis,
    unique_ids: Collection[str],
    project_dir: Path,
    options: DbtOptions,
) -> list[str]:
    """What ``dbt-ripple emit --static`` sends of some nodes, one event a text of JSON.

    Args:
        project: with the declared assets.
        analysis: of it.
        unique_ids: the nodes.
        project_dir: dbt's project, whose profile names the datasets.
        options: how dbt is called.

    Raises:
        RippleError: openlineage-python is not installed, or the profile cannot be read.
    """
    require_extra("openlineage")
    from dbt_ripple.dbt_runner.profile import connection_of
    from dbt_ripple.openlineage.client import as_json
    from dbt_ripple.openlineage.column_lineage import LineageFinder
    from dbt_ripple.openlineage.dataset_names import DatasetNames
    from dbt_ripple.openlineage.facets import ProjectFacets
    from dbt_ripple.openlineage.invocation import job_namespace
    from dbt_ripple.openlineage.static_events import static_events

    connection = connection_of(project_dir, options, project.run_args)
    names = DatasetNames(project, connection.namespace(), connection)
    of = {u: node for u, node in project.nodes.items() if u in unique_ids}
    above = {parent for u in of for parent in project.parents.get(u, ())}
    lineage = LineageFinder(project, analysis, {*of, *above})
    facets = ProjectFacets(project.having(nodes=of), analysis, names, project_dir)
    at = project.metadata.generated_at or datetime.now(UTC)
    return [
        as_json(e) for e in static_events(facets, lineage, namespace=job_namespace(None), at=at)
    ]
