"""The files of this machine that queries and Python models read by their names."""

from __future__ import annotations

import re
from typing import Final

from dbt_ripple.artifacts import Node

_PATH: Final = r"(?:[^':]|:(?!//))+"
_FILE_READ: Final = re.compile(
    rf"\b(?:read_\w+|parquet_scan|sniff_csv|glob)\s*\(\s*\[?\s*'({_PATH})'"
    rf"|\b(?:from|join)\s*'({_PATH}\.[a-z]\w*)'",
    re.I,
)
_IMPORTED: Final = re.compile(r"^\s*(?:import|from)\s+(\w+)", re.M)


def files_read(node: Node, adapter: str | None) -> list[str]:
    """The files that the compiled SQL of a node reads (on DuckDB), by their names there."""
    if adapter != "duckdb" or not node.compiled_code or "'" not in node.compiled_code:
        return []
    reads = _FILE_READ.finditer(node.compiled_code)
    return list(dict.fromkeys(read[1] or read[2] for read in reads))


def modules_imported(node: Node) -> list[str]:
    """The files that a Python model's modules would be in, if they were the project's own."""
    if not node.is_python:
        return []
    modules = dict.fromkeys(_IMPORTED.findall(node.raw_code))
    return [file for module in modules for file in (f"{module}.py", f"{module}/__init__.py")]
