"""One SELECT: its clauses, in the order in which the engine evaluates them (rule 2)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Final

from dbt_ripple.flow.clauses.from_clause import link_from
from dbt_ripple.flow.clauses.group_by import group_by, refused
from dbt_ripple.flow.clauses.select_list import select_list
from dbt_ripple.flow.clauses.set_operations import GENERATED
from dbt_ripple.flow.engine_checks import NameProblem
from dbt_ripple.flow.fingerprint import digest, where
from dbt_ripple.flow.identifiers import fold
from dbt_ripple.flow.ir import (
    AGGREGATION,
    ALL_OUTPUTS,
    DIRECT,
    FILTER,
    GROUP_BY,
    JOIN,
    SORT,
    TRANSFORMATION,
    GeneratedColumns,
    LoweredExpr,
    Ref,
    Select,
    SetOp,
    Star,
    StructShape,
)
from dbt_ripple.flow.relation import (
    ROWS,
    Deps,
    OutputColumn,
    Relation,
    RowSet,
    UnlistedColumns,
    columns_with_unique_names,
    compose,
    in_order,
    merge,
    through,
)
from dbt_ripple.flow.scope import (
    ColumnsOfUnreadQuery,
    ColumnsThroughStar,
    Env,
    QueryLinker,
    has_window,
    relation_of,
    value_of,
)

if TYPE_CHECKING:
    from dbt_ripple.flow.data_types import Fields


def link_select(linker: QueryLinker, rel: Select, parent: Env | None) -> Relation:
    """What a SELECT gives."""
    clauses = SelectClauses(linker, rel, Env(linker, parent, rel.refs, rel.subs, rel.sources, rel))
    for clause in _EVALUATED.get(linker.dialect, _EVALUATED_SOMEHOW):
        clause(clauses)
    return clauses.relation()


class SelectClauses:
    """The rows of one SELECT, as its clauses make them: each takes what the ones before it left.

    What is known of the rows (`env.facts`) is changed by the same step that changes ``N``, so that
    nothing is claimed of rows that a later clause repeats. The order of the steps is `_EVALUATED`.

    Attributes:
        fp: ``N`` so far.
        rows: what the row set depends on.
        columns, unlisted: the outputs, once the select list is evaluated.
    """

    __slots__ = (
        *("columns", "env", "extra", "fp", "grouped_by", "joins", "known_constraints", "linker"),
        *("own", "rel", "rows", "side_key", "unlisted"),
    )

    side_key: bytes
    joins: tuple[bytes, ...]
    columns: list[OutputColumn]
    unlisted: list[UnlistedColumns]
    grouped_by: frozenset[bytes]

    def __init__(self, linker: QueryLinker, rel: Select, env: Env) -> None:
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

    def fps(self) -> list[bytes]:
        """``V`` of the outputs that are known by name."""
        return [column.fp for column in self.columns]

    def condition(self, conditions: Sequence[LoweredExpr]) -> None:
        """Keep the rows that meet all of these. One that may fail is asked of those that are left by then."""
        for x in conditions:
            fp, deps = self.env.value(x)
            self.fp = where(self.fp, digest(b"asked of", self.fp, fp) if x.may_fail else fp)
            self.add(deps, FILTER)
            if self.known_constraints is not None:
                self.known_constraints.where(self.env, x, fp, self.fp)

    # -- the steps --

    def from_(self) -> None:
        """FROM, joins, laterals; and clauses nobody knows more of than that they say something."""
        rel, env = self.rel, self.env
        env.in_from = True
        rows, _ = link_from(self.linker, rel.items, env)
        env.in_from = False
        self.fp, self.rows, self.side_key, self.joins = (
            rows.fp,
            rows.deps,
            rows.side_key,
            rows.joins,
        )
        env.order, env.incidental = rows.order, rows.incidental
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
            below = str(self.joins.count(GENERATED)).encode()
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
        self.fp, keys = group_by(self.linker, rel, env, self.fp, self.add)
        env.incidental = digest(b"grouped", env.incidental, *keys)
        self.grouped_by = env.keys | env.inside_keys
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
        self.env.keys = self.env.inside_keys = frozenset()

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
                fps += [relation.rows.fp, *relation.fps]
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
        self.columns, self.unlisted = select_list(self.linker, rel, env)
        if rel.grouped:
            for name, problem in refused(rel, env, self.grouped_by, self.linker.dialect):
                self.linker.miss(name, problem)
        as_written = self.fps()
        marks = [self.extra] if self.extra else []
        if rel.group_tag:
            # A key is NULL in the sets that leave it out, wherever the select list has it: as a
            # constant, or inside of another expression, too.
            marks.append(digest(b"sets", rel.group_tag))
            if len(set(as_written)) < len(as_written):
                # What two keys are, written otherwise or as positions, is NULL by its own place.
                self.columns = [
                    OutputColumn(c.name, c.key, digest(b"item", str(i).encode(), c.fp), c.deps)
                    if as_written.count(c.fp) > 1
                    else c
                    for i, c in enumerate(self.columns)
                ]
        for mark in marks:
            self.columns = [
                OutputColumn(c.name, c.key, digest(mark, c.fp), c.deps) for c in self.columns
            ]
            self.unlisted = [ColumnsOfUnreadQuery(r, mark) for r in self.unlisted]
        if rel.order or rel.distinct_on or (rel.qualify and rel.wide):
            keys, columns = [c.key for c in self.columns], [c.value for c in self.columns]
            if _is_behind_set_operation(rel) and env.relations[0] is not None:
                for key, places in env.relations[0].also.items():
                    keys = [*keys, *(key for _ in places)]
                    columns += [columns[i] for i in places]
            env.show(keys, columns)
            if rel.sorts_late:
                env.sorts = dict.fromkeys([*env.sorts, *map(env.fp, rel.sorts_late)])
        if self.known_constraints is not None:
            self.known_constraints.outputs(env, rel.outs, as_written, rel.wide, rel.collates)
            if rel.group_tag:
                self.known_constraints.in_sets(env, as_written, self.fps())
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
        fps = self.fps()
        # DuckDB tells rows apart by as many columns as the select list has items, from the first,
        # where one of the items is a struct that UNNEST makes columns of.
        in_order_of_items = any(
            isinstance(out, GeneratedColumns) and (out.names is None or len(out.names) > 1)
            for out in rel.outs
        )
        keys = [b"in order", *fps] if in_order_of_items else sorted(set(fps))
        env.incidental = digest(b"distinct", env.incidental, *fps)
        for column in self.columns:
            self.add(column.deps, GROUP_BY)
        if self.unlisted:  # by columns nobody lists: by all of the rows
            self.add({k: m for k, m in self.rows.items() if k[1] == ROWS}, GROUP_BY)
        known, complete = self.known_constraints, not self.unlisted and not in_order_of_items
        if known is not None and complete and known.are_distinct(env, fps):
            return
        self.fp = digest(b"G", self.fp, *keys, *(r.fp() for r in self.unlisted))
        if known is not None:
            known.distinct(env, fps, complete, self.fp)

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
                fingerprints += self.fps()
                fingerprints += [r.fp() for r in self.unlisted]
                of_columns = [column.deps for column in self.columns]
                for some in (*of_columns, *(r.whole() for r in self.unlisted)):
                    self.add(some, kind)
            elif 0 < ordinal <= len(self.columns):
                column = self.columns[ordinal - 1]
                fingerprints.append(column.fp)
                self.add(column.deps, kind)
            elif all_shown:
                clause = "ORDER BY" if kind == SORT else "DISTINCT ON"
                self.linker.miss(f"{clause} {ordinal}", NameProblem.POSITION)
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
            outside = any(not 0 < i <= len(self.columns) for i in rel.distinct_on_outs)
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
        columns = columns_with_unique_names(self.columns, self.linker.dialect)
        joins = (*self.joins, GENERATED) if env.generated else self.joins
        rows = RowSet(self.fp, self.rows, self.side_key, joins, env.order, env.incidental)
        relation = Relation(columns, rows, self.unlisted, unresolved)
        has_fields = bool(rel.shapes)
        for source in env.relations:
            has_fields = has_fields or (source is not None and bool(source.fields))
        if columns is not self.columns:
            relation.as_named = self.columns
        if has_fields:
            relation.fields = self.fields(relation.keys)
        if self.known_constraints is not None:
            if rel.extra or rel.hint:
                self.known_constraints.unknown(env, self.fp)
            relation.facts = env.facts
        return relation


_Step = Callable[[SelectClauses], None]
_FIRST: Final[tuple[_Step, ...]] = (
    SelectClauses.from_,
    SelectClauses.where,
    SelectClauses.group,
    SelectClauses.having,
    SelectClauses.uncertain,
)
_LAST: Final[tuple[_Step, ...]] = (
    SelectClauses.uncertain_late,
    SelectClauses.distinct,
    SelectClauses.order,
    SelectClauses.distinct_on,
    SelectClauses.limit,
)
_WINDOWS: Final[tuple[_Step, ...]] = (SelectClauses.outputs, SelectClauses.qualify)
_GENERATE: Final[tuple[_Step, ...]] = (SelectClauses.generate,)

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


def _is_behind_set_operation(rel: Select) -> bool:
    """Whether this is all of a set operation's columns: ORDER BY sees the names of each branch."""
    if len(rel.outs) != 1 or len(rel.sources) != 1 or type(rel.sources[0].rel) is not SetOp:
        return False
    star = rel.outs[0]
    return type(star) is Star and star.source < 0 and not star.except_ and star.struct is None


def _aggregated_alias(rel: Select, ref: Ref) -> bool:
    """Whether a cached reference may stand for an output computed before the grouping was known."""
    return ref.source == -1 and ref.outputs > 0 and rel.aggregated
