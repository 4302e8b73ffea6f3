"""A project linked once more, with what is known of rows put to use (rules 14 and 15).

Only what a change moved is linked: a relation that is the same on both sides stands for itself. On
each side the tests that are known to hold there say which columns are unique, not null or related;
a test's meaning is read off its own query, so that it does not matter what it is called. A fact is
used by queries that are linked after it was noted, so no argument goes in a circle.
"""

from __future__ import annotations

import functools
import heapq
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Final

from dbt_ripple.artifacts import CatalogColumn, Node, Project
from dbt_ripple.flow.containment import (
    CountAbove,
    Group,
    IsNull,
    OpaqueRows,
    Rows,
    SemiJoin,
    conditions,
    sides,
)
from dbt_ripple.flow.fingerprint import digest
from dbt_ripple.flow.identifiers import fold_stored, keeps_case
from dbt_ripple.flow.ir import IDENTITY
from dbt_ripple.flow.link import Linked, link
from dbt_ripple.flow.relation import Relation
from dbt_ripple.flow.row_constraints import (
    Facts,
    FactUse,
    KnownConstraints,
    Proof,
    Related,
    Unique,
    type_family,
)
from dbt_ripple.graph.cache import Cache
from dbt_ripple.graph.introspection import WarehouseReads
from dbt_ripple.graph.lineage import Analysis, NodeAnalysis
from dbt_ripple.graph.lineage_tables import ROWS
from dbt_ripple.graph.linker import Linker
from dbt_ripple.graph.relations import (
    RELATIONS,
    LinkedNode,
    OwnPreviousColumns,
    unchanged_relation,
    why_unreadable,
)
from dbt_ripple.graph.seed_files import SeedFiles
from dbt_ripple.reasons import Code, Reason

HOLDS_ITS_QUERY: Final = frozenset(
    {"dynamic_table", "ephemeral", "materialized_view", "table", "view"}
)
"""Materializations of which the relation holds the query's rows, no more and no less."""


@dataclass(slots=True)
class TestRows:
    """A test's query, linked with facts.

    Attributes:
        facts: of the rows it returns.
        fingerprints: of its columns.
        steps: the facts that were used, in its query and above.
    """

    facts: Facts
    fingerprints: list[bytes]
    steps: frozenset[FactUse]


class FactAnalyser(Linker):
    """One side of a project, linked with facts as far as it is asked for.

    Args:
        project: the side.
        analysis: of this side, without facts.
        unmoved: the nodes that are the same on both sides, by unique_id.
        known_constraints: the one book of both sides.
        holds: whether a test is known to return no row on this side.
        columns: the columns of a relation as the warehouse has them on this side.
        cache: where lowered queries may be found.
        seeds: the files of seeds.
        settled: the nodes that look at the warehouse while they compile, and of which compiled SQL
            says all the same (see `selection.proven_tests`).
        loaded: the seeds whose relation is known to hold what their file does on this side.
    """

    def __init__(
        self,
        project: Project,
        analysis: Analysis,
        unmoved: frozenset[str],
        known_constraints: KnownConstraints,
        holds: Callable[[str], bool],
        columns: Callable[[str], Iterable[CatalogColumn]],
        cache: Cache | None = None,
        seeds: SeedFiles | None = None,
        settled: frozenset[str] = frozenset(),
        loaded: Iterable[str] = (),
    ) -> None:
        super().__init__(project, False, cache, None, seeds or SeedFiles())
        self.analysis = analysis
        self.unmoved = frozenset[str]() if keeps_case(self.dialect) else unmoved
        self.known_constraints = known_constraints
        self.holds = holds
        self.columns = columns
        self.settled = settled
        self.loaded = list(loaded)
        self.proved_by_files = False
        self.steps: dict[str, dict[FactUse, None]] = {}
        self.linked: dict[str, Linked] = {}
        self.tested: dict[str, TestRows | None] = {}
        self.waiting: dict[str, int] = {}
        self.ready: list[tuple[int, str]] = []
        self.proving = 0
        self.unchanged_relations: dict[str, list[str]] = {}
        for source, unique_id in self.names.canonical.items():
            self.unchanged_relations.setdefault(unique_id, []).append(source)

    # -- tests ----------------------------------------------------------------------------------

    def rows_of(self, test: str) -> TestRows | None:
        """A test's rows; None where its query cannot be followed to the end.

        It is linked once: what is known later does not enter.
        """
        if test not in self.tested:
            self.tested[test] = None
            self.tested[test] = self._rows_of(test, self.project.nodes[test])
        return self.tested[test]

    def _rows_of(self, unique_id: str, node: Node) -> TestRows | None:
        parents = self.relations_above(unique_id)
        for parent in parents:
            self.node(parent)
        if isinstance(self.follow(unique_id, node), Reason):
            return None
        linked = self.linked[unique_id]
        relation = linked.relation
        if linked.missing or linked.unknown or relation.unlisted or relation.facts is None:
            return None
        looks = self.introspection.of(node)
        if (
            self.settings.of(node)
            or self.besides_query(unique_id, node, looks)
            or self.beyond(unique_id, node, looks)
        ):
            return None
        return TestRows(relation.facts, relation.fps, frozenset(self.steps[unique_id]))

    def prove(self) -> None:
        """Note what the tests say of which all parents are linked.

        Those of one relation first: that a key is unique helps to see what one that relates two
        says. So the latter wait while one of the former is looked at, for which more may be asked.
        """
        while self.ready and not (self.proving and self.ready[0][0] > 1):
            _, test = heapq.heappop(self.ready)
            self.proving += 1
            rows = self.rows_of(test)
            self.proving -= 1
            if rows is None:
                continue
            above = frozenset[str]().union(*(s.tests for s in rows.steps))
            proof = Proof(above | {test}, f"by {self.project.nodes[test].name}")
            for parent in self.relations_above(test):
                facts = self.linked_nodes[parent].relation.facts
                if facts is not None:
                    _note(rows.facts.rows, facts, proof)

    # -- nodes ----------------------------------------------------------------------------------

    def node(self, unique_id: str) -> LinkedNode:
        """A relation with what is known of its rows."""
        linked = self.linked_nodes.get(unique_id)
        if linked is not None:
            return linked
        seen = self.analysis.nodes.get(unique_id)
        node = self.project.nodes[unique_id]
        if seen is not None and seen.status == "analysed" and unique_id in self.unmoved:
            linked = self.linked_nodes[unique_id] = self.unchanged(unique_id, seen)
        else:
            linked = super().node(unique_id)
            linked.relation.facts = self.carried(node, linked.relation)
        self.type_columns(unique_id, linked.relation)
        if node.resource_type == "seed":
            self.prove_by_files()
        for test in self.tests_of(unique_id):
            if test not in self.waiting:
                self.waiting[test] = len(self.refers_to(test))
            self.waiting[test] -= 1
            if not self.waiting[test]:
                heapq.heappush(self.ready, (len(self.relations_above(test)), test))
        return linked

    def prove_by_files(self) -> None:
        """Note what the files of seeds prove: values that are there, keys, and what is among keys."""
        if self.proved_by_files:
            return
        self.proved_by_files = True
        keys: dict[frozenset[str], list[tuple[bytes, bytes, Proof]]] = {}
        columns: list[tuple[Facts, bytes, frozenset[str]]] = []
        for unique_id in self.loaded:
            node = self.project.nodes[unique_id]
            if self.settings.of(node) or unique_id in self.hooks.writing:
                continue
            proved = self.seeds.columns(node)
            if not proved:
                continue
            relation = self.node(unique_id).relation
            facts = relation.facts
            if facts is None or self.analysis.nodes[unique_id].reason:
                continue
            proof = Proof(frozenset(), f"by the file of {node.display_name}")
            texts = {n.lower() for n, type_ in self.types_of_seed(node) if type_ == "text"}
            known = relation.columns()
            for name, column in proved.items():
                found = known.get(fold_stored(name, self.dialect))
                if found is None:
                    continue
                if column.whole:
                    facts.not_null.setdefault(found[0], proof)
                if column.unique:
                    facts.unique.append(Unique(frozenset({found[0]}), proof, True))
                if column.values is not None:
                    if name.lower() in texts:
                        self.known_constraints.loaded(found[0], column.values)
                    columns.append((facts, found[0], column.values))
                    if column.unique:
                        keys.setdefault(column.values, []).append(
                            (relation.rows_fp, found[0], proof)
                        )
        for facts, child, values in columns:
            for parent, same in keys.items():
                if values <= parent:
                    facts.related.setdefault(child, []).extend(Related(*key) for key in same)

    def tests_of(self, unique_id: str) -> list[str]:
        """The tests that hold and refer to a relation, under any of its names."""
        named = [unique_id, *self.unchanged_relations.get(unique_id, ())]
        children = (
            child
            for name in named
            if self.names.canonical.get(name, name) == unique_id
            for child in self.project.children.get(name, ())
        )
        nodes = self.project.nodes
        return [
            child
            for child in dict.fromkeys(children)
            if nodes[child].resource_type == "test" and self.holds(child)
        ]

    def query(self, unique_id: str, node: Node) -> LinkedNode:
        """A node's query; before it, what is known of its parents."""
        parents = self.relations_above(unique_id)
        for parent in parents:
            self.node(parent)
        self.prove()
        linked = super().query(unique_id, node)
        steps = self.steps.setdefault(unique_id, {})
        for parent in parents:
            steps.update(self.steps.get(parent, {}))
        return linked

    def follow(self, unique_id: str, node: Node) -> tuple[dict[str, str], Linked] | Reason:
        """As without facts, but linked with them; notes which were used."""
        reason = why_unreadable(node)
        if reason is not None:
            return reason
        known_constraints = self.known_constraints
        outer = known_constraints.steps, known_constraints.reader, known_constraints.named
        known_constraints.steps, known_constraints.reader, known_constraints.named = (
            {},
            node.display_name,
            self.spoken,
        )
        for parent in self.relations_above(unique_id):
            known_constraints.steps.update(self.steps.get(parent, {}))
        try:
            known_constraints.spelled(node.compiled_code or "")
            lowered = self.queries.lowered(node.compiled_code or "")
            if lowered.rel is None:
                return lowered.reason or Code.NO_QUERY()
            table = functools.partial(self.table, unique_id)
            linked = link(lowered, table, self.dialect, known_constraints)
            self.linked[unique_id] = linked
            self.called[unique_id] = linked.called
            self.steps[unique_id] = known_constraints.steps
            return {}, linked
        except Exception as error:  # a defect of ours is this node's, not the whole project's
            return Code.DEFECT(error=f"{type(error).__name__}: {error}")
        finally:
            known_constraints.steps, known_constraints.reader, known_constraints.named = outer

    def table(self, reader: str, key: str, name: str) -> Relation:
        """The relation behind a name; the facts it rests on are the reader's, too."""
        unique_id = self.names.node_of(key)
        if (
            unique_id in self.in_progress
            and unique_id != reader
            and unique_id not in self.linked_nodes
        ):
            # In a circle; what is not known yet is equal to nothing, least of all to the other side's.
            leaf = digest(b"cycle", unique_id.encode(), str(id(self)).encode())
            rows = {(unique_id, ROWS): IDENTITY}
            circle = Relation([], [], [], [], [OwnPreviousColumns()], leaf, rows, leaf)
            circle.facts = Facts(OpaqueRows(leaf))
            return circle
        relation = super().table(reader, key, name)
        if unique_id is not None:
            self.known_constraints.steps.update(self.steps.get(unique_id, {}))
        return relation

    def besides_query(self, unique_id: str, node: Node, looks: WarehouseReads) -> bytes:
        """As without facts, but nothing where compiled SQL says it all."""
        return b"" if unique_id in self.settled else super().besides_query(unique_id, node, looks)

    def left_in(self, key: str) -> bytes:
        """What hooks leave is not looked into here: where it moved, it is equal to nothing.

        A relation that is the same on both sides is so with what hooks leave in it.
        """
        if key in self.unmoved:
            return digest(b"left", key.encode())
        return digest(key.encode(), str(id(self)).encode())

    def spoken(self, key: str) -> str:
        """What a relation is called in words, given its name in SQL or an alias."""
        unique_id = self.names.node_of(key)
        if unique_id is not None and unique_id in self.project.nodes:
            return self.project.nodes[unique_id].display_name
        return key.rpartition(".")[2]

    def read_of(self, test: str, unique_id: str) -> set[str]:
        """The columns of a relation that a test's query names; nothing where it is not known."""
        linked = self.linked.get(test)
        if linked is None or linked.missing or linked.unknown or linked.relation.unlisted:
            return set()
        read = [linked.relation.rows, *linked.relation.deps]
        return {column for deps in read for of, column in deps if of == unique_id} - {ROWS}

    def keeps(self, unique_id: str, parent: str, columns: set[str]) -> bool:
        """Whether a relation has all rows of its parent, and these columns as they are there."""
        here, there = self.node(unique_id).relation, self.node(parent).relation
        known = dict(zip(there.names, there.fps, strict=True))
        return (
            here.rows_fp == there.rows_fp
            and columns <= known.keys()
            and {known[name] for name in columns} <= set(here.fps)
        )

    def carried(self, node: Node, relation: Relation) -> Facts:
        """What is known of a relation from its own query, where it holds that query's rows."""
        linked = self.linked.get(node.unique_id)
        if (
            linked is None
            or linked.relation.facts is None
            or linked.relation.rows_fp != relation.rows_fp
            or node.materialized not in HOLDS_ITS_QUERY
        ):
            return Facts(OpaqueRows(relation.rows_fp))
        facts = linked.relation.facts.copy()
        facts.more = None
        return facts

    def unchanged(self, unique_id: str, seen: NodeAnalysis) -> LinkedNode:
        """A relation that is the same on both sides, without looking above it."""
        relation = unchanged_relation(unique_id, seen, self.dialect)
        relation.facts = Facts(OpaqueRows(relation.rows_fp), more=self._more(unique_id, relation))
        return LinkedNode(seen, relation, [], {})

    def _more(self, unique_id: str, relation: Relation) -> Callable[[], Iterable[Unique]] | None:
        """What an unchanged relation's own query proves to be unique; found when asked for."""
        node = self.project.nodes[unique_id]

        @functools.cache
        def more() -> tuple[Unique, ...]:
            if unique_id in self.in_progress or self.reaches_what_is_in_progress(unique_id):
                return ()
            self.in_progress[unique_id] = None
            parents = self.relations_above(unique_id)
            for parent in parents:
                self.node(parent)
            self.prove()
            followed = self.follow(unique_id, node)
            del self.in_progress[unique_id]
            if isinstance(followed, Reason):
                return ()
            steps = self.steps.pop(unique_id)
            inner = self.linked[unique_id].relation
            if inner.facts is None or inner.unlisted or len(inner.fps) != len(relation.fps):
                return ()
            above = frozenset[str]().union(*(s.tests for s in steps))
            shown = dict(zip(inner.fps, relation.fps, strict=True))
            return tuple(
                Unique(
                    frozenset(shown[c] for c in unique.columns),
                    Proof(unique.proof.tests | above, unique.proof.words),
                    unique.nulls,
                )
                for unique in inner.facts.unique
                if unique.columns <= shown.keys()
            )

        plain = node.materialized in HOLDS_ITS_QUERY and not node.contract_enforced
        if (
            not plain
            or self.settings.of(node)
            or self.besides_query(unique_id, node, self.introspection.of(node))
            or (self.analysis.nodes[unique_id].introspects and unique_id not in self.settled)
            or self.analysis.nodes[unique_id].reason  # it reads, or is, what hooks write
        ):
            return None
        return more

    def reaches_what_is_in_progress(self, unique_id: str) -> bool:
        """Whether linking what a node reads would come to a node that is being linked."""
        looked = {unique_id}
        ahead = [unique_id]
        while ahead:
            for parent in self.project.parents.get(ahead.pop(), ()):
                parent = self.names.canonical.get(parent, parent)
                if parent in looked or parent in self.linked_nodes:
                    continue
                if parent in self.in_progress:
                    return True
                looked.add(parent)
                ahead.append(parent)
        return False

    def type_columns(self, unique_id: str, relation: Relation) -> None:
        """Note the types of a relation's columns."""
        columns = relation.columns()
        types = [(c.name, c.type) for c in self.columns(unique_id)]
        for name, type_ in types or self.types_of_seed(self.project.nodes[unique_id]):
            column = columns.get(fold_stored(name, self.dialect))
            if column is not None:
                self.known_constraints.typed(column[0], type_family(type_))

    def types_of_seed(self, node: Node) -> list[tuple[str, str]]:
        """The types that a seed's columns will have once its file is loaded, as far as that is sure."""
        if node.resource_type != "seed":
            return []
        column_types = node.config.get("column_types")
        types = (
            {str(k): str(v) for k, v in column_types.items()}
            if isinstance(column_types, dict)
            else {}
        )
        file = self.seeds.read(node)
        if file is not None:
            own = {name.lower() for name in types}
            types |= {n: "text" for n in file.header if n.lower() in file.text - own}
        return list(types.items())


def _note(rows: Rows, of: Facts, proof: Proof) -> None:
    """Note what it says of a relation that a query returns no row: uniqueness and its like."""
    met = conditions(rows)
    _, first = sides(rows)[0]
    if isinstance(first, Group) and len(sides(rows)) == 1 and len(met) == 1:
        (condition,) = met.values()
        if isinstance(condition, CountAbove) and condition.number == 1 and condition.rows:
            beyond = _beyond(first.rows, of.rows)
            if first.keys and beyond is not None and _not_null_only(beyond, first.keys):
                of.unique.append(Unique(first.keys, proof, not beyond))
    found = _beyond(rows, of.rows)
    if not found:
        return
    matches = [c for c in found if isinstance(c, SemiJoin)]
    nulls = [c for c in found if isinstance(c, IsNull)]
    if len(found) == 1 and nulls and not nulls[0].negated:
        of.not_null[nulls[0].column] = proof
    elif len(matches) == 1 and matches[0].negated and matches[0].child:
        match = matches[0]
        others = [c for c in found if c is not match]
        if _not_null_only(others, frozenset({match.child})):
            of.related.setdefault(match.child, []).append(
                Related(match.rows.fp, match.parent, proof)
            )


def _beyond(rows: Rows, of: Rows) -> list[object] | None:
    """The conditions that rows of a relation meet besides its own; None where they are others."""
    if [(t, r.fp) for t, r in sides(rows)] != [(t, r.fp) for t, r in sides(of)]:
        return None
    own = conditions(of)
    if not own.keys() <= conditions(rows).keys():
        return None
    return [c for key, c in conditions(rows).items() if key not in own]


def _not_null_only(conditions: Iterable[object], columns: frozenset[bytes]) -> bool:
    return all(isinstance(c, IsNull) and c.negated and c.column in columns for c in conditions)


__all__ = ["HOLDS_ITS_QUERY", "RELATIONS", "FactAnalyser", "TestRows"]
