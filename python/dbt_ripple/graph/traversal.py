"""Walking the graph: what is upstream and downstream of a vertex, and how far.

Pure functions over parent and child maps; a vertex is whatever hashes (a unique_id for nodes, a
``(unique_id, column)`` pair for columns). They hold for any directed graph, with cycles too, and
never recurse, so that a chain of thousands of models is no deeper a call than one.

Distances are lengths of shortest paths, so that they do not depend on visiting order. Everything
that comes out is ordered by distance and then by the order of the maps: stable for stable input.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, Generic, Literal, NamedTuple, TypeVar

from dbt_ripple.graph.lineage import ColumnEdge
from dbt_ripple.graph.lineage_tables import ROWS

if TYPE_CHECKING:
    import pyarrow

Direction = Literal["upstream", "downstream", "both"]

V = TypeVar("V", bound=Hashable)

Vertex = tuple[str, str]
"""A column of a node: ``(unique_id, column)``; the column is ``*rows*`` for the row set."""


@dataclass(slots=True)
class Trace(Generic[V]):
    """The part of a graph that lies in one or both directions of a root.

    Attributes:
        upstream: every vertex at or above the root with its distance, the root first with 0;
            empty when that direction was not asked for. ``downstream`` likewise.
        edges: ``(parent, child)`` pairs between the vertices of one direction, each once.
    """

    root: V
    direction: Direction
    depth: int | None
    upstream: dict[V, int] = field(default_factory=dict)
    downstream: dict[V, int] = field(default_factory=dict)
    edges: list[tuple[V, V]] = field(default_factory=list)

    @property
    def depths(self) -> dict[V, int]:
        """Every vertex with its distance from the root, the root first, nearest first."""
        return dict(sorted((self.upstream | self.downstream).items(), key=lambda item: item[1]))


def reach(
    start: V,
    neighbours: Mapping[V, Sequence[V]],
    depth: int | None = None,
    keep: Callable[[V], bool] | None = None,
) -> dict[V, int]:
    """Every vertex that can be reached from one, breadth first.

    Args:
        start: where to begin; it is always part of the answer.
        neighbours: the vertices one step from each; a vertex without an entry has none.
        depth: how many steps to go at most; ``None`` for as far as it goes.
        keep: a vertex it rejects is left out, and nothing is reached through it.

    Returns:
        Each vertex with the length of the shortest path to it, in order of that length.

    Example:
        >>> reach("a", {"a": ["b", "c"], "b": ["d"], "c": ["d"]})
        {'a': 0, 'b': 1, 'c': 1, 'd': 2}
        >>> reach("a", {"a": ["b"], "b": ["d"]}, depth=1)
        {'a': 0, 'b': 1}
    """
    return reach_all([start], neighbours, depth, keep)


def reach_all(
    starts: Iterable[V],
    neighbours: Mapping[V, Sequence[V]],
    depth: int | None = None,
    keep: Callable[[V], bool] | None = None,
    through: Callable[[V], bool] | None = None,
) -> dict[V, int]:
    """Every vertex that can be reached from some, as `reach` says of one.

    Args:
        starts: where to begin; they are always part of the answer, and what is next to them is reached.
        neighbours: as for `reach`.
        depth: as for `reach`.
        keep: as for `reach`.
        through: of any other vertex that it rejects, what is next to it is not reached by it.

    Returns:
        Each vertex with the length of the shortest path to it from the nearest start, in order of
        that length.

    Example:
        >>> reach_all(["a", "d"], {"a": ["b"], "b": ["c"], "d": ["c"]})
        {'a': 0, 'd': 0, 'b': 1, 'c': 1}
        >>> reach_all(["a"], {"a": ["b"], "b": ["c"]}, through=lambda vertex: vertex != "b")
        {'a': 0, 'b': 1}
    """
    distances = dict.fromkeys(starts, 0)
    frontier = list(distances)
    distance = 0
    while frontier and (depth is None or distance < depth):
        distance += 1
        following: list[V] = []
        for vertex in frontier:
            for neighbour in neighbours.get(vertex, ()):
                if neighbour not in distances and (keep is None or keep(neighbour)):
                    distances[neighbour] = distance
                    if through is None or through(neighbour):
                        following.append(neighbour)
        frontier = following
    return distances


def breadth_first_tree(
    starts: Iterable[V], neighbours: Mapping[V, Sequence[V]]
) -> dict[V, V | None]:
    """Every vertex that `reach_all` reaches, with the one before it on a shortest path.

    Returns:
        In order of the length of that path; ``None`` for the starts.

    Example:
        >>> breadth_first_tree(["a"], {"a": ["b", "c"], "b": ["d"], "c": ["d"]})
        {'a': None, 'b': 'a', 'c': 'a', 'd': 'b'}
    """
    before: dict[V, V | None] = dict.fromkeys(starts)
    queue = deque(before)
    while queue:
        vertex = queue.popleft()
        for neighbour in neighbours.get(vertex, ()):
            if neighbour not in before:
                before[neighbour] = vertex
                queue.append(neighbour)
    return before


def count_below(children: Mapping[V, Sequence[V]], of: Callable[[V], Hashable]) -> dict[V, int]:
    """Of each vertex, how many groups other than its own hold a vertex that it reaches.

    Args:
        children: as ``neighbours`` of `reach`.
        of: the group of a vertex, for example the node of a column.

    Returns:
        Those above 0.

    Example:
        >>> graph = {"a1": ["b1", "b2"], "b1": ["c1"], "c1": ["b1"]}
        >>> count_below(graph, of=lambda vertex: vertex[0])
        {'c1': 1, 'b1': 1, 'a1': 2}
    """
    order: list[V] = []  # what is below comes first, but in a cycle
    seen: set[V] = set()
    for root in children:
        stack: list[tuple[V, Iterator[V]]] = []
        if root not in seen:
            seen.add(root)
            stack.append((root, iter(children[root])))
        while stack:
            vertex, ahead = stack[-1]
            following = next((v for v in ahead if v not in seen), None)
            if following is None:
                order.append(vertex)
                stack.pop()
            else:
                seen.add(following)
                stack.append((following, iter(children.get(following, ()))))
    groups = {vertex: of(vertex) for vertex in order}
    ids = list(dict.fromkeys(groups.values()))
    counts = dict.fromkeys(order, 0)
    # A set of groups is one integer, a bit a group: so many at a time that memory stays small.
    for start in range(0, len(ids), _GROUPS_AT_A_TIME):
        bit = {group: 1 << n for n, group in enumerate(ids[start : start + _GROUPS_AT_A_TIME])}
        reached = dict.fromkeys(order, 0)
        grows = True
        while grows:
            grows = False
            for vertex in order:
                bits = before = reached[vertex]
                for child in children.get(vertex, ()):
                    bits |= reached[child] | bit.get(groups[child], 0)
                if bits != before:
                    reached[vertex] = bits
                    grows = True
        for vertex, bits in reached.items():
            counts[vertex] += (bits & ~bit.get(groups[vertex], 0)).bit_count()
    return {vertex: count for vertex, count in counts.items() if count}


_GROUPS_AT_A_TIME: Final = 4096


def toward(trace: Trace[V], wanted: Callable[[V], bool]) -> Trace[V]:
    """The part of a trace that leads from its root to what is wanted.

    Args:
        trace: the whole trace.
        wanted: says of a vertex whether it is.
    """
    parents: dict[V, list[V]] = {}
    children: dict[V, list[V]] = {}
    for parent, child in trace.edges:
        children.setdefault(parent, []).append(child)
        parents.setdefault(child, []).append(parent)

    def leading(depths: dict[V, int], back: Mapping[V, Sequence[V]]) -> dict[V, int]:
        kept = {trace.root}
        ahead = [vertex for vertex in depths if wanted(vertex)]
        while ahead:
            vertex = ahead.pop()
            if vertex not in kept:
                kept.add(vertex)
                ahead += [other for other in back.get(vertex, ()) if other in depths]
        return {vertex: depth for vertex, depth in depths.items() if vertex in kept}

    part = Trace(trace.root, trace.direction, trace.depth)
    part.upstream = leading(trace.upstream, children)
    part.downstream = leading(trace.downstream, parents)
    part.edges = [
        edge
        for edge in trace.edges
        if any(edge[0] in side and edge[1] in side for side in (part.upstream, part.downstream))
    ]
    return part


def trace(
    root: V,
    parents: Mapping[V, Sequence[V]],
    children: Mapping[V, Sequence[V]],
    direction: Direction = "downstream",
    depth: int | None = None,
    keep: Callable[[V], bool] | None = None,
) -> Trace[V]:
    """What lies upstream, downstream or both of a vertex, with the edges in between.

    An edge that passes the root by, from above it to below it, belongs to neither direction.

    Args:
        root: the vertex asked for.
        parents: the vertices each one depends on.
        children: the inverse of ``parents``.
        direction: which way to go.
        depth: how many steps to go at most; ``None`` for as far as it goes.
        keep: a vertex it rejects is left out, and nothing is reached through it.
    """
    result = Trace(root, direction, depth)
    edges: dict[tuple[V, V], None] = {}
    if direction != "downstream":
        result.upstream = reach(root, parents, depth, keep)
        for child in result.upstream:
            for parent in parents.get(child, ()):
                if parent in result.upstream:
                    edges[parent, child] = None
    if direction != "upstream":
        result.downstream = reach(root, children, depth, keep)
        for parent in result.downstream:
            for child in children.get(parent, ()):
                if child in result.downstream:
                    edges[parent, child] = None
    result.edges = list(edges)
    return result


# --- all pairs -------------------------------------------------------------------------------------


def closure(parents: Mapping[str, Sequence[str]]) -> Iterator[pyarrow.RecordBatch]:
    """Every node with every ancestor and the length of the shortest path; itself with 0.

    The size of the answer is the cost: a dense graph of 10,000 nodes has tens of millions of pairs,
    which is why they come in batches that can be written away one by one.

    Args:
        parents: the direct parents of every node; a parent without an entry has none itself.

    Yields:
        Batches of ``ancestor_id`` and ``descendant_id`` (dictionary-encoded strings) and ``depth``
        (int64), nearest pairs first; each pair once.

    Example:
        >>> [row for batch in closure({"b": ["a"]}) for row in batch.to_pylist()]
        ... # doctest: +NORMALIZE_WHITESPACE
        [{'ancestor_id': 'b', 'descendant_id': 'b', 'depth': 0},
         {'ancestor_id': 'a', 'descendant_id': 'a', 'depth': 0},
         {'ancestor_id': 'a', 'descendant_id': 'b', 'depth': 1}]
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    ids = list(
        dict.fromkeys(
            [*parents, *(p for parents_of_node in parents.values() for p in parents_of_node)]
        )
    )
    position = {unique_id: index for index, unique_id in enumerate(ids)}
    direct = [[position[p] for p in dict.fromkeys(parents.get(node, ()))] for node in ids]
    names = pa.array(ids, pa.string())
    schema = pa.schema(
        {
            "ancestor_id": pa.dictionary(pa.int32(), pa.string()),
            "descendant_id": pa.dictionary(pa.int32(), pa.string()),
            "depth": pa.int64(),
        }
    )
    row_bytes = -(-len(ids) // 64) * 8

    def pairs(level: list[tuple[int, int]], depth: int) -> pyarrow.RecordBatch:
        """The set bits of each node's row, read by Arrow as one long bitmap."""
        bitmap = pa.py_buffer(b"".join(bits.to_bytes(row_bytes, "little") for _, bits in level))
        flags = pa.Array.from_buffers(pa.bool_(), len(level) * row_bytes * 8, [None, bitmap])
        indices = pc.indices_nonzero(flags).cast(pa.int64())
        row = pc.divide(indices, row_bytes * 8)
        ancestors = pc.subtract(indices, pc.multiply(row, row_bytes * 8)).cast(pa.int32())
        descendants = pa.array([node for node, _ in level], pa.int32()).take(row)
        return pa.RecordBatch.from_arrays(
            [
                pa.DictionaryArray.from_arrays(ancestors, names),
                pa.DictionaryArray.from_arrays(descendants, names),
                pa.repeat(pa.scalar(depth, pa.int64()), len(indices)),
            ],
            schema=schema,
        )

    # A set of nodes is one integer, a bit a node: sets are joined a word at a time.
    seen = [1 << node for node in range(len(ids))]
    frontier = list(enumerate(seen))
    children: list[list[int]] = [[] for _ in ids]
    for node, parents_of_node in enumerate(direct):
        for parent in parents_of_node:
            children[parent].append(node)
    depth = 0
    while frontier:
        for start in range(0, len(frontier), _ROWS_A_BATCH):
            yield pairs(frontier[start : start + _ROWS_A_BATCH], depth)
        depth += 1
        reached: dict[int, int] = {}
        for parent, bits in frontier:
            for node in children[parent]:
                reached[node] = reached.get(node, 0) | bits
        frontier = []
        for node, bits in reached.items():
            new = bits & ~seen[node]
            if new:
                seen[node] |= new
                frontier.append((node, new))


_ROWS_A_BATCH: Final = 2048
"""Descendants a batch; it bounds the memory of one (at most this many times all nodes)."""


# --- columns ---------------------------------------------------------------------------------------


class EdgeKind(NamedTuple):
    """How one column depends on another, in OpenLineage's terms."""

    type: str
    subtype: str
    masking: bool


@dataclass(slots=True)
class ColumnGraph:
    """Column edges as maps that :func:`trace` can walk.

    A vertex whose column is ``*rows*`` is the row set of a node: what reaches it decides which rows
    there are, and so reaches whatever is computed from those rows further down.

    Attributes:
        parents: the vertices each vertex depends on; ``children`` is the inverse.
        kinds: every kind of dependency between a parent and a child, each once.
    """

    parents: dict[Vertex, list[Vertex]]
    children: dict[Vertex, list[Vertex]]
    kinds: dict[tuple[Vertex, Vertex], list[EdgeKind]]

    def columns(self, unique_id: str) -> list[str]:
        """The columns of a node that any edge names, without ``*rows*``."""
        return [
            column
            for node, column in dict.fromkeys([*self.parents, *self.children])
            if node == unique_id and column != ROWS
        ]


def column_graph(edges: Iterable[ColumnEdge]) -> ColumnGraph:
    """Index column edges for walking.

    Example:
        >>> graph = column_graph([ColumnEdge("s", "x", "m", "y", "DIRECT", "IDENTITY", False)])
        >>> reach(("s", "x"), graph.children)
        {('s', 'x'): 0, ('m', 'y'): 1}
    """
    parents: dict[Vertex, list[Vertex]] = {}
    children: dict[Vertex, list[Vertex]] = {}
    kinds: dict[tuple[Vertex, Vertex], list[EdgeKind]] = {}
    for edge in edges:
        parent = (edge.parent_id, edge.parent_column)
        child = (edge.child_id, edge.child_column)
        kind = EdgeKind(edge.type, edge.subtype, edge.masking)
        kinds_of_edge = kinds.get((parent, child))
        if kinds_of_edge is None:
            kinds[parent, child] = [kind]
            parents.setdefault(child, []).append(parent)
            children.setdefault(parent, []).append(child)
        elif kind not in kinds_of_edge:
            kinds_of_edge.append(kind)
    return ColumnGraph(parents, children, kinds)
