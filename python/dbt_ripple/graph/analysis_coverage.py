"""How much of a project could be analysed: the numbers and reasons that `analyze` prints."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Final

import msgspec

from dbt_ripple.artifacts import Project
from dbt_ripple.reasons import Code, Reason

if TYPE_CHECKING:
    from dbt_ripple.graph.lineage import Analysis

NOTES_SHOWN: Final = 5
"""How much is listed of what the reader had to leave out or assume."""


class UnanalysedNode(msgspec.Struct):
    """A node whose columns could not be followed, and why."""

    unique_id: str
    name: str
    reason: Reason


class AnalysisCoverage(msgspec.Struct):
    """How much of a project could be analysed.

    Attributes:
        models: how many models the project has; ``analysed`` of them were followed column by
            column.
        opaque: models, snapshots and other nodes with a query that could not be analysed.
        broken: those that read a column that does not exist.
        kinds: how many nodes of each resource type the project has.
        seconds: wall time of the stages ``read``, ``parse`` and ``link``.
        assets: how many assets are declared; None where none is.
        notes: what the reader had to leave out or assume: the first :data:`NOTES_SHOWN` of
            ``notes_count``.
        uncompiled: how many nodes with SQL dbt has not compiled.
        catalog_is_older: whether catalog.json was written before the manifest, by another command.
    """

    project: str
    dbt_version: str
    adapter: str
    kinds: dict[str, int]
    models: int
    analysed: int
    opaque: list[UnanalysedNode]
    broken: list[UnanalysedNode]
    columns: int
    edges: int
    value_edges: int
    seconds: dict[str, float]
    uncompiled: int
    has_catalog: bool
    catalog_is_older: bool
    widest: str
    notes: list[str]
    notes_count: int
    assets: int | None = None


def with_assets(
    summary: AnalysisCoverage, project: Project, analysis: Analysis
) -> AnalysisCoverage:
    """The coverage of a project, with the declared assets."""
    coverage = analysis_coverage(project, analysis, 0.0)
    return msgspec.structs.replace(
        coverage,
        assets=coverage.kinds.get("asset", 0),
        seconds=summary.seconds,
        uncompiled=summary.uncompiled,
        widest=summary.widest,
    )


def analysis_coverage(
    project: Project, analysis: Analysis, read_seconds: float
) -> AnalysisCoverage:
    """Count what the analysis saw."""
    kinds: dict[str, int] = {}
    for node in project.nodes.values():
        kinds[node.resource_type] = kinds.get(node.resource_type, 0) + 1
    unseen: dict[str, list[UnanalysedNode]] = {"opaque": [], "broken": []}
    analysed = columns = 0
    for unique_id, seen in analysis.nodes.items():
        columns += len(seen.columns)
        project_node = project.nodes.get(unique_id)
        if seen.status in unseen:
            name = project_node.spoken_name if project_node else unique_id
            reason = seen.reason or Code.NO_REASON_GIVEN()
            unseen[seen.status].append(UnanalysedNode(unique_id, name, reason))
        elif seen.status == "analysed" and project_node and project_node.resource_type == "model":
            analysed += 1
    started = time.perf_counter()
    edges = list(analysis.edges)  # they may be made only now, which is a part of linking
    linking = time.perf_counter() - started
    seconds = {stage: round(analysis.seconds.get(stage, 0.0), 3) for stage in STAGES}
    seconds["read"] = round(seconds["read"] + read_seconds, 3)
    seconds["link"] = round(seconds["link"] + linking, 3)
    return AnalysisCoverage(
        project=project.name,
        dbt_version=project.metadata.dbt_version or "of unknown version",
        adapter=project.metadata.adapter_type or "unknown adapter",
        kinds=kinds,
        models=kinds.get("model", 0),
        analysed=analysed,
        opaque=sorted(unseen["opaque"], key=lambda item: item.unique_id),
        broken=sorted(unseen["broken"], key=lambda item: item.unique_id),
        columns=columns,
        edges=len(edges),
        value_edges=sum(edge.type == "DIRECT" for edge in edges),
        seconds=seconds,
        uncompiled=len(project.uncompiled()),
        has_catalog=bool(project.catalog),
        catalog_is_older=project.catalog_is_older,
        widest=_widest(project),
        notes=project.notes[:NOTES_SHOWN],
        notes_count=len(project.notes),
    )


STAGES: Final = ("read", "parse", "link")
"""What is timed, in order."""


def _widest(project: Project) -> str:
    """The source (or else the node) with most children: a good first thing to trace."""
    candidates = project.of_type("source", "seed") or project.of_type("model")
    best = max(candidates, key=lambda node: len(project.children[node.unique_id]), default=None)
    if best is None:
        return ""
    return f"{best.source_name}.{best.name}" if best.source_name else best.display_name
