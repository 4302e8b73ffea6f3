"""Does a query give the same bag of rows whenever its tables have the same bags of rows?

It does not if it asks for the time, a random number or its session. It may not if it depends on
the order of rows, which a bag does not have: a LIMIT, the first of a group, the number of a row, a
sum of floating point numbers. Only what is known to be repeatable is called so.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from enum import IntEnum
from functools import lru_cache
from typing import Any, Final, NamedTuple

from sqlglot import exp

from dbt_ripple.flow.functions import VOLATILE_NAMES, functions
from dbt_ripple.flow.reading.dialects import written
from dbt_ripple.flow.reading.reader import UNREAD, Text, data_type, parse_statement, table_named


class Cause(IntEnum):
    """What may make a query give another bag of rows; each is worse than those before."""

    TIES = 1
    """Which of rows that its own order holds for equal comes first, or by what way a sum is made."""
    ORDER = 2
    """The order in which rows lie or come, where it asks for none."""
    CHANCE = 3
    """The time, chance, the session, a function of one row that nobody knows."""
    UNKNOWN = 4
    """Anything: what is not followed, and what may be an aggregate that nobody knows."""


class Nondeterminism(NamedTuple):
    """Why a query may give other rows of the same."""

    reason: str
    by: Cause


def nondeterminism(sql: str, dialect: str, inexact: Iterable[str] | None) -> Nondeterminism | None:
    """Why a query may give another bag of rows of the same bags; None where it does not.

    Args:
        sql: a compiled query.
        dialect: sqlglot's name of its engine.
        inexact: the names of those columns of its tables whose values are equal in other ways than
            by being the same, or do not add up exactly: floating point numbers, above all. None
            where that is not known: then any column may be one.
    """
    try:
        tree = parse_statement(sql, dialect)
    except UNREAD as error:
        return Nondeterminism(f"its SQL is not followed ({type(error).__name__})", Cause.UNKNOWN)
    if not isinstance(tree, exp.Query):
        return Nondeterminism("it is no query that is followed", Cause.UNKNOWN)
    return QueryPieces(
        tree, dialect, None if inexact is None else {n.lower() for n in inexact}
    ).reason()


def is_repeatable(expression: str, dialect: str) -> bool:
    """Whether an expression over a relation has the same values whenever that has the same rows.

    Floating point numbers are taken as exact: the last digit of their sum may differ.

    Example:
        >>> is_repeatable("sum(o.qty * 2)", "duckdb"), is_repeatable("o.qty * random()", "duckdb")
        (True, False)
    """
    return nondeterminism(f"select {expression} as x from t", dialect, ()) is None


def reads_only(sql: str, dialect: str, relations: Iterable[str]) -> bool:
    """Whether a query reads no other tables than these, each a relation as dbt writes it.

    It is for queries that are followed no further, and so of few kinds: what is written in them is
    in the parse tree, all of that is known, and rows come of tables and subqueries only.
    """
    try:
        text = Text(sql, dialect)
        tree = text.statement()
        allowed = {_parts(table_named(name, dialect)) for name in relations}
    except UNREAD:
        return False
    if not isinstance(tree, exp.Query) or any(text.dropped(tree)):
        return False
    for node in tree.walk():
        if isinstance(node, exp.Table):
            given = {name for name, value in node.args.items() if value}
            named = isinstance(node.this, exp.Identifier) and given <= _PLAIN_TABLE
            if not named or not (cte_of(node) is not None or _parts(node) in allowed):
                return False
        elif isinstance(node, exp.Func):
            if isinstance(node.parent, exp.From | exp.Join):
                return False
        elif not isinstance(node, _PLAIN):
            return False
    return True


def _parts(table: Any) -> tuple[str, ...]:
    return tuple(part.name for part in table.parts)


def cte_of(table: Any) -> Any:
    """The CTE of a query around it that a table is, one that stands before where it is read; or None."""
    inside, above = None, table.parent
    while above is not None and len(table.parts) == 1:
        if isinstance(above, exp.CTE):
            inside = above
        for cte in above.ctes if isinstance(above, exp.Query) else ():
            if cte is inside:
                break
            if cte.alias.lower() == table.name.lower():
                return cte
        above = above.parent
    return None


def changes_only(statement: str, dialect: str, table: str) -> bool:
    """Whether a statement deletes or updates rows of one table by what that holds, and no more.

    So that what it leaves is the same bag of rows of the same bag.
    """
    try:
        tree = parse_statement(statement, dialect)
    except UNREAD:
        return False
    return (
        isinstance(tree, exp.Delete | exp.Update)
        and all(relation.name == table and not relation.db for relation in tree.find_all(exp.Table))
        and not any(tree.find_all(exp.Returning))
        and QueryPieces(tree, dialect, None).reason() is None
    )


def is_distinct(operation: Any) -> bool:
    """Whether a set operation compares rows."""
    return bool(operation.args.get("distinct")) or not isinstance(operation, exp.Union)


class QueryPieces:
    """What of a query, piece by piece, may not give the same again.

    Args:
        tree: of the query.
        dialect: of its engine.
        inexact: as of `nondeterminism`, in lower case.
    """

    def __init__(self, tree: Any, dialect: str, inexact: set[str] | None) -> None:
        self.tree = tree
        self.dialect = dialect
        self.functions = functions(dialect)
        self.inexact = inexact
        if inexact is not None:
            self.spread(inexact)

    def spread(self, inexact: set[str]) -> None:
        """Take in the names that the query itself gives to inexact values."""
        named = [(a.alias.lower(), a.this) for a in self.tree.find_all(exp.Alias)]
        # Columns that a CTE or a derived table lists by position may be any of its values.
        for alias in self.tree.find_all(exp.TableAlias):
            inexact.update(column.name.lower() for column in alias.args.get("columns") or ())
        changed = True
        while changed:
            changed = False
            for name, value in named:
                if name not in inexact and not self.exact(value):
                    inexact.add(name)
                    changed = True

    def reason(self) -> Nondeterminism | None:
        """The worst of what makes it unrepeatable."""
        reason = None
        for node in self.tree.walk():
            why = self.of(node)
            if why is not None and (reason is None or why.by > reason.by):
                reason = why
        return reason

    def of(self, node: Any) -> Nondeterminism | None:
        """Why one piece of the query is not repeatable."""
        if isinstance(node, _VOLATILE):
            sql = written(node, self.dialect)[:40]
            return Nondeterminism(f"{sql} is another value each time", Cause.CHANCE)
        if isinstance(node, NOT_FOLLOWED):
            return Nondeterminism(f"{node.key} is not followed", Cause.UNKNOWN)
        if isinstance(node, exp.Func) and not isinstance(node, exp.Cast):
            return self._function(node)
        if isinstance(node, _LIMITING):
            return Nondeterminism(f"{node.key} takes some of the rows", _by_order_of(node.parent))
        if isinstance(node, exp.WithinGroup):
            return Nondeterminism("WITHIN GROUP sees the order of rows", Cause.TIES)
        if isinstance(node, exp.Pivot):
            return Nondeterminism("PIVOT groups by columns it does not name", Cause.TIES)
        if isinstance(node, exp.Column) and _is_bare(node):
            return Nondeterminism(f"{node.name} is another value each time", Cause.CHANCE)
        if isinstance(node, exp.Cast) and str(node.this.this).strip().lower() in _MOMENTS:
            return Nondeterminism(f"{node.this.this} is another moment each time", Cause.CHANCE)
        if isinstance(node, exp.Distinct):
            select = node.parent
            if node.args.get("on") is not None:
                return Nondeterminism("DISTINCT ON takes some of the rows", _by_order_of(select))
            values = node.expressions or (
                select.expressions if isinstance(select, exp.Select) else [exp.Star()]
            )
            return self._of_keys(values, "DISTINCT")
        if isinstance(node, exp.Group):
            return self._of_keys(_group_keys(node), "GROUP BY")
        if isinstance(node, exp.SetOperation) and is_distinct(node):
            return self._of_keys([v for s in branches_of(node) for v in s.expressions], node.key)
        if isinstance(node, exp.Window):
            return self._window(node)
        if isinstance(node, exp.Join):
            words = {str(node.args.get(name) or "").upper() for name in ("method", "kind")}
            if "ASOF" in words:
                return Nondeterminism("an ASOF join takes some of the rows", Cause.TIES)
            if "POSITIONAL" in words:
                return Nondeterminism("a positional join sees the order of rows", Cause.ORDER)
        if isinstance(node, exp.With) and node.args.get("recursive"):
            return Nondeterminism("WITH RECURSIVE", Cause.TIES)
        if isinstance(node, exp.Subquery) and _is_value(node) and not is_one_row(node.this):
            return Nondeterminism("a subquery may be the first of several rows", Cause.ORDER)
        return None

    def _of_keys(self, values: Iterable[Any], clause: str) -> Nondeterminism | None:
        if all(map(self.exact, values)):
            return None
        return Nondeterminism(f"{clause} of values that may be equal and not the same", Cause.TIES)

    def _function(self, node: Any) -> Nondeterminism | None:
        if isinstance(node.parent, exp.Dot) and node.arg_key == "expression":
            of = node.parent.this
            schema = written(of, self.dialect).lower()
            # Behind anything but a name it is what DuckDB calls of a value: `(a || b).length()`.
            is_name = isinstance(of, exp.Identifier | exp.Column | exp.Dot)
            if is_name and schema not in OF_THE_ENGINE:
                return Nondeterminism(f"a function of {schema} may be anything", _unknown(node))
        if isinstance(node, exp.Anonymous | exp.AnonymousAggFunc):
            name = node.name.lower()
            kind = self.functions.kind(name)
            if name in VOLATILE_NAMES or name in _SESSION or _is_of_now(name, node.expressions):
                return Nondeterminism(f"{name}() is another value each time", Cause.CHANCE)
            if kind == "scalar" or name in _EXACT_AGGREGATES:
                return None
            if kind == "generator" and name in GENERATORS:
                return None
            if kind in ("aggregate", "window"):
                return Nondeterminism(f"{name}() sees the order of rows", _by_order_in(node))
            return Nondeterminism(f"{name}() is on no list of the engine", _unknown(node))
        if isinstance(node, _FREE):
            return None
        if isinstance(node, exp.Sum | exp.Avg):
            if self.exact(node.this):
                return None
            return Nondeterminism(f"a {node.key} of what may be floating point numbers", Cause.TIES)
        if isinstance(node, exp.Min | exp.Max):
            if not node.expressions and self.exact(node.this):
                return None
            return Nondeterminism(f"a {node.key} of what may be equal and not the same", Cause.TIES)
        if isinstance(node, exp.Array):
            if not any(node.find_all(exp.Select)):
                return None
            return Nondeterminism("an array of a query sees the order of rows", Cause.ORDER)
        if isinstance(node, exp.AggFunc | exp.RowNumber):
            return Nondeterminism(f"{node.key} sees the order of rows", _by_order_in(node))
        if node.sql_name().lower() in VOLATILE_NAMES | _SESSION:
            return Nondeterminism(
                f"{node.sql_name().lower()}() is another value each time", Cause.CHANCE
            )
        return None

    def _window(self, node: Any) -> Nondeterminism | None:
        # Of its keys none is shown: rows that are equal to it are so in whatever order they come.
        order = node.args.get("order")
        if any(node.args.get(name) is not None for name in ("alias", "spec", "first")):
            by = Cause.TIES if order is not None else Cause.ORDER
            return Nondeterminism("a window of named or counted rows", by)
        return None

    def exact(self, value: Any) -> bool:
        """Whether equal values of an expression are the same, and add up exactly in any order."""
        if isinstance(value, exp.Alias):
            return self.exact(value.this)
        if isinstance(value, exp.Column):
            return self.inexact is not None and not (
                isinstance(value.this, exp.Star) or value.name.lower() in self.inexact
            )
        if isinstance(value, exp.Star):
            # All columns of tables whose columns are known, and of subqueries that name theirs.
            return self.inexact is not None and not self.inexact
        if isinstance(value, exp.Literal):
            return value.is_string or "e" not in value.name.lower()
        if isinstance(value, exp.Cast):
            return _is_exact(value.to)
        if isinstance(value, _COMPARING):
            return True
        if isinstance(value, _TEXT):
            return True
        if isinstance(value, exp.Case):
            branches = [b.args.get("true") for b in value.args.get("ifs") or ()]
            branches += [value.args.get("default")]
            return all(b is None or self.exact(b) for b in branches)
        if isinstance(value, exp.If):
            branches = [value.args.get("true"), value.args.get("false")]
            return all(b is None or self.exact(b) for b in branches)
        if isinstance(value, exp.Sum | exp.Min | exp.Max):
            return not value.expressions and self.exact(value.this)
        if isinstance(value, exp.Window | exp.Filter):
            return self.exact(value.this)
        if isinstance(value, _KEEPING):
            parts = [value.this, *value.expressions, value.args.get("expression")]
            return all(p is None or self.exact(p) for p in parts)
        return isinstance(value, exp.Null | exp.Boolean | exp.Count | exp.CountIf | exp.Interval)


def classes(names: str) -> tuple[Any, ...]:
    """The classes of sqlglot's tree with these names; what the installed version lacks is left out."""
    return tuple(t for n in names.split() if (t := getattr(exp, n, None)) is not None)


_PLAIN_TABLE: Final = frozenset({"this", "db", "catalog", "alias", "pivots", "joins"})
_PLAIN: Final = classes(
    "Select From Where Group Having Qualify Order Ordered Limit Offset With CTE Subquery TableAlias "
    "Alias Aliases Identifier Column Dot Star Literal Boolean Null Paren Tuple Join SetOperation "
    "Distinct Window WindowSpec Case Cast DataType DataTypeParam Interval IntervalSpan Var Between In "
    "Is Predicate Not Binary Unary Pivot PivotAlias PivotAny UnpivotColumns Rollup Cube GroupingSets Bracket Slice "
    "IgnoreNulls RespectNulls Filter WithinGroup PropertyEQ"
)
"""What a query that is followed no further may hold besides functions and tables."""

_VOLATILE: Final[tuple[Any, ...]] = tuple(
    t
    for t in exp.ALL_FUNCTIONS
    if t.__name__.startswith(("Current", "Utc", "Rand"))
    or t.__name__
    in {"Localtime", "Localtimestamp", "SessionUser", "Uuid", "Seq1", "Seq2", "Seq4", "Seq8",
        "Shuffle", "Uniform"}
)  # fmt: skip
NOT_FOLLOWED: Final = classes(
    "Command Parameter SessionParameter Placeholder TableSample MatchRecognize Version HistoricalData"
)
_LIMITING: Final = classes("Limit Offset Fetch")
_NUMERIC: Final = classes(
    "ArgMax ArgMin Corr CovarPop CovarSamp Kurtosis Median PercentileCont PercentileDisc Quantile "
    "RegrAvgx RegrAvgy RegrCount RegrIntercept RegrR2 RegrSlope RegrSxx RegrSxy RegrSyy Skewness "
    "Stddev StddevPop StddevSamp Variance VariancePop ApproxDistinct ApproxQuantile"
)
"""Aggregates that take rows in an order of their own, or add floating point numbers."""

_FREE: Final = classes(
    "Count CountIf LogicalAnd LogicalOr BitwiseAndAgg BitwiseOrAgg BitwiseXorAgg Grouping GroupingId "
    "Rank DenseRank PercentRank CumeDist"
)
"""Aggregates and functions of windows that come out the same in whatever order the rows come."""

_COMPARING: Final = classes(
    "Predicate Not And Or Is In Between Exists LogicalAnd LogicalOr DateDiff TimestampDiff Length Extract"
)
_TEXT: Final = classes(
    "Lower Upper Trim Concat ConcatWs DPipe Substring Replace MD5 SHA SHA2 TimestampTrunc DateTrunc "
    "DateAdd DateSub Date TsOrDsToDate Left Right SplitPart RegexpReplace TimeToStr"
)
_KEEPING: Final = classes("Paren Neg Add Sub Mul Mod Coalesce Nullif Abs Distinct Greatest Least")
"""What is exact of exact values."""

_EXACT_TYPES: Final = (
    *exp.DataType.INTEGER_TYPES,
    *exp.DataType.TEXT_TYPES,
    exp.DataType.Type.BOOLEAN,
    exp.DataType.Type.DATE,
    exp.DataType.Type.DECIMAL,
    exp.DataType.Type.BIGDECIMAL,
    exp.DataType.Type.TIMESTAMP,
    exp.DataType.Type.TIMESTAMPTZ,
    exp.DataType.Type.TIMESTAMPLTZ,
    exp.DataType.Type.TIMESTAMPNTZ,
    exp.DataType.Type.DATETIME,
    exp.DataType.Type.TIME,
    exp.DataType.Type.UUID,
)


def _is_exact(to: Any) -> bool:
    return isinstance(to, exp.DataType) and to.this in _EXACT_TYPES


@lru_cache(4096)
def inexact_type(name: str, dialect: str) -> bool:
    """Whether values of a type, as the engine calls it, may be equal and not the same."""
    try:
        built = data_type(name, dialect)
    except UNREAD:
        return True
    if dialect in _COLLATES_UNSEEN and built.this in exp.DataType.TEXT_TYPES:
        return True
    return not _is_exact(built)


_COLLATES_UNSEEN: Final = frozenset(
    {"duckdb", "fabric", "mysql", "oracle", "postgres", "redshift", "sqlite", "tsql"}
)
"""Dialects in which texts that are not the same may be equal by a collation that no type of a column shows."""


OF_THE_ENGINE: Final = frozenset({"aead", "hll_count", "keys", "net", "pg_catalog", "safe"})
"""What stands before a function of an engine's own; before another one it is a schema, or a value."""

_SESSION: Final = frozenset(
    """
    clock_timestamp connection_id current_catalog current_connection_id current_database
    current_date current_localtime current_localtimestamp current_query current_query_id
    current_role current_schema current_schemas current_setting current_time current_timestamp
    current_timezone current_transaction_id current_user curdate getdate get_current_time
    get_current_timestamp getvariable in_search_path input_file_block_length
    input_file_block_start input_file_name localtime localtimestamp now random_bytes
    session_user setseed spark_partition_id stats statement_timestamp sysdate systimestamp timeofday
    to_timestamp_now today transaction_timestamp txid_current unix_timestamp user version
    write_log sleep_ms vector_type error getenv invoker pg_backend_pid
    """.split()
)
"""Functions that ask for the time or the session, or do something."""

_BARE: Final = frozenset(
    "current_date current_time current_timestamp current_user localtime localtimestamp "
    "session_user sysdate systimestamp user".split()
)
"""Names that are no column where no table has them."""
GENERATORS: Final = frozenset(
    "explode explode_outer generate_series posexplode posexplode_outer range sequence unnest".split()
)
_PLACES: Final = frozenset("ctid oid rowid _rowid_ xmin _metadata _file _partitiontime".split())
"""Columns that say where a row lies, and that nobody defines."""
_MOMENTS: Final = frozenset("now today tomorrow yesterday".split())
"""Texts that some engines cast to a moment."""
WORDS_OF_CHANCE: Final = (
    VOLATILE_NAMES | _SESSION | _BARE | _PLACES | _MOMENTS | {"sample", "tablesample", "repeatable"}
)
"""Words with one of which a query may be another value each time."""
OF_NOW: Final = {"age": 1, "unix_timestamp": 0, "date": 0, "time": 0, "datetime": 0}
"""Functions that count from now where they are given so few arguments."""


def _is_of_now(name: str, arguments: Sequence[Any]) -> bool:
    return len(arguments) <= OF_NOW.get(name, -1)


def _is_bare(column: Any) -> bool:
    name = column.name.lower()
    if name in _PLACES or name.startswith("metadata$"):
        return True
    return not column.table and name in _BARE


_EXACT_AGGREGATES: Final = frozenset(
    "bool_and bool_or every some any_true count_if countif bit_and bit_or bit_xor".split()
)


def _unknown(function: Any) -> Cause:
    """What a function that nobody knows may be: an aggregate only where one can stand.

    That is not in WHERE, ON or another aggregate, and not beside a plain column where there are no groups.
    """
    node, select = function, function.parent
    while select is not None and not isinstance(select, exp.Select):
        if isinstance(select, exp.Where | exp.Join | exp.AggFunc):
            return Cause.CHANCE
        node, select = select, select.parent
    if select is None or isinstance(function.parent, exp.Window) or select.args.get("group"):
        return Cause.UNKNOWN
    beside = (item.unalias() for item in select.expressions if item is not node)
    one_row = any(isinstance(item, exp.Column | exp.Star) for item in beside)
    return Cause.CHANCE if one_row else Cause.UNKNOWN


def _by_order_of(query: Any) -> Cause:
    """What decides which rows a query takes of those it has."""
    return Cause.TIES if query is not None and query.args.get("order") is not None else Cause.ORDER


def _by_order_in(function: Any) -> Cause:
    """What decides of the value of an aggregate, or of a function over a window."""
    above = function.parent
    while isinstance(above, exp.IgnoreNulls | exp.RespectNulls | exp.Filter):
        above = above.parent
    if isinstance(above, exp.Window):
        return _by_order_of(above)
    ordered = isinstance(function.this, exp.Order) or isinstance(above, exp.WithinGroup)
    return Cause.TIES if ordered or isinstance(function, _NUMERIC) else Cause.ORDER


def _group_keys(group: Any) -> Iterator[Any]:
    """What a GROUP BY groups by: ordinals stand for outputs, and ALL for those that do not add up."""
    outputs = group.parent.expressions if isinstance(group.parent, exp.Select) else []
    if group.args.get("all"):
        yield from outputs
    for key in group.expressions:
        if isinstance(key, exp.Literal) and key.is_int and 0 < int(key.name) <= len(outputs):
            yield outputs[int(key.name) - 1].unalias()
        else:
            yield key
    for kind in ("cube", "rollup", "grouping_sets"):
        for sets in group.args.get(kind) or ():
            for piece in sets.expressions:
                yield from piece.expressions if isinstance(piece, exp.Tuple) else [piece]


def branches_of(operation: Any) -> Iterator[Any]:
    """The SELECTs of a set operation, in order."""
    for side in (operation.left, operation.right):
        inner = side.unnest()
        if isinstance(inner, exp.SetOperation):
            yield from branches_of(inner)
        elif isinstance(inner, exp.Select):
            yield inner


def _is_value(subquery: Any) -> bool:
    """Whether a subquery stands where a value does."""
    if isinstance(subquery.parent, exp.Pivot) and subquery.arg_key == "this":
        return False  # what a PIVOT or UNPIVOT statement turns
    return not isinstance(
        subquery.parent,
        exp.From
        | exp.Join
        | exp.CTE
        | exp.In
        | exp.Exists
        | exp.SetOperation
        | exp.Subquery
        | exp.With
        | exp.Lateral
        | exp.Any
        | exp.All
        | type(None),
    )


def is_one_row(query: Any) -> bool:
    """Whether a query is an aggregate of all rows, so that it gives one."""
    return (
        isinstance(query, exp.Select)
        and not query.args.get("group")
        and not query.args.get("having")
        and bool(query.expressions)
        and all(any(e.find_all(exp.AggFunc)) for e in query.expressions)
        and not any(query.find_all(exp.Window))
    )
