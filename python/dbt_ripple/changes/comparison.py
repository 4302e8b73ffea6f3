"""What differs between two sides of a project: plain data, which every question takes.

`changes.compare` makes it. What more is found out of it is made when it is first asked for, and once
(`made_once`): the verdict on what cannot be built (`changes.verdict`), what was edited (`changes.causes`),
what changed column by column (`changes.diff`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cached_property, wraps
from pathlib import Path
from typing import Any, Final, Literal, TypeVar

from dbt_ripple.artifacts import Project
from dbt_ripple.changes.counterparts import SeedPair
from dbt_ripple.changes.state_modified import modified
from dbt_ripple.graph.cache import Cache
from dbt_ripple.graph.column_edges import edges_into, goes_back
from dbt_ripple.graph.hooks import Hook
from dbt_ripple.graph.lineage import Analysis, NodeAnalysis
from dbt_ripple.graph.lineage_tables import ROWS
from dbt_ripple.graph.linking.project_context import ProjectContext, ProjectContexts
from dbt_ripple.graph.semantic_references import SEMANTIC
from dbt_ripple.graph.traversal import breadth_first_tree
from dbt_ripple.reasons import Reason

Vertex = tuple[str, str]


@dataclass(slots=True)
class NodeChange:
    """How one relation of head differs from its counterpart on base.

    Attributes:
        kind: ``added`` where base has no such node, else ``changed``.
        rows: whether its row set changed.
        added: columns base does not have; ``renamed`` maps those of them that have the definition
            of a removed one to it.
        removed: columns head no longer has.
        redefined: columns both sides have, with another fingerprint.
        reordered: whether columns both sides have stand in another order.
    """

    unique_id: str
    kind: Literal["added", "changed"]
    rows: bool = False
    added: list[str] = field(default_factory=list)
    removed: list[str] = field(default_factory=list)
    renamed: dict[str, str] = field(default_factory=dict)
    redefined: list[str] = field(default_factory=list)
    reordered: bool = False

    def vertices(self) -> Iterator[Vertex]:
        """The vertices of head that changed: rows first, then columns."""
        if self.rows:
            yield self.unique_id, ROWS
        for column in self.redefined:
            yield self.unique_id, column
        for column in self.added:
            if column not in self.renamed:
                yield self.unique_id, column


@dataclass
class Comparison:
    """Two sides of a project and what differs.

    Attributes:
        base: what is deployed, with what only the comparison knows of it: sources and tests that
            head has under another name have that one (`changes.counterparts`).
        head: likewise, what is proposed.
        changed: the relations of head of which a vertex changed, or a column came, went or changed
            its name or place, by unique_id.
        removed: relations (not sources) only base has.
        seeds: the files of seeds on both sides.
        everything: why every test is selected, where a change reaches all of them.
        notes: what the answer had to assume.
        hooks: those of head that do something to other relations than their own.
        reworded: the nodes and tests whose fingerprints differed and that mean the same in other
            words, each with the rules that show it (`changes.equivalent_queries`): of one that is only below
            such nodes there are none. `head_analysis` has base's fingerprints for them.
        given: base as it was given: dbt does not know what is only named otherwise.
        contexts: of the projects that were analysed for it.
        project_dir: where head's files are; None for the current folder.
        cache: where lowered queries may be found.
        of_dbt: where declared assets are nodes of this one, too, the comparison without them.
        made: what was made of it, by what made it (`made_once`).
    """

    base: Project
    head: Project
    base_analysis: Analysis
    head_analysis: Analysis
    seeds: SeedPair
    changed: dict[str, NodeChange] = field(default_factory=dict)
    removed: list[str] = field(default_factory=list)
    everything: list[Reason] = field(default_factory=list)
    notes: list[Reason] = field(default_factory=list)
    hooks: list[Hook] = field(default_factory=list)
    reworded: dict[str, list[str]] = field(default_factory=dict)
    given: Project | None = None
    contexts: ProjectContexts = field(default_factory=ProjectContexts)
    project_dir: Path | None = None
    cache: Cache | None = None
    of_dbt: Comparison | None = None
    made: dict[Callable[[Comparison], Any], Any] = field(default_factory=dict, init=False)

    @property
    def base_context(self) -> ProjectContext:
        """What base's manifest says before anything is linked."""
        return self.contexts.of(self.base)

    @property
    def head_context(self) -> ProjectContext:
        """What head's manifest says before anything is linked."""
        return self.contexts.of(self.head)

    @cached_property
    def modified(self) -> set[str]:
        """What dbt itself calls modified (see `changes.state_modified`)."""
        return modified(self.given or self.base, self.head)

    def way_to(self, vertex: Vertex) -> list[Vertex]:
        """The vertices from where a change began down to one that changed."""
        way = [vertex]
        while (before := self.predecessors.get(way[-1])) is not None:
            way.append(before)
        return way[::-1]

    def name(self, unique_id: str) -> str:
        """What a node of head is called; its unique_id where head has no such node."""
        node = self.head.nodes.get(unique_id)
        return node.display_name if node is not None else unique_id

    def spoken(self, vertex: Vertex) -> str:
        """A column, or the rows, as people call it."""
        unique_id, column = vertex
        name = self.name(unique_id)
        return f"the rows of {name}" if column == ROWS else f"{name}.{column}"

    def is_semantic(self, unique_id: str) -> bool:
        """Whether it is a semantic model, a metric or a saved query."""
        node = self.head.nodes.get(unique_id)
        return node is not None and node.resource_type in SEMANTIC

    def unchanged(self) -> frozenset[str]:
        """The relations that are the same on both sides, with the order of their rows; it follows `changed`."""
        base, head = self.base_analysis.nodes, self.head_analysis.nodes
        return frozenset(
            unique_id
            for unique_id, now in head.items()
            if unique_id not in self.changed
            and (then := base.get(unique_id)) is not None
            and (
                then is now
                or (then.status, then.order, then.incidental, then.columns)
                == (now.status, now.order, now.incidental, now.columns)
            )
        )

    @cached_property
    def predecessors(self) -> dict[Vertex, Vertex | None]:
        """The way to each vertex that changed (see `change_paths`)."""
        return change_paths(self)

    @cached_property
    def changed_vertices(self) -> set[Vertex]:
        """Every vertex of head that changed."""
        return {vertex for change in self.changed.values() for vertex in change.vertices()}


_Made = TypeVar("_Made")


def made_once(make: Callable[[Comparison], _Made]) -> Callable[[Comparison], _Made]:
    """Of a comparison, make something when it is first asked for; whoever asks later gets the same object."""

    @wraps(make)
    def of(comparison: Comparison) -> _Made:
        if make not in comparison.made:
            comparison.made[make] = make(comparison)
        made: _Made = comparison.made[make]
        return made

    return of


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


def node_change(before: NodeAnalysis, now: NodeAnalysis) -> NodeChange | None:
    """What differs between two analyses of a node; None where it is the case of names only."""
    then = _by_name(before)
    here = _by_name(now)
    change = NodeChange(
        now.unique_id,
        "changed",
        rows=before.rows_fingerprint != now.rows_fingerprint,
        added=[name for key, (name, _) in here.items() if key not in then],
        removed=[name for key, (name, _) in then.items() if key not in here],
        redefined=[
            name for key, (name, fps) in here.items() if key in then and then[key][1] != fps
        ],
    )
    if change.added and change.removed:
        gone = {tuple(then[name.lower()][1]): name for name in reversed(change.removed)}
        for name in change.added:
            old = gone.pop(tuple(here[name.lower()][1]), None)
            if old is not None:
                change.renamed[name] = old
    common = [key for key in then if key in here]
    change.reordered = common != [key for key in here if key in then]
    if change.rows or change.added or change.removed or change.redefined or change.reordered:
        return change
    return None


def _by_name(analysis: NodeAnalysis) -> dict[str, tuple[str, list[str]]]:
    """The columns by lower-case name, each as spelled first and with all fingerprints it has."""
    columns: dict[str, tuple[str, list[str]]] = {}
    for name, fingerprint in zip(analysis.columns, analysis.fingerprints, strict=True):
        key = name.lower()
        if key in columns:
            columns[key][1].append(fingerprint)
        else:
            columns[key] = (name, [fingerprint])
    return columns


NOTHING: Final = "nothing changed"
NOTHING_TO_DO: Final = "nothing changed that a test reads or dbt builds"
_NAMES: Final = 5


def nothing_changed(comparison: Comparison) -> str | None:
    """A message that no relation differs, with the nodes that were edited; None if a relation differs."""
    if comparison.changed or comparison.removed or comparison.everything:
        return None
    head = comparison.head.nodes
    edited = [node.display_name for u, node in head.items() if u in comparison.modified]
    if not edited:
        return NOTHING
    more = f" and {len(edited) - _NAMES:,} more" if len(edited) > _NAMES else ""
    return f"no column and no row set changed (edited: {', '.join(edited[:_NAMES])}{more})"
