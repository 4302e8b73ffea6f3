"""Who is affected: the assets downstream of a change, what they read of it, and the severity.

The references of an asset are the changed columns and rows that it reads. They are followed column
by column along base's lineage (so a removed column still has its readers), and no further than
something changed. Severity:

* ``breaking``: it will not compile; or it loses a column, by what is above it or because a model
  above it that computes the column will not compile; or it is a consumer known to read that
  column;
* ``warning``: its values or its rows may differ, it passes on a column under another name, it
  cannot be analysed, or it is a consumer that declares no columns;
* ``info``: it reads nothing of the change, but is below a model that will not compile.

A node that cannot be analysed, an exposure that lists no columns, and whatever reads the change
only through these, *may* read it. Such a node is never called broken because a column is missing.

Not found: consumers that no exposure declares, and what their own code does.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from functools import cached_property
from itertools import groupby
from typing import Final, Literal

import msgspec

from dbt_ripple.artifacts import (
    Node,
    Project,
    asset_type,
    criticality,
    domain,
    is_certified,
    ownership,
    referenced_columns,
)
from dbt_ripple.artifacts.project import DependsOn
from dbt_ripple.changes import Comparison
from dbt_ripple.changes.compile_inputs import defined as as_written
from dbt_ripple.changes.verdict import verdict_of
from dbt_ripple.flow.definitions import computed
from dbt_ripple.flow.identifiers import dialect_of
from dbt_ripple.graph.column_edges import edges_into, exposure_edges_of, is_read_whole
from dbt_ripple.graph.lineage import ColumnEdge
from dbt_ripple.graph.lineage_tables import ROWS
from dbt_ripple.graph.possible_readers import may_write
from dbt_ripple.graph.semantic_references import defined
from dbt_ripple.graph.traversal import Vertex, breadth_first_tree, reach_all
from dbt_ripple.reasons import Code

Severity = Literal["breaking", "warning", "info"]
RiskLevel = Literal["low", "medium", "high"]

_RANK: Final[dict[str, int]] = {"breaking": 0, "warning": 1, "info": 2}
_CONSUMERS: Final = frozenset({"asset", "exposure", "metric", "saved_query", "semantic_model"})
WRITTEN_OUT: Final = 20
"""Assets, the nearest, of which the SQL is given that reads the change."""
MANY: Final = 5
"""Assets above which a change that breaks something is of high risk."""


class Expression(msgspec.Struct, kw_only=True):
    """A column, and the SQL that computes it over the relations its query reads."""

    column: str
    expression: str


class Affected(msgspec.Struct, kw_only=True, omit_defaults=True):
    """One asset a change reaches.

    Attributes:
        asset_type: as `artifacts.asset_type`.
        affected_references: what it reads of the change, under the name at the changed node; where
            several nodes were changed, after the node's name and a dot. Rows are ``*rows*``.
        project: the dbt project it is of, where that is another one; JSON has it where it is so. Its
            references are then those to the sources that stand for the changed relations there.
        owner: who is to be told; None where nobody is named. Where it is declared, JSON also has the
            owner_name, the owner_email, the owner_channel (Slack) and the domain.
        path: unique_ids from the changed node down to this one, both included.
        itself: whether these are its own, because it changes though nobody edited it: a macro, a var or what a
            reference means does; JSON has it where it is so.
        may_read: whether it is not known to read them, only that it may; JSON has it where it is so.
        expressions: of the nearest 20 assets, the columns that read the change; only those that are
            more than a column of another relation.
    """

    unique_id: str
    name: str
    asset_type: str
    affected_references: list[str]
    severity: Severity
    owner: str | None
    path: list[str]
    itself: bool = False
    may_read: bool = False
    expressions: list[Expression] = []
    owner_name: str | None = None
    owner_email: str | None = None
    owner_channel: str | None = None
    domain: str | None = None
    project: str | None = None

    @property
    def full_name(self) -> str:
        """The name; of another project after its name and a dot."""
        return f"{self.project}.{self.name}" if self.project else self.name

    @property
    def counts(self) -> bool:
        """Whether it breaks or may change; what only stands further below is not counted."""
        return self.severity != "info"

    def verb(self) -> str:
        """How it stands to its references: it reads them, or may, or they are its own and change."""
        if self.itself:
            return "changes in"
        return "may read" if self.may_read else "reads"


def counted(affected: Iterable[Affected]) -> int:
    """How many assets break or may change: the number that `impact`, the gate and its limits use."""
    return sum(asset.counts for asset in affected)


def risk_level(affected: Collection[Affected], head: Project) -> RiskLevel:
    """How much is at stake.

    * high: something breaks, and it is a consumer, certified or tier 1, or more than `MANY` assets
      break or may change;
    * medium: something else breaks, or a consumer, a certified or a tier-1 asset may differ;
    * low: everything else.
    """
    breaking = [a for a in affected if a.severity == "breaking"]
    if any(_matters(a, head) for a in breaking) or (breaking and counted(affected) > MANY):
        return "high"
    if breaking or any(_matters(a, head) for a in affected if a.severity == "warning"):
        return "medium"
    return "low"


def matters(node: Node) -> bool:
    """Whether a node is certified or of tier 1."""
    return is_certified(node) or (criticality(node) or "").lower() == "tier1"


def edited(comparison: Comparison) -> set[str]:
    """The relations the change was made in: their code, their settings, or what they are."""
    base, head = comparison.base.nodes, comparison.head.nodes
    broken = verdict_of(comparison).relations
    began = {vertex[0] for vertex, before in comparison.predecessors.items() if before is None}
    # Head's edges do not lead from a column that is gone: what may read it is no origin.
    gone = {u: set(change.removed) for u, change in comparison.changed.items() if change.removed}
    edges = edges_into(comparison.base_analysis.edges, began) if gone else ()
    began -= {edge[2] for edge in edges if edge[1] in gone.get(edge[0], ())}
    unique_ids = {
        unique_id
        for unique_id in comparison.changed
        if unique_id not in base
        or unique_id not in head
        or head[unique_id].resource_type in ("source", "seed")
        or unique_id in comparison.modified
        or defined(base[unique_id]) != defined(head[unique_id])
        # Neither its code nor anything above it: a variable, a macro, what its Jinja queried.
        or (unique_id in began and unique_id not in broken)
    }
    return unique_ids | set(comparison.removed) | set(verdict_of(comparison).vanished)


def affected_by(
    comparison: Comparison, origins: Collection[str], *, contract_types: Collection[str] = ()
) -> list[Affected]:
    """The assets that the changes made in some relations reach.

    Args:
        comparison: the two sides.
        origins: the relations the change was made in. One of them is itself affected where another
            reaches it.
        contract_types: models whose enforced contract will not hold.

    Returns:
        Nearest first, then the worst, then by unique_id; tests are not assets.
    """
    return Ripple(comparison, origins, contract_types).assets()


class Ripple:
    """The walk. Columns are compared in lower case: one side may spell them otherwise.

    Args:
        comparison: as for `affected_by`, like the next two.
        origins: the relations the change was made in.
        contract_types: models whose enforced contract will not hold.
        reached: of origins that another project builds, the columns and rows that the change reaches
            there; what else of them changed only stands below what will not compile there.
        lost: those of them whose data is lost.
        unsettled: origins that stand below what will not compile in the other project.
        of_an_edit: whether somebody has edited the project, so that an origin nobody edited (a macro or a var
            changes it) is affected itself; where a change is only supposed, there is none.
    """

    def __init__(
        self,
        comparison: Comparison,
        origins: Collection[str],
        contract_types: Collection[str] = (),
        reached: Collection[Vertex] | None = None,
        lost: Collection[Vertex] = (),
        unsettled: Collection[str] = (),
        *,
        of_an_edit: bool = False,
    ) -> None:
        self.comparison = comparison
        self.given, self.given_lost, self.unsettled = reached, lost, unsettled
        self.origins = origins
        self.of_an_edit = of_an_edit
        self.broken = verdict_of(comparison).relations
        self.contract_types = contract_types
        self.lost = {u for u, reason in self.broken.items() if reason.code is Code.GONE}
        self.orphans = {child for u in self.lost for child in comparison.head.children.get(u, ())}
        self.predecessors = {_folded(v): before for v, before in comparison.predecessors.items()}
        self.changed = set(self.predecessors)
        self.spelling = {_folded(vertex): vertex[1] for vertex in comparison.predecessors}
        self.gone: dict[Vertex, bool] = {}  # base's columns that are no more -> dropped for good
        for unique_id, change in comparison.changed.items():
            renamed = set(change.renamed.values())
            for column in change.removed:
                self.gone[unique_id, column.lower()] = column not in renamed
                self.spelling[unique_id, column.lower()] = column
        everything = {u: comparison.base_analysis.nodes[u].columns for u in comparison.removed}
        for unique_id, columns in (everything | verdict_of(comparison).vanished).items():
            for column in columns:
                self.gone[unique_id, column.lower()] = True
                self.spelling[unique_id, column.lower()] = column
        self.starts: list[Vertex] = []
        self.mask: dict[Vertex, int] = {}
        self.surely: dict[Vertex, int] = {}  # as `mask`, on ways that are analysed
        self.loss: set[Vertex] = set()  # columns whose data is lost
        self.opaque = {
            u for u, analysed in comparison.head_analysis.nodes.items() if analysed.is_unanalysed
        }
        self.guessed = may_write(comparison.base_analysis)
        self.harmed: set[str] = set()  # relations that read one
        self.links: dict[str, dict[str, None]] = {}
        self.severities: dict[str, tuple[Severity, int]] = {}
        self.known_to_read: set[str] = set()
        self.unedited = (
            _changed_from_elsewhere(comparison, origins)
            if of_an_edit and reached is None
            else set()
        )
        self._begin()
        self._follow()
        if _may_go_round(comparison.head):
            # What dbt builds may come back by an asset: nothing is ever taken out of what was found.
            size = None
            while size != (size := self._size()):
                self._follow()

    def _begin(self) -> None:
        began = [v for v, up in self.predecessors.items() if up is None and v[0] in self.origins]
        began = [v for v in began if v[0] not in self.broken or v[0] in self.lost]
        began = [*(v for v in self.gone if v[0] in self.origins), *began]
        if self.given is not None:
            began = [v for v in self.given if v in self.changed or v in self.gone]
        for vertex in began:
            if vertex not in self.mask:
                self.mask[vertex] = self.surely[vertex] = 1 << len(self.starts)
                self.starts.append(vertex)
                if self.gone.get(vertex) or vertex in self.given_lost:
                    self.loss.add(vertex)
        for vertex in began:
            if vertex[0] in self.unedited:
                self._note(vertex[0], "warning", [vertex])

    def _size(self) -> tuple[int, ...]:
        bits = sum(mask.bit_count() for side in (self.mask, self.surely) for mask in side.values())
        return bits, len(self.mask), len(self.surely), len(self.loss), len(self.harmed)

    def reached(self, unique_id: str) -> set[str]:
        """The columns (in lower case) and rows of a relation that the change reaches."""
        if unique_id in self.origins and unique_id not in self.broken:
            return {v[1] for v in (*self.changed, *self.gone) if v[0] == unique_id}
        return {v[1] for v in (*self.mask, *self.gone) if v[0] == unique_id}

    def lost_columns(self, unique_id: str) -> set[str]:
        """Those of them whose data is lost."""
        return {v[1] for v in self.loss if v[0] == unique_id}

    # -- along the lineage ------------------------------------------------------------------------

    def _follow(self) -> None:
        """Base's edges come child by child, every child after its parents."""
        changed = self.comparison.changed
        nodes = self.comparison.base.nodes
        edges_of_base = self.comparison.base_analysis.edges
        self._hand_on_new_columns()
        for child, edges in groupby(edges_into(edges_of_base, changed), lambda edge: edge[2]):
            if child in self.origins and child not in self.broken:
                # An edited reader has been adapted: it still gets only what changed above it on head.
                for edge in edges:
                    if self._still_comes(edge):
                        self._step(edge)
                        self._note(child, "warning", [(edge[0], edge[1].lower())])
                continue
            for edge in edges:
                self._step(edge)
            self._below_rows(child)
            self._lost_whole(child)
            self._judge(child)
        for unique_id in changed:
            if unique_id not in self.severities and unique_id not in self.origins:
                self._judge(unique_id)
        consumers = {node.unique_id for node in nodes.values() if node.resource_type == "exposure"}
        consumers &= self.comparison.head.nodes.keys()
        into = exposure_edges_of(edges_of_base, consumers)
        for child, edges in groupby(into, lambda edge: edge[2]):
            self._exposure(nodes[child], list(edges))
        self._exposures_below_broken()

    def _hand_on_new_columns(self) -> None:
        """A column that base does not have has its readers on head alone: what says ``*``."""
        new = {v for v in self.starts if v[1] in self._added(v[0])}
        if not new:
            return
        changed = self.comparison.changed
        for edge in edges_into(self.comparison.head_analysis.edges, changed):
            above, below = (edge[0], edge[1].lower()), (edge[2], edge[3].lower())
            if above in new and below[0] not in self.origins and below[1] in self._added(below[0]):
                new.add(below)
                self._step(edge)

    def _added(self, unique_id: str) -> set[str]:
        change = self.comparison.changed.get(unique_id)
        return {column.lower() for column in change.added} if change is not None else set()

    def _still_comes(self, edge: ColumnEdge) -> bool:
        """Whether a column of an edited node changed because one above it did."""
        before = self.predecessors.get((edge[2], edge[3].lower()))
        return (
            before is not None and before[0] != edge[2] and (edge[0], edge[1].lower()) in self.mask
        )

    def _step(self, edge: ColumnEdge) -> None:
        above, below = (edge[0], edge[1].lower()), (edge[2], edge[3].lower())
        bits = self.mask.get(above)
        if not bits or not (below in self.changed or below in self.gone or below[0] in self.broken):
            return
        self.mask[below] = self.mask.get(below, 0) | bits
        guess = below[0] in self.opaque or (above[0], below[0]) in self.guessed
        if not guess and (sure := self.surely.get(above)):
            self.surely[below] = self.surely.get(below, 0) | sure
        self.links.setdefault(above[0], {})[below[0]] = None
        if above[1] == ROWS or guess:
            return  # what an opaque reader reads is not known, only that it may be this
        if above in self.loss or (above in self.gone and below[0] in self.broken):
            self.harmed.add(below[0])
            if below[1] != ROWS:
                self.loss.add(below)

    def _below_rows(self, child: str) -> None:
        """What is computed over the rows (aggregates, windows) changes with them; no edge says it."""
        for mask in (self.mask, self.surely):
            if bits := mask.get((child, ROWS)):
                for column in self.comparison.changed[child].redefined:
                    mask.setdefault((child, column.lower()), bits)

    def _lost_whole(self, child: str) -> None:
        """A metric that cannot be computed is lost to all who read it, whatever it lacks."""
        lost = child in self.broken or child in self.harmed
        if lost and is_read_whole(self.comparison.base.nodes.get(child)):
            vertices = list(self._columns(child))
            bits = self._bits(vertices)
            for vertex in vertices:
                self.mask[vertex] = self.surely[vertex] = bits
            self.loss.update(vertices)

    def _columns(self, unique_id: str) -> Iterator[Vertex]:
        analysed = self.comparison.base_analysis.nodes.get(unique_id)
        for column in (*(analysed.columns if analysed else ()), ROWS):
            yield unique_id, column.lower()

    def _bits(self, vertices: Iterable[Vertex]) -> int:
        bits = 0
        for vertex in vertices:
            bits |= self.mask.get(vertex, 0)
        return bits

    def _note(self, unique_id: str, severity: Severity, read: Collection[Vertex]) -> None:
        """Note what an asset reads of the change; `_may` of what it only may."""
        if any(self.surely.get(vertex) for vertex in read) or severity == "breaking":
            self.known_to_read.add(unique_id)
        self._may(unique_id, severity, read)

    def _may(self, unique_id: str, severity: Severity, read: Collection[Vertex]) -> None:
        """Note what an asset may read of the change."""
        bits = self._bits(read)
        if unique_id in self.origins and not bits:
            return
        severity_and_bits = self.severities.get(unique_id)
        if severity_and_bits is not None:
            severity = min(severity, severity_and_bits[0], key=_RANK.__getitem__)
            bits |= severity_and_bits[1]
        self.severities[unique_id] = severity, bits

    def _judge(self, unique_id: str) -> None:
        """What the change does to a relation that was not edited, or that is broken."""
        change = self.comparison.changed[unique_id]
        if change.kind == "added" or unique_id in self.lost:
            return
        if unique_id in self.origins and unique_id not in self.broken:
            return
        vertices = list(self._columns(unique_id))
        vertices += [(unique_id, column) for column in self._added(unique_id)]
        bits = self._bits(vertices)
        node = self.comparison.head.nodes.get(unique_id)
        promised = node is not None and node.contract_enforced
        if (
            unique_id in self.broken
            or unique_id in self.orphans
            or unique_id in self.contract_types
            or unique_id in self.harmed
            or any(self.gone.get(vertex) for vertex in vertices)
            or (promised and change.renamed)
        ):
            self.severities[unique_id] = "breaking", bits
        elif bits or not self._moved_only_with_broken(unique_id):
            self.severities[unique_id] = "warning", bits
        else:
            self.severities[unique_id] = "info", 0
        sure = unique_id not in self.opaque and any(self.surely.get(v) for v in vertices)
        if sure or self.severities[unique_id][0] != "warning":
            self.known_to_read.add(unique_id)

    def _moved_only_with_broken(self, unique_id: str) -> bool:
        """Whether its columns and rows changed only because a model above it will not compile."""
        predecessors = self.comparison.predecessors
        for vertex in self.comparison.changed[unique_id].vertices():
            start = vertex
            while (before := predecessors.get(start)) is not None:
                start = before
            shaken = self.given is not None and start[0] in self.origins
            if start[0] not in self.broken and not (shaken and _folded(start) not in self.mask):
                return False
        return True

    # -- consumers --------------------------------------------------------------------------------

    def _exposure(self, node: Node, edges: list[ColumnEdge]) -> None:
        now = self.comparison.head.nodes[node.unique_id]
        declared = referenced_columns(now)
        still = {entry.rpartition(".")[2].lower() for entry in declared or ()}
        unlisted = declared is None and referenced_columns(node) is None
        for parent, column, child, _, *_ in edges:
            vertex = (parent, column.lower())
            whole = is_read_whole(self.comparison.base.nodes.get(parent))
            if unlisted and not whole:
                if column == ROWS and self._bits(everything := list(self._columns(parent))):
                    self._link(parent, child)
                    self._may(child, "warning", everything)
                    if self.surely.get((parent, ROWS)):  # which rows there are it reads for sure
                        self.known_to_read.add(child)
            elif column == ROWS or whole or column.lower() in still:
                if vertex in self.gone or vertex in self.loss:
                    self._link(parent, child)
                    self._note(child, "breaking", [vertex])
                elif vertex in self.mask:
                    self._link(parent, child)
                    self._note(child, "warning", [vertex])
            if parent in self.lost or parent in self.comparison.removed:
                self._link(parent, child)
                self._note(child, "breaking", list(self._columns(parent)))

    def _link(self, parent: str, child: str) -> None:
        self.links.setdefault(parent, {})[child] = None

    def _exposures_below_broken(self) -> None:
        """Add the exposures below models that will not compile, which read nothing of the change."""
        head = self.comparison.head
        for unique_id in self.below_broken:
            node = head.nodes.get(unique_id)
            if (
                node is not None
                and node.resource_type == "exposure"
                and unique_id in self.comparison.base.nodes
            ):
                self.severities.setdefault(unique_id, ("info", 0))

    @cached_property
    def below_broken(self) -> Collection[str]:
        """What will not compile, and all that stands below it."""
        return reach_all([*self.broken, *self.unsettled], self.comparison.head.children).keys()

    # -- the answer -------------------------------------------------------------------------------

    def assets(self) -> list[Affected]:
        """What it reaches, as `affected_by` gives it."""
        head = self.comparison.head
        paths = self._paths()
        single = len({vertex[0] for vertex in self.starts}) == 1
        assets = []
        for unique_id, (severity, bits) in self.severities.items():
            node = head.nodes.get(unique_id)
            if node is None:
                continue
            read = [start for i, start in enumerate(self.starts) if bits >> i & 1]
            itself = unique_id in self.unedited
            if itself:
                read = [start for start in read if start[0] == unique_id]
            columns = [start for start in read if start[1] != ROWS]
            spelled = [self._spelled(start, single or itself) for start in columns or read]
            assets.append(
                Affected(
                    unique_id=unique_id,
                    name=node.display_name,
                    asset_type=asset_type(node),
                    affected_references=spelled,
                    itself=itself,
                    severity=severity,
                    **ownership(node, head),
                    domain=domain(node, head),
                    path=paths.get(unique_id) or [unique_id],
                    may_read=severity == "warning" and unique_id not in self.known_to_read,
                )
            )
        assets.sort(key=lambda a: (len(a.path), _RANK[a.severity], a.unique_id))
        for asset in assets[:WRITTEN_OUT]:
            asset.expressions = self._expressions(asset.unique_id)
        return assets

    def _expressions(self, unique_id: str) -> list[Expression]:
        """The SQL behind the columns of an asset that read the change."""
        head = self.comparison.head
        node = head.nodes[unique_id]
        analysed = self.comparison.head_analysis.nodes.get(unique_id)
        names = [
            c
            for c in (analysed.columns if analysed else ())
            if self.mask.get((unique_id, c.lower()))
        ]
        if not names or node.is_python or not node.compiled_code:
            return []
        texts = computed(node.compiled_code, dialect_of(head.metadata.adapter_type))
        return [
            Expression(column=name, expression=text)
            for name in names
            if (text := texts.get(name.lower()))
        ]

    def _spelled(self, vertex: Vertex, single: bool) -> str:
        column = self.spelling.get(vertex, vertex[1])
        if single:
            return column
        project = self.comparison.head if vertex[0] in self.comparison.head.nodes else None
        node = (project or self.comparison.base).nodes.get(vertex[0])
        return f"{node.spoken_name if node else vertex[0]}.{column}"

    def _paths(self) -> dict[str, list[str]]:
        """A shortest way of nodes to each, along what it reads of the change where it does."""
        children: dict[str, list[str]] = {u: sorted(below) for u, below in self.links.items()}
        starts = sorted({vertex[0] for vertex in self.starts})
        paths = _shortest_paths({u: [u] for u in starts}, children)
        without_path = {u for u in self.severities if u not in paths}
        if without_path:
            everything = {
                u: sorted(v for v in below if v in self.severities)
                for u, below in self.comparison.head.children.items()
            }
            begun = dict(sorted({**{u: [u] for u in self.origins}, **paths}.items()))
            paths |= {
                u: way for u, way in _shortest_paths(begun, everything).items() if u in without_path
            }
        return paths


def _changed_from_elsewhere(comparison: Comparison, origins: Collection[str]) -> set[str]:
    """Those of the origins that nobody edited: a macro, a var, or what a reference means, changes them."""

    def written(node: Node) -> Node:
        return msgspec.structs.replace(as_written(node), depends_on=DependsOn())

    base, head = comparison.base, comparison.head
    return {
        unique_id
        for unique_id in origins
        if (then := base.nodes.get(unique_id)) is not None
        and (now := head.nodes.get(unique_id)) is not None
        and now.resource_type not in ("source", "seed")
        and written(then) == written(now)
    }


def _may_go_round(project: Project) -> bool:
    """Whether the graph may have cycles, by way of declared assets."""
    return any(node.resource_type == "asset" for node in project.nodes.values())


def _folded(vertex: Vertex) -> Vertex:
    return vertex[0], vertex[1].lower()


def _shortest_paths(
    begun: dict[str, list[str]], children: dict[str, list[str]]
) -> dict[str, list[str]]:
    """The shortest path to each node: one that is begun, and the nodes below its end."""
    paths = dict(begun)
    for unique_id, before in breadth_first_tree(begun, children).items():
        if before is not None:
            paths[unique_id] = [*paths[before], unique_id]
    return paths


def _matters(affected: Affected, head: Project) -> bool:
    node = head.nodes[affected.unique_id]
    return node.resource_type in _CONSUMERS or matters(node)
