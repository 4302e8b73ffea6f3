"""Git runs nothing on account of what somebody else has committed, or of the user's own settings."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from dbt_ripple.dbt_runner.base_ref import worktree
from dbt_ripple.errors import RippleError
from dbt_ripple.graph.git import (
    content_at,
    git_text,
    has_one_version,
    is_tracked,
    last_commit,
    revisions,
    run_git,
)
from dbt_ripple.graph.lineage_rows import git_commit
from dbt_ripple.openlineage.project_facts import Repository

PACKAGE = Path(__file__).parents[2] / "dbt_ripple"


def git(folder: Path, *arguments: str) -> str:
    said = subprocess.run(
        ["git", "-C", str(folder), "-c", "user.name=a", "-c", "user.email=a@b", *arguments],
        capture_output=True,
        text=True,
        check=True,
    )
    return said.stdout.strip()


@pytest.fixture
def proof(tmp_path: Path) -> Path:
    """A file that is there once anything was run."""
    return tmp_path / "proof"


@pytest.fixture
def program(tmp_path: Path, proof: Path) -> str:
    file = tmp_path / "program"
    file.write_text(f"#!/bin/sh\ntouch {proof}\ncat\n")
    file.chmod(0o755)
    return str(file)


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    folder = tmp_path / "repository"
    folder.mkdir()
    git(folder, "init", "-q", "-b", "main")
    (folder / "dbt_project.yml").write_text("name: shop\n")
    (folder / "seeds").mkdir()
    (folder / "seeds" / "a.csv").write_text("a\n1\n")
    git(folder, "add", ".")
    git(folder, "commit", "-q", "-m", "first")
    return folder


def hostile(folder: Path, program: str) -> None:
    """Let the settings of a repository run a program in every way that they can."""
    for name, value in {
        "core.fsmonitor": program,
        "core.hooksPath": str(folder / "hooks"),
        "diff.external": program,
        "diff.x.textconv": program,
        "diff.x.command": program,
        "filter.x.clean": program,
        "filter.x.smudge": program,
        "filter.x.required": "true",
        "filter.y.process": program,
        "gpg.program": program,
        "log.showSignature": "true",
        "core.pager": program,
        "core.editor": program,
        "core.sshCommand": program,
        "core.askPass": program,
    }.items():
        git(folder, "config", name, value)
    (folder / "hooks").mkdir(exist_ok=True)
    for hook in ("post-checkout", "reference-transaction", "post-index-change"):
        file = folder / "hooks" / hook
        file.write_text(Path(program).read_text())
        file.chmod(0o755)


def every_call(project_dir: Path) -> None:
    """All that the product asks git."""
    file = project_dir / "seeds" / "a.csv"
    list(revisions(file))
    has_one_version(file)
    content_at(file, "HEAD")
    last_commit(file)
    is_tracked(file)
    git_commit(project_dir)
    Repository(project_dir, "shop")
    try:
        with worktree(project_dir, "main", project_dir.parent / "base"):
            pass
    except RippleError:
        pass


def test_the_settings_of_the_repository_run_nothing(
    repository: Path, program: str, proof: Path
) -> None:
    (repository / ".gitattributes").write_text("*.csv filter=x diff=x\n*.yml filter=y diff=x\n")
    git(repository, "add", ".")
    git(repository, "commit", "-q", "-m", "attributes")
    hostile(repository, program)
    (repository / "seeds" / "a.csv").write_text("a\n2\n")
    every_call(repository)
    assert not proof.exists()
    # The programs are such that git runs them, where it is not told otherwise.
    subprocess.run(["git", "-C", str(repository), "status"], capture_output=True, check=False)
    assert proof.exists()


def committed_repository(repository: Path, program: str) -> Path:
    """A subfolder that holds what git takes for a bare repository, with a project in it."""
    inner = repository / "project"
    inner.mkdir()
    git(inner, "init", "-q", "--bare", ".")
    for name in ("description", "hooks", "info"):
        subprocess.run(["rm", "-rf", str(inner / name)], check=True)
    for empty in ("refs/heads", "objects/info", "objects/pack"):
        (inner / empty / "kept").write_text("")
    (inner / "seeds").mkdir()
    (inner / "seeds" / "a.csv").write_text("a\n1\n")
    (inner / "dbt_project.yml").write_text("name: shop\n")
    work = {**os.environ, "GIT_WORK_TREE": str(inner), "GIT_DIR": str(inner)}
    identity = ("-c", "user.name=a", "-c", "user.email=a@b")
    for command in (("add", "."), (*identity, "commit", "-q", "-m", "theirs")):
        subprocess.run(["git", *command], cwd=inner, env=work, check=True, capture_output=True)
    git(inner, "config", "core.bare", "false")
    git(inner, "config", "core.worktree", str(inner))
    hostile(inner, program)
    return inner


@pytest.mark.parametrize("old_git", [False, True])
def test_a_repository_that_was_committed_is_none(
    repository: Path,
    program: str,
    proof: Path,
    old_git: bool,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    if old_git:  # before 2.38 git knows no safe.bareRepository
        monkeypatch.setattr(
            "dbt_ripple.graph.git._OFF",
            ("-c", "core.fsmonitor=false"),
        )
    inner = committed_repository(repository, program)
    proof.unlink(missing_ok=True)
    every_call(inner)
    assert not proof.exists()
    assert content_at(inner / "seeds" / "a.csv", "HEAD") is None
    assert git_commit(inner) is None
    assert not is_tracked(inner / "seeds" / "a.csv")
    with (
        pytest.raises(RippleError, match="would take for a repository"),
        worktree(inner, "HEAD", inner.parent / "base"),
    ):
        raise AssertionError
    # What is beside it is as it was.
    assert content_at(repository / "seeds" / "a.csv", "HEAD") == "a\n1\n"


def test_git_itself_refuses_it_too(
    repository: Path, program: str, proof: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    inner = committed_repository(repository, program)
    proof.unlink(missing_ok=True)
    monkeypatch.setattr("dbt_ripple.graph.git._false_repository", lambda folder: None)
    assert git_text(inner, "rev-parse", "HEAD") is None
    assert "bare" in run_git(inner, "status").stderr.decode()
    assert not proof.exists()


def test_what_a_hook_says_of_its_repository_does_not_count(
    repository: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GIT_DIR", str(tmp_path / "nowhere"))
    assert git_text(repository, "rev-parse", "--show-prefix") == ""
    assert git_text(repository, "no-such-command") is None


def test_nothing_else_calls_git() -> None:
    callers = {
        path.relative_to(PACKAGE).as_posix()
        for path in PACKAGE.rglob("*.py")
        if '"git"' in path.read_text(encoding="utf-8")
    }
    assert callers == {"graph/git.py", "openlineage/project_facts.py"}  # a word of the latter


def test_files_of_git_lfs_are_fetched(repository: Path, program: str, proof: Path) -> None:
    git(repository, "config", "filter.lfs.clean", program)
    (repository / ".gitattributes").write_text("*.csv filter=lfs\n")
    assert has_one_version(repository / "seeds" / "a.csv")
    assert proof.exists()
