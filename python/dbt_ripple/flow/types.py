"""Names of data types: which spellings mean the same type in a dialect, and which mean none."""

from __future__ import annotations

from typing import Final

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
    from sqlglot import exp
    from sqlglot.errors import SqlglotError

    said = text.strip().lower()
    try:
        return (
            exp.DataType.build(_STORED.get(said, said), dialect=dialect, udt=False)
            .sql(dialect)
            .lower()
        )
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
