"""What reads SQL gives the same with each version of sqlglot that the package allows."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Final

import pytest

PYTHON_FOLDER: Final = Path(__file__).parents[2]
ALLOWED: Final = ("30.27.0", "30.29.0", "30.30.0")
"""The oldest, one between, and the newest."""


@pytest.mark.matrix
@pytest.mark.parametrize("version", ALLOWED)
def test_the_tests_of_flow_pass(version: str, tmp_path: Path) -> None:
    """In an environment where this version is found before the one that is installed."""
    uv = Path(sys.executable).with_name("uv")
    install = ["pip", "install", "--quiet", "--target", tmp_path, f"sqlglot[c]=={version}"]
    subprocess.run([uv, *install], check=True)
    environment = os.environ | {"PYTHONPATH": f"{tmp_path}{os.pathsep}{PYTHON_FOLDER}"}
    seen = [sys.executable, "-c", "import sqlglot; print(sqlglot.__version__)"]
    assert subprocess.check_output(seen, env=environment, text=True).strip() == version
    tests = ["tests/flow", "-q", "-n", "2", "-m", "not slow and not spark and not matrix"]
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", *tests],
        cwd=PYTHON_FOLDER,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-3000:]
