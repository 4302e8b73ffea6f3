"""Names as people type them: file names, and ``--select`` evaluated on the artifacts."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from dbt_ripple.artifacts import Project

_FILES = (".sql", ".py", ".csv", ".yml", ".yaml")


def chosen(
    project: Project, select: Sequence[str], exclude: Sequence[str], project_dir: Path
) -> set[str] | None:
    """The unique_ids that specs of dbt's grammar select; None where none is given.

    Raises:
        RippleError: as `artifacts.node_selection.selected`.
    """
    if not select and not exclude:
        return None
    from dbt_ripple.artifacts.node_selection import selected

    def typed(specs: Sequence[str]) -> list[str]:
        return [
            " ".join(
                ",".join(as_typed(part, project_dir) for part in word.split(","))
                for word in spec.split()
            )
            for spec in specs
        ]

    return selected(project, typed(select), typed(exclude))


def as_typed(text: str, project_dir: Path) -> str:
    """A name with a file in it, as dbt knows that file: by its path from the project's root.

    It may be typed from the current folder, as a shell completes it.
    """
    bare = text.lstrip("@+0123456789") if text[:1] in "@+0123456789" and "+" in text else text
    before, name = text[: len(text) - len(bare)], bare
    method, colon, path = name.partition(":")
    if not colon or method not in ("path", "file"):
        method, colon, path = "", "", name
    end = "+" + path.rpartition("+")[2] if path.rpartition("+")[2].isdigit() else ""
    end = end or ("+" if path.endswith("+") else "")
    path = path.removesuffix(end)
    if "/" not in path and not path.endswith(_FILES):
        return text
    there = Path(path)
    if there.exists():
        try:
            path = there.resolve().relative_to(project_dir.resolve()).as_posix()
        except ValueError:
            path = there.as_posix()
    return f"{before}{method}{colon}{path.removeprefix('./')}{end}"
