"""Times dbt_ripple, the floor below it and its peers on one made-up project, in turn, in one run.

    python bench/run.py --models 1000 --repeat 3 --peers all
    python bench/run.py --models 100,1000,10000,wide,long,deep --peers none --write

Each contender is a process of its own, in a virtual environment of its own that this script makes
from ``bench/peers/*.txt``. They take turns, so that a busy machine is busy for all of them; what is
reported is the median, and ratios rather than seconds. A contender that cannot be installed, fails
or takes too long is in the table with what happened.

What is measured goes to ``bench/results``, everything else to ``target/bench``, which git ignores;
``--write`` renders the results into BENCHMARKS.md.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import platform
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, field
from importlib.metadata import version
from pathlib import Path
from typing import Any, Final

HERE: Final = Path(__file__).resolve().parent
ROOT: Final = HERE.parents[1]
WORK: Final = ROOT / "target" / "bench"
RESULTS: Final = HERE / "results"
"""In git, so that the page can be made anew anywhere."""
PAGE: Final = ROOT / "BENCHMARKS.md"

sys.path.insert(0, str(HERE))

from generate import SHAPES, generate  # noqa: E402

SHAPE_SIZES: Final = {"wide": 10_000, "long": 2_000, "deep": 500}
ROWS: Final = "*rows*"

LONG: Final = 300.0
"""Seconds: a contender whose first run takes longer is not run again."""

OURS: Final = "dbt_ripple"
FLOOR: Final = "floor"
OURS_TESTS: Final = "dbt_ripple-tests"
FLOOR_TESTS: Final = "floor-tests"
WHOLE: Final = "whole"
FLOORS: Final = (FLOOR, FLOOR_TESTS, WHOLE)
COMMAND: Final = "dbt-ripple analyze"
COLD: Final = "cache, cold"
WARM: Final = "cache, warm"


@dataclass(frozen=True, slots=True)
class Peer:
    """Another tool: what to install, and which runner knows how to call it.

    Attributes:
        most_columns: it is not tried on projects with more, where its time is known to explode.
    """

    name: str
    requirements: str
    runner: str
    most_columns: int = 1_000_000_000


PEERS: Final = {
    "sqlglot-c": Peer("sqlglot `lineage(None)`, compiled", "sqlglot-c.txt", "run_sqlglot.py"),
    "sqlglot": Peer("sqlglot `lineage(None)`", "sqlglot.txt", "run_sqlglot.py"),
    "recce-c": Peer("recce, compiled sqlglot", "recce-c.txt", "run_recce.py"),
    "recce": Peer("recce", "recce.txt", "run_recce.py"),
    "colibri": Peer("dbt-colibri", "colibri.txt", "run_colibri.py"),
    "parrant": Peer("parrant", "parrant.txt", "run_parrant.py"),
    "guard": Peer("dbt-guard", "guard.txt", "run_guard.py", most_columns=5_000),
}


@dataclass(slots=True)
class Run:
    """One run of one contender.

    Attributes:
        wall: seconds from its start to its answer, the interpreter's start and imports included.
        cpu: user and system seconds of the same.
        work_cpu, work_wall: the same without start and imports: loading and analysing alone.
        peak_mb: the most memory it held.
    """

    wall: float
    cpu: float
    peak_mb: float
    work_cpu: float
    work_wall: float
    models: int = 0
    edges: int = 0
    value_edges: int = 0


@dataclass(slots=True)
class Contender:
    """All runs of one contender on one project; `failure` says why there are none (or no more)."""

    key: str
    name: str
    runs: list[Run] = field(default_factory=list)
    failure: str = ""
    compared: dict[str, Any] = field(default_factory=dict)

    def median(self, what: str) -> float:
        """The median of an attribute of its runs."""
        return float(statistics.median(getattr(run, what) for run in self.runs))


# --- processes -------------------------------------------------------------------------------------


class TooSlowError(Exception):
    """A contender was stopped."""


def measure(
    command: Sequence[str], timeout: float, env: dict[str, str], cwd: Path = WORK
) -> tuple[Run, str]:
    """Run a command; what it took, and what it printed.

    Raises:
        TooSlowError: it took longer than `timeout` seconds and was ended.
        RuntimeError: it failed; says how.
    """
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        before = time.time()
        process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=out, stderr=err, env=env, cwd=cwd
        )
        late = threading.Event()

        def stop() -> None:
            late.set()
            process.kill()

        timer = threading.Timer(timeout, stop)
        timer.start()
        try:
            _, status, usage = os.wait4(process.pid, 0)
        finally:
            timer.cancel()
        process.returncode = os.waitstatus_to_exitcode(status)
        wall = time.time() - before
        out.seek(0)
        err.seek(0)
        printed = out.read().decode(errors="replace")
        message = err.read().decode(errors="replace").strip()
    if late.is_set():
        raise TooSlowError(f"not done after {timeout:,.0f} s")
    if process.returncode != 0:
        last = message.splitlines()[-1] if message else "without a word"
        raise RuntimeError(f"failed ({process.returncode}): {last[:200]}")
    cpu = usage.ru_utime + usage.ru_stime
    return Run(wall, cpu, _megabytes(usage), cpu, wall), printed


def _megabytes(usage: resource.struct_rusage) -> float:
    return usage.ru_maxrss / (1024**2 if sys.platform == "darwin" else 1024)


def run_runner(
    python: str,
    runner: str,
    target: Path,
    timeout: float,
    edges: Path | None = None,
    tests: bool = False,
) -> Run:
    """One run of ``peers/run_*.py``, which stops the clock before it normalises its edges."""
    command = [python, str(HERE / "peers" / runner), str(target)]
    if edges is not None:
        command += ["--edges", str(edges)]
    if tests:
        command.append("--tests")
    before = time.time()
    ours = python == sys.executable
    run, printed = measure(command, timeout, with_this_tree() if ours else environment())
    told = json.loads(printed.strip().splitlines()[-1])
    work = [lap for phase, lap in told["phases"].items() if phase != "import"]
    run.wall = told["ended"] - before
    run.cpu, run.peak_mb = told["cpu"], told["peak_mb"]
    run.work_cpu = sum(lap["cpu"] for lap in work)
    run.work_wall = sum(lap["wall"] for lap in work)
    run.models, run.edges, run.value_edges = told["models"], told["edges"], told["value_edges"]
    return run


def run_command(target: Path, timeout: float, extra: Sequence[str], cache: Path | None) -> Run:
    """One run of what a user runs, in one process."""
    command = [str(Path(sys.executable).with_name("dbt-ripple")), "analyze", "--format", "json"]
    command += ["--threads", "1"]
    env = with_this_tree()
    if cache is not None:
        env["XDG_CACHE_HOME"] = str(cache)
    run, printed = measure([*command, "--target-path", str(target), *extra], timeout, env)
    told = json.loads(printed)
    run.models, run.edges = told["analysed"], told["edges"]
    run.value_edges = 0
    return run


def compiled_once() -> dict[str, str]:
    """This process's environment, in which Python keeps the bytecode that it compiles.

    What pip installs is compiled; a variable that forbids it would time the compiler at each start.
    """
    return {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}


def environment() -> dict[str, str]:
    """The environment of every contender: nobody phones home, nobody writes into a home folder."""
    home = WORK / "home"
    home.mkdir(parents=True, exist_ok=True)
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("DBT_", "PYTHON"))}
    return {**kept, "HOME": str(home), "DO_NOT_TRACK": "1", "PYTHONHASHSEED": "0"}


def with_this_tree() -> dict[str, str]:
    """`environment`, in which dbt_ripple is the one beside this script, installed or not."""
    return {**environment(), "PYTHONPATH": str(ROOT / "python")}


def python_of(requirements: str, *more: str) -> str:
    """The interpreter of the virtual environment with these requirements, made where needed.

    Args:
        more: what pip is to install besides, as its arguments.

    Raises:
        RuntimeError: it cannot be installed; says why.
    """
    wanted = HERE / "peers" / requirements
    folder = WORK / "environments" / wanted.stem
    python = folder / "bin" / "python"
    stamp = folder / "installed"
    digest = hashlib.sha256(wanted.read_bytes() + sys.version.encode()).hexdigest()
    if stamp.exists() and stamp.read_text() == digest:
        return str(python)
    shutil.rmtree(folder, ignore_errors=True)
    beside = Path(sys.executable).with_name("uv")
    uv = str(beside) if beside.exists() else shutil.which("uv")
    if uv:
        steps = [
            [uv, "venv", "--quiet", "--python", sys.executable, str(folder)],
            [uv, "pip", "install", "--quiet", "--python", str(python), "-r", str(wanted), *more],
        ]
    else:
        steps = [
            [sys.executable, "-m", "venv", str(folder)],
            [str(python), "-m", "pip", "install", "--quiet", "-r", str(wanted), *more],
        ]
    for step in steps:
        done = subprocess.run(step, capture_output=True, text=True)
        if done.returncode != 0:
            last = (done.stderr.strip().splitlines() or ["without a word"])[-1]
            raise RuntimeError(f"cannot be installed: {last[:200]}")
    stamp.write_text(digest)
    return str(python)


# --- one project -----------------------------------------------------------------------------------


def project_folder(size: str, adapter: str, seed: int) -> tuple[Path, dict[str, Any]]:
    """The artifacts of a size (a number of models, or a shape), written where they are not yet."""
    folder = WORK / "projects" / f"{adapter}-{size}-{seed}"
    stamp = folder / "generated.json"
    made_by = [(HERE / name).read_bytes() for name in ("generate.py", "made_packages.py")]
    source = hashlib.sha256(b"".join(made_by)).hexdigest()
    if stamp.exists():
        told: dict[str, Any] = json.loads(stamp.read_text())
        if told.pop("source") == source:
            return folder, told
    shape = size if size in SHAPES else "project"
    models = SHAPE_SIZES[size] if size in SHAPE_SIZES else int(size)
    # In another process: a big parent would lend its memory's peak to its children.
    told = json.loads(
        subprocess.run(
            [
                sys.executable,
                __file__,
                "--generate",
                str(folder),
                str(models),
                shape,
                adapter,
                str(seed),
            ],
            check=True,
            capture_output=True,
            text=True,
        ).stdout
    )
    stamp.write_text(json.dumps({**told, "source": source}))
    return folder, told


def bench(
    size: str, peers: Sequence[str], repeat: int, timeout: float, adapter: str, seed: int
) -> dict[str, Any]:
    """Measure everybody on one project."""
    target, told = project_folder(size, adapter, seed)
    results = WORK / "edges" / f"{adapter}-{size}-{seed}"
    results.mkdir(parents=True, exist_ok=True)
    contenders = [
        Contender(OURS, f"{OURS}, in process"),
        Contender(FLOOR, "load, tokenise, parse"),
        Contender(WHOLE, "whole files, `parse_one`"),
        Contender(OURS_TESTS, f"{OURS}, tests too"),
        Contender(FLOOR_TESTS, "load, tokenise, parse, tests too"),
        Contender(COMMAND, f"`{COMMAND} --no-cache`"),
        Contender(COLD, f"`{COMMAND}`, {COLD}"),
        Contender(WARM, f"`{COMMAND}`, {WARM}"),
    ]
    pythons = dict.fromkeys((OURS, OURS_TESTS, *FLOORS), sys.executable)
    runners = {
        OURS: "run_ripple.py",
        OURS_TESTS: "run_ripple.py",
        FLOOR: "run_floor.py",
        FLOOR_TESTS: "run_floor.py",
        WHOLE: "run_whole.py",
    }
    for key in peers:
        peer = PEERS[key]
        contender = Contender(key, peer.name)
        contenders.append(contender)
        runners[key] = peer.runner
        if told["columns"] > peer.most_columns:
            contender.failure = f"not tried above {peer.most_columns:,} columns"
            continue
        try:
            pythons[key] = python_of(peer.requirements)
        except RuntimeError as why:
            contender.failure = str(why)
    with tempfile.TemporaryDirectory(dir=WORK) as scratch:
        for turn in range(repeat):
            for contender in contenders:
                if contender.failure or (contender.runs and contender.runs[0].wall > LONG):
                    continue
                say(f"{size}: {contender.name}, {turn + 1} of {repeat}")
                try:
                    if contender.key in (COMMAND, COLD, WARM):
                        plain = ["--no-cache"] if contender.key == COMMAND else []
                        # Each turn's cold run fills the cache that its warm run finds.
                        cache = Path(scratch) / str(turn) if contender.key != COMMAND else None
                        run = run_command(target, timeout, plain, cache)
                    else:
                        edges = results / f"{contender.key}.tsv" if turn == 0 else None
                        tests = contender.key in (OURS_TESTS, FLOOR_TESTS)
                        run = run_runner(
                            pythons[contender.key],
                            runners[contender.key],
                            target,
                            timeout,
                            edges,
                            tests,
                        )
                    contender.runs.append(run)
                except (TooSlowError, RuntimeError, ValueError, OSError) as why:
                    contender.failure = str(why)
                    say(f"  {why}")
    # The comparison last, because it needs memory.
    written = [asdict(contender) for contender in contenders]
    for contender, entry in zip(contenders, written, strict=True):
        if contender.key in peers and contender.runs:
            entry["compared"] = compared(target, results, contender.key)
    return {
        "size": size,
        "adapter": adapter,
        "project": told,
        "repeat": repeat,
        "machine": machine(),
        "contenders": written,
    }


def machine() -> dict[str, Any]:
    """What it ran on."""
    return {
        "cores": os.cpu_count(),
        "load": round(os.getloadavg()[0], 1),
        "python": platform.python_version(),
        "sqlglot": version("sqlglot"),
        "date": time.strftime("%Y-%m-%d"),
    }


def say(text: str) -> None:
    """Progress, on stderr."""
    print(text, file=sys.stderr, flush=True)


# --- edges against edges ---------------------------------------------------------------------------


def read_edges(path: Path) -> set[tuple[str, ...]]:
    """The edges that a runner wrote."""
    with path.open(encoding="utf-8") as lines:
        return {tuple(sys.intern(part) for part in line.rstrip("\n").split("\t")) for line in lines}


def compared(target: Path, folder: Path, peer: str) -> dict[str, Any]:
    """Which of a peer's edges ours has, and what is the matter with the others.

    An edge that ours lacks is *impossible* where its parent is no relation of the project, has no
    such column or is the child itself; the rest is listed in full.
    """
    catalog = json.loads((target / "catalog.json").read_bytes())
    columns = {
        key: {name.lower() for name in table["columns"]}
        for section in ("nodes", "sources")
        for key, table in catalog[section].items()
    }
    ours, theirs = read_edges(folder / f"{OURS}.tsv"), read_edges(folder / f"{peer}.tsv")
    # Some call a use in a join or filter a value's source, some say it of the row set.
    loose = {(parent, column, child) for parent, column, child, _ in ours}
    counts = {"value": 0, "value_in_ours": 0, "rows": 0, "rows_in_ours": 0, "impossible": 0}
    other = []
    for edge in theirs:
        parent, column, child, child_column = edge
        kind = "rows" if ROWS in (column, child_column) else "value"
        counts[kind] += 1
        if edge in ours or (kind == "rows" and (parent, column, child) in loose):
            counts[f"{kind}_in_ours"] += 1
        elif parent == child or column not in columns.get(parent, ()):
            counts["impossible"] += 1
        else:
            other.append(list(edge))
    own = {edge for edge in ours if ROWS not in (edge[1], edge[3])}
    return {
        **counts,
        "other": len(other),
        "ours_more": len(own - theirs),
        "samples": sorted(other)[:20],
        "more_samples": sorted(map(list, own - theirs))[:5],
    }


# --- tables ----------------------------------------------------------------------------------------


def load_results() -> list[dict[str, Any]]:
    """What was measured so far, smallest project first, shapes last.

    What an older version of this script has written, or has not written to its end, is left out.
    """
    results = []
    for path in sorted(RESULTS.glob("*.json")):
        if path.name.startswith(("select-", "gate-", "real-")):  # of another script
            continue
        try:
            document = json.loads(path.read_text())
            "".join(report(document))
        except (ValueError, KeyError, TypeError, AttributeError) as why:
            say(f"{path}: left out, measure it again ({type(why).__name__}: {why})")
        else:
            results.append(document)
    return sorted(results, key=lambda d: (d["size"] in SHAPES, d["project"]["models"], d["size"]))


def contenders_of(document: dict[str, Any]) -> dict[str, Contender]:
    """The contenders of a stored result, by key."""
    contenders = {}
    for stored in document["contenders"]:
        runs = [Run(**run) for run in stored["runs"]]
        contenders[stored["key"]] = Contender(
            stored["key"], stored["name"], runs, stored["failure"], stored["compared"]
        )
    return contenders


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> Iterator[str]:
    """A Markdown table; all columns but the first are numbers."""
    yield f"| {' | '.join(head)} |"
    yield f"| --- |{' ---: |' * (len(head) - 1)}"
    for row in rows:
        yield f"| {' | '.join(row)} |"


def seconds(value: float) -> str:
    """A number of seconds, to two digits where it is small."""
    return f"{value:,.2f}" if value < 10 else f"{value:,.1f}"


def report(document: dict[str, Any]) -> Iterator[str]:
    """One project's tables."""
    told, of = document["project"], contenders_of(document)
    about = f"{told['models']:,} models"
    if document["size"] in SHAPES:
        about = {
            "wide": "10,000 columns in each of 3 models",
            "long": "a query of 2,000 lines",
            "deep": "a chain of 500 models",
        }[document["size"]]
    yield f"### {about}"
    yield ""
    yield (
        f"{told['models']:,} models of {told['sql_bytes'] / told['models'] / 1024:.1f} KB of compiled "
        f"SQL, {told['columns']:,} columns, {told['sources']:,} sources, {told['tests']:,} tests, "
        f"{told['depth']} deep; manifest.json {told['manifest_bytes'] / 1e6:,.1f} MB; adapter "
        f"{document['adapter']}. {_turns(document)}"
    )
    yield ""
    ours, floor = of[OURS], of[FLOOR]
    rows = []
    for contender in of.values():
        if not contender.runs:
            rows.append([contender.name, contender.failure, *[""] * 7])
            continue
        run = contender.runs[0]
        is_command = contender.key in (COMMAND, COLD, WARM)
        ratio = contender.median("work_cpu") / ours.median("work_cpu") if ours.runs else 0.0
        rows.append(
            [
                contender.name,
                seconds(contender.median("wall")),
                seconds(contender.median("cpu")),
                "" if is_command else seconds(contender.median("work_cpu")),
                "" if is_command else f"{ratio:,.2f}" if ratio < 10 else f"{ratio:,.1f}",
                f"{contender.median('peak_mb'):,.0f}",
                f"{run.models:,}",
                "" if is_command or contender.key in FLOORS else f"{run.value_edges:,}",
                str(len(contender.runs)),
            ]
        )
    yield from table(
        (
            "",
            "wall s",
            "CPU s",
            "analysis CPU s",
            "against ours",
            "peak MB",
            "models",
            "value edges",
            "runs",
        ),
        rows,
    )
    yield ""
    if ours.runs and floor.runs:
        sentence = f"Ours against the floor (load, tokenise, parse): **{over(ours, floor):.2f}**"
        tests = [of[key] for key in (OURS_TESTS, FLOOR_TESTS) if key in of and of[key].runs]
        if len(tests) == 2:
            sentence += f"; with the SQL of data tests on both sides **{over(*tests):.2f}**"
        yield f"{sentence}."
    if ours.runs and (whole := of.get(WHOLE)) is not None and whole.runs:
        yield (
            "Ours against decoding the whole files by `msgspec.json.decode` and every query by "
            f"`sqlglot.parse_one`: **{over(ours, whole):.2f}**."
        )
    if COLD in of and of[COLD].runs and of[WARM].runs:
        wall, cpu = (of[WARM].median(what) / of[COLD].median(what) for what in ("wall", "cpu"))
        yield (
            f"Nothing changed since the last `{COMMAND}`: **{wall:.1%}** of the wall time of the "
            f"first one and **{cpu:.1%}** of its CPU, start and imports included."
        )
    yield ""
    compared_rows = [
        [
            contender.name,
            f"{compared['value']:,}",
            f"{compared['value_in_ours']:,}",
            f"{compared['rows']:,}",
            f"{compared['rows_in_ours']:,}",
            f"{compared['impossible']:,}",
            f"{compared['other']:,}",
            f"{compared['ours_more']:,}",
        ]
        for contender in of.values()
        if (compared := contender.compared)
    ]
    if compared_rows:
        yield from table(
            (
                "",
                "its value edges",
                "ours has",
                "its row edges",
                "ours has",
                "impossible",
                "others ours lacks",
                "value edges it lacks",
            ),
            compared_rows,
        )
        yield ""


def over(ours: Contender, floor: Contender) -> float:
    """How many times the floor's time ours is: the median over pairs that ran one after the other."""
    pairs = zip(ours.runs, floor.runs, strict=False)
    return statistics.median(a.work_cpu / b.work_cpu for a, b in pairs)


def _turns(document: dict[str, Any]) -> str:
    of = document["machine"]
    repeat = document["repeat"]
    turns = f"Median of {repeat} turns" if repeat > 1 else "One turn"
    return (
        f"{turns}, {of['date']}, Python {of['python']}, sqlglot "
        f"{of['sqlglot']}, {of['cores']} cores (load {of['load']})."
    )


def memory(documents: Sequence[dict[str, Any]]) -> Iterator[str]:
    """How memory grows with the project."""
    rows = []
    for document in documents:
        of = contenders_of(document)
        if document["size"] in SHAPES or not of[OURS].runs:
            continue
        models = document["project"]["models"]
        peak = of[OURS].median("peak_mb")
        rows.append((models, document["project"]["manifest_bytes"] / 1e6, peak))
    if len(rows) < 2:
        return
    yield "### Memory"
    yield ""
    lines = []
    for at, (models, manifest, peak) in enumerate(rows):
        grown = ""
        if at:
            before = rows[at - 1]
            grown = f"{(peak - before[2]) / (models - before[0]) * 1024:,.0f}"
        lines.append([f"{models:,}", f"{manifest:,.1f}", f"{peak:,.0f}", grown])
    yield from table(("models", "manifest MB", "peak MB", "KB a further model"), lines)
    yield ""


REAL: Final = (
    ("analysis", "floor", 2.5),
    ("select", "dbt ls", 0.5),
    ("first", "compile", 1.3),
    ("again", "dbt ls", 2.0),
)
"""Of what run_real.py times: what is divided by what, and the most that may come out."""


def real_ratios(document: dict[str, Any]) -> list[float | None]:
    """The ratios of `REAL`, each the median over turns; None where one of the two was not measured.

    Of CPU, that of started processes too, which other work on the machine disturbs least; that of the
    analysis without Python's start and imports, as in `over`.
    """
    ratios: list[float | None] = []
    for ours, other, _ in REAL:
        pairs = list(zip(*(document["runs"].get(name, ()) for name in (ours, other)), strict=False))
        what = _measured(ours)
        ratios.append(statistics.median(a[what] / b[what] for a, b in pairs) if pairs else None)
    return ratios


def _measured(ours: str) -> str:
    return "work_cpu" if ours == "analysis" else "cpu"


def _unmeasured(document: dict[str, Any], ours: str, other: str) -> str:
    failures = document["failures"]
    return str(failures.get(ours) or failures.get(other) or "not run")


def too_slow(documents: Iterable[dict[str, Any]]) -> Iterator[str]:
    """A line for each ratio that is above its limit or that could not be measured."""
    for document in documents:
        for ratio, (ours, other, most) in zip(real_ratios(document), REAL, strict=True):
            if ratio is None:
                yield f"{document['name']}: {ours}: {_unmeasured(document, ours, other)}"
            elif ratio > most:
                yield f"{document['name']}: {ours} takes {ratio:.2f} of {other}, at most {most:g}"


def real_report(documents: Sequence[dict[str, Any]]) -> Iterator[str]:
    """What run_real.py measured: the project that is farthest above its limits first."""

    def worst(document: dict[str, Any]) -> float:
        of = zip(real_ratios(document), REAL, strict=True)
        return max(float("inf") if ratio is None else ratio / most for ratio, (*_, most) in of)

    rows = []
    for document in sorted(documents, key=worst, reverse=True):
        number, answers = document["counts"], document["answers"]
        warehouse = document["adapter"] + ("" if document["adapter"] == "duckdb" else ", stubbed")
        row = [
            f"{document['name']} ({warehouse})",
            *(f"{number[kind]:,}" for kind in ("models", "tests", "macros", "hooks")),
        ]
        for ratio, (ours, other, most) in zip(real_ratios(document), REAL, strict=True):
            if ratio is None:
                row.append(_unmeasured(document, ours, other))
                continue
            took = (
                seconds(statistics.median(run[_measured(ours)] for run in document["runs"][name]))
                for name in (ours, other)
            )
            mark = "**" if ratio > most else ""
            row.append(f"{' / '.join(took)} = {mark}{ratio:.2f}{mark}")
        found = answers.get("--state") or answers.get("--base-ref")
        row.append(f"{found['impacted_tests']:,} of {found['all_tests']:,}" if found else "")
        rows.append(row)
    limits = [
        f"{heading}, at most {most:g}" for heading, (*_, most) in zip(_REAL, REAL, strict=True)
    ]
    yield from table(("", "models", "tests", "macros", "hooks", *limits, "tests selected"), rows)


_REAL: Final = (
    "analysis / load, tokenise, parse",
    "`select --state`, warm / `dbt ls`",
    "`select --base-ref`, first / two `dbt compile`",
    "again / `dbt ls`",
)
"""The headings of the ratios of `REAL`."""


_SELECTION: Final = {
    "decode": "decode the two manifests with msgspec, no more",
    "select": "`dbt-ripple select`, base and head analysed before",
    "facts": "the same, base's tests taken as passed",
    "one change": "`dbt-ripple select`, base analysed before, head new",
    "cold": "`dbt-ripple select`, empty cache (once)",
    "dbt ls": "`dbt ls --select state:modified+`, partial parse warm",
    "CI step": "CI step: `dbt compile` of what is modified, then select",
}
"""What run_select.py times, in words."""


def select_report(document: dict[str, Any]) -> Iterator[str]:
    """What run_select.py measured on one project."""
    counts, took = document["counts"], document["took"]
    yield f"### Selection, {document['models']:,} models and {counts['all_tests']:,} tests"
    yield ""
    yield (
        f"One expression of `{document['edited']}` is edited: {counts['impacted_tests']:,} tests "
        f"selected, `state:modified+` would run {counts['state_modified_tests']:,}. "
        f"{_turns(document)} Repeat it: `python python/bench/run_select.py --models "
        f"{document['models']} --repeat {document['repeat']} --write`."
    )
    yield ""
    rows = []
    for key, heading in _SELECTION.items():
        ratios = [took[key][i] / took[other][i] for other in ("decode", "dbt ls") for i in (0, 1)]
        rows.append([heading, *map(seconds, took[key]), *(f"{ratio:.3g}" for ratio in ratios)])
    yield from table(
        ("", "wall s", "CPU s", "of decoding: wall", "CPU", "of dbt ls: wall", "CPU"), rows
    )
    yield ""


def page() -> str:
    """The measured part of BENCHMARKS.md: all that the scripts here have left, smallest first."""
    documents = load_results()
    lines: list[str] = []
    for document in documents:
        lines += report(document)
    lines += memory(documents)
    others = [
        json.loads(path.read_text())
        for kind in ("select", "gate")
        for path in RESULTS.glob(f"{kind}-*.json")
    ]
    for other in sorted(others, key=lambda document: int(document["models"])):
        lines += [other["report"], ""] if "report" in other else select_report(other)
    return "\n".join(lines).strip() + "\n"


BEGIN: Final = "<!-- what follows is written by `make bench`; edit above -->\n"
REAL_BEGIN: Final = "<!-- written by `make bench-real` -->\n"
REAL_END: Final = "<!-- end of what `make bench-real` writes -->\n"


def real_table() -> str:
    """The table of public projects: of all that run_real.py has left."""
    documents = [json.loads(path.read_text()) for path in RESULTS.glob("real-*.json")]
    if not documents:
        return ""
    dates = sorted({document["machine"]["date"] for document in documents})
    turns = sorted({document["repeat"] for document in documents})
    of = documents[0]["machine"]
    often = " to ".join(dict.fromkeys(map(str, (turns[0], turns[-1]))))
    about = (
        f"Seconds of CPU, {'of one turn' if often == '1' else f'medians of {often} turns'}, "
        f"{' to '.join(dict.fromkeys((dates[0], dates[-1])))}, Python {of['python']}, sqlglot "
        f"{of['sqlglot']}, {of['cores']} cores."
    )
    return "\n".join([about, "", *real_report(documents)]) + "\n"


def write_page(text: str) -> None:
    """Put what was measured into BENCHMARKS.md, around what people write."""
    head = PAGE.read_text(encoding="utf-8").partition(BEGIN)[0]
    before, _, rest = head.partition(REAL_BEGIN)
    after = rest.partition(REAL_END)[2]
    real = f"{REAL_BEGIN}\n{real_table()}\n{REAL_END}"
    PAGE.write_text(f"{before}{real}{after}{BEGIN}\n{text}", encoding="utf-8")


def main() -> None:
    """The command line: ``python bench/run.py --help``."""
    if sys.argv[1:2] == ["--generate"]:
        folder, models, shape, adapter, seed = sys.argv[2:]
        done = generate(Path(folder), int(models), shape=shape, adapter=adapter, seed=int(seed))
        print(json.dumps(asdict(done)))
        return
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument(
        "--models",
        default="1000",
        help="numbers of models, and shapes that hurt (wide, long, deep), by comma  [1000]",
    )
    parser.add_argument("--repeat", type=int, default=3, help="turns of each contender  [3]")
    parser.add_argument(
        "--peers", default="all", help=f"all, none, or some of {', '.join(PEERS)}  [all]"
    )
    parser.add_argument("--timeout", type=float, default=900, help="seconds for one run  [900]")
    parser.add_argument("--adapter", choices=("databricks", "spark"), default="databricks")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--write", action="store_true", help="render BENCHMARKS.md, too")
    given = parser.parse_args()
    peers = {"all": list(PEERS), "none": []}.get(given.peers, given.peers.split(","))
    sizes = given.models.split(",") if given.models else []
    for name in peers:
        if name not in PEERS:
            parser.error(f"no peer {name}; there are {', '.join(PEERS)}")
    for size in sizes:
        if not size.isdigit() and size not in SHAPE_SIZES:
            parser.error(f"no project {size}; say a number of models, or {', '.join(SHAPE_SIZES)}")
    for size in sizes:
        document = bench(size, peers, given.repeat, given.timeout, given.adapter, given.seed)
        path = RESULTS / f"{given.adapter}-{size}.json"
        path.write_text(json.dumps(document, indent=1))
        print("\n".join(report(document)))
        for stored in document["contenders"]:
            for edge in stored["compared"].get("samples", ()):
                say(f"{stored['name']} has, ours lacks: {' '.join(edge)}")
    if given.write:
        write_page(page())


if __name__ == "__main__":
    main()
