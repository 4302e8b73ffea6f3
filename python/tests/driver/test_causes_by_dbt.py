"""The cause of each change with `--base-ref`: what was edited, before and after, in which file and line, by a real dbt."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
import tiny_project
from caused_edits import ROWS, SILENT, Row, build_lab, causes_and_bare, check, edited

from dbt_ripple.changes import compare
from dbt_ripple.changes.causes import Cause
from dbt_ripple.dbt_runner.base_ref import both_sides
from dbt_ripple.dbt_runner.invoke import DbtOptions
from dbt_ripple.graph.cache import Cache

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build_lab(tmp_path_factory.mktemp("lab"))


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cache]:
    with Cache(tmp_path_factory.mktemp("cache")) as opened:
        yield opened


def found(project: Path, cache: Cache) -> tuple[list[Cause], set[str]]:
    with both_sides(project, "main", DbtOptions(), cache=cache) as sides:
        comparison = compare(sides.base, sides.head, cache=cache)
        comparison.project_dir = project
        return causes_and_bare(comparison)


@pytest.mark.parametrize("row", ROWS, ids=[row.what for row in ROWS])
def test_the_cause_is_what_was_edited(
    row: Row, lab: Path, tmp_path: Path, cache: Cache, monkeypatch: pytest.MonkeyPatch
) -> None:
    project = edited(lab, row, tmp_path)
    monkeypatch.chdir(project)
    causes, bare = found(project, cache)
    check(row, causes, project)
    assert not bare


@pytest.mark.parametrize("row", SILENT, ids=[row.what for row in SILENT])
def test_what_changes_nothing_is_no_cause(
    row: Row, lab: Path, tmp_path: Path, cache: Cache, monkeypatch: pytest.MonkeyPatch
) -> None:
    project = edited(lab, row, tmp_path)
    monkeypatch.chdir(project)
    assert found(project, cache) == ([], set())


def test_the_commit_of_an_edit(
    lab: Path, tmp_path: Path, cache: Cache, monkeypatch: pytest.MonkeyPatch
) -> None:
    row = next(row for row in ROWS if row.what == "a macro")
    project = edited(lab, row, tmp_path)
    monkeypatch.chdir(project)
    assert found(project, cache)[0][0].commit is None  # it is in no commit yet
    tiny_project.git(project, "checkout", "-q", "-b", "work")
    sha = tiny_project.commit(project, "an edit")
    tiny_project.write(project, {"README.md": "more"})
    tiny_project.commit(project, "another one")
    assert found(project, cache)[0][0].commit == sha[:8]
