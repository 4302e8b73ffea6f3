"""A lowered query and its parents' columns -> output columns, fingerprints and dependencies.

Linking is where names meet schemas. It never raises on what a query says: a name that cannot be
found, or that two sources have, is listed in `Linked.missing`, and the answer stays at least as
wide as the true one. Each clause has a module in `flow.clauses`; `flow.scope` looks up the names of
one SELECT. The rules that they cite are those of docs/architecture.md.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import TYPE_CHECKING

from dbt_ripple.flow.alias_resolution import (
    LOOKS_FARTHER,
    ROW_FIRST,
    ROW_LAST,
    SUBQUERY,
    resolution,
)
from dbt_ripple.flow.canonical_order import unite
from dbt_ripple.flow.clauses.pivot import pivot, unpivot
from dbt_ripple.flow.clauses.select import link_select
from dbt_ripple.flow.clauses.set_operations import set_operation
from dbt_ripple.flow.engine_checks import NameProblem
from dbt_ripple.flow.fingerprint import digest
from dbt_ripple.flow.identifiers import folds
from dbt_ripple.flow.ir import (
    JOIN,
    TRANSFORMATION,
    Cte,
    CteRef,
    Generator,
    Lowered,
    Pivot,
    Rel,
    Select,
    SetOp,
    Table,
    Unpivot,
    Values,
    With,
)
from dbt_ripple.flow.relation import OutputColumn, Relation, RowSet, in_order, merge, through
from dbt_ripple.flow.scope import Env, StructFields
from dbt_ripple.reasons import Reason

if TYPE_CHECKING:
    from dbt_ripple.flow.row_constraints import KnownConstraints


class Linked:
    """A query, linked.

    Attributes:
        relation: its outputs and its row set.
        missing: names it reads that do not exist or are ambiguous, in order (rule 5).
        unknown: why some of its columns cannot be known by position, or None.
        called: what its FROM clauses call, and which columns are ``varying`` (see `flow.ir.Lowered`).
        problems: why each missing name could not be taken; empty where the query was not linked
            just now.
    """

    __slots__ = ("called", "missing", "problems", "relation", "unknown", "varying")

    def __init__(
        self,
        relation: Relation,
        missing: list[str],
        unknown: Reason | None,
        called: Sequence[str] = (),
        problems: dict[str, set[NameProblem]] | None = None,
        varying: Sequence[str] = (),
    ) -> None:
        self.relation = relation
        self.missing = missing
        self.unknown = unknown
        self.called = called
        self.problems = problems or {}
        self.varying = varying


def link(
    lowered: Lowered,
    table: Callable[[str, str], Relation],
    dialect: str,
    known_constraints: KnownConstraints | None = None,
    *,
    in_any_order: bool = False,
    opaque_names: Collection[str] = (),
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
        opaque_names: names, as `Linked.missing` has them, that may mean anything: what they are
            part of depends on all that the query reads.

    Returns:
        The outputs with fingerprints and dependencies. Never raises on what the query says.
    """
    linker = _Linker(table, dialect, lowered.ctes, known_constraints, in_any_order=in_any_order)
    if opaque_names:
        linker.opaque_names = opaque_names
        linker.all_read = [table(key, key) for key in lowered.tables]
    assert lowered.rel is not None
    relation = linker.rel(lowered.rel, None)
    return Linked(
        relation,
        list(linker.missing),
        linker.unknown,
        lowered.called,
        linker.missing,
        lowered.varying,
    )


class _Linker:
    """What is linked of one query so far: `flow.scope.QueryLinker`."""

    def __init__(
        self,
        table: Callable[[str, str], Relation],
        dialect: str,
        ctes: int,
        known_constraints: KnownConstraints | None,
        *,
        in_any_order: bool,
    ) -> None:
        self.table = table
        self.known_constraints = known_constraints
        self.dialect = dialect
        self.in_any_order = in_any_order
        self.folds = folds(dialect)
        self.in_subquery = resolution(dialect)[SUBQUERY]
        self.looks_farther = dialect in LOOKS_FARTHER
        self.row_first = dialect in ROW_FIRST
        self.row_last = dialect in ROW_LAST
        self.ctes: list[Relation | None] = [None] * ctes
        self.missing: dict[str, set[NameProblem]] = {}
        self.unknown: Reason | None = None
        self.correlated = 0
        self.opaque_names: Collection[str] = ()
        self.all_read: Sequence[Relation] = ()

    def miss(self, name: str, problem: NameProblem = NameProblem.ABSENT) -> None:
        self.missing.setdefault(name, set()).add(problem)

    def rel(self, rel: Rel, env: Env | None) -> Relation:
        if type(rel) is Select:
            return link_select(self, rel, env)
        if type(rel) is Table:
            relation = self.table(rel.key, rel.name)
            return _with_extra(relation, rel.extra) if rel.extra else relation
        if type(rel) is CteRef:
            cte = self.ctes[rel.index]
            assert cte is not None
            return cte
        if type(rel) is With:
            return self._with(rel, env)
        if type(rel) is SetOp:
            united = unite(self, rel, env) if self.in_any_order else None
            return united if united is not None else set_operation(self, rel, env)
        if type(rel) is Values:
            return self._values(rel, env)
        if type(rel) is Pivot:
            return pivot(self, rel, env)
        if type(rel) is Unpivot:
            return unpivot(self, rel, env)
        assert type(rel) is Generator and env is not None
        return _generator(rel, env)

    def _with(self, rel: With, env: Env | None) -> Relation:
        for cte in rel.ctes:
            if cte.recursive:
                relation = self._recursive(cte, env)
            else:
                relation = self.rel(cte.rel, env)
                if cte.columns:
                    relation = relation.renamed(cte.columns, self.dialect)
            self.ctes[cte.index] = relation
        return self.rel(rel.body, env)

    def _recursive(self, cte: Cte, env: Env | None) -> Relation:
        """A recursive CTE: every column changes with the whole of it; dependencies to a fixpoint."""
        first: Rel = cte.rel
        while isinstance(first, (SetOp, With)):
            first = first.branches[0] if isinstance(first, SetOp) else first.body
        missing, unknown = dict(self.missing), self.unknown
        # One that starts with itself has no columns; an engine that looks into it refuses it.
        nothing = digest(b"recursive")
        self.ctes[cte.index] = Relation([], RowSet.unjoined(nothing, {}, nothing))
        anchor = self.rel(first, env)
        if cte.columns:
            anchor = anchor.renamed(cte.columns, self.dialect)
        side_key = digest(b"recursive", anchor.rows.side_key)
        columns = [
            OutputColumn(c.name, c.key, digest(b"recursive", str(i).encode()), c.deps)
            for i, c in enumerate(anchor.columns)
        ]
        rows = anchor.rows.deps
        while True:
            self.missing, self.unknown = dict(missing), unknown
            self.ctes[cte.index] = Relation(
                columns, RowSet.unjoined(side_key, rows, side_key), anchor.unlisted
            )
            result = self.rel(cte.rel, env)
            more_deps = [dict(column.deps) for column in columns]
            for deps, more in zip(more_deps, result.columns, strict=False):
                merge(deps, more.deps)
            more_rows = dict(rows)
            merge(more_rows, result.rows.deps)
            if more_rows == rows and more_deps == [column.deps for column in columns]:
                break
            rows = more_rows
            columns = [
                OutputColumn(c.name, c.key, c.fp, deps)
                for c, deps in zip(columns, more_deps, strict=True)
            ]
        whole = digest(
            b"recursive", result.rows.fp, *result.fps, *(r.fp() for r in result.unlisted)
        )
        whole = in_order(whole, result.rows.order, result.rows.incidental)
        columns = [
            OutputColumn(c.name, c.key, digest(whole, str(i).encode()), c.deps)
            for i, c in enumerate(columns)
        ]
        return Relation(columns, RowSet.unjoined(whole, rows, side_key), anchor.unlisted)

    def _values(self, rel: Values, env: Env | None) -> Relation:
        scope = Env(self, env, rel.refs, rel.subs, [])
        columns = [
            OutputColumn(name, key, *scope.value(x))
            for name, key, x in zip(rel.names, rel.keys, rel.columns, strict=True)
        ]
        side_key = digest(b"values", str(rel.count).encode())
        return Relation(columns, RowSet.unjoined(side_key, {}, side_key))


def _with_extra(relation: Relation, extra: bytes) -> Relation:
    """A table with a sample or a version: other rows of the same columns."""
    rows = relation.rows
    fp = in_order(digest(b"table", rows.fp, extra), rows.order, rows.incidental)
    other = Relation(
        relation.columns, rows.after(fp, rows.deps), relation.unlisted, relation.unresolved
    )
    other.fields = relation.fields
    return other


def _generator(rel: Generator, env: Env) -> Relation:
    """A function in FROM that makes rows of a value."""
    fp, deps = env.value(rel.x)
    rows = RowSet.unjoined(digest(b"rows", fp), through(JOIN, deps), digest(b"generator"))
    direct = through(TRANSFORMATION, deps)
    if rel.names is None or rel.keys is None:
        return Relation([], rows, [StructFields((fp, direct))])
    of_each = [through(TRANSFORMATION, env.deps_of(x)) for x in rel.each]
    columns = [
        OutputColumn(
            name,
            key,
            digest(b"generated", str(i).encode(), fp),
            of_each[i] if i < len(of_each) else direct,
        )
        for i, (name, key) in enumerate(zip(rel.names, rel.keys, strict=True))
    ]
    return Relation(columns, rows, [StructFields((fp, direct))] if rel.by_field else [])
