"""The cause of each change: what was edited, before and after, in which file and line, by a real dbt in both modes."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
import tiny_project
from caused_edits import FILES, ROWS, SILENT, Row

from dbt_ripple.artifacts import read_project
from dbt_ripple.changes import compare
from dbt_ripple.changes.causes import Cause
from dbt_ripple.dbt_runner.base_ref import both_sides
from dbt_ripple.dbt_runner.invoke import DbtOptions
from dbt_ripple.graph.cache import Cache
from dbt_ripple.selection.select import select_from

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The project as it is on its main branch, built, with the artifacts in ``state`` beside it."""
    folder = tmp_path_factory.mktemp("lab") / "lab"
    tiny_project.write(folder, FILES)
    tiny_project.git(folder.parent, "init", "-q", "-b", "main", str(folder))
    tiny_project.commit(folder)
    assert tiny_project.dbt(folder, "deps")
    assert tiny_project.dbt(folder, "build", "--target-path", "state")
    (folder / "state").rename(folder.parent / "state")
    return folder


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cache]:
    with Cache(tmp_path_factory.mktemp("cache")) as opened:
        yield opened


def edited(lab: Path, row: Row, folder: Path) -> Path:
    """A copy of the project with an edit."""
    project = folder / "lab"
    shutil.copytree(lab, project, symlinks=True)
    package = project / "dbt_packages" / "util"
    package.unlink()
    package.symlink_to("../util")
    file = project / row.file
    text = file.read_text() if row.old else ""
    assert not row.old or text.count(row.old) >= 1, row
    file.write_text(text.replace(row.old, row.new, 1) if row.old else row.new)
    if not file.read_text():
        file.unlink()
    return project


def causes_by_ref(project: Path, cache: Cache) -> tuple[list[Cause], set[str]]:
    """The causes of what `--base-ref` finds, and the tests that are selected without one."""
    with both_sides(project, "main", DbtOptions(), cache=cache) as sides:
        comparison = compare(sides.base, sides.head, cache=cache)
        comparison.project_dir = project
        selection = select_from(comparison)
        caused = {u for cause in selection.causes for u in cause.nodes}
        bare = {
            test.unique_id
            for test in selection.tests
            if not caused & {test.unique_id, *(v.rpartition(".")[0] for v in test.path)}
        }
    return selection.causes, bare


@pytest.mark.parametrize("row", ROWS, ids=[row.what for row in ROWS])
def test_the_cause_is_what_was_edited(
    row: Row, lab: Path, tmp_path: Path, cache: Cache, monkeypatch: pytest.MonkeyPatch
) -> None:
    project = edited(lab, row, tmp_path)
    monkeypatch.chdir(project)
    causes, bare = causes_by_ref(project, cache)
    assert [(c.kind, c.name) for c in causes] == [(row.kind, row.name)]
    (cause,) = causes
    assert not bare
    file = row.file if row.in_file is None else row.in_file
    assert (cause.file or "") == file
    if row.at is not None:
        lines = (project / file).read_text().splitlines()
        assert cause.line == next(i for i, line in enumerate(lines, 1) if row.at in line)
    if row.before is not None:
        assert cause.before == row.before
    if row.after is not None:
        assert cause.after == row.after
    assert cause.through == row.through


@pytest.mark.parametrize("row", SILENT, ids=[row.what for row in SILENT])
def test_what_changes_nothing_is_no_cause(
    row: Row, lab: Path, tmp_path: Path, cache: Cache, monkeypatch: pytest.MonkeyPatch
) -> None:
    project = edited(lab, row, tmp_path)
    monkeypatch.chdir(project)
    assert causes_by_ref(project, cache) == ([], set())


@pytest.mark.parametrize("row", ROWS[::6], ids=[row.what for row in ROWS[::6]])
def test_artifacts_tell_the_same_causes(
    row: Row, lab: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    project = edited(lab, row, tmp_path)
    monkeypatch.chdir(project)
    assert tiny_project.dbt(project, "compile", "--full-refresh")
    comparison = compare(read_project(lab.parent / "state"), read_project(project / "target"))
    comparison.project_dir = project
    causes = select_from(comparison).causes
    assert [(c.kind, c.name) for c in causes] == [(row.kind, row.name)]
