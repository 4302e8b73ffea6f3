"""The files of this machine that queries, hooks and Python models read by their names."""

from __future__ import annotations

import re
import sys
import sysconfig
from collections.abc import Iterable
from pathlib import Path
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
_IMPORTED: Final = re.compile(
    r"(?:^|;)[ \t]*(?:from[ \t]+(\w+)|import[ \t]+([^\n;#]+))"
    r"""|\b(?:import_module|__import__)\([ \t]*["'](\w+)""",
    re.M,
)
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
    """The modules that a Python model imports, as the files that they would be if each were one.

    Whatever lies in a package of that name is meant, too (`files_of_module`).
    """
    return imported_by(node.raw_code) if node.is_python else []


def imported_by(text: str) -> list[str]:
    r"""The modules that a text in Python imports, as `modules_imported`.

    Example:
        >>> imported_by("import os, a.b as c\nfrom d.e import f\nfrom . import g\nx = import_module('h')")
        ['os.py', 'a.py', 'd.py', 'h.py']
    """
    found: list[str] = []
    for source, listed, by_name in _IMPORTED.findall(text):
        names = [source or by_name] if source or by_name else listed.split(",")
        found += [match[0] for name in names if (match := re.match(r"\w+", name.strip()))]
    return [f"{name}.py" for name in dict.fromkeys(found)]


def files_of_module(folder: Path, module: str) -> list[Path]:
    """The files in a folder that are a module, of a name as `modules_imported` has it: of a package all."""
    package = folder / module.removesuffix(".py")
    return [f for f in (folder / module, *sorted(package.glob("**/*.py"))) if f.is_file()]


def module_folders(more: Iterable[str] = ()) -> list[Path]:
    """Where Python looks for modules that are nobody's installation: ``PYTHONPATH``, say.

    Args:
        more: folders that are looked through as well.
    """
    installed = [Path(path).resolve() for path in sysconfig.get_paths().values()]
    folders = dict.fromkeys(Path(path).resolve() for path in (*sys.path, *more))
    return [f for f in folders if f.is_dir() and not any(map(f.is_relative_to, installed))]
