"""dbt-core 1.12, which `pip install dbt-core` gives: both sides of a change, compiled and judged by it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Final

import pytest

REPOSITORY: Final = Path(__file__).parents[3]
DBT: Final = "1.12.6"
UNDER_TEST: Final = (
    "test_base_ref.py",
    "test_parsed_head.py",
    "test_with_dbt.py",
    "test_run_tests.py",
)
COUNTS_NODES: Final = "test_after_a_parse_only_what_changed_is_compiled_built_and_tested"
"""Says how many nodes are not compiled where dbt has no profile, which 1.12 does not parse without, either."""


def environment(folder: Path) -> Path:
    """The Python of an environment with that dbt, DuckDB's adapter and this package.

    One part of dbt 1.12, an experimental parser, is built with a compiler that not every machine has.
    dbt does without it, so the others of its requirements are named here.
    """
    uv = str(Path(sys.executable).with_name("uv"))
    python = folder / "bin" / "python"
    install = [uv, "pip", "install", "--quiet", "--python", str(python)]
    beside = ("dbt-core~=1.11.0", "dbt-duckdb", "python-dotenv", "metricflow")
    tests = ("pytest", "hypothesis", "jsonschema", "duckdb")
    subprocess.run([uv, "venv", "--quiet", "--clear", str(folder)], check=True)
    subprocess.run([*install, "-e", str(REPOSITORY / "python"), *beside, *tests], check=True)
    subprocess.run([*install, "--no-deps", f"dbt-core=={DBT}"], check=True)
    return python


# It installs another dbt into an environment of its own.
@pytest.mark.matrix
def test_on_the_newest_dbt() -> None:
    python = environment(REPOSITORY / ".cache" / "dbt-1.12")
    asked = "from importlib.metadata import version; print(version('dbt-core'))"
    said = subprocess.run([python, "-c", asked], check=True, capture_output=True, text=True)
    assert said.stdout.strip() == DBT
    driver = [f"python/tests/driver/{name}" for name in UNDER_TEST]
    pytest_ = ["-m", "pytest", "-c", "python/pyproject.toml", "--rootdir", "python", "-q"]
    done = subprocess.run(
        [python, *pytest_, *driver, "-k", f"not {COUNTS_NODES}"],
        cwd=REPOSITORY,
        env={**os.environ, "PATH": f"{python.parent}{os.pathsep}{os.environ['PATH']}"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-4000:]
    assert " passed" in done.stdout
    assert "skipped" not in done.stdout
