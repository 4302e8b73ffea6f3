"""One side of a project linked with what tests and the files of seeds prove of rows (rules 14 and 15).

Only what a change affects is linked: a relation that is the same on both sides is taken as it was analysed. On
each side the tests that are known to hold there say which columns are unique, not null or related
(`graph.linking.proven_constraints`). A fact is used by queries that are linked after it was noted, so no
argument is circular.
"""

from __future__ import annotations

import functools
import heapq
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass
from typing import Final, NamedTuple

from dbt_ripple.artifacts import CatalogColumn, Node
from dbt_ripple.flow.containment import OpaqueRows
from dbt_ripple.flow.fingerprint import digest
from dbt_ripple.flow.identifiers import fold_stored, keeps_case
from dbt_ripple.flow.link import Linked, link
from dbt_ripple.flow.relation import Relation
from dbt_ripple.flow.row_constraints import (
    TEXT_OF_A_SOURCE,
    Facts,
    FactUse,
    KnownConstraints,
    Proof,
    Unique,
    type_family,
)
from dbt_ripple.graph.column_edges import value_edges
from dbt_ripple.graph.lineage import NodeAnalysis
from dbt_ripple.graph.lineage_tables import ROWS
from dbt_ripple.graph.linking.compared_side import ComparedSide
from dbt_ripple.graph.linking.functions import marked_calls
from dbt_ripple.graph.linking.linker import Linker
from dbt_ripple.graph.linking.modes import FollowedQuery, LinkingMode, unequal_cycle
from dbt_ripple.graph.linking.node_parents import refers_to, relations_above
from dbt_ripple.graph.linking.other_dependencies import besides_query, unnamed_reads
from dbt_ripple.graph.linking.proven_constraints import note_constraints, note_constraints_of_files
from dbt_ripple.graph.linking.seeds import types_of_seed
from dbt_ripple.graph.relations import LinkedNode, unchanged_relation
from dbt_ripple.graph.traversal import Vertex, reach_all
from dbt_ripple.reasons import Code, Reason

COLLATIONS_IN_TYPES: Final = frozenset({"athena", "clickhouse", "databricks", "spark", "trino"})
"""Dialects whose columns have no collation, or one that a catalog shows."""

HOLDS_ITS_QUERY: Final = frozenset(
    {"dynamic_table", "ephemeral", "materialized_view", "table", "view"}
)
"""Materializations of which the relation holds the query's rows, no more and no less."""


class Evidence(NamedTuple):
    """What is known of the rows of one side.

    Attributes:
        holds: whether a test is known to return no row.
        columns: the columns of a relation as the warehouse has them.
        settled: the nodes that query the warehouse while they compile, and of which compiled SQL
            says all the same (see `selection.proven_tests`).
        loaded: the seeds whose relation is known to hold what their file does.
    """

    holds: Callable[[str], bool]
    columns: Callable[[str], Iterable[CatalogColumn]]
    settled: frozenset[str] = frozenset()
    loaded: Collection[str] = ()


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


class FactMode(LinkingMode):
    """Relations are linked with facts, as far as they are asked for.

    Args:
        side: one of the two.
        evidence: what is known of its rows.
        known_constraints: what is known while queries are linked; both sides share it.

    Attributes:
        linker: of this side, in this mode.
        tested: the tests whose rows were asked for.
    """

    def __init__(
        self, side: ComparedSide, evidence: Evidence, known_constraints: KnownConstraints
    ) -> None:
        self.linker = side.linker(self)
        self.analysis = side.analysis
        self.unchanged = frozenset[str]() if keeps_case(self.linker.dialect) else side.unchanged
        self.evidence = evidence
        self.settled = evidence.settled
        self.known_constraints = known_constraints
        self.tested: dict[str, TestRows | None] = {}
        self._proved_by_files = False
        self._steps: dict[str, dict[FactUse, None]] = {}
        self._linked: dict[str, Linked] = {}
        self._waiting: dict[str, int] = {}
        self._ready: list[tuple[int, str]] = []
        self._proving = 0
        self._other_names: dict[str, list[str]] = {}
        for source, unique_id in self.linker.names.canonical.items():
            self._other_names.setdefault(unique_id, []).append(source)

    # -- tests ----------------------------------------------------------------------------------

    def rows_of(self, test: str) -> TestRows | None:
        """A test's rows; None where its query cannot be followed to the end.

        It is linked once: what is known later does not enter.
        """
        if test not in self.tested:
            self.tested[test] = None
            self.tested[test] = self._rows_of(test, self.linker.project.nodes[test])
        return self.tested[test]

    def _rows_of(self, unique_id: str, node: Node) -> TestRows | None:
        linker = self.linker
        for parent in relations_above(linker, unique_id):
            linker.node(parent)
        if isinstance(linker.follow(unique_id, node), Reason):
            return None
        linked = self._linked[unique_id]
        relation = linked.relation
        if linked.missing or linked.unknown or relation.unlisted or relation.facts is None:
            return None
        reads = linker.context.introspection.of(node)
        if (
            unique_id in linker.context.in_other_order
            or linker.context.config_fingerprints.of(node)
            or besides_query(linker, unique_id, node, reads)[0]
            or unnamed_reads(linker, unique_id, node, reads)
        ):
            return None
        return TestRows(relation.facts, relation.fps, frozenset(self._steps[unique_id]))

    def read_of(self, test: str, unique_id: str) -> set[str]:
        """The columns of a relation that a test's query names; nothing where it is not known."""
        linked = self._linked.get(test)
        if linked is None or linked.missing or linked.unknown or linked.relation.unlisted:
            return set()
        return {column for of, column in linked.relation.reads() if of == unique_id} - {ROWS}

    def used_by(self, unique_id: str) -> list[str]:
        """The facts that a query used itself, without those used above it, in words."""
        reader = self.linker.project.nodes[unique_id].display_name
        return [use.words for use in self._steps.get(unique_id, {}) if use.reader == reader]

    def keeps(self, unique_id: str, parent: str, columns: set[str]) -> bool:
        """Whether a relation has all rows of its parent, and these columns as they are there."""
        here, there = (self.linker.node(u).relation for u in (unique_id, parent))
        fps = dict(zip(there.names, there.fps, strict=True))
        return (
            here.rows.fp == there.rows.fp
            and columns <= fps.keys()
            and {fps[name] for name in columns} <= set(here.fps)
        )

    def _tests_of(self, unique_id: str) -> list[str]:
        """The tests that hold and refer to a relation, under any of its names."""
        project, names = self.linker.project, self.linker.names
        children = (
            child
            for name in (unique_id, *self._other_names.get(unique_id, ()))
            if names.canonical.get(name, name) == unique_id
            for child in project.children.get(name, ())
        )
        return [
            child
            for child in dict.fromkeys(children)
            if project.nodes[child].resource_type == "test" and self.evidence.holds(child)
        ]

    def _await_tests(self, unique_id: str) -> None:
        """The tests of a relation that is linked now wait for one less."""
        for test in self._tests_of(unique_id):
            if test not in self._waiting:
                self._waiting[test] = len(refers_to(self.linker, test))
            self._waiting[test] -= 1
            if not self._waiting[test]:
                above = relations_above(self.linker, test)
                heapq.heappush(self._ready, (len(above), test))

    def _prove_by_tests(self) -> None:
        """Note what the tests say of which all parents are linked.

        Those of one relation first: that a key is unique helps to see what one that relates two
        says. So the latter wait while one of the former is looked at, for which more may be asked.
        """
        linker = self.linker
        while self._ready and not (self._proving and self._ready[0][0] > 1):
            _, test = heapq.heappop(self._ready)
            self._proving += 1
            rows = self.rows_of(test)
            self._proving -= 1
            if rows is None:
                continue
            above = frozenset[str]().union(*(s.tests for s in rows.steps))
            proof = Proof(above | {test}, f"by {linker.project.nodes[test].name}")
            for parent in relations_above(linker, test):
                facts = linker.linked_nodes[parent].relation.facts
                if facts is not None:
                    note_constraints(rows.facts.rows, facts, proof)

    # -- what is done otherwise -----------------------------------------------------------------

    def substitute(self, linker: Linker, unique_id: str) -> LinkedNode | None:
        """A relation that is the same on both sides, without looking above it."""
        analysed = self.analysis.nodes.get(unique_id)
        if analysed is None or analysed.status != "analysed" or unique_id not in self.unchanged:
            return None
        relation = unchanged_relation(unique_id, analysed, linker.dialect)
        more = self._more_of_unchanged(unique_id, analysed, relation)
        relation.facts = Facts(OpaqueRows(relation.rows.fp), more=more)
        return LinkedNode(analysed, relation, [], {})

    def before(self, linker: Linker, unique_id: str, node: Node) -> None:
        """Note what is known of its parents."""
        if node.resource_type in ("model", "snapshot"):
            for parent in relations_above(linker, unique_id):
                linker.node(parent)
            self._prove_by_tests()

    def after(self, linker: Linker, unique_id: str, linked: LinkedNode) -> None:
        """Note what is known of its rows and columns."""
        node, relation = linker.project.nodes[unique_id], linked.relation
        if relation.facts is None:  # nothing stands for it
            if node.resource_type in ("model", "snapshot"):
                steps = self._steps.setdefault(unique_id, {})
                for parent in relations_above(linker, unique_id):
                    steps.update(self._steps.get(parent, {}))
            relation.facts = self._facts_of_query(node, relation)
        self._note_types(unique_id, relation)
        if node.resource_type == "seed" and not self._proved_by_files:
            self._proved_by_files = True
            loaded = self.evidence.loaded
            note_constraints_of_files(linker, loaded, self.analysis, self.known_constraints)
        self._await_tests(unique_id)

    def follow(self, linker: Linker, unique_id: str, node: Node) -> FollowedQuery | Reason:
        """As without facts, but linked with them; notes which were used."""
        constraints = self.known_constraints

        def table(key: str, name: str) -> Relation:
            """The relation behind a name; the facts it rests on are the reader's, too."""
            parent = linker.names.node_of(key)
            relation = linker.table(unique_id, key, name)
            if parent is not None and parent not in linker.in_progress:
                constraints.steps.update(self._steps.get(parent, {}))
            return relation

        outer = constraints.steps, constraints.reader, constraints.named
        constraints.steps, constraints.reader, constraints.named = (
            {},
            node.display_name,
            self._spoken_name,
        )
        for parent in relations_above(linker, unique_id):
            constraints.steps.update(self._steps.get(parent, {}))
        try:
            sql = marked_calls(linker, node, node.compiled_code or "").sql
            constraints.spelled(sql)
            lowered = linker.queries.lowered(sql)
            if lowered.rel is None:
                return lowered.reason or Code.NO_QUERY()
            linked = link(lowered, table, linker.dialect, constraints)
            self._linked[unique_id] = linked
            self._steps[unique_id] = constraints.steps
            linker.called[unique_id] = linked.called
            return {}, linked
        finally:
            constraints.steps, constraints.reader, constraints.named = outer

    def in_cycle(self, linker: Linker, unique_id: str) -> Relation:
        """What is not known yet is equal to nothing, least of all to the other side's."""
        relation = unequal_cycle(linker, unique_id)
        relation.facts = Facts(OpaqueRows(relation.rows.fp))
        return relation

    def left_by_hooks(self, linker: Linker, key: str) -> bytes:
        """What hooks leave is not looked into here: where it changed, it is equal to nothing.

        A relation that is the same on both sides is so with what hooks leave in it.
        """
        if key in self.unchanged:
            return digest(b"left", key.encode())
        return digest(key.encode(), str(id(linker)).encode())

    # -- what is known of a relation --------------------------------------------------------------

    def _spoken_name(self, key: str) -> str:
        """What a relation is called in words, given its name in SQL or an alias."""
        unique_id = self.linker.names.node_of(key)
        nodes = self.linker.project.nodes
        if unique_id is not None and unique_id in nodes:
            return nodes[unique_id].display_name
        return key.rpartition(".")[2]

    def _facts_of_query(self, node: Node, relation: Relation) -> Facts:
        """What is known of a relation from its own query, where it holds that query's rows."""
        linked = self._linked.get(node.unique_id)
        if (
            linked is None
            or linked.relation.facts is None
            or linked.relation.rows.fp != relation.rows.fp
            or node.materialized not in HOLDS_ITS_QUERY
        ):
            return Facts(OpaqueRows(relation.rows.fp))
        facts = linked.relation.facts.copy()
        facts.more = None
        return facts

    def _more_of_unchanged(
        self, unique_id: str, analysed: NodeAnalysis, relation: Relation
    ) -> Callable[[], Iterable[Unique]] | None:
        """What an unchanged relation's own query proves to be unique; found when asked for."""
        linker = self.linker
        node = linker.project.nodes[unique_id]
        context = linker.context
        if (
            node.materialized not in HOLDS_ITS_QUERY
            or node.contract_enforced
            or context.config_fingerprints.of(node)
            or besides_query(linker, unique_id, node, context.introspection.of(node))[0]
            or (analysed.introspects and unique_id not in self.settled)
            or analysed.reason  # it reads, or is, what hooks write
        ):
            return None
        return functools.cache(functools.partial(self._unique_by_query, unique_id, node, relation))

    def _unique_by_query(
        self, unique_id: str, node: Node, relation: Relation
    ) -> tuple[Unique, ...]:
        """What a node's query proves to be unique, by the fingerprints of the unchanged relation."""
        linker = self.linker
        if unique_id in linker.in_progress or self._reaches_what_is_in_progress(unique_id):
            return ()
        linker.in_progress[unique_id] = None
        for parent in relations_above(linker, unique_id):
            linker.node(parent)
        self._prove_by_tests()
        followed = linker.follow(unique_id, node)
        del linker.in_progress[unique_id]
        if isinstance(followed, Reason):
            return ()
        steps = self._steps.pop(unique_id)
        inner = self._linked[unique_id].relation
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

    def _reaches_what_is_in_progress(self, unique_id: str) -> bool:
        """Whether linking what a node reads would come to a node that is being linked."""
        linker = self.linker
        looked = {unique_id}
        ahead = [unique_id]
        while ahead:
            for parent in linker.project.parents.get(ahead.pop(), ()):
                parent = linker.names.canonical.get(parent, parent)
                if parent in looked or parent in linker.linked_nodes:
                    continue
                if parent in linker.in_progress:
                    return True
                looked.add(parent)
                ahead.append(parent)
        return False

    def _note_types(self, unique_id: str, relation: Relation) -> None:
        """Note the types of a relation's columns."""
        linker = self.linker
        columns = relation.columns_by_key()
        types = [(c.name, c.type) for c in self.evidence.columns(unique_id)]
        for name, type_ in types or types_of_seed(linker, linker.project.nodes[unique_id]):
            column = columns.get(fold_stored(name, linker.dialect))
            if column is None:
                continue
            family = type_family(type_)
            if family == "text" and (unique_id, name.lower()) in self.text_of_sources:
                family = TEXT_OF_A_SOURCE
            self.known_constraints.typed(column[0], family)

    @functools.cached_property
    def text_of_sources(self) -> Collection[Vertex]:
        """Every column, in lower case, that has values of a source's column, which may have a collation of its own.

        So have tables that are made of it, and functions and casts of it, but for hashes.
        """
        linker, analysis = self.linker, self.analysis
        if linker.dialect in COLLATIONS_IN_TYPES:
            return ()
        sources = linker.project.of_type("source")
        outside = {s.unique_id for s in sources if s.unique_id not in linker.names.canonical}
        numbers = {  # and dates, and whatever else is known to be no text
            (unique_id, column.name.lower())
            for unique_id in outside
            for column in self.evidence.columns(unique_id)
            if type_family(column.type) not in (None, "text")
        }
        starts = [
            (unique_id, name.lower())
            for unique_id, seen in analysis.nodes.items()
            if (unique_id in outside or seen.status == "opaque")
            for name in seen.columns
            if (unique_id, name.lower()) not in numbers
        ]
        passed_on: dict[Vertex, list[Vertex]] = defaultdict(list)
        for (parent, column), child, name in value_edges(analysis.edges, None):
            passed_on[parent, column.lower()].append((child, name.lower()))
        return reach_all(starts, passed_on)
