"""The files that queries, hooks and Python models read by their names: on this machine, and on both sides of a comparison."""

from __future__ import annotations

import re
import sys
import sysconfig
from collections.abc import Collection, Iterable
from hashlib import sha256
from pathlib import Path
from typing import Final

from dbt_ripple.artifacts import Node, Project
from dbt_ripple.graph.git import is_ignored
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


def with_files(
    sides: tuple[Project, Project],
    tops: tuple[Path, Path],
    folders: Iterable[Path],
    python_path: Iterable[str] = (),
) -> tuple[Project, Project]:
    """Base and head with the files of the repository that their queries and Python models read.

    DuckDB looks for a file in the working directory, Python for a module on its path. A file that git ignores
    is data, as the rows of a source are; one that is not added yet is part of the edit.

    Args:
        sides: base and head.
        tops: the folders of the repository, head's first and base's.
        folders: where head's files are looked for.
        python_path: where its modules are looked for besides these and Python's own path.
    """
    base, head = sides
    adapter = head.metadata.adapter_type
    nodes = [node for side in sides for node in side.nodes.values()]
    names = {file for node in nodes for file in files_read(node, adapter)}
    modules = {module for node in nodes for module in modules_imported(node)}
    if not names and not modules:
        return sides
    top, base_top = tops

    def on_both_sides(folders: Iterable[Path]) -> list[tuple[Path, Path]]:
        inside = (f for f in dict.fromkeys(folders) if f.is_relative_to(top))
        return [(f, base_top / f.relative_to(top)) for f in inside]

    before: dict[str, str] = {}
    now: dict[str, str] = {}

    def compare(name: str, here: dict[str, str], there: dict[str, str], folder: Path) -> None:
        here = {f: h for f, h in here.items() if f in there or not is_ignored(folder / f)}
        if there or here:
            differs = there != here
            for kept, files in ((before, there), (now, here)):
                kept[name] = kept.get(name, "") + (repr(sorted(files.items())) if differs else "")

    of_files = on_both_sides(folders)
    for folder, base_folder in of_files:
        for name in sorted(names):
            compare(name, _content(folder, name), _content(base_folder, name), folder)
    of_modules = on_both_sides([*(f for f, _ in of_files), *module_folders(python_path)])
    for module in sorted(modules):
        here = _modules([f for f, _ in of_modules], module, top)
        there = _modules([f for _, f in of_modules], module, base_top)
        compare(module, here, there, top)
    return base.having(files=before), head.having(files=now)


def _content(folder: Path, name: str) -> dict[str, str]:
    """The files below a folder that a name or a pattern means, each with a digest."""
    if Path(name).is_absolute():
        return {}
    try:
        paths = folder.glob(name) if set(name) & set("*?[") else [folder / name]
        files = {path.relative_to(folder).as_posix(): path for path in paths if path.is_file()}
        return {file: sha256(path.read_bytes()).hexdigest() for file, path in files.items()}
    except (OSError, ValueError):  # it cannot be read, or is no pattern
        return {}


def _modules(folders: Collection[Path], module: str, top: Path) -> dict[str, str]:
    """The files of a module, and of those that it imports itself, each with a digest."""
    files: dict[str, str] = {}
    modules = [module]
    for name in modules:  # which grows meanwhile
        for file in (file for folder in folders for file in files_of_module(folder, name)):
            try:
                content = file.read_bytes()
            except OSError:
                continue
            files[file.relative_to(top).as_posix()] = sha256(content).hexdigest()
            modules += [
                m for m in imported_by(content.decode(errors="replace")) if m not in modules
            ]
    return files
