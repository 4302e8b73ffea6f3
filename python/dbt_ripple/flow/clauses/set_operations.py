"""UNION, INTERSECT and EXCEPT (rule 3)."""

from __future__ import annotations

from typing import Final

from dbt_ripple.flow.alias_resolution import ORDERED_BY_ANY_BRANCH
from dbt_ripple.flow.engine_checks import NameProblem
from dbt_ripple.flow.fingerprint import digest
from dbt_ripple.flow.ir import FILTER, GROUP_BY, SetOp
from dbt_ripple.flow.relation import (
    Column,
    Deps,
    OutputColumn,
    Relation,
    RowSet,
    UnlistedColumns,
    beside,
    compose,
    merge,
    through,
    union,
)
from dbt_ripple.flow.scope import ColumnsOfSetOperation, ColumnsOfUnreadQuery, Env, QueryLinker
from dbt_ripple.reasons import Code

GENERATED: Final = b"generated"
"""Stands among a relation's joins for each SELECT below that makes rows or values of its own."""

Pair = tuple[OutputColumn, Column | None]
"""A column of the left side, and what meets it on the right; None where nothing does."""


def set_operation(linker: QueryLinker, rel: SetOp, env: Env | None) -> Relation:
    """All branches, from the left."""
    left = linker.rel(rel.branches[0], env)
    for branch, op, by_name in zip(rel.branches[1:], rel.ops, rel.by_name, strict=True):
        left = combine_branches(linker, left, linker.rel(branch, env), op, by_name)
    return left


def combine_branches(
    linker: QueryLinker, left: Relation, right: Relation, op: str, by_name: bool
) -> Relation:
    """Two branches: positional; the operator and its flags count; distinct puts every V into N."""
    is_union = op.startswith("UNION")
    tag = op.encode()
    pairs, unlisted = _pairs(linker, left, right, op, by_name)
    columns = [
        _united(column, other, i < len(left.columns)) if is_union else _kept(column, other)
        for i, (column, other) in enumerate(pairs)
    ]
    rows: Deps = dict(left.rows.deps)
    if is_union:
        merge(rows, right.rows.deps)
    else:
        merge(rows, {k: compose(FILTER, m) for k, m in right.rows.deps.items()})
    if len(op.split(" ", 2)) > 2:  # LEFT, INNER, ON (...): which columns, and where they are NULL
        columns = [OutputColumn(c.name, c.key, digest(tag, c.fp), c.deps) for c in columns]
        unlisted = [ColumnsOfUnreadQuery(r, tag) for r in unlisted]
    parts = [tag, b"by name" if by_name else b"", left.rows.fp, right.rows.fp]
    if "DISTINCT" in op or not is_union:
        if by_name:  # which column meets which is in no order
            met = (digest(a.fp, b[0] if b is not None else b"") for a, b in pairs)
            parts += sorted(met)
        parts += [*left.fps, b"|", *right.fps]
        parts += [r.fp() for r in (*left.unlisted, *right.unlisted)]
        for column in (*left.columns, *right.columns):
            merge(rows, through(GROUP_BY if is_union else FILTER, column.deps))
    side_key = digest(b"set", left.rows.side_key, right.rows.side_key)
    generated = (GENERATED,) * max(r.rows.joins.count(GENERATED) for r in (left, right))
    relation = Relation(
        columns,
        RowSet(
            digest(*parts),
            rows,
            side_key,
            (side_key, *generated),
            beside(left.rows.order, tag, right.rows.order),
            beside(left.rows.incidental, tag, right.rows.incidental),
        ),
        unlisted,
        [*left.unresolved, *right.unresolved],
    )
    by_position = not by_name and not unlisted
    if by_position:
        _keep_names(linker, relation, left, right)
    if linker.known_constraints is not None:
        relation.facts = linker.known_constraints.combined(
            left, right, op, pairs, relation, by_position
        )
    return relation


def _pairs(
    linker: QueryLinker, left: Relation, right: Relation, op: str, by_name: bool
) -> tuple[list[Pair], list[UnlistedColumns]]:
    """The columns of the result, as the left side has them, with what meets them; and what is not listed."""
    pairs: list[Pair] = []
    if by_name:
        words = op.split()[2:]
        pairs += ((c, right.get(c.key, c.name)) for c in left.columns)
        if "INNER" in words:
            pairs = [pair for pair in pairs if pair[1] is not None]
        elif "LEFT" not in words:
            of_left = left.columns_by_key()
            pairs += ((c, left.get(c.key, c.name)) for c in right.columns if c.key not in of_left)
        if left.unlisted or right.unlisted:
            return pairs, [ColumnsOfSetOperation([left, right])]
        return pairs, []
    if left.unlisted or right.unlisted:
        linker.unknown = linker.unknown or Code.SET_OPERATION_UNKNOWN()
        blend = ColumnsOfSetOperation([left, right])
        for column in left.columns:
            value = blend.get(column.key, column.name)
            assert value is not None
            pairs.append((OutputColumn(column.name, column.key, *value), value))
        return pairs, [blend]
    if len(left.columns) != len(right.columns):
        sizes = f"{op.split()[0]} of {len(left.columns)} columns with {len(right.columns)}"
        linker.miss(sizes, NameProblem.NUMBER_OF_COLUMNS)
    for i, column in enumerate(left.columns):
        pairs.append((column, right.columns[i].value if i < len(right.columns) else None))
    return pairs, []


def _united(column: OutputColumn, other: Column | None, of_left: bool) -> OutputColumn:
    """A column of a UNION; what nothing meets, BY NAME, is NULL in the other branch."""
    if other is None:
        tag = b"UNION" if of_left else b"UNION on the right"
        return OutputColumn(column.name, column.key, digest(tag, column.fp), column.deps)
    one, two = (column.fp, other[0]) if of_left else (other[0], column.fp)
    fp = one if one == two else digest(b"UNION", one, two)
    return OutputColumn(column.name, column.key, fp, union(column.deps, other[1]))


def _kept(column: OutputColumn, other: Column | None) -> OutputColumn:
    """A column of INTERSECT or EXCEPT: the left side's values, as the type that both sides have."""
    if other is None or column.fp == other[0]:
        return column
    return OutputColumn(column.name, column.key, digest(b"kept", column.fp, other[0]), column.deps)


def _keep_names(linker: QueryLinker, relation: Relation, left: Relation, right: Relation) -> None:
    """What of the names of two branches that are matched by position is known of the result."""
    if left.as_named is not None:
        relation.as_named = [
            OutputColumn(as_named.name, as_named.key, column.fp, column.deps)
            for as_named, column in zip(left.as_named, relation.columns, strict=True)
        ]
    if linker.dialect in ORDERED_BY_ANY_BRANCH:
        also = {key: list(places) for key, places in left.also.items()}
        of_left = left.columns_by_key()
        for i, column in enumerate(right.columns[: len(left.columns)]):
            if column.key not in of_left:
                also.setdefault(column.key, []).append(i)
        relation.also = also
    if left.fields:
        relation.fields = {
            one.key: fields
            for one, other in zip(left.columns, right.columns, strict=False)
            if (fields := left.fields.get(one.key)) == right.fields.get(other.key)
            and fields is not None
        }
