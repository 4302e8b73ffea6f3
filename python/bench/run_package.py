"""What the dbt package costs: `dbt-ripple build`, and a plain `dbt build` beside one without the package.

    python python/bench/run_package.py [--rounds 5] [--project DIR] [--folder FOLDER] [--parts all]

A project twice, one of them without the package, on one embedded Spark in one
process, each in schemas of its own. First the project's own build and `dbt-ripple build`, then rounds in
turn, now the one first and now the other: `dbt build` with the package in the project and without it.
Seconds are wall time and, because other work on the machine is in that, the processor's time of this
process and of Spark's. What is judged are medians of pairs; the first round warms both up and is left out.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import shutil
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

REPOSITORY: Final = Path(__file__).parents[2]
SHOP: Final = REPOSITORY / "integration_tests"
SHARE: Final = 0.15
"""What a plain `dbt build` may take longer than without the package."""
_TICKS: Final = os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True)
class Taken:
    """What a command took."""

    wall: float
    processor: float
    nodes: float = 0.0
    """Of the package's nodes, summed over threads."""

    def __str__(self) -> str:
        return f"{self.wall:6.1f} s wall {self.processor:7.1f} s processor"


def processor_seconds() -> float:
    """Of this process and all that it has started and that still runs (Spark's Java)."""
    own = {os.getpid()}
    total = 0
    stats = {}
    for path in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            fields = path.read_text().rpartition(")")[2].split()
            stats[int(path.parent.name)] = int(fields[1]), int(fields[11]) + int(fields[12])
    waiting = [os.getpid()]
    while waiting:
        process = waiting.pop()
        total += stats[process][1] if process in stats else 0
        children = [child for child, (parent, _) in stats.items() if parent == process]
        waiting += [child for child in children if child not in own]
        own.update(children)
    ended = os.times()
    return total / _TICKS + ended.children_user + ended.children_system


def timed(work: Callable[[], Any]) -> Taken:
    started, before = time.perf_counter(), processor_seconds()
    with contextlib.redirect_stdout(sys.stderr):
        result = work()
    nodes = sum(
        run.execution_time
        for run in (getattr(result, "results", None) or ())
        if run.node.package_name == "dbt_ripple"
    )
    return Taken(time.perf_counter() - started, processor_seconds() - before, nodes)


class Side:
    """A copy of the project, with the package or without."""

    def __init__(
        self,
        project: Path,
        folder: Path,
        *,
        package: bool,
        parts: str = "all",
        again: bool = False,
    ) -> None:
        self.name = "with" if package else "without"
        self.folder = folder / self.name
        if again:
            return
        shutil.copytree(
            project, self.folder, ignore=shutil.ignore_patterns("target", "logs", "dbt_packages")
        )
        file = self.folder / "dbt_project.yml"
        file.write_text(file.read_text().replace("ripple_parts: all", f"ripple_parts: {parts}"))
        packages = f"packages:\n  - local: {REPOSITORY}\n" if package else "packages: []\n"
        (self.folder / "packages.yml").write_text(packages)
        (self.folder / "package-lock.yml").unlink(missing_ok=True)
        self.dbt("deps")

    def dbt(self, *arguments: str) -> Any:
        from dbt.cli.main import dbtRunner

        os.environ["RIPPLE_SCHEMA"] = f"shop_{self.name}"
        os.chdir(self.folder)
        done = dbtRunner().invoke([*arguments, "--project-dir", str(self.folder)])
        if not done.success:
            sys.exit(f"dbt {arguments[0]} {self.name} the package: {done.exception or 'it failed'}")
        return done.result

    def lineage(self) -> None:
        from dbt_ripple.cli.build import build

        os.environ["RIPPLE_SCHEMA"] = f"shop_{self.name}"
        os.chdir(self.folder)
        build.main(["--project-dir", str(self.folder)], standalone_mode=False)


def shares(taken: Taken, own: Taken) -> str:
    """What part of the project's own build it takes."""
    wall, processor = taken.wall / own.wall, taken.processor / own.processor
    return f"   {wall:.2f} of the project's own, {processor:.2f} of its processor"


def say(what: str, taken: Taken, more: str = "") -> None:
    print(f"{what:<44} {taken}{more}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=5, help="pairs that count; default 5")
    parser.add_argument(
        "--project",
        type=Path,
        default=SHOP,
        help="by default the shop of integration_tests; on Spark by `method: session`, its schema"
        " from the variable RIPPLE_SCHEMA, without other packages",
    )
    parser.add_argument("--folder", type=Path, help="kept; by default a temporary one")
    parser.add_argument("--parts", default="[]", help="what ripple_parts says; by default nothing")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        folder = (options.folder or Path(temporary)).resolve()
        measure(options.project.resolve(), folder, options.rounds, options.parts)


def measure(project: Path, folder: Path, rounds: int, parts: str) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    os.environ.update(
        DBT_QUIET="true",
        DBT_SEND_ANONYMOUS_USAGE_STATS="false",
        DBT_PROFILES_DIR=str(project),
        RIPPLE_FILE_FORMAT="parquet",
    )
    from dbt_ripple.spark.session import get_session, local_environment

    local_environment(folder / "spark", short_lived=True)
    os.chdir(folder)
    with contextlib.redirect_stdout(sys.stderr):
        session = get_session()
        ours = Side(project, folder, package=True, parts=parts)
        plain = Side(project, folder, package=False)
    own = timed(lambda: ours.dbt("build", "--exclude", "package:dbt_ripple"))
    say("the project's own dbt build, Spark cold", own)
    for which in ("dbt-ripple build", "dbt-ripple build again"):
        taken = timed(ours.lineage)
        say(which, taken, shares(taken, own))
    tests = timed(lambda: ours.dbt("test", "--select", "package:dbt_ripple"))
    say("the package's own tests", tests, shares(tests, own))
    pairs = []
    for number in range(rounds + 1):
        sides = [ours, plain] if number % 2 else [plain, ours]
        taken = {side.name: timed(lambda side=side: side.dbt("build")) for side in sides}
        for name in sorted(taken):
            counted = "" if number else ", left out"
            say(f"round {number}: dbt build {name} the package{counted}", taken[name])
        if number:
            pairs.append((taken["with"], taken["without"]))
    session.stop()
    for of, ratio in (
        ("wall", [one.wall / two.wall for one, two in pairs]),
        ("processor", [one.processor / two.processor for one, two in pairs]),
    ):
        more = statistics.median(ratio) - 1
        spread = f"{min(ratio) - 1:+.1%} to {max(ratio) - 1:+.1%}"
        message = f"at most {SHARE:.0%}" if more <= SHARE else f"OVER {SHARE:.0%}"
        print(f"dbt build with the package, {of}: {more:+.1%} ({spread}; {message})")
    nodes = statistics.median(one.nodes for one, _ in pairs)
    print(f"in the package's nodes, summed over threads: {nodes:.1f} s")


if __name__ == "__main__":
    main()
