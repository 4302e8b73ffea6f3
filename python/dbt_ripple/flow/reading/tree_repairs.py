"""Trees that sqlglot makes otherwise than the engine reads the text, changed in place."""

from __future__ import annotations

from typing import Any, Final

from sqlglot import exp

from dbt_ripple.flow.reading.dialects import (
    GIVEN_LAMBDAS,
    HAVE_LAMBDAS,
    LIKE_POSTGRES,
    function_name,
)
from dbt_ripple.flow.reading.refusals import Unsupported

_NO_VALUES_OF_JSON: Final = (exp.Add, exp.Sub, exp.Mul, exp.Div, exp.IntDiv, exp.Mod, exp.Pow)
"""Operators that bind their operands before `->` does, on Postgres."""
_BIND_LATER: Final = (exp.Binary, exp.Between, exp.In)
_CHAINED: Final = (exp.JSONExtract, exp.JSONExtractScalar)
_BIND_FIRST: Final = (exp.Dot, exp.Collate)


_ALIAS_FIRST: Final = frozenset({"fabric", "tsql"})
"""Dialects that write `a = value` for `value as a` in a select list."""


def with_aliases(tree: Any, dialect: str) -> None:
    """Make `a = (select ...)` a value with an alias: sqlglot takes the name for that of a relation."""
    if dialect not in _ALIAS_FIRST:
        return
    for query in [*tree.find_all(exp.Subquery)]:
        alias = query.args.get("alias")
        if alias is not None and query.arg_key == "expressions" and type(alias) is exp.Identifier:
            query.set("alias", None)
            query.replace(exp.Alias(this=query.copy(), alias=alias))


def with_json_arrows(tree: Any, dialect: str) -> None:
    """Put the operator in the place of each lambda that is none: `f(b -> 'k')` is one to sqlglot.

    Engines that have no lambdas written so read the column b there, and DuckDB does in a call of any
    function but those that are given lambdas. Without this, nobody would see that b is read.
    (https://github.com/tobymao/sqlglot/issues/8074)

    Raises:
        Unsupported: of DuckDB, where another operator stands beside it without brackets.
    """
    if dialect in HAVE_LAMBDAS:
        return
    for node in [*tree.find_all(exp.Lambda)]:
        if len(node.expressions) != 1 or node.args.get("colon"):
            continue
        (name,) = node.expressions
        if type(name) is not exp.Identifier or _is_given_lambdas(node.parent, dialect):
            continue
        for again in [*node.this.find_all(exp.Identifier)]:
            if again.this == name.this and not isinstance(again.parent, (exp.Column, exp.Dot)):
                again.replace(exp.Column(this=again.copy()))
        node.replace(_arrow(exp.Column(this=name.copy()), node.this, dialect))


def _is_given_lambdas(call: Any, dialect: str) -> bool:
    names = GIVEN_LAMBDAS.get(dialect)
    if names is None or not isinstance(call, exp.Func):
        return False
    name = function_name(call)
    return name.startswith(names) if isinstance(names, tuple) else name in names


def _arrow(column: exp.Column, behind: Any, dialect: str) -> Any:
    """`column -> behind`, where of `'k' = 1` only the 'k' belongs to the operator."""
    operand = behind
    while isinstance(operand, _BIND_LATER) and not isinstance(operand, _BIND_FIRST):
        if dialect in LIKE_POSTGRES and isinstance(operand, _NO_VALUES_OF_JSON):
            break
        if dialect == "duckdb" and not isinstance(operand, _CHAINED):
            raise Unsupported("-> beside another operator, without brackets")
        operand = operand.this
    arrow = exp.JSONExtract(this=column, expression=operand.copy(), only_json_types=True)
    if operand is behind:
        return arrow
    operand.replace(arrow)
    return behind
