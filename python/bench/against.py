"""Times the commands of this checkout against those of an earlier commit, in turn, on the same files.

    python bench/against.py ba0865d [--models 1000] [--select-models 10000] [--repeat 3] [--most 1.05]

BENCHMARKS.md has ratios to a floor, and the floor moves with the machine and with what is installed.
Whether the code became slower is what this script answers: the commit is checked out and installed
into ``target/bench/commits``, with the versions that it pins, and each command runs once
for each of the two, one after the other, with a cache of its own. A ratio is the median, over the
turns, of this checkout's processor time (user and system, start and imports included) divided by
that of the commit. It ends with 1 where a ratio is above ``--most``.

* ``analyze``: without a cache, with an empty one, and where nothing has changed;
* ``select``: as in run_select.py, whose project it compiles by dbt where that has not been done;
* ``gate``: as in run_gate.py.
"""

from __future__ import annotations

import argparse
import shutil
import statistics
import subprocess
import sys
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Final, NamedTuple

sys.path.insert(0, str(Path(__file__).parent))

import run_gate
import run_select
from run import ROOT, WORK, compiled_once, project_folder, say
from run_select import timed

COMMITS: Final = WORK / "commits"


class Case(NamedTuple):
    """A command to time.

    Attributes:
        name: how the report calls it.
        arguments: those of `dbt-ripple`.
        cache: the name of its cache folder; cases of one name share it.
        before: what runs first and is not timed, with the same cache.
        emptied: whether the cache is emptied first.
    """

    name: str
    arguments: list[str]
    cache: str
    before: list[str] | None = None
    emptied: bool = False


def checked_out(commit: str) -> Path:
    """The folder `python` of a commit, in a folder of its own.

    Raises:
        LookupError: there is no such commit.
    """
    known = _run("git", "-C", str(ROOT), "rev-parse", "--verify", "--quiet", f"{commit}^{{commit}}")
    if known.returncode:
        raise LookupError(f"no commit {commit} in this repository")
    tree = COMMITS / known.stdout.strip()[:12]
    if not tree.exists():
        tree.mkdir(parents=True)
        archive = subprocess.run(
            ["git", "-C", str(ROOT), "archive", commit, "python"], capture_output=True, check=True
        ).stdout
        subprocess.run(["tar", "-x", "-C", str(tree)], input=archive, check=True)
    return tree / "python"


def installed(source: Path, environment: Path) -> Path:
    """The `dbt-ripple` of a folder `python`, in an environment that is made alike for both sides.

    Raises:
        SystemExit: it cannot be installed; says why.
    """
    python, stamp = environment / "bin" / "python", environment / "installed"
    pinned = (source / "constraints.txt").read_text() + (source / "pyproject.toml").read_text()
    if not stamp.exists() or stamp.read_text() != pinned:
        shutil.rmtree(environment, ignore_errors=True)
        uv = str(Path(sys.executable).with_name("uv"))
        install = [uv, "pip", "install", "--quiet", "--compile-bytecode", "--python", str(python)]
        for step in (
            [uv, "venv", "--quiet", "--python", sys.executable, str(environment)],
            [*install, "-c", str(source / "constraints.txt"), "-e", str(source)],
        ):
            done = _run(*step)
            if done.returncode:
                raise SystemExit(f"{source} cannot be installed: {done.stderr.strip()[-500:]}")
        stamp.write_text(pinned)
    # No side compiles its Python while it is timed.
    _run(str(python), "-m", "compileall", "-q", str(source / "dbt_ripple"))
    return environment / "bin" / "dbt-ripple"


def _run(*command: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command, capture_output=True, text=True, check=False)


def cases(models: int, select_models: int, gate_models: int) -> Iterator[Case]:
    """What is timed; a number of 0 leaves its cases out."""
    if models:
        target, _ = project_folder(str(models), "databricks", 0)
        analyze = ["analyze", "--format", "json", "--threads", "1", "--target-path", str(target)]
        name = f"analyze, {models:,} models"
        yield Case(f"{name}, no cache", [*analyze, "--no-cache"], "none")
        yield Case(f"{name}, empty cache", analyze, "analyze", emptied=True)
        yield Case(f"{name}, nothing changed", analyze, "analyze")
    if select_models:
        base, head, _ = run_select.prepare(select_models, compiled_once())
        state = ["--state", str(base / "target"), "--format", "json"]
        select = ["select", *state, "--project-dir", str(head)]
        same = ["select", *state, "--project-dir", str(base.with_name("same"))]
        name = f"select, {select_models:,} models"
        yield Case(f"{name}, empty cache", select, "select", emptied=True)
        yield Case(f"{name}, both sides analysed before", select, "select")
        facts = [*select, "--assume-passed"]
        yield Case(f"{name}, base's tests taken as passed", facts, "select")
        yield Case(f"{name}, head new", select, "head new", before=same, emptied=True)
    if gate_models:
        base, head, _ = run_gate.prepare(gate_models)
        sides = ["--state", str(base), "--project-dir", str(head), "--format", "json"]
        select = ["select", *sides]
        name = f"{gate_models:,} models, both sides analysed before"
        yield Case(f"select, {name}", select, "gate", before=select)
        yield Case(f"gate, {name}", ["gate", *sides], "gate", before=["gate", *sides])


def main() -> None:
    """The command line: ``python bench/against.py --help``."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("commit", help="what to compare with; any name that git knows")
    parser.add_argument("--models", type=int, default=1_000, help="for analyze  [1000]")
    parser.add_argument("--select-models", type=int, default=10_000, help="for select  [10000]")
    parser.add_argument("--gate-models", type=int, default=2_000, help="for gate  [2000]")
    parser.add_argument("--repeat", type=int, default=3, help="turns  [3]")
    parser.add_argument("--most", type=float, help="fail above this ratio")
    given = parser.parse_args()
    if given.repeat < 1:
        parser.error("--repeat is a number from 1")
    try:
        other = checked_out(given.commit)
    except LookupError as why:
        parser.error(str(why))
    commands = {
        "this": installed(ROOT / "python", COMMITS / "this"),
        given.commit: installed(other, other.parent / "environment"),
    }
    todo = list(cases(given.models, given.select_models, given.gate_models))
    took: dict[tuple[str, str], list[float]] = defaultdict(list)
    for turn in range(given.repeat):
        for case in todo:
            say(f"turn {turn + 1} of {given.repeat}: {case.name}")
            # Who goes first changes with the turn, as the second finds files in memory.
            for side in list(commands)[:: -1 if turn % 2 else 1]:
                cache = WORK / "against-cache" / side.replace("/", "-") / case.cache
                if case.emptied:
                    shutil.rmtree(cache, ignore_errors=True)
                env = {**compiled_once(), "DBT_RIPPLE_CACHE_DIR": str(cache)}
                for arguments in (case.before, case.arguments):
                    if arguments:
                        spent, _ = timed([str(commands[side]), *arguments], env, allowed=(0, 1))
                took[case.name, side].append(spent.cpu)
    print(f"|  | CPU s | {given.commit}: CPU s | ratio | least and most of {given.repeat} |")
    print("| --- | ---: | ---: | ---: | ---: |")
    worst = 0.0
    for case in todo:
        ours, theirs = took[case.name, "this"], took[case.name, given.commit]
        ratios = [a / b for a, b in zip(ours, theirs, strict=True)]
        ratio = statistics.median(ratios)
        worst = max(worst, ratio)
        print(
            f"| {case.name} | {statistics.median(ours):.2f} | {statistics.median(theirs):.2f} "
            f"| {ratio:.2f} | {min(ratios):.2f}, {max(ratios):.2f} |"
        )
    if given.most is not None and worst > given.most:
        raise SystemExit(f"a ratio is {worst:.2f}, above {given.most:g}")


if __name__ == "__main__":
    main()
