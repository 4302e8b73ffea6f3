"""A project's lineage without any run: each relation as a DatasetEvent, each job as a JobEvent."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from typing import Final

from openlineage.client.event_v2 import DatasetEvent, InputDataset, Job, JobEvent, OutputDataset

from dbt_ripple.openlineage.client import PRODUCER
from dbt_ripple.openlineage.column_lineage import LineageFinder
from dbt_ripple.openlineage.facets import ProjectFacets
from dbt_ripple.openlineage.run_events import spelled

JOBS: Final = frozenset({"model", "seed", "snapshot", "exposure"})
DATASETS: Final = frozenset({"model", "seed", "snapshot", "source"})


def static_events(
    facets: ProjectFacets, lineage: LineageFinder, *, namespace: str, at: datetime
) -> Iterator[DatasetEvent | JobEvent]:
    """The events of a project, datasets first.

    Models, seeds and snapshots are jobs that write; exposures are jobs that only read. An ephemeral
    model is neither: what it reads is read by its readers.

    Args:
        facets: of the project.
        lineage: of its nodes.
        namespace: of the jobs.
        at: the time of the events: when dbt wrote the manifest.
    """
    time = spelled(at)
    nodes = facets.project.nodes.values()
    for node in nodes:
        if node.resource_type not in DATASETS:
            continue
        of = lineage.of(node.unique_id) if node.resource_type != "source" else None
        dataset = facets.static(node.unique_id, of)
        if dataset is not None:
            yield DatasetEvent(eventTime=time, dataset=dataset, producer=PRODUCER)
    for node in nodes:
        if node.resource_type not in JOBS or node.is_ephemeral:
            continue
        of = lineage.of(node.unique_id)
        sql = node.compiled_code if not node.is_python else None
        job_facets = facets.job(node, sql) | facets.job_lineage(node.unique_id, of)
        inputs: dict[tuple[str, str], InputDataset] = {}
        for parent in of.parents:
            if (found := facets.input(parent)) is not None:
                inputs.setdefault((found.namespace, found.name), found)
        output = facets.output(node.unique_id, of)
        outputs: list[OutputDataset] = [output] if output else []
        yield JobEvent(
            eventTime=time,
            job=Job(namespace, node.unique_id, job_facets),
            inputs=list(inputs.values()),
            outputs=outputs,
            producer=PRODUCER,
        )
