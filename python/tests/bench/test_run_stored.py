"""What one load stores is measured and compared, for any commit."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).parents[3]


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "python/bench/run_stored.py", "--models", "12", *arguments]
    return subprocess.run(command, cwd=REPOSITORY, capture_output=True, text=True, check=False)


@pytest.mark.skipif(
    shutil.which("git") is None or not (REPOSITORY / ".git").exists(), reason="not a clone"
)
def test_every_table_is_compared_and_the_limit_decides() -> None:
    done = run("--against", "HEAD", "--limit", "-1000")
    assert done.returncode == 1, done.stderr
    lines = {line.split()[0]: line.split() for line in done.stdout.splitlines()[1:]}
    assert {"nodes", "columns", "column_edges", "total"} <= lines.keys()
    assert int(lines["columns"][1].replace(",", "")) > 0
    assert int(lines["columns"][3].replace(",", "")) > 0
