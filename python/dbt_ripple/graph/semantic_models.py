"""Semantic models: their entities, dimensions and measures, each over the columns of the model."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Final

from dbt_ripple.artifacts import Node
from dbt_ripple.flow.fingerprint import digest
from dbt_ripple.flow.identifiers import fold
from dbt_ripple.flow.ir import AGGREGATION, IDENTITY, MASK_SHIFT, WINDOW
from dbt_ripple.flow.relation import Deps, Relation, merge, through, union
from dbt_ripple.graph.lineage import Status
from dbt_ripple.graph.lineage_tables import ROWS
from dbt_ripple.graph.semantic_expressions import SemanticExpressions, Value
from dbt_ripple.graph.semantic_references import listed, settings
from dbt_ripple.reasons import Code, Reason, several

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
