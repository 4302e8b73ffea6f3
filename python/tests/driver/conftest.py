from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
import tiny_project

pytest.importorskip("dbt.adapters.duckdb")


@pytest.fixture(scope="session")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The project as it is on its main branch, built in its target `prod`."""
    folder = tmp_path_factory.mktemp("built") / "tiny"
    tiny_project.write(folder, tiny_project.FILES)
    tiny_project.git(folder.parent, "init", "-q", "-b", "main", str(folder))
    tiny_project.commit(folder)
    _without_dbt_variables()
    assert tiny_project.dbt(folder, "build", "--target", "prod", "--target-path", "state")
    (folder / "state").rename(folder.parent / "state")
    tiny_project.let_go()
    return folder


@pytest.fixture
def tiny(built: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A copy of it with the artifacts of `prod` in ``state`` beside it; the working directory."""
    project = tmp_path / "tiny"
    shutil.copytree(built, project, symlinks=True)
    shutil.copytree(built.parent / "state", tmp_path / "state")
    monkeypatch.chdir(project)
    _without_dbt_variables()
    yield project
    tiny_project.let_go()


def _without_dbt_variables() -> None:
    for name in [name for name in os.environ if name.startswith("DBT_")]:
        del os.environ[name]
