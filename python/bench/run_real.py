"""Times dbt_ripple on public dbt projects against sqlglot alone and against dbt, in turn.

    python bench/run_real.py [CLONES] [--projects tuva,jaffle-shop] [--repeat 3] [--write]

CLONES is a folder of git repositories (``owner/name``, ``owner+name`` or ``name``, bare or not). The
projects of real_projects.py whose repositories are in it are put up below ``target/bench/real`` and
compiled by dbt; the others are named and left out. Our shop needs none. Then, in turn, for each project:

* ``floor``: load, tokenise and parse the models' SQL by sqlglot, macros and hooks by jinja2;
* ``analysis``: what ``dbt-ripple analyze --no-cache`` does, in one process;
* ``dbt ls``: ``dbt -q ls --select state:modified+ --state``, its partial parse warm;
* ``select``: ``dbt-ripple select --state``, base and head analysed before;
* ``compile``: ``dbt compile`` with nothing parsed before, twice;
* ``first``: ``dbt-ripple select --base-ref HEAD``, nothing in the cache and nothing parsed;
* ``again``: the same once more.

Ratios are of CPU seconds, those of started processes included: see `run.real_ratios`. What is measured goes to ``bench/results``; ``--write`` renders all that is there into
BENCHMARKS.md, as ``run.py --write`` does. ``--check`` ends with 1 if a ratio is above its limit.
"""

from __future__ import annotations

import argparse
import json
import re
import shutil
import sys
from collections import defaultdict
from dataclasses import asdict
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))

from real_projects import PROJECTS, PutUpError, RealProject, environment, missing, put_up
from run import (
    LONG,
    RESULTS,
    ROOT,
    WORK,
    Run,
    TooSlowError,
    machine,
    measure,
    page,
    python_of,
    real_report,
    run_runner,
    say,
    too_slow,
    write_page,
)


def counts(target: Path) -> dict[str, int]:
    """How large a compiled project is: models, tests, seeds, macros, hooks (of nodes and of runs)."""
    manifest = json.loads((target / "manifest.json").read_bytes())
    nodes = manifest["nodes"].values()
    kinds = [node["resource_type"] for node in nodes]
    hooks = sum(
        len(n["config"].get(f"{when}-hook") or ()) for n in nodes for when in ("pre", "post")
    )
    return {
        "models": kinds.count("model"),
        "tests": kinds.count("test") + len(manifest.get("unit_tests", ())),
        "seeds": kinds.count("seed"),
        "macros": len(manifest["macros"]),
        "hooks": hooks + kinds.count("operation"),
    }


def bench(project: RealProject, folder: Path, python: str, repeat: int, timeout: float) -> Any:
    """Measure one project that is put up; a step that fails or takes too long says so.

    Args:
        folder: the dbt project's, as `put_up` returns it.
        python: the interpreter of the environment with dbt and the project's adapter.
        repeat: turns; what takes longer than `LONG` seconds runs in the first only.
        timeout: seconds after which one run is ended.

    Returns:
        What results/ keeps of it.
    """
    scratch = WORK / "real-cache" / re.sub(r"\W+", "-", project.name)
    target = folder / "target"
    for stale in (scratch, target / "ls"):
        shutil.rmtree(stale, ignore_errors=True)
    shutil.copytree(
        target / "head", target / "ls"
    )  # `dbt ls` overwrites the manifest that it finds
    env = {**environment(project), "XDG_CACHE_HOME": str(scratch / "state")}
    by_ref = {**env, "XDG_CACHE_HOME": str(scratch / "ref")}
    dbt = [str(Path(python).with_name("dbt")), "--quiet"]
    state = ["--state", "target/base", "--target-path"]
    listing = [*dbt, "ls", "--select", "state:modified+", *state, "target/ls"]
    ripple = [python, "-m", "dbt_ripple", "select", "--format", "json"]
    answers: dict[str, dict[str, int]] = {}

    def command(line: list[str], where: dict[str, str]) -> tuple[Run, str]:
        return measure(line, timeout, where, cwd=folder)

    def two_compiles() -> Run:
        took = []
        for _ in range(2):
            shutil.rmtree(target / "new", ignore_errors=True)
            took.append(command([*dbt, "compile", "--target-path", "target/new"], env)[0])
        wall, cpu = sum(run.wall for run in took), sum(run.cpu for run in took)
        return Run(wall, cpu, max(run.peak_mb for run in took), cpu, wall)

    def select(*arguments: str, where: dict[str, str]) -> Run:
        run, printed = command([*ripple, *arguments], where)
        answers[arguments[0]] = json.loads(printed)["counts"]
        return run

    def first() -> Run:
        shutil.rmtree(scratch / "ref", ignore_errors=True)
        return select("--base-ref", "HEAD", where=by_ref)

    steps = {
        "floor": lambda: run_runner(sys.executable, "run_floor.py", target / "head", timeout),
        "analysis": lambda: run_runner(sys.executable, "run_ripple.py", target / "head", timeout),
        "dbt ls": lambda: command(listing, env)[0],
        "select": lambda: select(*state, "target/head", where=env),
        "compile": two_compiles,
        "first": first,
        "again": lambda: select("--base-ref", "HEAD", where=by_ref),
    }
    runs: dict[str, list[Run]] = defaultdict(list)
    failures: dict[str, str] = {}
    for turn in range(repeat):
        for name, step in steps.items():
            if name in failures or (runs[name] and runs[name][0].wall > LONG):
                continue
            say(f"{project.name}: {name}, {turn + 1} of {repeat}")
            try:
                if turn == 0 and name in ("dbt ls", "select"):
                    step()  # what is to be found warm
                runs[name].append(step())
            except (TooSlowError, RuntimeError, ValueError, OSError) as why:
                failures[name] = str(why)
                say(f"  {why}")
    return {
        "name": project.name,
        "adapter": project.adapter,
        "counts": counts(target / "head"),
        "repeat": repeat,
        "machine": machine(),
        "runs": {name: [asdict(run) for run in took] for name, took in runs.items() if took},
        "failures": failures,
        "answers": answers,
    }


def main() -> None:
    """The command line: ``python bench/run_real.py --help``."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("clones", type=Path, nargs="?", help="folder of git repositories  [none]")
    parser.add_argument(
        "--work", type=Path, default=WORK / "real", help="where to put them up  [target/bench/real]"
    )
    parser.add_argument("--projects", help="some of the projects, by comma  [all]")
    parser.add_argument("--repeat", type=int, default=3, help="turns; 0: put up only  [3]")
    parser.add_argument("--timeout", type=float, default=1200, help="seconds for one run  [1200]")
    parser.add_argument(
        "--results", type=Path, default=RESULTS, help="where to write them  [bench/results]"
    )
    parser.add_argument("--write", action="store_true", help="render BENCHMARKS.md, too")
    parser.add_argument("--check", action="store_true", help="fail if a ratio is above its limit")
    given = parser.parse_args()
    names = given.projects.split(",") if given.projects else [p.name for p in PROJECTS]
    for name in names:
        if name not in {project.name for project in PROJECTS}:
            parser.error(f"no project {name}; there are {', '.join(p.name for p in PROJECTS)}")
    documents, failed = [], []
    for project in PROJECTS:
        if project.name not in names:
            continue
        lacking = missing(project, given.clones)
        if lacking:
            say(f"{project.name}: left out, there is no clone of {', '.join(lacking)}")
            continue
        python = (
            sys.executable
            if project.adapter == "duckdb"
            else python_of("real.txt", "-e", str(ROOT / "python"))
        )
        say(f"{project.name}: put up and compiled, unless that is done")
        try:
            folder = put_up(project, given.clones, given.work.resolve(), python)
        except PutUpError as why:
            failed.append(str(why))
            say(failed[-1])
            continue
        if not given.repeat:
            continue
        document = bench(project, folder, python, given.repeat, given.timeout)
        documents.append(document)
        stem = re.sub(r"\W+", "-", project.name)
        given.results.mkdir(parents=True, exist_ok=True)
        (given.results / f"real-{stem}.json").write_text(json.dumps(document, indent=1))
    if documents:
        print("\n".join(real_report(documents)))
    if given.write:
        write_page(page())
    if given.check:
        failed += too_slow(documents)
    if failed:
        raise SystemExit("\n".join(failed))


if __name__ == "__main__":
    main()
