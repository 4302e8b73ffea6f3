"""Keywords of an engine that look like columns in a parse tree: units, types, names of sequences.

``datediff(day, a, b)`` names no column ``day``. If sqlglot knows the function in a dialect, the
tree says so; if not, the argument looks like a column.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Final

from sqlglot import exp

from dbt_ripple.flow.engine_checks import IsRefused
from dbt_ripple.flow.functions import functions
from dbt_ripple.flow.lowering.parse_tree import as_list

_UNITS: Final = frozenset(
    unit + plural
    for unit in """
        century day dayofweek dayofyear decade epoch hour isodow isoweek isoyear microsecond
        millennium millisecond minute month nanosecond quarter second week weekday year
    """.split()
    for plural in ("", "s")
) | frozenset(
    """
    centuries d dayofweek_iso dayofweekiso dd ddd doy dow dw dy epoch_microsecond
    epoch_millisecond epoch_nanosecond epoch_second frac_second h hh hrs m mcs mi mil min mm mon
    mons ms mus n ns q qq qtr s sec secs ss timezone timezone_hour timezone_minute tzoffset us w
    week_iso weekiso weekofyear wk ww y yearofweek yearofweekiso yr yy yyyy
    day_hour day_microsecond day_minute day_second hour_microsecond hour_minute hour_second
    minute_microsecond minute_second second_microsecond year_month iso_week iso_year
    """.split()
)
_DAYS: Final = frozenset("sunday monday tuesday wednesday thursday friday saturday".split())
_TYPES: Final = frozenset(
    """
    bigint binary bit bool boolean byteint char character date datetime datetime2 datetimeoffset
    decimal double float float64 int int64 integer json money nchar number numeric nvarchar real
    signed smallint string text time timestamp tinyint unsigned uuid varbinary varchar varchar2 xml
    """.split()
)
_OTHER_WORDS: Final = frozenset(
    "both casespecific leading nfc nfd nfkc nfkd not separator specific trailing".split()
)
_CLOCK: Final = ("sql_tsi_",)

_PLAIN_ARGUMENTS: Final = frozenset({"athena", "duckdb", "sqlite", "trino"})
"""Engines whose functions take expressions only: a bare name there is a column."""

_SPARK_UNITS: Final = frozenset(
    """
    date_add date_diff dateadd datediff extract timediff timestamp_add timestamp_diff timestampadd
    timestampdiff
    """.split()
)
"""The functions of Spark's grammar that take a unit; its others take expressions only."""

_SEQUENCES: Final = frozenset({"currval", "lastval", "nextval", "prevval"})


@dataclass
class EngineKeywords:
    """Names of a query that stand where an engine may have words of its own.

    Attributes:
        keywords: those that are such words (``day`` in ``datediff(day, a, b)``).
        unsure: those that cannot be decided: the arguments of an unknown function.
    """

    dialect: str
    keywords: set[str] = field(default_factory=set)
    unsure: set[str] = field(default_factory=set)

    def taken_out(self, tree: exp.Expression, unsure: bool) -> None:
        """Turn columns of a parse tree that are words, or may be, into words.

        Args:
            tree: is changed in place.
            unsure: whether those, too, that may be columns.
        """
        for column in list(tree.find_all(exp.Column)):
            name = column.name.lower()
            is_column = self._is_column(column, name)
            if is_column is True or (is_column is None and not unsure):
                continue
            (self.unsure if is_column is None else self.keywords).add(name)
            word = exp.Var(this=column.sql())
            if column.parent is not None:
                column.replace(word)

    def _is_column(self, column: exp.Column, name: str) -> IsRefused:
        identifier = column.this
        if column.table:
            is_sequence = name in _SEQUENCES and self.dialect not in _PLAIN_ARGUMENTS
            return not is_sequence
        if not isinstance(identifier, exp.Identifier):
            return True
        if name == "level" and self.dialect == "snowflake":
            select = column.find_ancestor(exp.Select)
            if select is not None and select.args.get("connect"):
                return False  # how deep a row of CONNECT BY is
        if identifier.args.get("quoted"):
            return self.dialect != "sqlite"  # a quoted name that is none is a string there
        parent = column.parent
        if isinstance(parent, exp.NextValueFor) or _is_word_of_grammar(column):
            return False
        if self.dialect == "duckdb" and _in_unknown_call(column):
            return None  # a macro may ask it of what itself reads
        if not isinstance(parent, _MAY_TAKE_WORDS):
            return True
        is_unit = name in _UNITS or name.startswith(_CLOCK)
        if self.dialect in _PLAIN_ARGUMENTS:
            return None if is_unit else True
        if self.dialect == "spark" or self.dialect == "databricks":
            if isinstance(parent, exp.Anonymous) and parent.name.lower() not in _SPARK_UNITS:
                return True
            return not is_unit
        if len(name) == 1:
            return None
        if is_unit or name in _DAYS or name in _TYPES or name in _OTHER_WORDS:
            return False
        called = parent.name.lower() if isinstance(parent, exp.Anonymous) else ""
        return None if called and functions(self.dialect).kind(called) == "unknown" else True


def _is_word_of_grammar(column: exp.Column) -> bool:
    """Whether a name is a word of the grammar that sqlglot reads as an expression.

    That is the type behind ``returning``, the kind of JSON that is asked for, and a parameter's name.
    """
    above = column.parent
    if isinstance(above, exp.FormatJson):
        return above.arg_key in ("return_type", "returning")
    if isinstance(above, exp.Variadic):
        return isinstance(above.parent, (exp.Kwarg, exp.PropertyEQ)) and above.arg_key == "this"
    return (
        isinstance(above, exp.Anonymous)
        and above.name.lower() == "isjson"
        and column.index == 1
        and column.name.lower() in ("array", "object", "scalar", "value")
    )


def _in_unknown_call(column: exp.Column) -> bool:
    """Whether a column stands in a call of a function that DuckDB does not have by itself."""
    above = column.parent
    while above is not None and not isinstance(above, exp.Select):
        if isinstance(above, exp.Anonymous) and (
            functions("duckdb").kind(above.name.lower()) == "unknown"
        ):
            return True
        above = above.parent
    return False


_OF_TIME: Final[tuple[type[Any], ...]] = tuple(
    t
    for t in vars(exp).values()
    if isinstance(t, type)
    and issubclass(t, exp.Func)
    and ("unit" in t.arg_types or t in (exp.Extract, exp.NextDay, exp.TsOrDsToDate, exp.Trunc))
)
"""Functions that take a part of a date; sqlglot may read it as another argument."""

_MAY_TAKE_WORDS: Final[tuple[type[Any], ...]] = (
    exp.Anonymous,
    exp.Convert,
    exp.ConvertToCharset,
    exp.Normalize,
    *_OF_TIME,
)


def shows_other_columns(tree: exp.Expression, dialect: str) -> bool:
    """Whether a query has columns that linking does not know of.

    That is one that names an expression in WITH (ClickHouse, Snowflake), one of BigQuery that selects
    a struct as its row, and one of DuckDB that spreads a nested struct.
    """
    if any(
        cte.args.get("scalar") or not isinstance(cte.this, exp.Query)
        for cte in tree.find_all(exp.CTE)
    ):
        return True
    if dialect == "bigquery":
        return any(
            str(select.args.get("kind") or "").upper() in ("VALUE", "STRUCT")
            for select in tree.find_all(exp.Select)
        )
    if dialect == "duckdb":
        return any(
            len(as_list(call.args.get("expressions"))) + bool(call.args.get("this")) > 1
            for call in tree.find_all(exp.Explode, exp.Unnest)
            if not isinstance(call.parent, (exp.From, exp.Join, exp.Lateral))
        )
    return False
