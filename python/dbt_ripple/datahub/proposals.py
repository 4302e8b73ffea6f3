"""A project as DataHub's metadata change proposals, made by the classes of acryl-datahub.

What others write, too, is patched and so added to: properties, owners, tags, tags of columns. What only
we know as a whole replaces what was there: lineage, subtypes, a schema all of whose types are known.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Any, Final, TypeAlias

from datahub.emitter.mce_builder import (
    make_data_platform_urn,
    make_dataplatform_instance_urn,
    make_dataset_urn_with_platform_instance,
    make_group_urn,
    make_schema_field_urn,
    make_tag_urn,
    make_user_urn,
)
from datahub.emitter.mcp import MetadataChangeProposalWrapper
from datahub.ingestion.source.sql.sql_types import (
    ATHENA_SQL_TYPES_MAP,
    BIGQUERY_TYPES_MAP,
    POSTGRES_TYPES_MAP,
    SNOWFLAKE_TYPES_MAP,
    SPARK_SQL_TYPES_MAP,
    SQL_SERVER_TYPES_MAP,
    TRINO_SQL_TYPES_MAP,
    resolve_sql_type,
)
from datahub.metadata.schema_classes import (
    ChangeAuditStampsClass,
    DashboardInfoClass,
    DataPlatformInstanceClass,
    DatasetLineageTypeClass,
    FineGrainedLineageClass,
    FineGrainedLineageDownstreamTypeClass,
    FineGrainedLineageUpstreamTypeClass,
    InputFieldClass,
    InputFieldsClass,
    MetadataChangeProposalClass,
    NullTypeClass,
    OtherSchemaClass,
    OwnerClass,
    OwnershipTypeClass,
    SchemaFieldClass,
    SchemaFieldDataTypeClass,
    SchemaMetadataClass,
    StatusClass,
    SubTypesClass,
    TagAssociationClass,
    TimeTypeClass,
    UpstreamClass,
    UpstreamLineageClass,
)
from datahub.metadata.urns import DashboardUrn, TagUrn
from datahub.specific.dashboard import DashboardPatchBuilder
from datahub.specific.dataset import DatasetPatchBuilder

from dbt_ripple.artifacts import Node
from dbt_ripple.datahub.dataset_urns import DatasetId, DatasetIds
from dbt_ripple.openlineage.column_lineage import DatasetDependency, LineageFinder, NodeLineage
from dbt_ripple.openlineage.dataset_names import is_job
from dbt_ripple.openlineage.project_facts import ProjectFacts

Proposal: TypeAlias = MetadataChangeProposalWrapper | MetadataChangeProposalClass

DBT: Final = "dbt"
_DATASETS: Final = ("model", "seed", "snapshot", "source", "asset", "dataset")
"""What is a dataset; where two nodes are the same one, it is told of as the first of these."""
_BUILT: Final = frozenset({"model", "seed", "snapshot"})
_REPORTS: Final = frozenset({"dashboard", "report"})


class DatasetUrns:
    """The URNs of a project's datasets and of their columns.

    Args:
        ids: what they are made of.
        facts: say how columns are written.
        env: DataHub's environment, for example ``PROD``.
    """

    def __init__(self, ids: DatasetIds, facts: ProjectFacts, env: str) -> None:
        self.ids = ids
        self._facts = facts
        self._env = env
        self._columns: dict[str, dict[str, str]] = {}

    def of(self, unique_id: str) -> str | None:
        """The URN of a dataset; None for what is none."""
        dataset = self.ids.of(unique_id)
        return self._urn(dataset) if dataset else None

    def _urn(self, dataset: DatasetId) -> str:
        urn: str = make_dataset_urn_with_platform_instance(
            dataset.platform, dataset.name, dataset.instance, self._env
        )
        return urn

    def field(self, unique_id: str, column: str) -> str:
        """How a column is written in DataHub, however its readers write it."""
        if unique_id not in self._columns:
            self._columns[unique_id] = self._facts.column_names(unique_id)
        return self.ids.cased(self._columns[unique_id].get(column.lower(), column))

    def field_urn(self, unique_id: str, column: str) -> str | None:
        """The URN of a column."""
        urn = self.of(unique_id)
        return make_schema_field_urn(urn, self.field(unique_id, column)) if urn else None


class ProjectProposals:
    """The metadata of a project's relations and exposures.

    Args:
        facts: of the project.
        lineage: of its nodes.
        urns: of its datasets.

    Attributes:
        untyped: the relations, by unique_id, whose schema was left out because the type of a column
            is not known; filled by `all`.
    """

    def __init__(self, facts: ProjectFacts, lineage: LineageFinder, urns: DatasetUrns) -> None:
        self._facts = facts
        self._project = facts.project
        self._lineage = lineage
        self._urns = urns
        self._tags: dict[str, None] = {}
        self.untyped: list[str] = []

    def all(self) -> Iterator[Proposal]:
        """Datasets, then dashboards, then the tags that they have."""
        proposed: set[str] = set()
        for node in sorted(
            (n for n in self._project.nodes.values() if n.resource_type in _DATASETS),
            key=lambda node: _DATASETS.index(node.resource_type),
        ):
            urn = self._urns.of(node.unique_id)
            if urn is not None and urn not in proposed:
                proposed.add(urn)
                yield from self._dataset(node, urn)
        for node in self._project.nodes.values():
            if node.resource_type == "exposure" or (is_job(node) and node.type in _REPORTS):
                yield from self._dashboard(node)
        for tag in self._tags:
            yield proposal(tag, TagUrn.from_string(tag).to_key_aspect())

    # --- datasets ------------------------------------------------------------------------------

    def _dataset(self, node: Node, urn: str) -> Iterator[Proposal]:
        unique_id = node.unique_id
        patch = DatasetPatchBuilder(urn)
        patch.set_display_name(node.alias or node.identifier or node.label or node.name)
        if node.description:
            patch.set_description(node.description)
        for key, value in self._properties(node).items():
            patch.add_custom_property(key, value)
        for owner in self._owners(node):
            patch.add_owner(owner)
        for tag in self._tags_of(node):
            patch.add_tag(tag)
        for column, kind in self._facts.pii.get(unique_id, ()):
            patch.for_field(self._urns.field(unique_id, column)).add_tag(self._tag(f"pii:{kind}"))
        yield from patch.build()
        yield proposal(urn, StatusClass(removed=False))
        dataset = self._urns.ids.of(unique_id)
        if dataset is not None and dataset.instance:
            yield proposal(urn, _instance(dataset.platform, dataset.instance))
        if node.resource_type in _BUILT:
            what = self._facts.dataset_type(node)
            names = [what[0].capitalize()] if what else []
            yield proposal(urn, SubTypesClass([*names, node.resource_type.capitalize()]))
        if (schema := self._schema(node, dataset)) is not None:
            yield proposal(urn, schema)
        of = self._lineage.of(unique_id)
        if of.parents:
            yield proposal(urn, self._upstreams(node, urn, of))

    def _properties(self, node: Node) -> dict[str, str]:
        properties = {
            "dbt_unique_id": node.unique_id if node.resource_type != "asset" else None,
            "dbt_package_name": node.package_name,
            "dbt_file_path": node.original_file_path,
            "materialization": node.materialized,
            "language": node.language,
            "access": node.access,
            "asset": node.label if node.resource_type == "asset" else None,
        }
        return {key: value for key, value in properties.items() if value}

    def _schema(self, node: Node, dataset: DatasetId | None) -> SchemaMetadataClass | None:
        """Its columns, if all are known with their types: less would replace what DataHub has of it.

        A yml file may name a few of the columns that a relation has.
        """
        columns = self._facts.columns(node.unique_id)
        is_whole = self._facts.has_all_columns(node) and all(column.type for column in columns)
        if dataset is None or not columns or not is_whole:
            if node.resource_type in _BUILT | {"source"}:
                self.untyped.append(node.unique_id)
            return None
        fields = [
            SchemaFieldClass(
                fieldPath=self._urns.field(node.unique_id, column.name),
                type=field_type(column.type or "", dataset.platform),
                nativeDataType=column.type or "",
                nullable=True,
                description=column.description,
            )
            for column in columns
        ]
        return SchemaMetadataClass(
            schemaName=dataset.name,
            platform=make_data_platform_urn(dataset.platform),
            version=0,
            hash="",
            platformSchema=OtherSchemaClass(rawSchema=""),
            fields=fields,
        )

    # --- lineage -------------------------------------------------------------------------------

    def _upstreams(self, node: Node, urn: str, of: NodeLineage) -> UpstreamLineageClass:
        is_view = (self._facts.dataset_type(node) or ("",))[0] == "VIEW"
        kind = DatasetLineageTypeClass.VIEW if is_view else DatasetLineageTypeClass.TRANSFORMED
        rows: dict[str, dict[str, None]] = {}
        for dependency in of.rows:
            parent = self._urns.of(dependency.parent_id)
            if parent is not None and dependency.column is not None:
                column = self._urns.field(dependency.parent_id, dependency.column)
                how = " ".join(dict.fromkeys(way.subtype for way in dependency.kinds))
                rows.setdefault(parent, {})[f"{column} ({how})"] = None
        parents = [p for p in dict.fromkeys(map(self._urns.of, of.parents)) if p and p != urn]
        upstreams = [
            UpstreamClass(
                dataset=parent,
                type=kind,
                properties={"rows_depend_on": ", ".join(rows[parent])} if parent in rows else None,
            )
            for parent in parents
        ]
        fine = [
            fine_grained
            for column, dependencies in of.columns.items()
            for fine_grained in self._fine_grained(
                node.unique_id, column, dependencies, of.expressions.get(column)
            )
        ]
        return UpstreamLineageClass(upstreams=upstreams, fineGrainedLineages=fine or None)

    def _fine_grained(
        self,
        unique_id: str,
        column: str,
        dependencies: Iterable[DatasetDependency],
        sql: str | None,
    ) -> Iterator[FineGrainedLineageClass]:
        """What a column depends on, one entry for each way in which it does; a count of rows on a dataset."""
        target = self._urns.field_urn(unique_id, column)
        by_kind: dict[tuple[str, str], list[str]] = {}
        for parent, parent_column, kinds in dependencies:
            if parent_column is None:
                source = self._urns.of(parent)
                what = FineGrainedLineageUpstreamTypeClass.DATASET
            else:
                source = self._urns.field_urn(parent, parent_column)
                what = FineGrainedLineageUpstreamTypeClass.FIELD_SET
            if source is not None and target is not None and source != target:
                how = ", ".join(
                    f"{kind.type} {kind.subtype}" + (" (masking)" if kind.masking else "")
                    for kind in kinds
                )
                by_kind.setdefault((what, how), []).append(source)
        for (what, how), sources in by_kind.items():
            yield FineGrainedLineageClass(
                upstreamType=what,
                upstreams=list(dict.fromkeys(sources)),
                downstreamType=FineGrainedLineageDownstreamTypeClass.FIELD,
                downstreams=[target] if target else [],
                transformOperation=f"{how}: {sql}" if sql else how,
                confidenceScore=1.0,
            )

    # --- dashboards ----------------------------------------------------------------------------

    def _dashboard(self, node: Node) -> Iterator[Proposal]:
        """An exposure, whose URN is that of DataHub's own dbt source, or a declared dashboard."""
        if node.resource_type == "exposure":
            platform, name = DBT, node.unique_id
        else:
            platform, _, name = (node.label or node.name).partition(":")
        urn = DashboardUrn.create_from_ids(platform=platform, name=name or node.name).urn()
        of = self._lineage.of(node.unique_id)
        datasets = [p for p in dict.fromkeys(map(self._urns.of, of.parents)) if p]
        title = node.label if node.resource_type == "exposure" else None
        properties = {
            **self._properties(node),
            "exposure_type": node.type,
            "maturity": node.maturity,
        }
        yield proposal(
            urn,
            DashboardInfoClass(
                title=title or node.name,
                description=node.description,
                lastModified=ChangeAuditStampsClass(),
                customProperties={key: value for key, value in properties.items() if value},
                externalUrl=node.url,
                datasets=datasets,
            ),
        )
        yield proposal(urn, StatusClass(removed=False))
        yield proposal(
            urn, SubTypesClass([(node.type or "dashboard").replace("_", " ").capitalize()])
        )
        fields = {
            field: None
            for dependencies in (*of.columns.values(), of.rows)
            for dependency in dependencies
            if dependency.column
            and (field := self._urns.field_urn(dependency.parent_id, dependency.column))
        }
        if fields:
            yield proposal(urn, InputFieldsClass([InputFieldClass(field) for field in fields]))
        patch = DashboardPatchBuilder(urn)
        for owner in self._owners(node):
            patch.add_owner(owner)
        for tag in self._tags_of(node):
            patch.add_tag(tag)
        yield from patch.build()

    # --- owners and tags -----------------------------------------------------------------------

    def _owners(self, node: Node) -> list[OwnerClass]:
        """A person, if there is an address; else a group of that name."""
        names = [name for name, _ in self._facts.owners(node)]
        people = [name for name in names if "@" in name]
        urns = [make_user_urn(name) for name in people[:1]] or [
            make_group_urn(n) for n in names[:1]
        ]
        return [OwnerClass(urn, OwnershipTypeClass.TECHNICAL_OWNER) for urn in urns]

    def _tags_of(self, node: Node) -> list[TagAssociationClass]:
        """The tags of dbt as DataHub's dbt source writes them (``dbt:nightly``), and ours."""
        own = dict.fromkeys(node.tags)
        return [
            self._tag(
                f"{DBT}:{key}"
                if value == "true" and key in own
                else key
                if value == "true"
                else f"{key}:{value}"
            )
            for key, value in self._facts.tags(node)
            if key.strip()  # DataHub has no tag without a name
        ]

    def _tag(self, name: str) -> TagAssociationClass:
        urn = make_tag_urn(name)
        self._tags[urn] = None
        return TagAssociationClass(tag=urn)


_TYPES: Final = {
    "athena": ATHENA_SQL_TYPES_MAP,
    "bigquery": BIGQUERY_TYPES_MAP,
    "databricks": SPARK_SQL_TYPES_MAP,
    "hive": SPARK_SQL_TYPES_MAP,
    "mssql": SQL_SERVER_TYPES_MAP,
    "postgres": POSTGRES_TYPES_MAP,
    "redshift": POSTGRES_TYPES_MAP,
    "snowflake": SNOWFLAKE_TYPES_MAP,
    "trino": TRINO_SQL_TYPES_MAP,
}
"""Platform -> DataHub's table of its types."""


def field_type(native: str, platform: str) -> SchemaFieldDataTypeClass:
    """DataHub's type of an SQL type, by its own tables; NullType for what these do not have.

    The table of the platform goes before the one of all platforms, in which the last one that was added
    counts: there ``timestamp`` is SQL Server's, which is a number of a row and no time.

    Example:
        >>> type(field_type("DECIMAL(10, 2)", "duckdb").type).__name__
        'NumberTypeClass'
        >>> type(field_type("timestamp", "databricks").type).__name__
        'TimeTypeClass'
        >>> type(field_type("timestamp", "mssql").type).__name__
        'BytesTypeClass'
    """
    plain = re.sub(r"\s*[(<].*", "", native).strip()
    spelled = (native, native.lower(), native.upper(), plain, plain.lower(), plain.upper())
    own = _TYPES.get(platform, {})
    for text in spelled:
        if (kind := own.get(text)) is not None:
            return SchemaFieldDataTypeClass(type=kind())
    if plain.lower().startswith("timestamp"):
        return SchemaFieldDataTypeClass(type=TimeTypeClass())
    for text in spelled:
        if (data_type := resolve_sql_type(text, platform)) is not None:
            return SchemaFieldDataTypeClass(type=data_type)
    return SchemaFieldDataTypeClass(type=NullTypeClass())


def _instance(platform: str, instance: str) -> DataPlatformInstanceClass:
    return DataPlatformInstanceClass(
        platform=make_data_platform_urn(platform),
        instance=make_dataplatform_instance_urn(platform, instance),
    )


def proposal(urn: str, aspect: Any) -> MetadataChangeProposalWrapper:
    """That an entity has an aspect.

    Args:
        urn: of the entity.
        aspect: replaces what is there.
    """
    return MetadataChangeProposalWrapper(entityUrn=urn, aspect=aspect)
