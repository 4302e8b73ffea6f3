"""Semantic models: their entities, dimensions and measures, each over the columns of the model.

Expressions of the semantic layer are each read as the only output of a query over its relation. Metrics and saved
queries are put together of them (`MetricQuery`), by what the parameters of a metric name.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, Final, Protocol

from dbt_ripple.artifacts import Node
from dbt_ripple.flow.fingerprint import digest
from dbt_ripple.flow.identifiers import fold
from dbt_ripple.flow.ir import AGGREGATION, IDENTITY, MASK_SHIFT, TRANSFORMATION, WINDOW, Lowered
from dbt_ripple.flow.link import Linked, link
from dbt_ripple.flow.relation import Deps, OutputColumn, Relation, RowSet, merge, through, union
from dbt_ripple.flow.unused_ctes import checked
from dbt_ripple.graph.lineage import Status
from dbt_ripple.graph.lineage_tables import ROWS
from dbt_ripple.graph.semantic_references import listed, settings
from dbt_ripple.graph.unresolved_names import engine_refuses, without_words
from dbt_ripple.reasons import Code, Reason, several

_FROM: Final = "semantic_model"
"""What an expression is read from, in the query that is made of it."""

_SEMANTIC_LAYER: Final = digest(b"semantic layer")
NO_RELATION: Final = Relation([], RowSet.unjoined(_SEMANTIC_LAYER, {}, _SEMANTIC_LAYER))


class QueryLowerer(Protocol):
    """Where queries are lowered."""

    def lowered(self, sql: str) -> Lowered:
        """A query, lowered."""


@dataclass(slots=True)
class Value:
    """The value of an expression.

    Attributes:
        why: why it cannot be read; it then depends on everything it could.
        missing: names for want of which it certainly fails; ``doubtful`` for which it may.
    """

    fp: bytes
    deps: Deps
    why: Reason | None = None
    missing: list[str] = field(default_factory=list)
    doubtful: list[str] = field(default_factory=list)


class SemanticExpressions:
    """Reads the expressions of one project's semantic layer.

    Args:
        dialect: of its SQL.
        queries: lowers what expressions are made into.
    """

    def __init__(self, dialect: str, queries: QueryLowerer) -> None:
        self.dialect = dialect
        self.queries = queries

    def value(
        self,
        text: str,
        over: Relation,
        surely: Callable[[], Relation] | None,
        stored: bool = True,
    ) -> Value:
        """The value of an expression over a relation.

        Args:
            text: the expression.
            over: what it is read from.
            surely: the same, as far as its columns are certain; None where a name that cannot be
                found is never certainly missing.
            stored: whether the relation is a table (`unresolved_names.engine_refuses`).
        """
        sql = f"select (\n{text}\n) as value from {_FROM}"
        others = False

        def table(key: str, _name: str) -> Relation:
            nonlocal others
            others = others or key != _FROM
            return over

        try:
            lowered = self.queries.lowered(sql)
            if lowered.rel is None:
                return _anything(over, text, lowered.reason or Code.NO_EXPRESSION())
            linked = link(lowered, table, self.dialect)
        except Exception as error:  # a defect of ours is this element's, not the whole project's
            reason = Code.DEFECT(error=f"{type(error).__name__}: {error}")
            return _anything(over, text, reason)
        relation = linked.relation
        if others:
            return _anything(over, text, Code.READS_ANOTHER_RELATION())
        if len(relation.columns) != 1 or relation.unlisted:
            return _anything(over, text, Code.NOT_ONE_EXPRESSION())
        fp, deps = relation.columns[0].value
        if relation.rows.fp != over.rows.fp:
            fp = digest(b"over rows", fp, relation.rows.fp)
        value = Value(fp, deps)
        if linked.missing:
            value.fp = digest(b"broken", fp, *(name.encode() for name in linked.missing))
            value.doubtful = self.names_not_found(sql, over, stored, surely=False)
            if value.doubtful:
                unread = _anything(over, text, Code.CANNOT_FOLLOW(names=value.doubtful))
                value.fp, value.deps = digest(value.fp, unread.fp), unread.deps
            if value.doubtful and surely is not None:
                value.missing = self.names_not_found(sql, surely(), stored, surely=True)
        return value

    def names_not_found(self, sql: str, over: Relation, stored: bool, *, surely: bool) -> list[str]:
        """The names that an expression cannot find, as far as its engine would refuse them."""
        lowered, follows = without_words(sql, self.dialect, unsure=surely)
        if lowered.rel is None or (surely and not follows):
            return []
        executed = checked(lowered, self.dialect, surely=surely)
        linked: Linked = link(executed, lambda *_: over, self.dialect)
        refused = (True,) if surely else (True, None)
        return [
            n for n in linked.missing if engine_refuses(linked, n, self.dialect, stored) in refused
        ]

    def relation_with(self, columns: Iterable[tuple[str, bytes, Deps]]) -> Relation:
        """A relation with these columns (name, fingerprint, dependencies) and nothing else."""
        return Relation(
            [
                OutputColumn(name, fold(name, False, self.dialect), fp, deps)
                for name, fp, deps in columns
            ],
            RowSet.unjoined(_SEMANTIC_LAYER, {}, _SEMANTIC_LAYER),
        )


def alone(relation: Relation) -> Relation:
    """A relation as the only one there is: what tells it from others to be joined is of no matter."""
    rows = RowSet.unjoined(relation.rows.fp, relation.rows.deps, _SEMANTIC_LAYER)
    return Relation(relation.columns, rows, relation.unlisted, relation.unresolved)


def _anything(over: Relation, text: str, why: Reason) -> Value:
    fp = digest(b"unread", text.encode(), over.all_fp(), over.rows.fp)
    return Value(fp, over.whole(TRANSFORMATION), why)


@dataclass(slots=True)
class MetricQuery:
    """A metric or a saved query while it is put together.

    Attributes:
        columns: what it shows, with the SQL-like text of each.
        rows: what its rows depend on, with a fingerprint of each part.
        own: the semantic models whose measures it aggregates.
        times: the dimensions its metrics are told by.
        missing: what it asks for that is not there.
        unread: why any of it cannot be read.
    """

    columns: dict[str, tuple[bytes, Deps, str]] = field(default_factory=dict)
    rows: Deps = field(default_factory=dict)
    parts: list[bytes] = field(default_factory=list)
    own: dict[str, None] = field(default_factory=dict)
    times: dict[tuple[str, str], bytes] = field(default_factory=dict)
    missing: dict[str, None] = field(default_factory=dict)
    unread: dict[Reason, None] = field(default_factory=dict)

    def row(self, kind: bytes, fp: bytes, deps: Deps) -> None:
        """Add something that the rows depend on."""
        self.parts.append(digest(kind, fp))
        merge(self.rows, deps)

    def rows_fp(self) -> bytes:
        """A fingerprint of all that the rows depend on."""
        return digest(b"rows", *sorted(self.parts))


_InputParameters = dict[str, Any]
"""A measure or a metric as a metric's parameters name it."""


def measures_of(params: dict[str, Any]) -> Iterator[tuple[str, _InputParameters]]:
    """The measures a metric is made of, and what each is to it."""
    conversion = params.get("conversion_type_params") or {}
    by_role = {
        "measure": params.get("measure"),
        "base": conversion.get("base_measure"),
        "conversion": conversion.get("conversion_measure"),
    }
    yield from ((role, _input(definition)) for role, definition in by_role.items() if definition)


def metrics_of(params: dict[str, Any]) -> Iterator[tuple[str, _InputParameters]]:
    """The metrics a metric is made of, and what each is to it."""
    conversion = params.get("conversion_type_params") or {}
    by_role = {
        "numerator": params.get("numerator"),
        "denominator": params.get("denominator"),
        "cumulative": (params.get("cumulative_type_params") or {}).get("metric"),
        "base": conversion.get("base_metric"),
        "conversion": conversion.get("conversion_metric"),
    }
    yield from ((role, _input(definition)) for role, definition in by_role.items() if definition)
    inputs = sorted(map(_input, params.get("metrics") or ()), key=repr)
    yield from (("input", definition) for definition in inputs)


def _input(definition: Any) -> _InputParameters:
    """A measure or a metric, which may be given by its name alone."""
    return definition if isinstance(definition, dict) else {"name": definition}


_IDENTIFIER: Final = re.compile(r"[A-Za-z_]\w*")
_COUNTS: Final = frozenset({"count", "count_distinct"})
_LINKABLE: Final = frozenset({"primary", "unique", "natural"})


@dataclass(slots=True)
class Element:
    """An entity, a dimension or a measure."""

    kind: str
    name: str
    text: str
    value: Value
    type: str = ""


@dataclass(slots=True)
class SemanticModel:
    """A semantic model as a relation.

    Attributes:
        node: the semantic model.
        rows_fp: ``N`` of its model.
        elements: by name.
        primary: its primary entity, which may have no column.
    """

    node: Node
    rows_fp: bytes
    elements: dict[str, Element]
    primary: str | None

    def has_entity(self, name: str, linkable: bool) -> bool:
        """Whether it can be joined by an entity; where asked, as the side that has one row of each."""
        if name == self.primary:
            return True
        element = self.elements.get(name)
        return (
            element is not None
            and element.kind == "entity"
            and (not linkable or element.type in _LINKABLE)
        )

    def rows(self) -> Deps:
        """Its rows, as a dependency."""
        return {(self.node.unique_id, ROWS): IDENTITY}

    def everything(self) -> tuple[bytes, Deps]:
        """All of it, for a reader that may read any part."""
        deps: Deps = {(self.node.unique_id, name): IDENTITY for name in self.elements}
        fps = [element.value.fp for _, element in sorted(self.elements.items())]
        return digest(b"all of it", self.rows_fp, *fps), deps | self.rows()


def semantic_model(
    expressions: SemanticExpressions,
    node: Node,
    over: Relation,
    surely: Callable[[], Relation],
    stored: bool,
) -> SemanticModel:
    """A semantic model: its elements over its model's columns.

    Args:
        expressions: reads those of its elements.
        node: the semantic model.
        over: its model's relation.
        surely: the same as far as its columns are certain.
        stored: whether that is a table.
    """
    elements: dict[str, Element] = {}
    for kind, definition in sorted(_elements(node), key=lambda e: (e[0], str(e[1].get("name")))):
        name = str(definition.get("name"))
        value = element_value(expressions, definition, over, surely, stored)
        text = text_of(definition)
        if kind == "measure":
            text = make_measure(value, definition, text)
        if name in elements:  # dbt allows it of kinds that are never mixed up
            value.fp = digest(elements[name].value.fp, value.fp)
            value.deps = union(elements[name].value.deps, value.deps)
        elements[name] = Element(kind, name, text, value, str(definition.get("type") or ""))
    model = SemanticModel(node, over.rows.fp, elements, node.primary_entity)
    if model.primary is None:
        model.primary = next(
            (e.name for e in elements.values() if e.kind == "entity" and e.type == "primary"),
            None,
        )
    for definition in node.measures:
        _add_window(model, definition)
    return model


def element_value(
    expressions: SemanticExpressions,
    definition: dict[str, Any],
    over: Relation,
    surely: Callable[[], Relation],
    stored: bool,
) -> Value:
    """What one entity, dimension or measure is made of: its ``expr``, or the column of its name.

    Args as of `semantic_model`; `definition` is that of the element.
    """
    text = text_of(definition)
    if _IDENTIFIER.fullmatch(text):
        column = over.get(fold(text, False, expressions.dialect), text)
        if column is not None:
            return Value(*column)
        if definition.get("expr") is None:  # a name, even where it is a word of SQL
            there = surely().get(fold(text, False, expressions.dialect), text)
            missing = [] if there is not None else [text]
            return Value(digest(b"broken", text.encode()), {}, None, missing, [text])
    return expressions.value(text, over, surely, stored)


def make_measure(value: Value, definition: dict[str, Any], text: str) -> str:
    """Make a measure of its expression; returns how it reads."""
    aggregation = str(definition.get("agg") or "").lower()
    masks = aggregation in _COUNTS  # a count says nothing of the value that is counted
    value.fp = digest(
        b"measure",
        aggregation.encode(),
        settings(definition.get("agg_params")).encode(),
        value.fp,
    )
    value.deps = through(AGGREGATION << MASK_SHIFT if masks else AGGREGATION, value.deps)
    return f"{aggregation}({text})"


def _add_window(model: SemanticModel, definition: dict[str, Any]) -> None:
    """A measure that is taken at one moment of a dimension, and not added up along it."""
    rule = definition.get("non_additive_dimension")
    measure = model.elements.get(str(definition.get("name")))
    if not isinstance(rule, dict) or measure is None:
        return
    over = [str(rule.get("name")), *map(str, rule.get("window_groupings") or ())]
    for name in over:
        element = model.elements.get(name)
        if element is not None:
            measure.value.deps = dict(measure.value.deps)
            merge(measure.value.deps, through(WINDOW, element.value.deps))
            measure.value.fp = digest(b"within", measure.value.fp, element.value.fp)
    measure.value.fp = digest(measure.value.fp, str(rule.get("window_choice")).encode())


def state_of(model: SemanticModel, has_model: bool) -> tuple[Status, Reason | None]:
    """The status of a semantic model, and the reason if it was not analysed as a whole."""
    if not has_model:
        named = listed(u.rpartition(".")[2] for u in model.node.depends_on.nodes)
        return "broken", Code.CANNOT_FIND(names=[named or "its model"])
    elements = model.elements.values()
    if missing := _missing_parts((e, e.value.missing) for e in elements):
        return "broken", several(missing)
    if unread := [
        Code.PART_UNREAD_BECAUSE(part=f"{e.kind} {e.name}", because=e.value.why)
        for e in elements
        if e.value.why
    ]:
        return "opaque", Code.CANNOT_BE_READ(parts=unread)
    if doubtful := _missing_parts((e, e.value.doubtful) for e in elements):
        return "opaque", Code.MAY_NOT_BUILD(because=several(doubtful))
    return "analysed", None


def _elements(node: Node) -> Iterator[tuple[str, dict[str, Any]]]:
    for kind, definitions in (
        ("entity", node.entities),
        ("dimension", node.dimensions),
        ("measure", node.measures),
    ):
        for element in definitions:
            yield kind, element


def text_of(definition: dict[str, Any]) -> str:
    """The expression of an element or of a metric: its ``expr``, or its name."""
    expression = definition.get("expr")
    return str(definition.get("name") if expression is None else expression).strip()


def _missing_parts(elements: Iterable[tuple[Element, list[str]]]) -> list[Reason]:
    """Which names are missing, and what reads them."""
    return [
        Code.PART_CANNOT_FIND(names=names, kind=element.kind, name=element.name)
        for element, names in elements
        if names
    ]
