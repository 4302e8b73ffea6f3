"""What a load takes by each way to Spark: a session, Spark Connect, Thrift, and Thrift with a stage.

    python python/bench/run_load.py [--models 1000 10000] [--repeat 3] [--folder FOLDER] [--write]

The rows are those of a made-up project (generate.py), analysed once. Each load has a Spark of its own, with 2 GB and
cold: an embedded one for the session, a server for the others; and it makes its tables. Seconds are those of the load alone, as `load` says them (prepare and write), without the
start of Python and of Spark; ways take turns, and the medians are shown. Connect's client has to be
installed (`pip install "pyspark[connect]"`). ``--write`` puts the table into BENCHMARKS.md.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import pickle
import re
import statistics
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

BENCH: Final = Path(__file__).parent
PAGE: Final = BENCH.parents[1] / "BENCHMARKS.md"
TESTS: Final = BENCH.parent / "tests"
WAYS: Final = ("session", "Connect", "Thrift", "Thrift with a stage")
_BEGIN: Final = "<!-- written by `python python/bench/run_load.py --write` -->"
_END: Final = "<!-- end of loads -->"

sys.path[:0] = [str(BENCH), str(TESTS)]


def one(way: str, snapshot: Path, schema: str, folder: Path, port: int, connect: str) -> None:
    """Load once, in this process; prints what it took as JSON."""
    from thrift_server import ThriftServer, profile

    from dbt_ripple.dbt_runner.invoke import DbtOptions
    from dbt_ripple.dbt_runner.profile import adapter_of
    from dbt_ripple.spark.load import Destination, load
    from dbt_ripple.spark.server import AdapterServer, SessionServer
    from dbt_ripple.spark.session import get_session, local_environment
    from dbt_ripple.spark.stage import Stage

    rows = pickle.loads(snapshot.read_bytes())
    server: Any
    if way == "session":
        local_environment(folder / "session")
        server = Counting(SessionServer(get_session()))
    elif way == "Connect":
        server = Counting(SessionServer(get_session(remote=connect)))
    else:
        (folder / "dbt_project.yml").write_text("name: shop\nprofile: shop\n")
        (folder / "profiles.yml").write_text(profile(ThriftServer(port, None, folder), "any"))
        adapter = adapter_of(folder, DbtOptions(profiles_dir=folder))
        stage = Stage(str(folder / "stage"), adapter) if way.endswith("stage") else None
        server = AdapterServer(adapter, stage)
        server.rows("select 1 as one")
        server.statements = 0
    loaded = load(server, rows, Destination((schema,)))
    print(json.dumps({"seconds": loaded.seconds, "statements": server.statements}))
    if way.startswith("Thrift"):
        server.close()


class Counting:
    """A server that counts its statements and queries."""

    def __init__(self, server: Any) -> None:
        self._server = server
        self.statements = 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self._server, name)

    def execute(self, statement: str) -> None:
        self.statements += 1
        self._server.execute(statement)

    def rows(self, query: str) -> Any:
        self.statements += 1
        return self._server.rows(query)


def analysed(models: int, folder: Path) -> tuple[Path, int]:
    """The rows of a made-up project, in a file, and how many there are."""
    from dbt_ripple.artifacts import read_project
    from dbt_ripple.graph.analyse_project import analyse
    from dbt_ripple.graph.lineage_rows import build_rows

    path = folder / f"{models}.pickle"
    if not path.exists():
        made = folder / f"project_{models}"
        arguments = ["--models", str(models), "--adapter", "spark", str(made)]
        subprocess.run([sys.executable, str(BENCH / "generate.py"), *arguments], check=True)
        project = read_project(made)
        snapshot = build_rows(project, analyse(project, expressions=True, own=True))
        path.write_bytes(pickle.dumps(snapshot))
    rows = pickle.loads(path.read_bytes()).rows
    return path, sum(map(len, rows.values()))


def measure(models: int, repeat: int, folder: Path) -> list[str]:
    """The lines of the table for one size."""
    from thrift_server import thrift_server

    snapshot, count = analysed(models, folder)
    seconds: dict[str, list[float]] = defaultdict(list)
    statements: dict[str, int] = {}
    started = f"{time.time():.0f}"
    for turn in range(repeat):
        for way in WAYS:
            there = folder / f"server_{models}_{turn}_{WAYS.index(way)}_{started}"
            with contextlib.ExitStack() as stack:
                where = ["0", ""]
                if way != "session":
                    connect = way == "Connect"
                    running = thrift_server(there, connect=connect, short_lived=False)
                    server = stack.enter_context(running)
                    where = [str(server.port), str(server.connect)]
                done = subprocess.run(
                    [
                        sys.executable,
                        __file__,
                        "--one",
                        way,
                        str(snapshot),
                        there.name,
                        str(folder),
                        *where,
                    ],
                    stdout=subprocess.PIPE,
                    text=True,
                    env={k: v for k, v in os.environ.items() if k != "SPARK_REMOTE"},
                    check=True,
                )
            said = json.loads(done.stdout.splitlines()[-1])
            taken = sum(said["seconds"].values())
            seconds[way].append(taken)
            statements[way] = said["statements"]
            print(f"{models} {way}: {taken:.1f} s, {said}", flush=True)
    session = statistics.median(seconds["session"])
    return [
        f"| {models:,} | {count:,} | {way} | {statistics.median(seconds[way]):.1f} |"
        f" {min(seconds[way]):.1f} to {max(seconds[way]):.1f} | {statistics.median(seconds[way]) / session:.1f} |"
        f" {statements[way]} |"
        for way in WAYS
    ]


def main() -> None:
    if sys.argv[1:2] == ["--one"]:
        way, snapshot, schema, folder, port, connect = sys.argv[2:]
        one(way, Path(snapshot), schema, Path(folder), int(port), connect)
        return
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--models", type=int, nargs="+", default=[1000, 10000])
    parser.add_argument("--repeat", type=int, default=3, help="turns; default 3")
    parser.add_argument("--folder", type=Path, help="kept; by default a temporary one")
    parser.add_argument("--write", action="store_true", help="put the table into BENCHMARKS.md")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        folder = (options.folder or Path(temporary)).resolve()
        folder.mkdir(parents=True, exist_ok=True)
        lines = [
            line for models in options.models for line in measure(models, options.repeat, folder)
        ]
    when = datetime.now(UTC).strftime("%Y-%m-%d")
    turns = "one turn" if options.repeat == 1 else f"median of {options.repeat} turns"
    load_average = os.getloadavg()[2]
    table = "\n".join(
        [
            f"{turns.capitalize()}, {when}, {os.cpu_count()} cores (load {load_average:.1f} with other work on the machine).",
            "",
            "| models | rows | way | seconds | from, to | of the session's | statements |",
            "| ---: | ---: | --- | ---: | ---: | ---: | ---: |",
            *lines,
        ]
    )
    print(table)
    if options.write:
        text = PAGE.read_text()
        pattern = re.compile(re.escape(_BEGIN) + r".*?" + re.escape(_END), re.DOTALL)
        if not pattern.search(text):
            sys.exit(f"BENCHMARKS.md has no place for it: {_BEGIN} ... {_END}")
        new = f"{_BEGIN}\n\n{table}\n\n{_END}"
        PAGE.write_text(pattern.sub(lambda _: new, text))


if __name__ == "__main__":
    main()
