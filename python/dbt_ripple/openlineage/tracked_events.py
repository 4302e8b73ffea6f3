"""Events of tracked Python code; made in the background, where time does not matter."""

from __future__ import annotations

import os
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any, Final

from openlineage.client.event_v2 import InputDataset, Job, OutputDataset, Run, RunEvent, RunState
from openlineage.client.facet_v2 import (
    column_lineage_dataset,
    documentation_job,
    error_message_run,
    job_type_job,
    lineage,
    output_statistics_output_dataset,
    schema_dataset,
    source_code_location_job,
    symlinks_dataset,
)

from dbt_ripple.errors import RippleError
from dbt_ripple.openlineage.client import PRODUCER, faceted
from dbt_ripple.openlineage.declared_lineage import Dataset, DatasetName, Declared, ResolvedColumns
from dbt_ripple.openlineage.facets import with_older_words
from dbt_ripple.openlineage.invocation import Parent, parent_in
from dbt_ripple.openlineage.project_facts import Repository, SourceLocation
from dbt_ripple.openlineage.run_events import parent_facet, spelled
from dbt_ripple.openlineage.track import JobOf

TRACE: Final = 20_000
"""Characters of a stack trace that are sent: its end, where the error is."""

RunOf = tuple[str, JobOf]


def tracked_event(
    state: str,
    at: float,
    run_id: str,
    job: JobOf,
    declared: Declared,
    rows: dict[tuple[str, str], int],
    parent: RunOf | None,
    root: RunOf | None,
    message: str,
    trace: str,
) -> RunEvent:
    """One event of a run.

    Args:
        state: START, COMPLETE, FAIL or ABORT.
        at: when, in seconds since the epoch.
        run_id: of the run.
        job: that ran.
        declared: what it reads and writes.
        rows: how many were written, by dataset.
        parent: the run in which this one runs; by default the one that the environment names.
        root: the outermost one of this process.
        message: what the error says, if there is one.
        trace: its stack trace.
    """
    run_facets: dict[str, Any] = {}
    above = _parent(parent, root)
    if above is not None:
        run_facets["parent"] = parent_facet(above)
    if message:
        run_facets["errorMessage"] = faceted(
            error_message_run.ErrorMessageRunFacet,
            message=message,
            programmingLanguage="PYTHON",
            stackTrace=trace[-TRACE:],
        )
    done = state == "COMPLETE"
    job_facets = _job_facets(job)
    if done and declared.columns:
        entries = [_entry(one, declared, job) for one in declared.outputs]
        job_facets["lineage"] = faceted(lineage.LineageJobFacet, entries=entries)
    return RunEvent(
        eventType=RunState[state],
        eventTime=spelled(datetime.fromtimestamp(at, UTC)),
        run=Run(run_id, run_facets),
        job=Job(job.namespace, job.name, job_facets),
        inputs=[InputDataset(*_name(one, job), facets=_facets(one)) for one in declared.inputs],
        # Of a run that fails, too: Marquez takes away what a job's last event does not name.
        outputs=[_output(one, declared, job, rows, done) for one in declared.outputs],
        producer=PRODUCER,
    )


def _parent(parent: RunOf | None, root: RunOf | None) -> Parent | None:
    try:
        outside = parent_in(os.environ)
    except RippleError:
        outside = None
    if parent is None or root is None:
        return outside
    top = (outside.root or outside) if outside else _as_parent(root)
    return Parent(parent[0], parent[1].namespace, parent[1].name, top)


def _as_parent(run: RunOf) -> Parent:
    return Parent(run[0], run[1].namespace, run[1].name)


def _name(dataset: Dataset, job: JobOf) -> DatasetName:
    return DatasetName(dataset.namespace or job.namespace, dataset.name)


def _facets(dataset: Dataset) -> dict[str, Any]:
    fields = [
        schema_dataset.SchemaDatasetFacetFields(name, type_, ordinal_position=position)
        for position, (name, type_) in enumerate(dataset.types().items(), start=1)
    ]
    facets = {}
    if fields and all(field.type for field in fields):  # see `ProjectFacets`
        facets["schema"] = faceted(schema_dataset.SchemaDatasetFacet, fields=fields)
    if dataset.table:
        links = [symlinks_dataset.Identifier(*dataset.table, "TABLE")]
        facets["symlinks"] = faceted(symlinks_dataset.SymlinksDatasetFacet, identifiers=links)
    return facets


def _output(
    dataset: Dataset,
    declared: Declared,
    job: JobOf,
    rows: dict[tuple[str, str], int],
    done: bool,
) -> OutputDataset:
    facets, output_facets = _facets(dataset), {}
    if done:
        facet = _column_lineage(_of(dataset, declared), job)
        facets |= {"columnLineage": facet} if facet else {}
        count = rows.get((dataset.namespace, dataset.name))
        if count is not None:
            kind = output_statistics_output_dataset.OutputStatisticsOutputDatasetFacet
            output_facets["outputStatistics"] = faceted(kind, rowCount=count)
    return OutputDataset(*_name(dataset, job), facets=facets, outputFacets=output_facets)


def _of(output: Dataset, declared: Declared) -> list[ResolvedColumns]:
    """What is declared of an output; its columns may have become known later."""
    name = output.namespace, output.name
    return [one for one in declared.columns if (one.output.namespace, one.output.name) == name]


def _column_lineage(columns: list[ResolvedColumns], job: JobOf) -> Any:
    fields: dict[str, list[column_lineage_dataset.InputField]] = {}
    whole: list[column_lineage_dataset.InputField] = []
    for one in columns:
        lineage = one.lineage
        inputs = [
            column_lineage_dataset.InputField(
                *_name(dataset, job),
                column,
                [
                    column_lineage_dataset.Transformation(
                        lineage.type, lineage.how, lineage.transformation or None, lineage.masking
                    )
                ],
            )
            for dataset, column in one.inputs
            if column is not None  # the facet has no rows; the job's facet `lineage` has
        ]
        if one.column is None:
            whole += inputs
        elif inputs:
            fields.setdefault(one.column, []).extend(inputs)
    if not fields and not whole:
        return None
    return faceted(
        column_lineage_dataset.ColumnLineageDatasetFacet,
        fields={column: with_older_words(inputs) for column, inputs in fields.items()},
        dataset=whole,
    )


def _entry(output: Dataset, declared: Declared, job: JobOf) -> lineage.LineageEntry:
    whole: list[lineage.LineageInput] = [
        lineage.LineageDatasetInput(*_name(one, job), "DATASET") for one in declared.inputs
    ]
    fields: dict[str, lineage.LineageFieldEntry] = {}
    for one in _of(output, declared):
        lineage_of = one.lineage
        inputs = [
            lineage.LineageDatasetInput(
                *_name(dataset, job),
                "DATASET",
                column,
                [
                    lineage.LineageTransformation(
                        lineage_of.type,
                        lineage_of.how,
                        lineage_of.transformation or None,
                        lineage_of.masking,
                    )
                ],
            )
            for dataset, column in one.inputs
        ]
        if one.column is None:
            whole += inputs
        else:
            fields.setdefault(one.column, lineage.LineageFieldEntry([])).inputs.extend(inputs)
    return lineage.LineageDatasetEntry(*_name(output, job), "DATASET", inputs=whole, fields=fields)


def _job_facets(job: JobOf) -> dict[str, Any]:
    facets = {
        "jobType": faceted(
            job_type_job.JobTypeJobFacet,
            processingType="BATCH",
            integration="PYTHON",
            jobType="JOB",
        )
    }
    if job.description:
        facets["documentation"] = faceted(
            documentation_job.DocumentationJobFacet, description=job.description
        )
    place = _place(job.file)
    if place is not None:
        facets["sourceCodeLocation"] = faceted(
            source_code_location_job.SourceCodeLocationJobFacet,
            type=place.type,
            url=place.url,
            repoUrl=place.repo_url,
            path=place.path,
            version=place.version,
            branch=place.branch,
        )
    return facets


@cache
def _place(file: str) -> SourceLocation | None:
    path = Path(file) if file else None
    if path is None or not path.is_file():
        return Repository(Path(), "").root()
    path = path.resolve()
    return Repository(path.parent, "").of_file(path.name)
