"""Places of boxes on a page, in layers from left to right, so that few arrows cross.

The usual method for directed graphs (Sugiyama's): every box goes into a layer behind all that it comes
from; long arrows get a bend in each layer that they pass; the order in a layer is that of the mean places
of neighbours, swept to and fro. The same graph in the same order gives the same places.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

SWEEPS: Final = 4
MAX_BENDS: Final = 20_000
"""Above which long arrows go straight: a graph so large is not read by its arrows."""

Edge = tuple[str, str]


@dataclass(frozen=True, slots=True)
class Point:
    """Where a box is: its left upper corner, in pixels."""

    x: float
    y: float


@dataclass(slots=True)
class Layout:
    """Where everything is.

    Attributes:
        boxes: by id.
        bends: the points through which an arrow goes between its boxes, from left to right.
        width: of the picture; likewise ``height``.
        returning: the arrows that go back to the left, since the graph has a cycle.
    """

    boxes: dict[str, Point]
    bends: dict[Edge, list[Point]] = field(default_factory=dict)
    width: float = 0.0
    height: float = 0.0
    returning: set[Edge] = field(default_factory=set)


def layers_of(ids: Sequence[str], edges: Iterable[Edge]) -> dict[str, int]:
    """The layer of each vertex: one behind the last of its parents, from 0.

    In a cycle, the vertex that stands first in ``ids`` begins.

    Example:
        >>> layers_of(["a", "b", "c"], [("a", "b"), ("b", "c"), ("a", "c")])
        {'a': 0, 'b': 1, 'c': 2}
        >>> layers_of(["a", "b"], [("a", "b"), ("b", "a")])
        {'a': 0, 'b': 1}
    """
    children: dict[str, list[str]] = {id_: [] for id_ in ids}
    waiting = dict.fromkeys(ids, 0)
    for parent, child in dict.fromkeys(edges):
        if parent != child:
            children[parent].append(child)
            waiting[child] += 1
    layers: dict[str, int] = {}
    left = dict.fromkeys(ids)
    earliest = dict.fromkeys(ids, 0)
    ready = [id_ for id_ in ids if not waiting[id_]]
    while left:
        if not ready:  # only cycles are left, and what is behind them
            ready = [next(iter(left))]
        following: list[str] = []
        for id_ in ready:
            if id_ not in left:
                continue
            del left[id_]
            layers[id_] = earliest[id_]
            for child in children[id_]:
                waiting[child] -= 1
                if child in left:
                    earliest[child] = max(earliest[child], layers[id_] + 1)
                    if not waiting[child]:
                        following.append(child)
        ready = following
    return {id_: layers[id_] for id_ in ids}


def layout(
    heights: Mapping[str, float],
    edges: Iterable[Edge],
    *,
    box_width: float,
    between_layers: float,
    between_boxes: float,
) -> Layout:
    """Place boxes of one width.

    Args:
        heights: of each box, by id, in an order that does not change.
        edges: from parents to children; ids that ``heights`` lacks are not allowed.
        box_width: in pixels, as all others.
        between_layers: the space in which the arrows are.
        between_boxes: between boxes of a layer.
    """
    ids = list(heights)
    pairs = [edge for edge in dict.fromkeys(edges) if edge[0] != edge[1]]
    layer = layers_of(ids, pairs)
    forward = [edge for edge in pairs if layer[edge[0]] < layer[edge[1]]]
    result = Layout({}, returning=set(pairs) - set(forward))
    rows: list[list[_Vertex]] = [[] for _ in range(max(layer.values(), default=-1) + 1)]
    for id_ in ids:
        rows[layer[id_]].append(id_)
    above: dict[_Vertex, list[_Vertex]] = {}
    below: dict[_Vertex, list[_Vertex]] = {}
    has_bends = sum(layer[c] - layer[p] - 1 for p, c in forward) <= MAX_BENDS
    for parent, child in forward:
        chain: list[_Vertex] = [parent]
        for number in range(layer[parent] + 1, layer[child]) if has_bends else ():
            bend = (parent, child, number)
            rows[number].append(bend)
            chain.append(bend)
        chain.append(child)
        for left, right in itertools.pairwise(chain):
            below.setdefault(left, []).append(right)
            above.setdefault(right, []).append(left)
    _order(rows, above, below)
    tall = [
        sum(heights.get(v, 0.0) if isinstance(v, str) else 0.0 for v in row)
        + between_boxes * max(len(row) - 1, 0)
        for row in rows
    ]
    result.height = max(tall, default=0.0)
    result.width = max(len(rows) * (box_width + between_layers) - between_layers, 0.0)
    for number, row in enumerate(rows):
        x = number * (box_width + between_layers)
        y = (result.height - tall[number]) / 2
        for vertex in row:
            if isinstance(vertex, str):
                result.boxes[vertex] = Point(x, y)
                y += heights[vertex]
            else:
                result.bends.setdefault(vertex[:2], []).append(Point(x + box_width / 2, y))
            y += between_boxes
    return result


_Vertex = str | tuple[str, str, int]
"""A box, or the bend of an arrow in a layer that it passes."""


def _order(
    rows: list[list[_Vertex]],
    above: Mapping[_Vertex, list[_Vertex]],
    below: Mapping[_Vertex, list[_Vertex]],
) -> None:
    """Order each layer by the mean places of its neighbours in the layer before, to and fro."""
    for sweep in range(SWEEPS):
        numbers = range(1, len(rows)) if sweep % 2 == 0 else range(len(rows) - 2, -1, -1)
        for number in numbers:
            other = rows[number - 1 if sweep % 2 == 0 else number + 1]
            near = above if sweep % 2 == 0 else below
            size = max(len(other), 1)
            place = {vertex: (index + 0.5) / size for index, vertex in enumerate(other)}
            mean: dict[_Vertex, float] = {}
            for index, vertex in enumerate(rows[number]):
                places = [place[v] for v in near.get(vertex, ()) if v in place]
                # What has no neighbour there stays about where it is.
                own = (index + 0.5) / len(rows[number])
                mean[vertex] = sum(places) / len(places) if places else own
            rows[number].sort(key=mean.__getitem__)
