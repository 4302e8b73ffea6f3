"""Can an expression fail when it is evaluated? Then it counts whether, and of which rows, it is."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping
from types import MappingProxyType
from typing import Any, Final

from sqlglot import exp

from dbt_ripple.flow.determinism import classes, cte_of, is_distinct, is_one_row
from dbt_ripple.flow.query_text import conjuncts, folded
from dbt_ripple.flow.reading.dialects import written
from dbt_ripple.flow.reading.reader import UNREAD, parse_statement
from dbt_ripple.flow.varying_columns import EVERYTHING, column_of, made_of

DIVIDES_BY_ZERO: Final = frozenset({"duckdb", "hive", "mysql", "spark2", "sqlite"})
"""Dialects in which `/` by zero gives a value, or NULL; in all but DuckDB, `//` and `%` by zero, too."""


_CASTS_TO_NULL: Final = frozenset({"hive", "spark2"})


_NEVER: Final = classes(
    "And Or Xor Case If Coalesce Nullif Nvl2 Lower Upper Trim Length Concat ConcatWs Substring Left Right Replace "
    "Abs Greatest Least Extract DateTrunc TimestampTrunc Year Month Day Quarter Hour Minute CurrentDate "
    "CurrentTimestamp RowNumber Rank DenseRank Lag Lead Array StartsWith EndsWith Contains Exists RegexpLike DateAdd "
    "DateSub DateDiff Round Sign SHA SHA2 MD5 ArrayContains Struct Columns Unnest Explode"
)
"""Functions of sqlglot's that fail for no value of the types that they take; an aggregate is no other."""
_NEVER_BY_CONSTANTS: Final = classes("SplitPart RegexpReplace")
"""Functions that fail for no value of what they are of, if a row gives them no other argument."""
_OVERFLOWING: Final = (exp.Add, exp.Sub, exp.Mul)
_DIVISIONS: Final = classes("Div IntDiv Mod")
_OF_SOME_ROWS: Final = classes(
    "Case If Coalesce Nullif Nvl2 And Or Filter Lambda Subquery Exists In Any All"
)
INLINING: Final = frozenset({"databricks", "duckdb", "hive", "spark", "spark2"})
"""Dialects whose engines make a CTE part of each query that reads it, if nothing else is asked for."""
_CONDITIONS: Final = (exp.Where, exp.Having, exp.Qualify)
ASKED: Final = "asked of rows: "
"""Begins a step that only leaves rows out, and by itself cannot fail."""
_TURNED: Final = {
    exp.EQ: exp.EQ,
    exp.NEQ: exp.NEQ,
    exp.LT: exp.GT,
    exp.LTE: exp.GTE,
    exp.GT: exp.LT,
    exp.GTE: exp.LTE,
}
"""How a comparison is said with its operands turned: both are evaluated."""
_STEPS: Final = classes(
    "Where Having Group Qualify Order Join Window Limit Offset Fetch Lateral Unnest Pivot TableSample"
)
_QUERIES: Final = (exp.From, exp.Join, exp.In, exp.Exists, exp.CTE, exp.SetOperation)


def may_fail(expression: Any, dialect: str, *, by_overflow: bool = False) -> bool:
    """Whether an expression may fail for some values, or some rows, that it is evaluated for.

    A cast may, a division by zero, a subquery of several rows, and any function that is not known
    not to. What an engine casts by itself is not looked for, and what overflows only if that is asked for.

    Example:
        >>> from dbt_ripple.flow.reading.reader import parse_statement
        >>> [may_fail(parse_statement("select " + e, "duckdb").selects[0], "duckdb") for e in ("a > 1 and b is null", "a::int > 1", "a::text", "f(a)")]
        [False, True, False, True]
    """
    return any(
        _fails(node, dialect) or (by_overflow and isinstance(node, _OVERFLOWING))
        for node in expression.walk()
    )


class Evaluated:
    """What an engine evaluates of a query, to be held against the same query in other words.

    Args:
        sql: a compiled query.
        dialect: sqlglot's name of its engine.
        read: the columns of views that it reads whose values may fail, in lower case, with the texts of what fails.
        renamed: how the other side calls columns that it reads, by their names here in lower case.

    Attributes:
        forced: what has an engine evaluate what may fail and nobody reads, and what that is: keys of ORDER BY,
            DISTINCT, and CTEs that are evaluated once.
        steps: what decides for which rows, and when, anything is evaluated: conditions, keys, joins, windows, limits.
        items: what is computed for columns, by its text.

    All are texts without the names of tables; what `query_text.folded` takes as the same is the same.
    """

    def __init__(
        self,
        sql: str,
        dialect: str,
        read: Mapping[str, Collection[str]] = MappingProxyType({}),
        renamed: Mapping[str, str] = MappingProxyType({}),
    ) -> None:
        self._dialect, self._read, self._renamed = dialect, read, renamed
        self.forced: set[str] = set()
        self.steps: set[str] = set()
        self.items: dict[str, list[Any]] = {}
        try:
            self._tree: Any = parse_statement(folded(sql, dialect), dialect)
        except UNREAD:
            self._tree = None
            self.steps = {sql}
            return
        self._failing = [node for node in self._tree.walk() if _may_raise(node, dialect)]
        self._made = {name: {*texts} for name, texts in read.items()}
        items = [i for select in self._tree.find_all(exp.Select) for i in select.expressions]
        more = True
        while more:
            more = False
            for item in items:
                if fails := self._fails_by(item):
                    made = self._made.setdefault(column_of(item, compared=False), set())
                    more = more or not fails <= made
                    made |= fails
        self._times = Counter(id(cte_of(table)) for table in self._tree.find_all(exp.Table))
        for node in self._tree.walk():
            self._note(node)

    def may_fail(self, *, forced: bool = False) -> frozenset[str]:
        """The columns of the query, in lower case, whose values may fail when they are read.

        An engine that is asked for other columns need not evaluate these. `EVERYTHING` where it may be any.

        Args:
            forced: whether something in the query has the engine evaluate all of it.
        """
        if self._tree is None:
            return frozenset({EVERYTHING})
        if forced and (self._failing or self._read):
            return frozenset({EVERYTHING})
        return made_of(self._tree, self._failing, self._read)

    def fails_by(self) -> dict[str, frozenset[str]]:
        """The texts of what fails, by the columns that `may_fail`."""
        if self._tree is None:
            return {EVERYTHING: frozenset(self.steps)}
        every = frozenset[str]().union(*self._made.values(), map(self._text, self._failing))
        return {name: frozenset(self._made.get(name, every)) for name in self.may_fail()}

    def made_otherwise(self, said: Collection[str], read: Collection[str]) -> frozenset[str]:
        """The columns of the query that ask for what may fail only of some rows, in words of this side alone.

        What may fail and stands there itself is left to fingerprints, which keep its place; here it has a name.

        Args:
            said: the texts of what the other side computes.
            read: the columns of views that it reads of which that is so.
        """
        if self._tree is None:
            return frozenset({EVERYTHING})
        other = [item for text in self.items.keys() - {*said} for item in self.items[text]]
        asked = [i for i in other if i.find(*_OF_SOME_ROWS) and self._named_by(i)]
        return made_of(self._tree, asked, read)

    def _note(self, node: Any) -> None:
        if isinstance(node, _CONDITIONS) and not self._fails_by(node):
            self.steps |= {f"{ASKED}{self._text(c)}" for c in conjuncts(node.this)}
        elif isinstance(node, _STEPS):
            self.steps.add(self._text(node))
        elif isinstance(node, exp.SetOperation):
            self.steps.add(f"{node.key} {is_distinct(node)}")
        elif isinstance(node, exp.Select):
            for item in node.expressions:
                if not isinstance(said := item.unalias(), exp.Column | exp.Star):
                    self.items.setdefault(self._text(said), []).append(item)
        compared: list[Any] = []
        if isinstance(node, exp.Order) and isinstance(node.parent, exp.Query):
            named = all(key.find(exp.Column) for key in node.expressions)
            compared = [node] if named else [node, *node.parent.selects]
        elif isinstance(node, exp.Query) and (node.args.get("distinct") or _is_compared(node)):
            compared = node.selects if isinstance(node, exp.Select) else [node]
        elif isinstance(node, exp.CTE):
            twice = self._times[id(node)] > 1 and self._dialect not in INLINING
            compared = [node.this] if node.args.get("materialized") or twice else []
        fails = set[str]().union(*map(self._fails_by, compared))
        if any(_is_all(star) for piece in compared for star in piece.find_all(exp.Star)):
            fails = fails.union(*self._made.values())
        if fails:
            word = self._text(node) if isinstance(node, exp.Order) else node.key
            self.forced |= {word, *fails}

    def _text(self, node: Any) -> str:
        around = exp.Paren(this=node.copy())
        for named in [*around.find_all(exp.Column, exp.Table, exp.Subquery, exp.CTE)]:
            if isinstance(named, exp.Column):
                named.replace(exp.column(self._renamed.get(named.name.lower(), named.name)))
            elif isinstance(named, exp.Table):
                named.replace(exp.table_("t"))
            else:
                named.set("alias", None)
        for compared in [*around.find_all(*_TURNED)]:
            one, other = compared.left.unnest(), compared.right.unnest()
            if written(one, self._dialect) > written(other, self._dialect):
                compared.replace(_TURNED[type(compared)](this=other, expression=one))
        if isinstance(around.this, exp.Join) and around.this.args.get("on"):
            around.this.set("on", around.this.args["on"].unnest())
        return written(around.this.unnest(), self._dialect)

    def _fails_by(self, piece: Any) -> set[str]:
        """The texts of what in a piece of the query may fail, or in what it names."""
        fails = self._named_by(piece)
        if any(_may_raise(node, self._dialect) for node in piece.walk()):
            fails.add(self._text(piece.unalias()))
        return fails

    def _named_by(self, piece: Any) -> set[str]:
        """The texts of what may fail in what a piece of the query names."""
        names = {EVERYTHING}
        for node in piece.find_all(exp.Column, exp.Star):
            # A star passes columns on by their names, but where it gives them others.
            if not isinstance(node, exp.Star):
                names.add(node.name.lower())
            elif any(node.args.values()):
                names.update(self._made)
        return set[str]().union(*(self._made.get(name, ()) for name in names))


def _is_all(star: Any) -> bool:
    return not isinstance(star.parent, exp.Count)


def _is_compared(operation: Any) -> bool:
    return isinstance(operation, exp.SetOperation) and is_distinct(operation)


def _may_raise(node: Any, dialect: str) -> bool:
    """Whether a node fails of some values, by overflow, too."""
    return _fails(node, dialect) or (isinstance(node, _OVERFLOWING) and not _is_constant(node))


def _is_constant(node: Any) -> bool:
    """Whether it is the same for all rows."""
    return not node.find(exp.Column, exp.Star, exp.Query, exp.Anonymous)


def _fails(node: Any, dialect: str) -> bool:
    if isinstance(node, exp.Cast):
        if node.args.get("safe") or dialect in _CASTS_TO_NULL:
            return False
        text = isinstance(node.to, exp.DataType) and node.to.this in exp.DataType.TEXT_TYPES
        return not text and not _is_constant(node.this)
    if isinstance(node, _DIVISIONS):
        if dialect == "duckdb":  # as 2.0 does; it was NULL before
            return not isinstance(node, exp.Div)
        return dialect not in DIVIDES_BY_ZERO
    if isinstance(node, exp.Subquery):
        return (
            node.parent is not None
            and not isinstance(node.parent, _QUERIES)
            and not is_one_row(node.this)
        )
    if isinstance(node, _NEVER_BY_CONSTANTS):
        given = (argument for name, argument in node.args.items() if name != "this")
        return any(isinstance(a, exp.Expression) and not _is_constant(a) for a in given)
    return isinstance(node, exp.Func) and not isinstance(node, (exp.AggFunc, *_NEVER))
