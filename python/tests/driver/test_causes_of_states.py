"""The cause of each change with `--state`: as much as artifacts tell of it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
import tiny_project
from caused_edits import ROWS, SILENT, Row, build_lab, causes_and_bare, check, edited

from dbt_ripple.artifacts import read_project
from dbt_ripple.changes import compare
from dbt_ripple.changes.compare import Comparison
from dbt_ripple.dbt_runner.invoke import DbtOptions
from dbt_ripple.dbt_runner.session_settings import FILE, keep_settings, settings_beside
from dbt_ripple.selection.select import select_from

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build_lab(tmp_path_factory.mktemp("lab"))


def compared(lab: Path, project: Path) -> Comparison:
    assert tiny_project.dbt(project, "compile", "--full-refresh")
    comparison = compare(read_project(lab.parent / "state"), read_project(project / "target"))
    comparison.project_dir = project
    return comparison


@pytest.mark.parametrize("row", ROWS, ids=[row.what for row in ROWS])
def test_artifacts_tell_the_same_causes(
    row: Row, lab: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    project = edited(lab, row, tmp_path)
    monkeypatch.chdir(project)
    causes, bare = causes_and_bare(compared(lab, project))
    if row.of_state == "none":
        assert causes == []
    elif row.of_state:
        assert {c.kind for c in causes} == {row.of_state}
    else:
        check(row, causes, project)
    assert not bare


@pytest.mark.parametrize("row", SILENT, ids=[row.what for row in SILENT])
def test_what_changes_nothing_selects_nothing(
    row: Row, lab: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    project = edited(lab, row, tmp_path)
    monkeypatch.chdir(project)
    # dbt's files tell of the vars while they are as old as it says. Where they do not, a model may be built again.
    assert select_from(compared(lab, project)).tests == []


def test_settings_of_the_session_are_kept_beside_a_state(
    lab: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("DBT_TARGET", "DBT_PROFILE"):
        monkeypatch.delenv(name, raising=False)
    state, options = tmp_path / "state", DbtOptions(profiles_dir=lab)
    state.mkdir()
    keep_settings(state, lab, options)
    assert settings_beside(state, lab, options) == ({"type": "duckdb"}, {"type": "duckdb"})
    row = next(row for row in ROWS if row.what == "a setting of the target")
    project = edited(lab, row, tmp_path)
    now = replace(options, profiles_dir=project)
    before, after = settings_beside(state, project, now)
    assert after == {**before, "settings.integer_division": "true"}
    # What another target has is no edit of this one.
    profiles = (project / "profiles.yml").read_text().replace("    dev:", "    ci:")
    tiny_project.write(project, {"profiles.yml": profiles})
    assert settings_beside(state, project, replace(now, target="ci")) == ({}, {})
    (state / FILE).unlink()
    assert settings_beside(state, project, now) == ({}, {})
