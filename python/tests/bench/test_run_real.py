"""The benchmark on public projects: what it takes of clones, what it prints, and our shop by it."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

BENCH = Path(__file__).resolve().parents[2] / "bench"
sys.path.append(str(BENCH))

import made_packages  # noqa: E402
import real_projects  # noqa: E402
import run as bench  # noqa: E402
from real_projects import RealProject  # noqa: E402

PROJECT = RealProject("p", "owner/name", ("a.sql", "", ""), packages=("other/package@old",))


def git(folder: Path, *arguments: str) -> None:
    who = ["-c", "user.name=x", "-c", "user.email=x@example.com"]
    subprocess.run(["git", *who, *arguments], cwd=folder, check=True, capture_output=True)


def cloned(folder: Path) -> Path:
    """A repository with a file, a link, a file of an older branch, and one whose content is gone."""
    folder.mkdir(parents=True)
    git(folder, "init", "--quiet")
    (folder / "old.sql").write_text("select 0")
    git(folder, "add", ".")
    git(folder, "commit", "--quiet", "--message", "old")
    git(folder, "branch", "old")
    git(folder, "rm", "--quiet", "old.sql")
    (folder / "models").mkdir()
    (folder / "models" / "a.sql").write_text("select 1 as a\n")
    (folder / "models" / "gone.csv").write_text("a,b\n")
    (folder / "b.sql").symlink_to("models/a.sql")
    git(folder, "add", ".")
    git(folder, "commit", "--quiet", "--message", "new")
    blob = subprocess.run(
        ["git", "rev-parse", "HEAD:models/gone.csv"], cwd=folder, capture_output=True, text=True
    ).stdout.strip()
    (folder / ".git" / "objects" / blob[:2] / blob[2:]).unlink()
    return folder


@pytest.mark.parametrize("where", ["owner+name/repo", "owner/name", "name", "owner+name"])
def test_a_clone_is_found_where_it_lies(tmp_path: Path, where: str) -> None:
    cloned(tmp_path / where)
    assert real_projects.clone_of(tmp_path, "owner/name") == tmp_path / where
    assert real_projects.missing(PROJECT, tmp_path) == ["other/package@old"]
    assert real_projects.missing(PROJECT, None) == ["owner/name", "other/package@old"]


def test_files_of_a_commit_are_laid_out_without_those_that_the_clone_lacks(tmp_path: Path) -> None:
    cloned(tmp_path / "clones" / "owner" / "name")
    into = tmp_path / "out"
    real_projects._checkout(tmp_path / "clones", "owner/name", into)
    assert (into / "b.sql").is_symlink() and (into / "b.sql").read_text() == "select 1 as a\n"
    assert sorted(p.name for p in into.rglob("*")) == ["a.sql", "b.sql", "models"]
    real_projects._checkout(tmp_path / "clones", "owner/name@old", into)
    assert [p.name for p in into.rglob("*")] == ["old.sql"]
    with pytest.raises(real_projects.PutUpError, match="has no branch new"):
        real_projects._checkout(tmp_path / "clones", "owner/name@new", into)


def measured(name: str, failures: dict[str, str] | None = None, **cpu: float) -> dict[str, Any]:
    """What one project took, in seconds."""
    took = {"floor": 1.0, "analysis": 1.0, "dbt ls": 10.0, "select": 1.0, "compile": 20.0}
    took |= {"first": 20.0, "again": 10.0} | cpu
    return {
        "name": name,
        "adapter": "duckdb",
        "counts": {"models": 1, "tests": 2, "seeds": 0, "macros": 3, "hooks": 4},
        "repeat": 1,
        "machine": {"date": "2026-01-01", "python": "", "sqlglot": "", "cores": 2},
        "runs": {
            step: [{"wall": 0.0, "cpu": took[step], "work_cpu": took[step]}]
            for step in took
            if step not in (failures or ())
        },
        "failures": failures or {},
        "answers": {"--state": {"impacted_tests": 1, "all_tests": 2}},
    }


def test_the_project_farthest_above_its_limits_comes_first() -> None:
    documents = [
        measured("quick"),
        measured("slow", analysis=2.51),
        measured("slower", again=40.5),
        measured("broken", failures={"first": "failed (1): no"}),
    ]
    rows = list(bench.real_report(documents))[2:]
    assert [row.split()[1] for row in rows] == ["broken", "slower", "slow", "quick"]
    assert rows[2] == (
        "| slow (duckdb) | 1 | 2 | 3 | 4 | 2.51 / 1.00 = **2.51** | 1.00 / 10.0 = 0.10 | "
        "20.0 / 20.0 = 1.00 | 10.0 / 10.0 = 1.00 | 1 of 2 |"
    )
    assert list(bench.too_slow(documents)) == [
        "slow: analysis takes 2.51 of floor, at most 2.5",
        "slower: again takes 4.05 of dbt ls, at most 2",
        "broken: first: failed (1): no",
    ]


def test_the_page_keeps_what_people_write(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    page = tmp_path / "page.md"
    page.write_text(f"a\n{bench.REAL_BEGIN}old\n{bench.REAL_END}b\n{bench.BEGIN}old\n")
    monkeypatch.setattr(bench, "PAGE", page)
    monkeypatch.setattr(bench, "RESULTS", tmp_path)
    (tmp_path / "real-quick.json").write_text(json.dumps(measured("quick")))
    for _ in range(2):
        bench.write_page("new\n")
        text = page.read_text()
        assert "old" not in text and text.count("| quick (duckdb) |") == 1
        parts = (f"a\n{bench.REAL_BEGIN}", f"{bench.REAL_END}b\n{bench.BEGIN}\nnew\n")
        assert text.startswith(parts[0]) and text.endswith(parts[1])


def test_a_made_up_package_is_as_long_as_asked_and_the_same_by_seed() -> None:
    made = made_packages.macros("observer", 300)
    assert 300 <= len(made) < 320
    assert len({macro.name for macro in made}) == len(made)
    assert made == made_packages.macros("observer", 300) != made_packages.macros("observer", 300, 1)
    uploader = made_packages.macros("uploader", 100)
    assert not any("observer" in macro.sql for macro in uploader)


@pytest.mark.slow
def test_our_shop_is_measured(tmp_path: Path) -> None:
    """It needs no clone. Whether it is below the limits, `--check` says on a quiet machine."""
    done = subprocess.run(
        [
            *(sys.executable, BENCH / "run_real.py", "--projects", "our shop", "--repeat", "1"),
            *("--results", tmp_path),  # what is measured beside other tests is no result
        ],
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    assert "| our shop (duckdb) |" in done.stdout
    assert [path.name for path in tmp_path.iterdir()] == ["real-our-shop.json"]
