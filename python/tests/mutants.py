"""Mutants of soundness guards: each is one guard made wrong, and some unit test has to fail.

    python mutants.py --count 100 --seed 1     draw mutants, and run the tests that reach each of them
    python mutants.py FILE:LINE ...            only those of these lines
    python mutants.py --map ...                record anew which tests reach which lines (minutes)

A mutant is run on a copy of the package below target/mutants, against the tests that are recorded to
reach its line: nearest first, until one fails; tests written since come before all others. It prints
where the mutant is, what it is, and what caught it, and exits with 1 if fewer than 95% are caught.
`mutants.toml` holds the mutants that change no answer, with the reason: one that is gone is an error.

mutmut and cosmic-ray were looked at: neither draws a sample of the guards of chosen modules, leaves a
name out of a set, or passes a guard over, and cosmic-ray runs all tests for each mutant.
"""

from __future__ import annotations

import argparse
import ast
import json
import os
import random
import shutil
import subprocess
import sys
import time
import tomllib
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from difflib import SequenceMatcher
from itertools import accumulate
from pathlib import Path
from typing import Any, Final

import pytest
from coverage import CoverageData

ROOT: Final = Path(__file__).parents[2]
PACKAGE, WORK = ROOT / "python" / "dbt_ripple", ROOT / "target" / "mutants"
COPY, RECORDED, REACHED = WORK / "python" / "dbt_ripple", WORK / "recorded", WORK / "coverage"
"""A copy of the package; how it was when the tests that reach its lines were recorded; and these."""
PASSED, ASKED = WORK / "passed.json", WORK / "asked.json"
DATA: Final = tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8"))
ENOUGH, NEAR = 0.95, 50
"""The part that has to be caught, and how many tests are run before the others."""
PYTEST: Final = (
    *("-m", "pytest", "-c", "python/pyproject.toml", "--rootdir", "python", "-q", "-p", "mutants"),
    *("-p", "no:cacheprovider", "-m", "not spark and not matrix and not campaign and not slow"),
)
DEFAULTS: Final = (ast.Constant, ast.Tuple, ast.List, ast.Dict, ast.ListComp, ast.BinOp)
NAMES: Final = (ast.Constant, ast.Name, ast.Attribute, ast.Starred)


def lines_of(file: Path) -> list[str]:
    """The lines of a file."""
    return file.read_text(encoding="utf-8").splitlines() if file.exists() else []


@dataclass(frozen=True)
class Mutant:
    """A text in place of another one, from `start` to `end` of a file."""

    file: str
    line: int
    start: int
    end: int
    text: str
    what: str

    def applied(self) -> bytes:
        """The file with the guard made wrong."""
        source = (PACKAGE / self.file).read_bytes()
        return source[: self.start] + self.text.encode() + source[self.end :]

    def key(self) -> tuple[str, str, str]:
        """What it is known by in `mutants.toml`: its file, the text of its line, and what it is."""
        return self.file, lines_of(PACKAGE / self.file)[self.line - 1].strip(), self.what


def mutants_of(path: Path) -> Iterator[Mutant]:
    """Every mutant of a file."""
    source = path.read_bytes()
    starts = [0, *accumulate(map(len, source.splitlines(keepends=True)))]

    def span(node: Any) -> tuple[int, int]:
        end = starts[node.end_lineno - 1] + node.end_col_offset
        return starts[node.lineno - 1] + node.col_offset, end

    def text(node: Any) -> str:
        return source[slice(*span(node))].decode()

    for kind, node, new, about in _made(ast.parse(source), text):
        what = " ".join(f"{kind}: {text(about)}".split())
        yield Mutant(str(path.relative_to(PACKAGE)), node.lineno, *span(node), new, what)


def _made(tree: ast.AST, text: Any) -> Iterator[tuple[str, Any, str, Any]]:
    """What is done to a guard, the node in place of which something stands then, this, and the guard."""
    for node in _within(tree):
        match node:
            case ast.If(test=test, body=[ast.Return() | ast.Continue() | ast.Break(), *_]):
                yield "passed over", test, "False", test
            case ast.If(test=test) | ast.IfExp(test=test) if text(test) != "TYPE_CHECKING":
                yield "negated", test, f"not ({text(test)})", test
            case ast.comprehension(ifs=[test, *_]):
                yield "dropped", test, "True", test
            case ast.Return(value=ast.Compare() as value):
                yield "negated", value, f"not ({text(value)})", value
            case ast.BoolOp(op=op, values=[*values, last]) if not isinstance(last, DEFAULTS):
                this, other = (" and ", " or ") if isinstance(op, ast.And) else (" or ", " and ")
                parts = [f"({text(value)})" for value in (*values, last)]
                yield f"{other.strip()} for{this}".rstrip(), node, f"({other.join(parts)})", node
                for i, value in enumerate((*values, last)):
                    yield "dropped", node, f"({this.join(parts[:i] + parts[i + 1 :])})", value
            case ast.UnaryOp(op=ast.Not(), operand=operand):
                yield "no `not`", node, f"({text(operand)})", node
            case ast.Call(func=ast.Name(id="any" | "all" as name) as called):
                other = "all" if name == "any" else "any"
                yield f"{other} for {name}", called, other, node
            case ast.Compare(ops=[ast.In() | ast.NotIn()], comparators=[within]):
                yield from _left_out(within, text)
            case ast.Call(func=ast.Name(id="isinstance"), args=[_, within]):
                yield from _left_out(within, text)
            case ast.AnnAssign(target=ast.Name(id=name), value=within) if name.isupper():
                yield from _left_out(within or node, text)


def _left_out(within: ast.AST, text: Any) -> Iterator[tuple[str, Any, str, Any]]:
    """Sets, tuples and lists of names without each of them."""
    for listed in ast.walk(within):
        marks = {ast.Set: "{%s}", ast.Tuple: "(%s,)", ast.List: "[%s]"}.get(type(listed))
        names = getattr(listed, "elts", [])
        for left in names if marks and all(isinstance(name, NAMES) for name in names) else ():
            rest = ", ".join(text(name) for name in names if name is not left)
            yield "without", listed, (marks or "") % rest if rest else "()", left


def _within(node: ast.AST) -> Iterator[ast.AST]:
    for child in ast.iter_child_nodes(node):
        if not isinstance(child, (ast.Raise, ast.JoinedStr, ast.Assert)):
            yield child
            yield from _within(child)


def drawn(count: int, seed: int, places: list[str]) -> list[Mutant]:
    """So many mutants, no two of one line; or those of these lines."""
    every = [m for g in DATA["guards"] for p in sorted(PACKAGE.glob(g)) for m in mutants_of(p)]
    if places:
        return [m for m in every if f"{m.file}:{m.line}" in places]
    random.Random(seed).shuffle(every)
    return list({(m.file, m.line): m for m in every}.values())[:count]


def equivalent() -> dict[tuple[str, str, str], str]:
    """The reason why a mutant changes no answer, by its key."""
    reasons = {(e["file"], e["line"], e["what"]): e["why"] for e in DATA["equivalent"]}
    there = {m.key() for file in {key[0] for key in reasons} for m in mutants_of(PACKAGE / file)}
    if gone := reasons.keys() - there:
        raise SystemExit(f"mutants.toml names mutants that are gone: {sorted(gone)}")
    return reasons


# -- which tests reach a line -----------------------------------------------------------------------


def copied(to: Path) -> None:
    """Copy the package."""
    shutil.copytree(PACKAGE, to, ignore=shutil.ignore_patterns("__pycache__"), dirs_exist_ok=True)


def record() -> None:
    """Run the unit tests on a copy of the package: which reach which line, and which pass."""
    shutil.rmtree(WORK, ignore_errors=True)
    copied(COPY)
    copied(RECORDED)
    measured = (f"--cov={COPY}", "--cov-context=test", "--cov-report=", "-n", "2")
    variables = {"MUTANTS_PASSED": str(PASSED), "COVERAGE_FILE": str(REACHED)}
    print(tested([*DATA["rooms"], "--dist", "loadfile", *measured], 0, **variables)[1][-1])


def tested(args: list[str], limit: int, **environment: str) -> tuple[bool, list[str]]:
    """Whether no test fails on the copy, and what is printed; a TimeoutError over so many seconds."""
    paths = os.pathsep.join((str(COPY.parent), str(Path(__file__).parent)))
    env = {**os.environ, "PYTHONPATH": paths, "PYTHONDONTWRITEBYTECODE": "1", **environment}
    # It ends all processes that they start, too; 0 is no limit.
    command = ["timeout", "--signal=KILL", str(limit), sys.executable, *PYTEST, *args]
    done = subprocess.run(command, cwd=ROOT, env=env, capture_output=True, text=True)
    if done.returncode in (-9, 137):
        raise TimeoutError
    return done.returncode in (0, 5), done.stdout.splitlines()


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Keep the tests that are asked for, in their order, behind those that nobody has recorded."""
    if asked := os.environ.get("MUTANTS_TESTS"):
        place = json.loads(Path(asked).read_text(encoding="utf-8"))
        items[:] = [item for item in items if place.get(item.nodeid, 0) is not None]
        items.sort(key=lambda item: place.get(item.nodeid, 0))


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """Note which tests pass on the copy, in how many seconds; None for those that do not."""
    if to := os.environ.get("MUTANTS_PASSED"):
        stats = terminalreporter.stats
        passed = {r.nodeid: r.duration for r in stats.get("passed", ())}
        passed |= {r.nodeid: None for k in ("failed", "error") for r in stats.get(k, ())}
        Path(to).write_text(json.dumps(passed), encoding="utf-8")


def reaching(mutant: Mutant, passed: dict[str, float | None]) -> list[str]:
    """The tests that pass and reach a mutant's line, nearest first, then others of their files.

    What is run when a module is imported is reached by all that reach the module.
    """
    data = CoverageData(str(REACHED))
    data.read()
    found = data.contexts_by_lineno(str(COPY / mutant.file))
    lines = {n: {c.split("|")[0] for c in of} - {""} for n, of in found.items()}
    now, before = (lines_of(folder / mutant.file) for folder in (PACKAGE, RECORDED))
    same = SequenceMatcher(None, before, now, autojunk=False).get_matching_blocks()
    place = {b + i + 1: a + i + 1 for a, b, size in same for i in range(size)}
    direct = lines.get(place.get(mutant.line, 0)) or set().union(*lines.values())
    files = {name.split("::")[0] for name in direct}
    reached = Counter(name for of in lines.values() for name in of)

    def far(name: str) -> tuple[bool, bool, float]:
        """Others of a file are far, and so is what takes long or sees little of the module."""
        named = Path(mutant.file).stem in name.split("::")[0]
        return name not in direct, not named, (passed[name] or 0) / (reached[name] or 1)

    passing = (n for n, s in passed.items() if s is not None and n.split("::")[0] in files)
    return sorted(passing, key=far)


# -- running ----------------------------------------------------------------------------------------


def verdict(mutant: Mutant, passed: dict[str, float | None], limit: int) -> str:
    """What catches a mutant; "lives", or "not caught in time"."""
    until, tests = time.monotonic() + limit, reaching(mutant, passed)
    known = {name.split("::")[0] for name in passed}
    there = (f for room in DATA["rooms"] for f in (ROOT / room).glob("test_*.py"))
    new = [str(f) for f in there if str(f.relative_to(ROOT / "python")) not in known]
    (COPY / mutant.file).write_bytes(mutant.applied())
    try:
        for batch in filter(None, (tests[:NEAR], tests[NEAR:])):
            asked = dict.fromkeys(passed) | {name: i for i, name in enumerate(batch, 1)}
            ASKED.write_text(json.dumps(asked), encoding="utf-8")
            files = dict.fromkeys([*new, *(f"python/{name.split('::')[0]}" for name in batch)])
            left = max(1, round(until - time.monotonic()))
            passes, printed = tested(["-x", *files], left, MUTANTS_TESTS=str(ASKED))
            if not passes:
                by = next((x for x in printed if x.startswith(("FAILED ", "ERROR "))), "an error")
                return f"caught by {by.split(' - ')[0]}"
    except TimeoutError:
        return f"not caught in time ({limit} seconds)"
    finally:
        shutil.copyfile(PACKAGE / mutant.file, COPY / mutant.file)
    return f"lives ({len(tests)} tests)"


def main() -> int:
    """The command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("places", nargs="*", metavar="FILE:LINE")
    for option, value in (("count", 100), ("seed", 1), ("limit", 120)):
        parser.add_argument(f"--{option}", type=int, default=value)
    parser.add_argument("--map", action="store_true", help="record anew which tests reach what")
    given = parser.parse_args()
    reasons = equivalent()
    if given.map or not PASSED.exists():
        record()
    copied(COPY)
    passed = json.loads(PASSED.read_text(encoding="utf-8"))
    told: Counter[str] = Counter()
    for mutant in drawn(given.count, given.seed, given.places):
        why = reasons.get(mutant.key())
        became = f"equivalent: {why}" if why else verdict(mutant, passed, given.limit)
        told[became.split()[0].rstrip(":")] += 1
        print(f"{mutant.file}:{mutant.line}\t{mutant.what}\t{became}", flush=True)
    counted = told.total() - told["equivalent"]
    print(f"{told['caught']} of {counted} mutants caught, {told['lives']} live,", end=" ")
    print(f"{told['not']} not caught in time; {told['equivalent']} more change no answer")
    return int(told["caught"] < ENOUGH * counted)


if __name__ == "__main__":
    sys.exit(main())
