"""The result of analysing a project: every node's columns, fingerprints and lineage edges."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

from dbt_ripple.artifacts import CatalogColumn, Node
from dbt_ripple.reasons import Code, Reason

Status = Literal["analysed", "opaque", "broken", "leaf"]
"""How well a node was seen.

* ``analysed``: its query was followed column by column.
* ``opaque``: it could not be analysed; every column depends on everything its parents hold.
* ``broken``: it reads a column that does not exist (or is ambiguous); the reason names it.
* ``leaf``: it has no query (source, seed, exposure, ...).
"""


class ColumnEdge(NamedTuple):
    """One dependency between a column of a node and a column of a direct child.

    ``*rows*`` (:data:`dbt_ripple.graph.lineage_tables.ROWS`) stands for the row set on either side. ``type``
    and ``subtype`` are OpenLineage's: DIRECT (IDENTITY, TRANSFORMATION, AGGREGATION) or INDIRECT
    (JOIN, FILTER, GROUP_BY, SORT, WINDOW, CONDITIONAL).
    """

    parent_id: str
    parent_column: str
    child_id: str
    child_column: str
    type: str
    subtype: str
    masking: bool


@dataclass(slots=True)
class NodeAnalysis:
    """One node as analysed. The three column lists run in parallel, in the relation's order.

    Attributes:
        order: fingerprint of its outermost ORDER BY, empty without one: rows and columns are the
            same in any order, but a reader that takes the first of them is not.
        introspects: the relations its Jinja or its hooks query besides its query (rule 11).
        incidental: fingerprint of what else that order may come of (`flow.relation.Relation`).
        unresolved_names: the names in its query that are not there, where its engine does not mind.
        introspection_fingerprint: fingerprint of what it queries besides its query; empty for nothing.
    """

    unique_id: str
    status: Status
    reason: Reason | None = None
    columns: list[str] = field(default_factory=list)
    fingerprints: list[str] = field(default_factory=list)
    expressions: list[str | None] = field(default_factory=list)
    rows_fingerprint: str = ""
    order: str = ""
    introspects: list[str] = field(default_factory=list)
    incidental: str = ""
    unresolved_names: list[str] = field(default_factory=list)
    introspection_fingerprint: str = ""

    @property
    def is_unanalysed(self) -> bool:
        """Whether it was not followed: any of its columns may hold all that its parents hold."""
        return self.status == "opaque" and not (
            self.reason is not None and self.reason.code in (Code.CANNOT_FOLLOW, Code.MAY_NOT_BUILD)
        )


@dataclass(slots=True)
class UnitTestAnalysis:
    """A unit test as analysed (rule 9).

    Attributes:
        model: the model it tests.
        fingerprint: of the model's own query over the names of its parents' columns, its settings,
            and the fixture. What the parents hold is no part of it.
        types: of the parents' columns it reads or is given, as far as they are known, by node and
            lower-case name: dbt types the fixture by them.
        inputs: all of these columns, whether their types are known or not.
    """

    unique_id: str
    model: str
    fingerprint: str
    types: dict[tuple[str, str], str] = field(default_factory=dict)
    inputs: list[tuple[str, str]] = field(default_factory=list)


class Own(NamedTuple):
    """What a node makes of its parents, whatever these hold (see `graph.linking.own_mode`).

    Attributes:
        columns: the own fingerprint of each column, by lower-case name.
        rows: that of its rows; of a test, of all that decides its outcome.
    """

    columns: dict[str, str]
    rows: str


class RelationOrder(NamedTuple):
    """What decides the order of a relation's rows, as fingerprints; empty where nothing does.

    Attributes:
        above: its own query and those of all above it, as each is written and stored. Where no ORDER BY stands,
            each of them may.
        order: what orders its rows in its query.
        layout: how it is laid out.
    """

    above: str
    order: str
    layout: str


@dataclass(slots=True)
class Analysis:
    """A whole project, analysed.

    Attributes:
        nodes: every relation-like node (model, seed, snapshot, source, and relations the project
            reads without declaring them) by unique_id.
        edges: column edges between nodes and their direct children, exposures included. They may
            be a `graph.column_edges.Edges`, which makes them when they are first asked for.
        test_columns: ``(test unique_id, node unique_id, column)`` for each column a test reads.
        seconds: wall time of the stages ``read``, ``parse`` and ``link``.
        tests: every data test by unique_id, as analysed: its fingerprints are those of its query.
        typed_tests: the same by what types of the catalog show, where a load asked for that
            (`graph.test_outcomes`).
        orders: what decides the order of the rows of each relation, where a load asked for that.
        orders_seen: of tests that see an order of rows: of which relations (as of `graph.order_seen.orders_read`),
            with commas, where a load asked for that.
        unit_tests: every unit test by unique_id.
        own: own fingerprints by unique_id, where they were asked for.
        unlisted: the relations that may have columns that nothing lists, by unique_id.
        functions: the fingerprint of each user-defined function by unique_id.
    """

    nodes: dict[str, NodeAnalysis]
    edges: Sequence[ColumnEdge]
    test_columns: list[tuple[str, str, str]]
    seconds: dict[str, float]
    tests: dict[str, NodeAnalysis] = field(default_factory=dict)
    typed_tests: dict[str, NodeAnalysis] = field(default_factory=dict)
    orders: dict[str, RelationOrder] = field(default_factory=dict)
    orders_seen: dict[str, str] = field(default_factory=dict)
    unit_tests: dict[str, UnitTestAnalysis] = field(default_factory=dict)
    own: dict[str, Own] = field(default_factory=dict)
    unlisted: list[str] = field(default_factory=list)
    functions: dict[str, str] = field(default_factory=dict)


def column_names(
    node: Node | None, analysed: NodeAnalysis | None, catalog: Iterable[CatalogColumn]
) -> dict[str, str]:
    """Every column the analysis, the catalog or the yml files know of, by its name in lower case.

    In this order, so that the relation's own order comes first.
    """
    declared = node.columns if node else {}
    names: dict[str, str] = {}
    for name in (
        *(analysed.columns if analysed else ()),
        *(column.name for column in catalog),
        *(column.name or key for key, column in declared.items()),
    ):
        names.setdefault(name.lower(), name)
    return names
