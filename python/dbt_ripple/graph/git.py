"""The one way in which git is called.

The repository may hold what somebody else has committed, so git runs nothing on its account: no hooks, no
file system monitor, no filters (but Git LFS), no textconv, external diff or signature program. A folder
that only looks like a repository (``HEAD``, ``objects/`` and ``refs/`` committed in a subfolder, with a
config that git would obey) is none.
"""

from __future__ import annotations

import os
import subprocess
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
    try:
        run = run_git(folder, *arguments, timeout=timeout)
    except (OSError, subprocess.SubprocessError):
        return None
    return run.stdout.decode(errors="replace").strip() if run.returncode == 0 else None


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
