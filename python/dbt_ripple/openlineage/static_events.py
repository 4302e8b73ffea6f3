"""A project's lineage without any run: each relation as a DatasetEvent, each job as a JobEvent."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from typing import Final

from openlineage.client.event_v2 import DatasetEvent, InputDataset, Job, JobEvent, OutputDataset

from dbt_ripple.artifacts import Node
from dbt_ripple.openlineage.client import PRODUCER
from dbt_ripple.openlineage.column_lineage import LineageFinder
from dbt_ripple.openlineage.dataset_names import is_job
from dbt_ripple.openlineage.facets import ProjectFacets
from dbt_ripple.openlineage.run_events import spelled

JOBS: Final = frozenset({"model", "seed", "snapshot", "exposure"})
RUN_BY_DBT: Final = JOBS - {"exposure"}
DATASETS: Final = frozenset({"model", "seed", "snapshot", "source", "asset", "dataset"})


def job_name(node: Node) -> str:
    """What a node is called as a job: its unique_id, or the id of a declared asset."""
    return node.label or node.name if node.resource_type == "asset" else node.unique_id


def static_events(
    facets: ProjectFacets, lineage: LineageFinder, *, namespace: str, at: datetime, below: str = ""
) -> Iterator[DatasetEvent | JobEvent]:
    """The events of a project, datasets first.

    Models, seeds and snapshots are jobs that write; exposures are jobs that only read. An ephemeral
    model is neither: what it reads is read by its readers. A declared asset is a job or a dataset, by its
    type; a job writes what it is declared to write.

    Args:
        facets: of the project.
        lineage: of its nodes.
        namespace: of the jobs.
        at: the time of the events: when dbt wrote the manifest.
        below: the job that the jobs of dbt are named below, as Marquez names those whose runs have a parent.
    """
    time = spelled(at)
    nodes = facets.project.nodes.values()
    for node in nodes:
        if node.resource_type not in DATASETS:
            continue
        dataset = facets.static(node.unique_id, lineage.of(node.unique_id))
        if dataset is not None:
            yield DatasetEvent(eventTime=time, dataset=dataset, producer=PRODUCER)
    for node in nodes:
        if is_job(node):
            written = facets.project.children.get(node.unique_id, ())
        elif node.resource_type in JOBS and not node.is_ephemeral:
            written = [node.unique_id]
        else:
            continue
        prefix = f"{below}." if below and node.resource_type in RUN_BY_DBT else ""
        of = lineage.of(node.unique_id)
        sql = node.compiled_code if not node.is_python else None
        targets = [u for u in written if facets.names.of(u) is not None] or [node.unique_id]
        job_facets = facets.job(node, sql) | facets.job_lineage(
            [(u, lineage.of(u)) for u in targets]
        )
        inputs: dict[tuple[str, str], InputDataset] = {}
        for parent in of.parents:
            if (input_dataset := facets.input(parent)) is not None:
                inputs.setdefault((input_dataset.namespace, input_dataset.name), input_dataset)
        outputs: list[OutputDataset] = [
            output for u in targets if (output := facets.output(u, lineage.of(u))) is not None
        ]
        yield JobEvent(
            eventTime=time,
            job=Job(namespace, f"{prefix}{job_name(node)}", job_facets),
            inputs=list(inputs.values()),
            outputs=outputs,
            producer=PRODUCER,
        )
