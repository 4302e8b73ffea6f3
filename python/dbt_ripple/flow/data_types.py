"""Names of data types: which spellings mean the same type in a dialect, and which mean none."""

from __future__ import annotations

from functools import lru_cache
from typing import Any, Final

_STORED: Final = {
    "long": "bigint",
    "integer": "int",
    "short": "smallint",
    "byte": "tinyint",
}
"""Spark's printSchema names, which catalog.json has, in SQL's words."""

TYPE_NAMES: Final = tuple(
    """
    array bigint binary boolean char date decimal double float int integer interval long map
    numeric real smallint string struct text time timestamp timestamp_ntz tinyint varchar
    """.split()
)
"""Names to choose the nearest from where somebody mistyped one."""


def canonical_type(text: str, dialect: str) -> str | None:
    """A type as the dialect writes it; None where the text is no type.

    Example:
        >>> canonical_type("Decimal(12,2)", "spark"), canonical_type("long", "spark")
        ('decimal(12, 2)', 'bigint')
        >>> canonical_type("dubble", "spark") is None
        True
    """
    from sqlglot.errors import SqlglotError

    from dbt_ripple.flow.reading.reader import data_type

    name = text.strip().lower()
    try:
        return data_type(_STORED.get(name, name), dialect).sql(dialect).lower()
    except (SqlglotError, ValueError):
        return None


def same_type(one: str, other: str, dialect: str) -> bool:
    """Whether two spellings mean the same type; two that nobody can read are compared as text.

    Example:
        >>> same_type("DECIMAL(12, 2)", "decimal(12,2)", "spark"), same_type("int", "long", "spark")
        (True, False)
    """
    if "".join(one.lower().split()) == "".join(other.lower().split()):
        return True
    readable = canonical_type(one, dialect)
    return readable is not None and readable == canonical_type(other, dialect)


Fields = list[tuple[str, Any]]
"""The fields of a struct in order, each with its own fields, or None where it is no struct."""

STRUCT_TYPES: Final = ("struct", "row", "object")
"""How the name of a type that has fields begins, in lower case."""


@lru_cache(maxsize=2_000)
def may_have_fields(text: str) -> bool:
    """Whether a type could be a struct; most are not, and this reads nothing of them."""
    return len(text) > 6 and text[:6].lower().startswith(STRUCT_TYPES)


@lru_cache(maxsize=2_000)
def fields_of_type(text: str, dialect: str) -> Fields | None:
    """The fields of a struct type as a catalog writes it; None where the text does not tell.

    Example:
        >>> fields_of_type("STRUCT(a INTEGER, b STRUCT(c VARCHAR))", "duckdb")
        [('a', None), ('b', [('c', None)])]
        >>> fields_of_type("struct<a:int,b:string>", "spark")
        [('a', None), ('b', None)]
        >>> fields_of_type("struct", "spark") is None
        True
    """
    from sqlglot.errors import SqlglotError

    from dbt_ripple.flow.reading.reader import data_type

    try:
        return fields_of_data_type(data_type(text, dialect))
    except (SqlglotError, ValueError):
        return None


def fields_of_data_type(node: Any) -> Fields | None:
    """The fields of a parsed struct type; None where it is none, or does not name them all."""
    from sqlglot import exp

    if not isinstance(node, exp.DataType) or not node.expressions:
        return None
    if node.this not in (exp.DType.STRUCT, exp.DType.OBJECT):
        return None
    fields: Fields = []
    for field in node.expressions:
        if not isinstance(field, exp.ColumnDef) or not field.name:
            return None
        fields.append((field.name, fields_of_data_type(field.args.get("kind"))))
    return fields
