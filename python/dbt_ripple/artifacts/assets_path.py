"""Where the assets of a project are declared."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Final

from dbt_ripple.errors import RippleError

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
