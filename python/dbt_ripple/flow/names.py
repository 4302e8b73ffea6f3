"""Identifiers: which spellings of a column or relation mean the same thing in a dialect.

A *key* is the form in which two spellings of one name are equal. Keys are what the analysis
compares; the spelling the user wrote is what it shows.
"""

from __future__ import annotations

from typing import Final

DIALECTS: Final[dict[str, str]] = {
    "athena": "athena",
    "bigquery": "bigquery",
    "clickhouse": "clickhouse",
    "databricks": "databricks",
    "doris": "doris",
    "dremio": "dremio",
    "duckdb": "duckdb",
    "exasol": "exasol",
    "fabric": "fabric",
    "fabricspark": "spark",
    "glue": "spark",
    "hive": "hive",
    "impala": "hive",
    "materialize": "materialize",
    "mysql": "mysql",
    "oracle": "oracle",
    "postgres": "postgres",
    "redshift": "redshift",
    "risingwave": "risingwave",
    "singlestore": "singlestore",
    "snowflake": "snowflake",
    "spark": "spark",
    "sqlite": "sqlite",
    "sqlserver": "tsql",
    "starrocks": "starrocks",
    "synapse": "tsql",
    "teradata": "teradata",
    "trino": "trino",
    "vertica": "postgres",
}
"""dbt adapter type -> sqlglot dialect."""

_QUOTED_KEEPS_CASE: Final = {
    "materialize": "lower",
    "oracle": "upper",
    "postgres": "lower",
    "risingwave": "lower",
    "snowflake": "upper",
}
"""Dialects where a quoted identifier is another name, with the case an unquoted one folds to."""


def dialect_of(adapter_type: str | None) -> str:
    """Return the sqlglot dialect of a dbt adapter; Spark where the adapter is not known."""
    return DIALECTS.get(adapter_type or "spark", "spark")


class _Lowered(dict[str, str]):
    """Every name so far in lower case: one string a name, however often a project says it."""

    def __missing__(self, name: str) -> str:
        if len(self) > _MAX_NAMES:
            self.clear()
        key = self[name] = name.lower()
        return key


_MAX_NAMES: Final = 100_000
lowered: Final = _Lowered()
"""``lowered[name]`` is the key of a name that is not quoted, in every dialect."""


def keeps_case(dialect: str) -> bool:
    """Whether a quoted name is another name than the same letters without quotes."""
    return dialect in _QUOTED_KEEPS_CASE


def fold(name: str, quoted: bool, dialect: str) -> str:
    """Return the key of an identifier as written.

    Example:
        >>> fold("Order_ID", False, "spark"), fold("Order_ID", True, "spark")
        ('order_id', 'order_id')
        >>> fold("ID", True, "snowflake"), fold("id", True, "snowflake")
        ('id', '"id')
    """
    case = _QUOTED_KEEPS_CASE.get(dialect) if quoted else None
    if case is None:
        return lowered[name]
    if case == "upper":
        return lowered[name] if name == name.upper() else '"' + name
    return name


def fold_stored(name: str, dialect: str) -> str:
    """Return the key of a name as the catalog stores it."""
    return fold(name, True, dialect)
