"""The registry of rules, how they are applied, and what they ask of expressions."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any, Final

from sqlglot import exp

from dbt_ripple.flow.functions import VOLATILE_NAMES, functions
from dbt_ripple.flow.lowering.parse_tree import GENERATOR_TYPES, VOLATILE_TYPES, is_quantified
from dbt_ripple.flow.may_fail import may_fail

MAX_ROUNDS: Final = 12
"""How often all rules are tried on a query; what is not settled by then stays as it is."""
MAX_NODES: Final = 20_000
"""Nodes of a parse tree above which a query is not rewritten, nor made any larger."""
MAX_WRITTEN_TWICE: Final = 200
"""Nodes of an expression above which no rule writes it twice."""

PREDICATES: Final = (
    exp.And,
    exp.Or,
    exp.Not,
    exp.EQ,
    exp.NEQ,
    exp.GT,
    exp.GTE,
    exp.LT,
    exp.LTE,
    exp.NullSafeEQ,
    exp.NullSafeNEQ,
    exp.Is,
    exp.In,
    exp.Between,
    exp.Exists,
    exp.Like,
    exp.ILike,
    exp.Boolean,
)
"""Expressions that are true, false or NULL, whatever they are made of."""


@dataclass
class Rewriting:
    """One query being rewritten.

    Attributes:
        dialect: it is written in.
        qualified: whether each column says by an alias which source it is of, and each source that
            is a query lists its columns.
        apart: whether, besides, no two sources of the whole query have one alias.
        order_matters: whether something in the query asks in which order rows come.
        evaluated_alike: whether nothing that may fail may be evaluated of other rows than before: no
            build would show that it does.
        types: of the columns of a source by its alias, as far as they are known.
        fresh: how many names have been made up.
        reordered: whether rows may come in another order by a rule that is not one that ``reorders``.
        used: the rules that applied, in order.
    """

    dialect: str
    qualified: bool = False
    apart: bool = False
    order_matters: bool = True
    evaluated_alike: bool = False
    types: dict[str, dict[str, str]] = field(default_factory=dict)
    fresh: int = 0
    reordered: bool = False
    used: dict[str, None] = field(default_factory=dict)


Rule = Callable[[Any, Rewriting], Any]


@dataclass(frozen=True)
class NamedRule:
    """A rule with the classes of nodes it looks at.

    Attributes:
        of_sources: whether it asks which source a column is of.
        reorders: whether the rows may come in another order.
        evaluates: whether an expression may be evaluated of other rows than before, or not at all.
        at_last: whether it applies once no other rule does any more.
    """

    name: str
    on: tuple[type, ...]
    apply: Rule
    of_sources: bool = False
    reorders: bool = False
    evaluates: bool = False
    at_last: bool = False


RULES: Final[dict[str, NamedRule]] = {}
"""Every rule by its name."""


def rule(
    name: str,
    *on: type,
    of_sources: bool = False,
    reorders: bool = False,
    evaluates: bool = False,
    at_last: bool = False,
) -> Callable[[Rule], Rule]:
    """Put a rule into the registry."""

    def register(apply: Rule) -> Rule:
        assert name not in RULES, name
        RULES[name] = NamedRule(name, on, apply, of_sources, reorders, evaluates, at_last)
        return apply

    return register


def rewrite(tree: Any, rewriting: Rewriting) -> Any:
    """Apply all rules until none does any more.

    Args:
        tree: a parse tree, which is changed in place.
        rewriting: what is known of the query; the rules that applied are noted in it.

    Returns:
        The new root.
    """
    holder = exp.Tuple(expressions=[tree])
    for paren in list(holder.find_all(exp.Paren)):  # the tree holds what they say
        if not isinstance(paren.this, exp.Query) and not isinstance(
            paren.parent, (exp.Any, exp.All)
        ):
            paren.replace(paren.this)
    by_type = _by_type(rewriting, at_last=False)
    for _ in range(MAX_ROUNDS):
        if sum(1 for _ in holder.walk()) > MAX_NODES or not _visit(holder, by_type, rewriting):
            break
    return _let_out(holder)


def settle(tree: Any, rewriting: Rewriting) -> Any:
    """Apply the rules that come last: what they leave cannot be written as SQL any more."""
    holder = exp.Tuple(expressions=[tree])
    by_type = _by_type(rewriting, at_last=True)
    while _visit(holder, by_type, rewriting):
        pass
    return _let_out(holder)


def _let_out(holder: Any) -> Any:
    root = holder.expressions[0]
    root.parent = None
    return root


def _by_type(rewriting: Rewriting, *, at_last: bool) -> dict[type, list[NamedRule]]:
    """The rules that may apply to a query, by the class of node they look at."""
    rules: dict[type, list[NamedRule]] = {}
    for named in RULES.values():
        if (named.of_sources and not rewriting.apart) or (
            named.reorders and rewriting.order_matters
        ):
            continue
        for t in named.on if named.at_last == at_last else ():
            rules.setdefault(t, []).append(named)
    return rules


def _visit(node: Any, by_type: dict[type, list[NamedRule]], rewriting: Rewriting) -> bool:
    """Rewrite what is below a node, then the node; whether anything has changed."""
    changed = False
    if isinstance(node, exp.Pivot):  # its IN is none
        return False
    for child in list(node.iter_expressions()):
        changed |= _visit(child, by_type, rewriting)
    for named in by_type.get(type(node), ()):
        if named.evaluates and rewriting.evaluated_alike:
            # Of a whole SELECT, some sum or product stands nearly always in it.
            by_overflow = not isinstance(node, exp.Select)
            if may_fail(node, rewriting.dialect, by_overflow=by_overflow):
                continue
        rewritten = named.apply(node, rewriting)
        if rewritten is None:
            continue
        rewriting.used[named.name] = None
        if rewritten is not node:
            node.replace(rewritten)
        return True
    return changed


# -- what rules ask ---------------------------------------------------------------------------------


def is_predicate(node: Any) -> bool:
    """Whether an expression can only be true, false or NULL."""
    return isinstance(node, PREDICATES)


def only_truth_counts(node: Any) -> bool:
    """Whether false and NULL are the same where an expression stands: it is a condition.

    What follows WHEN is one only of a CASE without a value, which that is compared with.
    """
    parent = node.parent
    while isinstance(parent, (exp.And, exp.Or, exp.Paren)):
        node, parent = parent, parent.parent
    if isinstance(parent, (exp.Where, exp.Having, exp.Qualify)):
        return parent.this is node
    if isinstance(parent, exp.Join):
        return parent.args.get("on") is node
    if not isinstance(parent, exp.If) or parent.this is not node:
        return False
    case = parent.parent
    return parent.arg_key != "ifs" or case is None or case.this is None


def is_pure(node: Any, dialect: str) -> bool:
    """Whether an expression gives the same wherever it stands, and may be written twice.

    A large one may not: within each other, those that are written twice double what is below them.
    """
    for i, part in enumerate(node.walk()):
        if i > MAX_WRITTEN_TWICE:
            return False
        if isinstance(part, (exp.Query, exp.Subquery, *GENERATOR_TYPES)):
            return False
    return is_steady(node, dialect)


def is_steady(node: Any, dialect: str) -> bool:
    """Whether a part of a query gives the same each time it is evaluated, as far as is known.

    What nobody here knows, a user's function may be volatile.
    """
    kind = functions(dialect).kind
    for part in node.walk():
        if isinstance(part, (*VOLATILE_TYPES, exp.TableSample)):
            return False
        if isinstance(part, (exp.Anonymous, exp.AnonymousAggFunc)):
            name = str(part.this).lower()
            if name in VOLATILE_NAMES or kind(name) not in ("scalar", "aggregate"):
                return False
        if isinstance(part, exp.Dot) and isinstance(part.expression, exp.Func):
            return False  # a function of a schema is a user's
        if isinstance(part, (exp.Placeholder, exp.Parameter)):
            return False
    return True


def terms(node: Any, joined_by: Any) -> list[Any]:
    """What AND or OR joins, in order."""
    operands: list[Any] = []
    ahead: list[Any] = [node]
    while ahead:
        current = ahead.pop()
        if isinstance(current, exp.Paren):
            ahead.append(current.this)
        elif type(current) is joined_by:
            ahead += [current.args["expression"], current.args["this"]]
        else:
            operands.append(current)
    return operands


def joined(parts: Iterable[Any], by: type) -> Any:
    """Expressions joined by AND or OR."""
    tree = None
    for part in parts:
        tree = part if tree is None else by(this=tree, expression=part)
    return tree


def conjuncts(node: Any) -> list[Any]:
    """The conditions of WHERE, ON and their like: all that AND joins."""
    return (
        [] if node is None else terms(node.this if isinstance(node, exp.Where) else node, exp.And)
    )


def is_null(node: Any) -> bool:
    """Whether it is ``e IS NULL``."""
    return isinstance(node, exp.Is) and isinstance(node.expression, exp.Null)


def is_not_null(node: Any) -> bool:
    """Whether it is ``e IS NOT NULL``."""
    return isinstance(node, exp.Not) and is_null(node.this)


_STRICT: Final = (exp.EQ, exp.NEQ, exp.GT, exp.GTE, exp.LT, exp.LTE, exp.Like, exp.ILike)
_STRICT_VALUES: Final = (exp.Sub, exp.Mul, exp.Neg)


def operands_not_null(condition: Any) -> list[Any]:
    """The expressions that are not NULL where a condition is true."""
    if is_not_null(condition):
        return _strictly_of(condition.this.this)
    if isinstance(condition, exp.Not) and isinstance(condition.this, (exp.Like, exp.ILike, exp.In)):
        condition = condition.this
    if is_quantified(condition):
        return []  # `a = all (select ...)` is true of no rows
    if isinstance(condition, _STRICT):
        return [*_strictly_of(condition.this), *_strictly_of(condition.expression)]
    if isinstance(condition, exp.In) and not condition.args.get("unnest"):
        return _strictly_of(condition.this) if condition.expressions else []
    return []


def _strictly_of(value: Any) -> list[Any]:
    """A value and the parts of it that make it NULL where they are."""
    result = [value]
    if isinstance(value, _STRICT_VALUES) or (type(value) is exp.Add and is_scalar(value)):
        for part in value.iter_expressions():
            result += _strictly_of(part)
    if type(value) is exp.Cast:
        result += _strictly_of(value.this)
    return result


_SCALARS: Final = (
    exp.Mul, exp.Div, exp.Mod, exp.Sub, exp.Neg, exp.Count, exp.Sum, exp.Avg, exp.Length,
    exp.Extract, exp.Year, exp.Month, exp.Day, exp.Literal, exp.Boolean, exp.Round, exp.Abs,
)  # fmt: skip
_LISTS: Final = re.compile(r"\[|list|array|struct|map|variant|json|super|object|union", re.I)


def is_scalar(value: Any, rewriting: Rewriting | None = None) -> bool:
    """Whether a value is surely no list, which `+` puts together, in order."""
    if isinstance(value, _SCALARS):
        return True
    if isinstance(value, exp.Add):
        return any(is_scalar(part, rewriting) for part in (value.this, value.expression))
    if isinstance(value, exp.Coalesce):
        return any(is_scalar(part, rewriting) for part in (value.this, *value.expressions))
    data_type = type_of(value, rewriting)
    return data_type is not None and not _LISTS.search(data_type)


def type_of(value: Any, rewriting: Rewriting | None) -> str | None:
    """The type of an expression, where the text or the warehouse tells it; None where they do not."""
    if isinstance(value, exp.Literal):
        return "VARCHAR" if value.is_string else "INT" if value.is_int else None
    if isinstance(value, exp.Null):
        return "NULL"
    if type(value) in (exp.Cast, exp.TryCast):
        return str(value.to.sql())
    if is_predicate(value):
        return "BOOLEAN"
    if isinstance(value, exp.Count):
        return "BIGINT"
    if isinstance(value, (exp.Lower, exp.Upper, exp.Trim)):
        return "VARCHAR"
    if isinstance(value, exp.Column) and rewriting is not None:
        return rewriting.types.get(value.table, {}).get(value.name)
    if isinstance(value, exp.Coalesce):
        return one_type([value.this, *value.expressions], rewriting)
    if isinstance(value, exp.Case):
        given = [branch.args["true"] for branch in value.args["ifs"]]
        default = value.args.get("default")
        return one_type([*given, *([default] if default is not None else [])], rewriting)
    return None


def one_type(values: Iterable[Any], rewriting: Rewriting | None) -> str | None:
    """The one type that all of these have, or NULL; None where that is not known."""
    types = {type_of(value, rewriting) for value in values} - {"NULL"}
    if not types:
        return "NULL"
    return types.pop() if len(types) == 1 else None
