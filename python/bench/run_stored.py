"""How much one load stores, table by table, and by how much that grew since another commit.

    python bench/run_stored.py [--models 1000] [--against REF] [--limit 33]

The rows that `dbt-ripple load` writes for the made-up project of generate.py, as Parquet files with
Spark's default compression, one file a table as a load makes them. ``--against`` takes the code of
another commit out of git, lets it load the same artifacts, and compares. Nothing is recorded.
"""

from __future__ import annotations

import argparse
import inspect
import io
import json
import os
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

REPOSITORY = Path(__file__).parents[2]


def stored(target: Path) -> dict[str, int]:
    """Bytes of each table that a load of some artifacts writes, by the code that is imported."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    from dbt_ripple.artifacts import read_project
    from dbt_ripple.graph.analyse_project import analyse
    from dbt_ripple.graph.lineage_rows import build_rows
    from dbt_ripple.spark.load import arrow_table

    project = read_project(target)
    # Commits before own fingerprints do not know of them.
    asked = {"expressions", "own"} & inspect.signature(analyse).parameters.keys()
    snapshot = build_rows(project, analyse(project, **dict.fromkeys(asked, True)))  # type: ignore[arg-type]
    sizes = {}
    for table, rows in snapshot.rows.items():
        file = io.BytesIO()
        events: pa.Table = arrow_table(table, rows)
        # The partition's name says it, once for all rows.
        kept = events.drop_columns(["snapshot_id"]) if table != "snapshots" else events
        pq.write_table(kept, file, compression="snappy")
        sizes[table] = file.getbuffer().nbytes
    return sizes


def stored_by(code: Path, target: Path) -> dict[str, int]:
    """The same by the package in another folder."""
    call = [sys.executable, __file__, "--only", str(target)]
    done = subprocess.run(
        call,
        env={**os.environ, "PYTHONPATH": str(code)},
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    sizes: dict[str, int] = json.loads(done.stdout)
    return sizes


def code_of(ref: str, folder: Path) -> Path:
    """The package as a commit has it."""
    archive = subprocess.run(
        ["git", "-C", str(REPOSITORY), "archive", ref, "python/dbt_ripple"],
        stdout=subprocess.PIPE,
        check=True,
    )
    with tarfile.open(fileobj=io.BytesIO(archive.stdout)) as files:
        files.extractall(folder, filter="data")
    return folder / "python"


def main() -> int:
    """The command line: ``python bench/run_stored.py --help``."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--models", type=int, default=1000)
    parser.add_argument("--against", metavar="REF", help="a commit to compare with")
    parser.add_argument("--limit", type=float, help="exit with 1 where it grew by more percent")
    parser.add_argument("--only", type=Path, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.only:
        print(json.dumps(stored(given.only)))
        return 0
    from generate import generate

    with tempfile.TemporaryDirectory(prefix="dbt-ripple-") as name:
        folder = Path(name)
        generate(folder / "target", given.models)
        now = stored_by(REPOSITORY / "python", folder / "target")
        then: dict[str, int] = {}
        if given.against:
            then = stored_by(code_of(given.against, folder / "code"), folder / "target")
    print(f"{given.models:,} models, one load, in KB" + (f"; before: {given.against}" * bool(then)))
    for table in [*now, "total"]:
        here = sum(now.values()) if table == "total" else now[table]
        line = f"  {table:<14} {here / 1024:>10,.0f}"
        if then:
            there = sum(then.values()) if table == "total" else then.get(table, 0)
            line += f"  before {there / 1024:>10,.0f}"
            line += f"  {here / there - 1:>+7.1%}" if there else "      new"
        print(line)
    grown = sum(now.values()) / sum(then.values()) - 1 if then else 0.0
    return int(given.limit is not None and grown * 100 > given.limit)


if __name__ == "__main__":
    sys.exit(main())
