"""A lowered query and its parents' columns -> output columns, fingerprints and dependencies.

Linking is where names meet schemas. It never raises on what a query says: a name that cannot be
found, or that two sources have, is listed in `Linked.missing`, and the answer stays at least as
wide as the true one. The rules are those of the fingerprint in the design (section 1); each is
named where it is applied.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from typing import TYPE_CHECKING, Final, NamedTuple, cast

from dbt_ripple.flow.alias_resolution import (
    COMMA_ENDS_JOINS,
    COMMA_IS_A_JOIN,
    LATERAL_UNSAID,
    LOOKS_FARTHER,
    MERGED_IN_PLACE,
    ORDERED_BY_ANY_BRANCH,
    ROW_FIRST,
    ROW_LAST,
    SUBQUERY,
    resolution,
)
from dbt_ripple.flow.canonical_order import arrange, unite
from dbt_ripple.flow.fingerprint import compared, digest, where
from dbt_ripple.flow.grouping_checks import refused
from dbt_ripple.flow.identifiers import fold, folds, tells_apart, told_apart
from dbt_ripple.flow.ir import (
    AGGREGATION,
    ALL_OUTPUTS,
    CONDITIONAL,
    DIRECT,
    FILTER,
    GROUP_BY,
    INNER_JOINS,
    JOIN,
    SORT,
    TRANSFORMATION,
    CteRef,
    Expr,
    FromItem,
    GeneratedColumns,
    Generator,
    Lowered,
    LoweredExpr,
    Pivot,
    Ref,
    Rel,
    Select,
    SetOp,
    Source,
    Star,
    StructShape,
    Table,
    Unpivot,
    Value,
    Values,
    With,
    hidden_in,
)
from dbt_ripple.flow.relation import (
    ROWS,
    Column,
    Deps,
    Relation,
    UnlistedColumns,
    beside,
    combine,
    compose,
    in_order,
    merge,
    through,
    union,
)
from dbt_ripple.flow.scope import (
    ColumnsOfSetOperation,
    ColumnsOfUnreadQuery,
    ColumnsThroughStar,
    Env,
    StructFields,
    field_of,
    has_aggregate,
    has_window,
    relation_of,
    value_of,
)
from dbt_ripple.reasons import Code, Reason

if TYPE_CHECKING:
    from dbt_ripple.flow.data_types import Fields
    from dbt_ripple.flow.row_constraints import KnownConstraints


class Linked:
    """A query, linked.

    Attributes:
        relation: its outputs and its row set.
        missing: names it reads that do not exist or are ambiguous, in order (rule 5).
        unknown: why some of its columns cannot be known by position, or None.
        called: what its FROM clauses call (see `flow.ir.Lowered`).
        how: in which ways each missing name was not found, as `engine_checks.refuses` knows them;
            empty where the query was not linked just now.
    """

    __slots__ = ("called", "how", "missing", "relation", "unknown")

    def __init__(
        self,
        relation: Relation,
        missing: list[str],
        unknown: Reason | None,
        called: Sequence[str] = (),
        how: dict[str, set[str]] | None = None,
    ) -> None:
        self.relation = relation
        self.missing = missing
        self.unknown = unknown
        self.called = called
        self.how = how or {}


def link(
    lowered: Lowered,
    table: Callable[[str, str], Relation],
    dialect: str,
    known_constraints: KnownConstraints | None = None,
    *,
    in_any_order: bool = False,
) -> Linked:
    """Resolve a lowered query against its parents.

    Args:
        lowered: a query that was lowered (its ``rel`` is not None).
        table: the relation behind a name, given its key and the name as written.
        dialect: of the query; decides how column aliases fold.
        known_constraints: what is known of rows (`flow.row_constraints`), where that is to be used (rules 14 and 15):
            fingerprints then differ from those without it.
        in_any_order: whether what is joined or united in another order is to have the same
            fingerprints (`flow.canonical`); they then differ from those without it.

    Returns:
        The outputs with fingerprints and dependencies. Never raises on what the query says.
    """
    linker = _Linker(table, dialect, lowered.ctes, known_constraints)
    linker.in_any_order = in_any_order
    assert lowered.rel is not None
    relation = linker.rel(lowered.rel, None)
    return Linked(relation, list(linker.missing), linker.unknown, lowered.called, linker.missing)


class _Positions(NamedTuple):
    """What the positions of a select list mean.

    Attributes:
        items: the expressions, and the columns of each ``*``, in order.
        certain: how many of them, from the first, certainly stand where they stand here.
        unlisted: the columns that are not known; behind them a position may be any.
    """

    items: Sequence[Value | Column]
    certain: int
    unlisted: Sequence[UnlistedColumns]


_NO_POSITIONS: Final = _Positions((), 0, ())


class _Linker:
    def __init__(
        self,
        table: Callable[[str, str], Relation],
        dialect: str,
        ctes: int,
        known_constraints: KnownConstraints | None = None,
    ) -> None:
        self.table = table
        self.known_constraints = known_constraints
        self.dialect = dialect
        self.folds = folds(dialect)
        self.in_subquery = resolution(dialect)[SUBQUERY]
        self.looks_farther = dialect in LOOKS_FARTHER
        self.row_first = dialect in ROW_FIRST
        self.row_last = dialect in ROW_LAST
        self.ctes: list[Relation | None] = [None] * ctes
        self.missing: dict[str, set[str]] = {}
        self.unknown: Reason | None = None
        self.in_any_order = False
        self.correlated = 0

    def miss(self, name: str, how: str = "absent") -> None:
        self.missing.setdefault(name, set()).add(how)

    def rel(self, rel: Rel, env: Env | None) -> Relation:
        if type(rel) is Select:
            return self.select(rel, env)
        if type(rel) is Table:
            relation = self.table(rel.key, rel.name)
            return self.said_more(relation, rel.extra) if rel.extra else relation
        if type(rel) is CteRef:
            cte = self.ctes[rel.index]
            assert cte is not None
            return cte
        if type(rel) is With:
            return self.with_(rel, env)
        if type(rel) is SetOp:
            return self.set_operation(rel, env)
        if type(rel) is Values:
            return self.values(rel, env)
        if type(rel) is Pivot:
            return self.pivot(rel, env)
        if type(rel) is Unpivot:
            return self.unpivot(rel, env)
        assert type(rel) is Generator
        return self.generator(rel, env)

    def said_more(self, relation: Relation, extra: bytes) -> Relation:
        """A table with a sample or a version: other rows of the same columns."""
        n = digest(b"table", relation.rows_fp, extra)
        more = Relation(
            relation.names,
            relation.keys,
            relation.fps,
            relation.deps,
            relation.unlisted,
            in_order(n, relation.order, relation.incidental),
            relation.rows,
            relation.side_key,
            relation.joins,
            relation.order,
            relation.unresolved,
            relation.incidental,
        )
        more.fields = relation.fields
        return more

    # -- WITH --

    def with_(self, rel: With, env: Env | None) -> Relation:
        for cte in rel.ctes:
            relation = (
                self.recursive(cte.index, cte.rel, cte.columns, env) if cte.recursive else None
            )
            if relation is None:
                relation = self.rel(cte.rel, env)
                if cte.columns:
                    relation = relation.renamed(cte.columns, self.dialect)
            self.ctes[cte.index] = relation
        return self.rel(rel.body, env)

    def recursive(
        self, index: int, rel: Rel, columns: list[str] | None, env: Env | None
    ) -> Relation:
        """A recursive CTE: every column moves with the whole of it; dependencies to a fixpoint."""
        first: Rel = rel
        while isinstance(first, (SetOp, With)):
            first = first.branches[0] if isinstance(first, SetOp) else first.body
        missing, unknown = dict(self.missing), self.unknown
        # One that starts with itself has no columns; an engine that looks into it refuses it.
        nothing = digest(b"recursive")
        self.ctes[index] = Relation([], [], [], [], [], nothing, {}, nothing)
        anchor = self.rel(first, env)
        if columns:
            anchor = anchor.renamed(columns, self.dialect)
        fps = [digest(b"recursive", str(i).encode()) for i in range(len(anchor.names))]
        side_key = digest(b"recursive", anchor.side_key)
        current = Relation(
            anchor.names,
            anchor.keys,
            fps,
            anchor.deps,
            anchor.unlisted,
            side_key,
            anchor.rows,
            side_key,
        )
        while True:
            self.missing, self.unknown = dict(missing), unknown
            self.ctes[index] = current
            result = self.rel(rel, env)
            deps = [dict(d) for d in current.deps]
            rows = dict(current.rows)
            for d, more in zip(deps, result.deps, strict=False):
                merge(d, more)
            merge(rows, result.rows)
            if deps == current.deps and rows == current.rows:
                break
            current = Relation(
                anchor.names, anchor.keys, fps, deps, anchor.unlisted, side_key, rows, side_key
            )
        whole = digest(
            b"recursive", result.rows_fp, *result.fps, *(r.fp() for r in result.unlisted)
        )
        whole = in_order(whole, result.order, result.incidental)
        return Relation(
            anchor.names,
            anchor.keys,
            [digest(whole, str(i).encode()) for i in range(len(anchor.names))],
            current.deps,
            anchor.unlisted,
            whole,
            current.rows,
            digest(b"recursive", anchor.side_key),
        )

    # -- set operations --

    def set_operation(self, rel: SetOp, env: Env | None) -> Relation:
        if self.in_any_order and (united := unite(self, rel, env)) is not None:
            return united
        left = self.rel(rel.branches[0], env)
        for branch, op, by_name in zip(rel.branches[1:], rel.ops, rel.by_name, strict=True):
            left = self.combine(left, self.rel(branch, env), op, by_name)
        return left

    def combine(self, left: Relation, right: Relation, op: str, by_name: bool) -> Relation:
        """Rule 3: positional; the operator and its flags count; distinct puts every V into N."""
        is_union = op.startswith("UNION")
        tag = op.encode()
        side_key = digest(b"set", left.side_key, right.side_key)
        pairs: list[tuple[str, str, Column, Column | None]] = []
        unlisted: list[UnlistedColumns] = []
        if by_name:
            for name, key, fp, d in zip(left.names, left.keys, left.fps, left.deps, strict=True):
                pairs.append((name, key, (fp, d), right.get(key, name)))
            for name, key, fp, d in zip(
                right.names, right.keys, right.fps, right.deps, strict=True
            ):
                if key not in left.columns():
                    column = left.get(key, name)
                    pairs.append((name, key, (fp, d), column))
            if left.unlisted or right.unlisted:
                unlisted = [ColumnsOfSetOperation([left, right])]
        elif left.unlisted or right.unlisted:
            if is_union or right.unlisted or left.unlisted:
                self.unknown = self.unknown or Code.SET_OPERATION_UNKNOWN()
            blend = ColumnsOfSetOperation([left, right])
            for name, key in zip(left.names, left.keys, strict=True):
                column = blend.get(key, name)
                assert column is not None
                pairs.append((name, key, column, column))
            unlisted = [blend]
        else:
            if len(left.names) != len(right.names):
                sizes = f"{op.split()[0]} of {len(left.names)} columns with {len(right.names)}"
                self.miss(sizes, "width")
            for i, (name, key) in enumerate(zip(left.names, left.keys, strict=True)):
                other = (right.fps[i], right.deps[i]) if i < len(right.names) else None
                pairs.append((name, key, (left.fps[i], left.deps[i]), other))
        names, keys, fps, deps = [], [], [], []
        rows: Deps = dict(left.rows)
        for name, key, a, b in pairs:
            names.append(name)
            keys.append(key)
            if not is_union:  # the values of the left, as the type that both sides have
                fps.append(a[0] if b is None or a[0] == b[0] else digest(b"kept", a[0], b[0]))
                deps.append(a[1])
            elif b is None:
                fps.append(digest(b"UNION", a[0]))
                deps.append(a[1])
            elif a[0] == b[0]:
                fps.append(a[0])
                deps.append(union(a[1], b[1]))
            else:
                fps.append(digest(b"UNION", a[0], b[0]))
                deps.append(union(a[1], b[1]))
        if is_union:
            merge(rows, right.rows)
        else:
            merge(rows, {k: compose(FILTER, m) for k, m in right.rows.items()})
        if (
            len(op.split(" ", 2)) > 2
        ):  # LEFT, INNER, ON (...): which columns, and where they are NULL
            fps = [digest(tag, fp) for fp in fps]
            unlisted = [ColumnsOfUnreadQuery(r, tag) for r in unlisted]
        parts = [tag, b"by name" if by_name else b"", left.rows_fp, right.rows_fp]
        if "DISTINCT" in op or not is_union:
            if by_name:  # which column meets which is in no order
                met = (digest(a[0], b[0] if b is not None else b"") for _, _, a, b in pairs)
                parts += sorted(met)
            parts += [*left.fps, b"|", *right.fps]
            parts += [r.fp() for r in (*left.unlisted, *right.unlisted)]
            for d in (*left.deps, *right.deps):
                merge(rows, through(GROUP_BY if is_union else FILTER, d))
        unresolved = [*left.unresolved, *right.unresolved]
        rows_fp = digest(*parts)
        generated = (_GENERATED,) * max(r.joins.count(_GENERATED) for r in (left, right))
        order = beside(left.order, tag, right.order)
        relation = Relation(
            names,
            keys,
            fps,
            deps,
            unlisted,
            rows_fp,
            rows,
            side_key,
            (side_key, *generated),
            order,
            unresolved,
            beside(left.incidental, tag, right.incidental),
        )
        if not by_name and not unlisted:
            relation.untold = left.untold
        if self.dialect in ORDERED_BY_ANY_BRANCH and not by_name and not unlisted:
            also = {key: list(places) for key, places in left.also.items()}
            for i, key in enumerate(right.keys[: len(left.keys)]):
                if key not in left.columns():
                    also.setdefault(key, []).append(i)
            relation.also = also
        if left.fields and not by_name and not unlisted:
            relation.fields = {
                key: fields
                for key, right_key in zip(left.keys, right.keys, strict=False)
                if (fields := left.fields.get(key)) == right.fields.get(right_key)
                and fields is not None
            }
        if self.known_constraints is not None:
            by_position = not by_name and not unlisted
            relation.facts = self.known_constraints.combined(
                left, right, op, pairs, fps, by_position, rows_fp
            )
        return relation

    # -- leaves --

    def values(self, rel: Values, env: Env | None) -> Relation:
        scope = Env(self, env, rel.refs, rel.subs, [])
        columns = [scope.value(x) for x in rel.columns]
        side_key = digest(b"values", str(rel.count).encode())
        return Relation(
            rel.names,
            rel.keys,
            [c[0] for c in columns],
            [c[1] for c in columns],
            [],
            side_key,
            {},
            side_key,
        )

    def generator(self, rel: Generator, env: Env | None) -> Relation:
        assert env is not None
        fp, deps = env.value(rel.x)
        side_key = digest(b"generator")
        direct = through(TRANSFORMATION, deps)
        rows = through(JOIN, deps)
        if rel.names is None or rel.keys is None:
            return Relation(
                [], [], [], [], [StructFields((fp, direct))], digest(b"rows", fp), rows, side_key
            )
        fps = [digest(b"generated", str(i).encode(), fp) for i in range(len(rel.names))]
        deps_of_each = [through(TRANSFORMATION, env.deps_of(x)) for x in rel.each]
        of = [deps_of_each[i] if i < len(deps_of_each) else direct for i in range(len(fps))]
        unlisted: list[UnlistedColumns] = [StructFields((fp, direct))] if rel.by_field else []
        return Relation(rel.names, rel.keys, fps, of, unlisted, digest(b"rows", fp), rows, side_key)

    # -- pivots --

    def pivot(self, rel: Pivot, env: Env | None) -> Relation:
        source = self.rel(rel.rel, env)
        scope = Env(self, env, rel.refs, rel.subs, [Source(None, rel.rel, None)])
        scope.relations[0] = source
        scope.row_deps = source.rows
        used: set[str] = set()
        for x in (*rel.aggregates, *rel.fields):
            used.update(scope.refs[i].key for i in x.deps)
        fields = [scope.value(x) for x in rel.fields]
        kept = [i for i, key in enumerate(source.keys) if key not in used]
        groups = sorted({source.fps[i] for i in kept})
        unlisted: list[UnlistedColumns] = (
            [ColumnsThroughStar(scope, 0, frozenset(used))] if source.unlisted else []
        )
        rows_fp = digest(b"G", source.rows_fp, *groups, *(r.fp() for r in unlisted))
        scope.over = digest(b"pivot", rows_fp, rel.flags)
        scope.order, scope.incidental = source.order, source.incidental
        names = [source.names[i] for i in kept]
        keys = [source.keys[i] for i in kept]
        group_names = set(keys)
        fps = [source.fps[i] for i in kept]
        deps = [source.deps[i] for i in kept]
        rows = {k: compose(AGGREGATION, m) if m & DIRECT else m for k, m in source.rows.items()}
        for i in kept:
            merge(rows, through(GROUP_BY, source.deps[i]))
        aggregates = [scope.value(x) for x in rel.aggregates]
        field_fp = digest(b"fields", *(f[0] for f in fields))
        outputs: list[Column] = []
        for value in rel.values:
            for fp, d in aggregates:
                pivoted = dict(d)
                for _, more in fields:
                    merge(pivoted, through(CONDITIONAL, more))
                outputs.append((digest(b"pivot", fp, field_fp, value, rel.flags), pivoted))
        # Where a name is there already, the engine makes up another one.
        if rel.names and len(rel.names) == len(outputs) and group_names.isdisjoint(rel.keys):
            names += rel.names
            keys += rel.keys
            fps += [o[0] for o in outputs]
            deps += [o[1] for o in outputs]
        else:
            self.unknown = self.unknown or Code.PIVOT_UNKNOWN()
            whole: Deps = {}
            for _, d in (*aggregates, *fields):
                merge(whole, d)
            unlisted.append(
                StructFields(
                    (digest(b"pivot", field_fp, rel.flags, *(a[0] for a in aggregates)), whole)
                )
            )
        unresolved: list[UnlistedColumns] = (
            [ColumnsThroughStar(scope, 0, frozenset(used), unresolved=True)]
            if source.unresolved
            else []
        )
        relation = Relation(
            names,
            keys,
            fps,
            deps,
            unlisted,
            rows_fp,
            rows,
            source.side_key,
            source.joins,
            source.order,
            unresolved,
            source.incidental,
        )
        if self.known_constraints is not None and not source.unlisted:
            relation.facts = self.known_constraints.grouped_by_rest(
                self.known_constraints.of(source), [source.fps[i] for i in kept], rows_fp
            )
        return relation

    def unpivot(self, rel: Unpivot, env: Env | None) -> Relation:
        source = self.rel(rel.rel, env)
        scope = Env(self, env, rel.refs, [], [Source(None, rel.rel, None)])
        scope.relations[0] = source
        used = {rel.refs[i].key for group in rel.groups for i in group}
        kept = [i for i, key in enumerate(source.keys) if key not in used]
        unlisted: list[UnlistedColumns] = (
            [ColumnsThroughStar(scope, 0, frozenset(used))] if source.unlisted else []
        )
        columns = [[scope.ref(i) for i in group] for group in rel.groups]
        labels = digest(rel.labels, *(scope.spelled(i).encode() for i in rel.stored))
        flags = digest(labels, b"nulls" if rel.include_nulls else b"")
        parts = [b"unpivot", source.rows_fp, flags]
        beside = {rel.name_key, *(source.keys[i] for i in kept)}
        if source.unlisted or not beside.isdisjoint(rel.value_keys):
            # NULLs are looked for in the first column of that name, which may be another one.
            parts.append(digest(b"named alike", *(key.encode() for key in rel.value_keys)))
        rows = dict(source.rows)
        if not rel.include_nulls:
            for group in columns:
                parts += [fp for fp, _ in group]
                for _, d in group:
                    merge(rows, through(FILTER, d))
        names = [source.names[i] for i in kept]
        keys = [source.keys[i] for i in kept]
        fps = [source.fps[i] for i in kept]
        deps = [source.deps[i] for i in kept]
        added: list[tuple[str, str, Column]] = [
            (rel.name_column, rel.name_key, (digest(b"unpivot name", labels), {}))
        ]
        for name, key, group in zip(rel.value_names, rel.value_keys, columns, strict=True):
            group_deps: Deps = {}
            for _, d in group:
                merge(group_deps, d)
            added.append((name, key, (digest(b"unpivot", *(fp for fp, _ in group)), group_deps)))
        if rel.values_first:
            added = [*added[1:], added[0]]
        for name, key, column in added:
            names.append(name)
            keys.append(key)
            fps.append(column[0])
            deps.append(column[1])
        unresolved: list[UnlistedColumns] = (
            [ColumnsThroughStar(scope, 0, frozenset(used), unresolved=True)]
            if source.unresolved
            else []
        )
        return Relation(
            names,
            keys,
            fps,
            deps,
            unlisted,
            digest(*parts),
            rows,
            source.side_key,
            source.joins,
            source.order,
            unresolved,
            source.incidental,
        )

    # -- SELECT --

    def from_items(
        self, items: Sequence[FromItem], env: Env, *, in_brackets: bool = False
    ) -> _FromResult:
        """Link a left-deep FROM tree.

        Rule 2: the join tree with kinds, conditions and each side's N.
        """
        rows_fp = digest(b"one row")
        rows: Deps = {}
        side_key = b""
        joins: tuple[bytes, ...] = ()
        members: list[int] = []
        # Where among the members those begin that stand behind the last comma, and behind the last
        # comma or CROSS JOIN.
        behind_comma = tree = 0
        order = incidental = b""
        known_constraints = self.known_constraints
        linked: dict[int, Relation] = {}
        arranged = b""
        if self.in_any_order and len(items) > 1:
            items, linked, arranged = arrange(self, items, env)
        for position, item in enumerate(items):
            correlated, joining = self.correlated, env.joining
            if position and not _LEFT_UNSEEN.isdisjoint(item.kind.split()):
                env.joining = (*joining, ("from the left side", members[tree:], members[:tree]))
            if item.nested:
                right = self.from_items(item.nested, env, in_brackets=True)
            else:
                source = env.sources[item.source]
                if source.in_brackets and self.dialect not in LATERAL_UNSAID:
                    everything = range(len(env.sources))
                    env.joining = (*env.joining, ("from beside it", everything, ()))
                linked_before = linked.get(item.source)
                relation = linked_before if linked_before is not None else self.rel(source.rel, env)
                if source.columns and linked_before is None:
                    relation = relation.renamed(source.columns, self.dialect)
                env.relations[item.source] = relation
                right = _FromResult(
                    relation.rows_fp,
                    relation.rows,
                    relation.side_key,
                    relation.joins,
                    [item.source],
                    relation.order,
                    relation.incidental,
                )
                if known_constraints is not None:
                    env.facts = known_constraints.of(relation)
            env.joining = joining
            side_fp, side_rows, joined_side_key, side_joins, side, side_order, side_incidental = (
                right
            )
            if position == 0:
                if len(items) == 1:
                    return right
                if known_constraints is not None:
                    facts = env.facts
                rows_fp, rows, side_key, joins = side_fp, side_rows, joined_side_key, side_joins
                members = list(side)
                order, incidental = side_order, side_incidental
                continue
            token = joined_side_key + str(joins.count(joined_side_key)).encode()
            if known_constraints is not None or self.in_any_order:
                # A relation that is the same on both sides brings columns with tokens of joins above
                # it that are not among `joins` here (`graph.relations.unchanged_relation`).
                token += b"compared"
            for i in side:
                env.wraps[i] = (*env.wraps[i], token)
            rows = dict(rows) if position == 1 else rows
            conditions = [env.value(x) for x in item.conds] if not item.natural else []
            if in_brackets:
                conditions = [
                    _told_from_outside(env, x, value, (*members, *side))
                    for x, value in zip(item.conds, conditions, strict=False)
                ]
            using = item.using
            if item.kind == "CROSS" and self.dialect not in COMMA_IS_A_JOIN:
                tree = len(members)
                behind_comma = tree if item.comma else behind_comma
            if item.natural:
                using = self.natural(env, members[behind_comma:], side)
                farther = () if self.dialect in COMMA_ENDS_JOINS else members[:behind_comma]
                relations = [
                    relation_of(env, i) for i in (*farther, *members[behind_comma:], *side)
                ]
                for key in self.natural(env, [*farther], side) if farther else ():
                    # It may be a comma that is looked behind, or a JOIN without a condition.
                    columns = [env.listed_column(i, key) for i in (*farther, *side)]
                    fp, deps = combine([column for column in columns if column is not None])
                    conditions.append((digest(b"natural", fp), deps))
                if any(r.unlisted for r in relations):
                    # They may share any column: the condition is all of both sides.
                    whole: Deps = {}
                    for r in relations:
                        merge(whole, r.rows)
                        for d in r.deps:
                            merge(whole, d)
                    shown = (r.all_fp() for r in relations)
                    conditions.append((digest(b"natural", *shown), whole))
            for key in using:
                conditions.append(self.using(env, key, members, side, item.kind, tree))
            if "ASOF" in item.kind and using:  # the last of them is no equality
                fp, deps = conditions[-1]
                conditions[-1] = digest(b"nearest", fp), deps
            semi = "SEMI" in item.kind or "ANTI" in item.kind
            if semi:
                for i in side:
                    env.visible[i] = False
                env.cache = [None] * len(env.refs)  # a bare name now means another side
            for k, mask in side_rows.items():
                kept = mask & ~DIRECT
                if mask & DIRECT:
                    kept |= JOIN if semi else compose(TRANSFORMATION, mask & DIRECT)
                rows[k] = rows.get(k, 0) | kept
            for _, d in conditions:
                merge(rows, through(JOIN, d))
            inner = item.kind in INNER_JOINS
            kind = b"INNER" if inner else item.kind.encode()
            fps = sorted(c[0] for c in conditions)
            rows_fp = digest(b"join", kind, b"", rows_fp, side_fp, *(() if inner else fps))
            for fp in fps if inner else ():  # ON of an inner join is WHERE
                rows_fp = where(rows_fp, fp)
            if not semi:
                order = beside(order, token, side_order)
                incidental = beside(incidental, token, side_incidental)
            if (
                item.kind not in _MEETS_ALL
            ):  # POSITIONAL, ASOF: which rows meet is up to their order
                rows_fp = in_order(rows_fp, order, incidental)
                if self.correlated != correlated or item.source in linked:
                    # Which rows meet is up to what the right side reads of the left one, too: DuckDB
                    # takes any number of rows of a correlated side of an ASOF join.
                    for relation in (relation_of(env, i) for i in side):
                        rows_fp = digest(b"correlated", rows_fp, relation.all_fp())
                        for d in relation.deps:
                            merge(rows, through(JOIN, d))
            if known_constraints is not None:
                plain = rows_fp
                facts, lookup = known_constraints.join(
                    env, item, conditions, facts, env.facts, side, members, token, rows_fp
                )
                rows_fp = facts.rows.fp
                if lookup:  # rule 14: no join as far as the rows go
                    incidental = digest(b"lookup", incidental, plain)
                    members += side
                    continue
            side_key = digest(b"join", side_key, joined_side_key)
            joins = (*joins, joined_side_key)
            members += side
        if known_constraints is not None:
            env.facts = facts if items else known_constraints.one_row(rows_fp)
        if arranged:
            incidental = digest(arranged, incidental)
        return _FromResult(rows_fp, rows, side_key, joins, members, order, incidental)

    def natural(self, env: Env, left: list[int], right: list[int]) -> list[str]:
        """The columns both sides of a NATURAL join have, as far as they are known."""
        left = [i for i in left if env.visible[i]]
        if any(relation_of(env, i).unlisted for i in (*left, *right)):
            self.unknown = self.unknown or Code.NATURAL_JOIN_UNKNOWN()
            self.may_merge(env, left, right)
            self.may_merge(env, right, left)
        right_keys = {k for i in right for k in relation_of(env, i).keys}
        return list(
            dict.fromkeys(k for i in left for k in relation_of(env, i).keys if k in right_keys)
        )

    def may_merge(self, env: Env, left: list[int], right: list[int]) -> None:
        """Columns of one side of a NATURAL join that the other, not all known, may have too."""
        for i in left:
            relation = relation_of(env, i)
            for key, name in zip(relation.keys, relation.names, strict=True):
                others = [
                    column
                    for j in right
                    if relation_of(env, j).unlisted
                    and (column := env.column(j, key, key)) is not None
                ]
                own = env.listed_column(i, key)
                if others and own is not None:
                    env.merged[key] = (name, combine([own, *others]))
                    env.merged_of.setdefault(key, set()).update(left, right)

    def using(
        self, env: Env, key: str, left: list[int], right: list[int], kind: str, tree: int
    ) -> Column:
        """One column of USING: the condition it makes, and the merged column it leaves.

        It is looked for behind the last comma (but see `COMMA_IS_A_JOIN`): from `tree` on among what
        is joined already. A CROSS JOIN is as a comma here; of one whose two sides have the column
        engines say it is ambiguous.
        """
        a: Column | None = None
        nearest = [i for i in left[tree:] if env.visible[i]]
        if tree and any(env.column(i, key, key) is not None for i in nearest):
            left = nearest
        elif self.dialect in COMMA_IS_A_JOIN:  # the first of that name, and no word of the others
            left = next(([i] for i in nearest if env.listed_column(i, key) is not None), left)
        merged_of = env.merged_of.setdefault(key, set())
        if merged_of and merged_of.isdisjoint(left):
            self.unknown = self.unknown or Code.USING_AMBIGUOUS(column=key)
        if key in env.merged:
            a = env.merged[key][1]
        else:
            left = [i for i in left if env.visible[i]]
            merged_of.update(left)
            candidates = [
                c for i in left if (c := env.listed_column(i, key, _IN_USING)) is not None
            ]
            candidates = candidates or [
                c for i in left if (c := env.column(i, key, key)) is not None
            ]
            a = combine(candidates) if candidates else None
        candidates = [c for i in right if (c := env.listed_column(i, key, _IN_USING)) is not None]
        candidates = candidates or [c for i in right if (c := env.column(i, key, key)) is not None]
        b = combine(candidates) if candidates else None
        if a is None or b is None:
            self.miss(key)
            a = a or env.lost_in(key, left)
            b = b or env.lost_in(key, right)
        if "FULL" in kind:
            merged: Column = (
                digest(b"coalesce", a[0], b[0]),
                union(through(TRANSFORMATION, a[1]), through(TRANSFORMATION, b[1])),
            )
        elif "RIGHT" in kind:
            merged = b
        else:
            merged = a
        name = next(
            (
                r.names[r.keys.index(key)]
                for i in (*left, *right)
                if key in (r := relation_of(env, i)).columns()
            ),
            key,
        )
        env.merged[key] = (name, merged)
        merged_of.update(right)
        env.cache = [None] * len(env.refs)  # the bare name now means the merged column
        return compared(b"EQ", a[0], b[0]), union(a[1], b[1])

    def select(self, rel: Select, parent: Env | None) -> Relation:
        """One SELECT: its clauses, in the order in which the engine evaluates them."""
        clauses = _SelectClauses(self, rel, Env(self, parent, rel.refs, rel.subs, rel.sources, rel))
        for clause in _EVALUATED.get(self.dialect, _EVALUATED_SOMEHOW):
            clause(clauses)
        return clauses.relation()

    def group(
        self, rel: Select, env: Env, rows_fp: bytes, add: Callable[[Deps, int], None]
    ) -> bytes:
        """N of a grouping: what goes in, and the keys; their structure where there is one."""
        keys: list[bytes] = []
        for x in rel.group:
            fp, deps = env.value(x)
            keys.append(fp)
            add(deps, GROUP_BY)
        chosen: list[Value] = []
        places = self.positions(rel, env) if rel.group_outs else _NO_POSITIONS
        for ordinal in rel.group_outs:
            if ordinal <= places.certain and ordinal > 0:
                at = places.items[ordinal - 1]
                if isinstance(at, tuple):
                    keys.append(at[0])
                    add(at[1], GROUP_BY)
                else:
                    chosen.append(at)
            elif places.unlisted:
                keys.append(digest(b"ordinal", str(ordinal).encode()))
                columns = [at if isinstance(at, tuple) else env.value(at) for at in places.items]
                columns += [(other.fp(), other.whole()) for other in places.unlisted]
                for fp, deps in columns:
                    keys.append(fp)
                    add(deps, GROUP_BY)
            elif not rel.group_tag:
                self.miss(f"GROUP BY {ordinal}", "ordinal")
        if rel.group_all:
            for out in rel.outs:
                value = value_of(out)
                if value is None:
                    for fp, deps in zip(*self.outputs(rel, env)[2:4], strict=True):
                        keys.append(fp)
                        add(deps, GROUP_BY)
                else:
                    used = [value] if isinstance(value, int) else list(value.deps)
                    parts = None if isinstance(value, int) else _plain_parts(value.e)
                    aggregates = {i for i in used if env.aggregated_alias(i)}
                    if parts is None and aggregates:
                        parts = used
                    if parts is None:
                        chosen.append(value)
                    for i in parts or ():
                        if i in aggregates:
                            continue
                        fp, deps = env.ref(i)
                        keys.append(fp)
                        add(deps, GROUP_BY)
        for key in chosen:
            fp, deps = env.value(key)
            keys.append(fp)
            add(deps, GROUP_BY)
        inside = [env.ref(i)[0] for x in rel.group for i in x.deps]  # of ROLLUP and its like
        env.keys = frozenset((*keys, *inside))
        loose = rel.group_all and _may_not_group(rel)
        if rel.group_tag:
            refs = list(dict.fromkeys(i for x in rel.group for i in x.deps))
            each = [*(env.ref(i)[0] for i in refs), *(env.value(key)[0] for key in chosen)]
            spelled: list[bytes] = []
            if len(set(each)) < len(each):  # two keys that are one column: as column, and as alias
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
        if self.known_constraints is not None:
            self.known_constraints.group(env, keys, bool(rel.group_tag) or loose, rows_fp)
        return rows_fp

    def positions(self, rel: Select, env: Env) -> _Positions:
        """What the positions of a select list mean: a ``*`` takes as many as it has columns."""
        items: list[Value | Column] = []
        unlisted: list[UnlistedColumns] = []
        certain = 0
        for out in rel.outs:
            if isinstance(out, Star):
                fps: list[bytes] = []
                all_deps: list[Deps] = []
                self.star(rel, env, out, [], [], fps, all_deps, unlisted, [])
                items += zip(fps, all_deps, strict=True)
            elif not isinstance(out, GeneratedColumns):
                items.append(out)
            elif out.names is not None:
                items += [out.x] * len(out.names)
            else:
                fields = env.fields(out.shape)
                if fields is None:
                    unlisted.append(StructFields(env.value(out.x)))
                items += [out.x] * len(fields or ())
            if not unlisted:
                certain = len(items)
        return _Positions(items, certain, unlisted)

    def outputs(
        self, rel: Select, env: Env
    ) -> tuple[list[str], list[str], list[bytes], list[Deps], list[UnlistedColumns]]:
        outs = rel.outs
        if not rel.wide:
            cache = env.cache  # nearly all are a column that was found already
            columns = [
                (cache[x] if type(x) is int else None) or env.value(x)
                for x in cast("list[Value]", outs)
            ]
            column_names = rel.names
            if rel.as_stored and not (
                column_names == rel.keys
                and all(r is None or r.names == r.keys for r in env.relations)
            ):
                column_names = list(column_names)
                for i in rel.as_stored:
                    column_names[i] = env.spelled(cast("int", outs[i]))
            return column_names, rel.keys, [c[0] for c in columns], [c[1] for c in columns], []
        if len(outs) == 1 and type(outs[0]) is Star and len(rel.sources) == 1:
            star = outs[0]
            relation = env.relations[0]
            if (
                relation is not None
                and star.source in (-1, 0)
                and star.struct is None
                and star.up == 0
                and not star.except_
                and not star.renames
                and not star.replaces
            ):
                unlisted: list[UnlistedColumns] = (
                    [ColumnsThroughStar(env, 0, frozenset())] if relation.unlisted else []
                )
                return relation.names, relation.keys, relation.fps, relation.deps, unlisted
        names: list[str] = []
        keys: list[str] = []
        fps: list[bytes] = []
        all_deps: list[Deps] = []
        unlisted = []
        as_stored = set(rel.as_stored)
        unknown_at: list[int] = []  # where the columns that are not known are
        for place, (name, key, out) in enumerate(zip(rel.names, rel.keys, outs, strict=True)):
            unknown_at += [len(names)] * (len(unlisted) - len(unknown_at))
            if isinstance(out, Star):
                self.star(rel, env, out, names, keys, fps, all_deps, unlisted, unknown_at)
            elif not isinstance(out, GeneratedColumns):
                fp, deps = env.value(out)
                names.append(env.spelled(cast("int", out)) if place in as_stored else name)
                keys.append(key)
                fps.append(fp)
                all_deps.append(deps)
            elif out.names is None or out.keys is None:
                struct = env.value(out.x)
                fields = env.fields(out.shape)
                if fields is None:
                    unlisted.append(StructFields(struct))
                for name, _ in fields or ():
                    names.append(name)
                    keys.append(fold(name, True, self.dialect))
                    column = field_of(struct, name)
                    fps.append(column[0])
                    all_deps.append(column[1])
            else:
                fp, deps = env.value(out.x)
                for i, (name, key) in enumerate(zip(out.names, out.keys, strict=True)):
                    names.append(name)
                    keys.append(key)
                    fps.append(digest(b"generated", str(i).encode(), fp))
                    all_deps.append(deps)
        unknown_at += [len(names)] * (len(unlisted) - len(unknown_at))
        if unlisted and len(outs) + len(rel.sources) > 2 and tells_apart(self.dialect):
            # A name may be that of a column not known: this one is then `name_1`.
            places: dict[str, list[int]] = {}
            for i, key in enumerate(keys):
                places.setdefault(key, []).append(i)
            for key, same in places.items():
                there = [
                    (at - 0.5, other[0])
                    for r, at in zip(unlisted, unknown_at, strict=True)
                    if (other := r.get(key, names[same[0]])) is not None
                ]
                if there:
                    inside = dict.fromkeys(at for at, _ in there)
                    there += [(i, fps[i]) for i in same]
                    order = [b"?" + fp if at in inside else fp for at, fp in sorted(there)]
                    for i in same:
                        fps[i] = digest(b"any", fps[i], *order)
        return names, keys, fps, all_deps, unlisted

    def struct_star(
        self,
        env: Env,
        star: Star,
        names: list[str],
        keys: list[str],
        fps: list[bytes],
        all_deps: list[Deps],
        unlisted: list[UnlistedColumns],
    ) -> None:
        """The fields of a struct; where we cannot see them, whatever is asked for."""
        assert star.struct is not None
        struct = env.value(star.struct)
        fields = env.fields(star.shape)
        named = {*star.except_, *star.renames, *star.replaces}
        if fields is None:
            unlisted.append(StructFields(struct, frozenset(named)))
            fields = [(key, None) for key in (*star.renames, *star.replaces)]
        else:
            have = {fold(name, True, self.dialect) for name, _ in fields}
            for key in sorted(named - have):
                self.miss(key)
        for name, _ in fields:
            key = fold(name, True, self.dialect)
            if key in star.except_:
                continue
            column = field_of(struct, name)
            if key in star.replaces:
                column = env.value(star.replaces[key])
            if key in star.renames:
                name, key = star.renames[key]
            names.append(name)
            keys.append(key)
            fps.append(column[0])
            all_deps.append(column[1])

    def star(
        self,
        rel: Select,
        env: Env,
        star: Star,
        names: list[str],
        keys: list[str],
        fps: list[bytes],
        all_deps: list[Deps],
        unlisted: list[UnlistedColumns],
        unknown_at: list[int],
    ) -> None:
        """The columns of a ``*``; ``unknown_at`` has the places of those that are not known."""
        if star.source == -2:
            self.struct_star(env, star, names, keys, fps, all_deps, unlisted)
            return
        owner = env
        for _ in range(star.up):
            assert owner.parent is not None
            owner = owner.parent
        sources = (
            [star.source]
            if star.source >= 0
            else [i for i in _in_order(rel.items) if owner.visible[i]]
        )
        hidden = set(star.except_)
        first = len(names)
        replaced: set[str] = set()

        def put(name: str, key: str, column: Column) -> None:
            if key in hidden:
                return
            if key in star.replaces:
                if self.dialect == "duckdb" and key in replaced:
                    return  # of several columns of that name one is left
                replaced.add(key)
                column = env.value(star.replaces[key])
            if key in star.renames:
                name, key = star.renames[key]
            names.append(name)
            keys.append(key)
            fps.append(column[0])
            all_deps.append(column[1])

        merged = owner.merged if star.source < 0 else {}
        waiting = dict(merged)
        if self.dialect not in MERGED_IN_PLACE:
            for key, (name, column) in merged.items():
                put(name, key, column)
            waiting = {}
        all_as_they_are = not (hidden or owner.merged or star.renames or star.replaces)
        for i in sources:
            relation = relation_of(owner, i)
            if all_as_they_are:  # nearly always
                names += relation.names
                keys += relation.keys
                if owner.wraps[i]:
                    columns = zip(relation.fps, relation.deps, strict=True)
                    fps += [owner.wrap(i, column)[0] for column in columns]
                else:
                    fps += relation.fps
                all_deps += relation.deps
                if relation.unlisted:
                    unlisted.append(ColumnsThroughStar(owner, i, frozenset()))
                continue
            places: list[int] = list(range(len(relation.keys)))
            if star.source >= 0 and owner.merged and self.dialect in ("spark", "databricks"):
                # Spark puts the keys of USING first in the star of one side, too.
                merged_ = [
                    relation.keys.index(k)
                    for k in owner.merged
                    if k in relation.columns() and owner.merges(k, i)
                ]
                places = [*merged_, *(j for j in places if j not in merged_)]
            for j in places:
                key = relation.keys[j]
                is_merged = key in merged and owner.merges(key, i)
                if is_merged and key in waiting:
                    name, column = waiting.pop(key)
                    put(name, key, column)
                elif not is_merged and hidden_in(i, key) not in hidden:
                    column = owner.wrap(i, (relation.fps[j], relation.deps[j]))
                    put(relation.names[j], key, column)
            if relation.unlisted:
                left_out = {h.partition("\x1f")[2] for h in hidden if h.startswith(f"{i}\x1f")}
                excluded = frozenset(
                    left_out
                    | hidden
                    | set(star.renames)
                    | set(star.replaces)
                    | {key for key in merged if owner.merges(key, i)}
                )
                unlisted.append(ColumnsThroughStar(owner, i, excluded))
                unknown_at.append(len(names))
        for key, (name, column) in waiting.items():  # of sources whose columns are not known
            put(name, key, column)
        if star.renames:
            present = {k for i in sources for k in relation_of(owner, i).keys}
            for key in star.renames:
                if key not in present:
                    renamed = [c for i in sources if (c := owner.column(i, key, key)) is not None]
                    if not renamed:
                        self.miss(key, "rename")
                        renamed = [owner.lost_in(key, sources)]
                    put(key, key, combine(renamed))
                    # Where it stands is not known: any other column of its new name may come first.
                    same = [j for j in range(first, len(keys)) if keys[j] == keys[-1]]
                    column = combine([(fps[j], all_deps[j]) for j in same])
                    for j in same:
                        fps[j], all_deps[j] = column
        for key in star.replaces:
            if key not in keys:  # of a source whose columns are not known, or a mistake
                if not unlisted:
                    self.miss(key, "replace")
                put(key, key, env.value(star.replaces[key]))
        for name in star.except_:
            one, _, key = name.rpartition("\x1f")
            searched = [int(one)] if one else sources
            relations = [relation_of(owner, i) for i in searched]
            if key not in merged and not any(r.unlisted or key in r.keys for r in relations):
                self.miss(key, "except")  # most engines refuse to leave out what is not there


class _FromResult(NamedTuple):
    """What a FROM tree gives: its N and rows, its leaf and joins, its sources, and their order."""

    rows_fp: bytes
    rows: Deps
    side_key: bytes
    joins: tuple[bytes, ...]
    members: list[int]
    order: bytes
    incidental: bytes


class _SelectClauses:
    """The rows of one SELECT, as its clauses make them: each takes what the ones before it left.

    What is known of the rows (`env.facts`) is changed by the same step that changes ``N``, so that
    nothing is claimed of rows that a later clause repeats. The order of the steps is `_EVALUATED`.

    Attributes:
        fp: ``N`` so far.
        rows: what the row set depends on.
        names, keys, fps, deps, unlisted: the outputs, once the select list is evaluated.
    """

    __slots__ = (
        *(
            "known_constraints",
            "deps",
            "env",
            "extra",
            "fp",
            "fps",
            "joins",
            "keys",
            "side_key",
            "linker",
            "names",
        ),
        *("grouped_by", "own", "rel", "unlisted", "rows"),
    )

    side_key: bytes
    joins: tuple[bytes, ...]
    names: list[str]
    keys: list[str]
    fps: list[bytes]
    deps: list[Deps]
    unlisted: list[UnlistedColumns]
    grouped_by: frozenset[bytes]

    def __init__(self, linker: _Linker, rel: Select, env: Env) -> None:
        self.linker = linker
        self.known_constraints = linker.known_constraints
        self.rel = rel
        self.env = env
        self.fp = b""
        self.rows: Deps = {}
        self.own = False  # `rows` may still be the parent's dict: copied before the first change
        self.extra = b""  # what no rule reads: it may decide any value

    def add(self, deps: Deps, kind: int) -> None:
        """Note what the rows depend on, too."""
        if deps:
            if not self.own:
                self.rows = dict(self.rows)
                self.own = True
            merge(self.rows, through(kind, deps))

    def condition(self, conditions: Sequence[LoweredExpr]) -> None:
        """Keep the rows that meet all of these."""
        for x in conditions:
            fp, deps = self.env.value(x)
            self.fp = where(self.fp, fp)
            self.add(deps, FILTER)
            if self.known_constraints is not None:
                self.known_constraints.where(self.env, x, fp, self.fp)

    # -- the steps --

    def from_(self) -> None:
        """FROM, joins, laterals; and clauses nobody knows more of than that they say something."""
        rel, env = self.rel, self.env
        env.in_from = True
        self.fp, self.rows, self.side_key, self.joins, _, env.order, env.incidental = (
            self.linker.from_items(rel.items, env)
        )
        env.in_from = False
        env.look_up()
        if not rel.items:
            self.side_key = digest(b"no from")
            self.joins = (self.side_key,)
        env.row_deps = self.rows
        extra = [rel.hint] if rel.hint else []
        for x in rel.extra:
            fp, deps = env.value(x)
            extra.append(fp)
            self.add(deps, FILTER)
        if extra:
            self.fp = in_order(digest(b"extra", self.fp, *extra), env.order, env.incidental)
            self.extra = digest(b"extra", *extra) if rel.extra else b""
        if rel.generators or rel.volatile:
            # Told apart from what the same call gave to a SELECT below.
            below = str(self.joins.count(_GENERATED)).encode()
            env.generated = digest(self.joins[0], below)

    def where(self) -> None:
        """WHERE. What an aggregate runs over is what it leaves."""
        if self.rel.where:
            self.condition(self.rel.where)
        self.env.over = self.env.win = self.env.tied = self.fp

    def group(self) -> None:
        """GROUP BY, or an aggregate without one."""
        rel, env = self.rel, self.env
        if not rel.grouped:
            env.row_deps = self.rows
            return
        self.fp = self.linker.group(rel, env, self.fp, self.add)
        self.grouped_by = env.keys
        if not self.own:
            self.rows = dict(self.rows)
            self.own = True
        # count(*) counts the rows that went in, so the parents' rows stay in `row_deps`.
        env.row_deps = dict(self.rows)
        for k, mask in self.rows.items():
            if mask & DIRECT:
                self.rows[k] = compose(AGGREGATION, mask & DIRECT) | (mask & ~DIRECT)
        lifted = [env.lift(used) for used in rel.outward]
        if any(lifted) and self.known_constraints is not None:
            self.known_constraints.unknown(env, self.fp)
        env.over = digest(b"over", self.fp)
        env.cache = [
            c if not _aggregated_alias(rel, r) else None
            for c, r in zip(env.cache, rel.refs, strict=True)
        ]

    def having(self) -> None:
        """HAVING."""
        self.env.late = True
        if self.rel.having:
            self.condition(self.rel.having)
        self.env.keys = frozenset()

    def uncertain(self) -> None:
        """Calls of functions nobody here knows: each may make one row of many, or many of one.

        Which it does is not known, so nothing is claimed of the rows, and ``N`` holds the calls.
        """
        self.calls(self.rel.uncertain)
        if self.rel.may_lift:
            self.lifted()

    def uncertain_late(self) -> None:
        """Such calls in the clauses after the select list; rows are repeated by now, if they are."""
        self.calls(self.rel.uncertain_late)
        if self.rel.uncertain and self.known_constraints is not None:
            self.known_constraints.unknown(self.env, self.fp)

    def lifted(self) -> None:
        """Aggregates of these rows that stand in a subquery."""
        fps = []
        for i in self.rel.may_lift:
            relation = self.env.sub(i)
            if i in self.env.lifting:
                fps += [relation.rows_fp, *relation.fps]
                deps: Deps = {}
                self.env.sub_deps(i, TRANSFORMATION, deps)
                self.add(deps, JOIN)
        if fps:
            self.fp = digest(b"lifted", self.fp, *fps)
            if self.known_constraints is not None:
                self.known_constraints.unknown(self.env, self.fp)

    def calls(self, calls: Sequence[LoweredExpr]) -> None:
        """Rows that these calls may have made."""
        if not calls:
            return
        fps = []
        for x in calls:
            fp, deps = self.env.value(x)
            fps.append(fp)
            self.add(deps, JOIN)
        self.fp = digest(b"uncertain", self.fp, *sorted(set(fps)))
        if self.known_constraints is not None:
            self.known_constraints.unknown(self.env, self.fp)

    def generate(self) -> None:
        """Functions in the select list that give several rows for one.

        Several of them are one step: some engines put their rows side by side (and fill up with
        NULLs), others take the product. A generator that is a key of GROUP BY has multiplied the
        rows before the grouping: beside a grouping nothing is claimed.
        """
        rel, env = self.rel, self.env
        if not rel.generators:
            return
        fps = []
        for x in rel.generators:
            fp, deps = env.value(x)
            fps.append(fp)
            self.add(deps, JOIN)
        self.fp = digest(b"generate", self.fp, *fps)
        if self.known_constraints is not None:
            if rel.grouped:
                self.known_constraints.unknown(env, self.fp)
            else:
                self.known_constraints.generate(
                    env, digest(b"generate", env.generated, *fps), self.fp
                )

    def outputs(self) -> None:
        """The select list, and with it the windows: they run over the rows that are there now."""
        rel, env = self.rel, self.env
        if env.order or env.incidental:
            env.win = in_order(self.fp, env.order, b"")
            env.tied = in_order(self.fp, env.order, env.incidental)
        else:
            env.win = env.tied = self.fp
        if rel.sorts:
            env.sorts = dict.fromkeys(map(env.fp, rel.sorts))
        self.names, self.keys, self.fps, self.deps, self.unlisted = self.linker.outputs(rel, env)
        if rel.grouped:
            for name, how in refused(rel, env, self.grouped_by, self.linker.dialect):
                self.linker.miss(name, how)
        if self.extra:
            self.fps = [digest(self.extra, fp) for fp in self.fps]
            self.unlisted = [ColumnsOfUnreadQuery(r, self.extra) for r in self.unlisted]
        if rel.order or rel.distinct_on or (rel.qualify and rel.wide):
            keys, columns = self.keys, list(zip(self.fps, self.deps, strict=True))
            if _is_behind_set_operation(rel) and env.relations[0] is not None:
                for key, places in env.relations[0].also.items():
                    keys = [*keys, *(key for _ in places)]
                    columns += [columns[i] for i in places]
            env.show(keys, columns)
            if rel.sorts_late:
                env.sorts = dict.fromkeys([*env.sorts, *map(env.fp, rel.sorts_late)])
        if self.known_constraints is not None:
            self.known_constraints.outputs(env, rel.outs, self.fps, rel.wide, rel.collates)
        if rel.windowed:
            # An engine sorts for them, and may leave the rows as they were sorted.
            windows = [
                env.fp(value.e)
                for out in rel.outs
                if type(out) is not int
                and isinstance(value := value_of(out), LoweredExpr)
                and has_window(value.e)
            ]
            if windows:
                env.incidental = digest(b"windows", env.incidental, *windows)

    def qualify(self) -> None:
        """QUALIFY."""
        if self.rel.qualify:
            self.condition(self.rel.qualify)

    def distinct(self) -> None:
        """DISTINCT over all outputs."""
        rel, env = self.rel, self.env
        if not rel.distinct or rel.distinct_on or rel.distinct_on_outs:
            return
        self.fp = digest(b"G", self.fp, *sorted(set(self.fps)), *(r.fp() for r in self.unlisted))
        for d in self.deps:
            self.add(d, GROUP_BY)
        if self.unlisted:  # by columns nobody lists: by all of the rows
            self.add({k: m for k, m in self.rows.items() if k[1] == ROWS}, GROUP_BY)
        if self.known_constraints is not None:
            self.known_constraints.distinct(env, self.fps, not self.unlisted, self.fp)

    def sorting(
        self, keys: Sequence[LoweredExpr], ordinals: Sequence[int], kind: int
    ) -> list[bytes]:
        """What an ORDER BY's items, and its like, mean; positions are those of the outputs.

        DuckDB knows positions beyond these, of what it needs for QUALIFY or to sort by, and does not
        show: only where there is none of it, a position that is not there is broken.
        """
        fingerprints = []
        only_ordinals = len(keys) == (len(ordinals) if kind == SORT else 0)
        all_shown = only_ordinals and not self.unlisted and not self.rel.qualify
        for x in keys:
            fp, deps = self.env.value(x)
            fingerprints.append(fp)
            self.add(deps, kind)
        for ordinal in ordinals:
            if ordinal == ALL_OUTPUTS:
                fingerprints += self.fps
                fingerprints += [r.fp() for r in self.unlisted]
                for some in (*self.deps, *(r.whole() for r in self.unlisted)):
                    self.add(some, kind)
            elif 0 < ordinal <= len(self.fps):
                fingerprints.append(self.fps[ordinal - 1])
                self.add(self.deps[ordinal - 1], kind)
            elif all_shown:
                clause = "ORDER BY" if kind == SORT else "DISTINCT ON"
                self.linker.miss(f"{clause} {ordinal}", "ordinal")
        return fingerprints

    def order(self) -> None:
        """ORDER BY: nobody sees it but what depends on the order of its rows.

        Rows that are equal to it stay as they were.
        """
        rel, env = self.rel, self.env
        if rel.order or rel.order_outs:
            fixed = self.sorting(rel.order, rel.order_outs, SORT)
            env.order = digest(b"order", *([env.order] if env.order else ()), *fixed)

    def distinct_on(self) -> None:
        """DISTINCT ON: of each group of rows the first."""
        rel, env = self.rel, self.env
        if not rel.distinct_on and not rel.distinct_on_outs:
            return
        keys = self.sorting(rel.distinct_on, rel.distinct_on_outs, GROUP_BY)
        self.fp = in_order(digest(b"distinct on", self.fp, *keys), env.order, env.incidental)
        if self.known_constraints is not None:
            outside = any(not 0 < i <= len(self.fps) for i in rel.distinct_on_outs)
            self.known_constraints.cut(env, self.fp, () if outside else keys)

    def limit(self) -> None:
        """LIMIT and OFFSET: which rows these are is up to their order."""
        rel, env = self.rel, self.env
        if not rel.limit:
            return
        parts = []
        for x in rel.limit:
            fp, deps = env.value(x)
            parts.append(fp)
            self.add(deps, FILTER)
        self.fp = in_order(digest(b"limit", self.fp, *parts), env.order, env.incidental)
        if self.known_constraints is not None:
            self.known_constraints.cut(env, self.fp)

    # -- what comes out --

    def fields(self, keys: list[str]) -> dict[str, Fields]:
        """Of the outputs that are a struct, the fields, where they can be seen."""
        rel, env = self.rel, self.env
        fields_of: dict[str, Fields] = {}

        def put(key: str, fields: Fields | None) -> None:
            if fields is not None and key in keys:
                fields_of.setdefault(key, fields)

        for place, (key, out) in enumerate(zip(rel.keys, rel.outs, strict=True)):
            if isinstance(out, Star):
                if out.source == -2:
                    for name, inner in env.fields(out.shape) or ():
                        key = fold(name, True, self.linker.dialect)
                        if key not in out.renames and key not in out.replaces:
                            put(key, inner)
                    continue
                for i in [out.source] if out.source >= 0 else range(len(rel.sources)):
                    relation = env.relations[i] if not out.up else None
                    for key, inner in relation.fields.items() if relation is not None else ():
                        if key not in out.replaces and not env.merges(key, i):
                            put(out.renames.get(key, ["", key])[1], inner)
            elif isinstance(out, int):
                put(key, env.fields(StructShape(out, [], None)))
            elif place in rel.shapes:
                put(key, env.fields(rel.shapes[place]))
            elif isinstance(out, GeneratedColumns):
                for name, inner in env.fields(out.shape) or ():
                    put(fold(name, True, self.linker.dialect), inner)
        return fields_of

    def relation(self) -> Relation:
        """What the SELECT gives."""
        rel, env = self.rel, self.env
        unresolved: list[UnlistedColumns] = []
        if rel.wide:
            unresolved = [
                ColumnsThroughStar(env, i, frozenset(star.except_), unresolved=True)
                for star in rel.outs
                if type(star) is Star and star.up == 0 and star.source >= -1
                for i in ([star.source] if star.source >= 0 else range(len(rel.sources)))
                if relation_of(env, i).unresolved
            ]
        if rel.grouped and not (rel.group or rel.group_outs or rel.group_all or rel.group_tag):
            env.order = env.incidental = b""  # of one row there is none
        names, keys = told_apart(self.names, self.keys, self.linker.dialect)
        relation = Relation(
            names,
            keys,
            self.fps,
            self.deps,
            self.unlisted,
            self.fp,
            self.rows,
            self.side_key,
            (*self.joins, _GENERATED) if env.generated else self.joins,
            env.order,
            unresolved,
            env.incidental,
        )
        has_fields = bool(rel.shapes)
        for source in env.relations:
            has_fields = has_fields or (source is not None and bool(source.fields))
        if keys is not self.keys:
            relation.untold = self.names, self.keys
        if has_fields:
            relation.fields = self.fields(relation.keys)
        if self.known_constraints is not None:
            if rel.extra or rel.hint:
                self.known_constraints.unknown(env, self.fp)
            relation.facts = env.facts
        return relation


_GENERATED: Final = b"generated"
"""Stands among a relation's joins for each SELECT below that makes rows or values of its own."""

_IN_USING: Final = "repeated in USING"
_LEFT_UNSEEN: Final = frozenset({"RIGHT", "FULL", "SEMI", "ANTI"})
"""Words of the joins whose right side may not read the left one."""

_MEETS_ALL: Final = INNER_JOINS | {
    *("LEFT", "RIGHT", "FULL", "LATERAL"),
    *("SEMI", "LEFT SEMI", "ANTI", "LEFT ANTI"),
}
"""Kinds of joins in which each row meets each of the other side, whatever order they come in."""

_Step = Callable[[_SelectClauses], None]
_FIRST: Final[tuple[_Step, ...]] = (
    _SelectClauses.from_,
    _SelectClauses.where,
    _SelectClauses.group,
    _SelectClauses.having,
    _SelectClauses.uncertain,
)
_LAST: Final[tuple[_Step, ...]] = (
    _SelectClauses.uncertain_late,
    _SelectClauses.distinct,
    _SelectClauses.order,
    _SelectClauses.distinct_on,
    _SelectClauses.limit,
)
_WINDOWS: Final[tuple[_Step, ...]] = (_SelectClauses.outputs, _SelectClauses.qualify)
_GENERATE: Final[tuple[_Step, ...]] = (_SelectClauses.generate,)

_EVALUATED: Final[dict[str, tuple[_Step, ...]]] = {
    **dict.fromkeys(("duckdb", "postgres"), (*_FIRST, *_WINDOWS, *_GENERATE, *_LAST)),
    "spark": (*_FIRST, *_GENERATE, *_WINDOWS, *_LAST),
}
"""The order in which an engine evaluates the clauses of a SELECT.

Engines differ in one thing: where a generator in the select list (``unnest``, ``explode``)
multiplies the rows. In DuckDB and Postgres windows and QUALIFY have run by then; in Spark they run
over its rows. Everywhere the groups have been made, and DISTINCT, ORDER BY and LIMIT are to come.
"""
_EVALUATED_SOMEHOW: Final = (*_FIRST, *_GENERATE, *_WINDOWS, *_GENERATE, *_LAST)
"""Of other engines that is not known, so that it is done in both places."""


def _told_from_outside(env: Env, x: LoweredExpr, value: Column, inside: Collection[int]) -> Column:
    """A condition of a join in brackets, told from one on another source of the same relation.

    Sources outside are told apart among themselves, and so are those inside.
    """
    refs = [env.refs[i] for i in x.deps]
    outside = sorted(r.key for r in refs if r.up == 0 <= r.source and r.source not in inside)
    if not outside:
        return value
    return digest(b"outside", value[0], *(key.encode() for key in outside)), value[1]


def _in_order(items: Sequence[FromItem]) -> Iterable[int]:
    for item in items:
        if item.nested:
            yield from _in_order(item.nested)
        else:
            yield item.source


def _may_not_group(rel: Select) -> bool:
    """Whether GROUP BY ALL may make no groups at all: DuckDB groups by nothing that is constant."""
    values = [value_of(out) for out in rel.outs]
    return bool(rel.uncertain) or not any(
        value is None or isinstance(value, int) or (value.deps and not has_aggregate(value.e))
        for value in values
    )


def _is_behind_set_operation(rel: Select) -> bool:
    """Whether this is all of a set operation's columns: ORDER BY sees the names of each branch."""
    if len(rel.outs) != 1 or len(rel.sources) != 1 or type(rel.sources[0].rel) is not SetOp:
        return False
    star = rel.outs[0]
    return type(star) is Star and star.source < 0 and not star.except_ and star.struct is None


def _aggregated_alias(rel: Select, ref: Ref) -> bool:
    """Whether a cached reference may stand for an output computed before the grouping was known."""
    return ref.source == -1 and ref.outputs > 0 and rel.aggregated


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
