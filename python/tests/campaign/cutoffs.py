"""`--cutoff` on the relations that a world has built: the production code decides and writes the SQL.

dbt is not asked here. What head makes of a relation stands in its place already, base's beside it, so
that "building" is to say so, and the engine only hashes. What was stopped must be as it was.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from engines import EngineError

from dbt_ripple.changes import Comparison
from dbt_ripple.selection.cutoff import Cutoff
from dbt_ripple.selection.cutoff_reads import (
    Answer,
    Question,
    Types,
    Unequal,
    equal_columns,
    unequal_rows,
)
from dbt_ripple.selection.relation_hashes import HashedColumn, NotHashed, hash_sql
from dbt_ripple.selection.result import Selection

if TYPE_CHECKING:
    from world import Outcome, World


@dataclass
class Cut:
    """What was left of a selection, and what of it was wrong.

    Attributes:
        tests: those that ran; `models` those that were built.
        due: those that differ, were edited, or read something that differs: what no cutoff can spare.
        missed: what is wrong, one sentence each.
        why: how often each reason let something run although it had not changed.
    """

    tests: set[str] = field(default_factory=set)
    models: set[str] = field(default_factory=set)
    due: set[str] = field(default_factory=set)
    missed: list[str] = field(default_factory=list)
    why: dict[str, int] = field(default_factory=dict)


class Trial:
    """Answers a `Cutoff` out of a world in which head is built."""

    def __init__(self, world: World, comparison: Comparison, selection: Selection) -> None:
        self.world = world
        self.head = comparison.head
        seeds = {node.unique_id for node in comparison.base.of_type("seed")}
        self.cutoff = Cutoff(comparison, selection, self.types, kept=seeds, anew=True)

    def run(self, outcome: Outcome) -> Cut:
        cutoff = self.cutoff
        cut = Cut()
        while step := cutoff.next():
            cutoff.built(u for u in step.models if u in outcome.unbuilt)
            cutoff.answer(self.answers(cutoff.questions()))
        decided = cutoff.decided
        cut.tests = {t for t in cutoff.tests if t in decided.built}
        cut.models = {m for m in cutoff.models if m in decided.built}
        for unique_id, equal in decided.stopped.items():
            on = ", ".join(equal)
            if unique_id in outcome.tests:
                cut.missed.append(f"{unique_id} differs and was stopped by {on}")
            if unique_id in outcome.relations:
                cut.missed.append(f"{unique_id} differs, was stopped by {on} and not built")
            if unique_id in outcome.unbuilt:
                cut.missed.append(f"{unique_id} does not build, and was stopped by {on}")
        cut.due = {u for u in (*cut.tests, *cut.models) if self.is_due(u, outcome)}
        for unique_id in (*cut.tests, *cut.models):
            if unique_id not in cut.due:
                why = kind_of(decided.built[unique_id])
                cut.why[why] = cut.why.get(why, 0) + 1
        return cut

    def is_due(self, unique_id: str, outcome: Outcome) -> bool:
        """Whether something differs, is edited or does not build of a node, or of what it reads."""
        if unique_id in outcome.tests | outcome.relations | outcome.unbuilt.keys():
            return True
        why = self.cutoff.own(unique_id)
        if why in ("its own SQL changed", "its own settings changed", "it is new"):
            return True
        return any(
            self.answer(relation, [question := Question(relation, columns)]).unequal[question]
            is not None
            for relation, columns in self.cutoff.read.reads(unique_id).items()
            if relation in outcome.relations and relation in self.cutoff.base.nodes
        )

    def types(self, unique_id: str) -> Types | None:
        from world import relation

        node = self.head.nodes.get(unique_id)
        if node is None:
            return None
        try:
            return dict(self.world.engine.columns(f"select * from {relation(node)}"))
        except EngineError:
            return None

    def answers(self, questions: list[Question]) -> dict[str, Answer]:
        asked: dict[str, list[Question]] = {}
        for question in questions:
            asked.setdefault(question.relation, []).append(question)
        return {u: self.answer(u, sets) for u, sets in asked.items()}

    def answer(self, unique_id: str, questions: list[Question]) -> Answer:
        from world import relation

        engine = self.world.engine
        then, now = engine.kept(unique_id), relation(self.head.nodes[unique_id])
        base, head = (dict(engine.columns(f"select * from {name}")) for name in (then, now))

        def unequal(question: Question) -> Unequal | None:
            columns = question.columns
            if (why := equal_columns(base, head, columns)) is not None:
                return Unequal(why)
            hashes: list[tuple[Any, ...]] = []
            for name, types in ((then, base), (now, head)):
                listed = [
                    HashedColumn(*item)
                    for item in sorted(types.items())
                    if columns is None or item[0].lower() in columns
                ]
                try:
                    hashes.append(
                        engine.rows(
                            hash_sql(engine.dialect, name, listed, in_order=question.in_order)
                        )[0]
                    )
                except NotHashed as error:
                    return Unequal(str(error), seen=False)
            return unequal_rows(*hashes)

        return Answer(base, head, {question: unequal(question) for question in questions})


def kind_of(why: str) -> str:
    """A reason without the names in it."""
    words = why.partition(": ")
    if "seen to differ" in words[0]:
        return "what it reads was seen to differ"
    return (words[2] or words[0] if "and" in words[0] else why)[:90]
