"""A relation as linked, and how dependencies compose."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Final, Protocol

import msgspec

from dbt_ripple.flow.fingerprint import digest
from dbt_ripple.flow.identifiers import (
    MADE_UP,
    first_of,
    fold,
    made_up_for,
    repeats_for,
    with_unique_names,
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


class OutputColumn(msgspec.Struct, frozen=True, gc=False):
    """A column of a relation that is known by name.

    Attributes:
        name: as shown.
        key: the name as compared.
        fp: ``V``.
        deps: what it depends on.
    """

    name: str
    key: str
    fp: bytes
    deps: Deps

    @property
    def value(self) -> Column:
        """The column without its name."""
        return self.fp, self.deps


class RowSet(msgspec.Struct, frozen=True, gc=False):
    """The rows of a relation.

    Attributes:
        fp: ``N``.
        deps: what the row set depends on.
        side_key: a digest of the relations below, which tells the sides of a join apart.
        joins: these digests of all that is joined into it already, leftmost first.
        order: fingerprint of the ORDER BYs its rows come by, which matters once something sees it
            that depends on the order of rows: a LIMIT, a list, a window.
        incidental: what else that order may come of where no ORDER BY decides: windows, and joins
            that `N` does not hold (rule 14).
    """

    fp: bytes
    deps: Deps
    side_key: bytes
    joins: tuple[bytes, ...]
    order: bytes = b""
    incidental: bytes = b""

    @property
    def ordered_fp(self) -> bytes:
        """``N``, and the order in which the rows come, where anything is known of it."""
        return in_order(self.fp, self.order, self.incidental)

    def after(self, fp: bytes, deps: Deps) -> RowSet:
        """What a step makes of these rows, which stay in their order."""
        return RowSet(fp, deps, self.side_key, self.joins, self.order, self.incidental)

    @staticmethod
    def unjoined(
        fp: bytes, deps: Deps, side_key: bytes, order: bytes = b"", incidental: bytes = b""
    ) -> RowSet:
        """The rows of a relation that is no join, as far as its readers see it."""
        return RowSet(fp, deps, side_key, (side_key,), order, incidental)


class Relation:
    """A relation as linked: its known columns, and its row set.

    Attributes:
        columns: those that are known by name, in order.
        rows: the row set.
        unlisted: what else it may have (empty: the columns above are all).
        unresolved: where to look for a name that, as far as we know, does not exist: the query is broken
            or our schema is out of date, and what it would depend on must not be lost.
        fields: of columns that are a struct with fields we can see, these fields, by key.
        also: other names that ORDER BY knows behind a set operation, with their positions.
        as_named: the columns as its own query named them, where repeated names were then told apart.
        facts: what else is known of its rows; only where it was linked for that (`flow.row_constraints`).
    """

    __slots__ = (
        "_shows_its_keys",
        "_uncertain",
        "also",
        "as_named",
        "by_key",
        "columns",
        "duplicates",
        "facts",
        "fields",
        "rows",
        "unlisted",
        "unresolved",
    )

    def __init__(
        self,
        columns: list[OutputColumn],
        rows: RowSet,
        unlisted: list[UnlistedColumns] | None = None,
        unresolved: list[UnlistedColumns] | None = None,
    ) -> None:
        self.columns = columns
        self.rows = rows
        self.unlisted = unlisted if unlisted is not None else []
        self.unresolved = unresolved if unresolved is not None else []
        self.facts: Facts | None = None
        self.as_named: list[OutputColumn] | None = None
        self.by_key: dict[str, Column] = {}
        self.duplicates: frozenset[str] = _NO_NAMES
        self._uncertain: bool | None = None
        self._shows_its_keys: bool | None = None
        self.also: dict[str, list[int]] = NO_OTHER_NAMES
        self.fields: dict[str, Fields] = NO_FIELDS

    @property
    def names(self) -> list[str]:
        """The names of the known columns, as shown."""
        return [column.name for column in self.columns]

    @property
    def keys(self) -> list[str]:
        """The names of the known columns, as compared."""
        return [column.key for column in self.columns]

    @property
    def fps(self) -> list[bytes]:
        """``V`` of each known column."""
        return [column.fp for column in self.columns]

    def columns_by_key(self) -> dict[str, Column]:
        """The known columns by key; of a repeated name the first, and it is in `duplicates`.

        They are made when first asked for, and then at hand in `by_key`.
        """
        by_key = self.by_key
        columns = self.columns
        if not by_key and columns:
            by_key = {column.key: (column.fp, column.deps) for column in columns}
            if len(by_key) < len(columns):
                times = Counter(column.key for column in columns)
                self.duplicates = frozenset(key for key, n in times.items() if n > 1)
                by_key |= {column.key: column.value for column in reversed(columns)}
            self.by_key = by_key
        return by_key

    @property
    def shows_its_keys(self) -> bool:
        """Whether each known column is shown by the very name by which it is compared."""
        shows = self._shows_its_keys
        if shows is None:
            shows = self._shows_its_keys = all(c.name == c.key for c in self.columns)
        return shows

    def named(self, key: str) -> OutputColumn | None:
        """The first known column of this key."""
        if key not in (self.by_key or self.columns_by_key()):
            return None
        return next(column for column in self.columns if column.key == key)

    @property
    def uncertain(self) -> bool:
        """Whether an engine may know any of the known columns by another name."""
        uncertain = self._uncertain
        if uncertain is None:
            by_key = self.by_key or self.columns_by_key()
            uncertain = self._uncertain = bool(self.duplicates) or MADE_UP in "".join(by_key)
        return uncertain

    def get(self, key: str, name: str) -> Column | None:
        """Return one column, from the known ones or the rest; None where there is none."""
        column = (self.by_key or self.columns_by_key()).get(key)
        if column is not None:
            return column
        columns = self.renamed_by_engine(key)
        columns += [c for r in self.unlisted if (c := r.get(key, name)) is not None]
        if self.unlisted and (first := first_of(key)) in self.by_key:
            # `id_1` may have been told apart from one of the columns that are not known.
            columns += [c.value for c in self.columns if first in (c.key, first_of(c.key))]
        return combine(columns) if columns else None

    def renamed_by_engine(self, key: str) -> list[Column]:
        """Those columns that an engine may have given a name we do not know for certain."""
        if not self.uncertain and ":" not in key:
            return []
        meant = made_up_for(key, [c.key for c in self.columns if c.key[:1] == MADE_UP])
        if not meant:
            repeated = repeats_for(key, self.by_key, self.duplicates)
            meant = [repeated] if repeated is not None else []
        return [column.value for column in self.columns if column.key in meant]

    def all_fp(self) -> bytes:
        """A fingerprint of every column by name, and of their order where that is known.

        Whoever reads a relation in a way that cannot be told may read its columns by position.
        """
        pairs = [(column.key.encode(), column.fp) for column in self.columns]
        if self.unlisted:
            pairs.sort()
        return digest(b"all", *(b"=".join(p) for p in pairs), *(r.fp() for r in self.unlisted))

    def whole(self, kind: int) -> Deps:
        """What depends on all that it shows depends on, by a use of this kind."""
        deps: Deps = {}
        merge(deps, through(kind, self.rows.deps))
        for column in self.columns:
            merge(deps, through(kind, column.deps))
        return deps

    def reads(self) -> Iterator[Key]:
        """What its rows and its known columns depend on; something may come repeatedly."""
        yield from self.rows.deps
        for column in self.columns:
            yield from column.deps

    def renamed(self, columns: list[str], dialect: str) -> Relation:
        """The same relation under a list of column aliases.

        Where its columns are not all known, an alias may stand for any of them.
        """
        n = len(columns)
        if self.unlisted:
            whole: Deps = {}
            for column in self.columns:
                merge(whole, through(TRANSFORMATION, column.deps))
            for r in self.unlisted:
                merge(whole, r.whole())
            everything = self.all_fp()
            renamed = Relation(
                [
                    OutputColumn(
                        name,
                        fold(name, False, dialect),
                        digest(b"nth", str(i).encode(), everything),
                        whole,
                    )
                    for i, name in enumerate(columns)
                ],
                self.rows,
            )
        else:
            # What the list leaves over keeps its name: it is told apart from what the list says.
            left = self.as_named or self.columns
            named = [
                OutputColumn(name, fold(name, False, dialect), column.fp, column.deps)
                for name, column in zip(columns, self.columns, strict=False)
            ]
            named += [
                OutputColumn(as_named.name, as_named.key, column.fp, column.deps)
                for as_named, column in zip(left[n:], self.columns[n:], strict=True)
            ]
            if n < len(left):
                named = columns_with_unique_names(named, dialect)
            renamed = Relation(named, self.rows, [], self.unresolved)
            if self.fields:
                places = zip(self.columns, named, strict=True)
                renamed.fields = {
                    new.key: self.fields[old.key] for old, new in places if old.key in self.fields
                }
        renamed.facts = self.facts
        return renamed


def columns_with_unique_names(columns: list[OutputColumn], dialect: str) -> list[OutputColumn]:
    """The columns under the names by which an engine tells repeated ones apart."""
    keys = [column.key for column in columns]
    names, new_keys = with_unique_names([column.name for column in columns], keys, dialect)
    if new_keys is keys:
        return columns
    return [
        OutputColumn(name, key, column.fp, column.deps)
        for name, key, column in zip(names, new_keys, columns, strict=True)
    ]


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
