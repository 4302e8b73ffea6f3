"""What a relation is called in DataHub: the platform and the name that its ingestion of that warehouse gives it.

The names are those of the sources of acryl-datahub in their default configuration, so that what we tell
joins what they have told: two parts where they leave the database out, and lower case on Snowflake.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from dbt_ripple.artifacts import Project
from dbt_ripple.errors import RippleError
from dbt_ripple.openlineage.dataset_names import DatasetNames

OPTION: Final = "--platform"

PLATFORMS: Final = {
    "athena": "athena",
    "bigquery": "bigquery",
    "clickhouse": "clickhouse",
    "databricks": "databricks",
    "duckdb": "duckdb",
    "glue": "glue",
    "hive": "hive",
    "mysql": "mysql",
    "oracle": "oracle",
    "postgres": "postgres",
    "redshift": "redshift",
    "snowflake": "snowflake",
    "spark": "hive",
    "sqlserver": "mssql",
    "teradata": "teradata",
    "trino": "trino",
}
"""Adapter -> platform. Tables of Spark are those of its metastore, which DataHub knows as Hive's."""

_TWO_PARTS: Final = frozenset(
    {"athena", "clickhouse", "glue", "hive", "mariadb", "mysql", "oracle", "teradata"}
)
_LOWER: Final = frozenset({"snowflake"})
_SCHEMES: Final = {"s3a": "s3", "s3n": "s3", "gs": "gcs"}


class DatasetId(NamedTuple):
    """What the URN of a dataset is made of, beside the environment."""

    platform: str
    name: str
    instance: str | None


class DatasetIds:
    """The names of a project's relations in DataHub.

    Args:
        project: the artifacts.
        platform: of its warehouse; by default that of the adapter.
        instance: of the platform, if the company has several.
        lowercase: whether names are written in lower case; by default as DataHub's source of the
            platform does.

    Raises:
        RippleError: no platform is given, and it is not known of the adapter.
    """

    def __init__(
        self,
        project: Project,
        platform: str | None = None,
        instance: str | None = None,
        lowercase: bool | None = None,
    ) -> None:
        adapter = project.metadata.adapter_type or ""
        named_platform = platform or PLATFORMS.get(adapter)
        if named_platform is None:
            raise RippleError(
                f"DataHub's platform of the adapter {adapter or '(none)'} is not known",
                fix=f"give it by {OPTION}, as the recipe of its ingestion does",
            )
        self.platform = named_platform
        self.instance = instance
        self.is_lower = named_platform in _LOWER if lowercase is None else lowercase
        self._names = DatasetNames(project, "")

    def of(self, unique_id: str) -> DatasetId | None:
        """The dataset that a node is; None where it is none: a test, an ephemeral model, a job."""
        name = self._names.of(unique_id)
        if name is None:
            return None
        if name.namespace:  # of a declared asset: a place of files, or its id
            scheme, _, host = name.namespace.partition("://")
            path = f"{host}/{name.name}" if host else name.name
            return DatasetId(_SCHEMES.get(scheme, scheme), path, None)
        written = name.name
        if self.platform == "glue":
            written = written.removeprefix("table/").replace("/", ".")
        if self.platform in _TWO_PARTS:
            written = ".".join(written.split(".")[-2:])
        return DatasetId(self.platform, self.cased(written), self.instance)

    def cased(self, name: str) -> str:
        """The name of a relation or a column of the warehouse."""
        return name.lower() if self.is_lower else name
