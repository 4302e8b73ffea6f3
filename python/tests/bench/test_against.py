"""`bench/against.py`: this checkout's commands against those of a commit, in turn."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

AGAINST = Path(__file__).resolve().parents[2] / "bench" / "against.py"


def against(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, str(AGAINST), *arguments], capture_output=True, text=True, check=False
    )


def test_a_commit_that_is_not_there_is_reported() -> None:
    done = against("nosuchcommit")
    assert done.returncode == 2
    assert "no commit nosuchcommit in this repository" in done.stderr


def test_no_turns_are_refused() -> None:
    done = against("HEAD", "--repeat", "0")
    assert done.returncode == 2
    assert "--repeat is a number from 1" in done.stderr


@pytest.mark.slow
def test_both_are_timed_and_a_limit_decides() -> None:
    small = ["--models", "20", "--select-models", "0", "--gate-models", "20", "--repeat", "1"]
    done = against("HEAD", *small, "--most", "0.001")
    assert done.returncode == 1, done.stderr
    rows = [line for line in done.stdout.splitlines() if " models" in line]
    assert [row.split(",")[0] for row in rows] == ["| analyze"] * 3 + ["| select", "| gate"]
    assert all(float(cell) > 0 for row in rows for cell in row.split("|")[2:5])
    assert re.search(r"a ratio is \d+\.\d\d, above 0.001", done.stderr)
