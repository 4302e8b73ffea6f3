"""Expressions of the semantic layer, each read as the only output of a query over its relation."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Final, Protocol

from dbt_ripple.flow.fingerprint import digest
from dbt_ripple.flow.identifiers import fold
from dbt_ripple.flow.ir import TRANSFORMATION, Lowered
from dbt_ripple.flow.link import Linked, link
from dbt_ripple.flow.relation import (
    Deps,
    OutputColumn,
    Relation,
    RowSet,
)
from dbt_ripple.flow.unused_ctes import checked
from dbt_ripple.graph.unresolved_names import engine_refuses, without_words
from dbt_ripple.reasons import Code, Reason

_FROM: Final = "semantic_model"
"""What an expression is read from, in the query that is made of it."""

_SEMANTIC_LAYER: Final = digest(b"semantic layer")
NO_RELATION: Final = Relation([], RowSet.unjoined(_SEMANTIC_LAYER, {}, _SEMANTIC_LAYER))


class QueryLowerer(Protocol):
    """Where queries are lowered."""

    def lowered(self, sql: str) -> Lowered:
        """A query, lowered."""


@dataclass(slots=True)
class Value:
    """The value of an expression.

    Attributes:
        why: why it cannot be read; it then depends on everything it could.
        missing: names for want of which it certainly fails; ``doubtful`` for which it may.
    """

    fp: bytes
    deps: Deps
    why: Reason | None = None
    missing: list[str] = field(default_factory=list)
    doubtful: list[str] = field(default_factory=list)


class SemanticExpressions:
    """Reads the expressions of one project's semantic layer.

    Args:
        dialect: of its SQL.
        queries: lowers what expressions are made into.
    """

    def __init__(self, dialect: str, queries: QueryLowerer) -> None:
        self.dialect = dialect
        self.queries = queries

    def value(
        self,
        text: str,
        over: Relation,
        surely: Callable[[], Relation] | None,
        stored: bool = True,
    ) -> Value:
        """The value of an expression over a relation.

        Args:
            text: the expression.
            over: what it is read from.
            surely: the same, as far as its columns are certain; None where a name that cannot be
                found is never certainly missing.
            stored: whether the relation is a table (`unresolved_names.engine_refuses`).
        """
        sql = f"select (\n{text}\n) as value from {_FROM}"
        others = False

        def table(key: str, _name: str) -> Relation:
            nonlocal others
            others = others or key != _FROM
            return over

        try:
            lowered = self.queries.lowered(sql)
            if lowered.rel is None:
                return _anything(over, text, lowered.reason or Code.NO_EXPRESSION())
            linked = link(lowered, table, self.dialect)
        except Exception as error:  # a defect of ours is this element's, not the whole project's
            reason = Code.DEFECT(error=f"{type(error).__name__}: {error}")
            return _anything(over, text, reason)
        relation = linked.relation
        if others:
            return _anything(over, text, Code.READS_ANOTHER_RELATION())
        if len(relation.columns) != 1 or relation.unlisted:
            return _anything(over, text, Code.NOT_ONE_EXPRESSION())
        fp, deps = relation.columns[0].value
        if relation.rows.fp != over.rows.fp:
            fp = digest(b"over rows", fp, relation.rows.fp)
        value = Value(fp, deps)
        if linked.missing:
            value.fp = digest(b"broken", fp, *(name.encode() for name in linked.missing))
            value.doubtful = self.names_not_found(sql, over, stored, surely=False)
            if value.doubtful:
                unread = _anything(over, text, Code.CANNOT_FOLLOW(names=value.doubtful))
                value.fp, value.deps = digest(value.fp, unread.fp), unread.deps
            if value.doubtful and surely is not None:
                value.missing = self.names_not_found(sql, surely(), stored, surely=True)
        return value

    def names_not_found(self, sql: str, over: Relation, stored: bool, *, surely: bool) -> list[str]:
        """The names that an expression cannot find, as far as its engine would refuse them."""
        lowered, follows = without_words(sql, self.dialect, unsure=surely)
        if lowered.rel is None or (surely and not follows):
            return []
        executed = checked(lowered, self.dialect, surely=surely)
        linked: Linked = link(executed, lambda *_: over, self.dialect)
        refused = (True,) if surely else (True, None)
        return [
            n for n in linked.missing if engine_refuses(linked, n, self.dialect, stored) in refused
        ]

    def relation_with(self, columns: Iterable[tuple[str, bytes, Deps]]) -> Relation:
        """A relation with these columns (name, fingerprint, dependencies) and nothing else."""
        return Relation(
            [
                OutputColumn(name, fold(name, False, self.dialect), fp, deps)
                for name, fp, deps in columns
            ],
            RowSet.unjoined(_SEMANTIC_LAYER, {}, _SEMANTIC_LAYER),
        )


def alone(relation: Relation) -> Relation:
    """A relation as the only one there is: what tells it from others to be joined is of no matter."""
    rows = RowSet.unjoined(relation.rows.fp, relation.rows.deps, _SEMANTIC_LAYER)
    return Relation(relation.columns, rows, relation.unlisted, relation.unresolved)


def _anything(over: Relation, text: str, why: Reason) -> Value:
    fp = digest(b"unread", text.encode(), over.all_fp(), over.rows.fp)
    return Value(fp, over.whole(TRANSFORMATION), why)
