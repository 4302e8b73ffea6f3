"""A dbt project with the text of one file as somebody is about to write it; the project itself is left alone."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from dbt_ripple.dbt_runner.invoke import temporary_folder
from dbt_ripple.errors import RippleError

_ARTIFACTS = ("manifest.json", "catalog.json", "partial_parse.msgpack", "run_results.json")


@contextmanager
def with_text(
    project_dir: Path, artifacts: Path, path: str, text: str
) -> Iterator[tuple[Path, Path, Path]]:
    """A folder that is the project but for one file, a copy of its artifacts, and an empty folder for new ones.

    Everything else in it is a link into the project. It is gone when the context ends.

    Args:
        project_dir: the dbt project.
        artifacts: the folder of manifest.json.
        path: of the file in the project.
        text: what would be in it.

    Raises:
        RippleError: the file is not one of the project's own.
    """
    project_dir = project_dir.resolve()
    file = Path(path)
    if file.is_absolute() or ".." in file.parts or not (project_dir / file).is_file():
        raise RippleError(
            "is not a file of this project", path, "name a model of the project itself"
        )
    with temporary_folder() as folder:
        copy, here = folder / "project", project_dir
        copy.mkdir()
        target = folder / "artifacts"
        target.mkdir()
        for part in file.parts:
            for entry in here.iterdir():
                if entry.name != part and entry.resolve() != artifacts.resolve():
                    (copy / entry.name).symlink_to(entry)
            copy, here = copy / part, here / part
            if part != file.name:
                copy.mkdir()
        copy.write_text(text, encoding="utf-8")
        for name in _ARTIFACTS:
            if (artifacts / name).is_file():
                shutil.copyfile(artifacts / name, target / name)
        parsed = folder / "parsed"
        parsed.mkdir()
        yield folder / "project", target, parsed
