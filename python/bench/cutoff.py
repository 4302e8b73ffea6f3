"""The whole CI step on the tea shop, with `--cutoff` and without: what is built, run, and how long.

    python python/bench/cutoff.py [--work DIR]

Base is built by dbt on DuckDB into one schema; each edit is made in a copy of project and warehouse,
and `dbt-ripple select --state ... --run` builds and tests it in another schema, as CI does. Wall
time is that of the command, from its start to its end.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any, Final, NamedTuple

REPOSITORY: Final = Path(__file__).parents[2]
_COMMAND: Final = "import sys; from dbt_ripple.cli import main; sys.exit(main())"
_DBT: Final = "import sys; from dbt.cli.main import cli; sys.exit(cli())"
_LEFT_BEHIND: Final = (
    *("target", "logs", "dbt_packages", "packages.yml", "package-lock.yml", "empty", "expected"),
)


class Edit(NamedTuple):
    """One change a pull request could make."""

    what: str
    file: str
    old: str
    new: str


EDITS: Final = (
    Edit(
        "the same in other words",
        "models/staging/stg_orders.sql",
        "upper(trim(orders.currency))",
        "trim(upper(orders.currency))",
    ),
    Edit(
        "a case no order is",
        "models/staging/stg_orders.sql",
        "coalesce(status_mapping.status, 'unknown')",
        "coalesce(case when orders.status = 'lost at sea' then 'cancelled' else status_mapping.status end, 'unknown')",
    ),
    Edit(
        "a filter that leaves all rows",
        "models/staging/stg_order_items.sql",
        "items.qty > 0",
        "items.qty > 0 and items.unit_price >= 0",
    ),
    Edit(
        "one value in many",
        "models/staging/stg_orders.sql",
        "coalesce(status_mapping.is_final, false)",
        "coalesce(status_mapping.is_final, orders.order_id % 50 = 0)",
    ),
    Edit(
        "other amounts",
        "models/staging/stg_order_items.sql",
        "(1 - coalesce(items.discount_pct, 0))",
        "(1 - coalesce(items.discount_pct, 0) / 2)",
    ),
)  # fmt: skip


class Ran(NamedTuple):
    """What one step did."""

    seconds: float
    models: int
    tests: int
    code: int


def main() -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument(
        "--work", type=Path, help="where it is built  [default: a temporary folder]"
    )
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="cutoff") as temporary:
        work = given.work or Path(temporary)
        base = work / "base"
        shutil.copytree(
            REPOSITORY / "integration_tests",
            base / "project",
            ignore=shutil.ignore_patterns(*_LEFT_BEHIND),
        )
        print("building base ...", file=sys.stderr, flush=True)
        run(base, "shop", _DBT, "build")
        shutil.copytree(base / "target", base / "state")
        head = f"{'edit':32} {'step':10} {'seconds':>8} {'models':>7} {'tests':>6} {'exit':>5}"
        print(head)
        total = {"--run": 0.0, "--cutoff": 0.0}
        for number, edit in enumerate(EDITS):
            for step, more in (("--run", ()), ("--cutoff", ("--cutoff",))):
                folder = work / f"{number}{step}"
                shutil.copytree(base, folder)
                file = folder / "project" / edit.file
                text = file.read_text()
                if edit.old not in text:
                    raise SystemExit(f"{edit.file} does not hold {edit.old!r}")
                file.write_text(text.replace(edit.old, edit.new))
                ran = measured(folder, *more)
                total[step] += ran.seconds
                print(
                    f"{edit.what:32} {step:10} {ran.seconds:8.1f} {ran.models:7} {ran.tests:6} {ran.code:5}",
                    flush=True,
                )
                shutil.rmtree(folder)
        print(f"all: {total['--run']:.1f} s without --cutoff, {total['--cutoff']:.1f} s with it")
    return 0


def measured(folder: Path, *more: str) -> Ran:
    """One CI step: what it took, and what dbt ran of it."""
    run(folder, "ci", _DBT, "parse")
    start = time.perf_counter()
    code = run(
        folder,
        "ci",
        _COMMAND,
        *("select", "--state", str(folder / "state"), "--run", "--format", "json", *more),
        check=False,
    )
    seconds = time.perf_counter() - start
    document: dict[str, Any] = json.loads((folder / "target" / "run_results.json").read_text())
    kinds = [
        result["unique_id"].split(".")[0]
        for result in document["results"]
        if result["status"] != "skipped"
    ]
    tests = sum(kind in ("test", "unit_test") for kind in kinds)
    return Ran(seconds, sum(kind in ("model", "seed", "snapshot") for kind in kinds), tests, code)


def run(folder: Path, schema: str, program: str, *command: str, check: bool = True) -> int:
    """Run dbt or dbt-ripple on a copy of the shop."""
    project = folder / "project"
    environment = {
        **os.environ,
        "DBT_PROFILES_DIR": str(project),
        "DBT_TARGET_PATH": str(folder / "target"),
        "DBT_LOG_PATH": str(folder / "logs"),
        "DBT_SEND_ANONYMOUS_USAGE_STATS": "false",
        "DBT_TARGET": "duckdb",
        "RIPPLE_DUCKDB_PATH": str(folder / "tea.duckdb"),
        "RIPPLE_SCHEMA": schema,
        "DBT_RIPPLE_CACHE_DIR": str(folder / "cache"),
    }
    done = subprocess.run(
        [sys.executable, "-c", program, *command, "--project-dir", str(project)],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    if check and done.returncode:
        raise SystemExit(f"{command[0]} failed:\n{done.stdout}\n{done.stderr}")
    (folder / f"{command[0]}.out").write_text(done.stdout + done.stderr)
    return done.returncode


if __name__ == "__main__":
    sys.exit(main())
