"""Which relation of dbt, or which declared asset, a collected dataset is.

The rules are those of OpenLineage's naming conventions, as `dataset_names` has them for what we send:

* All names that events give one dataset (the facet `symlinks`) are names of one thing.
* A name is compared in its parts (database, schema, table), without case unless case tells two relations
  apart. A part that one side leaves out (the catalog, mostly) is not compared; schema and table have to be there.
* A namespace of another engine than the project's adapter is another place: a Kafka topic is no table of
  PostgreSQL. Of the same engine all hosts count, because artifacts do not say which one dbt connects to,
  unless the namespace is given. Where several hosts have the same table, a note says so.
* Where files are, the whole place has to be the one that the project gives (`DatasetNames.locations`).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from dbt_ripple.artifacts import Project
from dbt_ripple.artifacts.assets_file import DATASETS, OF_PREFIX, DeclaredAsset
from dbt_ripple.graph.relations import RELATIONS
from dbt_ripple.openlineage.collected.stored_events import StoredEvents
from dbt_ripple.openlineage.dataset_names import DatasetNames
from dbt_ripple.openlineage.declared_lineage import DatasetName, file_dataset

_ENGINES: Final[Mapping[str, frozenset[str]]] = {
    adapter: frozenset(schemes.split())
    for adapter, schemes in {
        "athena": "awsathena arn",
        "bigquery": "bigquery",
        "clickhouse": "clickhouse",
        "databricks": "databricks spark hive arn",
        "dremio": "dremio",
        "duckdb": "duckdb",
        "fabric": "fabric-warehouse mssql",
        "glue": "arn hive spark",
        "greenplum": "postgres postgresql",
        "hive": "hive spark arn",
        "materialize": "postgres postgresql",
        "mysql": "mysql",
        "oracle": "oracle",
        "postgres": "postgres postgresql",
        "redshift": "redshift",
        "risingwave": "postgres postgresql",
        "singlestore": "mysql singlestore",
        "snowflake": "snowflake",
        "spark": "spark hive arn databricks",
        "sqlite": "sqlite",
        "sqlserver": "mssql sqlserver",
        "starrocks": "mysql starrocks",
        "synapse": "sqlserver mssql",
        "teradata": "teradata",
        "trino": "trino presto",
    }.items()
}
"""Adapter -> the schemes of namespaces in which its tables may be."""

_TOPICS: Final = frozenset({"eventhub", "kafka", "kinesis", "nats", "pubsub", "pulsar", "rabbitmq"})
_FILES: Final = frozenset(
    """
    abfs abfss adl dbfs file ftp gcs gs hdfs oci oss s3 s3a s3n sftp wasb wasbs
    """.split()
)
_KNOWN: Final = frozenset().union(*_ENGINES.values(), _TOPICS, _FILES)
_DIALECTS: Final[Mapping[str, str]] = {
    **{name: name for name in ("bigquery", "clickhouse", "databricks", "dremio", "duckdb", "hive")},
    **{name: name for name in ("mysql", "oracle", "postgres", "presto", "redshift", "snowflake")},
    **{name: name for name in ("spark", "sqlite", "starrocks", "teradata", "trino", "singlestore")},
    "awsathena": "athena",
    "fabric-warehouse": "fabric",
    "mssql": "tsql",
    "postgresql": "postgres",
    "sqlserver": "tsql",
}
_SCHEME: Final = re.compile(r"([a-z][a-z0-9+.-]*)(?::|\Z)", re.IGNORECASE)
_TYPES: Final[Mapping[str, str]] = {
    "FILE": "file",
    "STREAM": "stream",
    "TOPIC": "topic",
    "MATERIALIZED_VIEW": "table",
    "TABLE": "table",
    "VIEW": "table",
}
_QUOTES: Final = str.maketrans("", "", '"`[]')


def scheme(namespace: str) -> str:
    """The scheme of a namespace, in lower case; empty of one that has none.

    Example:
        >>> scheme("postgres://db:5432"), scheme("bigquery"), scheme("arn:aws:glue:eu-west-1:1")
        ('postgres', 'bigquery', 'arn')
    """
    match = _SCHEME.match(namespace)
    if match is None or ("://" not in namespace and match[1].lower() not in _KNOWN):
        return ""
    return match[1].lower()


def dialect_of_namespace(namespace: str) -> str | None:
    """The dialect of the SQL that is written for the tables of a namespace, where it says so."""
    return _DIALECTS.get(scheme(namespace))


def dataset_type(name: DatasetName, given_type: str = "") -> str:
    """The type of asset that a dataset is.

    Args:
        name: of the dataset.
        given_type: the value of its facet `datasetType`.
    """
    if given_type.upper() in _TYPES:
        return _TYPES[given_type.upper()]
    of_id = OF_PREFIX.get(name.namespace)  # an asset's id: see `declared_lineage.Dataset.of`
    if of_id in DATASETS or of_id == "ml_model":
        return str(of_id)
    kind = scheme(name.namespace)
    return "topic" if kind in _TOPICS else "file" if kind in _FILES else "table"


class _SameDatasets:
    """Names of one thing, joined pair by pair (union-find)."""

    def __init__(self, pairs: Iterable[tuple[DatasetName, DatasetName]]) -> None:
        self._first: dict[DatasetName, DatasetName] = {}
        for one, other in pairs:
            a, b = sorted((self.first(one), self.first(other)))
            self._first[b] = a
        self.members: dict[DatasetName, set[DatasetName]] = {}
        for name in list(self._first):
            self.members.setdefault(self.first(name), set()).add(name)

    def first(self, name: DatasetName) -> DatasetName:
        above = self._first.setdefault(name, name)
        while above != name:
            self._first[name] = self._first.setdefault(above, above)
            name = above
            above = self._first.setdefault(name, name)
        return name


class DatasetIdentities:
    """The names of datasets, and what they are in a project.

    Args:
        events: for the names that are those of one dataset.
        projects: the project, and the other side of a comparison: what only that has is still a relation.
        declared: its declared assets.
        namespace: of dbt's own datasets, where it is known.
    """

    def __init__(
        self,
        events: StoredEvents,
        projects: Sequence[Project],
        declared: Sequence[DeclaredAsset],
        namespace: str | None = None,
    ) -> None:
        self._same = _SameDatasets(sorted(events.same))
        self._table_datasets = events.tables
        self._declared = [d for d in declared if d.type in DATASETS or d.type == "ml_model"]
        self._namespace = namespace
        adapter = projects[0].metadata.adapter_type or ""
        self._engines = _ENGINES.get(adapter)
        self._tables: dict[tuple[str, ...], dict[str, tuple[str, ...]]] = {}
        self._places: dict[DatasetName, dict[str, None]] = {}
        self._longest = 0
        for project in projects:
            self._add(project)
        self._relations: dict[DatasetName, tuple[str, ...]] = {}
        self.hosts: dict[str, set[str]] = {}

    def _add(self, project: Project) -> None:
        names = DatasetNames(project, "")
        for unique_id, node in project.nodes.items():
            if node.resource_type not in RELATIONS:
                continue
            for place in names.locations(node):
                self._places.setdefault(place, {})[unique_id] = None
            name = names.of(unique_id)
            if name is None:
                continue
            parts = _parts(name.name)
            self._longest = max(self._longest, len(parts))
            for length in range(min(2, len(parts)), len(parts) + 1):
                key = tuple(part.casefold() for part in parts[-length:])
                self._tables.setdefault(key, {}).setdefault(unique_id, parts)

    def representative(self, name: DatasetName) -> DatasetName:
        """The name that stands for all names of a dataset: that of a table before that of its files."""
        return min(self.names(name), key=lambda n: (self._is_of_files(n), n.namespace, n.name))

    def _is_of_files(self, name: DatasetName) -> bool:
        return scheme(name.namespace) in _FILES and name not in self._table_datasets

    def type_of(self, name: DatasetName, given_type: str = "") -> str:
        """The type of asset that a dataset is; `given_type` is the value of its facet `datasetType`."""
        return (
            "table"
            if name in self._table_datasets and not given_type
            else dataset_type(name, given_type)
        )

    def names(self, name: DatasetName) -> set[DatasetName]:
        """All names of a dataset."""
        return self._same.members.get(self._same.first(name), {name}) | {name}

    def relations(self, name: DatasetName) -> tuple[str, ...]:
        """The relations of dbt that a dataset is, by unique_id: mostly one, or none.

        Several sources may be one table; and a name without its database may be a table of any.
        """
        representative = self.representative(name)
        relations = self._relations.get(representative)
        if relations is None:
            matches: dict[str, None] = {}
            for one in sorted(self.names(name)):
                for unique_id in self._matching(one):
                    matches[unique_id] = None
                    self.hosts.setdefault(unique_id, set()).add(one.namespace)
            relations = self._relations[representative] = tuple(matches)
        return relations

    def _matching(self, name: DatasetName) -> Iterable[str]:
        places = self._places.get(name)
        place = file_dataset(f"{name.namespace}/{name.name}".removeprefix("file/"))
        places = places or (self._places.get(place) if place is not None else None)
        if places:
            return places
        kind = scheme(name.namespace)
        if self._namespace is not None:
            if name.namespace != self._namespace:
                return ()
        elif kind in _KNOWN:
            # Without a metastore Spark says where its warehouse is, and what the table is called there.
            engines = self._engines or _KNOWN - _TOPICS - _FILES
            of_spark = "spark" in engines and name in self._table_datasets
            if kind not in engines and not of_spark:
                return ()
        text = name.name
        if kind == "arn" and text.startswith("table/"):
            text = text.removeprefix("table/").replace("/", ".")
        parts = _parts(text)
        if len(parts) < min(2, self._longest):
            return ()
        key = tuple(part.casefold() for part in parts)
        matches = self._tables.get(key, {})
        if not matches and len(parts) > self._longest >= 2:  # a catalog that dbt does not say
            parts = parts[-self._longest :]
            matches = self._tables.get(key[-self._longest :], {})
        exact = [u for u, own in matches.items() if own[-len(parts) :] == parts]
        spellings = set(matches.values())
        return exact if exact and len(spellings) > 1 else matches

    def asset(self, name: DatasetName) -> DeclaredAsset | None:
        """The declared asset that a dataset is."""
        for one in sorted(self.names(name)):
            for declared in self._declared:
                if _is_asset(declared, one):
                    return declared
        return None

    def notes(self) -> list[str]:
        """What was believed of hosts."""
        several = {u: hosts for u, hosts in sorted(self.hosts.items()) if _several(hosts)}
        if not several:
            return []
        unique_id, hosts = next(iter(several.items()))
        more = f" (and {len(several) - 1:,} more like it)" if len(several) > 1 else ""
        return [
            f"collected events have {unique_id} in {' and in '.join(sorted(hosts))}{more}: each counts; "
            "--dataset-namespace names the one that is dbt's"
        ]


def _several(hosts: set[str]) -> bool:
    """Whether a table is in several places of one engine; by symlinks it has a name in several engines."""
    kinds = [scheme(host) for host in hosts if scheme(host) not in _FILES]
    return len(kinds) > len(set(kinds))


def _is_asset(declared: DeclaredAsset, name: DatasetName) -> bool:
    prefix, _, own = declared.id.partition(":")
    if name == (prefix, own):  # as `emit --static` sends it
        return True
    place = declared.source_ref or ""
    if place and (file_dataset(place) == name or place == f"{name.namespace}/{name.name}"):
        return True
    kind = dataset_type(name)
    declared_kind = OF_PREFIX.get(prefix.lower(), declared.type)
    alike = {kind, declared_kind}
    if kind != declared_kind and alike not in ({"topic", "stream"}, {"file", "table"}):
        return False
    collected_parts = [part.casefold() for part in _parts(name.name)]
    declared_parts = [part.casefold() for part in _parts(own)]
    if kind != "table" or declared_kind != "table":
        return own.casefold() == name.name.casefold()
    return collected_parts[-len(declared_parts) :] == declared_parts


def _parts(name: str) -> tuple[str, ...]:
    """The parts of a name, without quotes."""
    return tuple(part.strip().translate(_QUOTES) for part in name.split(".") if part.strip())
