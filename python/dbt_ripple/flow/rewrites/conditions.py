"""Rules of conditions, in SQL's three-valued logic."""

from __future__ import annotations

import re
from collections import Counter
from itertools import product
from typing import Any, Final

from sqlglot import exp

from dbt_ripple.flow.lowering.parse_tree import is_quantified, verbatim
from dbt_ripple.flow.rewrites.rules import (
    Rewriting,
    is_not_null,
    is_predicate,
    is_pure,
    is_steady,
    joined,
    only_truth_counts,
    operands_not_null,
    rule,
    terms,
    type_of,
)

MAX_CLAUSES: Final = 32
"""Clauses of a condition in conjunctive form above which it stays as it is written."""

_HIVE: Final = frozenset({"spark", "databricks", "hive", "spark2"})
_NAN_IS_THE_LARGEST: Final = frozenset(
    {"duckdb", "postgres", "spark", "databricks", "snowflake", "redshift"}
)
"""Dialects in which NaN is ordered as any other value, so that `not a < b` is `a >= b`."""

_OPPOSITE: Final[dict[type, type]] = {
    exp.EQ: exp.NEQ,
    exp.NEQ: exp.EQ,
    exp.NullSafeEQ: exp.NullSafeNEQ,
    exp.NullSafeNEQ: exp.NullSafeEQ,
}
_OPPOSITE_ORDER: Final[dict[type, type]] = {
    exp.GT: exp.LTE,
    exp.LTE: exp.GT,
    exp.LT: exp.GTE,
    exp.GTE: exp.LT,
}
_NO_WORDS: Final = re.compile(
    r"\s*(?:[-+.\d].*|t|true|y|yes|f|false|n|no|nan|inf.*|)\s*", re.I | re.S
)


@rule("De Morgan", exp.Not, evaluates=True)
def de_morgan(node: exp.Not, rewriting: Rewriting) -> Any:
    """`not (a and b)` is `not a or not b`, NULLs included; likewise of OR.

    What AND joins an engine evaluates in any order, and of fewer rows each, even if OR was evaluated as written.
    """
    inner = node.this
    if type(inner) not in (exp.And, exp.Or):
        return None
    other = exp.Or if type(inner) is exp.And else exp.And
    return joined((exp.Not(this=part) for part in terms(inner, type(inner))), other)


@rule("NOT of a comparison", exp.Not)
def not_compared(node: exp.Not, rewriting: Rewriting) -> Any:
    """`not a = b` is `a <> b`, and `not a < b` is `a >= b`: NULL where either is."""
    inner = node.this
    opposite = _OPPOSITE.get(type(inner))
    if opposite is None and rewriting.dialect in _NAN_IS_THE_LARGEST:
        opposite = _OPPOSITE_ORDER.get(type(inner))
    if opposite is None or any(isinstance(part, exp.Tuple) for part in inner.args.values()):
        return None
    if len(inner.args) != 2 or is_quantified(inner):
        return None
    return opposite(**inner.args)


@rule("NOT twice", exp.Not)
def not_twice(node: exp.Not, rewriting: Rewriting) -> Any:
    """`not not a` is `a`: of what is true, false or NULL, or is only asked whether it is."""
    if not isinstance(node.this, exp.Not):
        return None
    asked = isinstance(node.parent, (exp.And, exp.Or, exp.Not)) or only_truth_counts(node)
    return node.this.this if asked or is_predicate(node.this.this) else None


@rule("NOT of a constant", exp.Not)
def not_constant(node: exp.Not, rewriting: Rewriting) -> Any:
    """`not true` is `false`."""
    return exp.Boolean(this=not node.this.this) if isinstance(node.this, exp.Boolean) else None


@rule("constants compared", exp.EQ, exp.NEQ)
def constants(node: Any, rewriting: Rewriting) -> Any:
    """`1 = 1` is `true`; only of two whole numbers, or of a text and itself."""
    one, other = node.this, node.expression
    if not isinstance(one, exp.Literal) or not isinstance(other, exp.Literal):
        return None
    if one.is_string != other.is_string:
        return None
    if one.this != other.this and not (one.is_int and other.is_int):
        return None
    equal = one.this == other.this or (one.is_int and int(one.this) == int(other.this))
    return exp.Boolean(this=equal == (type(node) is exp.EQ))


@rule("BETWEEN", exp.Between, evaluates=True)
def between(node: exp.Between, rewriting: Rewriting) -> Any:
    """`a between b and c` is `a >= b and a <= c`; not where the bounds may change places."""
    args = {name for name, value in node.args.items() if value}
    if args != {"this", "low", "high"} or not is_pure(node.this, rewriting.dialect):
        return None
    if rewriting.dialect == "duckdb":  # which compares all three as one type
        types = {type_of(node.args[bound], rewriting) for bound in ("low", "high")}
        if len(types) > 1 or None in types:
            return None
    return exp.And(
        this=exp.GTE(this=node.this.copy(), expression=node.args["low"]),
        expression=exp.LTE(this=node.this.copy(), expression=node.args["high"]),
    )


@rule("IN a list", exp.In)
def in_list(node: exp.In, rewriting: Rewriting) -> Any:
    """`a in (1, 2)` is `a = 1 or a = 2`, of constants of one type.

    Of several types the whole list would be compared as one. Hive and its like compare the list as
    text, and `=` as numbers, where a number stands on one side: there, only of words.
    """
    args = {name for name, value in node.args.items() if value}
    items = node.expressions
    if args != {"this", "expressions"} or not is_pure(node.this, rewriting.dialect):
        return None
    if isinstance(node.this, exp.Tuple) or len(items) > MAX_CLAUSES:
        return None
    if rewriting.dialect == "clickhouse":
        return None
    if not all(isinstance(item, exp.Literal) for item in items):
        return None
    texts = {bool(item.is_string) for item in items}
    if len(texts) != 1 or not (texts == {True} or all(item.is_int for item in items)):
        return None
    if rewriting.dialect in _HIVE and not (
        texts == {True} and not any(_NO_WORDS.fullmatch(item.this) for item in items)
    ):
        return None
    return joined((exp.EQ(this=node.this.copy(), expression=item) for item in items), exp.Or)


@rule("IS NOT DISTINCT FROM", exp.NullSafeEQ)
def null_safe(node: exp.NullSafeEQ, rewriting: Rewriting) -> Any:
    """As a condition, `a is not distinct from b` is `a = b or (a is null and b is null)`."""
    one, other = node.this, node.expression
    if not only_truth_counts(node) or len(node.args) != 2 or is_quantified(node):
        return None
    if not is_pure(node, rewriting.dialect) or isinstance(one, exp.Tuple):
        return None
    if isinstance(other, exp.Null) or isinstance(one, exp.Null):
        return None
    nulls = [exp.Is(this=side.copy(), expression=exp.Null()) for side in (one, other)]
    return exp.Or(this=exp.EQ(this=one, expression=other), expression=joined(nulls, exp.And))


@rule("COALESCE(condition, false)", exp.Coalesce)
def coalesced_condition(node: exp.Coalesce, rewriting: Rewriting) -> Any:
    """As a condition, `coalesce(a, false)` is `a`."""
    others = node.expressions
    if len(others) != 1 or not isinstance(others[0], exp.Boolean) or others[0].this:
        return None
    return node.this if is_predicate(node.this) and only_truth_counts(node) else None


@rule("a condition in conjunctive form", exp.And, exp.Or, evaluates=True)
def in_clauses(node: Any, rewriting: Rewriting) -> Any:
    """AND of ORs, each written once: what another clause implies is left out, and constants.

    AND and OR distribute over each other, and absorb each other, in three-valued logic as in two.
    Where false and NULL are the same, `a is not null` is implied by any comparison with `a`.
    """
    if isinstance(node.parent, (exp.And, exp.Or)):
        return None
    condition = only_truth_counts(node)
    try:
        clauses = _clauses(node)
    except OverflowError:
        return None
    kept = _irreducible(clauses, condition)
    if not _is_as_often(node, clauses, kept, rewriting.dialect):
        return None
    if not kept:
        return exp.Boolean(this=True)
    rewritten = joined(
        (joined((part.copy() for part in clause.values()), exp.Or) for clause in kept), exp.And
    )
    if rewritten is None or verbatim(rewritten) == verbatim(node):
        return None
    if not isinstance(rewritten, (exp.And, exp.Or)) and not (condition or is_predicate(rewritten)):
        return None
    if sorted(map(verbatim, _atoms(rewritten))) == sorted(
        map(verbatim, _atoms(node))
    ) and _same_shape(clauses, node):
        return None
    return rewritten


def _is_as_often(
    node: Any, clauses: list[dict[bytes, Any]], kept: list[dict[bytes, Any]], dialect: str
) -> bool:
    """Whether what may differ each time it is evaluated is as often in the clauses as in a condition."""
    atoms = _atoms(node)
    if not is_pure(node, dialect) and sum(map(len, clauses)) != len(atoms):
        return False
    varying = Counter(verbatim(atom) for atom in atoms if not is_steady(atom, dialect))
    left = Counter(said for clause in kept for said in clause)
    return all(left[said] == times for said, times in varying.items())


def _atoms(node: Any) -> list[Any]:
    """What AND and OR join, however nested."""
    atoms: list[Any] = []
    ahead = [node]
    while ahead:
        current = ahead.pop()
        if isinstance(current, (exp.And, exp.Or)):
            ahead += [current.expression, current.this]
        elif isinstance(current, exp.Paren):
            ahead.append(current.this)
        else:
            atoms.append(current)
    return atoms


def _same_shape(clauses: list[dict[bytes, Any]], node: Any) -> bool:
    """Whether a condition is AND of ORs as it stands."""
    parts = terms(node, exp.And)
    return len(parts) == len(clauses) and not any(
        isinstance(inner, exp.And)
        for part in parts
        if isinstance(part, exp.Or)
        for inner in terms(part, exp.Or)
    )


def _clauses(node: Any) -> list[dict[bytes, Any]]:
    """A condition as a list of clauses, each of what OR joins, by what it says."""
    while isinstance(node, exp.Paren):
        node = node.this
    if type(node) is exp.And:
        clauses = [clause for part in terms(node, exp.And) for clause in _clauses(part)]
    elif type(node) is exp.Or:
        clauses = []
        parts = [_clauses(part) for part in terms(node, exp.Or)]
        size = 1
        for part in parts:
            size *= len(part)
        if size > MAX_CLAUSES:
            raise OverflowError
        for choice in product(*parts):
            clause: dict[bytes, Any] = {}
            for piece in choice:
                clause.update(piece)
            clauses.append(clause)
    else:
        clauses = [{verbatim(node): node}]
    if len(clauses) > 2 * MAX_CLAUSES:
        raise OverflowError
    return clauses


def _irreducible(clauses: list[dict[bytes, Any]], condition: bool) -> list[dict[bytes, Any]]:
    """The clauses that no other one implies, without constants that say nothing."""
    reduced: list[dict[bytes, Any]] = []
    for clause in clauses:
        literals = clause.values()
        if any(isinstance(a, exp.Boolean) and a.this for a in literals):
            continue
        left = {k: a for k, a in clause.items() if not isinstance(a, exp.Boolean)}
        if not left:
            return [{b"false": exp.Boolean(this=False)}]
        reduced.append(left)
    kept: list[dict[bytes, Any]] = []
    for i, clause in enumerate(reduced):
        implied = any(
            _implies(other, clause, condition) and (j < i or not _implies(clause, other, condition))
            for j, other in enumerate(reduced)
            if j != i
        )
        if not implied:
            kept.append(clause)
    return kept


def _implies(one: dict[bytes, Any], other: dict[bytes, Any], condition: bool) -> bool:
    """Whether one clause is true only where the other one is."""
    if one.keys() <= other.keys():
        return True
    if not condition:
        return False
    not_null = {verbatim(a.this.this) for a in other.values() if is_not_null(a)}
    if not not_null:
        return False
    return all(
        key in other or any(verbatim(value) in not_null for value in operands_not_null(a))
        for key, a in one.items()
    )


@rule("a condition that is true", exp.Where, exp.Having, exp.Qualify)
def where_true(node: Any, rewriting: Rewriting) -> Any:
    """`where true` is nothing."""
    if not isinstance(node.this, exp.Boolean) or not node.this.this:
        return None
    select = node.parent
    if not isinstance(select, exp.Select) or isinstance(node, exp.Having):
        return None  # HAVING alone makes one group
    select.set(node.arg_key, None)
    return select


@rule("ON true", exp.Join)
def on_true(node: exp.Join, rewriting: Rewriting) -> Any:
    """An inner join ON true is a cross join."""
    on = node.args.get("on")
    if not isinstance(on, exp.Boolean) or not on.this or node.args.get("side"):
        return None
    if node.this.args.get("pivots"):  # DuckDB's UNPIVOT does not do the same behind both
        return None
    if str(node.args.get("kind") or "INNER").upper() != "INNER" or node.args.get("method"):
        return None
    node.set("on", None)
    node.set("kind", "CROSS")
    return node
