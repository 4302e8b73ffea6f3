"""What a Spark DataFrame reads, and of which columns its columns are made.

Guarantees: nothing is run, the plan is only analysed (as `df.schema` does), and what is not known is
an error: `PlanGapError` for a plan with a node that `plan_lineage` does not know, or with a relation that has
no name outside Spark (a query over JDBC, data of Python). Names are OpenLineage's, as the listener
openlineage-spark gives them: the place of a table's files, with its name in the catalog as a symlink.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any, Final, NamedTuple

from dbt_ripple.flow.ir import KINDS
from dbt_ripple.graph.lineage_tables import ROWS
from dbt_ripple.openlineage.declared_lineage import ColumnLineage, Dataset, file_dataset
from dbt_ripple.spark.plan_expressions import Deps, PlanGapError
from dbt_ripple.spark.plan_lineage import read_plan

_JDBC: Final = re.compile(r"jdbc:(\w+):(?:\w+:)?//([^/?;]+)/?([^?;]*)")
_ENGINES: Final = {
    "postgresql": ("postgres", "5432", "public"),
    "mysql": ("mysql", "3306", ""),
    "mariadb": ("mysql", "3306", ""),
}
"""Of JDBC's names: the scheme, the default port and the default schema."""


@dataclass(frozen=True)
class DataFrameRelation:
    """Something outside Spark that a plan reads.

    Attributes:
        namespace: and the name, as OpenLineage has it.
        name: likewise.
        columns: with their types.
        table: its namespace and name in the catalog, if it is a table of one.
    """

    namespace: str
    name: str
    columns: dict[str, str]
    table: tuple[str, str] | None = None


@dataclass
class DataFrameLineage:
    """What is known of a DataFrame.

    Attributes:
        relations: by the key that `columns` and `rows` use.
        types: output columns with their types.
        columns: of each output column the columns it comes from, (key, column), by kind (`KINDS`).
        rows: which columns decide which rows there are.
        gap: why columns are not known; empty if they are.
    """

    relations: dict[str, DataFrameRelation] = field(default_factory=dict)
    types: dict[str, str] = field(default_factory=dict)
    columns: dict[str, Deps] = field(default_factory=dict)
    rows: Deps = field(default_factory=dict)
    gap: str = ""


def read_dataframe(df: Any) -> DataFrameLineage:
    """Read the analysed plan of a DataFrame.

    Raises:
        PlanGapError: it has none here (a DataFrame of Spark Connect).
    """
    try:
        plan = df._jdf.queryExecution().analyzed()
    except Exception as error:  # Connect raises its own, and has no JVM
        raise PlanGapError("a DataFrame of Spark Connect does not show its plan") from error
    lineage = DataFrameLineage()
    lineage.types = {f.name: f.dataType.simpleString() for f in df.schema.fields}
    metastore = _metastore(df.sparkSession)
    ids: dict[int, str] = {}
    gaps: list[str] = []
    for plan_node in _leaves(plan):
        if not _is_relation(plan_node):
            continue
        relation = _relation(plan_node, metastore)
        if relation is None:
            gaps.append(f"a relation has no name outside Spark: {_short(plan_node)}")
            continue
        key = f"{relation.namespace} {relation.name}"
        lineage.relations[key] = relation
        ids |= {int(each.exprId().id()): key for each in _each(plan_node.output())}
    try:
        if gaps:
            raise PlanGapError(gaps[0])
        reading = read_plan(json.loads(plan.toJSON()), ids)
    except PlanGapError as error:
        lineage.gap = str(error)
        return lineage
    for name, deps in zip(reading.names, reading.columns, strict=True):
        into = lineage.columns.setdefault(name, {})
        for source, kinds in deps.items():
            into[source] = into.get(source, 0) | kinds
    lineage.rows = reading.rows
    return lineage


class DeclaredOf(NamedTuple):
    """A DataFrame's lineage as it would be declared.

    Attributes:
        output: with the DataFrame's columns.
        gap: why columns are not known; empty if they are.
    """

    inputs: list[Dataset]
    output: Dataset
    columns: list[ColumnLineage]
    gap: str


def declared_of(df: Any, output: Dataset) -> DeclaredOf:
    """What `track` is told of a DataFrame that is written to an output.

    Raises:
        PlanGapError: the DataFrame has no plan here.
    """
    lineage = read_dataframe(df)
    inputs = {
        key: Dataset(each.namespace, each.name, each.columns, each.table)
        for key, each in lineage.relations.items()
    }
    written = replace(output, columns=output.columns or lineage.types)
    columns = [
        ColumnLineage(
            (written, name),
            [
                (inputs[key], None if column == ROWS else column)
                for (key, column), kinds in deps.items()
                if kinds & bit
            ],
            subtype=subtype,
        )
        for name, deps in (*lineage.columns.items(), (None, lineage.rows))
        for bit, _, subtype, _ in KINDS
        if any(kinds & bit for kinds in deps.values())
    ]
    return DeclaredOf([*inputs.values()], written, columns, lineage.gap)


def _each(seq: Any) -> Iterator[Any]:
    """The elements of a sequence of Scala."""
    for position in range(seq.size()):
        yield seq.apply(position)


def _leaves(plan: Any) -> Iterator[Any]:
    """The leaves of a plan and of the subqueries in its expressions."""
    unread = [plan]
    while unread:
        node = unread.pop()
        children = [*_each(node.children())]
        unread += [*children, *_each(node.subqueries())]
        if not children:
            yield node


def _is_relation(plan_node: Any) -> bool:
    """Whether a leaf is data that lies outside Spark."""
    return str(plan_node.nodeName()).startswith(
        ("LogicalRelation", "DataFrameRelation", "HiveTable")
    ) or (
        str(plan_node.getClass().getSimpleName())
        in ("LogicalRelation", "HiveTableRelation", "DataSourceV2Relation")
    )


def _relation(plan_node: Any, metastore: str) -> DataFrameRelation | None:
    columns = {each.name(): each.dataType().simpleString() for each in _each(plan_node.output())}
    kind = str(plan_node.getClass().getSimpleName())
    if kind == "DataSourceV2Relation":
        return _of_catalog(plan_node, columns, metastore)
    table = (
        plan_node.tableMeta() if kind == "HiveTableRelation" else _option(plan_node.catalogTable())
    )
    if table is not None:
        identifier = table.identifier()
        database = _option(identifier.database()) or "default"
        place = _option(table.storage().locationUri())
        name = f"{database}.{identifier.table()}"
        return _at(str(place) if place is not None else "", name, columns, metastore)
    relation = plan_node.relation()
    source = str(relation.getClass().getSimpleName())
    if source == "HadoopFsRelation":
        paths = [str(path) for path in _each(relation.location().rootPaths())]
        return _at(paths[0], "", columns, metastore) if len(paths) == 1 else None
    if source == "JDBCRelation":
        options = relation.jdbcOptions()
        return jdbc_relation(str(options.url()), str(options.tableOrQuery()), columns)
    return None


def _of_catalog(
    plan_node: Any, columns: dict[str, str], metastore: str
) -> DataFrameRelation | None:
    """A table of a catalog of its own (Iceberg, Delta)."""
    identifier = _option(plan_node.identifier())
    if identifier is None:
        return None
    schema = ".".join(str(part) for part in identifier.namespace())
    name = f"{schema}.{identifier.name()}" if schema else str(identifier.name())
    place = plan_node.table().properties().get("location")
    return _at(str(place or ""), name, columns, metastore)


def _at(place: str, name: str, columns: dict[str, str], metastore: str) -> DataFrameRelation | None:
    """A table, or files: called by its place if that is known."""
    dataset = file_dataset(re.sub(r"^s3[an]://", "s3://", place))
    if dataset is None:
        return DataFrameRelation(metastore, name, columns) if name else None
    return DataFrameRelation(*dataset, columns, (metastore, name) if name else None)


def jdbc_relation(url: str, table: str, columns: dict[str, str]) -> DataFrameRelation | None:
    """A table behind JDBC; None for a query, and for a URL that is not understood.

    Example:
        >>> jdbc_relation("jdbc:postgresql://db/shop?user=x", "raw.orders", {})
        DataFrameRelation(namespace='postgres://db:5432', name='shop.raw.orders', columns={}, table=None)
    """
    match = _JDBC.match(url)
    if match is None or not re.fullmatch(r"[\w$.\"`]+", table):
        return None
    engine, place, database = match.groups()
    scheme, port, schema = _ENGINES.get(engine, (engine, "", ""))
    host = place if ":" in place or not port else f"{place}:{port}"
    parts = [part for part in table.replace('"', "").replace("`", "").split(".") if part]
    if len(parts) == 1 and schema:
        parts.insert(0, schema)
    if database and (len(parts) < (3 if schema else 2)):
        parts.insert(0, database)
    return DataFrameRelation(f"{scheme}://{host}", ".".join(parts), columns)


def _metastore(session: Any) -> str:
    """The namespace of the session's tables, as openlineage-spark has it."""
    for setting in ("spark.sql.hive.metastore.uris", "spark.hadoop.hive.metastore.uris"):
        uris = session.conf.get(setting, None) or ""
        if uris:
            return re.sub(r"^thrift://", "hive://", uris.split(",")[0].strip())
    warehouse = str(session.conf.get("spark.sql.warehouse.dir", ""))
    return re.sub(r"^(?:file:)?/+", "file:/", warehouse)


def _option(value: Any) -> Any:
    """What an Option of Scala holds, or None."""
    return value.get() if value.isDefined() else None


def _short(plan_node: Any) -> str:
    return str(plan_node.simpleString(8))[:80]
