"""Assets of what collected events tell: jobs, the datasets that dbt does not know, runs and checks.

A job is a declared asset with what it reads and writes, so everything that is known of these holds of it.
What is declared and collected under one name is one asset: who owns it and what it is called is taken from the
declaration, its runs from the events, and of what it reads and writes both count.

Left out are jobs of dbt itself for what this project builds, because dbt's own artifacts say more of it; and what
another job writes into a relation that dbt builds (dbt on Spark is seen by Spark's listener, too). The latter is
reported, unless it reads just what dbt reads for that relation.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, TypeVar

import msgspec

from dbt_ripple.artifacts import Project, RunResult
from dbt_ripple.artifacts.assets_file import (
    COLLECTED,
    DATASETS,
    OF_PREFIX,
    WHOLE,
    Assertion,
    AssetColumn,
    ColumnFlow,
    DeclaredAsset,
    Flow,
)
from dbt_ripple.flow.identifiers import dialect_of
from dbt_ripple.flow.reading.dialects import dialects
from dbt_ripple.flow.statements import KNOWN, statements
from dbt_ripple.graph.lineage_tables import ROWS
from dbt_ripple.openlineage.collected.collected_assertions import (
    assertion_of,
    order_of_check,
    result_of_check,
    result_of_run,
)
from dbt_ripple.openlineage.collected.dataset_identities import (
    DatasetIdentities,
    dialect_of_namespace,
)
from dbt_ripple.openlineage.collected.facet_values import (
    Facets,
    columns_of_schema,
    facet,
    owner_of,
    short_hash,
    spelled,
    tags_of,
    text,
)
from dbt_ripple.openlineage.collected.lineage_facets import (
    JobLineage,
    OutputLineage,
    dataset_lineage,
    job_lineage,
)
from dbt_ripple.openlineage.collected.stored_events import (
    JobName,
    ReportedAssertion,
    ReportedJob,
    StoredEvents,
)
from dbt_ripple.openlineage.declared_lineage import DatasetName
from dbt_ripple.reasons import Code, Reason

_PRODUCERS: Final = ("airflow", "dagster", "dbt", "flink", "prefect", "spark")
_JOBS: Final = frozenset(OF_PREFIX) - DATASETS - {"ml_model", "model", "mlflow", "kafka"}
_Name = TypeVar("_Name", JobName, DatasetName)


@dataclass
class CollectedAssets:
    """What collected events add to the assets of a project.

    Attributes:
        assets: those that are declared, with what was collected of them; then the others.
        notes: what was left out or assumed, each a line.
    """

    assets: list[DeclaredAsset] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


def with_collected(
    declared: Sequence[DeclaredAsset],
    events: StoredEvents,
    projects: Sequence[Project],
    namespace: str | None = None,
) -> CollectedAssets:
    """The assets of a project, declared and collected.

    Args:
        declared: those of its files.
        events: what was collected.
        projects: the project; then, of a comparison, the other side of it.
        namespace: of dbt's own datasets, where it is known.
    """
    return _Collection(declared, events, projects, namespace).assets()


@dataclass
class _CollectedJob:
    """A job that becomes an asset."""

    name: JobName
    reported: ReportedJob
    lineage: JobLineage
    prefix: str
    id: str = ""
    declared: DeclaredAsset | None = None
    more_reads: set[str] = field(default_factory=set)
    more_writes: set[str] = field(default_factory=set)

    @property
    def called(self) -> str:
        """Its name, without what its `prefix` says already, where it is named by an asset's id."""
        before, colon, name = self.name.name.partition(":")
        return name if colon and before == self.prefix else self.name.name


class _Collection:
    """The assets, while they are put together."""

    def __init__(
        self,
        declared: Sequence[DeclaredAsset],
        events: StoredEvents,
        projects: Sequence[Project],
        namespace: str | None,
    ) -> None:
        self.declared = list(declared)
        self.events = events
        self.projects = projects
        self.dialect = dialect_of(projects[0].metadata.adapter_type)
        self.retired = [d for d in declared if d.retired is not None]
        live = [d for d in declared if d.retired is None]
        self.identities = DatasetIdentities(events, projects, live, namespace)
        self.live = live
        self.nodes = {u: n for p in reversed(projects) for u, n in p.nodes.items()}
        self.parents: dict[str, set[str]] = {}
        for project in projects:
            for unique_id, above in project.parents.items():
                self.parents.setdefault(unique_id, set()).update(above)
        self.jobs: dict[JobName, _CollectedJob] = {}
        self.datasets: dict[DatasetName, str] = {}
        self.over_dbt: list[str] = []
        self.checks: dict[JobName, list[ReportedAssertion]] = {}
        for check in sorted(events.checks, key=order_of_check):
            self.checks.setdefault(check.job, []).append(check)

    def assets(self) -> CollectedAssets:
        self._find_jobs()
        self._find_datasets()
        self._others_of_jobs()
        merged = {asset.id: asset for asset in self.declared}
        jobs = [self._job_asset(job) for job in self.jobs.values()]
        used = {flow.node for asset in jobs for flow in (*asset.reads, *asset.writes)}
        used |= {assertion.node for asset in jobs for assertion in asset.assertions}
        for name, unique_id in self.datasets.items():
            if unique_id in used:
                asset = self._dataset_asset(name, unique_id)
                merged[asset.id] = asset
        for asset in jobs:
            other = merged.get(asset.id)
            merged[asset.id] = asset if other is None else _both(other, asset)
        notes = [*self.events.notes, *self.identities.notes()]
        if self.over_dbt:
            more = f" (and {len(self.over_dbt) - 1:,} more)" if len(self.over_dbt) > 1 else ""
            notes.append(
                f"{self.over_dbt[0]}, which dbt builds{more}: what dbt says of it counts, and the "
                "collected job is not above it"
            )
        return CollectedAssets(list(merged.values()), notes)

    # -- who is who ---------------------------------------------------------------------------------

    def _find_jobs(self) -> None:
        for name, reported in sorted(self.events.jobs.items()):
            lineage = job_lineage(name, reported)
            prefix = _prefix(reported)
            if prefix == "dbt" and self._is_own(name, lineage, reported):
                continue
            by_id = name.name.partition(":")[0] if ":" in name.name else ""
            prefix = next((p for p in (by_id, prefix) if p in _JOBS), "job")
            self.jobs[name] = _CollectedJob(name, reported, lineage, prefix)
        for dataset, facets in sorted(self.events.lineage_events.items()):
            lineage_of = dataset_lineage(facets)
            if lineage_of.names_columns:
                name = JobName(dataset.namespace, f"lineage/{dataset.name}")
                reported = ReportedJob(outputs={dataset: facets})
                self.jobs.setdefault(
                    name, _CollectedJob(name, reported, JobLineage({dataset: lineage_of}), "job")
                )
        for job in list(self.jobs.values()):
            for other, _, _ in job.lineage.of_jobs:
                self._named_by_others(other)
            for pair in job.lineage.between_jobs:
                for other in pair:
                    self._named_by_others(other)
        ids = self._ids({name: (job.prefix, job.called) for name, job in self.jobs.items()})
        for name, job in list(self.jobs.items()):
            job.declared = self._declared_job(job)
            job.id = job.declared.id if job.declared is not None else ids[name]
            retired = {d.id.casefold(): d for d in self.retired}.get(job.id.casefold())
            if retired is not None:
                last = self.events.last.get(name)
                if last is None or retired.retired is None or last.date() <= retired.retired:
                    del self.jobs[name]
                    continue
                job.declared, job.id = retired, retired.id

    def _named_by_others(self, name: JobName) -> None:
        if name not in self.jobs and name not in self.events.jobs:
            self.jobs[name] = _CollectedJob(name, ReportedJob(), JobLineage(), "job")

    def _is_own(self, name: JobName, lineage: JobLineage, reported: ReportedJob) -> bool:
        """Whether a job of dbt is one of this project: dbt's artifacts have it already."""
        datasets = {*reported.inputs, *reported.outputs, *lineage.outputs}
        relations = [u for dataset in datasets for u in self.identities.relations(dataset)]
        return not datasets or name.name in self.nodes or bool(relations)

    def _declared_job(self, job: _CollectedJob) -> DeclaredAsset | None:
        place = f"{job.name.namespace}/{job.name.name}"
        type_ = OF_PREFIX[job.prefix]
        for asset in self.live:
            if asset.type in DATASETS:
                continue
            kinds = (asset.id.partition(":")[0].lower(), asset.type)
            alike = job.prefix in kinds or type_ in kinds or "job" in (*kinds, job.prefix)
            if asset.source_ref == place:
                return asset
            if alike and asset.name.casefold() == spelled(job.called).casefold():
                return asset
        return None

    def _ids(self, wanted: dict[_Name, tuple[str, str]]) -> dict[_Name, str]:
        """An id for each, as people write them: with the namespace only where a name is not enough."""
        taken = {asset.id.casefold() for asset in self.declared}
        for node in self.nodes.values():
            for kind in ("table", node.resource_type):
                taken.add(f"{kind}:{node.name}".casefold())
        short = {key: f"{prefix}:{spelled(name)}" for key, (prefix, name) in wanted.items()}
        often = Counter(id_.casefold() for id_ in short.values())
        ids = {
            key: id_
            if often[id_.casefold()] == 1 and id_.casefold() not in taken
            else f"{wanted[key][0]}:{spelled(key[0])}/{spelled(wanted[key][1])}"
            for key, id_ in short.items()
        }
        often = Counter(id_.casefold() for id_ in ids.values())
        return {
            key: id_ if often[id_.casefold()] == 1 else f"{id_}~{short_hash(key)}"
            for key, id_ in ids.items()
        }

    def _find_datasets(self) -> None:
        wanted: dict[DatasetName, tuple[str, str]] = {}
        named: dict[DatasetName, None] = {}
        for job in self.jobs.values():
            named |= dict.fromkeys(
                (*job.reported.inputs, *job.reported.outputs, *job.lineage.reads)
            )
            named |= dict.fromkeys(job.lineage.outputs)
            for output in job.lineage.outputs.values():
                named |= dict.fromkeys(source.dataset for source in output.sources())
            named |= dict.fromkeys(dataset for _, _, dataset in job.lineage.of_jobs)
        for check in self.events.checks:
            if check.dataset is not None:
                named[check.dataset] = None
        for name in sorted(named):
            first = self.identities.representative(name)
            if first in wanted or first in self.datasets or self.identities.relations(name):
                continue
            asset = self.identities.asset(name)
            if asset is not None:
                self.datasets[first] = asset.unique_id
                continue
            given_type = facet(self._facets(first), "datasetType").get("datasetType")
            wanted[first] = (self.identities.type_of(first, text(given_type)), first.name)
        for first, id_ in self._ids(wanted).items():
            prefix, _, own = id_.partition(":")
            self.datasets[first] = f"asset.{prefix}.{own}"

    def _facets(self, first: DatasetName) -> Facets:
        facets: Facets = {}
        for name in sorted(self.identities.names(first)):
            facets |= self.events.datasets.get(name, {})
        return facets

    def nodes_of(self, name: DatasetName) -> tuple[str, ...]:
        """The relations of dbt that a dataset is, or else the asset that it is."""
        relations = self.identities.relations(name)
        if relations:
            return relations
        own = self.datasets.get(self.identities.representative(name))
        return (own,) if own is not None else ()

    def _others_of_jobs(self) -> None:
        """What a job tells of other jobs."""
        for job in list(self.jobs.values()):
            for name, reads, dataset in job.lineage.of_jobs:
                other = self.jobs.get(name)
                if other is not None:
                    nodes = self.nodes_of(dataset)
                    (other.more_reads if reads else other.more_writes).update(nodes)
            for before, after in job.lineage.between_jobs:
                first, then = self.jobs.get(before), self.jobs.get(after)
                if first is not None and then is not None:
                    prefix, _, own = first.id.partition(":")
                    then.more_reads.add(f"asset.{prefix}.{own}")

    # -- assets -------------------------------------------------------------------------------------

    def _dataset_asset(self, name: DatasetName, unique_id: str) -> DeclaredAsset:
        facets = self._facets(name)
        _, prefix, own = unique_id.split(".", 2)
        assertions = DeclaredAsset(
            id=f"{prefix}:{own}",
            type=prefix,
            place=_place(name),
            source_ref=f"{name.namespace}/{name.name}",
            description=text(facet(facets, "documentation").get("description"), None),
            owner=owner_of(facets),
            tags=tags_of(facets),
            columns=columns_of_schema(facets),
            collected=True,
        )
        for asset in self.live:
            if asset.unique_id == unique_id:
                return _both(asset, assertions)
        return assertions

    def _job_asset(self, job: _CollectedJob) -> DeclaredAsset:
        reported, lineage = job.reported, job.lineage
        outputs = {
            name: lineage.outputs.get(name, OutputLineage())
            for name in sorted({*reported.outputs, *lineage.outputs})
        }
        sql, dialect = text(facet(reported.facets, "sql").get("query"), None), self._dialect(job)
        every = list(outputs.values())
        complete = bool(every) and all(o.names_columns and o.has_kinds for o in every)
        if sql and not complete and _can_be_followed(sql, dialect):
            # A parser that has no tables at hand calls columns as they are called where they come from.
            outputs = {n: o if o.has_kinds else OutputLineage() for n, o in outputs.items()}
            every = list(outputs.values())
        all_name_columns = bool(every) and all(output.names_columns for output in every)
        # SQL that cannot be followed does not take away what is told of the columns of other outputs.
        some_name_columns = any(output.names_columns for output in every)
        by_sql = bool(sql) and not all_name_columns
        by_sql = by_sql and (not some_name_columns or _can_be_followed(sql, dialect))
        # Of outputs that say nothing of their columns, while others do.
        silent = (
            set()
            if by_sql or not some_name_columns
            else {name for name, output in outputs.items() if not output.names_columns}
        )
        reads = self._reads(job, outputs, all_name_columns or bool(silent), by_sql, silent)
        asset = DeclaredAsset(
            id=job.id,
            type=job.declared.type if job.declared is not None else OF_PREFIX[job.prefix],
            place=_place(job.name),
            source_ref=f"{job.name.namespace}/{job.name.name}",
            description=text(facet(reported.facets, "documentation").get("description"), None),
            owner=owner_of(reported.facets),
            tags=tags_of(reported.facets),
            reads=tuple(reads),
            writes=tuple(
                self._writes(
                    job, outputs, {flow.node for flow in reads}, _takes_away(sql, dialect), silent
                )
            ),
            sql=sql if by_sql else None,
            dialect=dialect if by_sql else None,
            collected=True,
            kinds_missing=all_name_columns and not complete,
            assertions=tuple(self._assertions(job)),
        )
        runs = self.events.runs.get(job.name, {}).values()
        ended = [result_of_run(asset.unique_id, run) for run in runs if run.status is not None]
        ended.sort(key=lambda run: (run.timing[0].completed_at, run.invocation_id))
        return msgspec.structs.replace(asset, runs=tuple(ended))

    def _reads(
        self,
        job: _CollectedJob,
        outputs: dict[DatasetName, OutputLineage],
        all_name_columns: bool,
        by_sql: bool,
        silent: Collection[DatasetName],
    ) -> list[Flow]:
        several = len(outputs) > 1
        columns: dict[str, dict[ColumnFlow, None]] = {}
        read = {*job.reported.inputs, *job.lineage.reads}
        for name, output in outputs.items():
            read |= {source.dataset for source in output.sources()}
            for own, sources in output.fields.items():
                for source in sources:
                    for node in self.nodes_of(source.dataset):
                        flow = ColumnFlow(
                            (source.field or ROWS,),
                            _column(name, own, several),
                            source.subtype.lower(),
                            source.masking,
                            source.description,
                        )
                        columns.setdefault(node, {})[flow] = None
            every = [*output.fields, *(c.name for c in self._columns_of(name))]
            for source in output.rows:
                targets = [source.field or ROWS]
                if not source.of_rows:
                    targets = [_column(name, own, several) for own in dict.fromkeys(every)]
                for node in self.nodes_of(source.dataset):
                    for target in targets:
                        flow = ColumnFlow(
                            (source.field or ROWS,), target, source.subtype.lower(), source.masking
                        )
                        columns.setdefault(node, {})[flow] = None
        for name, sources in job.lineage.reads.items():
            for node in self.nodes_of(name):
                for source in sources:
                    flow = ColumnFlow((source.field or ROWS,), ROWS, source.subtype.lower())
                    columns.setdefault(node, {})[flow] = None
        nodes = {node for name in read for node in self.nodes_of(name)} | job.more_reads
        flows = []
        for node in sorted(nodes):
            for name in sorted(silent):
                flow = ColumnFlow((WHOLE,), _column(name, WHOLE, several))
                columns.setdefault(node, {})[flow] = None
            of_node = tuple(sorted(columns.get(node, ()), key=repr))
            names_columns = all_name_columns or (bool(of_node) and (by_sql or not outputs))
            flows.append(Flow(node, of_node if names_columns else None, _place(job.name)))
        return flows

    def _writes(
        self,
        job: _CollectedJob,
        outputs: dict[DatasetName, OutputLineage],
        reads: set[str],
        only_rows: bool,
        silent: Collection[DatasetName],
    ) -> Iterable[Flow]:
        several = len(outputs) > 1
        flows: dict[str, dict[ColumnFlow, None] | None] = {}
        for name, output in outputs.items():
            for node in self.nodes_of(name):
                if self._is_built(node):
                    if not reads <= self.parents.get(node, set()) | {node}:
                        self.over_dbt.append(f"{job.id} writes {node}")
                    continue
                if not output.names_columns and not only_rows and name not in silent:
                    flows.setdefault(node, None)
                    continue
                into = flows.get(node) or {}
                if name in silent:
                    into[ColumnFlow((_column(name, WHOLE, several),), WHOLE)] = None
                for flow in self._written(name, output, several):
                    into[flow] = None
                flows[node] = into
        for node in job.more_writes:
            if not self._is_built(node):
                flows.setdefault(node, None)
        for node, mappings in sorted(flows.items()):
            columns = None if mappings is None else tuple(sorted(mappings, key=repr))
            yield Flow(node, columns, _place(job.name))

    def _written(
        self, name: DatasetName, output: OutputLineage, several: bool
    ) -> Iterable[ColumnFlow]:
        of_relation = [column.name for column in self._columns_of(name)]
        there = {column.casefold() for column in of_relation}
        reported = {own.casefold() for own in output.fields}
        for own in output.fields:
            source = (_column(name, own, several),)
            if not there or own.casefold() in there:
                yield ColumnFlow(source, own)
                continue
            # What has another name than any column, or a number for a name, is one of the others.
            for column in of_relation:
                if column.casefold() not in reported:
                    yield ColumnFlow(source, column, "transformation")

    def _is_built(self, node: str) -> bool:
        relation = self.nodes.get(node)
        return relation is not None and relation.resource_type != "source"

    def _columns_of(self, name: DatasetName) -> tuple[AssetColumn, ...]:
        return columns_of_schema(self._facets(self.identities.representative(name)))

    def _dialect(self, job: _CollectedJob) -> str:
        of_job = text(facet(job.reported.facets, "sql").get("dialect")).lower()
        if of_job in dialects():
            return of_job
        for name in sorted({*job.reported.outputs, *job.reported.inputs}):
            of_dataset = dialect_of_namespace(name.namespace)
            if of_dataset is not None and of_dataset in dialects():
                return of_dataset
        return "spark" if job.prefix == "spark" else self.dialect

    # -- checks -------------------------------------------------------------------------------------

    def _assertions(self, job: _CollectedJob) -> Iterable[Assertion]:
        results: dict[str, dict[str, tuple[Any, RunResult]]] = {}
        assertions: dict[str, Assertion] = {}
        checks = self.checks.get(job.name, ())
        of_datasets = {
            (
                check.run_id,
                text(check.assertion.get("name")) or text(check.assertion.get("assertion")),
            )
            for check in checks
            if check.dataset is not None
        }
        for check in checks:
            name = text(check.assertion.get("name")) or text(check.assertion.get("assertion"))
            about = check.dataset
            if about is None:
                if (check.run_id, name) in of_datasets:
                    continue
                about = self._only_input(job)
            nodes = self.nodes_of(about) if about is not None else ()
            if not name or not nodes:
                continue
            for node in nodes[:1]:
                assertion = assertion_of(job.id, check, name, node)
                assertions[assertion.unique_id] = assertion
                result, rank = result_of_check(assertion, check)
                runs = results.setdefault(assertion.unique_id, {})
                earlier = runs.get(check.run_id)
                if earlier is None or earlier[0] < rank:
                    runs[check.run_id] = (rank, result)
        for unique_id, assertion in sorted(assertions.items()):
            of_runs = sorted(results[unique_id].values(), key=lambda pair: pair[0])
            yield msgspec.structs.replace(assertion, results=tuple(result for _, result in of_runs))

    def _only_input(self, job: _CollectedJob) -> DatasetName | None:
        read = sorted({self.identities.representative(name) for name in job.reported.inputs})
        return read[0] if len(read) == 1 else None


def _both(declared: DeclaredAsset, collected: DeclaredAsset) -> DeclaredAsset:
    """One asset of a declaration, or an asset of one name, and what was collected of it."""
    declared_names = {column.name.casefold() for column in declared.columns}
    more = [column for column in collected.columns if column.name.casefold() not in declared_names]
    sql, dialect = declared.sql, declared.dialect
    if sql is None:
        sql, dialect = collected.sql, collected.dialect
    return msgspec.structs.replace(
        declared,
        source_ref=declared.source_ref or collected.source_ref,
        description=declared.description or collected.description,
        owner=declared.owner or collected.owner,
        tags=tuple(dict.fromkeys((*declared.tags, *collected.tags))),
        columns=(*declared.columns, *more),
        reads=(*declared.reads, *collected.reads),
        writes=(*declared.writes, *collected.writes),
        sql=sql,
        dialect=dialect,
        retired=None,
        collected=True,
        kinds_missing=declared.kinds_missing or collected.kinds_missing,
        runs=(*declared.runs, *collected.runs),
        assertions=(*declared.assertions, *collected.assertions),
    )


def _takes_away(sql: str, dialect: str) -> bool:
    """Whether the SQL only deletes rows, or drops or empties tables."""
    parsed = statements(sql, dialect) if sql else []
    return (
        bool(parsed)
        and not isinstance(parsed, Reason)
        and all(statement.only_deletes for statement in parsed)
    )


def _can_be_followed(sql: str, dialect: str) -> bool:
    """Whether it has a query, and each statement that writes is one, as far as its text says."""
    parsed = (
        statements(sql, dialect) if dialect in KNOWN else Code.DIALECT_NOT_KNOWN(dialect=dialect)
    )
    if isinstance(parsed, Reason):
        return False
    queries = [statement.is_query for statement in parsed if statement.writes is not None]
    return all(queries) and any(statement.is_query for statement in parsed)


def _prefix(job: ReportedJob) -> str:
    """Who ran a job, as the prefix of its id."""
    integration = text(facet(job.facets, "jobType").get("integration")).lower()
    if integration:
        return integration
    producer = job.producer.lower()
    return next((word for word in _PRODUCERS if word in producer), "job")


def _column(dataset: DatasetName, own: str, several: bool) -> str:
    return f"{dataset.name}.{own}" if several else own


def _place(name: JobName | DatasetName) -> str:
    return f"{COLLECTED}{name.namespace}/{name.name}"
