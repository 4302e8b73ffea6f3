"""The paths along which a change spreads: from where it began to every vertex that changed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dbt_ripple.graph.column_edges import edges_into, goes_back
from dbt_ripple.graph.lineage_tables import ROWS
from dbt_ripple.graph.traversal import breadth_first_tree

if TYPE_CHECKING:
    from dbt_ripple.changes.compare import Comparison, Vertex


def change_paths(comparison: Comparison) -> dict[Vertex, Vertex | None]:
    """Each changed vertex with the one before it on a shortest way; None where a change began.

    One walk, breadth first from the vertices that changed while nothing they depend on did, along
    the edges between vertices that changed.
    """
    vertices, changed = comparison.changed_vertices, comparison.changed
    if not vertices:
        return {}
    children: dict[Vertex, list[Vertex]] = {}
    below: set[Vertex] = set()

    def lead(parent: Vertex, child: Vertex) -> None:
        children.setdefault(parent, []).append(child)
        below.add(child)

    edges = comparison.head_analysis.edges
    for edge in edges_into(edges, changed):
        if edge[0] in changed and not goes_back(edges, edge):
            parent, child = (edge[0], edge[1]), (edge[2], edge[3])
            if parent in vertices and child in vertices:
                lead(parent, child)
    for unique_id, change in changed.items():
        for looked_at in comparison.head_analysis.nodes[unique_id].introspects:
            for parent in changed[looked_at].vertices() if looked_at in changed else ():
                for child in change.vertices():
                    lead(parent, child)
    for unique_id, change in changed.items():
        if change.rows and unique_id not in comparison.modified:
            # An aggregate or a window is made of the rows it runs over, which no edge says.
            for vertex in change.vertices():
                if vertex not in below and vertex[1] != ROWS:
                    lead((unique_id, ROWS), vertex)
    starts = [vertex for change in changed.values() for vertex in change.vertices()]
    return breadth_first_tree((v for v in starts if v not in below), children)
