"""GROUP BY (rule 2)."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from dbt_ripple.flow.clauses.select_list import NO_POSITIONS, positions, select_list
from dbt_ripple.flow.engine_checks import NameProblem
from dbt_ripple.flow.fingerprint import digest
from dbt_ripple.flow.ir import GROUP_BY, Expr, Select, Value
from dbt_ripple.flow.relation import Column, Deps
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
