"""Row sets as structures, and how the rows of one stand to the rows of another (rule 15).

A row set is a bag of rows; a column's fingerprint is a function of a row. `embed` looks for a map
from the rows of one row set (head's) to the rows of another (base's) under which every column with
an equal fingerprint has an equal value. Where there is such a map, whatever no row of base is, no
row of head is; where the map is one to one, no group of rows got bigger.

Guarantees: ``embed`` answers None unless it can show the map. It compares structure only, never
values, and what it does not know by kind (`OpaqueRows`) has a map only to its equal.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final, TypeAlias

INJECTIVE: Final = 1
"""No two rows of head go to the same row of base: head's rows are a part of base's."""
ONTO: Final = 2
"""Every row of base is reached."""
COUNTED: Final = 4
"""Between groups: each of head's is made of a part of the rows of the one it goes to."""
AS_MANY: Final = 8
"""Between groups: each of head's is made of all rows of the one it goes to."""
EQUAL: Final = INJECTIVE | ONTO | COUNTED | AS_MANY
_OF_ROWS: Final = INJECTIVE | ONTO
"""What is left where the rows are no groups any more."""

MOST_STEPS: Final = 2_000
"""Pairs of row sets to look at for one answer; beyond that nothing is known."""


@dataclass(frozen=True, slots=True)
class OpaqueRows:
    """Rows that are not looked into: a source, a LIMIT inside a pivot, anything unknown."""

    fp: bytes


@dataclass(frozen=True, slots=True)
class IsNull:
    """A condition: a column is NULL, or (``negated``) is not."""

    column: bytes
    negated: bool


@dataclass(frozen=True, slots=True)
class SemiJoin:
    """A condition: some row of ``rows`` meets ``on``; or (``negated``) none does.

    ``child`` and ``parent`` are the two sides where ``on`` is one equality of columns.
    """

    rows: Rows
    on: frozenset[bytes]
    negated: bool
    child: bytes = b""
    parent: bytes = b""


@dataclass(frozen=True, slots=True)
class CountAbove:
    """A condition on a group: it has more than so many rows (or values of a column)."""

    number: int
    rows: bool


Condition: TypeAlias = IsNull | SemiJoin | CountAbove | None
Side = tuple[bytes, "Rows"]


@dataclass(frozen=True, slots=True)
class JoinBlock:
    """Inner joins and filters: the product of the sides where all conditions hold.

    The first side has no token; a token is what the columns of a side are wrapped in. A condition
    is known by its fingerprint; the value says more about some.
    """

    fp: bytes
    sides: tuple[Side, ...]
    conditions: dict[bytes, Condition] = field(hash=False)


@dataclass(frozen=True, slots=True)
class OuterJoin:
    """An outer join; unmatched rows of a side are there where it is kept."""

    fp: bytes
    left: Rows
    right: Rows
    on: frozenset[bytes]
    token: bytes
    keeps_left: bool
    keeps_right: bool


@dataclass(frozen=True, slots=True)
class GroupedRows:
    """One row for each combination of keys; without keys one row, always."""

    fp: bytes
    rows: Rows
    keys: frozenset[bytes]


@dataclass(frozen=True, slots=True)
class Union:
    """UNION ALL; ``columns`` has of each output what it is on the left and on the right.

    It is None where that cannot be told by fingerprint.
    """

    fp: bytes
    left: Rows
    right: Rows
    columns: dict[bytes, tuple[bytes, bytes]] | None = field(hash=False)


Rows: TypeAlias = OpaqueRows | JoinBlock | OuterJoin | GroupedRows | Union


def sides(rows: Rows) -> tuple[Side, ...]:
    """A row set as the sides of a product."""
    return rows.sides if isinstance(rows, JoinBlock) else ((b"", rows),)


def conditions(rows: Rows) -> dict[bytes, Condition]:
    """The conditions all rows of a row set meet, as far as they stand outside."""
    return rows.conditions if isinstance(rows, JoinBlock) else {}


def filtered(rows: Rows, fp: bytes, key: bytes, condition: Condition = None) -> Rows:
    """The rows that meet one more condition.

    Args:
        rows: what is filtered.
        fp: ``N`` of the result.
        key: fingerprint of the condition.
        condition: what is known about it.
    """
    by_fingerprint = conditions(rows)
    kept = by_fingerprint.get(key) or condition
    return JoinBlock(fp, sides(rows), {**by_fingerprint, key: kept})


def joined(left: Rows, right: Rows, fp: bytes, token: bytes, on: frozenset[bytes]) -> Rows:
    """An inner join."""
    return JoinBlock(fp, (*sides(left), (token, right)), {**conditions(left), **dict.fromkeys(on)})


@dataclass(frozen=True, slots=True)
class Embedding:
    """A map of rows that was found.

    ``bits`` says what is known of it; ``left_out`` and ``given_up`` are the join sides of head and
    of base that it does not go through.
    """

    bits: int
    left_out: frozenset[bytes] = frozenset()
    given_up: frozenset[bytes] = frozenset()


_NO_SIDES: Final[frozenset[bytes]] = frozenset()
_SAME: Final = Embedding(EQUAL)


class Embeddings:
    """Finds maps between row sets, and remembers what it found."""

    def __init__(self) -> None:
        self._best: dict[tuple[bytes, bytes], Embedding | None] = {}
        self.steps = 0

    def embed(self, head: Rows, base: Rows) -> int | None:
        """What is known of a map from head's rows to base's; None where none is known to be.

        Returns:
            A union of `INJECTIVE`, `ONTO`, `COUNTED` and `AS_MANY`.
        """
        self.steps = 0
        embedding = self._find(head, base)
        return None if embedding is None else embedding.bits

    def _find(self, head: Rows, base: Rows) -> Embedding | None:
        if head.fp == base.fp:
            return _SAME
        key = (head.fp, base.fp)
        if key not in self._best:
            self.steps += 1
            if self.steps > MOST_STEPS:
                return None
            best: Embedding | None = None
            for candidate in self._candidates(head, base):
                # A side of head under the token of another side of base: columns with equal
                # fingerprints would not be the same.
                if candidate is None or candidate.left_out & candidate.given_up:
                    continue
                if best is None or _rank(candidate) > _rank(best):
                    best = candidate
                if candidate.bits & INJECTIVE:
                    break
            self._best[key] = best
        return self._best[key]

    def _candidates(self, head: Rows, base: Rows) -> Iterator[Embedding | None]:
        if isinstance(head, Union) and isinstance(base, Union):
            yield self._unions(head, base)
        if isinstance(head, OuterJoin) and isinstance(base, OuterJoin):
            yield self._outers(head, base)
        if isinstance(head, GroupedRows) and isinstance(base, GroupedRows):
            yield self._groups(head, base)
        if isinstance(head, Union):
            yield self._from_union(head, base)
        if isinstance(base, Union):
            yield self._to_union(head, base)
        if isinstance(head, JoinBlock) or isinstance(base, JoinBlock):
            yield self._blocks(head, base)
        yield from self._around_outer(head, base)
        if isinstance(head, GroupedRows) and head.keys:
            # A group goes where one of its rows goes.
            inner = self._find(head.rows, base)
            yield _with(inner, inner.bits & INJECTIVE if inner else 0)
        if isinstance(base, GroupedRows) and base.keys:
            inner = self._find(head, base.rows)
            yield _with(inner, inner.bits & ONTO if inner else 0)

    def _blocks(self, head: Rows, base: Rows) -> Embedding | None:
        sides_of_head = dict(sides(head))
        if len(sides_of_head) < len(sides(head)) or len(dict(sides(base))) < len(sides(base)):
            return None
        bits = EQUAL
        left_out, given_up = _NO_SIDES, _NO_SIDES
        counted = as_many = False
        for token, rows in sides(base):
            rows_of_head = sides_of_head.pop(token, None)
            embedding = self._find(rows_of_head, rows) if rows_of_head is not None else None
            if embedding is None:
                return None
            if not token:
                counted = bool(embedding.bits & COUNTED)
                as_many = bool(embedding.bits & AS_MANY)
            bits &= embedding.bits
            left_out |= embedding.left_out
            given_up |= embedding.given_up
        if sides_of_head:
            bits &= ~(INJECTIVE | ONTO)
            for token, rows in sides_of_head.items():
                left_out |= {token} | tokens(rows)
        met = conditions(head)
        for key, condition in conditions(base).items():
            if not self._implied(key, condition, met, counted):
                return None
        if not conditions(base).keys() >= met.keys():
            bits &= ~ONTO
        if not as_many and any(isinstance(c, CountAbove) for c in met.values()):
            bits &= ~ONTO  # what head has of a group may be too few rows
        return Embedding(bits & _OF_ROWS, left_out, given_up)

    def _implied(
        self, key: bytes, condition: Condition, met: dict[bytes, Condition], counted: bool
    ) -> bool:
        """Whether rows of head that meet these conditions go to rows of base that meet one."""
        if isinstance(condition, CountAbove):
            return counted and key in met
        if key in met:
            return True
        if isinstance(condition, SemiJoin):
            for other in met.values():
                if (
                    isinstance(other, SemiJoin)
                    and other.negated == condition.negated
                    and other.on == condition.on
                ):
                    if condition.negated:  # what base has to match with, head has, too
                        embedding = self._find(condition.rows, other.rows)
                    else:
                        embedding = self._find(other.rows, condition.rows)
                    if embedding is not None:
                        return True
        return False

    def _outers(self, head: OuterJoin, base: OuterJoin) -> Embedding | None:
        if head.on != base.on or head.token != base.token:
            return None
        if head.keeps_left > base.keeps_left or head.keeps_right > base.keeps_right:
            return None
        left, right = self._find(head.left, base.left), self._find(head.right, base.right)
        if left is None or right is None:
            return None
        # A row without a match stays one only where base's other side has nothing more.
        if head.keeps_left and not right.bits & ONTO:
            return None
        if head.keeps_right and not left.bits & ONTO:
            return None
        bits = left.bits & right.bits & _OF_ROWS
        if (head.keeps_left, head.keeps_right) != (base.keeps_left, base.keeps_right):
            bits &= ~ONTO
        return Embedding(bits, left.left_out | right.left_out, left.given_up | right.given_up)

    def _around_outer(self, head: Rows, base: Rows) -> Iterator[Embedding | None]:
        """An outer join on one of the sides only: it may hold an inner one, or the side it keeps."""
        _, first = sides(base)[0]
        if isinstance(first, OuterJoin):
            further_sides, filters = sides(base)[1:], conditions(base)
            inner = joined(first.left, first.right, b"inner" + first.fp, first.token, first.on)
            embedding = self._find(head, _replaced(inner, base.fp, further_sides, filters))
            yield _with(embedding, embedding.bits & INJECTIVE if embedding else 0)
            if first.keeps_left:
                embedding = self._find(head, _replaced(first.left, base.fp, further_sides, filters))
                yield _with(
                    embedding,
                    embedding.bits & INJECTIVE if embedding else 0,
                    given_up={first.token} | tokens(first.right),
                )
        _, first = sides(head)[0]
        if isinstance(first, OuterJoin) and not first.keeps_right:
            further_sides, filters = sides(head)[1:], conditions(head)
            embedding = self._find(_replaced(first.left, head.fp, further_sides, filters), base)
            yield _with(embedding, 0, left_out={first.token} | tokens(first.right))

    def _groups(self, head: GroupedRows, base: GroupedRows) -> Embedding | None:
        embedding = self._find(head.rows, base.rows)
        of_rows = 0 if embedding is None else embedding.bits
        bits = 0
        if base.keys <= head.keys and of_rows & INJECTIVE:
            bits |= COUNTED
            if head.keys == base.keys and of_rows & ONTO:
                bits |= AS_MANY
        if not head.keys and not base.keys:  # one row each, whatever it is made of
            return Embedding(bits | INJECTIVE | ONTO)
        if not head.keys or not base.keys:
            return None
        if head.keys <= base.keys:
            bits |= INJECTIVE
        if base.keys <= head.keys:
            bits |= of_rows & ONTO
        return _with(embedding, bits)

    def _unions(self, head: Union, base: Union) -> Embedding | None:
        if head.columns is None or base.columns is None:
            return None
        for fp, parts in head.columns.items():
            if base.columns.get(fp, parts) != parts:
                return None
        left, right = self._find(head.left, base.left), self._find(head.right, base.right)
        if left is None or right is None:
            return None
        return Embedding(
            left.bits & right.bits & _OF_ROWS,
            left.left_out | right.left_out,
            left.given_up | right.given_up,
        )

    def _from_union(self, head: Union, base: Rows) -> Embedding | None:
        """All rows of both branches, where each column is the same on both, go to one row set."""
        if head.columns is None or any(p != (fp, fp) for fp, p in head.columns.items()):
            return None
        left, right = self._find(head.left, base), self._find(head.right, base)
        if left is None or right is None:
            return None
        return Embedding(
            (left.bits | right.bits) & ONTO,
            left.left_out | right.left_out,
            left.given_up | right.given_up,
        )

    def _to_union(self, head: Rows, base: Union) -> Embedding | None:
        """All rows go to one of the branches."""
        if base.columns is None or any(p != (fp, fp) for fp, p in base.columns.items()):
            return None
        for branch, other in ((base.left, base.right), (base.right, base.left)):
            embedding = self._find(head, branch)
            if embedding is not None:
                return _with(embedding, embedding.bits & INJECTIVE, given_up=tokens(other))
        return None


def _rank(embedding: Embedding) -> tuple[int, int]:
    return embedding.bits & INJECTIVE, embedding.bits.bit_count()


def _with(
    embedding: Embedding | None,
    bits: int,
    left_out: frozenset[bytes] | set[bytes] = _NO_SIDES,
    given_up: frozenset[bytes] | set[bytes] = _NO_SIDES,
) -> Embedding | None:
    if embedding is None:
        return None
    return Embedding(bits, embedding.left_out | left_out, embedding.given_up | given_up)


def _replaced(
    first: Rows, fp: bytes, further_sides: tuple[Side, ...], filters: dict[bytes, Condition]
) -> Rows:
    """A row set with another first side; its ``fp`` only has to tell it from others."""
    if not further_sides and not filters:
        return first
    return JoinBlock(
        b"of" + first.fp + fp, (*sides(first), *further_sides), {**conditions(first), **filters}
    )


def tokens(rows: Rows) -> frozenset[bytes]:
    """The tokens of the join sides whose columns a row set may show."""
    if isinstance(rows, JoinBlock):
        return frozenset(t for t, _ in rows.sides if t).union(*(tokens(r) for _, r in rows.sides))
    if isinstance(rows, OuterJoin):
        return frozenset({rows.token}) | tokens(rows.left) | tokens(rows.right)
    if isinstance(rows, GroupedRows):
        return tokens(rows.rows)
    if isinstance(rows, Union):
        return tokens(rows.left) | tokens(rows.right)
    return frozenset()
