"""The files of a repository that queries and Python models read, as they are on both sides of a comparison."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from hashlib import sha256
from pathlib import Path

from dbt_ripple.artifacts import Project
from dbt_ripple.graph.file_reads import (
    files_of_module,
    files_read,
    imported_by,
    module_folders,
    modules_imported,
)
from dbt_ripple.graph.git_history import is_ignored


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
