"""The files of this machine that queries, hooks and Python models read by their names."""

from __future__ import annotations

import re
from typing import Final

from dbt_ripple.artifacts import Node
from dbt_ripple.graph.node_properties import hooks_in

_PATH: Final = r"(?:[^':\n]|:(?!//))+"
_READING: Final = re.compile(
    r"\b(?:read_\w+|parquet_scan|sniff_csv|glob)\s*\(\s*(\[[^\]]*\]|'[^']*')", re.I
)
_TEXT: Final = re.compile(rf"'({_PATH})'")
_FILE_READ: Final = re.compile(
    rf"""\b(?:from|join)\s*(?:'({_PATH}\.[a-z]\w*)'|"([^":\n]+\.[a-z]\w*)")"""
    rf"|\bcopy\b[^;']*\bfrom\s*'({_PATH})'",
    re.I,
)
_IMPORTED: Final = re.compile(r"^\s*(?:import|from)\s+(\w+)", re.M)
_IN_PYTHON: Final = re.compile(
    r"""["']([^"'\n:]+\.(?:arrow|avro|csv|feather|gz|json|jsonl|ndjson|parquet|pkl|sql|tsv|txt|xlsx|xml|ya?ml|zip))["']""",
    re.I,
)


def files_read(node: Node, adapter: str | None) -> list[str]:
    r"""The files that a node reads (on DuckDB), by their names there: in its compiled SQL, its hooks, its Python.

    Example:
        >>> node = Node(unique_id="m", name="m", resource_type="model",
        ...             compiled_code="select * from read_csv(['a.csv', 'b.csv']) join \"c.json\" using (k)")
        >>> files_read(node, "duckdb")
        ['a.csv', 'b.csv', 'c.json']
    """
    if adapter != "duckdb":
        return []
    if node.is_python:
        found = _IN_PYTHON.findall(node.raw_code)
    else:
        own = node.raw_code if node.resource_type == "operation" else node.compiled_code or ""
        found = []
        for text in (own, *(sql for _, sql in hooks_in(node.config))):
            if "'" in text or '"' in text:
                found += [file for read in _READING.findall(text) for file in _TEXT.findall(read)]
                found += [a or b or c for a, b, c in _FILE_READ.findall(text)]
    return list(dict.fromkeys(found))


def modules_imported(node: Node) -> list[str]:
    """The files that a Python model's modules would be in, if they were the project's own."""
    if not node.is_python:
        return []
    modules = dict.fromkeys(_IMPORTED.findall(node.raw_code))
    return [file for module in modules for file in (f"{module}.py", f"{module}/__init__.py")]
