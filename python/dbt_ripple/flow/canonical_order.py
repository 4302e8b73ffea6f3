"""Joins and set operations whose order says nothing, in one order (`link(in_any_order=True)`).

Sides and branches are sorted by their fingerprints, all columns of a relation together, so that what
is called by one fingerprint on two sides of a comparison stays side by side. Which rows come first
is not the same in another order: that goes to the relation's incidental order.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

import msgspec

from dbt_ripple.flow.clauses.set_operations import combine_branches
from dbt_ripple.flow.fingerprint import digest
from dbt_ripple.flow.ir import (
    GROUP_BY,
    INNER_JOINS,
    CteRef,
    FromItem,
    Generator,
    LoweredExpr,
    Ref,
    Rel,
    SetOp,
    Table,
)
from dbt_ripple.flow.relation import Deps, OutputColumn, Relation, RowSet, merge, through

if TYPE_CHECKING:
    from dbt_ripple.flow.scope import Env, QueryLinker

_BAG: Final = "UNION ALL"
_SET: Final = "UNION DISTINCT"
_TYPED_AT_ONCE: Final = frozenset({"bigquery", "duckdb", "postgres"})
"""Dialects in which a column of a UNION has one type, whatever the order of its branches.

Elsewhere the types of three branches are found two by two: a number may become a decimal with one
and a text with the other, or a text at once.
"""


def unite(linker: QueryLinker, rel: SetOp, env: Env | None) -> Relation | None:
    """UNIONs of any order: UNION ALL of all branches, sorted; UNION is DISTINCT over that.

    None where an operation is another one, or matches columns by name or by more than their places.
    """
    if any(rel.by_name) or not {_BAG, _SET}.issuperset(rel.ops):
        return None
    at_once = linker.dialect in _TYPED_AT_ONCE
    if len(rel.branches) > 2 and not at_once:
        return None
    branches = [linker.rel(branch, env) for branch in _flat(rel.branches[0], at_once)]
    first = branches[0]
    distinct = False
    for branch, op in zip(rel.branches[1:], rel.ops, strict=True):
        if op == _BAG and distinct:
            branches, distinct = [_united(linker, branches, True)], False
        branches += (linker.rel(part, env) for part in _flat(branch, at_once))
        distinct = distinct or op == _SET
    if any(b.unlisted or b.unresolved or len(b.columns) != len(first.columns) for b in branches):
        return None
    return _united(linker, branches, distinct)


def _flat(rel: Rel, at_once: bool) -> list[Rel]:
    """The branches of a branch that is a UNION ALL itself."""
    if (
        not at_once
        or type(rel) is not SetOp
        or any(rel.by_name)
        or any(op != _BAG for op in rel.ops)
    ):
        return [rel]
    return [part for branch in rel.branches for part in _flat(branch, at_once)]


def _united(linker: QueryLinker, written: list[Relation], distinct: bool) -> Relation:
    branches = sorted(written, key=lambda r: (r.rows.fp, *r.fps))
    relation = branches[0]
    for branch in branches[1:]:
        relation = combine_branches(linker, relation, branch, _BAG, False)
    first = written[0]
    fps = []
    for column in zip(*(b.fps for b in branches), strict=True):
        fps.append(column[0] if len(set(column)) == 1 else digest(b"united", *column))
    rows_fp = digest(b"united", *(b.rows.fp for b in branches))
    rows: Deps = dict(relation.rows.deps)
    if distinct:
        rows_fp = digest(b"G", rows_fp, *sorted(set(fps)))
        for united_column in relation.columns:
            merge(rows, through(GROUP_BY, united_column.deps))
    orders = [b.rows.order for b in written]
    as_written = (digest(b.rows.fp, b.rows.incidental, *b.fps) for b in written)
    united = Relation(
        [
            OutputColumn(named.name, named.key, fp, of_all.deps)
            for named, fp, of_all in zip(first.columns, fps, relation.columns, strict=True)
        ],
        RowSet(
            rows_fp,
            rows,
            relation.rows.side_key,
            relation.rows.joins,
            digest(b"united", *orders) if any(orders) else b"",
            digest(b"united", *as_written),
        ),
    )
    if relation.also:
        united.also = {
            key: [i for b in written[1:] for i, k in enumerate(b.keys) if k == key]
            for b in written[1:]
            for key in b.keys
            if key not in first.columns_by_key()
        }
    return united


def arrange(
    linker: QueryLinker, items: Sequence[FromItem], env: Env
) -> tuple[Sequence[FromItem], dict[int, Relation], bytes]:
    """The steps of a FROM tree in one order, the sources that were linked for it, and a mark.

    Inner joins come first, sorted, with all of their conditions at the last; then left joins, each
    as soon as what it is joined on is there. A right join is a left join from the other side. The
    mark tells one order from another one; it is empty for the order as it stands.
    """
    linked: dict[int, Relation] = {}
    if not _may_move(items, env):
        return items, linked, b""
    for item in items:
        relation = linker.rel(env.sources[item.source].rel, env)
        columns = env.sources[item.source].columns
        linked[item.source] = relation.renamed(columns, linker.dialect) if columns else relation
    place = {item.source: i for i, item in enumerate(items)}

    def key(item: FromItem) -> tuple[bytes, bytes, int]:
        relation = linked[item.source]
        return relation.rows.side_key, relation.rows.fp, place[item.source]

    steps = list(items)
    if len(steps) == 2 and steps[1].kind in ("RIGHT", "FULL"):
        if steps[1].kind == "RIGHT" or key(steps[1]) < key(steps[0]):
            kind = "LEFT" if steps[1].kind == "RIGHT" else "FULL"
            steps = [_as(steps[1], "", ()), _as(steps[0], kind, steps[1].conds)]
    elif all(item.kind in INNER_JOINS or item.kind == "LEFT" for item in steps[1:]):
        inner = sorted((s for s in steps if s.kind != "LEFT"), key=key)
        left = [s for s in steps if s.kind == "LEFT"]
        asked = {s.source: _asks(s, env) for s in left}
        if any(sources is None for sources in asked.values()):
            return items, linked, b""
        conds = [x for s in inner for x in s.conds]
        reach = [_reach(x, env) for x in conds]
        outer = {s.source for s in left}
        if any(r is None or r & outer for r in reach):
            return items, linked, b""
        steps = [_as(s, "INNER" if i else "", ()) for i, s in enumerate(inner)]
        steps[-1] = _as(steps[-1], steps[-1].kind, conds)
        if len(steps) == 1 and conds:
            return items, linked, b""
        there = {s.source for s in steps}
        while left:
            ready = [s for s in left if (asked[s.source] or set()) <= there | {s.source}]
            if not ready:
                return items, linked, b""
            following = min(ready, key=key)
            left.remove(following)
            there.add(following.source)
            steps.append(following)
    before, now = ([s.source for s in given] for given in (items, steps))
    if before == now:
        return steps, linked, b""
    return steps, linked, digest(b"arranged", *(linked[i].rows.side_key for i in before))


def _as(item: FromItem, kind: str, conds: Sequence[LoweredExpr]) -> FromItem:
    return FromItem(item.source, kind, (), conds)


def _may_move(items: Sequence[FromItem], env: Env) -> bool:
    """Whether all of a FROM tree are relations that know nothing of each other."""
    return all(
        item.source >= 0
        and not item.nested
        and not item.using
        and not item.natural
        and _is_closed(env.sources[item.source].rel)
        for item in items
    )


def _is_closed(rel: Rel) -> bool:
    """Whether a relation in FROM asks for nothing of the sources beside it."""
    if isinstance(rel, (Table, CteRef)):
        return True
    return not any(_reaches_out(part) for part in _parts(rel))


def _reaches_out(part: Any) -> bool:
    return type(part) is Generator or (type(part) is Ref and (part.up > 0 or part.source == -1))


def _parts(part: Any) -> Any:
    """Everything a lowered query is made of."""
    ahead = [part]
    while ahead:
        current = ahead.pop()
        if isinstance(current, msgspec.Struct):
            yield current
            ahead += [getattr(current, name) for name in current.__struct_fields__]
        elif isinstance(current, (list, tuple)):
            ahead += current
        elif isinstance(current, dict):
            ahead += current.values()


def _reach(x: LoweredExpr, env: Env) -> set[int] | None:
    """The sources that a condition asks; None where that cannot be told."""
    if x.subs or x.rows:
        return None
    refs = [env.refs[i] for i in x.deps]
    if any(ref.source < 0 for ref in refs):
        return None
    return {ref.source for ref in refs if not ref.up}


def _asks(item: FromItem, env: Env) -> set[int] | None:
    sources: set[int] = set()
    for x in item.conds:
        reach = _reach(x, env)
        if reach is None:
            return None
        sources |= reach
    return sources
