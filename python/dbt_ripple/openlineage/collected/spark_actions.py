"""What Spark's listener tells of one write in several jobs, as one job.

A ``create table as select`` is told as ``<app>.execute_create_data_source_table_as_select_command.<table>`` and,
while that runs, as ``<app>.adaptive_spark_plan.<table>`` or ``<app>.execute_insert_into_hadoop_fs_relation_command.<table>``.
A job is a part of another one of its application if it writes nothing else, and each of its runs lies within a
run of that. Two writes of one table that come one after the other stay two jobs.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Final, NamedTuple

from dbt_ripple.openlineage.collected.facet_values import facet, text

if TYPE_CHECKING:
    from dbt_ripple.openlineage.collected.stored_events import JobName, StoredEvents
    from dbt_ripple.openlineage.declared_lineage import DatasetName

_AT_ONCE: Final = 16
"""Runs that write one table at the same time, among which the one around a run is looked for."""


class _Interval(NamedTuple):
    start: datetime
    end: datetime
    job: JobName
    run_id: str


def join_spark_actions(events: StoredEvents) -> None:
    """Leave of jobs that are one action the outermost; what it does not say is taken from the others."""
    around = dict(_parts(events))

    def depth(job: JobName) -> int:
        steps = 0
        while job in around:
            job, steps = around[job][0], steps + 1
        return steps

    for inner in sorted(around, key=lambda job: (-depth(job), job)):
        _join(events, *around[inner], inner)


def _parts(events: StoredEvents) -> Iterator[tuple[JobName, tuple[JobName, dict[str, str]]]]:
    """Jobs that are a part of another one: that, and which of its runs each run lies in."""
    writers: dict[tuple[str, str, DatasetName], list[JobName]] = {}
    for name, job in events.jobs.items():
        if text(facet(job.facets, "jobType").get("integration")).upper() == "SPARK":
            for output in job.outputs:
                writers.setdefault((name.namespace, _application(name), output), []).append(name)
    for (_, _, output), jobs in sorted(writers.items()):
        if len(jobs) == 1:
            continue
        found = _around(events, jobs)
        for inner in sorted(jobs):
            outputs = events.jobs[inner].outputs
            if min(outputs) != output:
                continue
            runs = events.runs.get(inner, {})
            outers = {outer.job for run_id in runs if (outer := found.get((inner, run_id)))}
            lies_in = {r: found[inner, r].run_id for r in runs if (inner, r) in found}
            if len(outers) == 1 and len(lies_in) == len(runs):
                (outer_job,) = outers
                if outputs.keys() <= events.jobs[outer_job].outputs.keys():
                    yield inner, (outer_job, lies_in)


def _application(name: JobName) -> str:
    """The application of a job: commands and tables have no dots in these names."""
    return name.name.rsplit(".", 2)[0]


def _around(events: StoredEvents, jobs: Sequence[JobName]) -> dict[tuple[JobName, str], _Interval]:
    """For each run of these jobs the shortest run of another one that it lies in, if there is one."""
    intervals = [
        _Interval(run.first_seen, run.ended_at, job, run_id)
        for job in jobs
        for run_id, run in events.runs.get(job, {}).items()
        if run.ended_at is not None
    ]
    intervals.sort(key=lambda one: (one.start, -one.end.timestamp(), one.job, one.run_id))
    found: dict[tuple[JobName, str], _Interval] = {}
    running: list[_Interval] = []
    for one in intervals:
        running = [other for other in running if other.end >= one.start][-_AT_ONCE:]
        around = [o for o in running if o.end >= one.end and o.job != one.job]
        if around:
            found[one.job, one.run_id] = min(around, key=lambda o: (o.end, o.job))
        running.append(one)
    return found


def _join(events: StoredEvents, outer: JobName, lies_in: dict[str, str], inner: JobName) -> None:
    into, part = events.jobs[outer], events.jobs.pop(inner)
    for mine, more in ((into.inputs, part.inputs), (into.outputs, part.outputs)):
        for name, facets in more.items():
            mine[name] = {**facets, **mine.get(name, {})}
    into.facets = {**part.facets, **into.facets}
    for run_id, run in events.runs.pop(inner, {}).items():
        whole = events.runs[outer].get(lies_in.get(run_id, ""))
        if whole is not None:
            whole.rows = run.rows if whole.rows is None else whole.rows
            whole.message = whole.message or run.message
    events.checks = [
        check._replace(job=outer) if check.job == inner else check for check in events.checks
    ]
    events.last[outer] = max(events.last[outer], events.last.pop(inner))
