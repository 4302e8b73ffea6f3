"""Write the TPC-H and TPC-DS queries and schemas to a cache folder that is not part of the project.

    python tests/oracle/make_tpc.py

The queries come from the generators inside one release of the duckdb wheel (later ones do not
carry them), which gets an environment of its own. Their text is not ours, so it is never committed:
`tpch.json` and `tpcds.json` hold ``{"tables": {table: [[column, duckdb type], ...]},
"queries": {"01": sql, ...}}`` in the cache folder, which git ignores.
"""

from __future__ import annotations

import json
import subprocess
import sys
import venv
from pathlib import Path
from typing import Any, Final

DUCKDB: Final = "duckdb==1.1.3"
CACHE: Final = Path(__file__).parents[3] / ".cache" / "tpc"

# Runs inside the environment that has duckdb: the schema of both benchmarks, without data.
_EXPORT: Final = """
import json, sys
import duckdb
for name, generate in (("tpch", "dbgen"), ("tpcds", "dsdgen")):
    connection = duckdb.connect()
    connection.execute(f"load {name}")
    connection.execute(f"call {generate}(sf=0)")
    tables = {}
    for table, column, kind in connection.execute(
        "select table_name, column_name, data_type from duckdb_columns() where not internal "
        "order by table_name, column_index"
    ).fetchall():
        tables.setdefault(table, []).append((column, kind))
    queries = {f"{n:02}": sql for n, sql in connection.execute(f"from {name}_queries()").fetchall()}
    with open(f"{sys.argv[1]}/{name}.json", "w") as out:
        json.dump({"tables": tables, "queries": queries}, out, indent=1)
"""


def make(folder: Path = CACHE) -> None:
    """Install the pinned wheel in an environment of its own and export both benchmarks.

    Args:
        folder: where the environment and the two files go; made when missing.

    Raises:
        subprocess.CalledProcessError: the wheel could not be installed, or does not load.
    """
    folder.mkdir(parents=True, exist_ok=True)
    python = folder / "venv" / ("Scripts" if sys.platform == "win32" else "bin") / "python"
    if not python.exists():
        venv.create(folder / "venv", with_pip=True)
    subprocess.run(
        [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", DUCKDB],
        check=True,
    )
    subprocess.run([python, "-c", _EXPORT, str(folder)], check=True)


def load(name: str, folder: Path = CACHE) -> dict[str, Any] | None:
    """The tables and queries of ``tpch`` or ``tpcds``, or None where they were not made yet."""
    path = folder / f"{name}.json"
    return json.loads(path.read_text()) if path.exists() else None


if __name__ == "__main__":
    make()
    for benchmark in ("tpch", "tpcds"):
        made = load(benchmark)
        assert made is not None
        print(f"{benchmark}: {len(made['tables'])} tables, {len(made['queries'])} queries")
