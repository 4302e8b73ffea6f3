"""Queries lowered and linked, or taken from the cache where they were before.

Two things are kept of a query, by its text, its dialect and the engine:

* as lowered: it depends on nothing else;
* as linked: with it stands which relations it read, in order, and a digest of what it saw of each.
  It serves again where all of these are as they were. A query that reads a relation of which not
  all columns are known through another query, or that passes such columns on, is not kept: it is
  linked again.
"""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Sequence
from contextlib import AbstractContextManager
from itertools import count
from typing import Final, Protocol

import msgspec

from dbt_ripple.flow.data_types import Fields
from dbt_ripple.flow.fingerprint import digest
from dbt_ripple.flow.ir import Lowered, pack, unpack
from dbt_ripple.flow.link import Linked, link
from dbt_ripple.flow.relation import (
    Key,
    OutputColumn,
    PackedDeps,
    Relation,
    RowSet,
    pack_deps,
    unpack_deps,
)
from dbt_ripple.graph.cache import Cache
from dbt_ripple.reasons import Code, Reason

LowerMany = Callable[[Sequence[str], str, bool, Collection[str]], list[bytes]]
"""Lowers many queries somewhere else: as `flow.ir.lower_packed` does, or none of them (an empty
list) where that does not pay."""

_TRACES: Final = 4
"""How many ways to link one query are kept; a pull request has two."""

Note = tuple[str, str, str, str]
"""A column of a source, or another node without a query, that only its use shows: unique_id, key, name, the name
it was noted under."""


class TableResolver(Protocol):
    """The node whose query is followed, and the project around it."""

    def table(self, key: str, name: str) -> Relation:
        """The relation behind a name."""

    def view(self, key: str, name: str) -> bytes | None:
        """A digest of that relation; None where a digest cannot say all of it."""

    def noting(self) -> AbstractContextManager[dict[Note, None]]:
        """Gather the columns of nodes without a query that only their use shows, in order."""

    def repeat(self, note: Note) -> bool:
        """Note such a column again; False where it comes out under another name."""


class _CachedRows(msgspec.Struct, array_like=True, gc=False):
    """A `RowSet` without its dependencies."""

    fp: bytes
    side_key: bytes
    joins: tuple[bytes, ...]
    order: bytes
    incidental: bytes


class _CachedRelation(msgspec.Struct, array_like=True, gc=False):
    """A linked query. `deps` are of its columns and, last, of its rows (`pack_deps`)."""

    names: list[str]
    keys: list[str] | None
    fps: list[bytes]
    of: list[Key]
    deps: list[PackedDeps]
    rows: _CachedRows
    missing: list[str]
    unknown: Reason | None
    fields: dict[str, Fields]


class _CachedLink(msgspec.Struct, array_like=True, gc=False):
    """What a query was linked to, once: it read `reads`, which looked like `seen`."""

    reads: list[Key]
    seen: bytes
    notes: list[Note]
    linked: msgspec.Raw


class _CacheEntry(msgspec.Struct, array_like=True, gc=False):
    """All that is kept of a query as linked; `reason` is why it cannot be."""

    reason: Reason | None
    expressions: dict[str, str]
    traces: list[_CachedLink]
    called: list[str] = []
    varying: list[str] = []


_encode: Final = msgspec.msgpack.Encoder().encode
_entry: Final = msgspec.msgpack.Decoder(_CacheEntry).decode
_stored: Final = msgspec.msgpack.Decoder(_CachedRelation).decode


class QueryCache:
    """The queries of one project.

    Args:
        dialect: they are written in.
        expressions: whether the SQL behind each output is asked for.
        cache: where to look first.
        lower_many: lowers many queries at once, elsewhere.
        masking: functions that mask their arguments, besides those known to.

    Attributes:
        parse_seconds: wall time spent on lowering.
        again: whether a query will be asked for more than once, and is kept for that.
    """

    def __init__(
        self,
        dialect: str,
        expressions: bool,
        cache: Cache | None,
        lower_many: LowerMany | None,
        masking: Collection[str] = (),
    ) -> None:
        self.dialect = dialect
        self.expressions = expressions
        self.cache = cache
        self.lower_many = lower_many
        self.masking = tuple(sorted(masking))
        self.parse_seconds = 0.0
        self.again = False
        self._ready: dict[str, bytes] = {}
        self._last: tuple[str, Lowered] | None = None

    def prepare(self, queries: Iterable[str]) -> None:
        """Lower at once, elsewhere, what will have to be lowered."""
        if self.lower_many is None:
            return
        cache = self.cache
        wanted = list(dict.fromkeys(queries))
        if cache is not None:
            wanted = [
                sql
                for sql in wanted
                if not (cache.has(self._key(b"linked", sql)) or cache.has(self._key(b"query", sql)))
            ]
        start = time.perf_counter()
        lowered = self.lower_many(wanted, self.dialect, self.expressions, self.masking)
        for sql, packed in zip(wanted, lowered, strict=False):
            if packed:
                self._ready[sql] = packed
                if cache is not None:
                    cache.put(self._key(b"query", sql), packed)
        self.parse_seconds += time.perf_counter() - start

    def follow(self, sql: str, reader: TableResolver) -> tuple[dict[str, str], Linked] | Reason:
        """A query, lowered and linked, with the SQL behind its outputs by key.

        Returns:
            Instead, the reason why it cannot be followed.
        """
        cache = self.cache
        if cache is None:
            lowered = self.lowered(sql)
            if lowered.rel is None:
                return lowered.reason or Code.NO_QUERY()
            return lowered.expressions, link(lowered, reader.table, self.dialect)
        key = self._key(b"linked", sql)
        entry = _read(cache, key)
        if entry is not None:
            if entry.reason is not None:
                return entry.reason
            linked = _linked_before(entry, reader)
            if linked is not None:
                return entry.expressions, linked
        lowered = self.lowered(sql)
        if lowered.rel is None:
            reason = lowered.reason or Code.NO_QUERY()
            cache.put(key, _encode(_CacheEntry(reason, {}, [])))
            return reason
        reads: dict[Key, None] = {}

        def table(name_key: str, name: str) -> Relation:
            reads[name_key, name] = None
            return reader.table(name_key, name)

        with reader.noting() as notes:
            linked = link(lowered, table, self.dialect)
        seen = None if linked.relation.unlisted else _seen(list(reads), reader)
        if seen is not None:
            trace = _CachedLink(
                list(reads), seen, list(notes), msgspec.Raw(_encode(_packed(linked)))
            )
            others = entry.traces[: _TRACES - 1] if entry is not None else []
            followed = _CacheEntry(
                None, lowered.expressions, [trace, *others], lowered.called, lowered.varying
            )
            cache.put(key, _encode(followed))
        return lowered.expressions, linked

    def _key(self, kind: bytes, sql: str) -> bytes:
        assert self.cache is not None
        written_out = b"expressions" if self.expressions else b""
        masking = "\n".join(self.masking).encode()
        # A lone surrogate is no text, and yet can stand in a manifest.
        text = sql.encode("utf-8", "surrogatepass")
        return self.cache.key(kind, self.dialect.encode(), written_out, masking, text)

    def lowered(self, sql: str) -> Lowered:
        """A query, lowered; of one that is asked for twice in a row, the same."""
        if self._last is None or self._last[0] != sql:
            self._last = sql, self._made_ready(sql)
        return self._last[1]

    def _made_ready(self, sql: str) -> Lowered:
        start = time.perf_counter()
        try:
            packed = self._ready.get(sql) if self.again else self._ready.pop(sql, None)
            if packed is not None:
                return unpack(packed)
            if self.cache is None:
                lowered = self._lower(sql)
                if self.again:
                    self._ready[sql] = pack(lowered)
                return lowered
            key = self._key(b"query", sql)
            packed = self.cache.get(key)
            if packed is not None:
                try:
                    return unpack(packed)
                except (msgspec.DecodeError, RecursionError):
                    pass
            lowered = self._lower(sql)
            self.cache.put(key, pack(lowered))
            return lowered
        finally:
            self.parse_seconds += time.perf_counter() - start

    def _lower(self, sql: str) -> Lowered:
        # Here, because it takes its time and a warm run does without.
        from dbt_ripple.flow.lower import lower

        return lower(sql, self.dialect, expressions=self.expressions, masking=self.masking)


def _read(cache: Cache, key: bytes) -> _CacheEntry | None:
    stored = cache.get(key)
    if stored is None:
        return None
    try:
        return _entry(stored)
    except msgspec.DecodeError:
        return None


def _linked_before(entry: _CacheEntry, reader: TableResolver) -> Linked | None:
    """The query as it was linked to relations that look like those of now."""
    reads: list[Key] | None = None
    seen: bytes | None = None
    for trace in entry.traces:
        if trace.reads != reads:
            reads = trace.reads
            seen = _seen(reads, reader)
        if seen is not None and seen == trace.seen:
            for read in reads:
                reader.table(*read)  # a relation that nobody declares is known by being read
            if all(reader.repeat(note) for note in trace.notes):
                linked = _linked(_stored(trace.linked))
                linked.called, linked.varying = entry.called, entry.varying
                return linked
            return None
    return None


def _seen(reads: Iterable[Key], reader: TableResolver) -> bytes | None:
    views = []
    for read in reads:
        view = reader.view(*read)
        if view is None:
            return None
        views.append(view)
    return digest(*views)


def _packed(linked: Linked) -> _CachedRelation:
    relation = linked.relation
    of: dict[Key, int] = defaultdict(count().__next__)
    rows = relation.rows
    deps = pack_deps(of, (*(column.deps for column in relation.columns), rows.deps))
    return _CachedRelation(
        names=relation.names,
        keys=None if relation.shows_its_keys else relation.keys,
        fps=relation.fps,
        of=list(of),
        deps=deps,
        rows=_CachedRows(rows.fp, rows.side_key, rows.joins, rows.order, rows.incidental),
        missing=linked.missing,
        unknown=linked.unknown,
        fields=relation.fields,
    )


def _linked(stored: _CachedRelation) -> Linked:
    *deps, rows_deps = unpack_deps(stored.of, stored.deps)
    rows = stored.rows
    keys = stored.keys if stored.keys is not None else stored.names
    relation = Relation(
        list(map(OutputColumn, stored.names, keys, stored.fps, deps)),
        RowSet(rows.fp, rows_deps, rows.side_key, rows.joins, rows.order, rows.incidental),
    )
    relation.fields = stored.fields
    return Linked(relation, stored.missing, stored.unknown)
