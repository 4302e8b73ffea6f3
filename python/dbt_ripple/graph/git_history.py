"""The content of a file in former commits, if it is in a git repository."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterable, Iterator
from datetime import datetime
from pathlib import Path
from typing import Final

from dbt_ripple.graph.git import run_git

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


def _git(folder: Path, *args: str) -> bytes | None:
    try:
        run = run_git(folder, *args)
    except (OSError, subprocess.SubprocessError):
        return None
    return run.stdout if run.returncode == 0 else None
