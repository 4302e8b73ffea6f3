"""The packages of a project that its own repository holds: what is changed in them is judged, too."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from dbt_ripple.artifacts.read_yaml import read_yaml
from dbt_ripple.errors import RippleError
from dbt_ripple.governance.ripple_yml import PROJECT_FILE
from dbt_ripple.graph.git_history import is_tracked

_FILES: Final = ("packages.yml", "dependencies.yml")
_INSTALLED: Final = "dbt_packages"


def local_packages(project_dir: Path) -> frozenset[str]:
    """The names of the packages that are named by a folder (``local: ...``), or are under version control.

    What a file does not say in plain YAML is left out: dbt refuses it, or renders a path that is not known
    here.
    """
    names: set[str] = set()
    seen: set[Path] = set()
    folders = [project_dir.resolve()]
    while folders:
        folder = folders.pop()
        for package in _packages(folder):
            if package in seen:
                continue
            seen.add(package)
            name = _content(package / PROJECT_FILE).get("name")
            if isinstance(name, str):
                names.add(name)
                folders.append(package)
    return frozenset(names)


def _packages(folder: Path) -> Iterator[Path]:
    for file in _FILES:
        packages = _content(folder / file).get("packages")
        for package in packages if isinstance(packages, list) else []:
            path = package.get("local") if isinstance(package, dict) else None
            if isinstance(path, str):
                yield (folder / path).resolve()
    path = _content(folder / PROJECT_FILE).get("packages-install-path") or _INSTALLED
    if isinstance(path, str):
        for project_file in sorted((folder / path).glob(f"*/{PROJECT_FILE}")):
            if not project_file.parent.is_symlink() and is_tracked(project_file):
                yield project_file.parent.resolve()


def _content(file: Path) -> dict[str, Any]:
    if not file.is_file():
        return {}
    try:
        content = read_yaml(file, as_dbt=True)
    except RippleError:
        return {}
    return content if isinstance(content, dict) else {}
