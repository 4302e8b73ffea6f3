"""Runs of dbt's nodes as events: START, then COMPLETE or FAIL; the invocation is their parent.

A node that dbt skipped, or that builds nothing (``no-op``), did not run: it has no events. A test
that found something and is an error ends in FAIL, one that only warns in COMPLETE with an assertion
that is no success.

Lineage without any run is there, too (`static_events`): each relation as a DatasetEvent, each job as a JobEvent.
"""

from __future__ import annotations

import copy
import os
from collections.abc import Iterator, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any, Final

from openlineage.client.event_v2 import (
    DatasetEvent,
    InputDataset,
    Job,
    JobEvent,
    OutputDataset,
    Run,
    RunEvent,
    RunState,
)
from openlineage.client.facet_v2 import (
    error_message_run,
    nominal_time_run,
    output_statistics_output_dataset,
    parent_run,
    processing_engine_run,
    test_run,
)

from dbt_ripple import __version__
from dbt_ripple.artifacts import Node, Project, RunResult
from dbt_ripple.graph.lineage import Analysis
from dbt_ripple.openlineage.client import PRODUCER, faceted
from dbt_ripple.openlineage.column_lineage import LineageFinder, NodeLineage
from dbt_ripple.openlineage.dataset_names import is_job
from dbt_ripple.openlineage.facets import (
    TESTS,
    Facets,
    ProjectFacets,
    assertion,
    assertions_facet,
    execution,
)
from dbt_ripple.openlineage.invocation import Invocation, Parent
from dbt_ripple.openlineage.project_facts import (
    DID_NOT_RUN,
    classification,
    reads_of_tests,
    severity,
    tested_column,
)

_DONE: Final = frozenset({"success", "pass", "warn"})
_COUNTED: Final = frozenset({"model", "seed", "snapshot"})


def invocation_job(project: Project) -> str:
    """What dbt's invocation is called as a job."""
    return os.environ.get("OPENLINEAGE_DBT_JOB_NAME") or f"dbt-run-{project.name}"


class RunEvents:
    """The events of one invocation.

    Args:
        facets: of the project.
        lineage: of its nodes.
        analysis: says what tests read; None where it is not known.
        invocation: whose events they are; None if it is set later (`of_invocation`).
        namespace: of the jobs.
        parent: the run that started dbt.
        nominal: when it was to run, if another time than it did; start and end.
    """

    def __init__(
        self,
        facets: ProjectFacets,
        lineage: LineageFinder,
        analysis: Analysis | None,
        invocation: Invocation | None,
        *,
        namespace: str,
        parent: Parent | None = None,
        nominal: tuple[datetime, datetime | None] | None = None,
    ) -> None:
        self._facets = facets
        self.project = facets.project
        self._lineage = lineage
        self._namespace = namespace
        self._job_name = invocation_job(facets.project)
        self._parent = parent
        self._given = nominal
        self._begin(invocation or Invocation("", "", "", datetime.now(UTC)))
        self._reads = reads_of_tests(analysis)

    def _begin(self, invocation: Invocation) -> None:
        self._invocation = invocation
        interval = self._given or _event_time(invocation)
        self._nominal = interval or (invocation.started_at, None)

    def of_invocation(self, invocation: Invocation) -> RunEvents:
        """The same of another invocation."""
        other = copy.copy(self)
        other._begin(invocation)
        return other

    def at_the_time_of(self, other: RunEvents) -> RunEvents:
        """The same with the beginning that others have told already."""
        began = replace(self._invocation, started_at=other._invocation.started_at)
        return self.of_invocation(began)

    def all(self, results: list[RunResult]) -> list[RunEvent]:
        """All of them, in the order of time."""
        events = [
            self.started(),
            *(event for result in results for event in self.of(result)),
            self.ended(results),
        ]
        first, *between, last = events
        return [first, *sorted(between, key=lambda event: event.eventTime), last]

    def of(self, result: RunResult) -> Iterator[RunEvent]:
        """The two of one node; none where it did not run, or the manifest does not have it."""
        node = self.project.nodes.get(result.unique_id)
        if node is not None and result.status not in DID_NOT_RUN:
            yield self.node_started(node, result.started_at)
            yield self.node_ended(node, result)

    # --- the invocation --------------------------------------------------------------------------

    def started(self) -> RunEvent:
        """That dbt began."""
        return self._event(
            RunState.START, self._invocation.started_at, self._own_run(), self._own_job()
        )

    def ended(self, results: list[RunResult], aborted: str | None = None) -> RunEvent:
        """That dbt came to its end: FAIL where one of its nodes did.

        Args:
            results: of its nodes.
            aborted: why it did not come to its own end, if so.
        """
        run = self._own_run()
        nodes = self.project.nodes
        tests = [
            execution(nodes[result.unique_id], result)
            for result in results
            if result.unique_id in nodes and nodes[result.unique_id].resource_type in TESTS
        ]
        if tests:
            _add(run, "test", faceted(test_run.TestRunFacet, tests=tests))
        failed = [r for r in results if r.status not in _DONE and r.status not in DID_NOT_RUN]
        state = RunState.FAIL if failed else RunState.COMPLETE
        if failed:
            named = [f"{result.unique_id}: {result.message or result.status}" for result in failed]
            self._error(run, f"{len(failed)} of {len(results)} nodes failed", *named)
        if aborted is not None:
            state = RunState.ABORT
            self._error(run, aborted)
        ended = self._invocation.ended_at or datetime.now(UTC)
        return self._event(state, ended, run, self._own_job())

    def _own_run(self) -> Run:
        facets = self._common()
        if self._parent is not None:
            facets["parent"] = parent_facet(self._parent)
        return Run(self._invocation.run_id, facets)

    def _own_job(self) -> Job:
        return Job(self._namespace, self._job_name, self._facets.invocation_job())

    # --- nodes -----------------------------------------------------------------------------------

    def node_started(self, node: Node, at: datetime | None) -> RunEvent:
        """That a node began to run: what it reads and writes, without their facets."""
        inputs, outputs = self._datasets(node)
        return self._event(
            RunState.START,
            at or self._invocation.started_at,
            self._run_of(node),
            self._job_of(node, None),
            [InputDataset(dataset.namespace, dataset.name) for dataset in inputs],
            [OutputDataset(dataset.namespace, dataset.name) for dataset in outputs],
        )

    def node_ended(self, node: Node, result: RunResult) -> RunEvent:
        """That a node came to its end, with all that is known of the run."""
        run, failed = self._run_of(node), result.status not in _DONE
        if failed:
            self._error(run, *self._what_failed(node, result))
        if node.resource_type in TESTS:
            _add(run, "test", faceted(test_run.TestRunFacet, tests=[execution(node, result)]))
        lineage = (
            None if failed or node.resource_type in TESTS else self._lineage.of(node.unique_id)
        )
        inputs, outputs = self._datasets(node, result, lineage)
        return self._event(
            RunState.FAIL if failed else RunState.COMPLETE,
            self._ended_at(result),
            run,
            self._job_of(node, lineage),
            inputs,
            [] if failed else outputs,
        )

    def node_aborted(self, node: Node, why: str) -> RunEvent:
        """That a node began and dbt ended without a result of it."""
        run = self._run_of(node)
        self._error(run, why)
        at = self._invocation.ended_at or datetime.now(UTC)
        return self._event(RunState.ABORT, at, run, self._job_of(node, None))

    def _ended_at(self, result: RunResult) -> datetime:
        ended = result.completed_at or self._invocation.ended_at
        return ended or datetime.now(UTC)

    def _run_of(self, node: Node) -> Run:
        invocation = self._invocation
        parent = Parent(invocation.run_id, self._namespace, self._job_name, _root(self._parent))
        facets = {**self._common(), "parent": parent_facet(parent)}
        return Run(invocation.run_id_of(node.unique_id), facets)

    def _job_of(self, node: Node, lineage: NodeLineage | None) -> Job:
        sql = node.compiled_code if not node.is_python else None
        facets = self._facets.job(node, sql)
        if lineage is not None:
            facets |= self._facets.job_lineage([(node.unique_id, lineage)])
        return Job(self._namespace, node.unique_id, facets)

    def _common(self) -> Facets:
        start, end = self._nominal
        return {
            "nominalTime": faceted(
                nominal_time_run.NominalTimeRunFacet,
                nominalStartTime=spelled(start),
                nominalEndTime=spelled(end) if end else None,
            ),
            "processing_engine": faceted(
                processing_engine_run.ProcessingEngineRunFacet,
                version=self._invocation.dbt_version,
                name="dbt",
                openlineageAdapterVersion=__version__,
            ),
        }

    def _datasets(
        self, node: Node, result: RunResult | None = None, lineage: NodeLineage | None = None
    ) -> tuple[list[InputDataset], list[OutputDataset]]:
        """What a node reads and writes; several names of one dataset are one."""
        if node.resource_type == "unit_test":  # reads its own fixtures
            return [], []
        of = lineage or self._lineage.of(node.unique_id)
        inputs: dict[tuple[str, str], InputDataset] = {}
        for parent in of.parents:
            more = self._assertions(node, parent, result) if result else {}
            dataset = self._facets.input(parent, **more)
            if dataset is not None:
                inputs.setdefault((dataset.namespace, dataset.name), dataset)
        statistics = self._statistics(node, result) if result else {}
        output = self._facets.output(node.unique_id, lineage, **statistics)
        return list(inputs.values()), [output] if output else []

    def _assertions(self, test: Node, parent: str, result: RunResult) -> Mapping[str, Any]:
        if test.resource_type != "test" or test.attached_node not in (None, parent):
            return {}
        reads = self._reads.get(test.unique_id, {}).get(parent, [])
        column = tested_column(test, self._facets.column_names(parent), reads)
        assertions = [assertion(test, result, column, reads)]
        return {"dataQualityAssertions": assertions_facet(assertions, PRODUCER)}

    def _statistics(self, node: Node, result: RunResult) -> Mapping[str, Any]:
        rows = result.rows_affected
        if rows is None or node.resource_type not in _COUNTED or node.materialized == "view":
            return {}
        if self.project.metadata.adapter_type == "snowflake" and rows == 1:
            return {}  # it answers 1 to `create table as`, however many rows there are
        kind = output_statistics_output_dataset.OutputStatisticsOutputDatasetFacet
        return {"outputStatistics": faceted(kind, rowCount=rows)}

    def _what_failed(self, node: Node, result: RunResult) -> Iterator[str]:
        """The message of dbt, and what one wants to know of the node that failed."""
        yield result.message or f"dbt says {result.status}"
        project = self.project
        if node.resource_type != "test":
            yield f"{node.resource_type} {node.display_name}, {node.original_file_path}"
            return
        yield f"test {classification(node)} ({node.name}), severity {severity(node)}"
        parents = [node.attached_node] if node.attached_node else project.parents[node.unique_id]
        for parent in parents:
            tested = project.nodes.get(parent)
            if tested is None:
                continue
            names = self._facets.column_names(parent)
            reads = self._reads.get(node.unique_id, {}).get(parent, [])
            column = tested_column(node, names, reads)
            dataset = self._facets.names.of(parent)
            about = f"{tested.display_name}.{column}" if column else tested.display_name
            yield f"about {about}" + (f", dataset {dataset.name}" if dataset else "")
            below = self._lineage.of(parent)
            sources = {
                f"{project.nodes[d.parent_id].display_name}.{d.column}"
                for d in below.columns.get(column or "", ())
                if d.column and d.parent_id in project.nodes
            }
            if sources:
                yield f"{about} is computed from {', '.join(sorted(sources))}"
        yield f"defined in {node.original_file_path}"

    def _error(self, run: Run, *lines: str) -> None:
        facet = faceted(
            error_message_run.ErrorMessageRunFacet,
            message="\n".join(lines),
            programmingLanguage="SQL",
        )
        _add(run, "errorMessage", facet)

    def _event(
        self,
        state: RunState,
        at: datetime,
        run: Run,
        job: Job,
        inputs: list[InputDataset] | None = None,
        outputs: list[OutputDataset] | None = None,
    ) -> RunEvent:
        return RunEvent(
            eventType=state,
            eventTime=spelled(at),
            run=run,
            job=job,
            inputs=inputs or [],
            outputs=outputs or [],
            producer=PRODUCER,
        )


def spelled(moment: datetime) -> str:
    """A moment as OpenLineage wants it: ISO 8601 with a zone.

    Example:
        >>> spelled(datetime(2026, 11, 23, 7, 17, tzinfo=UTC))
        '2026-11-23T07:17:00.000000Z'
    """
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def _add(run: Run, name: str, facet: Any) -> None:
    run.facets = {**(run.facets or {}), name: facet}


def _root(parent: Parent | None) -> Parent | None:
    return (parent.root or parent) if parent else None


def parent_facet(parent: Parent) -> parent_run.ParentRunFacet:
    """The facet ``parent`` of a run: who started it, and what is at the root."""
    root = parent.root or parent
    result: parent_run.ParentRunFacet = faceted(
        parent_run.ParentRunFacet,
        run=parent_run.Run(parent.run_id),
        job=parent_run.Job(parent.job_namespace, parent.job_name),
        root=parent_run.Root(
            parent_run.RootRun(root.run_id), parent_run.RootJob(root.job_namespace, root.job_name)
        ),
    )
    return result


def _event_time(invocation: Invocation) -> tuple[datetime, datetime | None] | None:
    """The interval that ``--event-time-start`` and ``--event-time-end`` name."""
    moments = []
    for name in ("event_time_start", "event_time_end"):
        text = invocation.arguments.get(name)
        try:
            moment = datetime.fromisoformat(str(text)) if text else None
        except ValueError:
            moment = None
        moments.append(moment.replace(tzinfo=moment.tzinfo or UTC) if moment else None)
    start, end = moments
    return (start, end) if start else None


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
