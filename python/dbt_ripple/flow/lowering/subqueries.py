"""Subqueries in expressions: scalar ones, EXISTS and IN."""

from __future__ import annotations

from typing import Any

from sqlglot import exp

from dbt_ripple.flow.ir import CONDITIONAL, EXISTS, TRANSFORMATION, Expr, LoweredExpr
from dbt_ripple.flow.lowering.dependency_kinds import indirect, transformed
from dbt_ripple.flow.lowering.walk import ExpressionWalk, merkle
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
