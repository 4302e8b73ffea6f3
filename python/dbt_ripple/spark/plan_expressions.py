"""A plan that Spark has written as JSON, as a tree, and what the expressions of its nodes depend on."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any, Final

from dbt_ripple.flow.ir import (
    AGGREGATION,
    CONDITIONAL,
    DIRECT,
    IDENTITY,
    SORT,
    TRANSFORMATION,
    WINDOW,
)

Source = tuple[str, str]
"""A base column: the table's name (as the catalog has it, without the catalog), the column's."""

Deps = dict[Source, int]
"""What something depends on, with the union of the kinds."""


class PlanGapError(Exception):
    """The plan holds something that cannot be read here: its columns are not known."""


@dataclass
class PlanNode:
    """A node of a plan or an expression, out of the flat JSON."""

    kind: str
    fields: dict[str, Any]
    children: list[PlanNode] = field(default_factory=list)


@dataclass
class Plan:
    """A walked plan: its output attributes by position, and its row set."""

    ids: list[int]
    names: list[str]
    columns: list[Deps]
    rows: Deps

    def env(self) -> dict[int, Deps]:
        """What each id stands for."""
        return dict(zip(self.ids, self.columns, strict=True))


def tree_of(flat: list[dict[str, Any]]) -> PlanNode:
    """The tree of a pre-order list; `num-children` says how far each node reaches."""
    position = 0

    def build() -> PlanNode:
        nonlocal position
        raw = flat[position]
        position += 1
        node = PlanNode(raw["class"].rsplit(".", 1)[-1].rstrip("$"), raw)
        node.children = [build() for _ in range(raw["num-children"])]
        return node

    return build()


def is_expression(value: Any) -> bool:
    """Whether a field of a node holds the flat list of another tree."""
    return (
        isinstance(value, list)
        and bool(value)
        and isinstance(value[0], dict)
        and "class" in value[0]
    )


def expression_id(node: PlanNode) -> int:
    """The id that Spark gave to a named expression."""
    return int(node.fields["exprId"]["id"])


def compose(outer: int, inner: int) -> int:
    """Kinds through kinds: an indirect use stays one; direct through direct is the stronger."""
    result = outer & ~DIRECT
    if outer & DIRECT:
        result |= inner & ~DIRECT
        for o in (IDENTITY, TRANSFORMATION, AGGREGATION):
            for i in (IDENTITY, TRANSFORMATION, AGGREGATION):
                if outer & o and inner & i:
                    result |= max(o, i)
    return result


def add(into: Deps, more: Deps, kind: int = IDENTITY) -> None:
    """Add dependencies as seen through a use of this kind."""
    for source, mask in more.items():
        into[source] = into.get(source, 0) | compose(kind, mask)


def condition_kind(kind: int) -> int:
    """The kind of a condition where the result is used in this kind."""
    return CONDITIONAL if kind & DIRECT else kind


def computed_kind(kind: int) -> int:
    """The kind of an argument where the result is used in this kind."""
    return TRANSFORMATION if kind == IDENTITY else kind


_RANKS: Final = frozenset({"RowNumber", "Rank", "DenseRank", "PercentRank", "CumeDist", "NTile"})
_PICKS: Final = frozenset({"First", "Last", "NthValue"})


def _attributes(node: PlanNode) -> Iterable[PlanNode]:
    """The column references of an expression, those to an outer query included."""
    if node.kind == "AttributeReference":
        yield node
    elif node.kind == "OuterReference":
        # Read again where it is used: the tree of `e` is made here, so it is put back.
        if not isinstance(node.fields["e"], PlanNode):
            node.fields = {**node.fields, "e": tree_of(node.fields["e"])}
        yield node.fields["e"]
    for child in node.children:
        yield from _attributes(child)


def _subqueries(node: PlanNode) -> bool:
    return is_expression(node.fields.get("plan")) or any(map(_subqueries, node.children))


WalkPlan = Callable[[PlanNode, dict[int, Deps]], Plan]
"""Walks the plan of a subquery; the second argument is what the query around it can see."""


class ExpressionScope:
    """What expressions of one plan node can see.

    Args:
        walk: for subqueries.
        env: what the ids of the node's children stand for.
        outer: what those of the queries around it stand for.
        counted: the rows of what it reads, which an aggregate of no column comes of: ``count(*)``.
    """

    def __init__(
        self,
        walk: WalkPlan,
        env: dict[int, Deps],
        outer: dict[int, Deps],
        counted: Deps | None = None,
    ) -> None:
        self.walk = walk
        self.env = env
        self.outer = outer
        self.counted = counted or {}
        self.common: PlanNode | None = None

    def deps(self, node: PlanNode, kind: int) -> Deps:
        """What an expression used in this kind depends on."""
        result: Deps = {}
        self._add_expression(node, kind, result)
        return result

    def _add_each(self, nodes: Iterable[PlanNode], kind: int, result: Deps) -> None:
        for node in nodes:
            self._add_expression(node, kind, result)

    def _add_column(
        self, attribute: PlanNode, kind: int, result: Deps, env: dict[int, Deps]
    ) -> None:
        number = expression_id(attribute)
        deps = env.get(number)
        if deps is None:
            deps = self.outer.get(number)
        if deps is None:
            raise PlanGapError(f"attribute {attribute.fields['name']}#{number} comes from nowhere")
        add(result, deps, kind)

    def _add_expression(self, node: PlanNode, kind: int, result: Deps) -> None:
        name = node.kind
        if name == "AttributeReference":
            self._add_column(node, kind, result, self.env)
        elif name == "OuterReference":
            inner_reference = node.fields["e"]
            if not isinstance(inner_reference, PlanNode):
                inner_reference = tree_of(inner_reference)
            self._add_column(inner_reference, kind, result, {})
        elif name in ("Alias", "Cast", "AnsiCast"):
            self._add_expression(node.children[0], kind, result)
        elif name == "CaseWhen":
            # (condition, value) pairs, then ELSE.
            pairs = len(node.children) // 2 * 2
            self._add_each(node.children[0:pairs:2], condition_kind(kind), result)
            self._add_each(node.children[1:pairs:2], computed_kind(kind), result)
            self._add_each(node.children[pairs:], computed_kind(kind), result)
        elif name == "If":
            self._add_expression(node.children[0], condition_kind(kind), result)
            self._add_each(node.children[1:], computed_kind(kind), result)
        elif name in ("NullIf", "NullIfZero", "Nvl2", "Decode"):
            self._add_each(node.children, kind, result)  # what replaces it says what chooses
        elif name == "With" and len(node.children) == 2:
            # One common expression: every reference in the first child is to it.
            child, definition = node.children
            saved, self.common = self.common, definition.children[0]
            self._add_expression(child, kind, result)
            self.common = saved
        elif name == "CommonExpressionRef" and self.common is not None:
            self._add_expression(self.common, kind, result)
        elif name == "PivotFirst":
            self._add_expression(node.children[0], condition_kind(kind), result)
            self._add_expression(node.children[1], self._aggregate(kind), result)
        elif name == "AggregateExpression":
            self._add_expression(node.children[0], self._aggregate(kind), result)
            if not any(True for _ in _attributes(node.children[0])):
                add(result, self.counted, self._aggregate(kind))
            self._add_each(node.children[1:], condition_kind(kind), result)  # FILTER (WHERE ...)
        elif name == "SortOrder":
            self._add_each(node.children, SORT if kind & DIRECT else kind, result)
        elif name == "WindowExpression":
            function, spec = node.children
            over = WINDOW if kind & DIRECT else kind
            if function.kind == "AggregateExpression" and function.children[0].kind in _PICKS:
                self._add_each(function.children[0].children, computed_kind(kind), result)
                self._add_each(function.children[1:], condition_kind(kind), result)
            else:
                self._add_expression(
                    function, over if function.kind in _RANKS else computed_kind(kind), result
                )
            for part in spec.children:
                self._add_each(part.children if part.kind == "SortOrder" else [part], over, result)
        elif name == "ScalarSubquery":
            inner = self._subquery(node)
            add(result, inner.columns[0], kind)
            # Which rows it saw is indirect already, whatever the value is used for.
            add(result, inner.rows, kind)
        elif name == "Exists":
            add(result, self._subquery(node).rows, condition_kind(kind))
        elif name == "InSubquery":
            self._add_each(node.children[:-1], computed_kind(kind), result)
            inner = self._subquery(node.children[-1])
            for deps in (*inner.columns, inner.rows):
                add(result, deps, condition_kind(kind))
        elif name == "FunctionTableSubqueryArgumentExpression":
            inner = self._subquery(node)
            for deps in (*inner.columns, inner.rows):
                add(result, deps, kind)
        elif "plan" in node.fields and is_expression(node.fields["plan"]):
            raise PlanGapError(f"subquery {node.fields['class']}")
        elif "replacement" in node.fields and (parameters := self._parameters(node)):
            # A function Spark expands: its own arguments count, not how it is expanded.
            self._add_each(parameters, computed_kind(kind), result)
        else:
            self._add_each(node.children, computed_kind(kind), result)

    def _aggregate(self, kind: int) -> int:
        return AGGREGATION if kind & DIRECT else kind

    def _parameters(self, node: PlanNode) -> list[PlanNode]:
        """The arguments of a function that Spark replaces by others, as they were written.

        Spark keeps them for show and does not renumber their attributes where it renumbers those
        of the replacement (both sides of a self join): they are renumbered here, by name.
        Empty where that cannot be done: then the replacement has to be read.
        """
        parameters: list[PlanNode] = []
        for key, value in node.fields.items():
            if key == "replacement":
                continue
            if is_expression(value):
                parameters.append(tree_of(value))
            elif isinstance(value, list) and value and all(map(is_expression, value)):
                parameters.extend(map(tree_of, value))
        if any(_subqueries(f) for f in parameters):
            return []  # a subquery's plan would be an older one: read what replaced it
        fresh = {expression_id(a): a for c in node.children for a in _attributes(c)}
        for attribute in (a for f in parameters for a in _attributes(f)):
            if expression_id(attribute) not in fresh:
                same = {i for i, a in fresh.items() if a.fields["name"] == attribute.fields["name"]}
                if len(same) != 1:
                    return []
                attribute.fields = {
                    **attribute.fields,
                    "exprId": fresh[same.pop()].fields["exprId"],
                }
        return parameters

    def _subquery(self, node: PlanNode) -> Plan:
        return self.walk(tree_of(node.fields["plan"]), self.outer | self.env)
