"""What a relation is called in OpenLineage: its namespace and its name.

The rules are those of OpenLineage's naming conventions (openlineage.io/docs/spec/naming). For
adapters that these do not list (DuckDB, Spark, Databricks, ClickHouse, ...) they are those of
openlineage-dbt, so that both call a table the same; for ``method: session`` of dbt-spark, which
openlineage-dbt refuses, see `_spark`.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from dbt_ripple.artifacts import Node, Project
from dbt_ripple.errors import RippleError
from dbt_ripple.graph.linking.sources import DATASET_PREFIX
from dbt_ripple.graph.relations import RELATIONS
from dbt_ripple.openlineage.declared_lineage import DatasetName, file_dataset

OPTION: Final = "--dataset-namespace"


@dataclass(frozen=True)
class Connection:
    """What dbt connects to.

    Attributes:
        adapter: its type, for example ``postgres``.
        values: the fields of the profile's target as dbt resolved them, with its defaults.
    """

    adapter: str
    values: Mapping[str, Any] = field(default_factory=dict)

    def namespace(self) -> str:
        """The namespace of the datasets that are there.

        Raises:
            RippleError: the profile lacks a value that the name is made of, or there is no rule
                for the adapter.

        Example:
            >>> Connection("postgres", {"host": "db.internal", "port": 5432}).namespace()
            'postgres://db.internal:5432'
            >>> Connection("bigquery").namespace()
            'bigquery'
        """
        rule = _RULES.get(self.adapter)
        if rule is None:
            raise RippleError(
                f"there is no rule for how OpenLineage names datasets of the adapter {self.adapter}",
                fix=f"give their namespace by {OPTION}",
            )
        try:
            return rule(self.values)
        except KeyError as error:
            raise RippleError(
                f"the profile has no {error.args[0]}, of which the namespace of the datasets is made",
                f"adapter {self.adapter}",
                f"give the namespace by {OPTION}",
            ) from None


def _value(values: Mapping[str, Any], *names: str) -> str:
    for name in names:
        if values.get(name) not in (None, ""):
            return str(values[name])
    raise KeyError(names[0])


def _host_and_port(
    scheme: str, *, host: tuple[str, ...] = ("host",), port: str | None = None
) -> Callable[[Mapping[str, Any]], str]:
    def rule(values: Mapping[str, Any]) -> str:
        given_port = values.get("port") or port
        return f"{scheme}://{_value(values, *host)}" + (f":{given_port}" if given_port else "")

    return rule


def _redshift(values: Mapping[str, Any]) -> str:
    """``{cluster}.{region}``, which the host of a cluster begins with; else the host as it is."""
    host = _value(values, "host")
    of_cluster = re.fullmatch(
        r"([^.]+)\.[^.]+\.([a-z0-9-]+)\.redshift(?:-serverless)?\.amazonaws\.com(?:\.cn)?", host
    )
    region = values.get("region") or (of_cluster and of_cluster[2])
    cluster = values.get("cluster_id") or (of_cluster and of_cluster[1])
    where = f"{cluster}.{region}" if cluster and region else host
    return f"redshift://{where}:{values.get('port') or 5439}"


def _snowflake(values: Mapping[str, Any]) -> str:
    """``{organization}-{account}``; a locator with region and cloud, which are those of the first."""
    account = _value(values, "account").removesuffix(".snowflakecomputing.com")
    first, *rest = account.split(".")
    if "-" not in first:
        region, cloud = [*rest, *("us-west-1", "aws")[len(rest) :]][:2]
        account = ".".join([first, region, cloud])
    return f"snowflake://{account}"


def _spark(values: Mapping[str, Any]) -> str:
    """Where the metastore is, if the profile says so: other programs name its tables by it.

    dbt-spark wants a host even for ``method: session``, which does not use it.
    """
    parameters = values.get("server_side_parameters") or {}
    if str(values.get("method") or "") == "session":
        for key in ("spark.hadoop.hive.metastore.uris", "hive.metastore.uris"):
            first = str(parameters.get(key) or "").split(",")[0].strip()
            if first.startswith("thrift://"):
                return f"hive://{first.removeprefix('thrift://')}"
        return f"spark://{values.get('host') or 'localhost'}"
    return f"spark://{_value(values, 'host')}:{values.get('port') or 443}"


def _glue(values: Mapping[str, Any]) -> str:
    account = values.get("account_id") or _value(values, "role_arn").split(":")[4]
    return f"arn:aws:glue:{_value(values, 'region')}:{account}"


def _fabric(values: Mapping[str, Any]) -> str:
    port = f":{values['port']}" if values.get("port") else ""
    return f"fabric-warehouse://{_value(values, 'server', 'host')}{port}"


_RULES: Final[dict[str, Callable[[Mapping[str, Any]], str]]] = {
    "athena": lambda v: f"awsathena://athena.{_value(v, 'region_name')}.amazonaws.com",
    "bigquery": lambda v: "bigquery",
    "clickhouse": _host_and_port("clickhouse"),
    "databricks": lambda v: f"databricks://{_value(v, 'host')}",
    "dremio": _host_and_port("dremio", host=("software_host", "cloud_host")),
    "duckdb": lambda v: f"duckdb://{v.get('path') or ':memory:'}",
    "fabric": _fabric,
    "glue": _glue,
    "greenplum": _host_and_port("postgres", port="5432"),
    "hive": _host_and_port("hive", port="10000"),
    "mysql": _host_and_port("mysql", host=("server", "host"), port="3306"),
    "oracle": _host_and_port("oracle", port="1521"),
    "postgres": _host_and_port("postgres", port="5432"),
    "redshift": _redshift,
    "snowflake": _snowflake,
    "spark": _spark,
    "sqlserver": _host_and_port("mssql", host=("server", "host"), port="1433"),
    "starrocks": _host_and_port("mysql", port="9030"),
    "synapse": _host_and_port("sqlserver", host=("server", "host"), port="1433"),
    "teradata": _host_and_port("teradata", host=("server", "host"), port="1025"),
    "trino": _host_and_port("trino", port="8080"),
}
"""Adapter -> namespace of its datasets."""

_LOWER: Final = frozenset({"databricks", "greenplum", "hive", "postgres", "redshift", "spark"})
_LOWER_QUOTED: Final = frozenset({"databricks", "hive", "redshift", "spark"})
_UPPER: Final = frozenset({"oracle", "snowflake"})
_TWO_PARTS: Final = frozenset({"glue", "hive", "mysql", "spark", "synapse", "teradata"})
_PARTS: Final = re.compile(r'`([^`]+)`|"((?:[^"]|"")+)"|\[([^\]]+)\]|([^.`"\[\]]+)')


JOBS: Final = frozenset(
    {"analysis", "application", "dag", "dashboard", "job", "notebook", "report", "spark_job"}
)
"""Types of declared assets that run, or only read; all others hold data."""


def is_job(node: Node) -> bool:
    """Whether a declared asset is a job, and not a dataset."""
    return node.resource_type == "asset" and node.type in JOBS


def _asset_name(node: Node) -> DatasetName | None:
    """Where its files are, if its source_ref says so; else its id: ``api:stripe`` is stripe of api."""
    if is_job(node):
        return None
    kind, _, name = (node.label or node.name).partition(":")
    return file_dataset(node.url or "") or DatasetName(kind, name or node.name)


class DatasetNames:
    """The names of a project's relations.

    Args:
        project: the artifacts.
        namespace: of its datasets.
        connection: what dbt connects to, as far as it is known.
    """

    def __init__(
        self, project: Project, namespace: str, connection: Connection | None = None
    ) -> None:
        self.namespace = namespace
        self._project = project
        self._adapter = project.metadata.adapter_type or ""
        self._values = connection.values if connection else {}
        self._names: dict[str, DatasetName | None] = {}
        nodes = [n for n in project.nodes.values() if n.resource_type in RELATIONS and n.schema]
        most = Counter((n.database, n.schema) for n in nodes if n.resource_type != "source")
        most = most or Counter((n.database, n.schema) for n in nodes)
        self._default = most.most_common(1)[0][0] if most else (None, None)

    def of(self, unique_id: str) -> DatasetName | None:
        """The dataset that a node is; None where it is none: a test, an ephemeral model.

        A relation that dbt does not know (``dataset.…``) gets what its name leaves out, database and
        schema, from the project's own.
        """
        if unique_id not in self._names:
            self._names[unique_id] = self._name(unique_id)
        return self._names[unique_id]

    def _name(self, unique_id: str) -> DatasetName | None:
        node = self._project.nodes.get(unique_id)
        if node is not None and node.resource_type == "asset":
            return _asset_name(node)
        if node is None or node.resource_type == "dataset":
            if not unique_id.startswith(DATASET_PREFIX):
                return None
            written = self._split(unique_id.removeprefix(DATASET_PREFIX))
            database, schema = self._default
            missing = [self._folded(part, False) for part in (database, schema) if part]
            return self._made([*missing[: max(0, len(missing) + 1 - len(written))], *written])
        if node.resource_type not in RELATIONS or node.is_ephemeral:
            return None
        parts: list[str] = self._split(node.relation_name) if node.relation_name else []
        if len(parts) < 2:
            names = (node.database, node.schema, node.identifier or node.alias or node.name)
            parts = [self._folded(part, True) for part in names if part]
        elif len(parts) == 2 and node.database and self._adapter not in _TWO_PARTS:
            parts = [self._folded(node.database, True), *parts]
        return self._made(parts)

    def _split(self, relation: str) -> list[str]:
        """The parts of a name as it is written in SQL, each as the engine stores it."""
        parts: list[str] = []
        for match in _PARTS.finditer(relation):
            text = match[match.lastindex or 0].replace('""', '"').strip()
            if self._adapter == "bigquery":
                parts += text.split(".")
            elif text:
                parts.append(self._folded(text, match[4] is None))
        return parts

    def _folded(self, part: str, quoted: bool) -> str:
        if self._adapter in _UPPER:
            return part if quoted else part.upper()
        if self._adapter in _LOWER:
            return part if quoted and self._adapter not in _LOWER_QUOTED else part.lower()
        return part

    def _made(self, parts: list[str]) -> DatasetName:
        if self._adapter in _TWO_PARTS:
            parts = parts[-2:]
        if self._adapter == "glue":
            return DatasetName(self.namespace, "/".join(["table", *parts]))
        if self._adapter == "oracle" and (service := self._values.get("service")):
            parts = [str(service), *parts[-2:]]
        return DatasetName(self.namespace, ".".join(parts))

    def locations(self, node: Node) -> list[DatasetName]:
        """Where a relation's files are, as far as the project says: another name of the dataset."""
        texts: list[str] = []
        root = node.config.get("location_root")
        if isinstance(root, str) and root.strip():
            texts.append(f"{root.rstrip('/')}/{node.alias or node.name}")
        external = node.external if isinstance(node.external, dict) else {}
        for value in (
            node.config.get("location"),
            external.get("location"),
            node.meta.get("external_location"),
        ):
            if isinstance(value, str) and "{" not in value and "(" not in value:
                texts.append(value)
        return list(dict.fromkeys(dataset for text in texts if (dataset := file_dataset(text))))
