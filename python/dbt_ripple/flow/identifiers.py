"""Identifiers: which spellings of a column or relation mean the same thing in a dialect.

A *key* is the form in which two spellings of one name are equal. Keys are what the analysis
compares; the spelling the user wrote is what it shows.
"""

from __future__ import annotations

import re
from collections.abc import Collection
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


class _LowerCase(dict[str, str]):
    """Every name so far in lower case: one string a name, however often a project says it."""

    def __missing__(self, name: str) -> str:
        if len(self) > _MAX_NAMES:
            self.clear()
        key = self[name] = name.lower()
        return key


_MAX_NAMES: Final = 100_000
lowered: Final = _LowerCase()
"""``lowered[name]`` is the key of an ASCII name that is not quoted, in every dialect."""

_ONLY_ASCII: Final = frozenset({"duckdb", "sqlite"})
"""Dialects in which only the case of ASCII letters does not count: `É` and `é` are two names."""


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
        if dialect in _ONLY_ASCII and not name.isascii():
            return name.encode("utf-8", "surrogatepass").lower().decode("utf-8", "surrogatepass")
        return lowered[name]
    if case == "upper":
        return lowered[name] if name == name.upper() else '"' + name
    return name


_FOLDS: Final = frozenset({*_QUOTED_KEEPS_CASE, "athena", "redshift", "trino"})
"""Dialects that store a name folded: how it was written shows nowhere."""

AS_STORED: Final = frozenset({"duckdb"})
"""Dialects in which a column that is passed on keeps the spelling it has, not the one it is read by."""


def folds(dialect: str) -> bool:
    """Whether names that are data (the keys of a struct, of JSON) are folded, too."""
    return dialect in _FOLDS


MADE_UP: Final = "\x1e"
"""Stands before the key of a name that the engine makes up: what follows it is our guess."""

_LAYOUT: Final = re.compile(r"[\s()\"`]")


def made_up_for(key: str, keys: list[str]) -> list[str]:
    r"""Those of the keys that engines make up (`keys`) which a name in a query may mean.

    One that reads as we guessed, or else any of them, where it could be a made-up name at all.

    Example:
        >>> made_up_for("(v + 1)", ["\x1ev + 1", "\x1esum(v)"])
        ['\x1ev + 1']
        >>> made_up_for("v", ["\x1esum(v)"]), len(made_up_for("sum(V+0)", ["\x1esum(v)"]))
        ([], 1)
    """
    if not keys:
        return keys
    asked = _LAYOUT.sub("", key).lower()
    exact = [k for k in keys if _LAYOUT.sub("", k[1:]).lower() == asked]
    if exact:
        return exact
    plain = key.isidentifier() and not any(k[1:].isidentifier() for k in keys)
    return [] if plain else keys


_RENAMED: Final = {"duckdb": "_", "sqlite": ":"}
"""What stands between a repeated name and its number where the engine tells them apart."""


def renames_repeated(dialect: str) -> bool:
    """Whether a query may give a name twice, and the engine renames the latter."""
    return dialect in _RENAMED


def with_unique_names(
    names: list[str], keys: list[str], dialect: str
) -> tuple[list[str], list[str]]:
    """Names and keys of a query's columns as a query around it sees them.

    Example:
        >>> with_unique_names(["id", "v", "id"], ["id", "v", "id"], "duckdb")[0]
        ['id', 'v', 'id_1']
    """
    between = _RENAMED.get(dialect)
    if between is None or len(set(keys)) == len(keys):
        return names, keys
    names, keys = list(names), list(keys)
    seen: dict[str, int] = {}
    for i, key in enumerate(keys):
        if key not in seen:
            seen[key] = 1
            continue
        while (other := f"{key}{between}{seen[key]}") in seen:
            seen[key] += 1
        names[i] = f"{names[i]}{between}{seen[key]}"
        keys[i] = other
        seen[other] = 1
    return names, keys


_NUMBERED: Final = re.compile(r"(.+)[_:](\d+)")


def first_of(key: str) -> str | None:
    """The name that a column had before it was told apart from another, if it was (`id_1`)."""
    numbered = _NUMBERED.fullmatch(key)
    return numbered[1] if numbered else None


def repeats_for(key: str, keys: Collection[str], repeated: Collection[str]) -> str | None:
    """The key of a column that an engine may have told apart by this name: `id_1`, `id:1`, `b.id`.

    DuckDB wrote `id:1` for what it now calls `id_1`.
    """
    numbered = _NUMBERED.fullmatch(key)
    if numbered and (other := f"{numbered[1]}_{numbered[2]}") in keys:
        return other
    for name in (numbered[1] if numbered else "", key.rpartition(".")[2]):
        if name in repeated:
            return name
    return None


def fold_stored(name: str, dialect: str) -> str:
    """Return the key of a name as the catalog stores it."""
    return fold(name, True, dialect)
