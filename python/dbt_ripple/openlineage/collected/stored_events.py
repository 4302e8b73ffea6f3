"""The events of a store, reduced to what each job last read and wrote, and how its runs ended.

The file is read twice: first the heads of all events, by which the run is chosen whose word counts for a job;
then the facets of these runs. So memory grows with the number of jobs and runs, not with the size of events.

A job's lineage is that of its latest run that completed and named any dataset. Events of one run add up, in
OpenLineage's sense; where two say something of the same thing, COMPLETE is believed before the others, and
then the later one. An event that is half or nonsense is counted and left out; the rest counts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from hashlib import blake2b
from pathlib import Path
from typing import Any, Final, NamedTuple

import msgspec

from dbt_ripple.collector.event_store import segments, stored_lines
from dbt_ripple.errors import RippleError
from dbt_ripple.openlineage.collected.facet_values import LONGEST_NAME, Facets, dicts, facet, text
from dbt_ripple.openlineage.collected.spark_actions import join_spark_actions
from dbt_ripple.openlineage.declared_lineage import DatasetName

OPTION: Final = "--events"


_ENDS: Final[Mapping[str, str]] = {"COMPLETE": "success", "FAIL": "error", "ABORT": "error"}
"""Event types that end a run, and dbt's word for how it ended."""

_OF_JOBS: Final = frozenset(
    """
    documentation jobType lineage ownership sourceCodeLocation sql tags
    """.split()
)
_OF_DATASETS: Final = frozenset(
    """
    catalog columnLineage dataQualityAssertions datasetType documentation lineage outputStatistics
    ownership schema symlinks tags
    """.split()
)
_OF_RUNS: Final = frozenset({"errorMessage", "test"})
_REPORTS_OF_RUNS: Final = (
    b"errorMessage",
    b"outputStatistics",
    b"dataQualityAssertions",
    b'"tests"',
)
"""What stands in an event that says more of its run than that it ran."""


class JobName(NamedTuple):
    """The identity of a job in OpenLineage."""

    namespace: str
    name: str


class _EventRun(msgspec.Struct, rename="camel"):
    run_id: str


class _EventJob(msgspec.Struct):
    namespace: str
    name: str
    facets: msgspec.Raw = msgspec.Raw(b"")


class _Head(msgspec.Struct, rename="camel"):
    """The part of an event that says of what it is."""

    event_time: str
    event_type: str | None = None
    run: _EventRun | None = None
    job: _EventJob | None = None
    dataset: _EventJob | None = None
    inputs: msgspec.Raw = msgspec.Raw(b"")
    outputs: msgspec.Raw = msgspec.Raw(b"")

    @property
    def names_datasets(self) -> bool:
        """Whether it says anything of what the job reads or writes."""
        empty = (b"", b"[]", b"null")
        has_lineage = self.job is not None and b'"lineage"' in bytes(self.job.facets)
        return has_lineage or bytes(self.inputs) not in empty or bytes(self.outputs) not in empty


@dataclass
class CollectedRun:
    """One run of a job.

    Attributes:
        status: dbt's word for how it ended; None while it runs.
        rows: that it wrote, where it says so; of several outputs their sum.
        message: of its error.
    """

    run_id: str
    started_at: datetime | None = None
    ended_at: datetime | None = None
    status: str | None = None
    rows: int | None = None
    message: str | None = None
    _first: datetime | None = None
    _last: datetime | None = None
    _complete: datetime | None = None
    _names_datasets: bool = False
    _ended_by: tuple[datetime, str] | None = None

    def _see(self, at: datetime, kind: str, names_datasets: bool) -> None:
        self._first = at if self._first is None else min(self._first, at)
        self._last = at if self._last is None else max(self._last, at)
        self._names_datasets |= names_datasets
        if kind == "START":
            self.started_at = at if self.started_at is None else min(self.started_at, at)
        if kind == "COMPLETE":
            self._complete = at if self._complete is None else max(self._complete, at)
        if kind in _ENDS and (self._ended_by is None or (at, kind) > self._ended_by):
            self._ended_by = (at, kind)
            self.ended_at, self.status = at, _ENDS[kind]

    @property
    def first_seen(self) -> datetime:
        """When its first event happened."""
        assert self._first is not None
        return self.started_at or self._first


@dataclass
class ReportedJob:
    """What events say of a job, or of one of its runs, put together.

    Attributes:
        facets: of the job.
        inputs: facets of each dataset it reads.
        outputs: likewise.
        producer: who told it.
    """

    facets: Facets = field(default_factory=dict)
    inputs: dict[DatasetName, Facets] = field(default_factory=dict)
    outputs: dict[DatasetName, Facets] = field(default_factory=dict)
    producer: str = ""

    def add(self, event: _Reduced) -> None:
        """Add a later event."""
        self.facets |= event.job
        self.producer = event.producer or self.producer
        for into, datasets in ((self.inputs, event.inputs), (self.outputs, event.outputs)):
            for name, facets in datasets:
                into.setdefault(name, {}).update(facets)


class ReportedAssertion(NamedTuple):
    """What one run says that it has checked of a dataset; None where it does not say of which."""

    job: JobName
    run_id: str
    at: datetime
    dataset: DatasetName | None
    assertion: dict[str, Any]


@dataclass
class StoredEvents:
    """What a store says.

    Attributes:
        jobs: what each job last read and wrote.
        runs: of each job, by their ids.
        datasets: facets of each dataset; of one facet the latest.
        lineage_events: of datasets whose lineage was told without a job.
        same: pairs of names of one dataset.
        tables: names that a catalog has given to a dataset, wherever its files are.
        checks: results of assertions.
        count: of different events.
        last: the time of the latest of them.
        notes: what was left out.
    """

    jobs: dict[JobName, ReportedJob] = field(default_factory=dict)
    runs: dict[JobName, dict[str, CollectedRun]] = field(default_factory=dict)
    datasets: dict[DatasetName, Facets] = field(default_factory=dict)
    lineage_events: dict[DatasetName, Facets] = field(default_factory=dict)
    same: set[tuple[DatasetName, DatasetName]] = field(default_factory=set)
    tables: set[DatasetName] = field(default_factory=set)
    checks: list[ReportedAssertion] = field(default_factory=list)
    count: int = 0
    last: dict[JobName, datetime] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)


class _Reduced(NamedTuple):
    """An event, with the facets that are of use here."""

    is_complete: bool
    at: datetime
    key: bytes
    producer: str
    run: Facets
    job: Facets
    inputs: list[tuple[DatasetName, Facets]]
    outputs: list[tuple[DatasetName, Facets]]


def read_events(places: Sequence[Path]) -> StoredEvents:
    """What some stores and files of events say together.

    Args:
        places: folders of `dbt-ripple collect`, or files: one event a line, an array, or a single event.

    Raises:
        RippleError: a place is not there, or cannot be read.
    """
    return _EventReader([(str(place), _lines_of(place)) for place in places]).read()


def _lines_of(place: Path) -> Callable[[], Iterator[bytes]]:
    if place.is_dir():
        if not segments(place) and not (place / "lock").exists():
            raise RippleError(
                "there are no collected events in this folder",
                f"{OPTION} {place}",
                "name a store of `dbt-ripple collect`, or a file of events",
            )
        return lambda: stored_lines(place)
    if not place.is_file():
        what = "is neither a file nor a folder" if place.exists() else "no such file or folder"
        raise RippleError(what, f"{OPTION} {place}", "name a store of `dbt-ripple collect`")
    return lambda: _file_lines(place)


def _file_lines(file: Path) -> Iterator[bytes]:
    with file.open("rb") as opened:
        first = opened.readline().removeprefix(b"\xef\xbb\xbf")
        while first.isspace():
            first = opened.readline()
        start = first.lstrip()[:1]
        if start == b"[" or first.strip() == b"{":
            text = first + opened.read()
            try:
                yield from map(bytes, msgspec.json.decode(text, type=list[msgspec.Raw]))
            except (msgspec.DecodeError, RecursionError):
                yield text.strip()
            return
        yield first.rstrip(b"\r\n")
        for line in opened:
            yield line.rstrip(b"\r\n")


class _EventReader:
    """Reads some stores."""

    def __init__(self, places: Sequence[tuple[str, Callable[[], Iterator[bytes]]]]) -> None:
        self.places = places
        self.events = StoredEvents()
        self.bad: dict[str, tuple[int, int, int]] = {}
        self.different: set[int] = set()
        self.job_events: dict[JobName, datetime] = {}

    def read(self) -> StoredEvents:
        for place, lines in self.places:
            self._heads(place, lines)
        for place, (bad, total, first) in self.bad.items():
            self.events.notes.append(
                f"{place}: {bad:,} of {total:,} lines {'is' if bad == 1 else 'are'} left out as "
                f"no event of OpenLineage, the first is line {first}"
            )
        winners = {job: self._winner(job) for job in {**self.events.runs, **self.job_events}}
        self._facets(winners)
        join_spark_actions(self.events)
        return self.events

    def _heads(self, place: str, lines: Callable[[], Iterator[bytes]]) -> None:
        bad, total, first = 0, 0, 0
        try:
            for number, line in enumerate(lines(), 1):
                if not line.strip():
                    continue
                total += 1
                head = _head(line)
                if head is None:
                    bad, first = bad + 1, first or number
                    continue
                self.different.add(hash(line))
                self._see(*head)
        except OSError as error:
            raise RippleError(
                f"cannot be read: {error.strerror}", place, "give a readable file"
            ) from None
        self.events.count = len(self.different)
        if bad:
            self.bad[place] = (bad, total, first)

    def _see(self, head: _Head, at: datetime) -> None:
        if head.job is None:
            return
        name = JobName(head.job.namespace, head.job.name)
        self.events.last[name] = max(at, self.events.last.get(name, at))
        if head.run is None:
            self.job_events[name] = max(at, self.job_events.get(name, at))
            return
        runs = self.events.runs.setdefault(name, {})
        run = runs.setdefault(head.run.run_id, CollectedRun(head.run.run_id))
        run._see(at, (head.event_type or "OTHER").upper(), head.names_datasets)

    def _winner(self, job: JobName) -> str | datetime | None:
        """The run whose word counts, or the time of the event without a run that does."""
        runs = list(self.events.runs.get(job, {}).values())

        def newest(candidates: Iterable[tuple[datetime, str]]) -> tuple[datetime, str] | None:
            return max(candidates, default=None)

        complete = newest(
            (r._complete, r.run_id) for r in runs if r._complete and r._names_datasets
        )
        static = self.job_events.get(job)
        if complete is not None or static is not None:
            if complete is None or (static is not None and static > complete[0]):
                return static
            return complete[1]
        telling = newest((r._last, r.run_id) for r in runs if r._last and r._names_datasets)
        any_run = newest((r._last, r.run_id) for r in runs if r._last)
        chosen = telling or any_run
        return chosen[1] if chosen else None

    def _facets(self, winners: Mapping[JobName, str | datetime | None]) -> None:
        of_jobs: dict[JobName, dict[bytes, _Reduced]] = {}
        of_runs: dict[tuple[JobName, str], dict[bytes, _Reduced]] = {}
        of_datasets: list[tuple[datetime, bytes, bool, DatasetName, Facets]] = []
        for _, lines in self.places:
            for line in lines():
                head_and_time = _head(line) if line.strip() else None
                if head_and_time is None:
                    continue
                head, at = head_and_time
                if head.job is None:
                    if head.dataset is not None:
                        name = DatasetName(head.dataset.namespace, head.dataset.name)
                        of_datasets.append(
                            (at, _key(line), True, name, _dataset_facets(_decoded(line)))
                        )
                    continue
                job = JobName(head.job.namespace, head.job.name)
                run_id = head.run.run_id if head.run is not None else None
                counts = winners[job] == (run_id if run_id is not None else at)
                has_reports = run_id is not None and any(word in line for word in _REPORTS_OF_RUNS)
                if not counts and not has_reports:
                    continue
                event = _reduced(head, at, line)
                if counts:
                    of_jobs.setdefault(job, {})[event.key] = event
                if has_reports and run_id is not None:
                    of_runs.setdefault((job, run_id), {})[event.key] = event
        for job in sorted(winners):
            reported = self.events.jobs[job] = ReportedJob()
            for event in sorted(of_jobs.get(job, {}).values()):
                reported.add(event)
                for name, facets in (*event.inputs, *event.outputs):
                    of_datasets.append((event.at, event.key, False, name, facets))
        for _, _, alone, name, facets in sorted(of_datasets, key=lambda one: (one[0], one[1])):
            self._of_dataset(name, facets)
            if alone and ("columnLineage" in facets or "lineage" in facets):
                self.events.lineage_events[name] = facets
        for job, run_id in sorted(of_runs):
            self._of_run(job, run_id, sorted(of_runs[job, run_id].values()))

    def _of_dataset(self, name: DatasetName, facets: Facets) -> None:
        self.events.datasets.setdefault(name, {}).update(facets)
        for identifier in dicts(facet(facets, "symlinks").get("identifiers")):
            other = DatasetName(text(identifier.get("namespace")), text(identifier.get("name")))
            if not other.name or not other.namespace:
                continue
            other = _of_warehouse(other)
            if other != name:
                self.events.same.add((name, other))
            if text(identifier.get("type")).upper() == "TABLE":
                self.events.tables.add(other)

    def _of_run(self, job: JobName, run_id: str, events: Sequence[_Reduced]) -> None:
        run = self.events.runs[job][run_id]
        rows: dict[DatasetName, int] = {}
        for event in events:
            run.message = text(facet(event.run, "errorMessage").get("message"), None) or run.message
            for name, facets in event.outputs:
                count = facet(facets, "outputStatistics").get("rowCount")
                if isinstance(count, int) and not isinstance(count, bool) and 0 <= count < 2**63:
                    rows[name] = count
            for name, facets in (*event.inputs, *event.outputs):
                for assertion in dicts(facet(facets, "dataQualityAssertions").get("assertions")):
                    self.events.checks.append(
                        ReportedAssertion(job, run_id, event.at, name, assertion)
                    )
            for assertion in dicts(facet(event.run, "test").get("tests")):
                self.events.checks.append(ReportedAssertion(job, run_id, event.at, None, assertion))
        total = sum(rows.values())
        run.rows = total if rows and total < 2**63 else None


def _head(line: bytes) -> tuple[_Head, datetime] | None:
    """What an event is of and when it happened; None of what is no event."""
    try:
        head = msgspec.json.decode(line, type=_Head)
        at = msgspec.convert(head.event_time, datetime)
        at = at.replace(tzinfo=UTC) if at.tzinfo is None else at.astimezone(UTC)
    except (msgspec.MsgspecError, ValueError, OverflowError, RecursionError):
        return None
    for named in (head.job, head.dataset):
        if named is not None and not (_is_name(named.name) and _is_name(named.namespace)):
            return None
    if head.run is not None and not _is_name(head.run.run_id):
        return None
    if head.job is None and (head.run is not None or head.dataset is None):
        return None
    return head, at


def _key(line: bytes) -> bytes:
    """What orders events of one time, whatever their order in the store, and shows which are equal."""
    return blake2b(line, digest_size=16).digest()


def _is_name(name: str) -> bool:
    return bool(name.strip()) and len(name) <= LONGEST_NAME


def _decoded(line: bytes) -> dict[str, Any]:
    try:
        event = msgspec.json.decode(line)
    except (msgspec.MsgspecError, ValueError, RecursionError):
        return {}
    return event if isinstance(event, dict) else {}


def _reduced(head: _Head, at: datetime, line: bytes) -> _Reduced:
    event = _decoded(line)
    run, job = facet(event, "run"), facet(event, "job")
    return _Reduced(
        is_complete=(head.event_type or "").upper() == "COMPLETE",
        at=at,
        key=_key(line),
        producer=text(event.get("producer")),
        run=_kept(facet(run, "facets"), _OF_RUNS),
        job=_kept(facet(job, "facets"), _OF_JOBS),
        inputs=list(_datasets(event.get("inputs"))),
        outputs=list(_datasets(event.get("outputs"))),
    )


def _of_warehouse(table: DatasetName) -> DatasetName:
    """A table of Spark's warehouse, whose folder is its namespace.

    Where a table is dropped, Spark's listener gives the folder of the database.

    Example:
        >>> _of_warehouse(DatasetName("file:/wh/ml.db", "ml.scored"))
        DatasetName(namespace='file:/wh', name='ml.scored')
    """
    database = table.name.partition(".")[0]
    return table._replace(namespace=table.namespace.removesuffix(f"/{database}.db"))


def _datasets(datasets: object) -> Iterator[tuple[DatasetName, Facets]]:
    for dataset in dicts(datasets):
        name = DatasetName(text(dataset.get("namespace")), text(dataset.get("name")))
        if name.namespace and name.name:
            facets = {
                **facet(dataset, "facets"),
                **facet(dataset, "inputFacets"),
                **facet(dataset, "outputFacets"),
            }
            yield name, _kept(facets, _OF_DATASETS)


def _dataset_facets(event: dict[str, Any]) -> Facets:
    return _kept(facet(facet(event, "dataset"), "facets"), _OF_DATASETS)


def _kept(facets: Facets, names: frozenset[str]) -> Facets:
    return {
        name: content
        for name, content in facets.items()
        if name in names and isinstance(content, dict) and not content.get("_deleted")
    }
