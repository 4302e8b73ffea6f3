"""Aggregates, with FILTER and WITHIN GROUP, and window functions."""

from __future__ import annotations

from typing import Any, Final

from sqlglot import exp

from dbt_ripple.flow import alias_resolution
from dbt_ripple.flow.fingerprint import digest
from dbt_ripple.flow.functions import ORDERED_SET_NAMES
from dbt_ripple.flow.ir import CONDITIONAL, SORT, WINDOW, Expr
from dbt_ripple.flow.lowering.function_calls import FunctionCalls
from dbt_ripple.flow.lowering.literals_and_types import LiteralsAndTypes
from dbt_ripple.flow.lowering.parse_tree import as_call, verbatim
from dbt_ripple.flow.lowering.scope import aggregated, indirect, masked, transformed
from dbt_ripple.flow.lowering.walk import GENERIC, merkle
from dbt_ripple.flow.reading.dialects import function_name
from dbt_ripple.flow.reading.refusals import Unsupported

_VALUE_WINDOW_TYPES: Final = (exp.Lag, exp.Lead, exp.FirstValue, exp.LastValue, exp.NthValue)
_ORDERED_SETS: Final = (exp.PercentileCont, exp.PercentileDisc, exp.Mode, exp.Median)
_RANKS: Final = tuple(
    t
    for n in ("RowNumber", "Rank", "DenseRank", "PercentRank", "CumeDist", "Ntile")
    if (t := getattr(exp, n, None)) is not None
)
_BLIND_TO_TIES: Final = tuple(
    t
    for n in (
        *("Rank", "DenseRank", "PercentRank", "CumeDist", "Count", "CountIf", "ApproxDistinct"),
        *("Avg", "Max", "Median", "Min", "Sum", "LogicalAnd", "LogicalOr"),
        *("Stddev", "StddevPop", "StddevSamp", "Variance", "VariancePop"),
    )
    if (t := getattr(exp, n, None)) is not None
)
"""Functions of a window that see which rows there are, and of rows that are equal no order."""
_IN_AGGREGATE: Final = {
    alias_resolution.HAVING: alias_resolution.HAVING_AGGREGATE,
    alias_resolution.HAVING_ALL: alias_resolution.HAVING_AGGREGATE,
    alias_resolution.ORDER: alias_resolution.ORDER_AGGREGATE,
    alias_resolution.ORDER_IN: alias_resolution.ORDER_AGGREGATE,
}
"""Where a name stands that is inside an aggregate of that place."""
_IN_WINDOW: Final = {
    alias_resolution.SELECT: alias_resolution.WINDOW,
    alias_resolution.ORDER: alias_resolution.ORDER_WINDOW,
    alias_resolution.ORDER_IN: alias_resolution.ORDER_WINDOW,
}


def _counts_rows(node: exp.Count) -> bool:
    """Whether a count counts every row: ``count(*)``, or of a constant that is not NULL."""
    this = node.args.get("this")
    if node.args.get("expressions"):
        return False
    if isinstance(this, exp.Star):
        return not any(this.args.values())
    return isinstance(this, (exp.Literal, exp.Boolean))


def _sees_no_ties(call: Any, spec: Any) -> bool:
    """Whether a window's value is the same however rows that its ORDER BY leaves equal come."""
    if spec is not None and str(spec.args.get("kind")).upper() not in ("RANGE", "GROUPS"):
        return False
    while isinstance(call, exp.Filter):
        call = call.this
    return isinstance(call, _BLIND_TO_TIES)


class AggregatesAndWindows(FunctionCalls, LiteralsAndTypes):
    """Aggregates and window functions."""

    def grouping(self, node: Any, kind: int) -> Expr:
        """GROUPING(k) says which grouping set a row is of: no value of k shows in it."""
        self.scopes[-1].aggregated = True
        saved = self.deps
        self.deps = {}
        e = self.generic(node, kind)
        self.deps = saved
        return e

    def aggregate(self, node: Any, kind: int) -> Expr:
        if not self.scopes:
            return self.aggregate_call(node, kind, "A")
        scope = self.scopes[-1]
        scope.aggregated = True
        place, scope.place = scope.place, _IN_AGGREGATE.get(scope.place, scope.place)
        of_one_row, self.of_one_row = self.of_one_row, self.one_row
        call = self.aggregate_call(node, kind, "A")
        scope.place, self.of_one_row = place, of_one_row
        self.note_outer_aggregate(call)
        return call

    def aggregate_call(self, node: Any, kind: int, mode: str) -> Expr:
        """The call of an aggregate, over a group (``A``) or, from `window`, over a frame."""
        inner = aggregated(kind)
        if isinstance(node, exp.Count) and _counts_rows(node):
            self.rows |= inner
            if isinstance(node.this, exp.Literal):
                self.literal(node.this, kind)
            return [mode, digest(b"count(*)")]
        before = len(self.deps), len(self.sub_deps)
        if isinstance(node, (exp.Count, exp.CountIf, exp.ApproxDistinct)):
            e = self.generic(node, masked(inner))
        elif isinstance(node, exp.Anonymous):
            e = self.call(node, inner)
        elif isinstance(node, exp.Dot):
            e = self.dotted_call(node, inner)
        else:
            e = self.generic(node, inner)
        if isinstance(e, bytes) and before == (len(self.deps), len(self.sub_deps)):
            self.rows |= inner  # sum(1), count(1): a number of rows
        return [mode, e]

    def filter(self, node: exp.Filter, kind: int) -> Expr:
        call = self.aggregate if self.may_aggregate(node.this) else self.expr
        if not self.scopes:
            return self.filtered(node, kind, call(node.this, kind))
        scope = self.scopes[-1]
        place, scope.place = scope.place, _IN_AGGREGATE.get(scope.place, scope.place)
        e = self.filtered(node, kind, call(node.this, kind))
        scope.place = place
        return e

    def may_aggregate(self, call: Any) -> bool:
        """Whether a call is of a function that nobody here knows."""
        if isinstance(call, exp.Anonymous):
            return self.functions.kind(self.name_of(call)) != "aggregate"
        return isinstance(call, exp.Dot) and isinstance(call.expression, exp.Func)

    def filtered(self, node: exp.Filter, kind: int, call: Expr) -> Expr:
        where = node.args["expression"]
        test = where.this if isinstance(where, exp.Where) else where
        of_one_row, self.of_one_row = self.of_one_row, self.one_row
        condition = self.expr(test, indirect(kind, CONDITIONAL))
        self.of_one_row = of_one_row
        return merkle([b"Filter", call, condition])

    def within_group(self, node: exp.WithinGroup, kind: int) -> Expr:
        if not self.scopes:
            return ["A", self.within_group_call(node, kind)]
        scope = self.scopes[-1]
        scope.aggregated = True
        place, scope.place = scope.place, _IN_AGGREGATE.get(scope.place, scope.place)
        call = self.within_group_call(node, kind)
        scope.place = place
        return ["A", call]

    def within_group_call(self, node: exp.WithinGroup, kind: int) -> Expr:
        """WITHIN GROUP (ORDER BY x): the value of a percentile, the mere order of a list."""
        inner = aggregated(kind)
        call = node.this
        ordered_set = isinstance(call, _ORDERED_SETS) or function_name(call) in ORDERED_SET_NAMES
        order = node.args["expression"]
        lower = self.dotted_call if isinstance(call, exp.Dot) else self.generic
        pieces: list[Expr] = [b"WithinGroup", lower(call, inner)]
        pieces.append(self.generic(order, inner if ordered_set else indirect(inner, SORT)))
        return merkle(pieces)

    def inner_order(self, node: exp.Order, kind: int) -> Expr:
        pieces: list[Expr] = [b"Order"]
        if node.args.get("this") is not None:
            pieces.append(self.expr(node.this, kind))
        pieces.extend(self.expr(e, indirect(kind, SORT)) for e in node.expressions)
        return merkle(pieces)

    def chosen_by(self, node: exp.HavingMax, kind: int) -> Expr:
        """``x HAVING MAX y`` in an aggregate: y says of which rows x is taken."""
        which = b"max" if node.args.get("max") else b"min"
        value = self.expr(node.this, kind)
        return merkle(
            [b"HavingMax", which, value, self.expr(node.expression, indirect(kind, SORT))]
        )

    def window(self, node: exp.Window, kind: int) -> Expr:
        if not self.scopes:
            return self.window_call(node, kind)
        scope = self.scopes[-1]
        place, scope.place = scope.place, _IN_WINDOW.get(scope.place, scope.place)
        call = self.window_call(node, kind)
        scope.place = place
        return call

    def window_call(self, node: exp.Window, kind: int) -> Expr:
        kind = transformed(kind)
        if self.scopes:
            self.scopes[-1].windowed = True
        partition, order, spec, leftover = self.window_parts(node)
        over = indirect(kind, WINDOW)
        keep = leftover.get("over") is not None
        if keep and self.scopes:  # Oracle's KEEP (DENSE_RANK FIRST ORDER BY x): an aggregate
            self.scopes[-1].aggregated = True
        pieces: list[Expr] = [b"Window", self.window_function(node.this, kind)]
        pieces.append(b"partition")
        pieces.extend(self.expr(p, over) for p in partition)
        if order is not None:
            order.parent = None
            pieces.append(b"order")
            pieces.extend(self.expr(o, over) for o in order.expressions)
        sorts = len(pieces) > 3
        if sorts and self.scopes:
            self.scopes[-1].sorts.append(merkle(pieces[2:]))
        if spec is not None:
            pieces += [b"spec", self.expr(spec, over)]
            for bound in spec.args.values():
                for word in bound.lower().split() if isinstance(bound, str) else ():
                    self.read[-len(self.read)] = word
        pieces += [digest(verbatim(leftover))]
        if keep:
            return ["A", merkle(pieces)]
        if _sees_no_ties(node.this, spec):
            return ["W", merkle(pieces)]
        return ["W", merkle(pieces), b"sorted" if sorts else b"as it comes"]

    def window_parts(self, node: exp.Window) -> tuple[list[Any], Any, Any, dict[str, bytes]]:
        """PARTITION BY, ORDER BY and frame of a window, those of the window it names included."""
        args = node.args
        partition = list(args.get("partition_by") or [])
        order = args.get("order")
        spec = args.get("spec")
        leftover = {
            k: verbatim(v)
            for k, v in args.items()
            if v and k not in ("this", "partition_by", "order", "spec", "alias") and v != "OVER"
        }
        if order is not None:
            more = {k: v for k, v in order.args.items() if v and k != "expressions"}
            if more:
                leftover["order"] = verbatim(more)
        alias = args.get("alias")
        if args.get("over") == "KEEP":  # (DENSE_RANK FIRST ORDER BY x): no window of that name
            alias = None
        if alias is not None:
            base = self.scopes[-1].windows.get(
                self.fold(alias if isinstance(alias, exp.Identifier) else alias.this)
            )
            if base is None:
                raise Unsupported(f"window {alias.name} is not defined")
            if base is not node:
                base_partition, base_order, base_spec, base_left = self.window_parts(base)
                partition = partition or base_partition
                order = order or base_order
                spec = spec or base_spec
                leftover = {**base_left, **leftover}
        return partition, order, spec, leftover

    def window_function(self, node: Any, kind: int) -> Expr:
        """The function of a window: it aggregates over its frame and does not group the scope."""
        node = as_call(node)
        if isinstance(node, exp.Filter):
            return self.filtered(node, kind, self.window_function(node.this, kind))
        if isinstance(node, (exp.IgnoreNulls, exp.RespectNulls)):
            for word in ("ignore" if isinstance(node, exp.IgnoreNulls) else "respect", "nulls"):
                self.read[-len(self.read)] = word
            return merkle([type(node).__name__.encode(), self.window_function(node.this, kind)])
        if isinstance(node, _VALUE_WINDOW_TYPES):
            return self.generic(node, kind)
        if isinstance(node, exp.WithinGroup):
            return self.within_group_call(node, kind)
        if isinstance(node, exp.Window) and self.scopes:  # Oracle's KEEP (...) OVER (...)
            aggregated = self.scopes[-1].aggregated
            kept = self.window_call(node, kind)
            self.scopes[-1].aggregated = aggregated
            return kept[1] if type(kept) is list and kept[0] == "A" else kept
        if isinstance(node, (exp.First, exp.Last)):
            return self.generic(node, kind)
        if isinstance(node, _RANKS):
            return self.generic(node, indirect(kind, WINDOW))
        if isinstance(node, exp.AggFunc):
            return self.aggregate_call(node, kind, "W")
        if isinstance(node, exp.Func) and self.functions.kind(self.name_of(node)) == "aggregate":
            return self.aggregate_call(node, kind, "W")
        if isinstance(node, exp.Anonymous):
            return self.known_call(node, kind)
        if isinstance(node, exp.Dot) and isinstance(node.expression, exp.Func):
            return self.dotted_call(node, kind)
        plain = self.by_class.get(type(node), GENERIC)
        return (GENERIC if plain is FunctionCalls.generator else plain)(self, node, kind)
