"""Which handler lowers which class of expression.

Every handler returns the expression and notes its references in the collectors of the scope. A
handler that reads a node by a rule of its own says which arguments it reads (`_handlers`); what is
set beyond these is hashed beside it.
"""

from __future__ import annotations

from collections.abc import Collection
from functools import lru_cache
from typing import Any, Final

from sqlglot import exp

from dbt_ripple.flow.builtin_names import MASKING_NAMES
from dbt_ripple.flow.identifiers import lowered
from dbt_ripple.flow.ir import Expr
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
from dbt_ripple.flow.lowering.subqueries import Subqueries
from dbt_ripple.flow.lowering.walk import GENERIC, Rule, hashing_unread

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
