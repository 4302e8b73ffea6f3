"""What the selector said of an edit, compared with what happened."""

from __future__ import annotations

import time
from collections.abc import Collection, Iterable
from dataclasses import dataclass, field
from typing import Any

from cutoffs import Trial
from world import BELOW, Outcome, World

from dbt_ripple.artifacts import Project
from dbt_ripple.artifacts.project import WITH_SQL
from dbt_ripple.changes import Comparison, compare
from dbt_ripple.graph.analyse_project import analyse
from dbt_ripple.graph.cache import Cache
from dbt_ripple.graph.lineage import Analysis
from dbt_ripple.selection.result import Selection
from dbt_ripple.selection.select import select_from


@dataclass
class Verdict:
    """One edit, judged.

    Attributes:
        selected: tests that run, with facts and without.
        missed: what is wrong, one sentence each; empty where nothing is.
        modified: how many tests ``state:modified+`` runs.
        changed: the tests whose rows differ.
        models: how many models are to be built.
    """

    selected: set[str]
    selected_without_facts: set[str]
    modified: int
    changed: set[str]
    missed: list[str] = field(default_factory=list)
    seconds: float = 0.0
    models: int = 0


class Judge:
    """Asks the selector about the edits of one world."""

    def __init__(self, world: World, base: Project | None = None) -> None:
        self.world = world
        self.base = base or world.project
        # As a user has it: an edit is analysed against what was kept of base.
        self.cache = Cache(world.scratch / "cache")
        self.analysis: Analysis = analyse(self.base, cache=self.cache)

    def select(self, head: Project) -> tuple[Selection, Selection]:
        """With what passed on base, and without."""
        comparison = self.compared(head)
        ways = [select_from(comparison, facts=facts) for facts in (True, False)]
        return ways[0], ways[1]

    def compared(self, head: Project) -> Comparison:
        """Base and an edit of it."""
        analysis = analyse(head, cache=self.cache)
        return compare(
            self.base,
            head,
            base_analysis=self.analysis,
            head_analysis=analysis,
            cache=self.cache,
        )

    def cut_off(self, outcome: Outcome) -> None:
        """Try ``--cutoff`` on what an edit did, while its relations are there."""
        comparison = self.compared(outcome.head)
        for facts in (True, False):
            selection = select_from(comparison, facts=facts)
            outcome.cut.append(Trial(self.world, comparison, selection).run(outcome))

    def judge(self, outcome: Outcome) -> Verdict:
        """Whether the selector saw all of what an edit did."""
        start = time.perf_counter()
        facts, without = self.select(outcome.head)
        seconds = time.perf_counter() - start
        verdict = Verdict(
            ids(facts.tests),
            ids(without.tests),
            facts.counts.state_modified_tests,
            outcome.tests,
            seconds=seconds,
            models=len(facts.models),
        )
        for cut, how in zip(outcome.cut, ("with facts", "without facts"), strict=False):
            verdict.missed += [f"--cutoff, {how}: {missed}" for missed in cut.missed]
        proven = {test.unique_id: test for test in facts.proven}
        blocked = {test.unique_id: test for test in facts.blocked}
        for test in sorted(outcome.tests):
            if test not in verdict.selected_without_facts:
                verdict.missed.append(f"{test} differs and is not selected")
            elif test in verdict.selected:
                continue
            grounds = {test, *(proven[test].facts if test in proven else ())}
            # dbt skips a test above which a model could not be built: the ground has not passed, and
            # that model is among those to build (below).
            not_passed = outcome.tests | outcome.failing | outcome.blocked
            if grounds.isdisjoint(outcome.outdated.get(test, ())) and not any(
                fact in verdict.selected and fact in not_passed for fact in grounds
            ):
                left_out = proven.get(test) or blocked.get(test)
                why = left_out.reason if left_out else "with facts it counts as unchanged"
                verdict.missed.append(f"{test} differs and is left out: {why}")
        for unique_id in {test.blocked_by for test in facts.blocked} - outcome.unbuilt.keys():
            verdict.missed.append(f"{unique_id} is built, and tests count as blocked by it")
        for selection, how in ((facts, "with facts"), (without, "without facts")):
            models, tests = set(selection.models), ids(selection.tests)
            for unique_id, reason in outcome.unbuilt.items():
                ephemeral = outcome.head.nodes[unique_id].is_ephemeral
                if ephemeral and reason != BELOW:
                    everything = [
                        node.unique_id
                        for node in outcome.head.nodes.values()
                        if node.resource_type in WITH_SQL
                    ]
                    if self.shows(unique_id, everything, outcome.head) and not self.shows(
                        unique_id, models | tests, outcome.head
                    ):
                        verdict.missed.append(
                            f"{unique_id} does not run any more and nothing {how} shows it: {reason}"
                        )
                elif reason != BELOW and unique_id not in models:
                    verdict.missed.append(
                        f"{unique_id} is not built any more and is not in models {how}: {reason}"
                    )
            for unique_id in outcome.relations:
                kind = outcome.head.nodes[unique_id].resource_type
                if unique_id not in models and kind != "source":
                    verdict.missed.append(f"{unique_id} changed and is not in models {how}")
        return verdict

    def shows(self, ephemeral: str, chosen: Collection[str], head: Project) -> bool:
        """Whether something that CI builds or runs holds an ephemeral model's text."""
        return any(
            ephemeral in self.world.inlines(head, unique_id)
            for unique_id in chosen
            if not head.nodes[unique_id].is_ephemeral
        )


def ids(items: Iterable[Any]) -> set[str]:
    """The unique_ids of what the selector lists."""
    return {item.unique_id for item in items}
