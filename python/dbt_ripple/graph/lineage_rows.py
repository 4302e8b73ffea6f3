"""A project and its analysis as rows of plain types, one list a table of :mod:`graph.lineage_tables`.

What is guaranteed, so that the dbt package's tests can hold:

* keys are unique: a node, a column (names compared without case), an edge, a column edge of one
  kind, a pair of the closure;
* no edge is an orphan: every node and column an edge names has its row. A relation that the SQL
  reads and dbt does not know is a node of resource type ``dataset``;
* node edges and the closure have no cycle and no node that is its own parent, even where an
  incremental model reads itself (its column edges do);
* the same artifacts and the same engine give the same rows under the same ``snapshot_id``, in the
  same order; only ``loaded_at`` differs.
"""

from __future__ import annotations

import hashlib
import itertools
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

import msgspec

from dbt_ripple import __version__
from dbt_ripple.artifacts import (
    Column,
    Node,
    Project,
    asset_type,
    column_pii,
    contract_version,
    criticality,
    declassified,
    domain,
    has_pii,
    has_tested_key,
    is_canonical,
    is_certified,
    is_public,
    owner,
    owner_channel,
    owner_email,
    owner_name,
)
from dbt_ripple.flow.definitions import is_computed, is_whole
from dbt_ripple.flow.determinism import is_repeatable
from dbt_ripple.flow.identifiers import dialect_of
from dbt_ripple.graph.git import git_text
from dbt_ripple.graph.lineage import Analysis, NodeAnalysis, Own, RelationOrder, column_names
from dbt_ripple.graph.lineage_tables import (
    ROWS,
    TABLES,
    ColumnEdgeRow,
    ColumnRow,
    EdgeRow,
    NodeClosureRow,
    NodeRow,
    PiiColumnRow,
    RunResultRow,
    SnapshotRow,
    TestColumnRow,
)
from dbt_ripple.graph.linking.data_tests import outcome_fingerprints
from dbt_ripple.graph.linking.project_context import ProjectContext
from dbt_ripple.graph.pii import BUILT, SEPARATOR, pii_columns
from dbt_ripple.graph.relations import RELATIONS
from dbt_ripple.graph.traversal import closure, reach

MAX_CLOSURE: Final = 5_000_000
"""Pairs of the node closure above which it is cut at a depth: a dense graph of 10,000 nodes has 31
million, and nobody reads them."""

DATASET: Final = "dataset"
"""Resource type of a relation that is read and that dbt does not know."""

_NO_LINEAGE: Final = frozenset({"operation"})  # on-run hooks: no relation, nobody depends on them
_CHECKS: Final = frozenset({"test", "unit_test"})
# catalog.json on Spark has the names of printSchema.
_SQL_TYPES: Final = {"long": "bigint", "integer": "int", "short": "smallint", "byte": "tinyint"}
_NESTED: Final = frozenset({"struct", "array", "map"})


@dataclass(frozen=True, slots=True)
class LineageSnapshot:
    """The rows of one load.

    Attributes:
        snapshot_id: what all of them carry.
        rows: by table, in the order of :data:`~dbt_ripple.graph.lineage_tables.TABLES`.
        closure_depth: how deep ``node_closure`` goes where it was cut; None where it is whole.
    """

    snapshot_id: str
    rows: dict[str, list[msgspec.Struct]]
    closure_depth: int | None


def snapshot_id(project: Project) -> str:
    """The id of what a load of these artifacts by this version of dbt-ripple holds."""
    return hashlib.sha256(f"{__version__}\n{project.digest}".encode()).hexdigest()[:32]


def build_rows(
    project: Project,
    analysis: Analysis,
    *,
    git_sha: str | None = None,
    target_name: str | None = None,
    loaded_at: datetime | None = None,
    max_closure: int = MAX_CLOSURE,
    repeatable: bool = True,
) -> LineageSnapshot:
    """All rows of one load.

    Args:
        project: the artifacts.
        analysis: what was seen in them.
        git_sha: the commit of the project, where it is known (see :func:`git_commit`).
        target_name: dbt's target; by default the one of the command that wrote run_results.json.
        loaded_at: the moment of the load; now by default.
        max_closure: pairs of the node closure above which it is cut at the deepest depth that fits; with 0
            nothing of it is computed.
        repeatable: whether to find out `is_repeatable` of columns, which parses their expressions.

    Returns:
        The rows. ``node_closure`` covers everything but tests and unit tests: nothing lies
        downstream of them.
    """
    id_ = snapshot_id(project)
    nodes = {
        unique_id: node
        for unique_id, node in project.nodes.items()
        if node.resource_type not in _NO_LINEAGE
    }
    everything = [*nodes, *(unique_id for unique_id in analysis.nodes if unique_id not in nodes)]
    names = {
        unique_id: column_names(
            nodes.get(unique_id), analysis.nodes.get(unique_id), project.catalog.get(unique_id, ())
        )
        for unique_id in everything
    }

    def column(unique_id: str, name: str) -> str:
        """The column as its own row spells it; one that nobody else knows of gets a row too."""
        return name if name == ROWS else names[unique_id].setdefault(name.lower(), name)

    column_edges = _column_edge_rows(id_, analysis, names, column)
    test_columns = [
        TestColumnRow(id_, *read)
        for read in dict.fromkeys(
            (test, unique_id, column(unique_id, name))
            for test, unique_id, name in analysis.test_columns
            if test in names and unique_id in names
        )
    ]
    children = _children(project, nodes, analysis, column_edges)
    parents: dict[str, list[str]] = {i: [] for i in everything if not _is_check(nodes.get(i))}
    for parent, below in children.items():
        for child in below:
            if parent in parents and child in parents:
                parents[child].append(parent)
    closure_rows, depth = _closure_rows(id_, parents, max_closure)
    repeats = _repeatable(project, analysis) if repeatable else {}
    # As dbt has it: hooks that ask for all nodes do not see the assets, and no asset changes a test.
    context = ProjectContext(project.of_dbt or project)
    keys = _relation_keys(context)
    outcomes = [
        outcome_fingerprints(context, tests) for tests in (analysis.tests, analysis.typed_tests)
    ]
    rows: dict[str, list[msgspec.Struct]] = {
        "nodes": [
            _node_row(
                id_=id_,
                unique_id=unique_id,
                node=nodes.get(unique_id),
                seen=analysis.nodes.get(unique_id),
                project=project,
                outcomes=[of_tests.get(unique_id) for of_tests in outcomes],
                orders_seen=analysis.orders_seen.get(unique_id),
                order=analysis.orders.get(unique_id),
                own=analysis.own.get(unique_id),
                relation_key=keys.get(unique_id),
            )
            for unique_id in everything
        ],
        "columns": [
            row
            for unique_id in everything
            for row in _column_rows(
                id_=id_,
                unique_id=unique_id,
                node=nodes.get(unique_id),
                seen=analysis.nodes.get(unique_id),
                own=analysis.own.get(unique_id),
                repeatable=repeats,
                project=project,
                names=names[unique_id],
            )
        ],
        "edges": [
            EdgeRow(id_, parent, child) for parent, below in children.items() for child in below
        ],
        "column_edges": list(column_edges),
        "test_columns": list(test_columns),
        "run_results": list(_run_result_rows(id_, project)),
        "node_closure": list(closure_rows),
        "pii_columns": list(_pii_rows(id_, project, analysis, names)),
        "snapshots": [
            SnapshotRow(
                snapshot_id=id_,
                project_name=project.name,
                dbt_version=project.metadata.dbt_version,
                dbt_schema_version=project.metadata.dbt_schema_version or None,
                adapter_type=project.metadata.adapter_type,
                ripple_version=__version__,
                invocation_id=project.metadata.invocation_id,
                generated_at=project.metadata.generated_at,
                loaded_at=loaded_at or datetime.now(UTC),
                git_sha=git_sha,
                target_name=target_name or _text(project.run_args.get("target")),
            )
        ],
    }
    return LineageSnapshot(id_, {table: rows[table] for table in TABLES}, depth)


def _column_edge_rows(
    id_: str,
    analysis: Analysis,
    names: Mapping[str, Mapping[str, str]],
    column: Callable[[str, str], str],
) -> list[ColumnEdgeRow]:
    """Each edge once, under the names that `column` gives its ends."""
    edges = (
        edge._replace(
            parent_column=column(edge.parent_id, edge.parent_column),
            child_column=column(edge.child_id, edge.child_column),
        )
        for edge in analysis.edges
        if edge.parent_id in names and edge.child_id in names
    )
    return [ColumnEdgeRow(id_, *edge) for edge in dict.fromkeys(edges)]


def _run_result_rows(id_: str, project: Project) -> Iterator[RunResultRow]:
    for result in sorted(project.executed, key=lambda result: result.unique_id):
        yield RunResultRow(
            snapshot_id=id_,
            invocation_id=result.invocation_id,
            unique_id=result.unique_id,
            status=result.status,
            execution_time=result.execution_time,
            started_at=result.started_at,
            completed_at=result.completed_at,
            rows_affected=result.rows_affected,
            failures=result.failures,
            message=result.message,
        )


def _pii_rows(
    id_: str, project: Project, analysis: Analysis, names: Mapping[str, Mapping[str, str]]
) -> Iterator[PiiColumnRow]:
    for pii_column in pii_columns(project, analysis):
        column = pii_column.column
        yield PiiColumnRow(
            snapshot_id=id_,
            unique_id=pii_column.unique_id,
            column_name=names[pii_column.unique_id].get(column.lower(), column),
            pii=pii_column.pii,
            origin=pii_column.origin,
            reason=pii_column.reason,
            source_id=pii_column.source_id,
            source_column=pii_column.source_column,
            path=SEPARATOR.join(pii_column.path),
        )


def git_commit(folder: Path) -> str | None:
    """The commit checked out where a project lives; None where there is no git or no repository."""
    commit = git_text(folder, "rev-parse", "--verify", "HEAD") or ""
    return commit if re.fullmatch(r"[0-9a-f]{40,64}", commit) else None


def _children(
    project: Project,
    nodes: Mapping[str, Node],
    analysis: Analysis,
    column_edges: Iterable[ColumnEdgeRow],
) -> dict[str, list[str]]:
    """The direct children of every node: dbt's, and those only the SQL tells of.

    The latter are relations dbt does not know and names written without ``ref``. One that would
    close a cycle is left out: it reads what another run built, and dbt's order stands.
    """
    children: dict[str, list[str]] = {
        unique_id: [
            child
            for child in project.children.get(unique_id, ())
            if child in nodes and child != unique_id
        ]
        for unique_id in [*nodes, *(i for i in analysis.nodes if i not in nodes)]
    }
    for parent, child in dict.fromkeys((edge.parent_id, edge.child_id) for edge in column_edges):
        if child in children[parent] or child == parent:
            continue
        if parent not in reach(child, children):
            children[parent].append(child)
    return children


def _closure_rows(
    id_: str, parents: Mapping[str, list[str]], limit: int
) -> tuple[list[NodeClosureRow], int | None]:
    """All pairs of the closure, or those of the depths that fit; then the deepest of these too."""
    rows: list[NodeClosureRow] = []
    if not limit:
        return rows, 0
    level = 0  # of the pairs in `rows` from `level_start` on
    level_start = 0
    for batch in closure(parents):
        ancestors, descendants, depths = (column.to_pylist() for column in batch.columns)
        if depths[0] != level:
            level, level_start = depths[0], len(rows)
        if len(rows) + len(depths) > limit:
            del rows[level_start:]
            return rows, max(level - 1, 0)
        rows += map(NodeClosureRow, itertools.repeat(id_), ancestors, descendants, depths)
    return rows, None


def _node_row(
    id_: str,
    unique_id: str,
    node: Node | None,
    seen: NodeAnalysis | None,
    project: Project,
    outcomes: Sequence[str | None],
    orders_seen: str | None,
    order: RelationOrder | None,
    own: Own | None,
    relation_key: str | None,
) -> NodeRow:
    status, reason, fingerprint = "leaf", None, None
    if seen is not None:
        status, fingerprint = seen.status, seen.rows_fingerprint or None
        reason = seen.reason.message if seen.reason else None
    if node is None:
        name = unique_id.rpartition(".")[2]
        return NodeRow(
            snapshot_id=id_,
            unique_id=unique_id,
            name=name,
            resource_type=DATASET,
            asset_type="table",
            package_name=None,
            path=None,
            relation_name=unique_id.partition(".")[2] or None,
            materialized=None,
            language=None,
            description=None,
            owner=None,
            owner_name=None,
            owner_email=None,
            owner_channel=None,
            domain=None,
            group_name=None,
            access=None,
            contract_version=None,
            contract_enforced=False,
            criticality=None,
            certified=False,
            canonical=False,
            pii=False,
            public=False,
            key_tested=None,
            tags="",
            checksum=None,
            rows_fingerprint=fingerprint,
            analysis_status=status,
            analysis_reason=reason,
            test_fingerprint=None,
            own_rows_fingerprint=None,
        )
    checksum = node.checksum
    return NodeRow(
        snapshot_id=id_,
        unique_id=unique_id,
        name=node.name,
        resource_type=node.resource_type,
        asset_type=asset_type(node),
        package_name=node.package_name or None,
        path=node.original_file_path or None,
        relation_name=node.relation_name,
        materialized=node.materialized,
        language=node.language,
        description=node.description or None,
        owner=owner(node, project),
        owner_name=owner_name(node, project),
        owner_email=owner_email(node, project),
        owner_channel=owner_channel(node, project),
        domain=domain(node, project),
        group_name=node.group,
        access=node.access,
        contract_version=contract_version(node),
        contract_enforced=node.contract_enforced,
        criticality=criticality(node),
        certified=is_certified(node),
        canonical=is_canonical(node),
        pii=has_pii(node),
        public=is_public(node),
        key_tested=has_tested_key(node, project) if node.resource_type in BUILT else None,
        tags=",".join(node.tags),
        checksum=_text(checksum.get("checksum") if isinstance(checksum, dict) else checksum),
        rows_fingerprint=fingerprint,
        analysis_status=status,
        analysis_reason=reason,
        test_fingerprint=outcomes[0],
        own_rows_fingerprint=own.rows if own else None,
        relation_key=relation_key,
        label=node.label or None,
        typed_fingerprint=outcomes[1],
        orders_seen=orders_seen,
        above_fingerprint=order.above if order else None,
        order_fingerprint=(order.order or None) if order else None,
        layout_fingerprint=(order.layout or None) if order else None,
    )


def _relation_keys(context: ProjectContext) -> dict[str, str]:
    """What the relations are called, folded as their adapter does, by unique_id."""
    names = context.names
    return {
        unique_id: keys[0]
        for unique_id, node in context.project.nodes.items()
        if node.resource_type in RELATIONS
        and not node.is_ephemeral
        and unique_id not in names.canonical
        and (keys := names.keys_of(node))
    }


def _repeatable(project: Project, analysis: Analysis) -> dict[tuple[str, str], bool]:
    """Whether columns have the same values whenever what they read has.

    Only of computed columns whose fingerprint another model's column has, too; by unique_id and
    lower-case name.
    """
    dialect = dialect_of(project.metadata.adapter_type)
    alike: dict[str, list[tuple[str, str, str]]] = {}
    for unique_id, seen in analysis.nodes.items():
        node = project.nodes.get(unique_id)
        if node is None or node.resource_type != "model" or seen.status != "analysed":
            continue
        columns = zip(seen.columns, seen.fingerprints, seen.expressions, strict=True)
        for name, fingerprint, text in columns:
            if text and is_computed(text):
                alike.setdefault(fingerprint, []).append((unique_id, name.lower(), text))
    return {
        (unique_id, name): is_whole(text) and is_repeatable(text, dialect)
        for columns in alike.values()
        if len({unique_id for unique_id, _, _ in columns}) > 1
        for unique_id, name, text in columns
    }


def _column_rows(
    id_: str,
    unique_id: str,
    node: Node | None,
    seen: NodeAnalysis | None,
    own: Own | None,
    repeatable: Mapping[tuple[str, str], bool],
    project: Project,
    names: Mapping[str, str],
) -> Iterator[ColumnRow]:
    """The rows of a node's columns; ``names`` has them in order, by their name in lower case."""
    analysed = seen.columns if seen else []
    catalog = {column.name.lower(): column for column in project.catalog.get(unique_id, ())}
    declared = {name.lower(): column for name, column in (node.columns if node else {}).items()}
    fingerprints = dict(zip(_lowered(analysed), seen.fingerprints, strict=False)) if seen else {}
    expressions = dict(zip(_lowered(analysed), seen.expressions, strict=False)) if seen else {}
    for position, (key, name) in enumerate(names.items(), start=1):
        catalog_column = catalog.get(key)
        declared_column = declared.get(key)
        yield ColumnRow(
            snapshot_id=id_,
            unique_id=unique_id,
            column_name=name,
            position=position,
            data_type=data_type_of(
                declared_column, catalog_column.type if catalog_column else None
            ),
            description=(declared_column.description if declared_column else "")
            or (catalog_column.comment if catalog_column else "")
            or None,
            pii=column_pii(declared_column) if declared_column else None,
            fingerprint=fingerprints.get(key) or None,
            expression=expressions.get(key),
            own_fingerprint=own.columns.get(key) if own else None,
            is_repeatable=repeatable.get((unique_id, key)),
            pii_reason=declassified(declared_column) if declared_column else None,
        )


def data_type_of(declared: Column | None, catalog_type: str | None) -> str | None:
    """A column's SQL type: the warehouse's word, unless that only says ``struct`` and the like."""
    data_type = declared.data_type if declared else None
    if not catalog_type or (catalog_type.lower() in _NESTED and data_type):
        return data_type
    return _SQL_TYPES.get(catalog_type.lower(), catalog_type)


def _lowered(names: Iterable[str]) -> list[str]:
    return [name.lower() for name in names]


def _is_check(node: Node | None) -> bool:
    return node is not None and node.resource_type in _CHECKS


def _text(value: object) -> str | None:
    return str(value) if value else None
