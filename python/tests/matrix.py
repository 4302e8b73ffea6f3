"""Run the tests that need an environment or a table format of their own, and write down how they went.

``python tests/matrix.py`` runs what is marked ``matrix`` and writes docs/matrix.md: each scenario, why
it is no part of `make test`, how it went, and with which versions.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import xml.etree.ElementTree as ElementTree
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Final

REPOSITORY: Final = Path(__file__).parents[2]
PAGE: Final = REPOSITORY / "docs" / "matrix.md"
VERSIONS: Final = ("dbt-core", "dbt-spark", "pyspark", "sqlglot")

_BEGINNING: Final = """# Which versions and table formats were tested?

`make test` tests the versions that are pinned in `python/constraints.txt`, on parquet tables. `make matrix` tests
what needs another environment, another table format or another program, and writes this page. Run it before a release
and after a change of what is written to Spark or read of events.

Airflow, PostgreSQL, Kafka and openlineage-spark run on this machine, in environments of their own below `.cache/producers`,
which the tests make. PostgreSQL's server (`apt-get install postgresql-15`), Maven and Java have to be there; without them
a test is skipped, and says so. Marquez is compiled by Maven from the source that `MARQUEZ_SOURCE` names (a clone of its tag 0.51.1): no
registry has its server.
"""


def page(results: list[tuple[str, str, float]], when: str, commit: str, versions: str) -> str:
    """The page: what ran, when and how it went."""
    rows = [f"| `{name}` | {outcome} | {seconds:.0f} |" for name, outcome, seconds in results]
    last_run = f"The last run: {when}, commit `{commit}`, {versions}."
    return "\n".join(
        [_BEGINNING, last_run, "", "| test | result | seconds |", "|---|---|---|", *rows, ""]
    )


def read(report: Path) -> list[tuple[str, str, float]]:
    """Name, outcome and seconds of each test of a JUnit report."""
    results = []
    for case in ElementTree.parse(report).iter("testcase"):
        worse = [child.tag for child in case if child.tag in ("failure", "error", "skipped")]
        file = case.get("classname", "").replace("tests.", "")
        name = f"{file}.{case.get('name')}"
        results.append((name, worse[0] if worse else "passed", float(case.get("time", 0))))
    return results


def main() -> int:
    """Run the tests and write the page."""
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "report.xml"
        done = subprocess.run(
            [
                *(sys.executable, "-m", "pytest", "-c", "python/pyproject.toml"),
                *("--rootdir", "python", "python/tests", "-q", "-m", "matrix", "--durations=15"),
                f"--junitxml={report}",
            ],
            cwd=REPOSITORY,
            check=False,
        )
        commit = subprocess.run(
            ["git", "rev-parse", "--short", "HEAD"], cwd=REPOSITORY, capture_output=True, text=True
        ).stdout.strip()
        versions = ", ".join(f"{name} {version(name)}" for name in VERSIONS)
        when = datetime.now(UTC).strftime("%Y-%m-%d")
        if report.exists():
            PAGE.write_text(page(read(report), when, commit, versions), encoding="utf-8")
    return done.returncode


if __name__ == "__main__":
    sys.exit(main())
