"""Early cutoff: a relation that is rebuilt and comes out equal has no effect downstream.

A selection says what *can* differ. This module finds out, level by level, what *does*: for a
relation that was rebuilt, and for each set of columns that something reads of it, whether it has
the bag of rows that base's SQL makes of the same inputs. If it does, the relation does not affect
that reader.

Nothing here runs dbt or queries the engine. The caller (`dbt_runner.run_cutoff`, the campaign) takes the
next level, builds it, reports the result, answers the comparisons that this leads to, and takes
the next level again.

A reader stops only if all of this holds:

* It is unchanged: its compiled SQL, its settings, and the result of its analysis. A node that may
  no longer build (see `selection.models_to_build`), or that runs for another reason than a changed column,
  is built in any case.
* It gives the same bag of rows for the same bags as input (`flow.determinism`). If it depends on an
  order, or something below it that may run does, what it reads has to be equal in order, too, which
  only tables of DuckDB show.
* For each rebuilt relation that it reads, the columns it reads were compared and are equal, with
  names and types; and nothing else that it reads has changed.

And a relation counts as equal only if every build of it gives the same result: not if it is
incremental or a snapshot, has hooks, cannot be analysed, or asks for the time or for a random
number.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Final, NamedTuple

import msgspec

from dbt_ripple.artifacts import Node
from dbt_ripple.changes import Comparison
from dbt_ripple.changes.compile_inputs import rename
from dbt_ripple.changes.compiled_sql_reuse import other_names
from dbt_ripple.flow.determinism import Cause, Nondeterminism, inexact_type, nondeterminism
from dbt_ripple.flow.identifiers import dialect_of
from dbt_ripple.graph.config_fingerprints import ConfigFingerprints
from dbt_ripple.graph.node_properties import of_test
from dbt_ripple.graph.order_seen import inexact_columns
from dbt_ripple.graph.unnamed_reads import CATALOG
from dbt_ripple.jinja.text import normalised
from dbt_ripple.reasons import Code
from dbt_ripple.selection.cutoff_reads import (
    KEEPS_ROWS,
    TABLES,
    Answer,
    CutoffReads,
    Question,
    Types,
    kind_of,
)
from dbt_ripple.selection.result import CutOff, RunTest, Selection, StoppedModel, StoppedTest

CAN_DIFFER: Final = "can differ"
DIFFERS: Final = "seen to differ"
"""What a test that runs rests on."""


_ANY_COLUMN: Final = re.compile(r"\*|\bcolumns\b|\bnatural\b|\bunpivot\b|\bby\s+(?:name|all)\b")
"""What may mean a column without its name."""


class BuildStep(NamedTuple):
    """What is built and run next, all at once."""

    models: list[str]
    tests: list[str]
    unit_tests: list[str]

    def __bool__(self) -> bool:
        return bool(self.models or self.tests or self.unit_tests)


@dataclass
class CutoffDecisions:
    """What became of the models and tests of a selection.

    Attributes:
        built: what had to be built or run, each with why.
        stopped: what was neither, each with the equal relations that stopped it.
        skipped: what could not be, each with the relation that was not built.
        seen: of what was run, the relations that were seen to differ for it.
    """

    built: dict[str, str] = field(default_factory=dict)
    stopped: dict[str, list[str]] = field(default_factory=dict)
    skipped: dict[str, str] = field(default_factory=dict)
    seen: dict[str, list[str]] = field(default_factory=dict)

    def __contains__(self, unique_id: object) -> bool:
        return unique_id in self.built or unique_id in self.stopped or unique_id in self.skipped


class Cutoff:
    """Decides what of a selection is built and run.

    Args:
        comparison: of base and head.
        selection: what can differ.
        types: the columns of a relation of head as its engine describes it now, by unique_id; None
            where that is not known.
        always: tests that run whatever is seen.
        kept: seeds whose relation on base is known to hold base's file.
        as_it_is: whether base's relations are compared with as they are, because somebody knows them
            to be made of the same inputs.
        anew: whether base is compiled as if no relation were there (``--full-refresh``).
    """

    def __init__(
        self,
        comparison: Comparison,
        selection: Selection,
        types: Callable[[str], Types | None],
        *,
        always: Collection[str] = (),
        kept: Collection[str] = (),
        as_it_is: bool = False,
        anew: bool = False,
    ) -> None:
        self.comparison = comparison
        self.base, self.head = comparison.base, comparison.head
        self.types = types
        self.always = frozenset(always)
        self.kept = frozenset(kept)
        self.as_it_is = as_it_is
        self.anew = anew
        self.grown: set[str] = set()
        """Incremental models that were there before head built them; whoever builds notes them."""
        self.selection = selection
        self.models = list(selection.models)
        self.tests = [test.unique_id for test in selection.tests]
        self.unit_tests = list(selection.unit_tests)
        self._blocks_tests = {test.blocked_by for test in selection.blocked}
        self.decided = CutoffDecisions()
        self.done: set[str] = set()
        self.failed: set[str] = set()
        self.answers: dict[str, Answer] = {}
        self.dialect = dialect_of(self.head.metadata.adapter_type)
        self.read = CutoffReads(comparison, self.models, self.dialect)
        self.renamed = other_names(self.base, self.head)
        self._own: dict[str, str | None] = {}
        self._repeatable: dict[tuple[int, str], Nondeterminism | None] = {}
        self._in_order: dict[str, bool] = {}

    def prepare(self) -> None:
        """Look at all that needs the analyses, which may be gone once things run."""
        for unique_id in (*self.models, *self.tests):
            self.own(unique_id)
            self.read.reads(unique_id)

    # -- what is next -------------------------------------------------------------------------------

    def next(self) -> BuildStep:
        """What is built and run next; empty once all is decided."""
        models: list[str] = []
        more = True
        while more:  # what stops lets others be decided, too
            more = False
            for unique_id in self.models:
                if unique_id not in self.decided and self._decide(unique_id):
                    more = True
                    if unique_id in self.decided.built:
                        models.append(unique_id)
        tests = [t for t in self.tests if t not in self.decided and self._decide(t)]
        tests = [t for t in tests if t in self.decided.built]
        unit_tests = [u for u in self.unit_tests if self._has_its_inputs(u)]
        self.unit_tests = [u for u in self.unit_tests if u not in unit_tests]
        return BuildStep(models, tests, unit_tests)

    def _has_its_inputs(self, unit_test: str) -> bool:
        """Whether all that the model of a unit test reads is decided: dbt types the fixture by it."""
        models = self.head.parents.get(unit_test, ())
        return not any(
            u in self._to_build and u not in self.decided
            for model in models
            for u in self.read.above(model)
        )

    def built(self, failed: Iterable[str], skipped: Iterable[str] = ()) -> None:
        """What was next has been built; these of it have not been, or were not come to."""
        self.done.update(self.decided.built)
        self.failed.update(failed)
        for unique_id in skipped:
            self.decided.built.pop(unique_id, None)
            above = [u for u in self.read.above(unique_id) if u in self._to_build]
            gone = [u for u in above if u in self.failed or u in self.decided.skipped]
            self.decided.skipped[unique_id] = (gone or above or [unique_id])[0]

    def questions(self) -> list[Question]:
        """What is to be asked of what was built: each set of columns that may stop a reader."""
        asked: dict[Question, None] = {}
        for unique_id in (*self.models, *self.tests):
            if unique_id in self.decided or self.own(unique_id) is not None:
                continue
            own_order = self.repeatable(1, unique_id)
            if own_order is not None and own_order.by >= Cause.CHANCE:
                continue
            in_order = self.counts_in_order(unique_id)
            for relation, columns in self.read.reads(unique_id).items():
                if (
                    relation in self.done
                    and relation not in self.failed
                    and relation not in self.answers
                    and self.uncounted(relation) is None
                    and (not in_order or kind_of(self.head.nodes[relation]) != "view")
                ):
                    asked[Question(relation, columns, in_order)] = None
        return list(asked)

    def answer(self, answers: Mapping[str, Answer]) -> None:
        """What the engine says of the relations asked for."""
        self.answers.update(answers)

    # -- deciding -----------------------------------------------------------------------------------

    def _decide(self, unique_id: str) -> bool:
        """Decide of a model or test, where all that it reads is decided.

        What is to be compared has to be built before; what runs whatever is seen goes with it.
        """
        read = self.read.reads(unique_id)
        above = [u for u in self.read.above(unique_id) if u in self._to_build]
        if any(u not in self.decided for u in above):
            return False
        missing = next((u for u in above if u in self.failed or u in self.decided.skipped), None)
        if missing is not None:
            self.decided.skipped[unique_id] = missing
            return True
        why = self._whatever(unique_id)
        if why is None and any(u in self.decided.built and u not in self.done for u in above):
            return False
        equal: list[str] = []
        seen: list[str] = []
        if why is None:
            in_order = self.counts_in_order(unique_id)
            for relation, columns in read.items():
                if relation in self.decided.stopped:
                    equal += self.decided.stopped[relation]
                elif relation in self.decided.built:
                    question = Question(relation, columns, in_order)
                    differs = self.differs(unique_id, question)
                    if differs is None:
                        equal.append(relation)
                        continue
                    why = why or differs
                    if self._is_observed(question):
                        seen.append(relation)
            if why is None and not equal:
                why = "it is not known what changed it"
        if why is None:
            self.decided.stopped[unique_id] = list(dict.fromkeys(equal))
        else:
            self.decided.built[unique_id] = why
            if seen:
                self.decided.seen[unique_id] = seen
        return True

    def _whatever(self, unique_id: str) -> str | None:
        """Why a model or test runs whatever the comparison shows; None if the comparison decides."""
        why = self.own(unique_id)
        if why is not None:
            return why
        order = self._unrepeatable(1, unique_id, frozenset())
        if order is not None and order.by >= Cause.CHANCE:
            return order.reason
        for relation in self.read.reads(unique_id):
            if relation in self.decided.built:
                if (why := self.uncounted(relation)) is not None:
                    return f"{self._name(relation)} is rebuilt, and {why}"
            elif relation not in self.decided and relation in self.comparison.changed:
                return f"{self._name(relation)} changed, and is not built here"
        return None

    def _is_observed(self, question: Question) -> bool:
        answer = self.answers.get(question.relation)
        why = answer.unequal.get(question) if answer is not None else None
        return why is not None and why.seen

    def differs(self, reader: str, question: Question) -> str | None:
        """Why a rebuilt relation may be another one to a reader; None where it was seen not to be."""
        relation = question.relation
        name = self._name(relation)
        if (why := self.uncounted(relation)) is not None:
            return f"{name} is rebuilt, and {why}"
        answer = self.answers.get(relation)
        if question.in_order and kind_of(self.head.nodes[relation]) == "view":
            return f"{name} is rebuilt, and it depends on the order of its rows, which a view does not have"
        if answer is None or question not in answer.unequal:
            return f"{name} is rebuilt and was not compared"
        unequal = answer.unequal[question]
        if unequal is not None:
            how = "was seen to differ" if unequal.seen else "is rebuilt and could not be compared"
            return f"{name} {how}: {unequal.reason}"
        assert answer.base is not None
        base = {n.lower(): t for n, t in answer.base.items()}
        head = {n.lower(): t for n, t in answer.head.items()}
        other = {n for n in base.keys() | head.keys() if base.get(n) != head.get(n)}
        if other:
            text = (self.head.nodes[reader].compiled_code or "").lower()
            named = sorted(n for n in other if n in text)
            if named or _ANY_COLUMN.search(text):
                which = (named or sorted(other))[0]
                return f"{name}.{which} was added, removed or retyped"
        return None

    def counts_in_order(self, unique_id: str) -> bool:
        """Whether the order of the rows that a model or test reads counts: for it, or for what reads it."""
        return self.repeatable(1, unique_id) is not None or self._passes_order_on(unique_id)

    def _passes_order_on(self, unique_id: str) -> bool:
        """Whether something below a model, of what may run, sees the order of rows."""
        if unique_id not in self._in_order:
            self._in_order[unique_id] = False
            self._in_order[unique_id] = any(
                self._sees_order(reader) or self._passes_order_on(reader)
                for reader in self._readers.get(unique_id, ())
            )
        return self._in_order[unique_id]

    def _sees_order(self, unique_id: str) -> bool:
        """The same of one, by the types that base's catalog knows: nothing is asked before it is built."""
        if self._unrepeatable(1, unique_id, None) is None:
            return False
        above = self.read.above(unique_id)
        return (
            self._unrepeatable(
                1,
                unique_id,
                inexact_columns(
                    above, self.base.types, dialect_of(self.base.metadata.adapter_type)
                ),
            )
            is not None
        )

    @cached_property
    def _readers(self) -> dict[str, list[str]]:
        """What reads each relation, of the models and tests of the selection."""
        readers: dict[str, list[str]] = {}
        for unique_id in (*self.models, *self.tests):
            for relation in self.read.above(unique_id):
                readers.setdefault(relation, []).append(unique_id)
        return readers

    # -- what a reader is ---------------------------------------------------------------------------

    def own(self, unique_id: str) -> str | None:
        """Why a model or test is built or run whatever it reads; None where only that changed it."""
        if unique_id not in self._own:
            self._own[unique_id] = self._own_reason(unique_id)
        return self._own[unique_id]

    def _own_reason(self, unique_id: str) -> str | None:
        if self.comparison.everything:
            return self.comparison.everything[0].message
        if unique_id in self.always:
            return "it is asked for"
        node, then = self.head.nodes[unique_id], self.base.nodes.get(unique_id)
        if then is None:
            return "it is new"
        if node.resource_type == "seed":
            return "its file or its settings changed"
        if node.resource_type == "test":
            before, now = (a.tests.get(unique_id) for a in self.read.analyses)
        else:
            before, now = (a.nodes.get(unique_id) for a in self.read.analyses)
        if before is None or now is None:
            return "it was not analysed"
        if before.status != now.status or self.read.is_unknown(unique_id):
            return "it cannot be analysed"
        if now.introspects or before.introspects or now.unresolved_names or before.unresolved_names:
            return "its Jinja queries the warehouse, or it reads relations that it does not name"
        if not then.compiled_code or not node.compiled_code:
            return "it is not compiled"
        text = rename(then.compiled_code, self.renamed)
        if normalised(text) != normalised(node.compiled_code):
            return "its own SQL changed"
        if CATALOG.search(node.compiled_code):
            return "it reads the warehouse's catalog"
        if unique_id in self._blocks_tests:
            return "it blocks tests"
        if self._settings_differ(then, node):
            return "its own settings changed"
        if self.read.own_hooks(0, unique_id) is None or self.read.own_hooks(1, unique_id) is None:
            return "it has hooks"
        if unique_id in self._hooked:
            return "a hook writes to it"
        if unique_id in self._rested_on:
            return "proven tests rest on it, and on base it did not pass"
        counts = node.config.get("fail_calc") in (None, "count(*)")
        if node.resource_type == "test" and node.config.get("limit") and not counts:
            return "its result depends on its limit"
        if (before.rows_fingerprint, before.fingerprints) == (
            now.rows_fingerprint,
            now.fingerprints,
        ):
            return "it may no longer build"
        return None

    def _settings_differ(self, then: Node, node: Node) -> bool:
        if node.resource_type == "test":
            return of_test(then) != of_test(node)
        one, other = self._config_fingerprints
        return (
            then.config != node.config
            or "materialization" in other.settings_of(node)
            or one.built_with(then) != other.built_with(node)
        )

    @cached_property
    def _config_fingerprints(self) -> tuple[ConfigFingerprints, ConfigFingerprints]:
        return (
            self.comparison.base_context.config_fingerprints,
            self.comparison.head_context.config_fingerprints,
        )

    @cached_property
    def _rested_on(self) -> set[str]:
        """The tests that proven tests rest on, and that are not known to have passed on base.

        Where one is stopped, what is known is that it is as it was there.
        """
        results = [r for r in self.base.run_results if r.unique_id.startswith("test.")]
        passed = {r.unique_id for r in results if r.status == "pass" and not r.failures}
        rested_on = {fact for test in self.selection.proven for fact in test.facts}
        return rested_on - passed if results else set()

    @cached_property
    def _hooked(self) -> set[str]:
        return {u for hook in self.comparison.hooks for u in (hook.owner, *hook.writes)}

    @cached_property
    def _to_build(self) -> set[str]:
        return set(self.models)

    # -- what counts as equal -----------------------------------------------------------------------

    def uncounted(self, relation: str) -> str | None:
        """Why a rebuilt relation never counts as equal; None where it may."""
        if self.as_it_is and any(
            kind_of(node) in KEEPS_ROWS
            for side in (self.base, self.head)
            if (node := side.nodes.get(relation)) is not None
        ):
            return "it keeps rows of earlier runs"
        return self.unmade(relation) or self.unsettled(relation)

    def unmade(self, relation: str) -> str | None:
        """Why base's relation cannot be made beside it over the same inputs."""
        node, then = self.head.nodes[relation], self.base.nodes.get(relation)
        if then is None:
            return "base has no such relation"
        if node.resource_type == "seed":
            return None if relation in self.kept else "base's file is not known to be loaded"
        for side in (then, node):
            kind = kind_of(side)
            if side.resource_type != "model" or not (
                kind in TABLES or (kind == "incremental" and self._is_whole(relation))
            ):
                return f"{kind} relations are not compared"
            if side.is_python or not side.compiled_code:
                return "it has no compiled SQL"
        if _contract(then) != _contract(node):
            return "its contract changed"
        if self.read.own_hooks(0, relation) is None or self.read.own_hooks(1, relation) is None:
            return "it has hooks"
        if relation in self._hooked or self.comparison.everything:
            return "hooks write to it"
        if self.read.is_unknown(relation):
            return "it cannot be analysed"
        for analysis in self.read.analyses:
            if analysis.nodes[relation].introspects:
                return "it queries the warehouse while it compiles"
        if "materialization" in self._config_fingerprints[1].settings_of(
            node
        ) or "materialization" in self._config_fingerprints[0].settings_of(then):
            return "its materialization is a macro of the project"
        if self.as_it_is:
            same = then.relation_name == node.relation_name
            return "it overwrites base's relation" if same else None
        for parent in self.read.base_parents(relation):
            source = parent in self.base.nodes and self.base.nodes[parent].resource_type == "source"
            if source and (parent in self.comparison.changed or parent not in self.head.nodes):
                return f"its source {self._name(parent)} is another relation on head"
            if parent not in self._to_build or parent in self.decided.stopped:
                continue
            if parent not in self.decided.built:
                return f"on base it reads {self._name(parent)}, which is not built yet"
            if (why := self.unmade(parent)) is not None:
                return f"it reads {self._name(parent)}, which cannot be compared: {why}"
            if (self.base.nodes[parent].relation_name or "?") not in (then.compiled_code or ""):
                return f"base's SQL does not name {self._name(parent)}"
        return None

    def _is_whole(self, relation: str) -> bool:
        """Whether an incremental model holds all rows of its query, on both sides."""
        if relation in self.grown:
            return False
        return self.anew or not (
            self._config_fingerprints[0].settings_of(self.base.nodes[relation]).keys()
            & {"branches"}
        )

    def unsettled(self, relation: str) -> str | None:
        """Why a relation may differ each time it is built."""
        if self.head.nodes[relation].resource_type == "seed":
            return None
        for side in (0, 1):
            reason = self.repeatable(side, relation)
            if reason is None or reason.by == Cause.TIES:
                reason = self._unsettled_above(side, relation)
            if reason is not None:
                return f"its rows can differ from one build to the next: {reason.reason}"
        return None

    def _unsettled_above(self, side: int, relation: str) -> Nondeterminism | None:
        """The same because of what it reads: views, and what else is built here."""
        project = (self.base, self.head)[side]
        seen = {relation}
        ahead = [(relation, False)]
        while ahead:
            current, stored = ahead.pop()
            for parent in self.read.above(current) if side else self.read.base_parents(current):
                node = project.nodes.get(parent)
                if parent in seen or node is None or node.resource_type != "model":
                    continue
                view = kind_of(node) == "view" and not stored
                if not view and parent not in self.decided.built:
                    continue
                seen.add(parent)
                reason = self.repeatable(side, parent)
                if reason is not None and reason.by >= (Cause.ORDER if view else Cause.CHANCE):
                    return reason
                ahead.append((parent, stored or not view))
        return None

    def repeatable(self, side: int, unique_id: str) -> Nondeterminism | None:
        """Why a node's SQL may return other rows for the same input rows, on base or on head."""
        key = (side, unique_id)
        if key not in self._repeatable:
            reason = self._unrepeatable(side, unique_id, frozenset())
            if reason is None and self._unrepeatable(side, unique_id, None) is not None:
                # It is a matter of types, and only then the engine is asked for them.
                reason = self._unrepeatable(side, unique_id, self._inexact(unique_id))
            self._repeatable[key] = reason
        return self._repeatable[key]

    def _unrepeatable(
        self, side: int, unique_id: str, inexact: Iterable[str] | None
    ) -> Nondeterminism | None:
        node = (self.base, self.head)[side].nodes[unique_id]
        if node.is_python or not node.compiled_code:
            return Nondeterminism("it has no compiled SQL", Cause.UNKNOWN)
        if self.read.status(side, unique_id) == "opaque" and self.read.is_unknown_on(
            side, unique_id
        ):
            return Nondeterminism("it cannot be analysed", Cause.UNKNOWN)
        return nondeterminism(node.compiled_code, self.dialect, inexact)

    def _inexact(self, unique_id: str) -> set[str] | None:
        """The names of the columns it reads that are floating point numbers and the like."""
        names: set[str] = set()
        for relation in dict.fromkeys(
            (*self.read.above(unique_id), *self.read.base_parents(unique_id))
        ):
            types = self.types(relation)
            if types is None:
                return None
            names |= {n.lower() for n, t in types.items() if inexact_type(t, self.dialect)}
        return names

    # -- the result ---------------------------------------------------------------------------------

    def result(self) -> CutOff:
        """What became of each test and model."""
        decided = self.decided
        selected = {test.unique_id: test for test in self.selection.tests}
        compared = [why for a in self.answers.values() for why in a.unequal.values()]
        return CutOff(
            tests=[
                RunTest(
                    **msgspec.structs.asdict(selected[test]),
                    rests_on=DIFFERS if test in decided.seen else CAN_DIFFER,
                    because=decided.built[test],
                    relations=decided.seen.get(test, []),
                )
                for test in self.tests
                if test in decided.built
            ],
            stopped=[
                StoppedTest(
                    unique_id=test,
                    name=selected[test].name,
                    reason=Code.EQUAL_TO_BASE(names=[*map(self._name, decided.stopped[test])]),
                    equal=decided.stopped[test],
                )
                for test in self.tests
                if test in decided.stopped
            ],
            skipped=dict(decided.skipped),
            built={u: decided.built[u] for u in self.models if u in decided.built},
            stopped_models=[
                StoppedModel(unique_id=u, equal=decided.stopped[u])
                for u in self.models
                if u in decided.stopped
            ],
            equal=sum(why is None for why in compared),
            compared=len(compared),
        )

    def _name(self, unique_id: str) -> str:
        node = self.head.nodes.get(unique_id) or self.base.nodes.get(unique_id)
        return node.display_name if node else unique_id


def _contract(node: Node) -> list[tuple[str, str | None]] | None:
    """The types that a contract gives to columns; None without one."""
    if not node.contract_enforced:
        return None
    return [(column.name or key, column.data_type) for key, column in node.columns.items()]
