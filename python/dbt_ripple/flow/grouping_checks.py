"""What a grouped SELECT may not say: an aggregate as a key, and a column that is no key.

It is told where the text alone shows it. What may be meant in another way (an alias, a merged
column, a column that nothing lists, a function that nobody knows) is left to the engine.
"""

from __future__ import annotations

import copy
from collections.abc import Collection, Iterator
from typing import Final

from dbt_ripple.flow.alias_resolution import SOURCE_FIRST
from dbt_ripple.flow.engine_checks import NameProblem, refuses
from dbt_ripple.flow.fingerprint import digest
from dbt_ripple.flow.ir import Expr, LoweredExpr, Ref, Select, Value
from dbt_ripple.flow.relation import NOTHING
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
    twins = any(r is not None and len(set(r.fps)) < len(r.fps) for r in env.relations)
    is_told = refuses(NameProblem.NOT_A_KEY, dialect) is not False
    if not (is_told or twins) or rel.group_tag or rel.group_all:
        return
    # A position behind a * is another item, and one that is not there is refused by itself.
    if rel.group_outs and (rel.wide or not all(0 < n <= len(rel.outs) for n in rel.group_outs)):
        return
    outs = [value_of(rel.outs[n - 1]) for n in rel.group_outs]
    for x in (*rel.group, *outs):
        if is_told and isinstance(x, LoweredExpr) and has_aggregate(x.e):
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
    values = [_expression(value) for out in rel.outs if (value := value_of(out)) is not None]
    outside = [i for e in values for i in _outside(e, env, keys)]
    if is_told:
        for i in outside:
            yield f"{env.refs[i].name} in GROUP BY", NameProblem.NOT_A_KEY
    if twins and not env.merged:
        # To the engine it is its name that makes a column a key, and not its values.
        apart = _told_by_name(env)
        by_name = {apart.fp(_expression(x)) for x in (*rel.group, *outs) if x is not None}
        for i in (i for e in values for i in _outside(e, apart, by_name) if i not in outside):
            yield f"{env.refs[i].name} in GROUP BY", NameProblem.ANOTHER_KEY


def _expression(value: Value) -> Expr:
    return value.e if isinstance(value, LoweredExpr) else value


def _told_by_name(env: Env) -> Env:
    """The same scope, in which each column of its sources has a fingerprint of its own."""
    apart = copy.copy(env)
    names = [
        {name for source in range(len(env.relations)) if (name := _name_of(env, source, ref))}
        for ref in env.refs
    ]
    apart.cache = [
        (digest(*sorted(found)), NOTHING) if found else env.ref(i) for i, found in enumerate(names)
    ]
    columns = list(apart.cache)
    for i, ref in enumerate(env.refs):  # an alias stands for what its item says
        if ref.source == -1 and not ref.up and (ref.rule > SOURCE_FIRST or not names[i]):
            meant = {apart.fp(e) for e in _called(env, ref.key) if e != i}
            meant |= {digest(*sorted(names[i]))} if names[i] else set()
            if meant:
                columns[i] = (
                    (next(iter(meant)) if len(meant) == 1 else digest(*sorted(meant))),
                    NOTHING,
                )
    apart.cache = columns
    return apart


def _name_of(env: Env, source: int, ref: Ref) -> bytes | None:
    """What stands for a column of one source, if a reference may mean that."""
    if ref.up or ref.source not in (-1, source) or not env.visible[source]:
        return None
    if env.listed_column(source, ref.key, meant=False) is None:
        return None
    return digest(str(source).encode(), ref.key.encode())


def _called(env: Env, key: str) -> list[Expr]:
    """The items of the select list of this name."""
    select = env.select
    items = zip(select.keys, select.outs, strict=False) if select is not None else ()
    values = (value_of(out) for name, out in items if name == key)
    return [_expression(value) for value in values if value is not None]


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
