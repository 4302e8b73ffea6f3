"""Questions about SQL that is in no dbt project: what a query comes from, and whether two mean the same.

Both are asked of a project of one model that is made here, so that they are answered as of any other.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Final

from dbt_ripple.errors import RippleError
from dbt_ripple.graph.lineage_tables import ROWS
from dbt_ripple.session.answers import Answer, Place

if TYPE_CHECKING:
    from dbt_ripple.artifacts import Project
    from dbt_ripple.changes.comparison import NodeChange

Schema = Mapping[str, Mapping[str, str] | Sequence[str]]
"""Columns by table (``orders``, ``shop.orders``, ``db.shop.orders``): their names in order, or these with types."""

_QUERY: Final = "model.sql.query"
_HERE: Final = "sql"
"""The schema of tables that are named without one."""


@dataclass(frozen=True, slots=True)
class SqlEdge:
    """One way in which an output of a query depends on a column of a table.

    Attributes:
        output: the column of the query; ``*rows*`` is which rows it returns.
        table: as `schema` names it, or the query where that does not know it.
        column: of the table; ``*rows*`` is which rows that has.
        kind: IDENTITY, TRANSFORMATION, AGGREGATION (a value flows); JOIN, FILTER, GROUP_BY, SORT, WINDOW,
            CONDITIONAL (it only decides).
        transformation: the SQL that computes the output; None where it is the column as it is.
        masking: whether the value is hidden.
    """

    output: str
    table: str
    column: str
    kind: str
    transformation: str | None
    masking: bool


@dataclass(frozen=True)
class SqlLineage(Answer[SqlEdge]):
    """What a query comes from; iterates over the edges, by output in the query's order, ``*rows*`` last.

    Attributes:
        columns: of the query, in order.
        edges: what they depend on.
        missing: the reason where the query asks for what is not there, or cannot be followed; then the edges are
            what it may depend on. None where it is followed to its end.
    """

    columns: tuple[str, ...]
    edges: tuple[SqlEdge, ...]
    missing: str | None = None

    _row: ClassVar[type] = SqlEdge

    @property
    def rows(self) -> tuple[SqlEdge, ...]:
        """The edges."""
        return self.edges

    def of(self, output: str) -> tuple[SqlEdge, ...]:
        """What one column, or ``*rows*``, depends on."""
        return tuple(edge for edge in self.edges if edge.output.lower() == output.lower())

    def _document(self) -> Any:
        rows = [{name: getattr(edge, name) for name in edge.__slots__} for edge in self.edges]
        return {"columns": list(self.columns), "edges": rows, "missing": self.missing}

    def _edges(self) -> Iterator[tuple[Place, Place, dict[str, Any]]]:
        for edge in self.edges:
            of = {"subtype": edge.kind, "masking": edge.masking}
            yield (edge.table, edge.column), ("query", edge.output), of

    def _headline(self) -> str:
        return self.missing or f"{len(self.columns):,} columns, {len(self.edges):,} edges"


def lineage(sql: str, schema: Schema | None = None, dialect: str = "spark") -> SqlLineage:
    """What the columns and the rows of a query come from.

    Args:
        sql: one query, or a statement that writes what one returns.
        schema: columns by table. Of a table that is not there ``*`` has columns that are not known.
        dialect: of the SQL, as sqlglot calls it.

    Raises:
        RippleError: the dialect or the schema is not valid.

    Example:
        >>> from dbt_ripple import lineage
        >>> found = lineage("select o.id, sum(amount) as total from orders o group by 1", {"orders": ["id", "amount"]})
        >>> [(e.output, e.table, e.column, e.kind) for e in found if e.output == "total"][:1]
        [('total', 'orders', 'amount', 'AGGREGATION')]
    """
    from dbt_ripple.flow.definitions import computed
    from dbt_ripple.graph.analyse_project import analyse

    made, names = _project(sql, schema or {}, dialect)
    analysis = analyse(made)
    seen = analysis.nodes[_QUERY]
    texts = computed(sql, dialect)
    place = {column: number for number, column in enumerate([*seen.columns, ROWS])}
    edges = sorted(
        (edge for edge in analysis.edges if edge.child_id == _QUERY),
        key=lambda edge: (place.get(edge.child_column, len(place)), edge.subtype),
    )
    return SqlLineage(
        columns=tuple(seen.columns),
        edges=tuple(
            SqlEdge(
                *(
                    edge.child_column,
                    names.get(edge.parent_id, edge.parent_id.removeprefix("dataset.")),
                ),
                *(edge.parent_column, edge.subtype),
                *(texts.get(edge.child_column.lower()), edge.masking),
            )
            for edge in edges
        ),
        missing=seen.reason.message if seen.reason is not None else None,
    )


@dataclass(frozen=True)
class Equivalence:
    """Whether two queries are proven to be the same definition of columns and rows, whatever the tables hold.

    It is true where they are. False is no proof that they differ.

    Attributes:
        proven: whether they are.
        rules: which rules bring one to the form of the other; none where they differ in layout and names only.
        reason: what is proven, or what could not be.
        differs: the columns that are not proven to be the same, and those that only one has; ``*rows*`` is which
            rows there are.
        may_vary: why either query may return other rows each time it runs, as with ``random()`` or a LIMIT without
            an order; None where it does not.
    """

    proven: bool
    rules: tuple[str, ...] = ()
    reason: str = ""
    differs: tuple[str, ...] = ()
    may_vary: str | None = None

    def __bool__(self) -> bool:
        return self.proven


def equivalent(a: str, b: str, schema: Schema | None = None, dialect: str = "spark") -> Equivalence:
    """Whether two queries are proven to mean the same: names, types and order of columns, and rows, in any order.

    Args:
        a: one query.
        b: another one.
        schema: as for `lineage`. With types more is proven.
        dialect: of both.

    Raises:
        RippleError: the dialect or the schema is not valid.

    Example:
        >>> from dbt_ripple import equivalent
        >>> found = equivalent(
        ...     "select id from t where not (a = 1 or b = 2)",
        ...     "select id from t where a <> 1 and b <> 2",
        ...     {"t": {"id": "int", "a": "int", "b": "int"}},
        ... )
        >>> found.proven, found.rules
        (True, ('De Morgan', 'NOT of a comparison'))
    """
    from dbt_ripple.changes import compare
    from dbt_ripple.flow.determinism import nondeterminism

    (before, _), (after, _) = (_project(sql, schema or {}, dialect) for sql in (a, b))
    comparison = compare(before, after)
    for analysis in (comparison.base_analysis, comparison.head_analysis):
        seen = analysis.nodes[_QUERY]
        if seen.status != "analysed" or seen.unresolved_names:
            why = seen.reason.message if seen.reason is not None else "it is not followed"
            return Equivalence(
                False, reason=f"{'a' if analysis is comparison.base_analysis else 'b'}: {why}"
            )
    change = comparison.changed.get(_QUERY)
    if change is not None:
        differs = _differs(change)
        why = (
            f"not proven of {', '.join(differs)}" if differs else "the order of the columns differs"
        )
        return Equivalence(False, reason=why, differs=differs)
    rules = tuple(comparison.reworded.get(_QUERY, ()))
    by = f"by {', '.join(rules)}" if rules else "the same but for layout and names"
    causes = (nondeterminism(sql, dialect, ()) for sql in (a, b))
    varies = next((cause.reason for cause in causes if cause is not None), None)
    return Equivalence(True, rules, by, may_vary=varies)


def _differs(change: NodeChange) -> tuple[str, ...]:
    columns = (column for _, column in change.vertices())
    return tuple(dict.fromkeys([*columns, *change.removed, *change.renamed]))


def _project(sql: str, schema: Schema, dialect: str) -> tuple[Project, dict[str, str]]:
    """A project of one model that is the query, and its tables as sources; and these' names as they are given."""
    from dbt_ripple.artifacts import CatalogColumn, Column, Node, Project
    from dbt_ripple.artifacts.project import DependsOn, Metadata

    if not sql.strip():
        raise RippleError("there is no SQL", "sql", "give one query")
    adapter = _adapter(dialect)
    nodes: dict[str, Node] = {}
    names: dict[str, str] = {}
    catalog: dict[str, list[CatalogColumn]] = {}
    for name, columns in schema.items():
        if isinstance(columns, str) or not all(isinstance(c, str) for c in columns):
            raise RippleError(
                "are no columns", f"schema[{name!r}]", "give their names, or these with types"
            )
        parts = [part.strip('`"[]') for part in name.split(".")]
        database = parts[-3] if len(parts) > 2 else None
        unique_id = f"source.{_HERE}.{name}"
        types = dict(columns) if isinstance(columns, Mapping) else dict.fromkeys(columns)
        nodes[unique_id] = Node(
            unique_id=unique_id,
            name=parts[-1],
            resource_type="source",
            database=database,
            schema=parts[-2] if len(parts) > 1 else None,
            identifier=parts[-1],
            relation_name=name,
            columns={c: Column(name=c, data_type=t) for c, t in types.items()},
        )
        catalog[unique_id] = [
            CatalogColumn(name=c, type=t, index=number)
            for number, (c, t) in enumerate(types.items())
        ]
        names[unique_id] = name
    query = Node(
        unique_id=_QUERY,
        name="query",
        resource_type="model",
        package_name=_HERE,
        fqn=[_HERE, "query"],
        schema="query",
        alias="query",
        relation_name="`query`.`query`",
        compiled_code=sql,
        raw_code=sql,
        config={"materialized": "table"},
        depends_on=DependsOn(nodes=list(nodes)),
    )
    made = Project(
        target_path="",
        metadata=Metadata(adapter_type=adapter, project_name=_HERE),
        nodes={**nodes, _QUERY: query},
        parents={**{u: [] for u in nodes}, _QUERY: list(nodes)},
        children={**{u: [_QUERY] for u in nodes}, _QUERY: []},
        catalog=catalog,
    )
    return made, names


def _adapter(dialect: str) -> str:
    """A dbt adapter whose SQL is of a dialect."""
    from dbt_ripple.artifacts import did_you_mean
    from dbt_ripple.flow.identifiers import DIALECTS

    adapters = {of: adapter for adapter, of in reversed(DIALECTS.items())}
    if dialect not in adapters:
        known = f"the dialects are {', '.join(sorted(adapters))}"
        raise RippleError(
            f"{dialect!r} is no dialect of SQL that is followed",
            "dialect",
            did_you_mean(dialect, adapters, known),
        )
    return adapters[dialect]
