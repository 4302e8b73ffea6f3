"""What the generic tests `comes_from` and `not_from` ask of a column's lineage, and whether it holds.

Both are about values: they follow DIRECT edges, as personal data is followed (`graph.pii`). The test
in the dbt package asks the tables that are loaded; here it is answered from the artifacts alone.
Where a node on the way cannot be analysed, what comes through it is not known, and the result says so.
"""

from __future__ import annotations

import contextlib
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any, Final, NamedTuple

from dbt_ripple.artifacts import Node, NodeFinder, Project, did_you_mean
from dbt_ripple.errors import RippleError
from dbt_ripple.flow.fingerprint import digest
from dbt_ripple.flow.identifiers import dialect_of
from dbt_ripple.graph.column_edges import edges_into
from dbt_ripple.graph.lineage import Analysis, ColumnEdge, column_names
from dbt_ripple.graph.lineage_tables import ROWS
from dbt_ripple.graph.pii import SEPARATOR, PiiColumn, pii_columns
from dbt_ripple.graph.relation_names import RelationNames
from dbt_ripple.graph.traversal import Vertex
from dbt_ripple.reasons import Code, Reason

_KINDS: Final = ("comes_from", "not_from")
_ALL: Final = "*"
"""What stands for a column where every column and the rows of a node are meant."""


class LineageTest(NamedTuple):
    """A test of lineage, as it is declared.

    Attributes:
        node: unique_id of the node whose column is tested.
        columns: the names that are given; of `comes_from` each has to be reached, of `not_from` none.
        only: whether nothing else may be reached.
        pii: the kinds of personal data that may not be reached; empty for none, `*` for any.
        warns: whether its severity is warn.
    """

    unique_id: str
    kind: str
    node: str
    column: str
    columns: tuple[str, ...]
    only: bool
    pii: tuple[str, ...]
    warns: bool

    @property
    def asks(self) -> tuple[object, ...]:
        """What it asks, whatever it is called."""
        return (self.kind, self.node, self.column.lower(), self.columns, self.only, self.pii)


class LineageTestProblem(NamedTuple):
    """A place where what a test asks does not hold, or is not known to (`certain` is false)."""

    reason: Reason
    certain: bool = True

    @property
    def key(self) -> tuple[object, ...]:
        """What it is about, whatever way the value goes."""
        about = {name: value for name, value in self.reason.arguments.items() if name != "path"}
        return self.reason.code, repr(about)


class Verdict(NamedTuple):
    """The result of a test.

    Attributes:
        problems: none where it holds.
        fingerprint: of the lineage that it is about; it differs wherever that does.
    """

    problems: list[LineageTestProblem]
    fingerprint: bytes


def is_lineage_test(node: Node) -> bool:
    """Whether a test asks where a column comes from, and nothing of its values."""
    metadata = node.test_metadata
    return metadata is not None and metadata.namespace == "dbt_ripple" and metadata.name in _KINDS


def lineage_tests(project: Project, among: Iterable[Node] | None = None) -> list[LineageTest]:
    """The tests of lineage that a project declares, all of them or those among some nodes."""
    return [
        test
        for node in (project.nodes.values() if among is None else among)
        if is_lineage_test(node) and (test := _read(node, project)) is not None
    ]


def _read(node: Node, project: Project) -> LineageTest | None:
    metadata = node.test_metadata
    tested = node.attached_node or next(iter(project.parents.get(node.unique_id, ())), None)
    if metadata is None or tested not in project.nodes:
        return None
    pii = metadata.kwargs.get("pii")
    return LineageTest(
        unique_id=node.unique_id,
        kind=metadata.name,
        node=tested,
        column=str(node.column_name or metadata.kwargs.get("column_name") or "").strip('`"[] '),
        columns=tuple(map(str, _listed(metadata.kwargs.get("columns")))),
        only=metadata.kwargs.get("only") is True,
        pii=(_ALL,) if pii is True else tuple(map(str, _listed(pii))),
        warns=str(node.config.get("severity") or "").lower() == "warn",
    )


def _listed(value: Any) -> list[Any]:
    if value is None or value is False:
        return []
    return value if isinstance(value, list) else [value]


def judge_lineage(project: Project, analysis: Analysis) -> None:
    """Make the fingerprints of tests of lineage differ wherever the lineage does."""
    tests = lineage_tests(project)
    if not tests:
        return
    judge = LineageJudge(project, analysis, (test.node for test in tests))
    for test in tests:
        analysed = analysis.tests[test.unique_id]
        own = bytes.fromhex(analysed.rows_fingerprint)
        analysis.tests[test.unique_id] = replace(
            analysed, rows_fingerprint=digest(own, judge.judge(test).fingerprint).hex()
        )


class LineageJudge:
    """Judges tests of lineage by one side's artifacts.

    Args:
        project: the artifacts.
        analysis: what was seen in them.
        tested: the nodes whose columns are asked about, by unique_id.
    """

    def __init__(self, project: Project, analysis: Analysis, tested: Iterable[str]) -> None:
        self.project = project
        self.analysis = analysis
        self._parents: dict[Vertex, dict[Vertex, tuple[bool, bool]]] = {}
        self._names: dict[str, dict[str, str]] = {}
        self._means: dict[str, Vertex | Reason] = {}
        self._finder = NodeFinder(project)
        self._edges: list[ColumnEdge] = []
        self._made: set[str] = set()
        self._load({self._built.get(unique_id, unique_id) for unique_id in tested})

    def judge(self, test: LineageTest) -> Verdict:
        """Whether what a test asks holds."""
        unique_id = self._built.get(test.node, test.node)
        start = (unique_id, test.column.lower())
        problems: list[LineageTestProblem] = []
        if not test.columns and not test.pii:
            return _verdict(test, [LineageTestProblem(Code.LINEAGE_ASKS_NOTHING())], ())
        if start[1] not in (names := {**self.names(test.node), **self.names(unique_id)}):
            name = f"{self.spoken(test.node)}.{test.column}"
            like = did_you_mean(test.column, names.values(), "no other is like it")
            hint = f"there is no such column; {like}"
            return _verdict(test, [LineageTestProblem(Code.NO_SUCH_NAME(name=name, hint=hint))], ())
        wanted: list[tuple[str, Vertex]] = []
        for text in test.columns:
            named = self._means.get(text) or self._means.setdefault(text, self.named(text))
            if isinstance(named, Reason):
                problems.append(LineageTestProblem(named))
            else:
                wanted.append((text, named))
        walk = _Walk(self, start, stop=[v for _, v in wanted] if test.only else ())
        if test.kind == "comes_from":
            problems += self._missing(walk, wanted)
            if test.only:
                problems += self._others(walk)
        else:
            problems += self._origins(walk, wanted)
        reached = [*walk.reached()]
        if test.pii:
            unmasked, unmasked_problems = self._personal(start, test.pii)
            problems += unmasked_problems
            reached += unmasked.reached()
        return _verdict(test, list(dict.fromkeys(problems)), reached)

    # -- what is asked ----------------------------------------------------------------------------

    def _missing(
        self, walk: _Walk, wanted: Sequence[tuple[str, Vertex]]
    ) -> Iterator[LineageTestProblem]:
        for text, vertex in wanted:
            if walk.first(vertex, certain=True) is not None:
                continue
            maybe = walk.first(vertex, certain=False)
            if maybe is None:
                yield LineageTestProblem(Code.COMES_NOT_FROM(name=text))
            else:
                yield self._unread(walk, maybe, text)

    def _others(self, walk: _Walk) -> Iterator[LineageTestProblem]:
        for vertex in walk.certain:
            # Where a model's column is made of nothing, it is a constant, the time, or chance.
            if walk.stops(vertex) or not self._is_given(vertex[0]) or self.unseen(vertex[0]):
                continue
            yield LineageTestProblem(self._comes(walk, vertex, Code.COMES_ALSO_FROM))
        yield from self._gaps(walk, "other columns")

    def _origins(
        self, walk: _Walk, wanted: Sequence[tuple[str, Vertex]]
    ) -> Iterator[LineageTestProblem]:
        open_: list[str] = []
        for text, vertex in wanted:
            nearest = walk.first(vertex, certain=True)
            if nearest is not None:
                yield LineageTestProblem(self._comes(walk, nearest, Code.COMES_FROM))
            else:
                open_.append(text)
        if open_:
            yield from self._gaps(walk, ", ".join(open_))

    def _personal(
        self, start: Vertex, kinds: Collection[str]
    ) -> tuple[_Walk, list[LineageTestProblem]]:
        meant = {v: p for v, p in self._declared.items() if _ALL in kinds or p.pii in kinds}
        walk = _Walk(self, start, stop=[*self._declassified, *meant], unmasked=True)
        problems = []
        for vertex in walk.certain:
            pii = meant.get(vertex)
            if pii is not None and vertex == start:
                problems.append(LineageTestProblem(Code.IS_PII(pii=pii.pii)))
            elif pii is not None:
                name, column = self.spoken(vertex[0]), self.spelled(vertex)
                path = self.path(walk, vertex)
                problems.append(
                    LineageTestProblem(
                        Code.COMES_FROM_PII(pii=pii.pii, name=name, column=column, path=path)
                    )
                )
        return walk, [*problems, *self._gaps(walk, "personal data")]

    def _gaps(self, walk: _Walk, what: str) -> Iterator[LineageTestProblem]:
        """The nodes on the way that cannot be analysed, each once."""
        for unique_id in dict.fromkeys(v[0] for v, _ in walk.all() if not walk.stops(v)):
            if self.unseen(unique_id):
                yield LineageTestProblem(self._why_unread(unique_id, what), certain=False)

    def _comes(self, walk: _Walk, vertex: Vertex, code: Code) -> Reason:
        name, path = self.spoken(vertex[0]), self.path(walk, vertex)
        if vertex[1] == ROWS:
            return Code.COMES_FROM_ROWS(name=name, path=path)
        return code(name=name, column=self.spelled(vertex), path=path)

    def _unread(self, walk: _Walk, vertex: Vertex, what: str) -> LineageTestProblem:
        """That what is asked of cannot be told, by the node where the way is lost."""
        way = walk.way(vertex)
        lost = next((v[0] for v in reversed(way) if self.unseen(v[0])), vertex[0])
        return LineageTestProblem(self._why_unread(lost, what), certain=False)

    def _why_unread(self, unique_id: str, what: str) -> Reason:
        analysed = self.analysis.nodes[unique_id]
        because = analysed.reason or Code.NO_REASON_GIVEN()
        return Code.LINEAGE_UNREAD(what=what, name=self.spoken(unique_id), because=because)

    # -- names --------------------------------------------------------------------------------------

    def named(self, text: str) -> Vertex | Reason:
        """The column a name means, or why there is none: `node.column`, `source.table.column`."""
        try:
            node, column = self._find(text)
        except RippleError as error:
            return Code.NO_SUCH_NAME(name=text, hint=f"{error.what}; {error.fix}")
        unique_id = self._built.get(node.unique_id, node.unique_id)
        if column == _ALL:
            return unique_id, _ALL
        names = {**self.names(node.unique_id), **self.names(unique_id)}
        if column is None or column.lower() not in names:
            like = did_you_mean(
                column or "",
                names.values(),
                f"name one of its columns, or {node.display_name}.* for all",
                prefix=f"{node.display_name}.",
            )
            return Code.NO_SUCH_NAME(name=text, hint=f"there is no such column; {like}")
        return unique_id, column.lower()

    def _find(self, text: str) -> tuple[Node, str | None]:
        try:
            return self._finder.find(text)
        except RippleError:
            # Where a source and what builds it have one name, that is what is meant.
            for kind in ("model", "seed", "snapshot"):
                with contextlib.suppress(RippleError):
                    return self._finder.find(f"{kind}:{text}")
            raise

    def names(self, unique_id: str) -> dict[str, str]:
        """The columns of a node, by their names in lower case.

        Of a query that was followed they are all known: what only a yml file declares is none.
        """
        names = self._names.get(unique_id)
        if names is None:
            analysed = self.analysis.nodes.get(unique_id)
            followed = analysed is not None and analysed.status == "analysed"
            names = self._names[unique_id] = column_names(
                None if followed else self.project.nodes.get(unique_id),
                analysed,
                () if followed else self.project.catalog.get(unique_id, ()),
            )
        return names

    def spoken(self, unique_id: str) -> str:
        """A node as people call it."""
        node = self.project.nodes.get(unique_id)
        return node.display_name if node is not None else unique_id

    def spelled(self, vertex: Vertex) -> str:
        """A column as it is spelled."""
        return self.names(vertex[0]).get(vertex[1], vertex[1])

    def spoken_column(self, vertex: Vertex) -> str:
        """A column with its node."""
        return f"{self.spoken(vertex[0])}.{self.spelled(vertex)}"

    def path(self, walk: _Walk, vertex: Vertex) -> str:
        """The way from a column down to the tested one."""
        return SEPARATOR.join(map(self.spoken_column, walk.way(vertex)))

    @cached_property
    def _built(self) -> dict[str, str]:
        """Of a source that a node of the project builds, that node."""
        dialect = dialect_of(self.project.metadata.adapter_type)
        return RelationNames(self.project, dialect).canonical

    # -- the lineage --------------------------------------------------------------------------------

    @cached_property
    def _pii(self) -> list[PiiColumn]:
        # All edges are many, and these lead to all that is asked about.
        return pii_columns(self.project, replace(self.analysis, edges=self._edges))

    @cached_property
    def _declared(self) -> dict[Vertex, PiiColumn]:
        return {
            (self._built.get(pii.unique_id, pii.unique_id), pii.column.lower()): pii
            for pii in self._pii
            if pii.origin == "declared"
        }

    @cached_property
    def _declassified(self) -> list[Vertex]:
        return [(p.unique_id, p.column.lower()) for p in self._pii if p.origin == "declassified"]

    def unseen(self, unique_id: str) -> bool:
        """Whether its values may come from more, or from something else, than its edges say."""
        analysed = self.analysis.nodes.get(unique_id)
        if analysed is None or (self._is_given(unique_id) and unique_id not in self._made):
            return False
        return analysed.status == "broken" or (
            analysed.reason is not None and analysed.reason.code is not Code.MAY_NOT_BUILD
        )

    def _is_given(self, unique_id: str) -> bool:
        """Whether a relation is there before the project builds anything."""
        node = self.project.nodes.get(unique_id)
        return node is None or node.resource_type in ("source", "seed")

    def parents(self, vertex: Vertex) -> dict[Vertex, tuple[bool, bool]]:
        """What a column is made of: whether it is certain, and whether it is only masked."""
        parents = self._parents.get(vertex, {})
        if not self.unseen(vertex[0]) or vertex[1] == ROWS:
            return parents
        # Where an opaque node has too many pairs of columns, only its rows tell what it reads.
        return {**self._parents.get((vertex[0], ROWS), {}), **parents}

    def _load(self, wanted: set[str]) -> None:
        """The edges into some nodes, and into all that they are made of."""
        loaded: set[str] = set()
        while wanted:
            ahead = list(wanted)
            while ahead:
                for parent in self.project.parents.get(ahead.pop(), ()):
                    if parent not in wanted and parent not in loaded:
                        wanted.add(parent)
                        ahead.append(parent)
            loaded |= wanted
            edges = edges_into(self.analysis.edges, wanted)
            self._edges += edges
            self._made.update(edge.child_id for edge in edges)
            wanted = {edge.parent_id for edge in edges} - loaded
            for edge in edges:
                self._put(edge)

    def _put(self, edge: ColumnEdge) -> None:
        certain = not self.unseen(edge.child_id)
        if certain and edge.type != "DIRECT":
            return
        child = (edge.child_id, edge.child_column.lower())
        parent = (edge.parent_id, edge.parent_column.lower())
        of = self._parents.setdefault(child, {})
        # A value that is passed on in two ways is masked only if both mask it.
        masked = edge.masking and of.get(parent, (certain, True))[1]
        of[parent] = (certain, masked)


class _Walk:
    """All that a column is made of, up to where it stops.

    Attributes:
        certain: each column that is reached without passing what cannot be analysed, with the one
            below it; nearest first.
        maybe: the others, likewise.
    """

    def __init__(
        self,
        lineage: LineageJudge,
        start: Vertex,
        stop: Collection[Vertex] = (),
        unmasked: bool = False,
    ) -> None:
        self._stop = frozenset(stop)
        self._whole = {unique_id for unique_id, column in stop if column == _ALL}
        self.certain: dict[Vertex, Vertex | None] = {start: None}
        self.maybe: dict[Vertex, Vertex | None] = {}
        self._start = start
        for reached in (self.certain, self.maybe):
            ahead = [*self.certain] if reached is self.maybe else [start]
            for vertex in ahead:  # it grows on the way
                if self.stops(vertex):
                    continue
                for parent, (certain, masked) in lineage.parents(vertex).items():
                    if masked and unmasked:
                        continue
                    if reached is self.certain and not certain:
                        continue
                    if parent not in self.certain and parent not in self.maybe:
                        reached[parent] = vertex
                        ahead.append(parent)

    def stops(self, vertex: Vertex) -> bool:
        """Whether nothing above a column is looked at."""
        return vertex in self._stop or vertex[0] in self._whole

    def first(self, wanted: Vertex, certain: bool) -> Vertex | None:
        """The nearest column that is reached and meant."""
        reached = self.certain if certain else self.maybe
        if wanted[1] != _ALL:
            return wanted if wanted in reached and wanted != self._start else None
        return next((v for v in reached if v[0] == wanted[0] and v != self._start), None)

    def all(self) -> Iterator[tuple[Vertex, bool]]:
        """All that is reached, and whether it is certain."""
        yield from ((vertex, True) for vertex in self.certain)
        yield from ((vertex, False) for vertex in self.maybe)

    def way(self, vertex: Vertex) -> list[Vertex]:
        """From a column down to the start."""
        way = [vertex]
        while (below := self._below(way[-1])) is not None:
            way.append(below)
        return way

    def _below(self, vertex: Vertex) -> Vertex | None:
        return self.certain[vertex] if vertex in self.certain else self.maybe[vertex]

    def reached(self) -> Iterator[tuple[str, ...]]:
        """What a fingerprint of the lineage is made of."""
        for vertex, certain in self.all():
            yield (*vertex, str(certain))


def _verdict(
    test: LineageTest, problems: list[LineageTestProblem], reached: Iterable[tuple[str, ...]]
) -> Verdict:
    messages = [problem.reason.message for problem in problems]
    parts = repr((test.asks, sorted(messages), sorted(reached)))
    return Verdict(problems, digest(b"lineage", parts.encode("utf-8", "surrogatepass")))
