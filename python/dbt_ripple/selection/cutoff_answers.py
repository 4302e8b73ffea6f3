"""What early cutoff asks of a warehouse about two relations, and what its answers mean."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from dbt_ripple.selection.cutoff_reads import ALL, Columns

Types = Mapping[str, str]
"""Columns of a relation as its engine describes it, in order: types by name."""


class Question(NamedTuple):
    """Whether a rebuilt relation holds, over some columns, the rows of base's.

    Attributes:
        in_order: and in the same order, as tables of DuckDB keep it.
    """

    relation: str
    columns: Columns
    in_order: bool = False


class Unequal(NamedTuple):
    """Why a relation does not count as equal; ``seen`` where it was compared and is not."""

    reason: str
    seen: bool = True


class Answer(NamedTuple):
    """What the engine says of a rebuilt relation.

    Attributes:
        base: the columns of base's, None where there is none to compare with.
        head: those of the rebuilt one.
        unequal: for each question why it is not equal; None where it is.
    """

    base: Types | None
    head: Types
    unequal: Mapping[Question, Unequal | None]


def unequal_rows(
    base: tuple[Any, ...], head: tuple[Any, ...], *, in_order: bool = False
) -> Unequal | None:
    """What two hashes of `selection.relation_hashes` say, the number of rows first."""
    if base == head:
        return None
    if base[0] != head[0]:
        return Unequal(f"it had {base[0]} rows and has {head[0]}")
    if in_order:
        return Unequal(
            "its rows differ, or come in another order, on which its reader depends", seen=False
        )
    return Unequal("its rows differ")


def equal_columns(base: Types, head: Types, columns: Columns) -> str | None:
    """Why columns differ before any row is looked at: by name, type or place; None where they do not.

    The place counts even for a few columns: `*`, a list of column aliases and a whole row read by
    it, and the relation that a `*` makes hands it on to what reads that by it.
    """
    if columns is ALL:
        if list(base.items()) != list(head.items()):
            return "its columns differ"
        return None
    then, now = (
        {name.lower(): (type_, place) for place, (name, type_) in enumerate(side.items(), 1)}
        for side in (base, head)
    )
    for name in sorted(columns):
        if name not in then or name not in now:
            return f"there is no {name} on {'base' if name not in then else 'head'}"
        (old_type, old_place), (new_type, new_place) = then[name], now[name]
        if old_type != new_type:
            return f"{name} was {old_type} and is {new_type}"
        if old_place != new_place:
            return f"{name} was column {old_place} and is column {new_place}"
    return None
