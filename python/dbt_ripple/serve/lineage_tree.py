"""A trace as the nested answer of ``GET /lineage/{id}``."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Literal

from dbt_ripple.rendering.trace import tree_lines
from dbt_ripple.serve.bodies import MOST_NODES, Lineage, TreeNode

if TYPE_CHECKING:
    from dbt_ripple.rendering.trace import Line, TraceView


def lineage_of(view: TraceView[Any], asked: str, id_of: Callable[[str], str]) -> Lineage:
    """The graph that a trace is.

    Args:
        view: the trace, of nodes or of columns; with a depth.
        asked: how its root was asked for.
        id_of: the id of a node, by its unique_id.
    """
    trace = view.trace
    way: list[Literal["upstream", "downstream"]] = ["upstream", "downstream"]
    if trace.direction != "both":
        way = [trace.direction]
    root: TreeNode | None = None
    left_out = False
    for direction in way:
        stack: list[TreeNode] = []
        for number, line in enumerate(tree_lines(view, direction)):
            if number >= MOST_NODES:
                left_out = True
                break
            depth = len(line.last)
            if depth == 0 and root is not None:
                node = root
            else:
                node = _node(line, id_of)
            del stack[depth:]
            if stack:
                getattr(stack[-1], direction).append(node)
            stack.append(node)
            root = root or node
    assert root is not None
    return Lineage(
        id=asked,
        direction=trace.direction,
        depth=trace.depth or 0,
        node_count=len(trace.depths),
        complete=not left_out,
        graph=root,
    )


def _node(line: Line, id_of: Callable[[str], str]) -> TreeNode:
    vertex = line.vertex
    unique_id, column = vertex if isinstance(vertex, tuple) else (vertex, None)
    return TreeNode(
        id=id_of(unique_id) + (f".{column}" if column is not None else ""),
        name=line.label.name,
        asset_type=line.label.kind.lower(),
        kinds=line.kinds,
        repeated=line.seen,
        upstream=[],
        downstream=[],
    )
