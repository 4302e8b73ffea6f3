"""What a command does where nobody takes what it says: exit code 2, because 0 and 1 are answers."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from cli_shell import FIXTURE

TRACE = ("trace", "stg_orders", "--project-dir", ".", "--target-path", str(FIXTURE))
COMMANDS = [TRACE, (*TRACE, "--format", "json"), ("--help",), ("gate", "--help"), ("--version",)]


def run(arguments: tuple[str, ...], redirect: str, folder: Path) -> tuple[int, str]:
    """The exit code of a command whose streams a shell redirects, and what stderr got."""
    command = f'"{sys.executable}" -m dbt_ripple "$@" {redirect}'
    done = subprocess.run(
        ["sh", "-c", command, "sh", *arguments],
        cwd=folder,
        env={**os.environ, "DBT_RIPPLE_CACHE_DIR": str(folder / "cache")},
        capture_output=True,
        text=True,
    )
    return done.returncode, done.stderr


@pytest.mark.parametrize("arguments", COMMANDS, ids=" ".join)
def test_a_full_disk_is_one_line(arguments: tuple[str, ...], tmp_path: Path) -> None:
    code, said = run(arguments, ">/dev/full", tmp_path)
    assert (code, said) == (
        2,
        "dbt-ripple: cannot write the answer: No space left on device\n",
    )


@pytest.mark.parametrize("arguments", COMMANDS, ids=" ".join)
def test_a_reader_that_has_gone_is_no_answer(arguments: tuple[str, ...], tmp_path: Path) -> None:
    gone, writing = os.pipe()
    os.close(gone)
    try:
        done = subprocess.run(
            [sys.executable, "-m", "dbt_ripple", *arguments],
            cwd=tmp_path,
            stdout=writing,
            stderr=subprocess.PIPE,
            text=True,
        )
    finally:
        os.close(writing)
    assert (done.returncode, done.stderr) == (2, "")


def test_a_closed_stdout_is_said(tmp_path: Path) -> None:
    assert run(TRACE, ">&-", tmp_path) == (
        2,
        "dbt-ripple: cannot write the answer: stdout is closed\n",
    )


@pytest.mark.parametrize("redirect", [">/dev/null 2>/dev/full", ">/dev/null 2>&-"])
def test_without_stderr_the_answer_counts(redirect: str, tmp_path: Path) -> None:
    assert run(TRACE, redirect, tmp_path)[0] == 0
    assert run(("trace", "no_such", *TRACE[2:]), redirect, tmp_path)[0] == 2
