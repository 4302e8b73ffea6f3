"""Rules 14-16: which impacted tests cannot fail, proven by the tests that passed on base.

The promise is: CI is never green where running everything would have made it red. A test is
*proven* (and left out) only if one of these is shown for its query, linked with facts on both
sides:

* it returns the same rows as on base, where it passed;
* each row it returns is one that it returned on base, where it returned none.

A fact about base was observed there: the test passed and returned no row. A fact about head is
either unaffected, so it was observed on base, or is checked by a test that runs on head and fails
CI. A proof never rests on another proven test: it rests on what that one rests on.

A test that returned no row proves what its query says, whatever the test is called. So there is no
list of tests that check every row: every test whose query only filters rows qualifies, singular
ones like generic ones.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from functools import cached_property
from itertools import groupby
from typing import Final

from dbt_ripple.artifacts import CatalogColumn, Node, Project
from dbt_ripple.changes import Comparison
from dbt_ripple.changes.compile_inputs import rename
from dbt_ripple.changes.compiled_sql_reuse import other_names
from dbt_ripple.flow.containment import INJECTIVE, ONTO, Embeddings, conditions
from dbt_ripple.flow.identifiers import dialect_of
from dbt_ripple.flow.row_constraints import FactUse, KnownConstraints
from dbt_ripple.flow.varying_columns import EVERYTHING
from dbt_ripple.graph.column_edges import edges_into
from dbt_ripple.graph.config_fingerprints import hooks_of
from dbt_ripple.graph.hooks import deletes_as_filters
from dbt_ripple.graph.introspection import IntrospectedParts
from dbt_ripple.graph.lineage_tables import ROWS
from dbt_ripple.graph.linking.compared_side import ComparedSide
from dbt_ripple.graph.linking.fact_mode import Evidence, FactMode, TestRows
from dbt_ripple.graph.linking.project_context import ProjectContext
from dbt_ripple.graph.traversal import Vertex, reach_all
from dbt_ripple.reasons import Code, Reason
from dbt_ripple.selection.evaluated_otherwise import is_guarded_as_before, views_of
from dbt_ripple.selection.result import ProvenTest

_VIEWS: Final = frozenset({"view", "ephemeral"})
_ONLY_ROWS_FAIL: Final = re.compile(r"\s*(!=|<>|>)\s*0\s*")


def proven_tests(
    comparison: Comparison,
    impacted: Iterable[str],
    *,
    assume_passed: bool = False,
    runs: Callable[[str], bool] | None = None,
    built: Collection[str] = (),
) -> tuple[list[ProvenTest], list[Reason], dict[str, Reason]]:
    """The impacted tests that need not run, notes, and what is missing to prove the others.

    Args:
        comparison: of base and head.
        impacted: tests that are as they were, and of which something they read has changed.
        assume_passed: take all of base's tests as passed, without a row, where the state does not
            tell.
        runs: whether a test is run if it is selected; by default all are. A test that is not, is
            no reason to leave another out, unless it did not change.
        built: the models and seeds that are built anew.

    Returns:
        The proven tests in the order of ``impacted``, each with the argument and the tests it rests
        on; what could not be used; and of each test that is not proven what is missing for it.
    """
    impacted = list(impacted)
    base = comparison.base
    if not impacted or comparison.everything:
        return [], [], {}
    passed: dict[str, int] | None = None
    if not assume_passed:
        passed = _passed(base)
        if not passed:
            stale = any(r.status == "pass" for r in base.run_results)
            note = Code.RESULTS_STALE() if stale else Code.NOTHING_TESTED()
            return [], [note], dict.fromkeys(impacted, Code.NO_RESULTS())
    proofs = _Proofs(comparison, frozenset(impacted), passed, runs, built)
    proven = proofs.proven(impacted)
    typed = base.types or len(proven) == len(impacted)
    notes = [] if typed else [Code.TYPES_UNKNOWN()]
    return proven, notes, proofs.missing(impacted, {test.unique_id for test in proven})


def _passed(base: Project) -> dict[str, int]:
    """The tests that passed on base, with the rows each returned."""
    invocation = base.metadata.invocation_id
    return {
        result.unique_id: result.failures or 0
        for result in base.run_results
        if result.status == "pass"
        and result.unique_id in base.nodes
        and base.nodes[result.unique_id].resource_type == "test"
        and result.failures is not None
        and not (invocation and result.invocation_id and result.invocation_id != invocation)
    }


def _counts_rows(node: Node) -> bool:
    """Whether a test's number of failures is the number of rows it returns."""
    fail_calc = str(node.config.get("fail_calc") or "count(*)")
    return "".join(fail_calc.lower().split()) == "count(*)" and node.config.get("limit") is None


def _fails_on_rows(node: Node) -> bool:
    """Whether a test fails CI as soon as it returns a row."""
    if node.resource_type != "test" or not _counts_rows(node):
        return False
    severity = str(node.config.get("severity") or "error").lower()
    error_if = str(node.config.get("error_if") or "!= 0")
    return (
        severity == "error"
        and _ONLY_ROWS_FAIL.fullmatch(error_if) is not None
        and node.config.get("enabled", True) is not False
    )


class _Proofs:
    """The two sides linked with facts, and what can be proven.

    Of the tests only those are looked at that read what is linked.
    """

    def __init__(
        self,
        comparison: Comparison,
        impacted: frozenset[str],
        passed: dict[str, int] | None,
        runs: Callable[[str], bool] | None,
        built: Collection[str],
    ) -> None:
        base, head = comparison.base, comparison.head
        self.comparison = comparison
        self.impacted = impacted
        self.passed = passed
        self.runs = runs
        self.built = built
        self.failed = {r.unique_id for r in base.run_results if r.status in ("fail", "warn")}
        before, now = comparison.base_analysis, comparison.head_analysis
        unchanged = comparison.unchanged()
        settled = frozenset(self.settled())
        known_constraints = KnownConstraints()
        seeds = comparison.seeds
        columns = base.types

        def of_unmoved(unique_id: str) -> Iterable[CatalogColumn]:
            return columns.get(unique_id, ()) if unique_id in unchanged else ()

        loaded = self.loaded_on_base()
        # What changed is loaded anew, or CI is red.
        loaded_on_head = [
            node.unique_id
            for node in head.of_type("seed")
            if node.unique_id in built or (node.unique_id in loaded and node.unique_id in unchanged)
        ]
        contexts = []
        for context, analysis in (
            (comparison.base_context, before),
            (comparison.head_context, now),
        ):
            if filtered := deletes_as_filters(context, analysis):
                side = context.project
                in_other_order = context.in_other_order
                context = ProjectContext(side.having(nodes=side.nodes | filtered))
                context.in_other_order = in_other_order
            contexts.append(context)
        self.base = FactMode(
            ComparedSide.of(contexts[0], before, unchanged, comparison.cache, seeds.base),
            Evidence(self.empty, lambda u: columns.get(u, ()), settled, loaded),
            known_constraints,
        )
        self.head = FactMode(
            ComparedSide.of(contexts[1], now, unchanged, comparison.cache, seeds.head),
            Evidence(self.holds_on_head, of_unmoved, settled, loaded_on_head),
            known_constraints,
        )
        self.embeddings = Embeddings()
        self.repeating: set[str] = set()
        """The tests that are proven because another one finds all that they could."""
        # What their columns are once they are built, compiled SQL does not tell (rule 11), unless
        # they are settled. What they query enters each column: where none changed, that did not.
        self.blurred = {
            unique_id
            for unique_id, change in comparison.changed.items()
            if (analysed := now.nodes.get(unique_id)) is not None
            and (
                analysed.status in ("opaque", "broken")
                or (analysed.introspects and unique_id not in settled)
            )
            and (change.redefined or change.added or change.removed or not analysed.columns)
        }

    def loaded_on_base(self) -> list[str]:
        """The seeds that base's last build is known to have loaded."""
        base = self.comparison.base
        invocation = base.metadata.invocation_id
        done = {
            r.unique_id
            for r in base.run_results
            if r.status == "success"
            and not (invocation and r.invocation_id and r.invocation_id != invocation)
        }
        return [node.unique_id for node in base.of_type("seed") if node.unique_id in done]

    def settled(self) -> Iterator[str]:
        """The nodes and tests that query the warehouse, and whose compiled SQL is what will run.

        What they query is the same on both sides, and it was there when head was compiled: where
        its relations have base's names, as base has built them; else head's SQL is base's. Where
        head queries more than base did, its SQL shows that it was there.
        """
        comparison = self.comparison
        base, head = comparison.base, comparison.head
        before, now = comparison.base_analysis, comparison.head_analysis
        names: dict[str, str] | None = None
        for sides in ((before.nodes, now.nodes), (before.tests, now.tests)):
            for unique_id, analysed in sides[1].items():
                then = sides[0].get(unique_id)
                if (
                    not analysed.introspects
                    or then is None
                    or then.status != "analysed"
                    or analysed.status != "analysed"
                    or then.reason
                    or analysed.reason
                ):
                    continue
                there, here = base.nodes[unique_id], head.nodes[unique_id]
                if hooks_of(there) or hooks_of(here) or _calls_functions(here):
                    continue
                names = other_names(base, head) if names is None else names
                there_sql, here_sql = there.compiled_code or "", here.compiled_code or ""
                introspected = {
                    base.nodes[u].relation_name for u in analysed.introspects if u in base.nodes
                }
                same_names = introspected.isdisjoint(names)
                if (
                    then.introspection_fingerprint == analysed.introspection_fingerprint
                    and then.introspects == analysed.introspects
                ):
                    if same_names or rename(there_sql, names) == here_sql:
                        yield unique_id
                elif same_names and unique_id in now.nodes:
                    reads = comparison.head_context.introspection.of(here)
                    if (
                        reads.parts <= IntrospectedParts.COLUMNS
                        and not reads.values
                        and self.was_there(unique_id)
                    ):
                        yield unique_id

    def was_there(self, unique_id: str) -> bool:
        """Whether head's SQL shows that what the node queries was there, and it has not changed.

        A relation that was not there has no columns: SQL that is made of them reads none, or ``*``.
        """
        from dbt_ripple.flow.query_text import names_in

        comparison = self.comparison
        base, head, now = comparison.base, comparison.head, comparison.head_analysis
        read: dict[str, set[str]] = {}
        for edge in edges_into(now.edges, [unique_id]):
            read.setdefault(edge[0], set()).add(edge[1].lower())
        sql = head.nodes[unique_id].compiled_code or ""
        written = names_in(sql, dialect_of(head.metadata.adapter_type))
        return all(
            looked in base.nodes
            and looked in now.nodes
            and looked not in comparison.changed
            and bool(columns := {name.lower() for name in now.nodes[looked].columns})
            and columns <= read.get(looked, set()) & written
            for looked in now.nodes[unique_id].introspects
        )

    def rows(self, test: str) -> int | None:
        """The rows a test returned on base, where it passed; None where that is not known."""
        if self.passed is not None:
            return self.passed.get(test)
        node = self.comparison.base.nodes.get(test)
        return 0 if node is not None and _fails_on_rows(node) else None

    def empty(self, test: str) -> bool:
        """Whether a test returned no row on base."""
        return self.rows(test) == 0 and _counts_rows(self.comparison.base.nodes[test])

    def running(self, test: str) -> bool:
        """Whether a test of head is to run, unless it is proven: its query or what it reads changed."""
        if test in self.impacted:
            return True
        now = self.comparison.head_analysis.tests.get(test)
        then = self.comparison.base_analysis.tests.get(test)
        return now is not None and (
            then is None
            or (then.rows_fingerprint, then.fingerprints, then.reason)
            != (now.rows_fingerprint, now.fingerprints, now.reason)
        )

    def holds_on_head(self, test: str) -> bool:
        """Whether CI is red unless a test returns no row on head."""
        if test not in self.comparison.head_analysis.tests:
            return False
        if not _fails_on_rows(self.comparison.head.nodes[test]):
            return False
        if self.running(test):
            return self.runs is None or self.runs(test)
        return self.empty(test)

    def proven(self, tests: list[str]) -> list[ProvenTest]:
        """Which of these tests are proven."""
        # Base first: its catalog has the types of columns in relations that changed, and a column of
        # the same fingerprint has the same type on head.
        for test in tests:
            if self.rows(test) is not None:
                self.base.rows_of(test)
        arguments = {}
        for test in tests:
            argument = self.argument(test)
            if argument is not None:
                arguments[test] = argument
        self.repeat(tests, arguments)
        executed_by = self.executed_by(arguments)
        supporting = {test: self.supporting_tests(test, arguments) for test in arguments}
        of_head = self.comparison.head_analysis.tests
        return [
            ProvenTest(
                unique_id=test,
                reason=self.in_words(argument, arguments, executed_by.get(test, {})),
                facts=sorted(
                    supporting[test].union(
                        u for u in executed_by.get(test, {}).values() if u in of_head
                    )
                ),
            )
            for test, argument in arguments.items()
        ]

    def repeat(self, tests: list[str], arguments: dict[str, _Argument]) -> None:
        """Add to the arguments those of tests that could only find what another one finds, too.

        A row that breaks what is asked of a column breaks it further up already, where it comes from,
        and there is a test for it. So each row of the one is a row of the other, whatever the rows
        are; both are looked at on head. No test comes to rest on itself by way of others.
        """
        finding: dict[bytes, list[str]] = {}
        for other in list(self.head.tested):
            rows = self.followed(other) if self.holds_on_head(other) else None
            for asked in conditions(rows.facts.rows) if rows is not None else ():
                finding.setdefault(asked, []).append(other)
        nodes = self.comparison.head.nodes
        # Of two that find the same, the one further up runs.
        for test in sorted(tests, key=lambda test: -len(set(self.above(test)))):
            now = self.followed(test) if test not in arguments else None
            if now is None or test in self.failed or not _passes_without_rows(nodes[test]):
                continue
            asked_of = conditions(now.facts.rows)
            for other in dict.fromkeys(o for asked in asked_of for o in finding.get(asked, ())):
                rows_of_other = self.head.rows_of(other)
                if (
                    other == test
                    or rows_of_other is None
                    or self.embeddings.embed(now.facts.rows, rows_of_other.facts.rows) is None
                ):
                    continue
                words = f"each row it could return is one of {nodes[other].name}"
                use = FactUse(nodes[test].name, words, frozenset({other}))
                steps = sorted({*now.steps, *rows_of_other.steps, use})
                argument = _Argument(steps, True, of_base=False)
                if test not in self.rested_on(argument, arguments):
                    arguments[test] = argument
                    self.repeating.add(test)
                    break

    @staticmethod
    def rested_on(argument: _Argument, proven: dict[str, _Argument]) -> set[str]:
        """All tests that an argument rests on, and what these rest on where they are proven."""
        tests: set[str] = set()
        ahead = [argument]
        while ahead:
            for step in ahead.pop().steps:
                new = step.tests - tests
                tests |= new
                ahead += [proven[test] for test in new if test in proven]
        return tests

    def followed(self, test: str) -> TestRows | None:
        """A test's rows on head; None where they are not known."""
        head = self.comparison.head
        analysed = self.comparison.head_analysis.tests.get(test)
        if test not in head.nodes or analysed is None or analysed.status != "analysed":
            return None
        if self.blurred and not self.blurred.isdisjoint(self.above(test)):
            return None
        return self.head.rows_of(test)

    def argument(self, test: str) -> _Argument | None:
        """Why a test cannot fail on head unless a test that it rests on fails; None if it might."""
        head = self.comparison.head
        then_analysed = self.comparison.base_analysis.tests.get(test)
        now = self.followed(test)
        if now is None:
            return None
        steps = sorted(now.steps)
        if any(test in step.tests for step in steps):
            return None
        if now.facts.empty is not None and _passes_without_rows(head.nodes[test]):
            # It may not have run on base. Where it failed there, that it is mended has to be seen.
            return None if test in self.failed else _Argument(steps, True, of_base=False)
        if self.rows(test) is None or then_analysed is None or then_analysed.status != "analysed":
            return None
        then = self.base.rows_of(test)
        if then is None:
            return None
        bits = self.embeddings.embed(now.facts.rows, then.facts.rows)
        if bits is None:
            return None
        same = bits & INJECTIVE and bits & ONTO and now.fingerprints == then.fingerprints
        if same:
            return _Argument(steps, True)
        if self.empty(test) and _passes_without_rows(head.nodes[test]):
            return _Argument(steps, False)
        return None

    def missing(self, tests: Iterable[str], proven: Collection[str]) -> dict[str, Reason]:
        """Of each of these tests that is not proven, what is missing for it."""
        return {test: self.what_is_missing(test) for test in tests if test not in proven}

    def what_is_missing(self, test: str) -> Reason:
        """Why no argument was found for a test; the first thing that stands in its way."""
        base, head = self.comparison.base, self.comparison.head
        if test not in base.nodes or test not in self.comparison.base_analysis.tests:
            return Code.NOT_ON_BASE()
        if self.rows(test) is None:
            return self.result_on_base(test)
        for side, analysis in (
            ("base", self.comparison.base_analysis),
            ("head", self.comparison.head_analysis),
        ):
            analysed = analysis.tests[test]
            if analysed.status != "analysed":
                return Code.NOT_FOLLOWED(
                    side=side, because=analysed.reason or Code.NO_REASON_GIVEN()
                )
        above = list(self.above(test))
        for unique_id in above:
            if self.writes_otherwise(unique_id):
                name = head.nodes[unique_id].display_name
                return Code.HOOK_CHANGED(name=name)
        # What stands furthest above: the others are as they are because of it.
        for unique_id in reversed(above):
            if unique_id in self.blurred:
                return self.why_blurred(unique_id)
        then, now = self.base.rows_of(test), self.head.rows_of(test)
        if then is None or now is None:
            own = self.of_its_own(test)
            return Code.ROWS_UNKNOWN_BECAUSE(because=own) if own else Code.ROWS_UNKNOWN()
        if test in self.repeating or self.argument(test) is not None:
            return Code.SHOWS_A_VIEW()
        if self.embeddings.embed(now.facts.rows, then.facts.rows) is None:
            return Code.ROWS_NOT_AMONG_BASE()
        if not _passes_without_rows(head.nodes[test]):
            return Code.MAY_PASS_WITH_ROWS()
        if not self.empty(test):
            return Code.RETURNED_ROWS(rows=self.rows(test) or 0)
        return Code.FACTS_MAY_NOT_HOLD()

    def writes_otherwise(self, unique_id: str) -> bool:
        """Whether a hook of a node, or what it calls, is not the same on both sides."""
        if unique_id not in self.comparison.changed:
            return False
        # Without the hooks that are filters, whatever these are.
        hooks = [
            (hooks_of(node), context.config_fingerprints.hook_code(node))
            for context in (self.base.linker.context, self.head.linker.context)
            if (node := context.project.nodes.get(unique_id)) is not None and hooks_of(node)
        ]
        return len(hooks) == 1 or (len(hooks) == 2 and hooks[0] != hooks[1])

    def result_on_base(self, test: str) -> Reason:
        """Why a test is not known to have passed on base."""
        base = self.comparison.base
        results = [r for r in base.run_results if r.unique_id == test]
        if not results:
            return Code.NOT_RUN_ON_BASE() if self.passed is not None else Code.RESULTS_NOT_READ()
        status = results[-1].status
        return (
            Code.RESULT_OF_ANOTHER_COMMAND()
            if status == "pass"
            else Code.RESULT_ON_BASE(status=status)
        )

    def why_blurred(self, unique_id: str) -> Reason:
        """Why nothing is known of the rows below a relation."""
        name = self.comparison.head.nodes[unique_id].display_name
        analysed = self.comparison.head_analysis.nodes[unique_id]
        because = analysed.reason or Code.NO_REASON_GIVEN()
        if analysed.status == "broken":
            return Code.CANNOT_BE_BUILT(name=name, because=because)
        if analysed.status == "opaque":
            return Code.NOT_ANALYSED(name=name, because=because)
        if hooks_of(self.comparison.head.nodes[unique_id]):
            return Code.HOOKS_READ(name=name)
        return Code.QUERIES_WAREHOUSE(name=name)

    def of_its_own(self, test: str) -> Reason | None:
        node = self.comparison.head.nodes[test]
        if self.head.linker.context.config_fingerprints.of(node):
            return Code.MACRO_REPLACED()
        if self.comparison.head_analysis.tests[test].introspects:
            return Code.QUERIES_OR_READS_UNNAMED()
        return None

    def above(self, test: str) -> Iterator[str]:
        """Everything on head that a test reads, however far up."""
        parents = self.comparison.head.parents
        looked = {test}
        ahead = [test]
        while ahead:
            for parent in parents.get(ahead.pop(), ()):
                if parent not in looked:
                    looked.add(parent)
                    ahead.append(parent)
                    yield parent

    def supporting_tests(self, test: str, proven: dict[str, _Argument]) -> set[str]:
        """The tests that a proven test rests on, none of them proven."""
        tests: set[str] = set()
        looked: set[str] = set()
        ahead = [test]
        while ahead:
            for step in proven[ahead.pop()].steps:
                for supporting_test in step.tests - looked:
                    looked.add(supporting_test)
                    if supporting_test in proven:
                        ahead.append(supporting_test)
                    else:
                        tests.add(supporting_test)
        return tests

    def in_words(
        self, argument: _Argument, proven: dict[str, _Argument], executed_by: dict[str, str]
    ) -> Reason:
        """The argument, one part for each fact it uses."""
        parts: list[str | Reason] = []
        for step in argument.steps:
            if any(self.running(t) and t not in proven for t in step.tests):
                parts.append(Code.FACT_RUNS(fact=step.words, tests=sorted(step.tests)))
            elif step.tests:
                parts.append(Code.FACT_PASSED(fact=step.words))
            else:
                parts.append(Code.FACT(fact=step.words))
        if not argument.same:
            parts.append(Code.ROWS_WERE_THERE())
        elif not parts:
            parts.append(Code.SAME_ROWS())
        nodes = self.comparison.head.nodes
        for executing, views in groupby(executed_by, key=executed_by.__getitem__):
            is_test = nodes[executing].resource_type == "test"
            code = Code.TEST_SHOWS if is_test else Code.TABLE_SHOWS
            names = [nodes[view].display_name for view in views]
            parts.append(code(name=nodes[executing].name, views=[*names]))
        return Code.PROVEN(because=parts)

    def executed_by(self, proven: dict[str, _Argument]) -> dict[str, dict[str, str]]:
        """For each proven test the changed views that it reads, and what executes each of them.

        To build a view does not run its query, so a mistake that only shows when it runs (a cast
        that fails) would go by unseen. What runs it is a test, or a table that is built and keeps
        all that the proven test reads of it. Where neither executes a view, a proven test is taken
        out of ``proven``. Where its rows are not among base's, over which it has evaluated the same
        already, or are chosen in other words, that test has to read all of what may fail that it reads
        itself: an engine does not evaluate what is not read.
        """
        result: dict[str, dict[str, str]] = {}
        # The last first: what executes a view executes those it reads.
        for view in reversed(list(self.changed_views())):
            tests = self.readers(view)
            unseen = []
            for test in tests:
                table = self.built_of_as_much(test, view) if test in proven else None
                if table is not None:
                    result.setdefault(test, {})[view] = table
                elif test in proven:
                    unseen.append(test)
            running = [t for t in tests if t not in proven and self.runs_on_head(t)]
            may_fail = self.columns_that_may_fail(view) if unseen else frozenset()
            guarded = not may_fail or is_guarded_as_before(self.comparison, view)
            for test in unseen:
                failing = (
                    frozenset()
                    if guarded and proven[test].of_base
                    else self.failing(test, view, may_fail)
                )
                executing = next((t for t in running if failing <= self.reads[t][view]), None)
                if executing is None:
                    running.append(test)
                    del proven[test]
                    result.pop(test, None)
                else:
                    result.setdefault(test, {})[view] = executing
        return result

    def columns_that_may_fail(self, view: str) -> frozenset[str]:
        """The columns of a view whose values may fail when they are read, in lower case."""
        analysed = self.comparison.head_analysis.nodes[view]
        columns = frozenset(name.lower() for name in analysed.columns)
        named = views_of(self.comparison)[1].may_fail(view)
        return columns if EVERYTHING in named else named & columns

    def failing(self, test: str, view: str, may_fail: frozenset[str]) -> frozenset[str]:
        """What a test reads of these columns of a view, itself or through other views."""
        if not may_fail:
            return may_fail
        head, analysis = self.comparison.head, self.comparison.head_analysis
        between = {
            u for u in self.above(test) if u != view and head.nodes[u].materialized in _VIEWS
        }
        analysed = (analysis.nodes[u].status for u in between)
        if analysis.tests[test].status != "analysed" or any(s != "analysed" for s in analysed):
            return may_fail
        read: dict[Vertex, list[Vertex]] = defaultdict(list)
        for edge in edges_into(analysis.edges, between):
            read[edge.child_id, edge.child_column].append((edge.parent_id, edge.parent_column))
        rows = [(u, ROWS) for u in (*between, view)]
        columns = [(of, c) for of, names in self.reads[test].items() for c in names]
        names = {u: {c.lower(): c for c in analysis.nodes[u].columns} for u in between}
        starts = [*rows, *((of, names.get(of, {}).get(c, c)) for of, c in columns)]
        return may_fail & {c.lower() for u, c in reach_all(starts, read) if u == view}

    @cached_property
    def reads(self) -> Mapping[str, Mapping[str, set[str]]]:
        """The columns that each test reads of each relation, in lower case."""
        reads: dict[str, dict[str, set[str]]] = defaultdict(lambda: defaultdict(set))
        for test, relation, column in self.comparison.head_analysis.test_columns:
            reads[test][relation].add(column.lower())
        return reads

    def built_of_as_much(self, test: str, view: str) -> str | None:
        """A table that is built on head of all rows of a view, with the values a test reads of it."""
        needed = self.head.read_of(test, view)
        if not needed:
            return None
        nodes = self.comparison.head.nodes
        for child in self.comparison.head.children.get(view, ()):
            if (
                child in self.built
                and nodes[child].materialized == "table"
                and self.head.keeps(child, view, needed)
            ):
                return child
        return None

    def runs_on_head(self, test: str) -> bool:
        return self.running(test) and (self.runs is None or self.runs(test))

    def changed_views(self) -> Iterator[str]:
        nodes = self.comparison.head.nodes
        for unique_id in self.comparison.changed:
            node = nodes.get(unique_id)
            if node is not None and node.materialized in _VIEWS:
                yield unique_id

    def readers(self, unique_id: str) -> list[str]:
        """The tests that read a view, directly or through other views."""
        head = self.comparison.head
        tests: dict[str, None] = {}
        looked = {unique_id}
        ahead = [unique_id]
        while ahead:
            for child in head.children.get(ahead.pop(), ()):
                node = head.nodes[child]
                if node.resource_type == "test":
                    tests[child] = None
                elif child not in looked and node.materialized in _VIEWS:
                    looked.add(child)
                    ahead.append(child)
        return list(tests)


class _Argument:
    """Why a test is proven: the facts it uses, whether its rows are the same, and whether they are all among base's."""

    __slots__ = ("of_base", "same", "steps")

    def __init__(self, steps: list[FactUse], same: bool, *, of_base: bool = True) -> None:
        self.steps = steps
        self.same = same
        self.of_base = of_base


def _calls_functions(node: Node) -> bool:
    return any(parent.startswith("function.") for parent in node.depends_on.nodes)


def _passes_without_rows(node: Node) -> bool:
    """Whether a test passes for sure when it returns no row."""
    limits = [node.config.get("error_if"), node.config.get("warn_if")]
    plain = (s is None or re.fullmatch(r"\s*((!=|<>)\s*0|>\s*\d+)\s*", str(s)) for s in limits)
    return _counts_rows(node) and all(plain)
