"""The campaign: edits made, built, tested, and compared with what the selector says.

    python campaign.py [--mutants N] [--seed S] [--engine duckdb|spark] [--jobs N] [--cutoff] [--out FOLDER]
    python campaign.py --labs 0 --package FOLDER ...        in the shop with these packages and their hooks
    python campaign.py --mutants 0 --small N [--kind KIND ...]   small projects only, edits of these kinds
    python campaign.py --seed S --repeat "lab 1001:37"      one edit again, as a report names it

Every edit is executed: base and head are built with real data, all tests run on both. A *miss* is a
test whose rows differ, that is not selected and does not rest on a selected test that shows the
change, on a model that still builds; or a model that builds no more and is not among those to build.
Prints one row a kind of edit and writes it, with every miss, into FOLDER. Exits 1 where something
was missed, a refactor selected something, a project could not be made or edited to the end, or a
kind of edit never changed anything.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import random
import re
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Final

from constructs import constructs_of
from dbt_builds import Folder
from dbt_edits import KINDS as DBT_KINDS
from dbt_edits import DbtEdits
from judge import Judge
from mutations import NAME_KINDS, QUERY_KINDS, Mutator
from refactors import CATALOGUE, IN_OTHER_WORDS, Refactor
from report import Count, Refactored, Report, table
from small_edits import batches, written
from small_kinds import WRITERS
from world import Edit, Outcome, TooLong, Unreadable, World
from worlds import lab, shop, shop_on_spark

from dbt_ripple.reasons import Code
from dbt_ripple.selection.models_to_build import inlined_by

KINDS: Final = (
    *QUERY_KINDS,
    *NAME_KINDS,
    "hook",
    "seed",
    "source column",
    "ephemeral model",
    "snapshot",
    "versioned model",
    "incremental model",
    "test",
    "two edits",
)
"""Edits that are built in memory; those that need a new `dbt build` each are in `dbt_edits`."""

ON_SPARK: Final = "spark shop"
SMALL: Final = "small projects"
MORE_ROUNDS: Final = 2
"""How often a kind that dbt builds and that has changed nothing is tried again: seconds each."""

Say = Callable[[str], None]


@dataclass(frozen=True)
class Task:
    """What is done in one world. Tasks know nothing of each other, so that each can be repeated.

    Attributes:
        world: ``shop``, `ON_SPARK`, `SMALL`, or ``lab`` and the seed of a random project.
        seed: of the edits; each edit has a generator of its own, made of this, the world and its
            number.
        mutants: how many edits are made in memory.
        refactors: whether all refactors are made on all models.
        refactored_models: on how many models each refactor is made; 0: on all.
        dbt_kinds: which edits dbt builds, `dbt_rounds` of each.
        only: the number of the one edit that is made, as a report names it.
        insist: how often a kind that has changed nothing is tried again once all are made: three
            tries of a kind can all be in vain, and a kind that changed nothing proves nothing.
        cutoff: whether ``--cutoff`` is tried on each edit that is made in memory.
        packages: folders of packages that the shop has installed.
        small_kinds: which edits of small projects are made; empty for all.
    """

    world: str
    seed: int
    mutants: int
    refactors: bool = False
    refactored_models: int = 0
    dbt_kinds: tuple[str, ...] = ()
    dbt_rounds: int = 0
    only: str | None = None
    insist: int = 0
    cutoff: bool = False
    packages: tuple[str, ...] = ()
    small_kinds: tuple[str, ...] = ()

    def rng(self, number: str) -> random.Random:
        """The generator of an edit."""
        return random.Random(f"{self.seed}/{self.world}/{number}")


def tasks(
    seed: int,
    mutants: int,
    labs: int,
    *,
    refactored: int = 3,
    dbt_kinds: Sequence[str] = DBT_KINDS,
    dbt_rounds: int = 1,
    dbt_labs: int = 1,
) -> list[Task]:
    """A campaign: a third of the edits in the shop, the rest in the random projects.

    Args:
        seed: of all that is chosen.
        mutants: how many edits are made, besides those that dbt builds.
        labs: how many random projects there are.
        refactored: on how many worlds all refactors are made.
        dbt_kinds: which edits dbt builds, `dbt_rounds` of each in `dbt_labs` random projects.
        dbt_rounds: see there.
        dbt_labs: see there.
    """
    in_shop = mutants // 3 if labs else mutants
    made = [Task("shop", seed, in_shop, refactored > 0)]
    for number in range(labs):
        share = (mutants - in_shop) * (number + 1) // labs - (mutants - in_shop) * number // labs
        kinds, rounds = (tuple(dbt_kinds), dbt_rounds) if number < dbt_labs else ((), 0)
        name = f"lab {seed * 1000 + number}"
        refactors = number + 1 < refactored
        made.append(Task(name, seed, share, refactors, dbt_kinds=kinds, dbt_rounds=rounds))
    return made


def run(
    doing: Sequence[Task],
    work: Path,
    say: Say = lambda text: None,
    jobs: int = 1,
    keep: Callable[[Report], None] = lambda report: None,
) -> Report:
    """Do the tasks, so many at once.

    Args:
        doing: see `tasks`.
        work: where projects and databases are written.
        say: told how far it is.
        jobs: how many processes.
        keep: told what was found after each task; who is stopped has that much.
    """
    report = Report(doing[0].seed, "spark" if doing[0].world == ON_SPARK else "duckdb")
    start = time.perf_counter()
    for done in _done(doing, work, say, jobs):
        report.add(done)
        what = ", ".join(done.worlds) or f"stopped, {done.stopped}"
        say(f"{what}: done; {report.total().tried} edits, {len(report.misses)} misses so far")
        for miss in done.misses:
            say(f"missed, {miss['repeat']} ({miss['kind']}): {miss['missed'][0]}")
        report.seconds = time.perf_counter() - start
        keep(report)
    return report


def _done(doing: Sequence[Task], work: Path, say: Say, jobs: int) -> Iterator[Report]:
    if jobs == 1:
        for task in doing:
            try:
                yield perform(task, work / task.world.replace(" ", ""), say)
            except Exception as error:
                yield _stopped(task, error)
        return
    # A fresh process each: dbt and DuckDB keep threads, which a fork would not take along.
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(jobs, context, max_tasks_per_child=1) as pool:
        asked = {pool.submit(perform, t, work / t.world.replace(" ", "")): t for t in doing}
        for one in as_completed(asked):
            try:
                yield one.result()
            except Exception as error:
                yield _stopped(asked[one], error)


def _stopped(task: Task, error: Exception) -> Report:
    """The report of a task that came to no end: the others' hours are not lost, and it is told."""
    report = Report(task.seed, "duckdb")
    report.stopped[task.world] = f"{type(error).__name__}: {error}"
    return report


def perform(task: Task, work: Path, say: Say = lambda text: None) -> Report:
    """Build a world and do its task."""
    if task.world == ON_SPARK:
        return edit(*shop_on_spark(work), task, say)
    if task.world == SMALL:
        return edit_small(work, task, say)
    name, _, seed = task.world.partition(" ")
    return edit(*(lab(work, int(seed)) if name == "lab" else shop(work, task.packages)), task, say)


def edit(world: World, folder: Folder, task: Task, say: Say = lambda text: None) -> Report:
    """Do one task in its world."""
    report = Report(task.seed, "duckdb")
    report.worlds[task.world] = (
        f"{len(world.relations)} relations, {len(world.tests)} tests, {task.mutants} edits"
    )
    say(f"{task.world}: {report.worlds[task.world]}")
    if task.only is None or task.only.isdigit():
        mutate(world, task, report, say)
    if task.refactors:
        refactor(world, report, models=task.refactored_models)
    if task.dbt_rounds:
        build_by_dbt(world, DbtEdits(world, folder), task, report, say)
    return report


def edit_small(work: Path, task: Task, say: Say = lambda text: None) -> Report:
    """Edit small projects, the kinds in turn; many are built at once."""
    report = Report(task.seed, "duckdb")
    report.worlds[task.world] = f"{task.mutants} edits"
    only = None if task.only is None else int(task.only)
    rng_of = lambda number: task.rng(str(number))  # noqa: E731
    edits = [*written(WRITERS, rng_of, task.mutants, kinds=task.small_kinds, only=only)]
    for done, (number, made, batch) in enumerate(batches(edits, work)):
        base, outcome = batch.outcome(number)
        what = {"repeat": f"{task.world}:{number}", "diff": made.diff()}
        add_up(None, Judge(batch, base), report, made.kind, what, outcome)
        if (done + 1) % 60 == 0:
            say(f"{task.world}: {done + 1} edits, {len(report.misses)} misses so far")
    return report


def mutate(world: World, task: Task, report: Report, say: Say) -> None:
    """Edit one world, the kinds in turn."""
    judge = Judge(world)
    for done, (number, kind, unique_id, changes, outcome) in enumerate(
        made(world, task, report, look=judge.cut_off if task.cutoff else None)
    ):
        what = {
            "repeat": f"{task.world}:{number}",
            "node": unique_id,
            "base": {u: world.project.nodes[u].compiled_code for u in changes.sql},
            "edit": {k: v for k, v in asdict(changes).items() if v and k != "added"},
        }
        add_up(world, judge, report, kind, what, outcome)
        if (done + 1) % (10 if world.engine.dialect == "spark" else 100) == 0:
            say(f"{world.name}: {done + 1} edits, {len(report.misses)} misses so far")


def made(
    world: World,
    task: Task,
    report: Report,
    kinds: Sequence[str] = KINDS,
    look: Callable[[Outcome], None] | None = None,
) -> Iterator[tuple[int, str, str, Edit, Outcome]]:
    """A task's edits in memory, executed: number, kind, edited node, edit, and what it did."""
    mutator = Mutator(world, task.rng(""))
    kinds = [k for k in kinds if mutator.has(k)]
    numbers = range(20 * task.mutants + 200) if task.only is None else [int(task.only)]
    done, end = 0, -1
    for number in numbers:
        kind = kinds[number % len(kinds)]
        if done >= task.mutants:
            end = number + task.insist * len(kinds) if end < 0 else end
            if number >= end:
                break
            if kind not in report.kinds or report.kinds[kind].changed:
                continue
        mutator.random = task.rng(str(number))
        edit = mutator.edit(kind)
        if edit is None:
            continue
        try:
            outcome = world.try_head(edit[1], look)
        except (TooLong, Unreadable):
            report.kinds.setdefault(kind, Count()).given_up += 1
            continue
        done += 1
        yield number, kind, *edit, outcome


def add_up(
    world: World | None,
    judge: Judge,
    report: Report,
    kind: str,
    what: dict[str, Any],
    outcome: Outcome,
) -> None:
    """Judge one outcome and add it up; of a world also what its readers of order saw."""
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
    if not verdict.modified:
        count.unseen += len(verdict.selected)
        count.unseen_without_facts += len(verdict.selected_without_facts)
    count.truly += len(verdict.changed)
    if outcome.cut:
        count.cut += len(outcome.cut[0].tests)
        count.cut_without_facts += len(outcome.cut[1].tests)
        count.models += verdict.models
        count.cut_models += len(outcome.cut[0].models)
        count.truly_models += len(outcome.relations)
        count.due += len(outcome.cut[0].due & outcome.cut[0].tests)
        count.due_models += len(outcome.cut[0].due & outcome.cut[0].models)
        for why, number in outcome.cut[0].why.items():
            report.cut_why[why] = report.cut_why.get(why, 0) + number
    queries = [*what.get("base", {}).values(), *what.get("edit", {}).get("sql", {}).values()]
    for construct in constructs_of(*queries):
        of = report.constructs.setdefault(construct, Count())
        of.tried += 1
        of.built += not outcome.unbuilt
        of.changed += bool(outcome.relations or outcome.tests)
        of.missed += bool(verdict.missed)
    for reader in world.relations if world is not None else ():
        form = world.project.nodes[reader].meta.get("reads_order")
        if form and any(reader in world.below.get(u, ()) for u in outcome.moved):
            of = report.constructs.setdefault(f"read by {form}", Count())
            of.tried += 1
            of.built += reader not in outcome.unbuilt
            of.changed += reader in outcome.relations
    if verdict.missed:
        report.misses.append({"kind": kind, "missed": verdict.missed, **what})


def build_by_dbt(world: World, edits: DbtEdits, task: Task, report: Report, say: Say) -> None:
    """The edits that a real dbt has to build, so many of each kind; some more where all were in vain."""
    judge = Judge(world, edits.base)
    for number in range(task.dbt_rounds + (0 if task.only else MORE_ROUNDS)):
        for kind in filter(edits.has, task.dbt_kinds):
            name = f"{kind} {number}"
            if task.only not in (None, name):
                continue
            count = report.kinds.setdefault(kind, Count())
            if number >= task.dbt_rounds and (count.changed or count.built < count.tried):
                continue
            edits.random = task.rng(name)
            edit = edits.edit(kind)
            if edit is None:
                count.given_up += 1
                continue
            outcome, diff = edit
            what = {"repeat": f"{task.world}:{name}", "diff": diff}
            add_up(world, judge, report, kind, what, outcome)
        say(f"{world.name}: {number + 1} of {task.dbt_rounds} rounds by dbt")


LIST_IN_BRACKETS: Final = re.compile(r"\bin\s*\[", re.I)


def refactor(
    world: World,
    report: Report,
    catalogue: Mapping[str, Refactor] = CATALOGUE | IN_OTHER_WORDS,
    models: int = 0,
) -> None:
    """Every refactor on every model of a world where it applies, or on so many of them."""
    judge = Judge(world)
    nodes = world.project.nodes
    for number, (name, make) in enumerate(catalogue.items()):
        count = report.refactors.setdefault(name, Refactored())
        start = number % len(world.relations) if models else 0  # of few, not always the same ones
        for unique_id in (*world.relations[start:], *world.relations[:start]):
            if models and count.made >= models:
                break
            node = nodes[unique_id]
            if node.resource_type not in ("model", "snapshot") or not node.compiled_code:
                continue
            if node.is_ephemeral and not inlined_by(world.project, unique_id)[0]:
                continue  # only tests compile it: one has to, whatever the edit
            changes = make(world, unique_id)
            if changes is None:
                continue
            # The text of an ephemeral model is part of the text of what inlines it.
            ephemeral = [u for u in changes.sql if nodes[u].is_ephemeral]
            texts = {*changes.sql}.union(
                *(set().union(*inlined_by(world.project, u)) for u in ephemeral),
                *((b for b in world.below[u] if nodes[b].is_ephemeral) for u in ephemeral),
            )
            if any(LIST_IN_BRACKETS.search(nodes[u].compiled_code or "") for u in texts):
                continue  # sqlglot writes it as values in parentheses, which is another condition
            analysed = judge.analysis.nodes | judge.analysis.tests
            if any(u in analysed and analysed[u].status == "opaque" for u in texts):
                count.opaque += 1  # a text that is not seen through is compared as text
                continue
            try:
                outcome = world.try_head(changes)
            except Unreadable:
                count.not_one += 1
                continue
            own = {*changes.sql, *(n.unique_id for n in changes.added)}
            if outcome.tests or outcome.unbuilt or outcome.relations - own:
                # It reaches further than it may: somebody passes on all columns, for instance.
                count.not_one += 1
                continue
            count.made += 1
            facts, without = judge.select(outcome.head)
            codes = {test.reason.code for test in (*facts.tests, *without.tests)}
            if codes == {Code.EVALUATED_OTHERWISE}:
                count.evaluated += 1
            elif codes:
                count.selected += 1
                report.selecting.append(
                    {
                        "world": world.name,
                        "refactor": name,
                        "node": unique_id,
                        "tests": [f"{t.unique_id}: {t.reason}" for t in without.tests],
                        "base": node.compiled_code,
                        "edit": {k: v for k, v in asdict(changes).items() if v and k != "added"},
                    }
                )


def repeated(seed: int, named: str) -> Task:
    """The task that makes one edit of a report again."""
    world, _, number = named.partition(":")
    if number.isdigit():
        return Task(world, seed, 1, only=number)
    kind, _, round_ = number.rpartition(" ")
    return Task(world, seed, 0, dbt_kinds=(kind,), dbt_rounds=int(round_) + 1, only=number)


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
    parser.add_argument(
        "--small",
        type=int,
        default=140,
        help="edits of small projects, which dbt builds many at once",
    )
    parser.add_argument(
        "--kind", action="append", default=[], choices=WRITERS, help="of these, only this kind"
    )
    parser.add_argument("--engine", choices=("duckdb", "spark"), default="duckdb")
    parser.add_argument("--jobs", type=int, default=1, help="how many processes")
    parser.add_argument("--cutoff", action="store_true", help="try --cutoff on each edit, too")
    parser.add_argument("--repeat", metavar="EDIT", help="make one edit of a report again")
    parser.add_argument("--out", type=Path, default=Path("target/campaign"))
    parser.add_argument(
        "--package",
        metavar="FOLDER",
        action="append",
        default=[],
        help="install this package and its hooks into the shop; all edits are made there",
    )
    given = parser.parse_args()
    say = lambda text: print(f"... {text}", file=sys.stderr, flush=True)  # noqa: E731
    doing = tasks(given.seed, given.mutants, given.labs, dbt_rounds=given.dbt_rounds, dbt_labs=3)
    doing = [task for task in doing if task.mutants or task.dbt_rounds]
    if given.small:
        doing.append(Task(SMALL, given.seed, given.small))
    if given.engine == "spark":
        doing = [Task(ON_SPARK, given.seed, given.mutants, insist=20)]
    if given.package:
        doing = [Task("shop", given.seed, given.mutants)]
    if given.repeat:
        doing = [repeated(given.seed, given.repeat)]
    more = {
        "cutoff": given.cutoff,
        "packages": tuple(given.package),
        "small_kinds": tuple(given.kind),
    }
    doing = [replace(task, **more) for task in doing]
    beside = "-beside-packages" if given.package else ""
    name = given.out / f"{given.engine}-{given.seed}{'-cutoff' if given.cutoff else ''}{beside}"

    def keep(report: Report) -> None:
        if not given.repeat:
            given.out.mkdir(parents=True, exist_ok=True)
            name.with_suffix(".json").write_text(json.dumps(asdict(report), indent=1, default=str))
            name.with_suffix(".txt").write_text(table(report) + "\n")

    with tempfile.TemporaryDirectory(prefix="campaign") as work:
        report = run(doing, Path(work), say, given.jobs, keep)
    if given.repeat:
        for miss in report.misses:
            print(json.dumps(miss, indent=1, default=str).replace("\\n", "\n"))
        return bool(report.misses)
    print(table(report))
    return 1 if report.wrong() else 0


if __name__ == "__main__":
    sys.exit(main())
