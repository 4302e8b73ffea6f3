"""The campaign: edits made, built, tested, and held against what the selector says.

    python campaign.py [--mutants N] [--seed S] [--engine duckdb|spark] [--out FOLDER]

Every edit is executed: base and head are built with real data, all tests run on both. A *miss* is a
test whose rows differ, that is not selected and does not rest on a selected test that shows the
change, on a model that still builds; or a model that builds no more and is not among those to build.
Prints one row a kind of edit and writes it, with every miss, into FOLDER. Exits 1 where something
was missed, a refactor selected something, or a kind of edit never changed anything.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Final

from dbt_builds import Folder
from dbt_edits import KINDS as DBT_KINDS
from dbt_edits import DbtEdits
from judge import Judge
from mutations import QUERY_KINDS, VALUE_KINDS, Mutator
from refactors import CATALOGUE
from world import Edit, Outcome, TooLong, World
from worlds import lab, shop

from dbt_ripple import __version__

KINDS: Final = (
    *QUERY_KINDS,
    "hook",
    "seed",
    "source column",
    "ephemeral model",
    "snapshot",
    "versioned model",
    "incremental model",
    "test",
)
"""Edits that are built in memory; those that need a new `dbt build` each are in `dbt_edits`."""


@dataclass
class Count:
    """What became of the edits of one kind.

    Attributes:
        tried: edits made.
        built: of these, those after which everything still built.
        changed: those after which a relation or a test's rows were others.
        missed: those of which something was missed.
        selected: tests that run, over all edits; `without_facts` without what passed on base.
        modified: tests that ``state:modified+`` runs.
        truly: tests whose rows differ.
        given_up: edits that took too long or made too many rows; not among those tried.
    """

    tried: int = 0
    built: int = 0
    changed: int = 0
    missed: int = 0
    selected: int = 0
    without_facts: int = 0
    modified: int = 0
    truly: int = 0
    given_up: int = 0

    def add(self, other: Count) -> None:
        for name, value in asdict(other).items():
            setattr(self, name, getattr(self, name) + value)


@dataclass
class Refactored:
    """What became of the refactors of one kind: on how many models, how many selected something."""

    made: int = 0
    selected: int = 0
    not_one: int = 0


@dataclass
class Report:
    """A campaign's result."""

    seed: int
    engine: str
    kinds: dict[str, Count] = field(default_factory=dict)
    refactors: dict[str, Refactored] = field(default_factory=dict)
    misses: list[dict[str, Any]] = field(default_factory=list)
    selecting: list[dict[str, Any]] = field(default_factory=list)
    worlds: dict[str, str] = field(default_factory=dict)
    seconds: float = 0.0
    selector_seconds: float = 0.0

    def total(self, of: Callable[[str], bool] = lambda kind: True) -> Count:
        sum_ = Count()
        for kind, count in self.kinds.items():
            if of(kind):
                sum_.add(count)
        return sum_

    def idle(self) -> list[str]:
        """Kinds of edit that never changed anything: they prove nothing."""
        return [kind for kind, count in self.kinds.items() if not count.changed]

    def wrong(self) -> bool:
        return bool(self.misses or self.selecting or self.idle())


def mutate(
    world: World,
    report: Report,
    mutants: int,
    rng: random.Random,
    say: Callable[[str], None],
) -> None:
    """Edit one world so many times, the kinds in turn."""
    mutator, judge = Mutator(world, rng), Judge(world)
    kinds = [k for k in KINDS if k in QUERY_KINDS or k == "test" or mutator.has(k)]
    done = tries = 0
    while done < mutants and tries < 20 * mutants + 200:
        kind = kinds[tries % len(kinds)]
        tries += 1
        made = mutator.edit(kind)
        if made is None:
            continue
        unique_id, edit = made
        count = report.kinds.setdefault(kind, Count())
        try:
            outcome = world.try_head(edit)
        except TooLong:
            count.given_up += 1
            continue
        done += 1
        record(world, judge, report, kind, unique_id, edit, outcome)
        if done % 100 == 0:
            say(f"{world.name}: {done} of {mutants} edits, {len(report.misses)} misses so far")


def record(
    world: World,
    judge: Judge,
    report: Report,
    kind: str,
    unique_id: str,
    edit: Edit,
    outcome: Outcome,
) -> None:
    """Judge one edit and add it up."""
    what = {
        "base": {u: world.project.nodes[u].compiled_code for u in edit.sql},
        "edit": {k: v for k, v in asdict(edit).items() if v and k != "added"},
    }
    add_up(world, judge, report, kind, {"node": unique_id, **what}, outcome)


def add_up(
    world: World, judge: Judge, report: Report, kind: str, what: dict[str, Any], outcome: Outcome
) -> None:
    """Judge one outcome and add it up."""
    verdict = judge.judge(outcome)
    report.selector_seconds += verdict.seconds
    count = report.kinds.setdefault(kind, Count())
    count.tried += 1
    count.built += not outcome.unbuilt
    count.changed += bool(outcome.relations or outcome.tests)
    count.missed += bool(verdict.missed)
    count.selected += len(verdict.selected)
    count.without_facts += len(verdict.selected_without_facts)
    count.modified += verdict.modified
    count.truly += len(verdict.changed)
    if verdict.missed:
        missed = {"world": world.name, "kind": kind, "missed": verdict.missed}
        report.misses.append({**missed, **what})


def build_by_dbt(
    world: World,
    folder: Folder,
    report: Report,
    kinds: Sequence[str],
    rounds: int,
    rng: random.Random,
    say: Callable[[str], None],
) -> None:
    """The edits that a real dbt has to build, so many of each kind."""
    edits = DbtEdits(world, folder, rng)
    judge = Judge(world, edits.base)
    for number in range(rounds):
        for kind in filter(edits.has, kinds):
            count = report.kinds.setdefault(kind, Count())
            edit = edits.edit(kind)
            if edit is None:
                count.given_up += 1
                continue
            outcome, diff = edit
            add_up(world, judge, report, kind, {"diff": diff}, outcome)
        say(f"{world.name}: {number + 1} of {rounds} rounds by dbt, {len(report.misses)} misses")


def refactor(world: World, report: Report) -> None:
    """Every refactor on every model of a world where it applies."""
    judge = Judge(world)
    nodes = world.project.nodes
    for name, make in CATALOGUE.items():
        count = report.refactors.setdefault(name, Refactored())
        for unique_id in world.relations:
            node = nodes[unique_id]
            if node.resource_type not in ("model", "snapshot") or not node.compiled_code:
                continue
            edit = make(world, unique_id)
            if edit is None:
                continue
            outcome = world.try_head(edit)
            own = {*edit.sql, *(n.unique_id for n in edit.added)}
            if outcome.tests or outcome.unbuilt or outcome.relations - own:
                # It reaches further than it may: somebody hands on all columns, for instance.
                count.not_one += 1
                continue
            count.made += 1
            facts, without = judge.select(outcome.head)
            if facts.tests or without.tests:
                count.selected += 1
                report.selecting.append(
                    {
                        "world": world.name,
                        "refactor": name,
                        "node": unique_id,
                        "tests": [f"{t.unique_id}: {t.reason}" for t in without.tests],
                        "base": node.compiled_code,
                        "edit": {k: v for k, v in asdict(edit).items() if v and k != "added"},
                    }
                )


def worlds(work: Path, seed: int, labs: int) -> Iterator[tuple[World, Folder]]:
    """The shop, then so many random projects."""
    yield shop(work / "shop")
    for number in range(labs):
        yield lab(work / f"lab{number}", seed * 1000 + number)


def run(
    seed: int,
    mutants: int,
    labs: int,
    work: Path,
    say: Callable[[str], None] = lambda text: None,
    *,
    refactored: int = 2,
    dbt_kinds: Sequence[str] = DBT_KINDS,
    dbt_rounds: int = 1,
    dbt_labs: int = 1,
) -> Report:
    """A campaign on DuckDB: a third of the edits in the shop, the rest in the random projects.

    Args:
        seed: of all that is chosen.
        mutants: how many edits are made, besides those that dbt builds.
        labs: how many random projects there are.
        work: where projects and databases are written.
        say: told how far it is.
        refactored: on how many worlds all refactors are made.
        dbt_kinds: which edits dbt builds, `dbt_rounds` of each in `dbt_labs` random projects.
    """
    report = Report(seed, "duckdb")
    start = time.perf_counter()
    rng = random.Random(seed)
    in_shop = mutants // 3 if labs else mutants
    for number, (world, folder) in enumerate(worlds(work, seed, labs)):
        share = in_shop if number == 0 else (mutants - in_shop) // labs
        report.worlds[world.name] = (
            f"{len(world.relations)} relations, {len(world.tests)} tests, {share} edits"
        )
        say(f"{world.name}: {report.worlds[world.name]}")
        mutate(world, report, share, rng, say)
        if number < refactored:
            refactor(world, report)
        if 0 < number <= dbt_labs:
            build_by_dbt(world, folder, report, dbt_kinds, dbt_rounds, rng, say)
    report.seconds = time.perf_counter() - start
    return report


# --- what is printed ---------------------------------------------------------------------------------


def table(report: Report) -> str:
    """The report as text: one row a kind of edit, one a refactor."""
    head = (
        "kind of edit", "tried", "built", "changed", "missed", "selected", "no facts",
        "state:modified+", "truly", "selected/modified", "no facts/modified", "truly/modified",
    )  # fmt: skip
    rows: list[tuple[str, ...]] = [head]
    named = [*sorted(report.kinds.items())]
    named.append(("edits of values", report.total(lambda k: k in VALUE_KINDS)))
    named.append(("all", report.total()))
    for kind, c in named:
        figures = (c.tried, c.built, c.changed, c.missed, c.selected, c.without_facts, c.modified)
        shares = [
            f"{n / c.modified:.0%}" if c.modified else "-"
            for n in (c.selected, c.without_facts, c.truly)
        ]
        rows.append((kind, *map(str, figures), str(c.truly), *shares))
    lines = [_columns(rows), ""]
    lines.append(
        _columns(
            [
                ("refactor", "models", "selected something", "reached further"),
                *(
                    (name, str(c.made), str(c.selected), str(c.not_one))
                    for name, c in report.refactors.items()
                ),
            ]
        )
    )
    given_up = report.total().given_up
    lines += [
        "",
        f"dbt_ripple {__version__}, {report.engine}, seed {report.seed}, "
        f"{report.total().tried} edits in {report.seconds:.0f} s, of which the selector "
        f"{report.selector_seconds:.0f} s (asked twice an edit); {given_up} given up",
        *(f"{name}: {what}" for name, what in report.worlds.items()),
        f"misses: {len(report.misses)}; refactors that select: {len(report.selecting)}; "
        f"kinds that changed nothing: {', '.join(report.idle()) or 'none'}",
    ]
    return "\n".join(lines)


def _columns(rows: list[tuple[str, ...]]) -> str:
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    return "\n".join(
        "  ".join(
            text.ljust(width) if i == 0 else text.rjust(width)
            for i, (text, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    )


def main() -> int:
    """Run a campaign from the command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--mutants", type=int, default=5000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--labs", type=int, default=10, help="how many random projects")
    parser.add_argument(
        "--dbt-rounds", type=int, default=2, help="edits of each kind dbt builds, in 3 projects"
    )
    parser.add_argument("--engine", choices=("duckdb", "spark"), default="duckdb")
    parser.add_argument("--out", type=Path, default=Path("target/campaign"))
    given = parser.parse_args()
    given.out.mkdir(parents=True, exist_ok=True)
    say = lambda text: print(f"... {text}", file=sys.stderr, flush=True)  # noqa: E731
    with tempfile.TemporaryDirectory(prefix="campaign") as work:
        report = run(
            given.seed,
            given.mutants,
            given.labs,
            Path(work),
            say,
            refactored=3,
            dbt_rounds=given.dbt_rounds,
            dbt_labs=3,
        )
    name = f"{given.engine}-{given.seed}"
    (given.out / f"{name}.json").write_text(json.dumps(asdict(report), indent=1, default=str))
    (given.out / f"{name}.txt").write_text(table(report) + "\n")
    print(table(report))
    return 1 if report.wrong() else 0


if __name__ == "__main__":
    sys.exit(main())
