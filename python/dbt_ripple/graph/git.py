"""Git: the one way in which it is called, and the content of a file in former commits.

The repository may hold what somebody else has committed, so git runs nothing on its account: no hooks, no
file system monitor, no filters (but Git LFS), no textconv, external diff or signature program. A folder
that only looks like a repository (``HEAD``, ``objects/`` and ``refs/`` committed in a subfolder, with a
config that git would obey) is none.
"""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Iterable, Iterator
from datetime import datetime
from pathlib import Path
from typing import Final

_OFF: Final = tuple(
    word
    for setting in (
        "safe.bareRepository=explicit",
        "core.fsmonitor=false",
        f"core.hooksPath={os.devnull}",
        "diff.external=",
        "log.showSignature=false",
        "submodule.recurse=false",
    )
    for word in ("-c", setting)
)
_COMPARES: Final = frozenset({"diff", "log", "show"})
_READS_FILES: Final = frozenset({"hash-object", "status", "worktree"})
"""Commands that would filter the content of files."""
_VARIABLES: Final = frozenset(
    "GIT_COMMON_DIR GIT_DIR GIT_EXTERNAL_DIFF GIT_INDEX_FILE GIT_PREFIX GIT_WORK_TREE".split()
)
"""In a git hook these say another repository or index than the folder does."""
_NO_REPOSITORY: Final = 128


def run_git(
    folder: Path, *arguments: str, timeout: float | None = 30
) -> subprocess.CompletedProcess[bytes]:
    """Call git in a folder.

    Args:
        folder: any folder of a repository.
        arguments: the command and its arguments.
        timeout: seconds after which it is stopped; None for no limit.

    Raises:
        OSError: there is no git.
        subprocess.TimeoutExpired: it took too long.
    """
    false_one = _false_repository(folder)
    if false_one is not None:
        message = f"fatal: {false_one} holds files that git would take for a repository".encode()
        return subprocess.CompletedProcess(arguments, _NO_REPOSITORY, b"", message)
    command, *rest = arguments
    if command in _COMPARES:
        rest = ["--no-textconv", "--no-ext-diff", *rest]
    filters = _filters(folder, timeout) if command in _READS_FILES else []
    off = [word for name in filters for word in _without_filter(name)]
    return _run(folder, [*off, command, *rest], timeout)


def git_text(folder: Path, *arguments: str, timeout: float | None = 30) -> str | None:
    """What git says, without spaces around it; None where it fails, or there is none."""
    told = _git(folder, *arguments, timeout=timeout)
    return None if told is None else told.decode(errors="replace").strip()


def _run(
    folder: Path, arguments: list[str], timeout: float | None
) -> subprocess.CompletedProcess[bytes]:
    environment = {name: value for name, value in os.environ.items() if name not in _VARIABLES}
    return subprocess.run(
        ["git", "-C", str(folder), *_OFF, *arguments],
        capture_output=True,
        check=False,
        timeout=timeout,
        env={**environment, "GIT_OPTIONAL_LOCKS": "0", "GIT_TERMINAL_PROMPT": "0"},
    )


def _filters(folder: Path, timeout: float | None) -> list[str]:
    """The filters that the configuration knows, but Git LFS's, which fetches what a file is."""
    run = _run(folder, ["config", "--name-only", "--get-regexp", r"^filter\."], timeout)
    names = {
        line.partition(".")[2].rpartition(".")[0]
        for line in run.stdout.decode(errors="replace").splitlines()
    }
    return sorted(names - {"", "lfs"})


def _without_filter(name: str) -> list[str]:
    settings = ("clean=", "smudge=", "process=", "required=false")
    return [word for setting in settings for word in ("-c", f"filter.{name}.{setting}")]


def _false_repository(folder: Path) -> Path | None:
    """The folder below the repository's that git would take for a bare one; older versions of git do."""
    for path in (folder.resolve(), *folder.resolve().parents):
        if (path / ".git").exists():
            return None
        if (path / "HEAD").is_file() and all((path / d).is_dir() for d in ("objects", "refs")):
            return path
    return None


_REVISIONS: Final = 50
"""Commits of a file that are looked through for the one with a digest."""


def revisions(file: Path) -> Iterator[bytes]:
    """The contents of a file in the last commits that touch it, newest first."""
    folder, name = file.resolve().parent, file.name
    log = _git(folder, "log", f"-{_REVISIONS}", "--format=%H", "--", f"./{name}") or b""
    for commit in log.decode("ascii", "replace").split():
        content = _git(folder, "show", f"{commit}:./{name}")
        if content is not None:
            yield content


def has_one_version(file: Path) -> bool:
    """Whether a file is the same in every commit that touches it, and here.

    False where it cannot be told: outside of git, and in a clone without the whole history.
    """
    folder, name = file.resolve().parent, f"./{file.name}"
    here = _git(folder, "hash-object", "--", name)
    if not here or _git(folder, "rev-parse", "--is-shallow-repository") != b"false\n":
        return False
    log = _git(folder, "log", *_ALL_VERSIONS, "--", name) or b""
    return {line.split()[3] for line in log.splitlines() if line} == {here.strip()}


_ALL_VERSIONS: Final = (
    "--all",
    "--full-history",
    "-m",
    "--no-renames",
    "--raw",
    "--no-abbrev",
    "--format=",
)


def content_at(file: Path, ref: str) -> str | None:
    """A file as it was at a commit; None where it was not there, or is no text."""
    folder, name = file.resolve().parent, file.name
    content = _git(folder, "show", f"{ref}:./{name}")
    try:
        return None if content is None else content.decode()
    except UnicodeDecodeError:
        return None


def last_commit(file: Path) -> tuple[str, datetime] | None:
    """The last commit that touches a file: its short hash, and when it was made.

    None outside of git, and where the file has changes that are not committed: no commit made it.
    """
    folder, name = file.resolve().parent, file.name
    if _git(folder, "status", "--porcelain", "--", f"./{name}") != b"":
        return None
    line = _git(folder, "log", "-1", "--format=%h %cI", "--", f"./{name}") or b""
    sha, _, at = line.decode("ascii", "replace").strip().partition(" ")
    try:
        return (sha, datetime.fromisoformat(at)) if sha else None
    except ValueError:
        return None


def commits_of_lines(file: Path, lines: Iterable[int]) -> dict[int, str]:
    """The commits since which lines of a file are as they are, by their short hashes.

    What git does not know, or is not committed, is not among them.
    """
    asked = [part for line in sorted({*lines}) for part in ("-L", f"{line},{line}")]
    name = f"./{file.name}"
    told = _git(file.resolve().parent, "blame", "--porcelain", *asked, "--", name) if asked else b""
    headers = (line.split() for line in (told or b"").splitlines() if _BLAMED.match(line))
    found = ((int(line), sha.decode()) for sha, _, line, *_ in headers)
    return {line: sha[:8] for line, sha in found if sha.strip("0")}


_BLAMED: Final = re.compile(rb"[0-9a-f]{40,64} \d+ \d+( \d+)?$")


def is_tracked(file: Path) -> bool:
    """Whether a file is under version control."""
    return _git(file.parent, "ls-files", "--error-unmatch", "--", f"./{file.name}") is not None


def is_ignored(file: Path) -> bool:
    """Whether version control is told to leave a file alone."""
    return _git(file.parent, "check-ignore", "--quiet", "--", f"./{file.name}") is not None


def _git(folder: Path, *args: str, timeout: float | None = 30) -> bytes | None:
    try:
        run = run_git(folder, *args, timeout=timeout)
    except (OSError, subprocess.SubprocessError):
        return None
    return run.stdout if run.returncode == 0 else None
