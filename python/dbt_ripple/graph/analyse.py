"""A project's artifacts -> every node's columns, fingerprints and edges.

Each query is lowered on its own (`flow.lower`), then linked after its parents (`flow.link`), so that
a ``*`` or a bare name is resolved against the columns that the parents have been found to have.
What cannot be seen through is *opaque*: it depends on everything its parents hold, and says why.
"""

from __future__ import annotations

import gc
import re
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any, Final

import msgspec

from dbt_ripple.artifacts import Node, Project, referenced_columns
from dbt_ripple.flow.fingerprint import digest, hashed
from dbt_ripple.flow.ir import (
    EPHEMERAL_PREFIX,
    FILTER,
    IDENTITY,
    KINDS,
    MASK_SHIFT,
    TRANSFORMATION,
)
from dbt_ripple.flow.link import Linked
from dbt_ripple.flow.names import dialect_of, fold, fold_stored
from dbt_ripple.flow.relation import Deps, Relation, Rest, merge, rest_fp, through
from dbt_ripple.graph.analysis import Analysis, ColumnEdge, NodeAnalysis, Status, UnitTestAnalysis
from dbt_ripple.graph.cache import Cache
from dbt_ripple.graph.introspection import Introspection, Looks, Sees
from dbt_ripple.graph.jinja import normalised
from dbt_ripple.graph.macros import Macros
from dbt_ripple.graph.queries import LowerMany, Note, Queries
from dbt_ripple.graph.rows import ROWS
from dbt_ripple.graph.seeds import SeedFiles, checksum
from dbt_ripple.graph.settings import HARMLESS, OF_COLUMNS, Settings, listed

RELATIONS: Final = frozenset({"model", "seed", "snapshot", "source"})
"""Resource types that are (or stand for) a relation."""

KNOWN_MATERIALIZATIONS: Final = frozenset(
    """
    dynamic_table ephemeral incremental materialized_view seed snapshot streaming_table table test
    view
    """.split()
)
"""Materializations that write what the query returns (rule 7); another one may do anything."""

DATASET_PREFIX: Final = "dataset."
"""unique_id prefix of a relation that a query reads and dbt does not know."""

MAX_OPAQUE_EDGES: Final = 20_000
"""Of an opaque node, parent columns times own columns above which the pairs are not spelled out:
its parents' columns then lead to its rows, and its columns come from its parents' rows."""

RELAXED_COLLECTOR: Final = (10_000, 100, 1000)
"""Thresholds of the garbage collector while analysing: parse trees, which are cyclic, are swept
while they are still in the processor's cache, and what is kept is hardly ever looked at again."""

_SNAPSHOT_COLUMNS: Final = ("dbt_scd_id", "dbt_updated_at", "dbt_valid_from", "dbt_valid_to")
_RELATION_PARTS: Final = re.compile(r'`([^`]+)`|"([^"]+)"|\[([^\]]+)\]|([^.`"\[\]]+)')
_BITS: Final = {bit: (kind, subtype, masking) for bit, kind, subtype, masking in KINDS}
_edge: Final[Callable[[tuple[str, str, str, str, str, str, bool]], ColumnEdge]] = partial(
    tuple.__new__, ColumnEdge
)
"""Make an edge; there are more of them than of anything else, and this is how they are cheapest."""


def analyse(
    project: Project,
    *,
    read_seconds: float = 0.0,
    expressions: bool = False,
    tests: bool = True,
    cache: Cache | None = None,
    lower_many: LowerMany | None = None,
    seeds: SeedFiles | None = None,
) -> Analysis:
    """Analyse a whole project.

    Args:
        project: its artifacts.
        read_seconds: what reading them took, to be passed on in `Analysis.seconds`.
        expressions: whether to write out the SQL behind each column, which takes its time.
        tests: whether to say what tests read. Columns and edges are the same without: a test is
            then followed only where it can show a column that nothing else lists.
        cache: where to look for what was analysed before, and to put what is now.
        lower_many: lowers queries on other cores or machines, all at once before the first is
            linked (see `graph.pool`); by default each is lowered here, in its turn.
        seeds: the files of seeds, where more is to be seen of them than their checksums.

    Returns:
        Columns, fingerprints and edges of every relation, and what every test reads. Never raises
        on what a model says: that model is then opaque or broken, with the reason.
    """
    with _quiet_collector():
        analyser = _Analyser(project, expressions, cache, lower_many, seeds or SeedFiles())
        return analyser.run(read_seconds, tests)


@contextmanager
def _quiet_collector() -> Iterator[None]:
    """Millions of small tuples and few cycles: the garbage collector would double the time.

    Where the process has already relaxed it (the command line does), there is nothing to put back,
    which itself would cost a full collection.
    """
    thresholds = gc.get_threshold()
    if thresholds[0] >= RELAXED_COLLECTOR[0]:
        yield
        return
    gc.set_threshold(*RELAXED_COLLECTOR)
    try:
        yield
    finally:
        gc.set_threshold(*thresholds)


class _Known:
    """A linked node: its own columns, as its children see them."""

    __slots__ = ("analysis", "deps", "inner", "relation", "rows")

    def __init__(
        self, analysis: NodeAnalysis, relation: Relation, deps: list[Deps], rows: Deps
    ) -> None:
        self.analysis = analysis
        self.relation = relation
        self.deps = deps
        self.rows = rows


class _LeafRest:
    """Columns of a source that nothing lists: each is taken as existing once it is read."""

    __slots__ = ("analyser", "fingerprint", "unique_id")

    def __init__(self, analyser: _Analyser, unique_id: str, fingerprint: bytes) -> None:
        self.analyser = analyser
        self.unique_id = unique_id
        self.fingerprint = fingerprint

    def get(self, key: str, name: str) -> tuple[bytes, Deps] | None:
        known = self.analyser.known[self.unique_id]
        fp = digest(self.fingerprint, key.encode())
        noted = self.analyser.discover(known, key, name, fp, {})
        if self.analyser.notes is not None:
            self.analyser.notes[self.unique_id, key, name, noted] = None
        return fp, {(self.unique_id, noted): IDENTITY}

    def fp(self) -> bytes:
        return digest(self.fingerprint, b"*")

    def whole(self) -> Deps:
        return {(self.unique_id, ROWS): TRANSFORMATION}


class _NodeRest:
    """Columns of a node behind a ``*`` over something unknown: found through its own query."""

    __slots__ = ("analyser", "inner", "unique_id", "wrapped")

    def __init__(
        self, analyser: _Analyser, unique_id: str, inner: Relation, wrapped: bytes
    ) -> None:
        self.analyser = analyser
        self.unique_id = unique_id
        self.inner = inner
        self.wrapped = wrapped

    def get(self, key: str, name: str) -> tuple[bytes, Deps] | None:
        column = self.inner.get(key, name)
        if column is None:
            return None
        fp = digest(self.wrapped, column[0]) if self.wrapped else column[0]
        known = self.analyser.known[self.unique_id]
        name = self.analyser.discover(known, key, name, fp, column[1])
        return fp, {(self.unique_id, name): IDENTITY}

    def fp(self) -> bytes:
        inner = rest_fp(self.inner.rest)
        return digest(self.wrapped, inner) if self.wrapped else inner

    def whole(self) -> Deps:
        return {(self.unique_id, ROWS): TRANSFORMATION}


class _OpaqueRest:
    """Columns of an opaque node: any of them depends on everything its parents hold."""

    __slots__ = ("analyser", "deps", "fingerprint", "unique_id")

    def __init__(self, analyser: _Analyser, unique_id: str, fingerprint: bytes, deps: Deps) -> None:
        self.analyser = analyser
        self.unique_id = unique_id
        self.fingerprint = fingerprint
        self.deps = deps

    def get(self, key: str, name: str) -> tuple[bytes, Deps] | None:
        known = self.analyser.known[self.unique_id]
        name = self.analyser.discover(known, key, name, self.fingerprint, self.deps)
        return self.fingerprint, {(self.unique_id, name): IDENTITY}

    def fp(self) -> bytes:
        return self.fingerprint

    def whole(self) -> Deps:
        return {(self.unique_id, ROWS): TRANSFORMATION}


class _SelfRest:
    """A node's own previous rows (``this``): no parent, but not nothing (rule 6)."""

    def get(self, key: str, name: str) -> tuple[bytes, Deps] | None:
        return digest(b"this", key.encode()), {}

    def fp(self) -> bytes:
        return digest(b"this", b"*")

    def whole(self) -> Deps:
        return {}


class _Reader:
    """A node whose query is followed, to `Queries`."""

    __slots__ = ("analyser", "unique_id")

    def __init__(self, analyser: _Analyser, unique_id: str) -> None:
        self.analyser = analyser
        self.unique_id = unique_id

    def table(self, key: str, name: str) -> Relation:
        return self.analyser.table(self.unique_id, key, name)

    def view(self, key: str, name: str) -> bytes | None:
        return self.analyser.view(self.unique_id, key)

    def noting(self) -> _Notes:
        return _Notes(self.analyser)

    def repeat(self, note: Note) -> bool:
        unique_id, key, name, noted = note
        relation = self.analyser.known[unique_id].relation
        (rest,) = relation.rest or relation.ghost
        column = rest.get(key, name)
        return column is not None and (unique_id, noted) in column[1]


class _GivenRest:
    """Columns of a parent that a unit test replaces, found by their use: names, no values."""

    __slots__ = ("unique_id",)

    def __init__(self, unique_id: str) -> None:
        self.unique_id = unique_id

    def get(self, key: str, name: str) -> tuple[bytes, Deps] | None:
        return digest(b"given", self.unique_id.encode(), key.encode()), {
            (self.unique_id, name): IDENTITY
        }

    def fp(self) -> bytes:
        return digest(b"given", self.unique_id.encode(), b"*")

    def whole(self) -> Deps:
        return {(self.unique_id, ROWS): IDENTITY}


class _UnitReader(_Reader):
    """A model whose parents are replaced by fixtures: of these it sees the names (rule 9)."""

    __slots__ = ()

    def table(self, key: str, name: str) -> Relation:
        relation = super().table(key, name)
        unique_id = self.analyser.node_of(key)
        if unique_id is None or unique_id == self.unique_id:
            return relation
        leaf = digest(b"given", unique_id.encode())
        return Relation(
            relation.names,
            relation.keys,
            [digest(b"given", unique_id.encode(), k.encode()) for k in relation.keys],
            relation.deps,
            [_GivenRest(unique_id)] if relation.rest else [],
            leaf,
            relation.rows,
            leaf,
        )

    def view(self, key: str, name: str) -> bytes | None:
        unique_id = self.analyser.node_of(key)
        if unique_id is None or unique_id == self.unique_id:
            return super().view(key, name)
        relation = self.analyser.node(unique_id).relation
        if relation.rest:
            return None
        parts = (
            part.encode()
            for pair in zip(relation.keys, relation.names, strict=True)
            for part in pair
        )
        return digest(b"given", unique_id.encode(), *parts)


class _Notes:
    """Gathers the columns of leaves that only their use shows, while one query is linked.

    A query may be linked while another one is.
    """

    def __init__(self, analyser: _Analyser) -> None:
        self.analyser = analyser
        self.before: dict[Note, None] | None = None
        self.notes: dict[Note, None] = {}

    def __enter__(self) -> dict[Note, None]:
        self.before, self.analyser.notes = self.analyser.notes, self.notes
        return self.notes

    def __exit__(self, *_: object) -> None:
        self.analyser.notes = self.before


class _Analyser:
    def __init__(
        self,
        project: Project,
        expressions: bool,
        cache: Cache | None,
        lower_many: LowerMany | None,
        seeds: SeedFiles,
    ) -> None:
        self.project = project
        self.seeds = seeds
        self.dialect = dialect_of(project.metadata.adapter_type)
        self.known: dict[str, _Known] = {}
        self.in_progress: dict[str, None] = {}
        self.queries = Queries(self.dialect, expressions, cache, lower_many)
        macros = Macros(project)
        self.settings = Settings(project, macros)
        self.introspection = Introspection(project, macros)
        self.functions: dict[str, bytes] = {}
        self.notes: dict[Note, None] | None = None
        self.views: dict[str, bytes | None] = {}
        self.by_name: dict[str, str] = {}
        self.by_suffix: dict[str, str | None] = {}
        self.canonical: dict[str, str] = {}
        self.name_relations()

    # -- names ----------------------------------------------------------------------------------

    def name_relations(self) -> None:
        """Which name in SQL is which node (rule 6)."""
        sources = []
        for unique_id, node in self.project.nodes.items():
            if node.resource_type not in RELATIONS:
                continue
            if node.resource_type == "source":
                sources.append((unique_id, node))
                continue
            if node.is_ephemeral:
                self.by_name[EPHEMERAL_PREFIX + (node.alias or node.name).lower()] = unique_id
                continue
            for key in self.relation_keys(node):
                self.by_name.setdefault(key, unique_id)
        for unique_id, node in sources:
            keys = self.relation_keys(node)
            builder = next((b for k in keys if (b := self.by_name.get(k)) is not None), None)
            if builder is not None:
                self.canonical[unique_id] = builder
            for key in keys:
                self.by_name.setdefault(key, unique_id)
        for key, unique_id in self.by_name.items():
            parts = key.split(".")
            for length in range(2, len(parts)):
                suffix = ".".join(parts[-length:])
                other = self.by_suffix.setdefault(suffix, unique_id)
                if other != unique_id:
                    self.by_suffix[suffix] = None

    def relation_keys(self, node: Node) -> list[str]:
        """The folded names the node's relation goes by."""
        keys = []
        if node.relation_name:
            parts = []
            for match in _RELATION_PARTS.finditer(node.relation_name):
                quoted = match[4] is None
                text = match[match.lastindex or 0]
                inner = text.split(".") if self.dialect == "bigquery" else [text]
                parts += [fold(p, quoted, self.dialect) for p in inner]
            keys.append(".".join(parts))
        name = node.identifier if node.resource_type == "source" else node.alias
        if node.schema and (name or node.name):
            pair = [
                fold_stored(node.schema, self.dialect),
                fold_stored(name or node.name, self.dialect),
            ]
            if not keys or not keys[0].endswith(".".join(pair)):
                keys.append(".".join(pair))
            if node.database and len(keys[0].split(".")) < 3:
                keys.append(".".join([fold_stored(node.database, self.dialect), *pair]))
        return keys

    def node_of(self, key: str) -> str | None:
        """The unique_id of the relation a query names, or None where dbt does not know it."""
        unique_id = self.by_name.get(key)
        if unique_id is None and "." in key:
            unique_id = self.by_suffix.get(key)
            if unique_id is None and key.count(".") == 2:
                unique_id = self.by_name.get(key.split(".", 1)[1])
        return self.canonical.get(unique_id, unique_id) if unique_id is not None else None

    # -- the run --------------------------------------------------------------------------------

    def run(self, read_seconds: float, every_test: bool) -> Analysis:
        start = time.perf_counter()
        project = self.project
        wanted = ("model", "snapshot", "test") if every_test else ("model", "snapshot")
        self.queries.prepare(
            node.compiled_code
            for node in project.nodes.values()
            if node.resource_type in wanted and node.compiled_code and not node.is_python
        )
        for unique_id in _topological(project):
            if (
                project.nodes[unique_id].resource_type in RELATIONS
                and unique_id not in self.canonical
            ):
                self.node(unique_id)
        tests = {
            unique_id: self.test(unique_id, node)
            for unique_id, node in project.nodes.items()
            if node.resource_type == "test" and (every_test or self.may_discover(unique_id))
        }
        edges = self.edges()
        test_columns = [
            (test, parent, column) for test, (_, reads) in tests.items() for parent, column in reads
        ]
        seconds = {
            "read": read_seconds,
            "parse": self.queries.parse_seconds,
            "link": time.perf_counter() - start - self.queries.parse_seconds,
        }
        return Analysis(
            nodes={unique_id: known.analysis for unique_id, known in self.known.items()},
            edges=edges,
            test_columns=test_columns,
            seconds=seconds,
            tests={unique_id: analysis for unique_id, (analysis, _) in tests.items()},
            unit_tests={
                unique_id: found
                for unique_id, node in project.nodes.items()
                if every_test
                and node.resource_type == "unit_test"
                and (found := self.unit_test(unique_id, node)) is not None
            },
        )

    def node(self, unique_id: str) -> _Known:
        """Link one node, its parents first where they are not linked yet."""
        known = self.known.get(unique_id)
        if known is not None:
            return known
        node = self.project.nodes[unique_id]
        self.in_progress[unique_id] = None
        if node.resource_type in ("source", "seed"):
            known = self.leaf(unique_id, node)
        else:
            known = self.query(unique_id, node)
        del self.in_progress[unique_id]
        self.known[unique_id] = known
        return known

    def table(self, reader: str, key: str, name: str) -> Relation:
        """The relation behind a name in `reader`'s query."""
        unique_id = self.node_of(key)
        if unique_id is None:
            return self.dataset(key, name).relation
        if unique_id == reader:
            leaf = digest(b"this")
            return Relation([], [], [], [], [_SelfRest()], leaf, {}, leaf)
        known = self.known.get(unique_id)
        if known is None:
            if unique_id in self.in_progress:
                leaf = digest(b"cycle", unique_id.encode())
                return Relation(
                    [], [], [], [], [_SelfRest()], leaf, {(unique_id, ROWS): IDENTITY}, leaf
                )
            known = self.node(unique_id)
        return known.relation

    def view(self, reader: str, key: str) -> bytes | None:
        """A digest of the relation behind a name in `reader`'s query, of all that linking sees.

        None where the relation has columns that are found through another query.
        """
        unique_id = self.node_of(key)
        if unique_id is None:
            return digest(b"dataset", key.encode())
        if unique_id == reader:
            return digest(b"this")
        known = self.known.get(unique_id)
        if known is None:
            if unique_id in self.in_progress:
                return digest(b"cycle", unique_id.encode())
            known = self.node(unique_id)
        try:
            return self.views[unique_id]
        except KeyError:
            seen = self.views[unique_id] = _view(unique_id, known.relation)
            return seen

    # -- relations without a query --------------------------------------------------------------

    def dataset(self, key: str, name: str) -> _Known:
        """A relation that dbt does not know."""
        unique_id = DATASET_PREFIX + key
        known = self.known.get(unique_id)
        if known is None:
            known = self.known[unique_id] = self.open_leaf(
                unique_id, digest(b"leaf", unique_id.encode()), [], False
            )
        return known

    def leaf(self, unique_id: str, node: Node) -> _Known:
        if node.resource_type == "seed":
            return self.seed(unique_id, node)
        fingerprint = digest(b"leaf", unique_id.encode(), repr(_where_it_is(node)).encode())
        names = [c.name for c in self.project.catalog.get(unique_id, ())]
        closed = bool(names)
        folded = {fold_stored(n, self.dialect) for n in names}
        declared = [
            c.name
            for c in node.columns.values()
            if fold(c.name, bool(c.quote), self.dialect) not in folded
        ]
        return self.open_leaf(
            unique_id, fingerprint, names if closed else [*names, *declared], closed
        )

    def seed(self, unique_id: str, node: Node) -> _Known:
        """A seed is its file (rule 12), read with its settings."""
        names = [c.name for c in self.project.catalog.get(unique_id, ())]
        file = None
        if not names or unique_id in self.seeds.changed:
            file = self.seeds.read(node)
        if file is not None and {n.lower() for n in names} != {n.lower() for n in file.header}:
            names = file.header
        said = (node.config.get("delimiter") or ",", node.config.get("quote_columns"))
        config = digest(repr(said).encode(), self.settings.of(node))
        by_content = file is not None and file.values and unique_id in self.seeds.by_content
        content = b"" if by_content else repr(checksum(node)).encode()
        content += self.seeds.digests.get(unique_id, b"")
        fingerprint = digest(b"seed", unique_id.encode(), config, content)
        closed = bool(names)
        if not closed:
            names = [c.name for c in node.columns.values()]
        known = self.open_leaf(unique_id, fingerprint, names, closed)
        relation = known.relation
        if file is not None and by_content:
            values = dict(zip((n.lower() for n in file.header), file.values, strict=True))
            relation.rows_fp = digest(relation.rows_fp, str(file.rows).encode())
            for i, name in enumerate(names):
                relation.fps[i] = digest(relation.fps[i], values.get(name.lower(), b""))
        types = node.config.get("column_types")
        if isinstance(types, dict) and types:
            said_types = {
                str(k).lower(): " ".join(str(v).lower().split()) for k, v in types.items()
            }
            for i, name in enumerate(names):
                if name.lower() in said_types:
                    relation.fps[i] = digest(relation.fps[i], said_types[name.lower()].encode())
        known.analysis.fingerprints = [fp.hex() for fp in relation.fps]
        known.analysis.rows_fingerprint = relation.rows_fp.hex()
        return known

    def open_leaf(
        self, unique_id: str, fingerprint: bytes, names: list[str], closed: bool
    ) -> _Known:
        keys = [fold_stored(n, self.dialect) for n in names]
        prefix = fingerprint + b"\x00"
        fps = [hashed(prefix + k.encode()) for k in keys]  # what `digest` of the two gives
        rest: list[Rest] = [_LeafRest(self, unique_id, fingerprint)]
        relation = Relation(
            list(names),
            keys,
            fps,
            [{(unique_id, n): IDENTITY} for n in names],
            [] if closed else rest,
            digest(fingerprint, b"rows"),
            {(unique_id, ROWS): IDENTITY},
            fingerprint,
            ghost=rest if closed else None,
        )
        analysis = NodeAnalysis(
            unique_id,
            "leaf",
            None,
            list(names),
            [fp.hex() for fp in fps],
            [None] * len(names),
            relation.rows_fp.hex(),
        )
        return _Known(analysis, relation, [{} for _ in names], {})

    def discover(self, known: _Known, key: str, name: str, fp: bytes, deps: Deps) -> str:
        """Note a column that only its use shows; returns the name it is noted under."""
        if key in known.relation.columns():
            return known.analysis.columns[known.relation.keys.index(key)]
        analysis = known.analysis
        for other in analysis.columns[len(known.relation.names) :]:
            if fold(other, False, self.dialect) == key or fold_stored(other, self.dialect) == key:
                return other
        analysis.columns.append(name)
        analysis.fingerprints.append(fp.hex())
        analysis.expressions.append(None)
        known.deps.append(deps)
        return name

    # -- models and snapshots -------------------------------------------------------------------

    def query(self, unique_id: str, node: Node) -> _Known:
        followed = self.follow(unique_id, node)
        if isinstance(followed, str):
            return self.opaque(unique_id, node, followed)
        expressions, linked = followed
        relation = linked.relation
        status: Status = "analysed"
        reason = None
        wrapped = b""
        rows_fp = relation.rows_fp
        names, keys = list(relation.names), relation.keys
        fps, deps = list(relation.fps), list(relation.deps)
        rows = relation.rows
        rest = relation.rest
        declared = self.project.catalog.get(unique_id) or []
        if rest:
            # The warehouse knows what the text does not: which columns the * has.
            closed = bool(declared)
            shown = [c.name for c in declared] or [c.name for c in node.columns.values()]
            have = set(keys)
            keys = list(keys)
            for name in shown:
                key = fold_stored(name, self.dialect)
                if key in have:
                    continue
                column = relation.get(key, name)
                if column is not None:
                    have.add(key)
                    names.append(name)
                    keys.append(key)
                    fps.append(column[0])
                    deps.append(column[1])
            if closed:
                rest = []
            else:
                status = "opaque"
                reason = "the columns of a * are not known: " + _why_unknown(relation)
        elif len(declared) == len(names) and not all(map(str.isidentifier, names)):
            # Of a name that the engine makes up, the warehouse knows better.
            names = [
                n if n.isidentifier() else d.name for d, n in zip(declared, names, strict=True)
            ]
            keys = [fold_stored(n, self.dialect) for n in names]
        if linked.unknown and status == "analysed" and not declared:
            status, reason = "opaque", linked.unknown
        if node.contract_enforced and node.materialized in ("table", "incremental"):
            # dbt selects the declared columns, in the declared order.
            place = {k: i for i, k in enumerate(self.declared_keys(node))}
            if set(place) == set(keys):
                order = sorted(range(len(keys)), key=lambda i: place[keys[i]])
                names, keys = [names[i] for i in order], [keys[i] for i in order]
                fps, deps = [fps[i] for i in order], [deps[i] for i in order]
        if linked.missing:
            status = "broken"
            reason = "cannot find " + ", ".join(linked.missing)
            wrapped = digest(b"broken", *(m.encode() for m in linked.missing))
        if node.resource_type == "model" and node.materialized not in KNOWN_MATERIALIZATIONS:
            status = "opaque"
            reason = f"materialization {node.materialized} is not one we know"
            wrapped = digest(wrapped, (node.raw_code or "").encode(), relation.all_fp(), rows_fp)
        config = self.settings.of(node)
        looks = self.introspection.of(node)
        if config:
            config, rows = self.configured(node, relation, config, rows)
        aside = self.aside(unique_id, node, looks)
        if config or aside:
            wrapped = digest(b"aside", wrapped, config, aside)
        if node.contract_enforced:
            fps = self.typed(node, keys, fps)
        if node.resource_type == "snapshot":
            keys = list(keys)
            self.snapshot_columns(node, relation, config, names, keys, fps, deps)
        if wrapped:
            fps = [digest(wrapped, fp) for fp in fps]
            rows_fp = digest(wrapped, rows_fp)
        visible = Relation(
            list(names),
            list(keys),
            fps,
            [{(unique_id, n): IDENTITY} for n in names],
            [_NodeRest(self, unique_id, relation, wrapped)] if rest else [],
            rows_fp,
            {(unique_id, ROWS): IDENTITY},
            relation.leaf,
            relation.joins,
            relation.order,
        )
        analysis = NodeAnalysis(
            unique_id,
            status,
            reason,
            names,
            [fp.hex() for fp in fps],
            [expressions.get(key) for key in keys],
            rows_fp.hex(),
            relation.order.hex(),
            self.relations_above(unique_id) if aside else [],
        )
        return _Known(analysis, visible, deps, rows)

    def declared_keys(self, node: Node) -> list[str]:
        return [fold(c.name, bool(c.quote), self.dialect) for c in node.columns.values()]

    def follow(self, unique_id: str, node: Node) -> tuple[dict[str, str], Linked] | str:
        """A node's query, linked, with the SQL behind its outputs; or why it cannot be followed."""
        reason = _cannot_see(node)
        if reason is not None:
            return reason
        try:
            return self.queries.follow(node.compiled_code or "", _Reader(self, unique_id))
        except Exception as error:  # a defect of ours is this node's, not the whole project's
            return f"a defect of dbt_ripple, please report it: {type(error).__name__}: {error}"

    def configured(
        self, node: Node, relation: Relation, config: bytes, rows: Deps
    ) -> tuple[bytes, Deps]:
        """Rule 7: settings of an incremental model or a snapshot decide what it holds.

        A setting that names a column means what this column is, whatever it is called.

        Returns:
            The fingerprint of its settings, and what its rows depend on.
        """
        rows = dict(rows)
        parts = [config]
        named: set[str] = set()
        for setting, kind, name in self.settings.column_uses(node):
            named.add(setting)
            column = relation.get(fold(name, False, self.dialect), name)
            if column is not None:
                parts += [setting.encode(), column[0]]
                merge(rows, through(kind, column[1]))
            else:
                parts += [setting.encode(), name.encode()]
        if node.resource_type == "snapshot" and node.config.get("check_cols") == "all":
            parts.append(relation.all_fp())
            for deps in relation.deps:
                merge(rows, through(FILTER, deps))
        if node.resource_type == "snapshot" or node.materialized == "incremental":
            said = ((name, node.config.get(name)) for name in OF_COLUMNS if name not in named)
            parts += [repr(pair).encode() for pair in said if pair[1]]
        if words := self.settings.words_of_hooks(node):
            parts.append(relation.rows_fp)
            self.named(words, relation, parts, rows)
        if words := self.settings.words_of_branches(node):
            for parent in sorted(self.relations_above(node.unique_id)):
                above = self.node(parent).relation
                parts += [parent.encode(), above.rows_fp]
                self.named(words, above, parts, rows)
        if node.config.get("incremental_strategy") == "microbatch":
            # dbt filters each parent by its event_time when it builds a batch.
            for parent in self.relations_above(node.unique_id):
                time_column = self.project.nodes[parent].config.get("event_time")
                if isinstance(time_column, str):
                    key = fold(time_column, False, self.dialect)
                    column = self.node(parent).relation.get(key, time_column)
                    if column is not None:
                        parts += [parent.encode(), column[0]]
                        merge(rows, through(FILTER, column[1]))
        return digest(*parts), rows

    def named(self, words: set[str], relation: Relation, parts: list[bytes], rows: Deps) -> None:
        """Rows depend on the columns that a text names which is not followed; ``*`` names all."""
        for key, fp, deps in zip(relation.keys, relation.fps, relation.deps, strict=True):
            if "*" in words or key.lower() in words:
                parts.append(fp)
                merge(rows, through(FILTER, deps))
        if relation.rest:
            parts.append(rest_fp(relation.rest))

    def typed(self, node: Node, keys: list[str], fps: list[bytes]) -> list[bytes]:
        """An enforced contract casts a column to its declared type."""
        types = {
            key: column.data_type
            for key, column in zip(self.declared_keys(node), node.columns.values(), strict=True)
            if column.data_type
        }
        return [
            digest(b"type", fp, " ".join(types[key].lower().split()).encode())
            if key in types
            else fp
            for key, fp in zip(keys, fps, strict=True)
        ]

    def aside(self, unique_id: str, node: Node, looks: Looks) -> bytes:
        """What a node depends on besides its query's text: empty where there is nothing.

        That is what its Jinja looks at while it compiles (rule 11), what its hooks refer to, and
        the functions it calls.
        """
        parts: list[bytes] = []
        sees = Sees.EVERYTHING if self.settings.hooks_read(node) else looks.sees
        if sees:
            for parent in sorted(self.relations_above(unique_id)):
                relation = self.node(parent).relation
                parts.append(parent.encode())
                if sees == Sees.NAMES:
                    parts += [*(key.encode() for key in relation.keys), rest_fp(relation.rest)]
                else:
                    parts.append(relation.all_fp())
                if sees == Sees.EVERYTHING:
                    parts.append(relation.rows_fp)
        for name, column in looks.values:
            parents = self.relations_above(unique_id)
            for parent in [p for p in parents if self.project.nodes[p].name == name] or parents:
                relation = self.node(parent).relation
                found = relation.get(fold(column, False, self.dialect), column)
                parts += [relation.rows_fp, found[0] if found else relation.all_fp()]
        parts += map(self.function, self.functions_above(unique_id))
        return digest(*parts) if parts else b""

    def relations_above(self, unique_id: str) -> list[str]:
        """The relations a node refers to, each once, but those it is itself part of."""
        parents = (
            self.canonical.get(p, p)
            for p in self.project.parents.get(unique_id, ())
            if self.project.nodes[p].resource_type in RELATIONS
        )
        return [p for p in dict.fromkeys(parents) if p not in self.in_progress]

    def functions_above(self, unique_id: str) -> list[str]:
        """The functions a node calls."""
        nodes = self.project.nodes
        return [
            p
            for p in self.project.parents.get(unique_id, ())
            if nodes[p].resource_type == "function"
        ]

    def function(self, unique_id: str) -> bytes:
        """A fingerprint of a function: its body, its signature, and all that its refs hold."""
        known = self.functions.get(unique_id)
        if known is None:
            self.functions[unique_id] = b""  # where functions call each other, once is enough
            node = self.project.nodes[unique_id]
            parts = [
                normalised(node.raw_code).encode(),
                repr((node.arguments, node.returns, node.config.get("volatility"))).encode(),
                self.settings.macros.fingerprint(node.depends_on.macros),
            ]
            for parent in self.relations_above(unique_id):
                relation = self.node(parent).relation
                parts += [relation.all_fp(), relation.rows_fp]
            parts += map(self.function, self.functions_above(unique_id))
            known = self.functions[unique_id] = digest(*parts)
        return known

    def snapshot_columns(
        self,
        node: Node,
        relation: Relation,
        config: bytes,
        names: list[str],
        keys: list[str],
        fps: list[bytes],
        deps: list[Deps],
    ) -> None:
        """The columns dbt adds to a snapshot, and what they come from."""
        renamed = node.config.get("snapshot_meta_column_names") or {}
        added = list(_SNAPSHOT_COLUMNS)
        if node.config.get("hard_deletes") == "new_record":
            added.append("dbt_is_deleted")
        updated: Deps = {}
        updated_at = node.config.get("updated_at")
        if node.config.get("strategy") == "timestamp" and isinstance(updated_at, str):
            column = relation.get(fold(updated_at, False, self.dialect), updated_at)
            updated = column[1] if column is not None else {}
        scd: Deps = dict(through(TRANSFORMATION << MASK_SHIFT, updated))
        for name in listed(node.config.get("unique_key")):
            column = relation.get(fold(name, False, self.dialect), name)
            if column is not None:
                merge(scd, through(TRANSFORMATION << MASK_SHIFT, column[1]))
        of = {
            "dbt_scd_id": scd,
            "dbt_updated_at": updated,
            "dbt_valid_from": updated,
            "dbt_valid_to": through(TRANSFORMATION, updated),
        }
        for column_name in added:
            name = str(renamed.get(column_name) or column_name)
            names.append(name)
            keys.append(fold(name, False, self.dialect))
            fps.append(digest(b"snapshot", column_name.encode(), config))
            deps.append(of.get(column_name, {}))

    def opaque(self, unique_id: str, node: Node, reason: str) -> _Known:
        """A node that is not seen through: it may use everything its parents hold."""
        above = self.relations_above(unique_id)
        relations = [self.node(p).relation for p in above]
        fingerprint = digest(
            b"opaque",
            self.opaque_text(unique_id, node).encode("utf-8", "surrogatepass"),
            self.settings.of(node, columns=True),
            *(self.function(p) for p in self.functions_above(unique_id)),
            *(fp for r in relations for fp in (r.all_fp(), r.rows_fp)),
        )
        in_catalog = [c.name for c in self.project.catalog.get(unique_id, ())]
        closed = bool(in_catalog)
        names = in_catalog or [c.name for c in node.columns.values()]
        everything: Deps = {}
        pairs = sum(len(r.names) for r in relations) * max(len(names), 1)
        for r in relations:
            merge(everything, through(TRANSFORMATION, r.rows))
            if pairs <= MAX_OPAQUE_EDGES:
                for d in r.deps:
                    merge(everything, through(TRANSFORMATION, d))
        rows: Deps = {}
        for r in relations:
            merge(rows, through(TRANSFORMATION, r.rows))
            for d in r.deps:
                merge(rows, through(TRANSFORMATION, d))
        keys = [fold_stored(n, self.dialect) for n in names]
        relation = Relation(
            list(names),
            keys,
            [digest(fingerprint, k.encode()) for k in keys],
            [{(unique_id, n): IDENTITY} for n in names],
            [] if closed else [_OpaqueRest(self, unique_id, fingerprint, everything)],
            digest(fingerprint, b"rows"),
            {(unique_id, ROWS): IDENTITY},
            digest(b"leaf", unique_id.encode()),
        )
        analysis = NodeAnalysis(
            unique_id,
            "opaque",
            reason,
            names,
            [fp.hex() for fp in relation.fps],
            [None] * len(names),
            relation.rows_fp.hex(),
        )
        return _Known(analysis, relation, [everything for _ in names], rows)

    def opaque_text(self, unique_id: str, node: Node) -> str:
        """The text of a node that is not seen through, relations by unique_id (rule 6)."""
        macros = self.settings.macros
        if node.is_python or node.compiled_code is None:
            config = {k: v for k, v in node.config.items() if k not in HARMLESS and v}
            called = macros.fingerprint(node.depends_on.macros).hex()
            return f"{normalised(node.raw_code)}\n{sorted(config.items())!r}\n{called}"
        text = node.compiled_code
        for other in (unique_id, *self.project.parents.get(unique_id, ())):
            if name := self.project.nodes[other].relation_name:
                text = text.replace(name, other)
        return text

    # -- tests ----------------------------------------------------------------------------------

    def may_discover(self, unique_id: str) -> bool:
        """Whether a test can show a column that nothing lists: it reads an open relation."""
        parents = (self.canonical.get(p, p) for p in self.project.parents.get(unique_id, ()))
        known = (self.known.get(p) for p in parents)
        return any(k is not None and k.relation.rest for k in known)

    def test(self, unique_id: str, node: Node) -> tuple[NodeAnalysis, list[tuple[str, str]]]:
        """A test's fingerprint and what it reads: the columns and row sets its query depends on."""
        followed = self.follow(unique_id, node)
        reads: dict[tuple[str, str], None] = {}
        if isinstance(followed, str):
            opaque = self.opaque(unique_id, node, followed)
            reads.update(dict.fromkeys(opaque.rows))
            analysis = opaque.analysis
        else:
            _, linked = followed
            relation = linked.relation
            for deps in (relation.rows, *relation.deps):
                reads.update(dict.fromkeys(deps))
            names, fps = list(relation.names), [fp.hex() for fp in relation.fps]
            if relation.rest:  # what a test shows counts, with or without a name
                names.append("*")
                fps.append(rest_fp(relation.rest).hex())
            rows_fp = relation.rows_fp
            config = self.settings.of(node)
            aside = self.aside(unique_id, node, self.introspection.of(node))
            if config or aside:
                rows_fp = digest(b"aside", rows_fp, config, aside)
            analysis = NodeAnalysis(
                unique_id,
                "broken" if linked.missing else "analysed",
                "cannot find " + ", ".join(linked.missing) if linked.missing else None,
                names,
                fps,
                [None] * len(names),
                rows_fp.hex(),
                looks_at=self.relations_above(unique_id) if aside else [],
            )
        return analysis, list(reads)

    def unit_test(self, unique_id: str, node: Node) -> UnitTestAnalysis | None:
        """Rule 9: the model's own query over named columns, the fixture, what dbt types it by.

        None where the manifest does not hold the model.
        """
        models = [
            p
            for p in self.project.parents.get(unique_id, ())
            if self.project.nodes[p].resource_type == "model"
        ]
        tested = [p for p in models if self.project.nodes[p].name == node.model] or models
        if not tested:
            return None
        model = self.project.nodes[tested[0]]
        parts = [
            repr((node.given, node.expect, node.overrides)).encode(),
            self.settings.of(model, columns=True),
            self.settings.macros.of_materialization("unit"),
            *map(self.function, self.functions_above(model.unique_id)),
        ]
        reads: dict[tuple[str, str], None] = {}
        followed: tuple[dict[str, str], Linked] | str = _cannot_see(model) or ""
        if not followed:
            reader = _UnitReader(self, model.unique_id)
            try:
                followed = self.queries.follow(model.compiled_code or "", reader)
            except Exception as error:  # as in `follow`
                followed = f"a defect of dbt_ripple: {type(error).__name__}: {error}"
        if isinstance(followed, str) or node.overrides:
            # Overridden macros and vars compile to another text than the one at hand.
            macros = self.settings.macros
            parts += [
                normalised(model.raw_code).encode(),
                macros.fingerprint(model.depends_on.macros),
            ]
        if not isinstance(followed, str):
            relation = followed[1].relation
            parts += [relation.rows_fp, *(m.encode() for m in followed[1].missing)]
            parts += sorted(
                digest(key.encode(), fp)
                for key, fp in zip(relation.keys, relation.fps, strict=True)
            )
            parts.append(rest_fp(relation.rest))
            for deps in (relation.rows, *relation.deps):
                reads.update(dict.fromkeys(deps))
        types: dict[tuple[str, str], str] = {}
        read = {(parent, column.lower()) for parent, column in reads}
        given = {str(k).lower() for g in node.given for k in _given_columns(g)}
        all_given = any(not isinstance(g.get("rows"), list) for g in node.given)
        for parent in self.relations_above(model.unique_id):
            known = self.node(parent)
            for name, type_ in self.types(parent, known.relation.names).items():
                if all_given or name in given or (parent, name) in read:
                    parts.append(digest(parent.encode(), name.encode()))
                    if type_:
                        types[parent, name] = type_
        return UnitTestAnalysis(unique_id, tested[0], digest(*parts).hex(), types)

    def types(self, unique_id: str, names: list[str]) -> dict[str, str]:
        """The types of a relation's columns by lower-case name, empty where they are not known."""
        node = self.project.nodes[unique_id]
        types = {
            c.name.lower(): (c.type or "").lower() for c in self.project.catalog.get(unique_id, ())
        }
        if node.contract_enforced or not types:
            types |= {
                c.name.lower(): " ".join(c.data_type.lower().split())
                for c in node.columns.values()
                if c.data_type
            }
        return {name.lower(): types.get(name.lower(), "") for name in names}

    # -- edges ----------------------------------------------------------------------------------

    def edges(self) -> list[ColumnEdge]:
        edges: list[ColumnEdge] = []
        for unique_id, known in self.known.items():
            for name, deps in zip(known.analysis.columns, known.deps, strict=True):
                edges += _edges(deps, unique_id, name)
            edges += _edges(known.rows, unique_id, ROWS)
        for unique_id, node in self.project.nodes.items():
            if node.resource_type == "exposure":
                edges.extend(self.exposure_edges(unique_id, node))
        return edges

    def exposure_edges(self, unique_id: str, node: Node) -> Iterator[ColumnEdge]:
        """A consumer reads the rows of what it depends on, and the columns it is known to read."""
        said = referenced_columns(node)
        for declared_parent in self.project.parents.get(unique_id, ()):
            parent = self.canonical.get(declared_parent, declared_parent)
            known = self.known.get(parent)
            if known is None:
                continue
            yield ColumnEdge(parent, ROWS, unique_id, ROWS, "DIRECT", "IDENTITY", False)
            names = {fold_stored(n, self.dialect): n for n in known.analysis.columns}
            owners = {
                self.project.nodes[p].name
                for p in (parent, declared_parent)
                if p in self.project.nodes
            }
            for entry in said or ():
                owner, _, column = entry.rpartition(".")
                name = names.get(fold(column, False, self.dialect))
                if name is not None and (
                    not owner or owner in owners or owner in (parent, declared_parent)
                ):
                    yield ColumnEdge(parent, name, unique_id, name, "DIRECT", "IDENTITY", False)


class _Kinds(dict[int, list[tuple[str, str, bool]]]):
    """A mask of kinds -> OpenLineage type, subtype and masking of each, told once per mask."""

    def __missing__(self, mask: int) -> list[tuple[str, str, bool]]:
        kinds = self[mask] = [said for bit, said in _BITS.items() if mask & bit]
        return kinds


_KINDS: Final = _Kinds()


def _edges(deps: Deps, child: str, column: str) -> list[ColumnEdge]:
    return [
        _edge((parent, parent_column, child, column, kind, subtype, masking))
        for (parent, parent_column), mask in deps.items()
        if parent != child
        for kind, subtype, masking in _KINDS[mask]
    ]


def _view(unique_id: str, relation: Relation) -> bytes | None:
    # What its columns depend on is left out: it is the node's own columns, by name.
    if not all(type(rest) is _LeafRest for rest in (*relation.rest, *relation.ghost)):
        return None
    return digest(
        msgspec.msgpack.encode(
            (
                unique_id,
                relation.names,
                relation.keys,
                relation.fps,
                [rest.fp() for rest in relation.rest],
                [rest.fp() for rest in relation.ghost],
                relation.rows_fp,
                relation.leaf,
                relation.joins,
                relation.order,
            )
        )
    )


def _cannot_see(node: Node) -> str | None:
    """Why a node has no SQL to read, or None where it has."""
    if node.is_python:
        return "a Python model"
    if not node.compiled_code:
        return "not compiled: run `dbt compile` or `dbt docs generate` on the whole project"
    return None


def _why_unknown(relation: Relation) -> str:
    parents = sorted({parent for parent, _ in relation.rows})
    return (
        f"no catalog lists those of {', '.join(parents[:3]) or 'its source'}"
        "; run `dbt docs generate`"
    )


def _given_columns(given: dict[str, Any]) -> set[str]:
    rows = given.get("rows")
    return (
        {key for row in rows if isinstance(row, dict) for key in row}
        if isinstance(rows, list)
        else set()
    )


def _where_it_is(source: Node) -> tuple[str | None, ...]:
    """What a project says of where a source is, without what only the target decides (rule 6)."""
    said: list[str | None] = [source.identifier or source.name]
    for unrendered, rendered in (
        (source.unrendered_database, source.database),
        (source.unrendered_schema, source.schema),
    ):
        said.append(unrendered)
        if unrendered and "target" not in unrendered and "env_var" not in unrendered:
            said.append(rendered)
    return tuple(said)


def _topological(project: Project) -> Iterable[str]:
    """Every node after its parents; nodes on a cycle last, in the manifest's order."""
    waiting = {u: len(project.parents.get(u, ())) for u in project.nodes}
    ready = [u for u, n in waiting.items() if n == 0]
    done: dict[str, None] = {}
    while ready:
        following: list[str] = []
        for unique_id in ready:
            done[unique_id] = None
            for child in project.children.get(unique_id, ()):
                waiting[child] -= 1
                if waiting[child] == 0:
                    following.append(child)
        ready = following
    return [*done, *(u for u in project.nodes if u not in done)]
