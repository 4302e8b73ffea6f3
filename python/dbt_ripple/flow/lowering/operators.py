"""Operators: comparisons, chains of one operator, AND and OR, what engines bind otherwise; CASE, IF, DECODE and NULLIF."""

from __future__ import annotations

from typing import Any, Final

from sqlglot import exp

from dbt_ripple.flow.fingerprint import COMPARED, compared, digest
from dbt_ripple.flow.functions import MASK_MARK
from dbt_ripple.flow.ir import CONDITIONAL, IDENTITY, TRANSFORMATION, Expr
from dbt_ripple.flow.lowering.parse_tree import QUANTIFIERS, is_quantified, verbatim
from dbt_ripple.flow.lowering.scope import indirect, masked, transformed
from dbt_ripple.flow.lowering.walk import TAGS, ExpressionWalk, Rule, merkle
from dbt_ripple.flow.may_fail import may_fail
from dbt_ripple.flow.reading.refusals import Unsupported
from dbt_ripple.flow.reading.sqlglot_versions import ArrayContainedBy

LOGIC_TYPES: Final = (exp.And, exp.Or)
CHAIN_TYPES: Final = frozenset({exp.Add, exp.Mul, exp.DPipe, exp.Sub, exp.Div})
BINARY_TYPES: Final = (exp.EQ, exp.NEQ, exp.GT, exp.GTE, exp.LT, exp.LTE, exp.Is, exp.Mod)
_COMPARISONS: Final = frozenset(
    {
        *(exp.EQ, exp.NEQ, exp.GT, exp.GTE, exp.LT, exp.LTE, exp.NullSafeEQ, exp.NullSafeNEQ),
        *(exp.Is, exp.In, exp.Between, exp.Like, exp.ILike, exp.SimilarTo),
    }
)
_OF_BITS: Final = frozenset(
    {
        *(exp.BitwiseAnd, exp.BitwiseOr, exp.BitwiseXor),
        *(exp.BitwiseLeftShift, exp.BitwiseRightShift, exp.DPipe),
    }
)
_BY_SIGN: Final = frozenset(
    {
        *(exp.StartsWith, exp.ArrayOverlaps, exp.ArrayContainsAll, ArrayContainedBy, exp.Glob),
        *(exp.RegexpLike, exp.RegexpILike, exp.Distance, exp.Operator),
        *(exp.JSONExtract, exp.JSONExtractScalar, exp.JSONBExtract, exp.JSONBExtractScalar),
    }
)
"""What has an operator of its own, ``a ^@ b``; where it is written as a call that makes no difference."""
_ARITHMETIC: Final = frozenset({exp.Add, exp.Sub, exp.Mul, exp.Div, exp.IntDiv, exp.Mod})
_TILDE: Final = frozenset({exp.BitwiseNot})
BOUND_OTHERWISE: Final[dict[type, frozenset[type]]] = {
    **dict.fromkeys(_COMPARISONS, _COMPARISONS | {exp.Not}),
    **{t: (_OF_BITS | _ARITHMETIC | _BY_SIGN) - {t} for t in _OF_BITS},
    **{t: (_OF_BITS | _BY_SIGN) - {t} for t in _BY_SIGN},
    **dict.fromkeys((*_ARITHMETIC, exp.Neg), _TILDE),
    exp.Operator: _OF_BITS | _BY_SIGN,
}
"""Operators, and those that some engine binds otherwise than sqlglot where both stand without a bracket.

``a | b & c`` is ``a | (b & c)`` on Spark and ``(a | b) & c`` on DuckDB; ``a = b < c`` is ``(a = b) < c``
on Spark, and so is ``a = b in (c)``. ``a ^@ b || c`` is ``(a ^@ b) || c`` on DuckDB. ``~a + b`` is ``~(a + b)``
on DuckDB and Postgres; as the ``~`` may so reach over more than its parent here, it is not followed.
"""
_UNBRACKETED: Final = b"unbracketed"
_BOUND_ALIKE: Final[frozenset[type]] = frozenset()


def _flags(node: Any) -> bytes:
    """What a binary operator says besides its two sides (`safe`, `typed`)."""
    flags = b""
    for name, value in node.args.items():
        if value is not None and name != "this" and name != "expression":
            flags += repr((name, value)).encode()
    return flags


def unbracketed(node: Any) -> list[str]:
    """The operands of an operator that are another, which an engine may bind otherwise."""
    bound_otherwise = BOUND_OTHERWISE.get(type(node))
    if bound_otherwise is None:
        return []
    return [name for name, operand in node.args.items() if type(operand) in bound_otherwise]


def marking_unbracketed(method: Rule) -> Rule:
    """A rule for an operator; what others do with it, unbracketed, may be something else."""

    def rule(walk: Any, node: Any, kind: int) -> Expr:
        which = unbracketed(node)
        if not which:
            return method(walk, node, kind)
        if BOUND_OTHERWISE[type(node)] is _TILDE:
            raise Unsupported("~ beside arithmetic, without brackets")
        return merkle([_UNBRACKETED, repr(which).encode(), method(walk, node, kind)])

    return rule


class Operators(ExpressionWalk):
    """Operators."""

    def operator(self, node: Any, kind: int) -> Expr:
        """An operator; on a `*` it chooses columns by their names (`* LIKE 'a%'`)."""
        if type(node.args.get("this")) is exp.Star:
            raise Unsupported("a * filtered by a name pattern")
        return self.generic(node, kind)

    def binary(self, node: Any, kind: int) -> Expr:
        """A comparison and its like: what `generic` gives, without the detours."""
        args = node.args
        if len(args) != 2:
            return self.generic(node, kind)
        if kind == IDENTITY:
            kind = TRANSFORMATION
        left = self.expr(args["this"], kind)
        right = self.expr(args["expression"], kind)
        tag = TAGS[type(node)]
        if type(args["expression"]) in QUANTIFIERS and is_quantified(node):
            return merkle([b"quantified", tag, left, right])
        if tag in COMPARED and type(left) is bytes and type(right) is bytes:
            return compared(tag, left, right)
        return merkle([tag, b"this", left, b"expression", right])

    def paren(self, node: exp.Paren, kind: int) -> Expr:
        return self.expr(node.args["this"], kind)

    def chain(self, node: Any, kind: int) -> Expr:
        """A left-deep run of one operator, without recursion: 10,000 terms are data, not depth."""
        kind = transformed(kind)
        t = type(node)
        flags = _flags(node)
        bound_otherwise = BOUND_OTHERWISE.get(t, _BOUND_ALIKE)
        first_unbracketed = False
        terms: list[Any] = []
        current: Any = node
        while type(current) is t and _flags(current) == flags:
            terms.append(current.args["expression"])
            current = current.args["this"]
            first_unbracketed = type(current) in bound_otherwise
            while type(current) is exp.Paren:
                current = current.args["this"]
        pieces: list[Expr] = [self.expr(current, kind)]
        terms.reverse()
        for term in terms:
            pieces.append(self.expr(term, kind))
        tag = t.__name__.encode() + flags
        if bound_otherwise:
            which = [i for i, term in enumerate(terms, 1) if type(term) in bound_otherwise]
            if first_unbracketed or which:
                if bound_otherwise is _TILDE:
                    raise Unsupported("~ beside arithmetic, without brackets")
                tag += _UNBRACKETED + repr((first_unbracketed, which)).encode()
        while len(pieces) > 1 and isinstance(pieces[0], bytes) and isinstance(pieces[1], bytes):
            pieces[0:2] = [digest(tag, pieces[0], pieces[1])]
        return pieces[0] if len(pieces) == 1 else ["F", tag, *pieces]

    def logic(self, node: Any, kind: int) -> Expr:
        """All that one of AND and OR joins: in SQL's logic their order and brackets say nothing.

        What may fail counts with what stands before it, which may keep it from being evaluated.
        Not recursive, as in `chain`.
        """
        kind = transformed(kind)
        t = type(node)
        terms: list[Expr] = []
        in_turn = False
        ahead: list[Any] = [node]
        while ahead:
            current = ahead.pop()
            while type(current) is exp.Paren:
                current = current.args["this"]
            if type(current) is t and not _flags(current):
                ahead += [current.args["expression"], current.args["this"]]
            elif current is node:
                return self.generic(node, kind)
            else:
                in_turn = in_turn or may_fail(current, self.dialect, by_overflow=True)
                terms.append(self.expr(current, kind))
        tag = t.__name__.encode()
        if in_turn:
            return merkle([b"in turn", tag, *terms])
        if all(type(term) is bytes for term in terms):
            return digest(tag, *sorted(terms))
        return ["C", tag, *terms]

    def collation(self, node: Any, kind: int) -> Expr:
        """A text under a collation, whose name is no column."""
        kind = TRANSFORMATION if kind == IDENTITY else kind
        if self.scopes:
            self.scopes[-1].collates = True
        # A node even of constants, so that a proof about equal texts sees it.
        return [b"Collate", self.expr(node.this, kind), verbatim(node.expression)]


def _is_marked(node: exp.Case) -> bool:
    """Whether a CASE is what the macro ``mask`` writes around what it hides."""
    mark = node.args.get("this")
    return type(mark) is exp.Literal and bool(mark.is_string) and mark.this == MASK_MARK


class Conditionals(ExpressionWalk):
    """CASE and its like."""

    def case(self, node: exp.Case, kind: int) -> Expr:
        kind = masked(transformed(kind)) if _is_marked(node) else transformed(kind)
        test = indirect(kind, CONDITIONAL)
        args = node.args
        pieces: list[Expr] = [b"Case"]
        if args.get("this") is not None:
            pieces += [b"this", self.expr(args["this"], test)]
        for branch in args.get("ifs") or []:
            branch.parent = None
            pieces += [
                b"when",
                self.expr(branch.args["this"], test),
                self.expr(branch.args["true"], kind),
            ]
        if args.get("default") is not None:
            pieces += [b"else", self.expr(args["default"], kind)]
        return merkle(pieces)

    def condition(self, node: exp.If, kind: int) -> Expr:
        kind = transformed(kind)
        args = node.args
        pieces: list[Expr] = [
            b"Case",
            b"when",
            self.expr(args["this"], indirect(kind, CONDITIONAL)),
        ]
        pieces.append(self.expr(args["true"], kind))
        if args.get("false") is not None:
            pieces += [b"else", self.expr(args["false"], kind)]
        return merkle(pieces)

    def decode(self, node: exp.DecodeCase, kind: int) -> Expr:
        """DECODE(value, search, result, ..., default) chooses like a CASE."""
        kind = transformed(kind)
        test = indirect(kind, CONDITIONAL)
        value, *rest = node.expressions
        pieces: list[Expr] = [b"Decode", self.expr(value, test)]
        for i, argument in enumerate(rest):
            searched = i % 2 == 0 and i + 1 < len(rest)
            pieces.append(self.expr(argument, test if searched else kind))
        return merkle(pieces)

    def null_if(self, node: exp.Nullif, kind: int) -> Expr:
        """NULLIF(a, b) is CASE WHEN a = b THEN NULL ELSE a END: both choose, a is the value."""
        kind = transformed(kind)
        test = indirect(kind, CONDITIONAL)
        this = node.args["this"]
        if (
            test != kind
        ):  # else it is asked once, so that many of them within each other cost as many steps
            self.expr(this, test)
        return merkle([b"Nullif", self.expr(this, kind), self.expr(node.args["expression"], test)])
