"""Where the files of a project are: the artifacts that dbt writes, and the declared assets; the text of one."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from dbt_ripple.errors import RippleError


def text_of_file(path: Path) -> str | None:
    """A file; None where it is not there, or is no text."""
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        return None


def artifacts_folder(project_dir: Path, target_path: Path | None) -> Path:
    """The folder dbt writes its artifacts to.

    It is ``target_path`` (relative to the project, as in dbt), or else the ``target-path`` of
    dbt_project.yml, or else ``target``.
    """
    return project_dir / (target_path or _configured_target(project_dir) or "target")


def _configured_target(project_dir: Path) -> str | None:
    text = text_of_file(project_dir / "dbt_project.yml") or ""
    match = re.search(r"""^target-path:\s*["']?([^"'#\s]+)["']?\s*(?:#.*)?$""", text, re.MULTILINE)
    return match.group(1) if match else None


FILE: Final = "ripple_assets.yml"


def assets_files(project_dir: Path, given: Sequence[Path]) -> list[Path]:
    """The files of a project's assets: the one beside it, if it is there, and those that are given.

    Raises:
        RippleError: a file that is given is not there.
    """
    files = [project_dir / FILE] if (project_dir / FILE).is_file() else []
    for file in given:
        if not file.is_file():
            what = "is not a file" if file.exists() else "no such file"
            raise RippleError(what, f"--assets {file}", "name a file like ripple_assets.yml")
        if not any(file.resolve() == other.resolve() for other in files):
            files.append(file)
    return files
