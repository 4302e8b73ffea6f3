"""A plan that Spark has written as JSON, as a tree, and what its nodes depend on."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from dbt_ripple.flow.ir import AGGREGATION, DIRECT, IDENTITY, TRANSFORMATION

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
