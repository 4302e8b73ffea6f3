"""Expressions that choose one of several values: CASE, IF, DECODE and NULLIF."""

from __future__ import annotations

from sqlglot import exp

from dbt_ripple.flow.builtin_names import MASK_MARK
from dbt_ripple.flow.ir import CONDITIONAL, Expr
from dbt_ripple.flow.lowering.dependency_kinds import indirect, masked, transformed
from dbt_ripple.flow.lowering.walk import ExpressionWalk, merkle


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
