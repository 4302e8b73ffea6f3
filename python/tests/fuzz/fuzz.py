"""Write random queries and edit them: where the result differs, so must a fingerprint.

Each pair is executed over small tables and lowered and linked as a model's query would be. A miss: rows
or a column differ, no fingerprint does, and neither query is said to be opaque.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import random
import re
import sys
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Final

sys.path.append(str(Path(__file__).parents[1]))  # as pytest does

from engine import DuckDB, Result
from generators.choices import mix
from generators.grammar import Grammar, write
from generators.spark_grammar import SparkGrammar
from pairs import IN_A_VIEW, pairs
from tables import UnknownTableError
from token_edits import KINDS as TOKEN_KINDS
from token_edits import TokenEdits, smallest
from verdict import Prints, Verdict, judge, judge_unbuilt, prints, reworded

from dbt_ripple.flow.row_constraints import KnownConstraints

EDITS: Final = 12
"""Of each base query, more or less: those that run count."""
NO_VIEW: Final = re.compile(r"(?!(?:Conversion|Invalid Input|Out of Range) Error|Invalid Error)")
"""Begins the errors for which no view of a query can be made."""
IN_PAIRS: Final = 5
"""Of so many numbers one stands for pairs that ask one question each (`pairs`), the others for a base query."""

HARMLESS: Final = {
    "CTE name": "a name that only the query itself reads",
    "FILTER word": "`filter (where x)` is `filter (x)`",
    "FROM first": "`from t select x` is `select x from t`",
    "GROUP BY form": "a key, its alias or its position",
    "MATERIALIZED": "how a CTE is run",
    "cast": "three ways to write a cast",
    "clause moved": "what still runs then mostly is the same",
    "field access": "three ways to name a field",
    "join columns": "of one pair",
    "name's case": "names are data in few places only",
    "window name": "a name that only the query itself reads",
}
"""Kinds of edits that may well change nothing, and why."""
ENOUGH: Final = 40
"""Pairs of a kind that have run without a difference: then the kind proves nothing."""


@dataclass
class Count:
    """What became of the pairs of a kind."""

    tried: int = 0
    ran: int = 0
    differed: int = 0
    missed: int = 0
    opaque: int = 0
    broken: int = 0
    undetermined: int = 0

    def add(self, other: Count) -> None:
        for name, value in vars(other).items():
            setattr(self, name, getattr(self, name) + value)


@dataclass
class Report:
    """What a run found, by kind of edit and by construct of the query."""

    seed: int = 0
    bases: int = 0
    written: int = 0
    reworded: int = 0
    unwritten: list[str] = field(default_factory=list)
    seconds: float = 0.0
    kinds: dict[str, Count] = field(default_factory=dict)
    constructs: dict[str, Count] = field(default_factory=dict)
    functions: dict[str, Count] = field(default_factory=dict)
    reasons: dict[str, int] = field(default_factory=dict)
    broken: dict[str, str] = field(default_factory=dict)
    unreached: list[str] = field(default_factory=list)
    crashes: dict[str, int] = field(default_factory=dict)
    misses: list[dict[str, Any]] = field(default_factory=list)

    def add(self, other: Report) -> None:
        self.bases += other.bases
        self.written += other.written
        self.reworded += other.reworded
        self.unwritten += other.unwritten
        for name in ("kinds", "constructs", "functions"):
            mine = getattr(self, name)
            for kind, count in getattr(other, name).items():
                mine.setdefault(kind, Count()).add(count)
        self.reasons = dict(Counter(self.reasons) + Counter(other.reasons))
        self.crashes = dict(Counter(self.crashes) + Counter(other.crashes))
        self.broken = other.broken | self.broken
        self.unreached = self.unreached or other.unreached
        self.misses += other.misses

    def ran(self) -> int:
        return sum(c.ran for c in self.kinds.values())

    def never(self) -> list[str]:
        """Kinds of edits and constructs that were often executed and never changed a result."""
        return [
            kind
            for counts in (self.kinds, self.constructs)
            for kind, count in sorted(counts.items())
            if not count.differed and count.ran >= ENOUGH and kind not in HARMLESS
        ]


def spark() -> Any:
    """An embedded Spark, which takes its time to start."""
    from spark_engine import Spark

    return Spark()


class Fuzzer:
    """One process's part of a run."""

    def __init__(
        self, seed: int, engine: str = "duckdb", one_in: int = 1, patience: float = 15.0
    ) -> None:
        self.seed = seed
        self.patience = patience
        self.engine: Any = DuckDB() if engine == "duckdb" else spark()
        self.grammar = Grammar if engine == "duckdb" else SparkGrammar
        self.catalogue = self.engine.catalogue(one_in)
        self.edits = TokenEdits(
            sorted(
                {n for names in self.catalogue.names.values() for n in names if n.isidentifier()}
            )
        )
        self.report = Report(seed, unreached=self.catalogue.unreached)
        self.known_constraints = KnownConstraints()
        self.constructs: set[str] = set()
        self.functions: set[str] = set()

    def base(self, number: int) -> tuple[str, Grammar]:
        return self.write(number, None)

    def write(self, number: int, changed: dict[int, int] | None) -> tuple[str, Grammar]:
        seed = mix(self.seed * 1_000_003 + number)
        return write(self.catalogue, seed, changed, self.grammar)

    def heads(self, number: int, sql: str, grammar: Grammar) -> Iterator[tuple[str, str]]:
        """Edits of a base query: kind and text."""
        rng = random.Random(mix(self.seed ^ number))
        places = grammar.places
        kinds = sorted({kind for _, kind in places})
        for _ in range(EDITS):
            if rng.random() < 0.5:
                # A kind and then a place, or a place: else expressions are nearly all there is.
                if rng.random() < 0.5:
                    kind = rng.choice(kinds)
                    place = rng.choice([p for p, k in places if k == kind])
                else:
                    place, kind = rng.choice(places)
                for _ in range(3):
                    head, made = self.write(number, {place: rng.getrandbits(60)})
                    if head != sql:
                        self.constructs = grammar.constructs | made.constructs
                        self.functions = grammar.functions | made.functions
                        yield kind, head
                        break
            else:
                kind = rng.choice(TOKEN_KINDS)
                edited = self.edits.edit(kind, sql, rng)
                if edited is not None:
                    self.constructs, self.functions = grammar.constructs, grammar.functions
                    yield kind, edited

    def number(self, number: int, only: int | None = None) -> None:
        """One base query and its edits, or some pairs."""
        if number % IN_PAIRS == IN_PAIRS - 1 and self.engine.dialect == "duckdb":
            self.in_pairs(number, only)
            return
        sql, grammar = self.base(number)
        self.report.written += 1
        base = self.run(sql)
        if not isinstance(base, Result):
            return
        self.known_constraints = KnownConstraints()
        b = self.prints(sql)
        if b is None or self.run(sql) != base:
            return
        self.report.bases += 1
        self.reword(number, sql, base)
        for at, (kind, head_sql) in enumerate(self.heads(number, sql, grammar)):
            if only is None or at == only:
                self.pair(f"{number}.{at}", kind, (sql, base, b), head_sql)

    def in_pairs(self, number: int, only: int | None = None) -> None:
        """Some pairs that are written together."""
        self.constructs, self.functions = set(), set()
        rng = random.Random(mix(self.seed ^ number))
        for at, (kind, sql, head_sql) in enumerate(pairs(rng, EDITS)):
            if only is not None and at != only:
                continue
            self.report.written += 1
            self.known_constraints = KnownConstraints()
            base = self.run(sql)
            b = self.prints(sql, kind)
            if b is None or (isinstance(base, str) and kind != IN_A_VIEW):
                continue
            self.report.bases += 1
            if isinstance(base, Result):
                self.reword(number, sql, base)
            self.pair(f"{number}.{at}", kind, (sql, base, b), head_sql)

    def pair(
        self, name: str, kind: str, base_and_prints: tuple[str, Result | str, Prints], head_sql: str
    ) -> None:
        """Execute the other query of a pair, and compare."""
        sql, base, b = base_and_prints
        count = self.report.kinds.setdefault(kind, Count())
        count.tried += 1
        head = self.run(head_sql)
        if not _comparable(kind, base, head):
            return
        h = self.prints(head_sql, kind)
        if h is None:
            return
        verdict = self.judged(base, head, b, h)
        one = Count(0, 1, verdict.differed, 0, verdict.opaque, bool(verdict.broken))
        if verdict.missed:
            if self.stands(verdict, sql, base, head_sql, head):
                one.missed = 1
                self.miss(name, kind, sql, head_sql, verdict)
            else:
                one.undetermined, one.differed = 1, 0
        if verdict.broken:
            self.report.broken.setdefault(verdict.broken[:60], head_sql if h.refused else sql)
        if verdict.opaque:
            why = (b.opaque or h.opaque or "")[:60]
            self.report.reasons[why] = self.report.reasons.get(why, 0) + 1
        count.add(one)
        one.tried = 1
        for counts, names in (
            (self.report.constructs, self.constructs),
            (self.report.functions, self.functions),
        ):
            for each in names:
                counts.setdefault(each, Count()).add(one)

    def judged(self, base: Result | str, head: Result | str, b: Prints, h: Prints) -> Verdict:
        if isinstance(base, Result) and isinstance(head, Result):
            return judge(base, head, b, h, self.engine.dialect)
        return judge_unbuilt(base, head, b, h)

    def reword(self, number: int, sql: str, base: Result) -> None:
        """Execute what the rules of the second comparison make of a query: it is the same."""
        try:
            texts = reworded(sql, self.engine.dialect)
        except Exception as error:  # whatever a query says, the analysis may not raise
            texts = None
            missed = f"raised {type(error).__name__}: {error}"
            self.report.misses.append(
                {
                    "repeat": f"{self.seed}:{number}",
                    "kind": "reworded",
                    "missed": missed,
                    "base": sql,
                    "head": sql,
                }
            )
        if texts is None:
            return
        before, after = texts
        one, other = self.run(before), self.run(after)
        # How sqlglot writes a query is not ours: where that is another one, it shows nothing.
        if not isinstance(one, Result) or one.bag() != base.bag():
            return
        self.report.reworded += 1
        if isinstance(other, str):
            # What is compared is a tree; it is written out to be executed, and not every tree can be.
            self.report.reworded -= 1
            self.report.unwritten.append(f"{self.seed}:{number} {other}")
            return
        if other.bag() == one.bag() and other.names == one.names:
            return
        if self.engine.determined(before, one) and self.engine.determined(after, other):
            self.report.misses.append(
                {
                    "repeat": f"{self.seed}:{number}",
                    "kind": "reworded",
                    "missed": "rewritten, it gives others",
                    "base": before,
                    "head": after,
                }
            )

    def stands(
        self, verdict: Verdict, sql: str, base: Result | str, head_sql: str, head: Result | str
    ) -> bool:
        """Whether it is the queries that make the difference, not where rows happen to lie."""
        return verdict.missed.startswith("raised") or (
            self.engine.determined(sql, base) and self.engine.determined(head_sql, head)
        )

    def run(self, sql: str) -> Result | str:
        result = self.engine.run(sql)
        if isinstance(result, str) and result.startswith("crash"):
            self.report.crashes[result[:80]] = self.report.crashes.get(result[:80], 0) + 1
        return result

    def prints(self, sql: str, kind: str = "") -> Prints | None:
        """What the analysis says; None where a query reads what is not among the tables."""
        more = {"in_a_view": True} if kind == IN_A_VIEW else {}
        try:
            return prints(sql, self.engine.dialect, self.known_constraints, **more)
        except UnknownTableError:
            return None
        except Exception as error:  # whatever a query says, the analysis may not raise
            return Prints(None, raised=f"{type(error).__name__}: {error}")

    def miss(self, number: str, kind: str, base: str, head: str, verdict: Verdict) -> None:
        def still(one: str, two: str) -> bool:
            a, b = self.engine.run(one), self.engine.run(two)
            if not _comparable(kind, a, b):
                return False
            x, y = self.prints(one, kind), self.prints(two, kind)
            if x is None or y is None:
                return False
            again = self.judged(a, b, x, y)
            return (
                bool(again.missed)
                and again.missed.split()[0] == verdict.missed.split()[0]
                and self.stands(again, one, a, two, b)
            )

        small = (
            smallest(base, head, still, self.patience)
            if len(self.report.misses) < 60
            else (base, head)
        )
        self.report.misses.append(
            {
                "repeat": f"{self.seed}:{number}",
                "kind": kind,
                "missed": verdict.missed,
                "base": small[0],
                "head": small[1],
                "whole base": base,
                "whole head": head,
            }
        )


def _comparable(kind: str, base: Result | str, head: Result | str) -> bool:
    """Whether both results tell something: of a view also one, where the other query fails when it is read."""
    errors = [one for one in (base, head) if isinstance(one, str)]
    if kind != IN_A_VIEW:
        return not errors
    return len(errors) < 2 and not any(map(NO_VIEW.match, errors))


def work(engine: str, seed: int, start: int, step: int, pairs: int, pipe: Any) -> None:
    """A process's share: every `step`-th base, until so many pairs have run."""
    fuzzer = Fuzzer(seed, engine)
    number, last = start, time.monotonic()
    while fuzzer.report.ran() < pairs:
        pipe.send(number)
        fuzzer.number(number)
        number += step
        if time.monotonic() - last > 5:
            last = time.monotonic()
            pipe.send(fuzzer.report)
    pipe.send(fuzzer.report)
    pipe.send(None)


def run(engine: str, seed: int, pairs: int, jobs: int, say: Any, keep: Any) -> Report:
    """A run in processes of its own; one that the engine takes down goes on behind what did it."""
    began = time.monotonic()
    patience = 60 if engine == "duckdb" else 900
    context = multiprocessing.get_context("spawn")
    done: list[Report] = []

    def start(job: int, number: int, left: int) -> list[Any]:
        mine, theirs = context.Pipe(duplex=False)
        process = context.Process(
            target=work, args=(engine, seed, number, jobs, left, theirs), daemon=True
        )
        process.start()
        theirs.close()
        # It may take its time to try all functions of the catalogue.
        return [process, mine, job, number, Report(seed), time.monotonic() + 240, left]

    going = [start(job, job, pairs // jobs) for job in range(jobs)]
    told = time.monotonic()
    while going:
        for one in list(going):
            process, pipe, job = one[:3]
            stuck = False
            try:
                while pipe.poll(0.05):
                    message = pipe.recv()
                    one[5] = time.monotonic()
                    if message is None:
                        going.remove(one)
                        done.append(one[4])
                        break
                    if isinstance(message, Report):
                        one[4] = message
                    else:
                        one[3] = message
                stuck = time.monotonic() - one[5] > patience
            except EOFError:
                stuck = True
            if stuck and one in going:
                process.terminate()
                going.remove(one)
                one[4].crashes[f"the process died or hung at base {one[3]}"] = 1
                done.append(one[4])
                left = one[6] - one[4].ran()
                if left > 0:
                    going.append(start(job, one[3] + jobs, left))
        if time.monotonic() - told > 20 or not going:
            told = time.monotonic()
            total = Report(seed)
            for report in [*done, *(one[4] for one in going)]:
                total.add(report)
            total.seconds = time.monotonic() - began
            keep(total)
            say(f"{total.ran()} pairs, {len(total.misses)} misses, {total.seconds:.0f} s")
    return total


def table(report: Report) -> str:
    """The report as text."""
    lines = [
        f"seed {report.seed}: {report.ran():,} pairs of {report.bases:,} queries in {report.seconds:.0f} s; "
        f"{report.reworded:,} queries executed as the second comparison rewrites them"
        f" ({len(report.unwritten)} more could not be written out so that the engine takes them)"
    ]
    for title, counts in (("kind of edit", report.kinds), ("construct", report.constructs)):
        lines.append(
            f"\n{title:40}{'tried':>8}{'ran':>8}{'differed':>9}{'missed':>7}{'opaque':>7}{'broken':>7}{'unsure':>7}"
        )
        total = Count()
        for kind, c in sorted(counts.items()):
            total.add(c)
            lines.append(
                f"{kind:40}{c.tried:8}{c.ran:8}{c.differed:9}{c.missed:7}{c.opaque:7}{c.broken:7}{c.undetermined:7}"
            )
        if counts is report.kinds:
            c = total
            lines.append(
                f"{'in all':40}{c.tried:8}{c.ran:8}{c.differed:9}{c.missed:7}{c.opaque:7}{c.broken:7}{c.undetermined:7}"
            )
    differing = sum(bool(c.differed) for c in report.functions.values())
    lines.append(
        f"\n{len(report.functions)} functions called, {differing} of them in pairs that differ"
    )
    lines.append(f"never called: {', '.join(report.unreached) or 'none'}")
    lines.append(
        "opaque: " + "; ".join(f"{n} {why}" for why, n in Counter(report.reasons).most_common(12))
    )
    if report.crashes:
        lines.append(
            "the engine failed: "
            + "; ".join(f"{n} {why}" for why, n in Counter(report.crashes).most_common(8))
        )
    if report.never():
        lines.append("never changed a result: " + ", ".join(report.never()))
    for names, sql in list(report.broken.items())[:20]:
        lines.append(f"called broken for {names}, though it ran: {sql}")
    for miss in report.misses[:200]:
        lines.append(
            f"\n{miss['repeat']}  {miss['kind']}: {miss['missed']}\n  {miss['base']}\n  {miss['head']}"
        )
    return "\n".join(lines)


def main() -> int:
    """Run the fuzzer from the command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--pairs", type=int, default=100_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--engine", choices=("duckdb", "spark"), default="duckdb")
    parser.add_argument("--jobs", type=int, default=1, help="how many processes")
    parser.add_argument("--repeat", metavar="SEED:NUMBER", help="make one pair of a report again")
    parser.add_argument("--out", type=Path, default=Path("target/fuzz"))
    given = parser.parse_args()
    say = lambda text: print(f"... {text}", file=sys.stderr, flush=True)  # noqa: E731
    if given.repeat:
        seed, _, number = given.repeat.partition(":")
        base, _, edit = number.partition(".")
        fuzzer = Fuzzer(int(seed), given.engine)
        fuzzer.number(int(base), int(edit) if edit else None)
        print(json.dumps(fuzzer.report.misses, indent=1))
        return bool(fuzzer.report.misses)
    name = given.out / f"{given.engine}-{given.seed}"
    given.out.mkdir(parents=True, exist_ok=True)

    def keep(report: Report) -> None:
        name.with_suffix(".json").write_text(json.dumps(asdict(report), indent=1))
        name.with_suffix(".txt").write_text(table(report) + "\n")

    report = run(given.engine, given.seed, given.pairs, given.jobs, say, keep)
    print(table(report))
    return 1 if report.misses or report.never() else 0


if __name__ == "__main__":
    sys.exit(main())
