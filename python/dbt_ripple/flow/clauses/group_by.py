"""GROUP BY (rule 2), and what a grouped SELECT may not say: an aggregate as a key, and a column that is no key.

What it may not say is told where the text alone shows it. What may be meant in another way (an alias, a merged
column, a column that nothing lists, a function that nobody knows) is left to the engine.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Collection, Iterable, Iterator
from typing import Final

from dbt_ripple.flow.alias_resolution import SOURCE_FIRST
from dbt_ripple.flow.clauses.select_list import NO_POSITIONS, positions, select_list
from dbt_ripple.flow.engine_checks import NameProblem, refuses
from dbt_ripple.flow.fingerprint import digest
from dbt_ripple.flow.ir import GROUP_BY, Expr, LoweredExpr, Ref, Select, Value
from dbt_ripple.flow.relation import NOTHING, Column, Deps
from dbt_ripple.flow.scope import Env, QueryLinker, has_aggregate, value_of


def group_by(
    linker: QueryLinker, rel: Select, env: Env, rows_fp: bytes, add: Callable[[Deps, int], None]
) -> tuple[bytes, list[bytes]]:
    """N of a grouping: what goes in, and the keys; their structure where there is one.

    Args:
        linker: of the query.
        rel: a SELECT that is grouped.
        env: its scope; its `keys`, and the columns inside of keys, are noted there.
        rows_fp: N of the rows that go in.
        add: notes what the rows depend on, too.

    Returns:
        It; and the keys as they are written, by which an engine may leave the rows in some order.
    """
    keys: list[bytes] = []
    chosen: list[Value] = []

    def add_keys(columns: Iterable[Column]) -> None:
        for fp, deps in columns:
            keys.append(fp)
            add(deps, GROUP_BY)

    add_keys(env.value(x) for x in rel.group)
    by_position = _positions(linker, rel, env, keys, chosen, add_keys)
    if rel.group_all:
        _all(linker, rel, env, chosen, add_keys)
    add_keys(env.value(key) for key in chosen)
    env.keys = frozenset(keys)
    env.inside_keys = frozenset(env.ref(i)[0] for x in rel.group for i in x.deps)
    loose = rel.group_all and _may_not_group(rel)
    if rel.group_tag:
        refs = list(dict.fromkeys(i for x in rel.group for i in x.deps))
        each = [*(env.ref(i)[0] for i in refs), *by_position]
        spelled: list[bytes] = []
        # Two keys that are one column (as column and as alias, or as two positions) are NULL each
        # in its own sets, and each name behind GROUP BY means one of them.
        if len(set(each)) < len(each):
            spelled = [
                rel.group_spelled,
                *(b"alias" if env.is_alias(i) else b"column" for i in refs),
            ]
        rows_fp = digest(b"sets", rows_fp, rel.group_tag, *spelled, *keys)
    else:
        tag = b"G"
        if loose:
            tag = b"G all of aggregates" if rel.aggregated else b"G all"
        rows_fp = digest(tag, rows_fp, *sorted(set(keys)))
    if linker.known_constraints is not None:
        linker.known_constraints.group(env, keys, bool(rel.group_tag) or loose, rows_fp)
    return rows_fp, keys


def _positions(
    linker: QueryLinker,
    rel: Select,
    env: Env,
    keys: list[bytes],
    chosen: list[Value],
    add_keys: Callable[[Iterable[Column]], None],
) -> list[bytes]:
    """Keys that are positions of the select list.

    Returns:
        The fingerprint of each position; one that is not known is said to be any other's.
    """
    places = positions(linker, rel, env) if rel.group_outs else NO_POSITIONS
    by_position: dict[int, bytes] = {}
    unknown: list[bytes] = []
    for ordinal in rel.group_outs:
        if ordinal <= places.certain and ordinal > 0:
            at = places.items[ordinal - 1]
            if isinstance(at, tuple):
                add_keys([at])
                by_position[ordinal] = at[0]
            else:
                chosen.append(at)
                by_position[ordinal] = env.value(at)[0]
        elif places.unlisted:
            unknown = [b"", b""]
            keys.append(digest(b"ordinal", str(ordinal).encode()))
            add_keys(at if isinstance(at, tuple) else env.value(at) for at in places.items)
            add_keys((other.fp(), other.whole()) for other in places.unlisted)
        elif not rel.group_tag:
            linker.miss(f"GROUP BY {ordinal}", NameProblem.POSITION)
    return [*by_position.values(), *unknown]


def _all(
    linker: QueryLinker,
    rel: Select,
    env: Env,
    chosen: list[Value],
    add_keys: Callable[[Iterable[Column]], None],
) -> None:
    """GROUP BY ALL: what of the select list stands outside of aggregates."""
    for out in rel.outs:
        value = value_of(out)
        if value is None:
            add_keys(column.value for column in select_list(linker, rel, env)[0])
            continue
        used = [value] if isinstance(value, int) else list(value.deps)
        parts = None if isinstance(value, int) else _plain_parts(value.e)
        aggregates = {i for i in used if env.aggregated_alias(i)}
        if parts is None and aggregates:
            parts = used
        if parts is None:
            chosen.append(value)
        else:
            add_keys(env.ref(i) for i in parts if i not in aggregates)


def _may_not_group(rel: Select) -> bool:
    """Whether GROUP BY ALL may make no groups at all: DuckDB groups by nothing that is constant."""
    values = [value_of(out) for out in rel.outs]
    return bool(rel.uncertain) or not any(
        value is None or isinstance(value, int) or (value.deps and not has_aggregate(value.e))
        for value in values
    )


def _plain_parts(e: Expr) -> list[int] | None:
    """The references outside of aggregates, or None where the expression has no aggregate."""
    if not has_aggregate(e):
        return None
    parts: list[int] = []
    stack = [e]
    while stack:
        piece = stack.pop()
        if type(piece) is int:
            parts.append(piece)
        elif type(piece) is list and piece[0] not in ("A", "Q", b"Filter"):
            stack.extend(piece[1:])
    return parts


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
