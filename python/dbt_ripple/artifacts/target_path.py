"""Where dbt writes the artifacts of a project."""

from __future__ import annotations

import re
from pathlib import Path


def artifacts_folder(project_dir: Path, target_path: Path | None) -> Path:
    """The folder dbt writes its artifacts to.

    It is ``target_path`` (relative to the project, as in dbt), or else the ``target-path`` of
    dbt_project.yml, or else ``target``.
    """
    return project_dir / (target_path or _configured_target(project_dir) or "target")


def _configured_target(project_dir: Path) -> str | None:
    try:
        text = (project_dir / "dbt_project.yml").read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        return None
    match = re.search(r"""^target-path:\s*["']?([^"'#\s]+)["']?\s*(?:#.*)?$""", text, re.MULTILINE)
    return match.group(1) if match else None
