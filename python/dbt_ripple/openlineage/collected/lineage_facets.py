"""Which columns a job makes of which, as its events tell it: the facets `columnLineage` and `lineage`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

from dbt_ripple.openlineage.collected.facet_values import Facets, dicts, facet, text
from dbt_ripple.openlineage.collected.stored_events import JobName, ReportedJob
from dbt_ripple.openlineage.declared_lineage import DIRECT, INDIRECT, DatasetName

_DESCRIPTION: Final = 1000
"""Characters of what an event says of one column; more is cut off."""
_OF_ROWS: Final = frozenset({"FILTER", "GROUP_BY", "JOIN", "SORT"})


class InputField(NamedTuple):
    """What something comes of.

    Attributes:
        field: None stands for the rows of the dataset.
        subtype: OpenLineage's.
        description: how it is used, in the producer's words; None where it says nothing.
    """

    dataset: DatasetName
    field: str | None
    subtype: str
    masking: bool
    description: str | None = None

    @property
    def of_rows(self) -> bool:
        """Whether it decides which rows there are, and is no value of a column."""
        return self.subtype in _OF_ROWS


@dataclass
class OutputLineage:
    """How a job makes one dataset.

    Attributes:
        fields: of each column.
        rows: of all of it.
        has_kinds: whether the facet says how columns are used. Who does not say so (the SQL parser of
            OpenLineage that Airflow uses, for one) leaves out what filters and joins rows.
    """

    fields: dict[str, dict[InputField, None]] = field(default_factory=dict)
    rows: dict[InputField, None] = field(default_factory=dict)
    has_kinds: bool = False

    @property
    def names_columns(self) -> bool:
        """Whether the events name any columns."""
        return bool(self.fields or self.rows)

    def sources(self) -> Iterator[InputField]:
        """All that it comes of."""
        for of_field in self.fields.values():
            yield from of_field
        yield from self.rows


@dataclass
class JobLineage:
    """How a job makes what it writes.

    Attributes:
        outputs: by dataset.
        reads: datasets that the `lineage` facet names besides.
        of_jobs: what it says of other jobs: which reads (True) or writes (False) which dataset.
        between_jobs: pairs of a job and one that comes after it.
    """

    outputs: dict[DatasetName, OutputLineage] = field(default_factory=dict)
    reads: dict[DatasetName, dict[InputField, None]] = field(default_factory=dict)
    of_jobs: list[tuple[JobName, bool, DatasetName]] = field(default_factory=list)
    between_jobs: list[tuple[JobName, JobName]] = field(default_factory=list)


def job_lineage(job: JobName, reported: ReportedJob) -> JobLineage:
    """What the events of a job tell of columns."""
    lineage = JobLineage()
    for name, facets in reported.outputs.items():
        lineage.outputs[name] = dataset_lineage(facets)
    for entry in dicts(facet(reported.facets, "lineage").get("entries")):
        target = (text(entry.get("namespace")), text(entry.get("name")))
        if entry.get("type") == "JOB":
            _of_job(lineage, job, JobName(*target) if all(target) else job, entry)
        elif all(target):
            _of_entry(lineage, job, DatasetName(*target), entry)
    return lineage


def dataset_lineage(facets: Facets) -> OutputLineage:
    """What the facets of a dataset tell of its columns."""
    output = OutputLineage()
    column_lineage = facet(facets, "columnLineage")
    for name, entry in facet(column_lineage, "fields").items():
        if not isinstance(entry, dict) or not text(name):
            continue
        into = output.fields.setdefault(name, {})
        # What it was called before there were transformations.
        old = text(entry.get("transformationType")).upper()
        description = text(entry.get("transformationDescription"), None)
        for source in dicts(entry.get("inputFields")):
            _add(output, into, source, old, description)
    for source in dicts(column_lineage.get("dataset")):
        _add(output, output.rows, source, "", of_rows=True)
    _add_entry(output, facet(facets, "lineage"))
    return output


def _of_entry(
    lineage: JobLineage, job: JobName, target: DatasetName, entry: Mapping[str, Any]
) -> None:
    output = lineage.outputs.setdefault(target, OutputLineage())
    _add_entry(output, entry)
    inputs = dicts(entry.get("inputs"))
    for of_field in facet(entry, "fields").values():
        inputs += dicts(of_field.get("inputs")) if isinstance(of_field, dict) else []
    for source in inputs:
        name = (text(source.get("namespace")), text(source.get("name")))
        if source.get("type") == "JOB":
            if all(name) and JobName(*name) != job:
                lineage.of_jobs.append((JobName(*name), False, target))
        elif all(name):
            lineage.reads.setdefault(DatasetName(*name), {})


def _of_job(lineage: JobLineage, own: JobName, job: JobName, entry: Mapping[str, Any]) -> None:
    for source in dicts(entry.get("inputs")):
        name = (text(source.get("namespace")), text(source.get("name")))
        if not all(name):
            continue
        if source.get("type") == "JOB":
            if JobName(*name) != job:
                lineage.between_jobs.append((JobName(*name), job))
        elif job != own:
            lineage.of_jobs.append((job, True, DatasetName(*name)))
        else:
            read = OutputLineage()
            _add(read, read.rows, source, "", of_rows=True)
            lineage.reads.setdefault(DatasetName(*name), {}).update(
                {one: None for one in read.rows if one.field is not None}
            )


def _add_entry(output: OutputLineage, entry: Mapping[str, Any]) -> None:
    """What the newer facet says of a dataset."""
    for name, of_field in facet(entry, "fields").items():
        if isinstance(of_field, dict) and text(name):
            into = output.fields.setdefault(name, {})
            for source in dicts(of_field.get("inputs")):
                _add(output, into, source, "")
    for source in dicts(entry.get("inputs")):
        if text(source.get("field")):
            _add(output, output.rows, source, "", of_rows=True)


def _add(
    output: OutputLineage,
    into: dict[InputField, None],
    input_field: Mapping[str, Any],
    old: str,
    description: str = "",
    *,
    of_rows: bool = False,
) -> None:
    name = DatasetName(text(input_field.get("namespace")), text(input_field.get("name")))
    if input_field.get("type") == "JOB" or not name.namespace or not name.name:
        return
    column = text(input_field.get("field")) or None
    transformations = dicts(input_field.get("transformations"))
    output.has_kinds |= bool(transformations)
    for one in transformations or ({},):
        subtype = text(one.get("subtype")).upper().replace(" ", "_")
        indirect = text(one.get("type")).upper() == "INDIRECT"
        if not transformations and old == "IDENTITY":
            subtype = "IDENTITY"
        if of_rows and subtype in (*DIRECT, ""):
            subtype = "FILTER"  # what bears on all of a dataset decides which rows it has, at least
        elif subtype not in DIRECT | INDIRECT:
            subtype = "CONDITIONAL" if indirect else "TRANSFORMATION"
        masking = one.get("masking") is True or (not transformations and old == "MASKED")
        said = " ".join((text(one.get("description"), None) or description).split())[:_DESCRIPTION]
        source = InputField(name, column, subtype, masking and subtype in DIRECT, said or None)
        into[source] = None
