"""Calls of functions: what a name does on this engine, methods, generators and volatile functions."""

from __future__ import annotations

from functools import lru_cache
from typing import Any, Final

from sqlglot import exp

from dbt_ripple.flow.fingerprint import digest
from dbt_ripple.flow.function_marks import kind_of_mark
from dbt_ripple.flow.functions import BUILT_IN_SCHEMAS, VOLATILE_NAMES, functions
from dbt_ripple.flow.identifiers import lowered
from dbt_ripple.flow.ir import DIRECT, EXISTS, TRANSFORMATION, Expr, LoweredExpr, Ref
from dbt_ripple.flow.lowering.column_references import ColumnReferences
from dbt_ripple.flow.lowering.operators import Conditionals
from dbt_ripple.flow.lowering.parse_tree import (
    AROUND_CALLS,
    GENERATOR_TYPES,
    IN_ANY_ORDER,
    called_on,
)
from dbt_ripple.flow.lowering.scope import masked, transformed
from dbt_ripple.flow.lowering.walk import GENERIC, Rule, merkle
from dbt_ripple.flow.reading.dialects import function_name
from dbt_ripple.flow.reading.refusals import Unsupported
from dbt_ripple.flow.relation import compose

_NAMED_CALLS: Final = (exp.Anonymous, exp.AnonymousAggFunc, exp.ParameterizedAgg)
_OF_AGGREGATES: Final = (
    exp.Distinct, exp.Order, exp.Limit, exp.HavingMax, exp.IgnoreNulls, exp.RespectNulls,
)  # fmt: skip
_HOLDS_NAMES: Final = (
    exp.Anonymous, exp.Column, exp.DataType, exp.Dot, exp.Lambda, exp.PropertyEQ,
)  # fmt: skip
"""Where a name is not that of a column."""
_METHODS: Final = ("duckdb", "tsql", "fabric", "oracle")
"""Dialects where ``column.function()`` is a call on a column."""


def _only_of_aggregates(call: Any) -> bool:
    """Whether a call says what only an aggregate can be told: DISTINCT, ORDER BY, IGNORE NULLS."""
    call = call.args["expression"] if isinstance(call, exp.Dot) else call
    arguments = [call.args.get("this"), call.args.get("expression"), *call.expressions]
    return any(isinstance(argument, _OF_AGGREGATES) for argument in arguments)


def _path(node: Any) -> list[Any] | None:
    """The names of ``a.b.c``; None where it is something else."""
    parts: list[Any] = []
    while isinstance(node, exp.Dot) and isinstance(node.expression, exp.Identifier):
        parts.append(node.expression)
        node = node.this
    if not isinstance(node, exp.Identifier):
        return None
    return [node, *reversed(parts)]


def _columns_again(node: Any) -> Any:
    """The column that a name is, in an expression of which sqlglot made names only."""
    if isinstance(node, exp.Dot) and (path := _path(node)) is not None:
        names = zip(("this", "table", "db", "catalog"), reversed(path[:4]), strict=False)
        return exp.Column(**dict(names))
    if not isinstance(node, exp.Identifier) or isinstance(node.parent, _HOLDS_NAMES):
        return node
    return exp.Column(this=node)


@lru_cache(maxsize=10_000)
def _generates(dialect: str, t: type[Any], name: str | None) -> bool:
    """Whether a call of this class under this name gives several rows for one."""
    what = functions(dialect).kind(lowered[str(name or "")])
    return what == "generator" or (what == "unknown" and issubclass(t, GENERATOR_TYPES))


class FunctionCalls(ColumnReferences, Conditionals):
    """Calls of functions that do not aggregate, or of which nobody knows whether they do."""

    def masking(self, node: Any, kind: int) -> Expr:
        return self.generic(node, masked(transformed(kind)))

    def anonymous(self, node: exp.Anonymous, kind: int) -> Expr:
        name = self.name_of(node)
        if name == "columns" and self.dialect in ("duckdb", "clickhouse"):
            return self.chosen_columns(node, kind)  # t.COLUMNS(...)
        if name == "alias" and self.dialect == "duckdb":
            raise Unsupported("alias(), which gives the name of what it stands in")
        if name in VOLATILE_NAMES:
            return self.nth_call(name, self.call(node, transformed(kind)))
        what = self.functions.kind(name)
        if what == "aggregate":
            return self.aggregate(node, kind)
        if what == "generator":
            return self.generator(node, kind)
        if what != "scalar":
            if name.startswith(IN_ANY_ORDER):
                kind = transformed(kind)
                return ["C", name.encode(), *(self.expr(item, kind) for item in node.expressions)]
            return self.uncertain(node, kind, _KNOWN_CALL)
        return self.known_call(node, kind)

    def known_call(self, node: exp.Anonymous, kind: int) -> Expr:
        """A function sqlglot does not know, that gives one value for each row."""
        name = self.name_of(node)
        kind = transformed(kind)
        if name in self.masking_names:
            kind = masked(kind)
        if name == "nullifzero" and len(node.expressions) == 1:
            return self.null_if(
                exp.Nullif(this=node.expressions[0], expression=exp.Literal.number(0)), kind
            )
        if name == "iff" and len(node.expressions) == 3:
            test, true, false = node.expressions
            return self.condition(exp.If(this=test, true=true, false=false), kind)
        return self.call(node, kind)

    def call(self, node: exp.Anonymous, kind: int) -> Expr:
        """A function sqlglot does not know: its folded name and its arguments in order."""
        pieces: list[Expr] = [b"call", digest(self.name_of(node).encode())]
        pieces.extend(self.expr(e, kind) for e in node.expressions)
        return merkle(pieces)

    def name_of(self, node: Any) -> str:
        """The folded name of a call, as the text has it; empty where that was not kept."""
        if isinstance(node, _NAMED_CALLS):
            return self.fold(node.this)
        return lowered[str((node.meta if node._meta else {}).get(self.name_key, ""))]

    def generates(self, node: Any) -> bool:
        """Whether a call gives several rows for one."""
        if not isinstance(node, exp.Func):
            return False
        t: Any = type(node)
        if isinstance(node, _NAMED_CALLS):
            return _generates(self.dialect, t, self.fold(node.this))
        meta = node._meta
        return _generates(self.dialect, t, meta.get(self.name_key) if meta else None)

    def uncertain(self, node: Any, kind: int, plain: Rule, otherwise: Rule | None = None) -> Expr:
        """A call that may aggregate, or give several rows: nobody here knows the function.

        DISTINCT, ORDER BY or FILTER in a call are proof that it aggregates. Where neither would be
        allowed (a condition of WHERE or ON, inside an aggregate, in FROM) it is a value of the row.
        """
        if _only_of_aggregates(node):
            return self.aggregate(node, kind)
        if self.of_one_row or not self.scopes:
            generates = otherwise is FunctionCalls.generator
            e = (otherwise if otherwise and generates else plain)(self, node, kind)
            self.note_outer_aggregate(e)
            return e
        saved = (self.deps, self.sub_deps, self.rows)
        self.deps, self.sub_deps, self.rows = {}, {}, 0
        e = ["U", plain(self, node, TRANSFORMATION)]
        x = LoweredExpr(e, self.deps, self.sub_deps, self.rows)
        self.deps, self.sub_deps, self.rows = saved
        self.scopes[-1].uncertain.append(x)
        kind = transformed(kind)
        for ref, mask in x.deps.items():
            self.depend(ref, compose(kind, mask))
        for sub, mask in x.subs.items():
            kinds = compose(kind, mask & ~EXISTS) | (mask & EXISTS)
            self.sub_deps[sub] = self.sub_deps.get(sub, 0) | kinds
        self.rows |= x.rows
        self.note_outer_aggregate(e)
        return e

    def note_outer_aggregate(self, call: Expr) -> None:
        """Note what may aggregate over the rows of a query outside.

        An aggregate that reads columns of outer queries only is theirs, wherever it stands. Whose a
        bare name is, only linking knows.
        """
        if len(self.scopes) < 2:
            return
        refs = self.scopes[-1].refs
        outwards = 0
        bare_names = False
        used: list[int] = []
        stack = [call]
        while stack:
            piece = stack.pop()
            if type(piece) is int:
                ref = refs[piece]
                bare = ref.source == -3 or (ref.source == -1 and not self.scopes[-1].sources)
                if ref.source == -2 or (ref.up <= 0 and not bare and not self.may_be_outer(ref)):
                    return
                used.append(piece)
                if ref.up <= 0 and not bare:
                    bare_names = True
                else:
                    outwards = max(outwards, ref.up or len(self.scopes) - 1)
            elif type(piece) is list and piece[0] != "Q":
                stack.extend(piece)
        if bare_names:
            if self.in_value:
                self.scopes[-1].outward.append(used)
                self.outward += 1
            return
        for scope in self.scopes[-1 - outwards : -1]:
            scope.lifted = True

    def may_be_outer(self, ref: Ref) -> bool:
        """Whether a name of this query may yet be one of a query around, which linking will know."""
        if ref.source < 0:
            return ref.source == -1
        alias = self.scopes[-1].sources[ref.source].alias
        return any(alias in scope.names for scope in self.scopes[:-1])

    def dotted(self, node: exp.Dot, kind: int) -> Expr:
        """``schema.function(...)``, or ``column.function(...)`` where an engine has that.

        A function of a schema is a user's, unless the schema is one of the engine's own.
        """
        call = node.args["expression"]
        if isinstance(call, AROUND_CALLS):
            return self.expr(called_on(node.args["this"], call), kind)
        if not isinstance(call, exp.Func):
            return self.dot(node, kind)
        receiver = node.args["this"]
        path = _path(receiver)
        name = self.name_of(call)
        if path is None:
            what = self.functions.kind(name)
        else:
            schema = ".".join(map(self.fold, path))
            what = self.functions.kind(f"{schema}.{name}")
            if schema in BUILT_IN_SCHEMAS:
                what = self.functions.kind(name)
            what = kind_of_mark(path[-1].name) or what
        if what == "aggregate":
            return self.aggregate(node, kind)
        if what == "scalar":
            return self.dotted_call(node, kind)
        return self.uncertain(node, kind, _DOTTED_CALL)

    def dotted_call(self, node: exp.Dot, kind: int) -> Expr:
        """The receiver or the schema, and the call."""
        kind = transformed(kind)
        receiver, call = node.args["this"], node.args["expression"]
        path = _path(receiver)
        if self.name_of(call) in self.masking_names and self._is_known_to_mask(call, path):
            kind = masked(kind)
        if path is not None:
            this = self.owner(path, kind)
        else:
            # sqlglot made a mere name of each column there is in what stands before the point.
            receiver = receiver.transform(_columns_again)
            this = self.expr(receiver, kind)
        pieces: list[Expr] = [b"Dot", b"this", this, b"expression"]
        if isinstance(call, exp.Anonymous):
            pieces.append(self.call(call, kind))
        else:
            pieces.append(self.generic(call, kind))
        return merkle(pieces)

    def _is_known_to_mask(self, call: Any, path: list[Any] | None) -> bool:
        """Whether ``x.md5(...)`` is the engine's own function, or one that the project lists.

        What a schema has under such a name may give its argument back. Without an argument of which a
        value could come, it is a method of a column.
        """
        given = [call.args.get("this"), *call.expressions]
        values = [one for one in given if isinstance(one, exp.Expression)]
        return (
            path is None
            or self.name_of(call) in self.listed_masks
            or ".".join(map(self.fold, path)) in BUILT_IN_SCHEMAS
            or all(isinstance(one, exp.Literal) for one in values)
        )

    def owner(self, path: list[Any], kind: int) -> Expr:
        """What stands before the point: a column, on engines that have methods, or a schema."""
        keys = [self.fold(p) for p in path]
        schema = digest(b"name", ".".join(keys).encode())
        if self.dialect not in _METHODS or not self.scopes:
            return schema
        if any(keys[0] in scope.names for scope in self.scopes) and len(path) > 1:
            names = dict(zip(("table", "this"), path[:2], strict=True))
            e = self.column(exp.Column(**names), kind)
            return self.fields(e, [self.spelled(p) for p in path[2:]])
        index = self.ref(0, -3, keys[0], path[0].name)
        return self.fields(self.depend(index, kind), [self.spelled(p) for p in path[1:]])

    def net(self, node: exp.NetFunc, kind: int) -> Expr:
        """BigQuery's NET.f(...): none of them aggregates."""
        call = node.this
        rule = _KNOWN_CALL if isinstance(call, exp.Anonymous) else self.by_class.get(type(call))
        return merkle([b"NetFunc", (rule or GENERIC)(self, call, transformed(kind))])

    def any_(self, node: exp.Any, kind: int) -> Expr:
        """ANY of a subquery or an array, or an aggregate of that name."""
        inner = node.this
        if not isinstance(inner, exp.Query) and self.functions.kind("any") == "aggregate":
            return self.aggregate(node, kind)
        return self.generic(node, kind)

    def parameterised(self, node: exp.Aliases, kind: int) -> Expr:
        """``f(1)(x)`` of ClickHouse, which sqlglot takes for ``f(1) as (x)``: an aggregate."""
        call = node.this
        if self.dialect != "clickhouse" or not isinstance(call, exp.Func):
            return self.generic(node, kind)
        arguments = [exp.Column(this=name) for name in node.expressions]
        return self.aggregate(exp.Tuple(expressions=[call, *arguments]), kind)

    def generator(self, node: Any, kind: int) -> Expr:
        """A function that gives several rows for one: its expression also decides the rows."""
        saved = (self.deps, self.sub_deps, self.rows)
        self.deps, self.sub_deps, self.rows = {}, {}, 0
        if isinstance(node, exp.Anonymous):
            e = self.call(node, TRANSFORMATION)
        else:
            e = self.generic(node, TRANSFORMATION)
        x = LoweredExpr(e, self.deps, self.sub_deps, self.rows)
        self.deps, self.sub_deps, self.rows = saved
        if self.scopes:
            self.scopes[-1].generators.append(x)
        for ref, mask in x.deps.items():
            self.depend(ref, mask if kind & DIRECT else kind)
        for sub, mask in x.subs.items():
            self.sub_deps[sub] = self.sub_deps.get(sub, 0) | (mask if kind & DIRECT else kind)
        return ["G", e]

    def volatile(self, node: Any, kind: int) -> Expr:
        """A function that gives another value each time."""
        return self.nth_call(function_name(node), self.generic(node, kind))

    def nth_call(self, name: str, e: Expr) -> Expr:
        """A call of a volatile function: the second one of a query is not the first.

        A CTE that is read twice gives the same values twice, two subqueries of one text do not.
        """
        if not self.scopes:
            return e
        self.scopes[-1].volatile = True
        calls = self.volatile_calls
        calls[name] = calls.get(name, 0) + 1
        pieces: list[Expr] = [b"another", str(calls[name]).encode(), e]
        if self.evaluated is not None:
            pieces.append(self.evaluated)
        return ["G", merkle(pieces)]


_KNOWN_CALL: Final[Rule] = FunctionCalls.known_call
_DOTTED_CALL: Final[Rule] = FunctionCalls.dotted_call
