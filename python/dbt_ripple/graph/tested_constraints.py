"""What a test proves of the rows of a relation, where it returns none (rules 14 and 15).

A test's meaning is read off its own query, so that it does not matter what it is called.
"""

from __future__ import annotations

from collections.abc import Iterable

from dbt_ripple.flow.containment import (
    CountAbove,
    GroupedRows,
    IsNull,
    Rows,
    SemiJoin,
    conditions,
    sides,
)
from dbt_ripple.flow.row_constraints import Facts, Proof, Related, Unique


def note_constraints(rows: Rows, of: Facts, proof: Proof) -> None:
    """Note what it says of a relation that a query returns no row: uniqueness and its like.

    Args:
        rows: of the query.
        of: the facts of the relation, which are added to.
        proof: why the query returns no row.
    """
    met = conditions(rows)
    _, first = sides(rows)[0]
    if isinstance(first, GroupedRows) and len(sides(rows)) == 1 and len(met) == 1:
        (condition,) = met.values()
        if isinstance(condition, CountAbove) and condition.number == 1 and condition.rows:
            beyond = _beyond(first.rows, of.rows)
            if first.keys and beyond is not None and _not_null_only(beyond, first.keys):
                of.unique.append(Unique(first.keys, proof, not beyond))
    added = _beyond(rows, of.rows)
    if not added:
        return
    matches = [c for c in added if isinstance(c, SemiJoin)]
    nulls = [c for c in added if isinstance(c, IsNull)]
    if len(added) == 1 and nulls and not nulls[0].negated:
        of.not_null[nulls[0].column] = proof
    elif len(matches) == 1 and matches[0].negated and matches[0].child:
        match = matches[0]
        others = [c for c in added if c is not match]
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
