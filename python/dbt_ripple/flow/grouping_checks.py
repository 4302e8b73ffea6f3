"""What a grouped SELECT may not say: an aggregate as a key, and a column that is no key.

It is told where the text alone shows it. What may be meant in another way (an alias, a merged
column, a column that nothing lists, a function that nobody knows) is left to the engine.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import Final

from dbt_ripple.flow.engine_checks import NameProblem, refuses
from dbt_ripple.flow.ir import Expr, LoweredExpr, Select
from dbt_ripple.flow.scope import Env, has_aggregate, value_of

_OF_ONE_ROW: Final = frozenset(
    (
        b"Abs Add And Between Case Cast Coalesce Concat Div EQ GT GTE If Is LT LTE Lower Mod Mul NEQ Neg "
        b"Not NullSafeEQ NullSafeNEQ Nullif Or Round Sub Trim TryCast Upper"
    ).split()
)
"""Expressions that see what their operands are in one row, and nothing else."""


def refused(
    rel: Select, env: Env, keys: Collection[bytes], dialect: str
) -> Iterator[tuple[str, NameProblem]]:
    """What an engine refuses in a grouped SELECT.

    Args:
        rel: the SELECT.
        env: its scope, its outputs linked.
        keys: the fingerprints of what it groups by.
        dialect: of the query.

    Yields:
        What is not there, and in which way that is, as `engine_checks.refuses` knows it.
    """
    if refuses(NameProblem.NOT_A_KEY, dialect) is False or rel.group_tag or rel.group_all:
        return
    # A position behind a * is another item, and one that is not there is refused by itself.
    if rel.group_outs and (rel.wide or not all(0 < n <= len(rel.outs) for n in rel.group_outs)):
        return
    outs = [value_of(rel.outs[n - 1]) for n in rel.group_outs]
    for x in (*rel.group, *outs):
        if isinstance(x, LoweredExpr) and has_aggregate(x.e):
            yield "a key of GROUP BY without an aggregate", NameProblem.AGGREGATE_AS_KEY
    # Which of two items of one alias a key means is not known; and what reads like an alias may be a
    # column that nobody lists.
    if len(set(rel.keys)) < len(rel.keys):
        return
    if any(r is None or r.unlisted or r.uncertain for r in env.relations):
        return
    unsure = rel.uncertain or rel.generators or rel.may_lift or rel.outward
    if unsure or not (rel.group or rel.group_outs or rel.aggregated):
        return
    for out in rel.outs:
        value = value_of(out)
        if value is None:
            continue
        for i in _outside(value.e if isinstance(value, LoweredExpr) else value, env, keys):
            yield f"{env.refs[i].name} in GROUP BY", NameProblem.NOT_A_KEY


def _outside(e: Expr, env: Env, keys: Collection[bytes]) -> Iterator[int]:
    """The references of an expression that are columns, and neither in a key nor in an aggregate."""
    if type(e) is int:
        if _is_listed_column(e, env) and env.ref(e)[0] not in keys:
            yield e
    elif type(e) is list and (e[0] in ("C", "F") or e[0] in _OF_ONE_ROW) and env.fp(e) not in keys:
        for piece in e[1:]:
            yield from _outside(piece, env, keys)


def _is_listed_column(i: int, env: Env) -> bool:
    """Whether a reference certainly means one column of a source of this very SELECT."""
    ref, select = env.refs[i], env.select
    if ref.up or ref.source < -1 or env.merged or select is None:
        return False
    if ref.source >= 0:
        return env.visible[ref.source] and env.listed_column(ref.source, ref.key) is not None
    # Where an item before it is called so, too, it may be that.
    aliases = (out for key, out in zip(select.keys, select.outs, strict=False) if key == ref.key)
    return env.listed(ref.key) == 1 and all(out == i for out in aliases)
