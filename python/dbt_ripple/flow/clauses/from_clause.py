"""FROM and its joins (rules 1, 2 and 14)."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Final, NamedTuple

from dbt_ripple.flow.alias_resolution import COMMA_ENDS_JOINS, COMMA_IS_A_JOIN, LATERAL_UNSAID
from dbt_ripple.flow.canonical_order import arrange
from dbt_ripple.flow.engine_checks import NameProblem
from dbt_ripple.flow.fingerprint import compared, digest, where
from dbt_ripple.flow.ir import (
    DIRECT,
    INNER_JOINS,
    JOIN,
    TRANSFORMATION,
    FromItem,
    LoweredExpr,
)
from dbt_ripple.flow.relation import (
    Column,
    Deps,
    Relation,
    RowSet,
    beside,
    combine,
    compose,
    in_order,
    merge,
    through,
    union,
)
from dbt_ripple.flow.scope import Env, QueryLinker, relation_of
from dbt_ripple.reasons import Code

_IN_USING: Final = NameProblem.REPEATED_IN_USING
_LEFT_UNSEEN: Final = frozenset({"RIGHT", "FULL", "SEMI", "ANTI"})
"""Words of the joins whose right side may not read the left one."""

_MEETS_ALL: Final = INNER_JOINS | {
    *("LEFT", "RIGHT", "FULL", "LATERAL"),
    *("SEMI", "LEFT SEMI", "ANTI", "LEFT ANTI"),
}
"""Kinds of joins in which each row meets each of the other side, whatever order they come in."""


class Joined(NamedTuple):
    """What a FROM tree gives: its rows, and its sources in the order in which they were joined."""

    rows: RowSet
    members: list[int]


def link_from(
    linker: QueryLinker, items: Sequence[FromItem], env: Env, *, in_brackets: bool = False
) -> Joined:
    """Link a left-deep FROM tree: the kinds and conditions of its joins, and each side's N."""
    known = linker.known_constraints
    if not items:
        rows_fp = digest(b"one row")
        if known is not None:
            env.facts = known.one_row(rows_fp)
        return Joined(RowSet(rows_fp, {}, b"", ()), [])
    arranged: dict[int, Relation] = {}
    mark = b""
    if linker.in_any_order and len(items) > 1:
        items, arranged, mark = arrange(linker, items, env)
    first = _side(linker, items[0], env, arranged)
    if len(items) == 1:
        return first
    tree = _FromTree(linker, env, first, arranged, in_brackets=in_brackets)
    for item in items[1:]:
        tree.join(item)
    return tree.joined(mark)


def _side(linker: QueryLinker, item: FromItem, env: Env, arranged: dict[int, Relation]) -> Joined:
    """What a step of a FROM tree brings: a source, or a join in brackets."""
    if item.nested:
        return link_from(linker, item.nested, env, in_brackets=True)
    source = env.sources[item.source]
    relation = arranged.get(item.source)
    if relation is None:
        joining = env.joining
        if source.in_brackets and linker.dialect not in LATERAL_UNSAID:
            everything = range(len(env.sources))
            env.joining = (*joining, (NameProblem.BESIDE, everything, ()))
        relation = linker.rel(source.rel, env)
        env.joining = joining
        if source.columns:
            relation = relation.renamed(source.columns, linker.dialect)
    env.relations[item.source] = relation
    if linker.known_constraints is not None:
        env.facts = linker.known_constraints.of(relation)
    return Joined(relation.rows, [item.source])


class _FromTree:
    """What is joined so far, from the left.

    Attributes:
        behind_comma: where among the members those begin that stand behind the last comma.
        behind_cross: the same, behind the last comma or CROSS JOIN.
        facts: what is known of the rows, where that is to be used.
    """

    def __init__(
        self,
        linker: QueryLinker,
        env: Env,
        first: Joined,
        arranged: dict[int, Relation],
        *,
        in_brackets: bool,
    ) -> None:
        self.linker = linker
        self.env = env
        self.arranged = arranged
        self.in_brackets = in_brackets
        rows = first.rows
        self.fp, self.deps, self.side_key, self.joins = (
            rows.fp,
            dict(rows.deps),
            rows.side_key,
            rows.joins,
        )
        self.order, self.incidental = rows.order, rows.incidental
        self.members = list(first.members)
        self.behind_comma = self.behind_cross = 0
        self.facts = env.facts if linker.known_constraints is not None else None

    def joined(self, mark: bytes) -> Joined:
        """All that was joined; ``mark`` tells apart in which order that was, if it is not as written."""
        if self.facts is not None:
            self.env.facts = self.facts
        incidental = digest(mark, self.incidental) if mark else self.incidental
        rows = RowSet(self.fp, self.deps, self.side_key, self.joins, self.order, incidental)
        return Joined(rows, self.members)

    def join(self, item: FromItem) -> None:
        """Join the next step."""
        linker, env = self.linker, self.env
        correlated, joining = linker.correlated, env.joining
        if not _LEFT_UNSEEN.isdisjoint(item.kind.split()):
            unseen, others = self.members[self.behind_cross :], self.members[: self.behind_cross]
            env.joining = (*joining, (NameProblem.OF_THE_LEFT_SIDE, unseen, others))
        right, side = _side(linker, item, env, self.arranged)
        env.joining = joining
        token = right.side_key + str(self.joins.count(right.side_key)).encode()
        if linker.known_constraints is not None or linker.in_any_order:
            # A relation that is the same on both sides brings columns with tokens of joins above
            # it that are not among `joins` here (`graph.relations.unchanged_relation`).
            token += b"compared"
        for i in side:
            env.wraps[i] = (*env.wraps[i], token)
        conditions = self._conditions(item, side)
        semi = "SEMI" in item.kind or "ANTI" in item.kind
        if semi:
            for i in side:
                env.visible[i] = False
            env.cache = [None] * len(env.refs)  # a bare name now means another side
        for k, mask in right.deps.items():
            kept = mask & ~DIRECT
            if mask & DIRECT:
                kept |= JOIN if semi else compose(TRANSFORMATION, mask & DIRECT)
            self.deps[k] = self.deps.get(k, 0) | kept
        for _, d in conditions:
            merge(self.deps, through(JOIN, d))
        self._join_rows(item.kind, right.fp, sorted(fp for fp, _ in conditions))
        if not semi:
            self.order = beside(self.order, token, right.order)
            self.incidental = beside(self.incidental, token, right.incidental)
        if item.kind not in _MEETS_ALL:  # POSITIONAL, ASOF: which rows meet is up to their order
            self.fp = in_order(self.fp, self.order, self.incidental)
            if linker.correlated != correlated or item.source in self.arranged:
                self._meet_correlated(side)
        is_lookup = self._join_facts(item, conditions, side, token)
        self.members += side
        if not is_lookup:  # rule 14: a lookup is no join as far as the rows go
            self.side_key = digest(b"join", self.side_key, right.side_key)
            self.joins = (*self.joins, right.side_key)

    def _join_rows(self, kind: str, right_fp: bytes, conditions: list[bytes]) -> None:
        """``N`` of the join; ON of an inner join is WHERE."""
        inner = kind in INNER_JOINS
        tag = b"INNER" if inner else kind.encode()
        self.fp = digest(b"join", tag, b"", self.fp, right_fp, *(() if inner else conditions))
        for condition in conditions if inner else ():
            self.fp = where(self.fp, condition)

    def _meet_correlated(self, side: Sequence[int]) -> None:
        """Which rows meet is up to what the right side reads of the left one, too.

        DuckDB takes any number of rows of a correlated side of an ASOF join.
        """
        for relation in (relation_of(self.env, i) for i in side):
            self.fp = digest(b"correlated", self.fp, relation.all_fp())
            for column in relation.columns:
                merge(self.deps, through(JOIN, column.deps))

    def _join_facts(
        self, item: FromItem, conditions: Sequence[Column], side: Sequence[int], token: bytes
    ) -> bool:
        """Note what is known of the join, where that is to be used; whether it is a lookup."""
        known = self.linker.known_constraints
        if known is None or self.facts is None:
            return False
        env, plain = self.env, self.fp
        is_lookup: bool
        self.facts, is_lookup = known.join(
            env, item, conditions, self.facts, env.facts, side, self.members, token, plain
        )
        self.fp = self.facts.rows.fp
        if is_lookup:
            self.incidental = digest(b"lookup", self.incidental, plain)
        return is_lookup

    # -- conditions --

    def _conditions(self, item: FromItem, side: list[int]) -> list[Column]:
        """The conditions of a step: of ON, or what USING and NATURAL make equal."""
        env = self.env
        conditions = [env.value(x) for x in item.conds] if not item.natural else []
        if self.in_brackets:
            inside = (*self.members, *side)
            conditions = [
                _condition_in_brackets(env, x, value, inside)
                for x, value in zip(item.conds, conditions, strict=False)
            ]
        if item.kind == "CROSS" and self.linker.dialect not in COMMA_IS_A_JOIN:
            self.behind_cross = len(self.members)
            if item.comma:
                self.behind_comma = self.behind_cross
        using = item.using
        if item.natural:
            using = self._natural_keys(self.members[self.behind_comma :], side)
            conditions += self._natural_besides(side)
        conditions += [self._using(key, side, item.kind) for key in using]
        if "ASOF" in item.kind and using:  # the last of them is no equality
            fp, deps = conditions[-1]
            conditions[-1] = digest(b"nearest", fp), deps
        return conditions

    def _natural_keys(self, left: Sequence[int], right: Sequence[int]) -> list[str]:
        """The columns both sides of a NATURAL join have, as far as they are known."""
        env = self.env
        left = [i for i in left if env.visible[i]]
        if any(relation_of(env, i).unlisted for i in (*left, *right)):
            self.linker.unknown = self.linker.unknown or Code.NATURAL_JOIN_UNKNOWN()
            self._may_merge(left, right)
            self._may_merge(right, left)
        right_keys = {k for i in right for k in relation_of(env, i).columns_by_key()}
        return list(
            dict.fromkeys(
                k for i in left for k in relation_of(env, i).columns_by_key() if k in right_keys
            )
        )

    def _natural_besides(self, side: Sequence[int]) -> list[Column]:
        """Of a NATURAL join the conditions that it may have besides what both sides show."""
        env, members, behind = self.env, self.members, self.behind_comma
        farther = () if self.linker.dialect in COMMA_ENDS_JOINS else members[:behind]
        conditions: list[Column] = []
        for key in self._natural_keys(farther, side) if farther else ():
            # It may be a comma that is looked behind, or a JOIN without a condition.
            columns = [env.listed_column(i, key) for i in (*farther, *side)]
            fp, deps = combine([column for column in columns if column is not None])
            conditions.append((digest(b"natural", fp), deps))
        relations = [relation_of(env, i) for i in (*farther, *members[behind:], *side)]
        if any(r.unlisted for r in relations):
            # They may share any column: the condition is all of both sides.
            whole: Deps = {}
            for r in relations:
                merge(whole, r.rows.deps)
                for column in r.columns:
                    merge(whole, column.deps)
            conditions.append((digest(b"natural", *(r.all_fp() for r in relations)), whole))
        return conditions

    def _may_merge(self, left: Sequence[int], right: Sequence[int]) -> None:
        """Columns of one side of a NATURAL join that the other, not all known, may have too."""
        env = self.env
        for i in left:
            for one in relation_of(env, i).columns:
                others = [
                    column
                    for j in right
                    if relation_of(env, j).unlisted
                    and (column := env.column(j, one.key, one.key)) is not None
                ]
                own = env.listed_column(i, one.key)
                if others and own is not None:
                    env.merged[one.key] = (one.name, combine([own, *others]))
                    env.merged_of.setdefault(one.key, set()).update(left, right)

    def _using(self, key: str, right: list[int], kind: str) -> Column:
        """One column of USING: the condition it makes, and the merged column it leaves.

        It is looked for behind the last comma (but see `COMMA_IS_A_JOIN`). A CROSS JOIN is as a comma
        here; of one whose two sides have the column engines say it is ambiguous.
        """
        linker, env = self.linker, self.env
        left, behind = self.members, self.behind_cross
        nearest = [i for i in left[behind:] if env.visible[i]]
        if behind and any(env.column(i, key, key) is not None for i in nearest):
            left = nearest
        elif linker.dialect in COMMA_IS_A_JOIN:  # the first of that name, and no word of the others
            left = next(([i] for i in nearest if env.listed_column(i, key) is not None), left)
        merged_of = env.merged_of.setdefault(key, set())
        if merged_of and merged_of.isdisjoint(left):
            linker.unknown = linker.unknown or Code.USING_AMBIGUOUS(column=key)
        if key in env.merged:
            a: Column | None = env.merged[key][1]
        else:
            left = [i for i in left if env.visible[i]]
            merged_of.update(left)
            a = self._column_of_side(key, left)
        b = self._column_of_side(key, right)
        if a is None or b is None:
            linker.miss(key)
            a = a or env.lost_in(key, left)
            b = b or env.lost_in(key, right)
        if "FULL" in kind:
            merged: Column = (
                digest(b"coalesce", a[0], b[0]),
                union(through(TRANSFORMATION, a[1]), through(TRANSFORMATION, b[1])),
            )
        else:
            merged = b if "RIGHT" in kind else a
        shown = (relation_of(env, i).named(key) for i in (*left, *right))
        name = next((column.name for column in shown if column is not None), key)
        env.merged[key] = (name, merged)
        merged_of.update(right)
        env.cache = [None] * len(env.refs)  # the bare name now means the merged column
        return compared(b"EQ", a[0], b[0]), union(a[1], b[1])

    def _column_of_side(self, key: str, side: Sequence[int]) -> Column | None:
        """The column that USING means on one side: a listed one, or else any that may be it."""
        env = self.env
        columns = [c for i in side if (c := env.listed_column(i, key, _IN_USING)) is not None]
        columns = columns or [c for i in side if (c := env.column(i, key, key)) is not None]
        return combine(columns) if columns else None


def _condition_in_brackets(
    env: Env, x: LoweredExpr, value: Column, inside: Collection[int]
) -> Column:
    """A condition of a join in brackets, told from one on another source of the same relation.

    Sources outside are told apart among themselves, and so are those inside.
    """
    refs = [env.refs[i] for i in x.deps]
    outside = sorted(r.key for r in refs if r.up == 0 <= r.source and r.source not in inside)
    if not outside:
        return value
    return digest(b"outside", value[0], *(key.encode() for key in outside)), value[1]
