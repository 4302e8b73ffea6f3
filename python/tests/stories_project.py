"""integration_tests/stories, compiled by dbt on DuckDB: a project with a good night, an edit and a stale source."""

from __future__ import annotations

import shutil
from pathlib import Path

from dbt_here import run_dbt

STORIES = Path(__file__).parents[2] / "integration_tests" / "stories"


def compiled(parent: Path) -> Path:
    """A copy of the project; its folder `last-good` is as it was before customers_clean was edited, `edited` after that."""
    folder = parent / "stories"
    shutil.copytree(STORIES, folder, ignore=shutil.ignore_patterns("target", "logs"))
    for target in ("last-good", "edited"):
        if target == "edited":
            shutil.copy(folder / "edits" / "customers_clean.sql", folder / "models")
        done, output = run_dbt(folder, "compile", "--target-path", target)
        assert done, output
        for result in (STORIES / "results").iterdir():
            shutil.copy(result, folder / target)
    return folder
