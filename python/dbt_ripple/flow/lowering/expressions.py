"""Which handler lowers which class of expression; and subqueries in expressions: scalar ones, EXISTS and IN.

Every handler returns the expression and notes its references in the collectors of the scope. A
handler that reads a node by a rule of its own says which arguments it reads (`_handlers`); what is
set beyond these is hashed beside it.
"""

from __future__ import annotations

from collections.abc import Collection
from functools import lru_cache
from typing import Any, Final

from sqlglot import exp

from dbt_ripple.flow.functions import MASKING_NAMES
from dbt_ripple.flow.identifiers import lowered
from dbt_ripple.flow.ir import CONDITIONAL, EXISTS, TRANSFORMATION, Expr, LoweredExpr
from dbt_ripple.flow.lowering.aggregates_and_windows import AggregatesAndWindows
from dbt_ripple.flow.lowering.operators import (
    BINARY_TYPES,
    BOUND_OTHERWISE,
    CHAIN_TYPES,
    LOGIC_TYPES,
    Operators,
    marking_unbracketed,
)
from dbt_ripple.flow.lowering.parse_tree import GENERATOR_TYPES, VOLATILE_TYPES, argument_names
from dbt_ripple.flow.lowering.scope import indirect, transformed
from dbt_ripple.flow.lowering.walk import GENERIC, ExpressionWalk, Rule, hashing_unread, merkle
from dbt_ripple.flow.reading.refusals import Unsupported


class Subqueries(ExpressionWalk):
    """Scalar subqueries, EXISTS and IN."""

    def subquery(self, node: Any, mode: str, kind: int) -> Expr:
        while isinstance(node, exp.Paren):
            node = node.this
        saved_lambdas = self.lambdas
        scope = self.scopes[-1] if self.scopes else None
        if scope is not None:
            scope.lifted = False
        value = scope is not None and not self.of_one_row
        outward = self.outward
        self.in_value += value
        rel = self.query(node)
        self.in_value -= value
        self.lambdas = saved_lambdas
        subs = scope.subs if scope is not None else []
        subs.append(rel)
        index = len(subs) - 1
        if scope is not None and value and self.outward > outward:
            scope.may_lift.append(index)
        self.sub_deps[index] = kind | EXISTS if mode == "exists" else kind
        e: Expr = ["Q", mode, index]
        if scope is not None and scope.lifted and not self.of_one_row:
            e = ["U", e]
            scope.uncertain.append(LoweredExpr(e, {}, {index: TRANSFORMATION}))
        return e

    def scalar(self, node: Any, kind: int) -> Expr:
        if not self.scopes:
            raise Unsupported("a subquery outside of a query")
        return self.subquery(node, "scalar", kind)

    def exists(self, node: exp.Exists, kind: int) -> Expr:
        inner = node.this
        if not isinstance(inner, (exp.Query, exp.Subquery)):
            return self.generic(node, kind)  # the higher-order function exists(array, lambda)
        return merkle([b"Exists", self.subquery(inner, "exists", indirect(kind, CONDITIONAL))])

    def is_in(self, node: exp.In, kind: int) -> Expr:
        query = node.args.get("query")
        unnest = node.args.get("unnest")
        if unnest is not None:  # BigQuery: an element of an array, no rows of its own
            kind = transformed(kind)
            pieces: list[Expr] = [b"In unnest"]
            self.arguments({**node.args, "unnest": None}, kind, pieces)
            self.arguments(unnest.args, kind, pieces)
            return merkle(pieces)
        if query is None:
            if self.dialect == "clickhouse" and isinstance(node.args.get("field"), exp.Column):
                raise Unsupported("IN a relation")
            return self.in_list(node, kind)
        return merkle(
            [
                b"In",
                self.expr(node.this, transformed(kind)),
                self.subquery(query, "in", indirect(kind, CONDITIONAL)),
                self.generic(
                    exp.In(**{k: v for k, v in node.args.items() if k not in ("this", "query")}),
                    kind,
                ),
            ]
        )

    def in_list(self, node: exp.In, kind: int) -> Expr:
        """IN a list: of constants the order says nothing."""
        given = {name for name, value in node.args.items() if value}
        if given != {"this", "expressions"}:
            return self.generic(node, kind)
        kind = transformed(kind)
        this = self.expr(node.args["this"], kind)
        items = [self.expr(item, kind) for item in node.args["expressions"]]
        if all(type(item) is bytes for item in items):
            items.sort()
        return merkle([b"In", b"this", this, b"expressions", *items])


_MASKING_TYPES: Final = tuple(
    t
    for n in (
        "MD5",
        "MD5Digest",
        "SHA",
        "SHA1Digest",
        "SHA2",
        "SHA2Digest",
        "FarmFingerprint",
        "Encrypt",
    )
    if (t := getattr(exp, n, None)) is not None
)


class Expressions(AggregatesAndWindows, Operators, Subqueries):
    """The walk over one statement, as far as expressions go; `flow.lowering.query` adds queries."""

    def __init__(self, dialect: str, masking: Collection[str] = ()) -> None:
        super().__init__(dialect)
        self.masking_names, self.by_class, self.handlers = _masking(frozenset(masking))
        self.by_name = _by_name(dialect, frozenset(masking))
        self.listed_masks = frozenset(name.rpartition(".")[2].lower() for name in masking)

    def typed(self, node: Any, kind: int) -> Expr:
        """A call of a function sqlglot knows: its name on this engine decides what it does."""
        t = type(node)
        meta = node._meta
        name = meta.get(self.name_key) if meta else None
        rule = self.by_name.get((t, name))
        if rule is None:
            rule = self.by_name[t, name] = self.rule_of(t, name)
        return rule(self, node, kind)

    def rule_of(self, t: type, name: str | None) -> Rule:
        """How calls of this class under this name are lowered."""
        by_class = self.by_class.get(t, GENERIC)
        if name is None:
            return by_class
        what = self.functions.kind(lowered[name])
        if what == "window" or (what == "aggregate" and by_class is Expressions.grouping):
            return by_class
        if what == "aggregate":
            return Expressions.aggregate
        if what == "generator":
            return Expressions.generator
        plain = by_class
        if by_class in (Expressions.aggregate, Expressions.generator):
            plain = GENERIC
        if what == "scalar":
            return plain
        return lambda walk, node, kind: walk.uncertain(node, kind, plain, by_class)


def _handlers() -> dict[type[Any], Rule]:
    """Which method lowers which class of node; the others are lowered generically.

    Beside the method the arguments it reads; None where it leaves nothing out: it reads the rest
    generically, or raises.
    """
    handlers: dict[type[Any], tuple[Rule, frozenset[str] | None]] = {
        exp.Column: (Expressions.column, None),
        exp.Literal: (Expressions.literal, argument_names("this is_string")),
        exp.Var: (Expressions.var, None),
        exp.Paren: (Expressions.paren, argument_names("this")),
        exp.Alias: (Expressions.inner_alias, argument_names("this alias")),
        exp.Identifier: (Expressions.identifier, argument_names("this quoted")),
        exp.Star: (Expressions.star_in_expression, None),
        exp.Columns: (Expressions.chosen_columns, None),
        exp.Dot: (Expressions.dotted, argument_names("this expression")),
        exp.Any: (Expressions.any_, None),
        exp.NetFunc: (Expressions.net, argument_names("this")),
        exp.Aliases: (Expressions.parameterised, None),
        exp.Struct: (Expressions.struct, None),
        exp.Subquery: (Expressions.scalar, None),
        exp.Select: (Expressions.scalar, None),
        exp.Union: (Expressions.scalar, None),
        exp.Except: (Expressions.scalar, None),
        exp.Intersect: (Expressions.scalar, None),
        exp.HavingMax: (Expressions.chosen_by, argument_names("this expression max")),
        exp.Exists: (Expressions.exists, argument_names("this")),
        exp.In: (
            Expressions.is_in,
            argument_names("this expressions query unnest field is_global"),
        ),
        exp.Case: (Expressions.case, argument_names("this ifs default")),
        exp.If: (Expressions.condition, argument_names("this true false")),
        exp.Nullif: (Expressions.null_if, argument_names("this expression")),
        exp.PropertyEQ: (Expressions.named, argument_names("this expression")),
        exp.Kwarg: (Expressions.named, argument_names("this expression")),
        exp.Collate: (Expressions.collation, argument_names("this expression")),
        exp.Nvl2: (Expressions.condition, argument_names("this true false")),
        exp.DecodeCase: (Expressions.decode, argument_names("expressions")),
        exp.Comprehension: (
            Expressions.comprehension,
            argument_names("this expression position iterator condition"),
        ),
        exp.Window: (
            Expressions.window,
            argument_names("this partition_by order spec alias over first"),
        ),
        exp.Filter: (Expressions.filter, argument_names("this expression")),
        exp.WithinGroup: (Expressions.within_group, argument_names("this expression")),
        exp.Order: (Expressions.inner_order, argument_names("this expressions")),
        exp.Lambda: (Expressions.lambda_, argument_names("this expressions")),
        exp.DataType: (Expressions.data_type, None),
        exp.Parameter: (Expressions.parameter, None),
        exp.PositionalColumn: (Expressions.position, argument_names("this")),
        exp.ColumnDef: (Expressions.field_of_type, None),
        exp.Anonymous: (Expressions.anonymous, argument_names("this expressions")),
        exp.Grouping: (Expressions.grouping, None),
        exp.GroupingId: (Expressions.grouping, None),
    }
    for t in vars(exp).values():
        if isinstance(t, type) and issubclass(t, exp.AggFunc):
            handlers.setdefault(t, (Expressions.aggregate, None))
    for t in BINARY_TYPES:
        handlers[t] = (Expressions.binary, None)
    for t in CHAIN_TYPES:
        handlers[t] = (Expressions.chain, None)
    for t in LOGIC_TYPES:
        handlers[t] = (Expressions.logic, None)
    for t in GENERATOR_TYPES:
        handlers[t] = (Expressions.generator, None)
    for t in _MASKING_TYPES:
        handlers[t] = (Expressions.masking, None)
    for t in VOLATILE_TYPES:
        handlers[t] = (Expressions.volatile, None)
    for t in vars(exp).values():
        if isinstance(t, type) and issubclass(t, (exp.Binary, exp.Unary, exp.Between)):
            handlers.setdefault(t, (Expressions.operator, None))
    for t in BOUND_OTHERWISE:
        if t not in CHAIN_TYPES:  # which looks at its terms itself
            rule, reads = handlers.get(t, (Expressions.generic, None))
            handlers[t] = (marking_unbracketed(rule), reads)
    # Where a rule reads all that a class can have, there is nothing to look for beyond it.
    return {
        t: handler
        if reads is None or reads.issuperset(t.arg_types)
        else hashing_unread(handler, reads)
        for t, (handler, reads) in handlers.items()
    }


_HANDLERS: Final = _handlers()
_OPERATORS: Final[frozenset[type]] = frozenset({*LOGIC_TYPES, *CHAIN_TYPES, *BINARY_TYPES})
_TYPED: Final = {
    t: Expressions.typed
    for t in vars(exp).values()
    if isinstance(t, type)
    and issubclass(t, exp.Func)
    and not issubclass(t, (exp.Anonymous, exp.Case, exp.Cast, exp.Exists))
    and t not in _OPERATORS
}
"""Calls whose name says what they do, which is not the same on every engine."""


@lru_cache(maxsize=8)
def _masking(
    more: frozenset[str],
) -> tuple[frozenset[str], dict[type[Any], Rule], dict[type[Any], Rule]]:
    """The functions that mask, by name; the handlers by class; and those with `typed` before them.

    More names may be sqlglot's own.
    """
    names = MASKING_NAMES | {name.rpartition(".")[2].lower() for name in more}
    types = [t for name in names - MASKING_NAMES if (t := exp.FUNCTION_BY_NAME.get(name.upper()))]
    by_class = _HANDLERS | dict.fromkeys(types, Expressions.masking)
    return names, by_class, {**by_class, **_TYPED}


@lru_cache(maxsize=8)
def _by_name(dialect: str, masking: frozenset[str]) -> dict[tuple[type[Any], str | None], Rule]:
    """The rules of calls, by class and name, as they are asked for."""
    return {}
