"""The tables that queries read where their user names no others, and the classes of types.

A class of types (``int``, ``str``, ...) is all that a grammar knows of a column's type.
"""

from __future__ import annotations

from typing import Final

TABLES: Final[dict[str, dict[str, str]]] = {
    "a": {
        "id": "INTEGER", "k": "INTEGER", "v": "INTEGER", "s": "VARCHAR", "f": "DOUBLE", "p": "BOOLEAN",
        "d": "DATE", "ts": "TIMESTAMP",
    },
    "b": {
        "id": "INTEGER", "k": "INTEGER", "w": "INTEGER", "s": "VARCHAR", "n": "DECIMAL(8,2)",
        "q": "BOOLEAN", "d": "DATE", "l": "INTEGER[]",
    },
    "c": {
        "k": "INTEGER", "v": "INTEGER", "l": "INTEGER[]", "z": "VARCHAR[]",
        "st": "STRUCT(x INTEGER, y VARCHAR)", "m": "MAP(VARCHAR, INTEGER)", "j": "JSON",
        "iv": "INTERVAL",
    },
}  # fmt: skip

SPARK_TABLES: Final[dict[str, dict[str, str]]] = {
    "a": {
        "id": "INT", "k": "INT", "v": "INT", "s": "STRING", "f": "DOUBLE", "p": "BOOLEAN", "d": "DATE",
        "ts": "TIMESTAMP",
    },
    "b": {
        "id": "INT", "k": "INT", "w": "INT", "s": "STRING", "n": "DECIMAL(8,2)", "q": "BOOLEAN",
        "d": "DATE", "l": "ARRAY<INT>",
    },
    "c": {
        "k": "INT", "v": "INT", "l": "ARRAY<INT>", "z": "ARRAY<STRING>",
        "st": "STRUCT<x: INT, y: STRING>", "m": "MAP<STRING, INT>",
    },
}  # fmt: skip
OF_PAIRS: Final[dict[str, dict[str, str]]] = {
    "t0": {
        "k": "INTEGER", "ti": "TINYINT", "si": "SMALLINT", "x": "INTEGER", "bi": "BIGINT", "f": "DOUBLE",
        "v": "VARCHAR", "p": "BOOLEAN", "q": "BOOLEAN", "d": "DATE", "iv": "INTERVAL",
    },
    "w0": {"k": "INTEGER", "y": "INTEGER", "j": "VARCHAR"},
    "big0": {"k": "INTEGER", "v": "VARCHAR", "m": "INTEGER"},
}  # fmt: skip
"""What queries read that are written in pairs (`unpromised`), and no others."""
NAME_OF_PAIRS: Final = {"t": "t0", "w": "w0", "big": "big0"}
OF_DIALECT: Final = {"duckdb": TABLES | OF_PAIRS, "spark": SPARK_TABLES}

CLASS: Final = {
    "INT": "int", "STRING": "str", "ARRAY<INT>": "list", "ARRAY<STRING>": "slist",
    "STRUCT<x: INT, y: STRING>": "struct", "MAP<STRING, INT>": "map",
    "INTEGER": "int", "VARCHAR": "str", "DOUBLE": "num", "BOOLEAN": "bool", "DATE": "date",
    "TIMESTAMP": "ts", "DECIMAL(8,2)": "num", "INTEGER[]": "list", "VARCHAR[]": "slist",
    "STRUCT(x INTEGER, y VARCHAR)": "struct", "MAP(VARCHAR, INTEGER)": "map", "JSON": "json",
    "INTERVAL": "interval", "TINYINT": "int", "SMALLINT": "int", "BIGINT": "int",
}  # fmt: skip

Column = tuple[str, str]
"""A column and its class of types."""


def classes(tables: dict[str, dict[str, str]]) -> dict[str, list[Column]]:
    """Tables with the class of each column's type instead of the type."""
    return {name: [(c, CLASS[t]) for c, t in columns.items()] for name, columns in tables.items()}
