"""What profiles.yml says of a target's session, on both sides of `--base-ref`; no dbt runs."""

from __future__ import annotations

from pathlib import Path

import pytest
import tiny_project

from dbt_ripple.dbt_runner.base_ref import session_settings
from dbt_ripple.dbt_runner.invoke import DbtOptions

PROFILES = """
tiny:
  target: dev
  outputs:
    dev: {type: duckdb, path: a.duckdb, threads: 1}
    other: {type: duckdb, path: a.duckdb, settings: {timezone: UTC}}
"""


def sides(folder: Path, before: str, now: str, **options: str) -> tuple[Path, Path, DbtOptions]:
    """Two checkouts, each a repository with a profiles.yml, and where dbt looks for it."""
    for name, text in (("base", before), ("head", now)):
        files = {"dbt_project.yml": "name: tiny\nprofile: tiny\n", "profiles.yml": text}
        tiny_project.write(folder / name, files)
        tiny_project.git(folder, "init", "-q", str(folder / name))
    return folder / "base", folder / "head", DbtOptions(profiles_dir=folder / "head", **options)


@pytest.fixture(autouse=True)
def _no_target_in_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("DBT_TARGET", "DBT_PROFILE"):
        monkeypatch.delenv(name, raising=False)


def test_settings_count_and_where_it_connects_does_not(tmp_path: Path) -> None:
    now = PROFILES.replace("threads: 1", "threads: 9, settings: {b: 1, a: {c: x}}")
    before, after = session_settings(
        *sides(tmp_path, PROFILES, now.replace("a.duckdb", "b.duckdb"))
    )
    assert (before, after) == (
        {"type": "duckdb"},
        {"type": "duckdb", "settings.a.c": "x", "settings.b": "1"},
    )


def test_it_is_the_target_that_dbt_would_take(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    *folders, options = sides(tmp_path, PROFILES, PROFILES, target="other")
    assert session_settings(folders[0], folders[1], options)[1]["settings.timezone"] == "UTC"
    monkeypatch.setenv("DBT_TARGET", "other")
    assert "settings.timezone" in session_settings(*sides(tmp_path / "b", PROFILES, PROFILES))[1]


def test_what_cannot_be_read_counts_where_it_is_another_text(tmp_path: Path) -> None:
    unread = PROFILES.replace("target: dev", "target: \"{{ env_var('T') }}\"")
    before, after = session_settings(*sides(tmp_path, unread, unread.replace("UTC", "CET")))
    assert before.keys() == after.keys() == {"profiles.yml"} and before != after
    before, after = session_settings(*sides(tmp_path / "same", unread, unread))
    assert before == after


def test_a_profile_that_git_does_not_know_is_one_for_both(tmp_path: Path) -> None:
    base, head, options = sides(tmp_path, PROFILES, PROFILES.replace("UTC", "CET"))
    (base / "profiles.yml").unlink()
    assert session_settings(base, head, options) == ({}, {})


def test_a_profile_outside_of_the_repository_is_one_for_both(tmp_path: Path) -> None:
    base, head, _ = sides(tmp_path, PROFILES, PROFILES.replace("UTC", "CET"))
    tiny_project.write(tmp_path / "home", {"profiles.yml": PROFILES})
    assert session_settings(base, head, DbtOptions(profiles_dir=tmp_path / "home")) == ({}, {})
