"""A relation as linked, and how dependencies compose."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Final, Protocol

from dbt_ripple.flow.fingerprint import digest
from dbt_ripple.flow.identifiers import (
    MADE_UP,
    first_of,
    fold,
    made_up_for,
    repeats_for,
    told_apart,
)
from dbt_ripple.flow.ir import (
    AGGREGATION,
    DIRECT,
    IDENTITY,
    KINDS,
    MASK_SHIFT,
    TRANSFORMATION,
)

if TYPE_CHECKING:
    from dbt_ripple.flow.data_types import Fields
    from dbt_ripple.flow.row_constraints import Facts

ROWS: Final = "*rows*"

Key = tuple[str, str]
Deps = dict[Key, int]
Column = tuple[bytes, Deps]


PackedDeps = int | dict[int, int]
"""Dependencies, with each key by its number; only the number where it is that very thing."""


class UnlistedColumns(Protocol):
    """The columns of a relation that are not known by name: they are looked up when asked for."""

    def get(self, key: str, name: str) -> Column | None:
        """Return the column, or None where it cannot be among these."""

    def fp(self) -> bytes:
        """Return a fingerprint of all of them."""

    def whole(self) -> Deps:
        """Return what any one of them may depend on, as far as that is known without a name."""


_NO_NAMES: Final[frozenset[str]] = frozenset()
NO_OTHER_NAMES: Final[dict[str, list[int]]] = {}  # never written to
NO_FIELDS: Final[dict[str, Fields]] = {}  # never written to


class Relation:
    """A relation as linked: parallel lists of its known columns, and its row set.

    Attributes:
        names: columns as shown. keys: as compared. fps: ``V`` of each. deps: what each depends on.
        unlisted: what else it may have (empty: the columns above are all).
        rows_fp: ``N``. rows: what the row set depends on.
        side_key: a digest of the relations below, which tells the sides of a join apart.
        joins: the leaves already joined into it, leftmost first.
        order: fingerprint of the ORDER BYs its rows come by, which matters once something sees it
            that depends on the order of rows: a LIMIT, a list, a window.
        incidental: what else that order may come of where no ORDER BY decides: windows, and joins
            that `N` does not hold (rule 14).
        unresolved: where to look for a name that, as far as we know, does not exist: the query is broken
            or our schema is out of date, and what it would depend on must not be lost.
        fields: of columns that are a struct with fields we can see, these fields, by key.
        also: other names that ORDER BY knows behind a set operation, with their positions.
        untold: names and keys as its own query gave them, where repeated ones were then told apart.
        facts: what else is known of its rows; only where it was linked for that (`flow.row_constraints`).
    """

    __slots__ = (
        "_uncertain",
        "also",
        "by_key",
        "deps",
        "duplicates",
        "facts",
        "fields",
        "fps",
        "incidental",
        "joins",
        "keys",
        "names",
        "order",
        "rows",
        "rows_fp",
        "side_key",
        "unlisted",
        "unresolved",
        "untold",
    )

    def __init__(
        self,
        names: list[str],
        keys: list[str],
        fps: list[bytes],
        deps: list[Deps],
        unlisted: list[UnlistedColumns],
        rows_fp: bytes,
        rows: Deps,
        side_key: bytes,
        joins: tuple[bytes, ...] | None = None,
        order: bytes = b"",
        unresolved: list[UnlistedColumns] | None = None,
        incidental: bytes = b"",
    ) -> None:
        self.names = names
        self.keys = keys
        self.fps = fps
        self.deps = deps
        self.unlisted = unlisted
        self.rows_fp = rows_fp
        self.rows = rows
        self.side_key = side_key
        self.joins = joins if joins is not None else (side_key,)
        self.order = order
        self.incidental = incidental
        self.unresolved = unresolved if unresolved is not None else []
        self.facts: Facts | None = None
        self.untold: tuple[list[str], list[str]] | None = None
        self.by_key: dict[str, Column] = {}
        self.duplicates: frozenset[str] = _NO_NAMES
        self._uncertain: bool | None = None
        self.also: dict[str, list[int]] = NO_OTHER_NAMES
        self.fields: dict[str, Fields] = NO_FIELDS

    def columns(self) -> dict[str, Column]:
        """The known columns by key; of a repeated name the first, and it is in `duplicates`.

        They are made when first asked for, and then at hand in `by_key`.
        """
        by_key = self.by_key
        if not by_key and self.keys:
            by_key = dict(zip(self.keys, zip(self.fps, self.deps, strict=True), strict=True))
            if len(by_key) < len(self.keys):
                self.duplicates = frozenset(k for k in by_key if self.keys.count(k) > 1)
                for key in self.duplicates:
                    i = self.keys.index(key)
                    by_key[key] = (self.fps[i], self.deps[i])
            self.by_key = by_key
        return by_key

    @property
    def uncertain(self) -> bool:
        """Whether an engine may know any of the known columns by another name."""
        uncertain = self._uncertain
        if uncertain is None:
            by_key = self.by_key or self.columns()
            uncertain = self._uncertain = bool(self.duplicates) or MADE_UP in "".join(by_key)
        return uncertain

    def get(self, key: str, name: str) -> Column | None:
        """Return one column, from the known ones or the rest; None where there is none."""
        column = (self.by_key or self.columns()).get(key)
        if column is not None:
            return column
        columns = self.renamed_by_engine(key)
        columns += [c for r in self.unlisted if (c := r.get(key, name)) is not None]
        if self.unlisted and (first := first_of(key)) in self.by_key:
            # `id_1` may have been told apart from one of the columns that are not known.
            every = zip(self.keys, self.fps, self.deps, strict=True)
            columns += [(fp, deps) for k, fp, deps in every if first in (k, first_of(k))]
        return combine(columns) if columns else None

    def renamed_by_engine(self, key: str) -> list[Column]:
        """Those columns that an engine may have given a name we do not know for certain."""
        if not self.uncertain and ":" not in key:
            return []
        meant = made_up_for(key, [k for k in self.keys if k[:1] == MADE_UP])
        if not meant:
            repeated = repeats_for(key, self.by_key, self.duplicates)
            meant = [repeated] if repeated is not None else []
        return [
            (fp, deps)
            for k, fp, deps in zip(self.keys, self.fps, self.deps, strict=True)
            if k in meant
        ]

    def all_fp(self) -> bytes:
        """A fingerprint of every column by name, and of their order where that is known.

        Whoever reads a relation in a way that cannot be told may read its columns by position.
        """
        pairs = [*zip((k.encode() for k in self.keys), self.fps, strict=True)]
        if self.unlisted:
            pairs.sort()
        return digest(b"all", *(b"=".join(p) for p in pairs), *(r.fp() for r in self.unlisted))

    def renamed(self, columns: list[str], dialect: str) -> Relation:
        """The same relation under a list of column aliases.

        Where its columns are not all known, an alias may stand for any of them.
        """
        n = len(columns)
        fps, deps, unlisted, unresolved = self.fps, self.deps, self.unlisted, self.unresolved
        if unlisted:
            whole: Deps = {}
            for d in deps:
                merge(whole, through(TRANSFORMATION, d))
            for r in unlisted:
                merge(whole, r.whole())
            everything = self.all_fp()
            fps = [digest(b"nth", str(i).encode(), everything) for i in range(n)]
            deps, unlisted, unresolved = [whole] * n, [], []
            names, keys_left = list(columns), []
        else:
            # What the list leaves over keeps its name: it is told apart from what the list says.
            left, left_keys = self.untold or (self.names, self.keys)
            names, keys_left = [*columns[: len(left)], *left[n:]], left_keys[n:]
        keys = [
            *(fold(c, False, dialect) for c in names[: len(names) - len(keys_left)]),
            *keys_left,
        ]
        if keys_left:
            names, keys = told_apart(names, keys, dialect)
        renamed = Relation(
            names,
            keys,
            fps,
            deps,
            unlisted,
            self.rows_fp,
            self.rows,
            self.side_key,
            self.joins,
            self.order,
            unresolved,
            self.incidental,
        )
        renamed.facts = self.facts
        if self.fields and not unlisted:
            places = zip(self.keys, keys, strict=False)
            renamed.fields = {new: self.fields[k] for k, new in places if k in self.fields}
        return renamed


def in_order(rows: bytes, order: bytes, incidental: bytes) -> bytes:
    """What depends on rows and on the order in which they come, where anything is known of it."""
    return digest(b"in order", rows, order, incidental) if order or incidental else rows


def beside(left: bytes, token: bytes, right: bytes) -> bytes:
    """The order of rows of two relations."""
    return digest(b"beside", left, token, right) if right else left


def combine(columns: list[Column]) -> Column:
    """A name that may mean any of several columns depends on all of them."""
    if len(columns) == 1:
        return columns[0]
    deps: Deps = {}
    for _, d in columns:
        merge(deps, d)
    fps = dict.fromkeys(fp for fp, _ in columns)
    return (columns[0][0] if len(fps) == 1 else digest(b"any", *fps)), deps


def unlisted_fp(unlisted: list[UnlistedColumns]) -> bytes:
    """A fingerprint of the columns that are not known by name.

    A ``*`` that passes them on and leaves none out is not seen in it.
    """
    parts = [r.fp() for r in unlisted]
    return parts[0] if len(parts) == 1 else digest(b"rest", *parts)


def merge(into: Deps, other: Deps) -> None:
    """Add dependencies to others."""
    for key, mask in other.items():
        into[key] = into.get(key, 0) | mask


NOTHING: Final[Deps] = {}

_composed: dict[tuple[int, int], int] = {}


def compose(outer: int, inner: int) -> int:
    """The kinds of a dependency through another one.

    DIRECT through DIRECT is DIRECT, with the stronger subtype and masking once masked anywhere; an
    INDIRECT use of a column is that use of whatever the column comes from; an INDIRECT dependency
    of a column stays what it is where the column is used DIRECTly.
    """
    if outer == IDENTITY:
        return inner
    if inner == IDENTITY:
        return outer
    composed = _composed.get((outer, inner))
    if composed is not None:
        return composed
    result = 0
    for o, *_ in KINDS:
        if not outer & o:
            continue
        for i, *_ in KINDS:
            if not inner & i:
                continue
            if not o & DIRECT:
                result |= o
            elif not i & DIRECT:
                result |= i
            else:
                masked = o > AGGREGATION or i > AGGREGATION
                strength = max(
                    o >> MASK_SHIFT if o > AGGREGATION else o,
                    i >> MASK_SHIFT if i > AGGREGATION else i,
                )
                result |= strength << MASK_SHIFT if masked else strength
    _composed[(outer, inner)] = result
    return result


def through(kind: int, deps: Deps) -> Deps:
    """Dependencies seen through a use of this kind."""
    if kind == IDENTITY:
        return deps
    return {key: kind if mask == IDENTITY else compose(kind, mask) for key, mask in deps.items()}


def union(a: Deps, b: Deps) -> Deps:
    """Dependencies of either."""
    if a is b:
        return a
    both = dict(a)
    merge(both, b)
    return both


def pack_deps(of: dict[Key, int], deps: Iterable[Deps]) -> list[PackedDeps]:
    """Dependencies as they are kept; ``of`` gives each key a number, and new ones the next."""
    packed: list[PackedDeps] = []
    for d in deps:
        if len(d) == 1:
            ((key, mask),) = d.items()
            packed.append(of[key] if mask == IDENTITY else {of[key]: mask})
        else:
            packed.append({of[key]: mask for key, mask in d.items()})
    return packed


def unpack_deps(of: list[Key], packed: Iterable[PackedDeps]) -> list[Deps]:
    """What `pack_deps` packed, given the keys by number."""
    return [
        {of[d]: IDENTITY} if isinstance(d, int) else {of[i]: mask for i, mask in d.items()}
        for d in packed
    ]
