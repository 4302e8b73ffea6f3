"""How long the questions of `analyses/` take, on a Spark whose driver has 1 GB.

    python python/bench/run_questions.py [--project DIR] [--nodes NAME.COLUMN ...] [--folder FOLDER] [--vars YAML]

A project is built with the package and loaded; then each question about each of the columns is compiled by dbt and
asked of Spark. Printed are the seconds of dbt's compile, of the query and how many rows it has. It exits with 1
where a query takes more than three seconds: the second answer counts, because Spark compiles Java for the first.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import sys
import tempfile
import time
from pathlib import Path
from typing import Any, Final

MEMORY: Final = "1g"
os.environ.setdefault("PYSPARK_SUBMIT_ARGS", f"--driver-memory {MEMORY} pyspark-shell")

from run_package import SHOP, Side  # noqa: E402

LIMIT: Final = 3.0
QUESTIONS: Final = Path(__file__).parents[2] / "analyses"
COLUMNS: Final = ("stg_orders.order_total", "raw_orders.order_total", "revenue_daily.total_usd")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--project", type=Path, default=SHOP)
    parser.add_argument("--nodes", nargs="+", default=COLUMNS, help="what is asked about")
    parser.add_argument("--only", nargs="+", default=(), help="these questions only")
    parser.add_argument("--folder", type=Path, help="kept; by default a temporary one")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        folder = (options.folder or Path(temporary)).resolve()
        slow = measure(options.project.resolve(), folder, options.nodes, options.only)
    sys.exit(1 if slow else 0)


def measure(project: Path, folder: Path, nodes: list[str], only: list[str]) -> list[str]:
    """The questions that took too long."""
    os.environ.update(
        DBT_QUIET="true",
        DBT_SEND_ANONYMOUS_USAGE_STATS="false",
        DBT_PROFILES_DIR=str(project),
        RIPPLE_FILE_FORMAT="parquet",
    )
    from dbt_ripple.spark.session import get_session, local_environment

    built = (folder / "built").exists()
    folder.mkdir(parents=True, exist_ok=True)
    local_environment(folder / "spark", short_lived=True)
    os.chdir(folder)
    with contextlib.redirect_stdout(sys.stderr):
        session = get_session()
        side = Side(project, folder, package=True, again=built)
        if not built:
            side.dbt("build", "--exclude", "package:dbt_ripple")
            side.lineage()
            (folder / "built").touch()
    edges = session.sql(f"select count(*) from {raw_schema(side.folder)}.column_edges").first()[0]
    print(f"{edges} edges between columns, {MEMORY} of memory")
    slow: list[str] = []
    for path in sorted(QUESTIONS.rglob("*.sql")):
        if only and path.stem not in only:
            continue
        for node in nodes:
            slow += asked(session, side, path.stem, *node.split("."))
            if "ripple_node" not in path.read_text() and "ripple_" not in path.read_text():
                break
    session.stop()
    return slow


def raw_schema(folder: Path) -> str:
    manifest = json.loads((folder / "target" / "manifest.json").read_text())
    return str(manifest["sources"]["source.dbt_ripple.ripple_raw.nodes"]["schema"])


def asked(session: Any, side: Side, question: str, node: str, column: str) -> list[str]:
    """The question, if it took too long."""
    variables = json.dumps({"ripple_node": node, "ripple_column": column})
    begun = time.perf_counter()
    with contextlib.redirect_stdout(sys.stderr):
        side.dbt("compile", "--select", question, "--vars", variables)
    compiled = time.perf_counter() - begun
    (path,) = (side.folder / "target" / "compiled").rglob(f"{question}.sql")
    taken = []
    for _ in range(2):
        begun = time.perf_counter()
        rows = session.sql(path.read_text()).collect()
        taken.append(time.perf_counter() - begun)
    first, second = taken
    of = f"{question} of {node}.{column}"
    late = "" if second <= LIMIT else f"   OVER {LIMIT:.0f} s"
    print(
        f"{of:<58} compile {compiled:4.1f} s, query {first:5.1f} s, again {second:5.1f} s,"
        f" {len(rows):4} rows{late}",
        flush=True,
    )
    return [of] if late else []


if __name__ == "__main__":
    main()
