"""Everything of a SELECT after its FROM and select list, in one record."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from sqlglot import exp

from dbt_ripple.flow import alias_resolution
from dbt_ripple.flow.fingerprint import digest
from dbt_ripple.flow.ir import FILTER, FromItem, LoweredExpr, Out, Rel, Select, Star, Table
from dbt_ripple.flow.lowering.group_and_order import ORDERING, GroupAndOrder
from dbt_ripple.flow.lowering.parse_tree import argument_names, as_list, verbatim
from dbt_ripple.flow.lowering.scope import Scope

_READ_BEHIND: Final = argument_names(
    "order sort cluster distribute limit offset where group having qualify"
)
_READ_OF_DISTINCT: Final = argument_names("on")
_NO_COLUMNS: Final = argument_names("settings format options for_ locks into operation_modifiers")
"""Clauses of a SELECT whose names are none of its columns: hashed as they stand."""


class AfterFrom(GroupAndOrder):
    """The clauses after FROM, put together."""

    def select_star_from(
        self,
        rel: Rel,
        columns: list[str] | None,
        modifiers: dict[str, Any] | None = None,
        extra: Sequence[LoweredExpr] = (),
    ) -> Select:
        """`select * from rel`, under other column names or with what stands behind it."""
        scope = self.enter()
        scope.extra.extend(extra)
        self.add_source(None, None, rel, columns)
        scope.items.append(FromItem(0, ""))
        args = modifiers or {}
        star = Star(-1, 0, None, [], {}, {})
        select = self.select_behind(args, scope, [""], [""], [star], _READ_BEHIND)
        self.leave()
        return select

    def select_behind(
        self,
        args: dict[str, Any],
        scope: Scope,
        names: list[str],
        keys: list[str],
        outs: list[Out],
        reads: frozenset[str],
    ) -> Select:
        """Everything of a SELECT after its FROM and select list; `args` holds what is set."""
        select = Select(
            sources=scope.sources,
            items=scope.items,
            refs=scope.refs,
            subs=scope.subs,
            names=names,
            keys=keys,
            outs=outs,
            wide="" in keys,
            generators=scope.generators,
            grouped=False,
            aggregated=False,
        )
        if "where" in args:
            scope.place = alias_resolution.WHERE
            self.of_one_row = self.one_row
            select.where = self.conjuncts(args["where"].this, FILTER)
            self.of_one_row = False
        if "prewhere" in args and "prewhere" in reads:
            select.where = [*select.where, *self.conjuncts(args["prewhere"].this, FILTER)]
        if "group" in args:
            self.grouping_of(args["group"], select, scope)
        if "having" in args:
            scope.place = (
                alias_resolution.HAVING_ALL if select.group_all else alias_resolution.HAVING
            )
            select.having = self.conjuncts(args["having"].this, FILTER)
        select.uncertain, scope.uncertain = scope.uncertain, []
        select.sorts = scope.sorts
        if select.wide:
            scope.sorts = []
        scope.shown = select.wide  # what stands behind the select list sees the outputs of a star
        if "qualify" in args:
            scope.place = alias_resolution.QUALIFY
            select.qualify = self.conjuncts(args["qualify"].this, FILTER)
        select.as_stored = scope.as_stored
        select.shapes = scope.shapes
        if not args.keys().isdisjoint(ORDERING):
            self.ordering(args, select, scope)
        if "limit" in args or "offset" in args:
            self.of_one_row = self.one_row
            select.limit = [
                self.lower_alone(args[k], FILTER) for k in ("limit", "offset") if k in args
            ]
            self.of_one_row = False
        if "distinct" in args:
            select.distinct = True
            self.hash_unread(args["distinct"], _READ_OF_DISTINCT)
            on = args["distinct"].args.get("on")
            if on is not None:
                self.distinct_on(on.expressions if isinstance(on, exp.Tuple) else [on], select)
        if "hint" in args:
            select.hint = digest(b"hint", verbatim(args["hint"]).lower())
        self.add_extra(args, scope, select, reads)
        select.extra = scope.extra
        select.uncertain_late = scope.uncertain
        # An aggregate makes groups in whichever clause it stands.
        select.aggregated = scope.aggregated or bool(select.uncertain)
        select.grouped = scope.aggregated or "group" in args or bool(select.having)
        select.windowed = scope.windowed
        if select.wide:
            select.sorts_late = scope.sorts
        select.outward = scope.outward
        select.may_lift = scope.may_lift
        select.collates = scope.collates
        select.volatile = bool(scope.volatile)
        return select

    def add_extra(
        self, args: dict[str, Any], scope: Scope, select: Select, reads: frozenset[str]
    ) -> None:
        """Add what no rule reads to what all of the SELECT depends on; and texts and names that are data."""
        if not reads.issuperset(args):
            scope.extra += [
                LoweredExpr(digest(name.encode(), verbatim(value)), {}, {})
                if name in _NO_COLUMNS
                else self.lower_together(as_list(value), FILTER, name.encode())
                for name, value in args.items()
                if name not in reads
            ]
        if "sample" in args and not (len(scope.items) == 1 and type(scope.sources[0].rel) is Table):
            # Which rows it takes of what is not a table rests on the plan, and that on all of the text.
            scope.extra.append(
                LoweredExpr(digest(b"plan", *(t.text.encode() for t in self.tokens)), {}, {})
            )
        if "kind" in args or "for_" in args:
            # AS STRUCT, FOR JSON: the names of its columns are data.
            column_names = select.keys if self.folds else select.names
            stars = [exp.Star()] if select.wide else []
            tag = digest(b"names", *(name.encode() for name in column_names))
            scope.extra.append(self.lower_together(stars, FILTER, tag))
