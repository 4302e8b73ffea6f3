"""What several clauses of a query need: the relations of a FROM, conditions, positions."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from itertools import compress
from typing import Any, Final

from sqlglot import exp

from dbt_ripple.flow.ir import FILTER, SORT, LoweredExpr, Rel, Source
from dbt_ripple.flow.lowering.expressions import Expressions
from dbt_ripple.flow.lowering.parse_tree import argument_names, as_list, ordinal_of
from dbt_ripple.flow.lowering.scope import TWICE
from dbt_ripple.flow.may_fail import may_fail
from dbt_ripple.flow.reading.refusals import Unsupported

READ_OF_NAME: Final = argument_names("this table")


def refuse_unread(node: Any, reads: frozenset[str]) -> None:
    """Refuse a node of which something is set that no rule reads."""
    args = node.args
    if not reads.issuperset(args) and not reads.issuperset(compress(args, args.values())):
        name = next(name for name, value in args.items() if value and name not in reads)
        value = next((v for v in as_list(args[name]) if isinstance(v, exp.Expression)), node)
        raise Unsupported(f"cannot follow {as_written(value)}")


def as_written(node: Any) -> str:
    """A part of a query as SQL has it, short, for people."""
    text = " ".join(node.sql(comments=False).split())
    return f"`{text if len(text) <= _SHOWN else f'{text[:_SHOWN]}...'}`"


_SHOWN: Final = 60


def hash_ordinal(node: Any) -> int | None:
    """The position that ``#2`` is in ORDER BY and DISTINCT ON; inside of expressions it is not."""
    return ordinal_of(node.this) if isinstance(node, exp.PositionalColumn) else None


class ClauseHelpers(Expressions):
    """What several clauses need."""

    def __init__(
        self, dialect: str, masking: Collection[str] = (), tokens: Sequence[Any] = ()
    ) -> None:
        super().__init__(dialect, masking)
        self.tokens = tokens

    def add_source(
        self,
        alias: str | None,
        full_name: str | None,
        rel: Rel,
        columns: list[str] | None,
        in_brackets: bool = False,
    ) -> int:
        scope = self.scopes[-1]
        index = len(scope.sources)
        scope.sources.append(Source(alias, rel, columns, in_brackets))
        free = alias in scope.hidden
        if free:
            scope.hidden = scope.hidden.difference((alias,))
        if alias is not None:
            self.sources_named.add(alias)
            scope.names[alias] = TWICE if alias in scope.names and not free else index
        if full_name is not None:
            twice = full_name in scope.full_names and not free
            scope.full_names[full_name] = TWICE if twice else index
        return index

    def hash_unread(self, node: Any, reads: frozenset[str]) -> None:
        """Hash the arguments of a node that no rule reads: all of the SELECT it stands in depends on them."""
        if reads.issuperset(node.args):
            return
        for name, value in node.args.items():
            if value and name not in reads:
                tag = f"{type(node).__name__} {name}".encode()
                self.scopes[-1].extra.append(self.lower_together(as_list(value), FILTER, tag))

    def conjuncts(self, condition: Any, kind: int) -> list[LoweredExpr]:
        """A condition as the list of what AND joins: a row is kept when all of them hold."""
        conjuncts: list[LoweredExpr] = []
        stack = [condition]
        while stack:
            node = stack.pop()
            node.parent = None
            if isinstance(node, exp.And):
                stack.append(node.args["expression"])
                stack.append(node.args["this"])
            elif isinstance(node, exp.Paren):
                stack.append(node.this)
            else:
                fails = may_fail(node, self.dialect, by_overflow=True)
                conjuncts.append(self.lower_alone(node, kind))
                conjuncts[-1].may_fail = fails
        return conjuncts

    def ordinal(self, node: Any) -> int | None:
        """The position a bare integer stands for in GROUP BY and ORDER BY."""
        position = ordinal_of(node)
        if position is not None:
            self.literal(node, SORT)
        return position

    def column_names(self, alias: Any) -> list[str]:
        """The names that an alias gives to columns."""
        columns = alias.args.get("columns") or ()
        for column in columns:
            self.fold(column)
        return [column.name for column in columns]
