"""What CI must build, because only building shows what no fingerprint does (rule 13).

A fingerprint says whether data can differ, not whether a build succeeds. So these are built,
besides relations of which a vertex changed:

* A relation that was edited and means the same: an engine may evaluate the operands of an AND in
  their new order, and an error in a CTE that nothing reads is an error all the same.
* A relation whose query names a changed column of a parent without using it, as in a CTE that
  nobody reads: with another type it may not compile.
* A relation that is built in another way: another materialization, constraint, index, grant or
  location. `graph.node_properties` says what a build depends on.
* A relation whose rows come in another order, if something that changed reads them: it is the same
  bag of rows, but a reader that takes the first of them takes another one.
* A table or a view that reads a view which is evaluated otherwise (`selection.evaluated_otherwise`).
* A user-defined function that is new or gives other values: what calls it is built anew, and would
  call base's.
* What hooks of these write to, and the relations whose hooks write to these.
* What inlines an edited ephemeral model. That has no relation: its text is part of the query of
  every relation and test that refers to it, directly or through other ephemeral models.

And which tests are blocked (`blocked_tests`), because what is built above them cannot be.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping

from dbt_ripple.artifacts import Macro, Node, Project
from dbt_ripple.changes import Comparison
from dbt_ripple.changes.compile_inputs import rename
from dbt_ripple.changes.compiled_sql_reuse import other_names
from dbt_ripple.changes.rewritten import rewritten
from dbt_ripple.changes.verdict import BuildVerdict, verdict_of
from dbt_ripple.flow.identifiers import dialect_of
from dbt_ripple.graph.broken_nodes import BUILT, inlined_by
from dbt_ripple.graph.config_fingerprints import ConfigFingerprints
from dbt_ripple.graph.macros import NAMING, dispatched
from dbt_ripple.graph.traversal import reach
from dbt_ripple.reasons import Code, Reason
from dbt_ripple.selection.evaluated_otherwise import readers_of_what_may_fail
from dbt_ripple.selection.result import BlockedTest


def to_build(comparison: Comparison) -> list[str]:
    """The unique_ids of what CI must build, in head's order."""
    head = comparison.head
    if comparison.everything:
        return [u for u, node in head.nodes.items() if node.resource_type in BUILT]
    changed = comparison.changed.keys() - written_about_the_run(comparison)
    unique_ids = {*changed, *edited_alike(comparison), *built_otherwise(comparison)}
    unique_ids |= set(reordered(comparison))
    unique_ids |= set(changed_functions(comparison))
    unique_ids |= {child for child, *_ in naming_changed_columns(comparison, ("model", "snapshot"))}
    unique_ids |= {reader for reader, _ in readers_of_what_may_fail(comparison)}
    for unique_id in list(unique_ids):
        if unique_id in head.nodes and head.nodes[unique_id].is_ephemeral:
            unique_ids |= inlined_by(head, unique_id)[0]
    unique_ids |= by_hooks(comparison, unique_ids)
    return [u for u, n in head.nodes.items() if u in unique_ids and n.resource_type in BUILT]


def written_about_the_run(comparison: Comparison) -> set[str]:
    """What changed because the hooks of a known package write there of the project, and that only the package reads.

    No edit of the project is in it, and no test or model of the project is below.
    """
    context = comparison.head_context
    packages = {p for hook in context.hooks_that_write for p in hook.packages}
    sides = (comparison.base.macros, comparison.head.macros)
    packages = {p for p in packages if _of_package(sides[0], p) == _of_package(sides[1], p)}
    if not packages:
        return set()
    base, head = comparison.base.nodes, comparison.head.nodes
    return {
        unique_id
        for unique_id in comparison.changed
        if unique_id in base
        and base[unique_id].raw_code == (now := head[unique_id]).raw_code
        and _same_properties(base[unique_id], now)
        and now.package_name in packages
        and all(
            head[below].package_name == now.package_name and head[below].resource_type != "test"
            for below in reach(unique_id, comparison.head.children)
            if below in head
        )
    }


def _of_package(macros: Mapping[str, Macro], package: str) -> dict[str, str]:
    """The texts of the macros of a package."""
    return {u: m.macro_sql for u, m in macros.items() if m.package_name == package}


def changed_functions(comparison: Comparison) -> Iterator[str]:
    """The functions of head that base does not have, or that gives other values there."""
    before = comparison.base_analysis.functions
    for unique_id, fingerprint in comparison.head_analysis.functions.items():
        if before.get(unique_id) != fingerprint:
            yield unique_id


def reordered(comparison: Comparison) -> Iterator[str]:
    """The nodes that pass on their rows in another order to something that changed."""
    before, now = comparison.base_analysis, comparison.head_analysis
    others = [
        unique_id
        for unique_id, analysed in now.nodes.items()
        if unique_id not in comparison.changed
        and (then := before.nodes.get(unique_id)) is not None
        and then is not analysed
        and (then.order, then.incidental) != (analysed.order, analysed.incidental)
    ]
    if not others:
        return
    changed = set(comparison.changed)
    for test, analysed in now.tests.items():
        then = before.tests.get(test)
        if then is not None and (
            then.rows_fingerprint != analysed.rows_fingerprint
            or then.fingerprints != analysed.fingerprints
        ):
            changed.add(test)
    for unique_id in others:
        below = reach(unique_id, comparison.head.children)
        if not changed.isdisjoint(below.keys() - {unique_id}):
            yield unique_id


def built_otherwise(comparison: Comparison) -> Iterator[str]:
    """What may build otherwise, or fail to, by its properties alone."""
    base, head = comparison.base, comparison.head
    config_fingerprints: tuple[ConfigFingerprints, ConfigFingerprints] | None = None
    if _naming(base) != _naming(head):
        config_fingerprints = (
            comparison.base_context.config_fingerprints,
            comparison.head_context.config_fingerprints,
        )
    for unique_id, now in head.nodes.items():
        if now.resource_type not in BUILT or unique_id in comparison.changed:
            continue
        then = base.nodes.get(unique_id)
        if then is None or (config_fingerprints is None and _same_properties(then, now)):
            continue
        if config_fingerprints is None:
            config_fingerprints = (
                comparison.base_context.config_fingerprints,
                comparison.head_context.config_fingerprints,
            )
        if config_fingerprints[0].built_with(then) != config_fingerprints[1].built_with(now):
            yield unique_id


def _naming(project: Project) -> list[tuple[str, str]]:
    """The macros that name relations, dbt's own among them."""
    return sorted(
        (unique_id, macro.macro_sql)
        for unique_id, macro in project.macros.items()
        if NAMING.match(dispatched(macro.name))
    )


def _same_properties(then: Node, now: Node) -> bool:
    """Whether nothing differs that a build could look at, so that there is nothing to find out."""
    return (
        then.config == now.config
        and then.columns == now.columns
        and then.constraints == now.constraints
        and then.description == now.description
        and then.language == now.language
        and then.contract == now.contract
        and then.unrendered_config == now.unrendered_config
    )


def by_hooks(comparison: Comparison, built: Collection[str]) -> set[str]:
    """What has to be built beside it because hooks write from one relation into another.

    A hook that runs needs the relation it writes to; and one that is built anew, and that others
    read, has only what the hooks put into it that run after it.
    """
    head = comparison.head
    unique_ids: set[str] = set()
    for hook in comparison.hooks:
        written = hook.writes & head.nodes.keys()
        if hook.owner in built or any(u in built and head.children.get(u) for u in written):
            unique_ids |= written | {hook.owner}
    return unique_ids


def edited_alike(comparison: Comparison) -> list[str]:
    """The models and snapshots whose query was edited beyond its layout and means the same."""
    nodes, changed = comparison.head.nodes, comparison.changed
    return list(
        rewritten(
            comparison,
            (
                u
                for u in comparison.modified
                if u not in changed and nodes[u].resource_type in ("model", "snapshot")
            ),
        )
    )


def naming_changed_columns(
    comparison: Comparison, resource_types: Collection[str]
) -> Iterator[tuple[str, str, str]]:
    """The nodes that name a changed column of a relation they read, though no vertex of theirs changed.

    Also one that is gone, where its engine does not look into that part of the query.

    Told by words: the name may as well be that of another relation's column.

    Returns:
        The unique_id of what names it, the relation's, and the column's.
    """
    head, head_analysis = comparison.head, comparison.head_analysis

    def unresolved_names(unique_id: str) -> set[str]:
        analysis = head_analysis.nodes.get(unique_id) or head_analysis.tests.get(unique_id)
        return {
            name.rpartition(".")[2].lower()
            for name in (analysis.unresolved_names if analysis else ())
        }

    words: dict[str, set[str]] = {}
    for parent, change in comparison.changed.items():
        columns = {c.lower(): c for c in change.redefined}
        gone = {c.lower(): c for c in change.removed}
        parent_node = head.nodes.get(parent)
        if (
            not (columns or gone) or parent_node is None or parent_node.is_ephemeral
        ):  # the text of that names them all
            continue
        for child in head.children.get(parent, ()):
            node = head.nodes[child]
            if node.resource_type not in resource_types or child in comparison.changed:
                continue
            for column in gone.keys() & unresolved_names(child):
                yield child, parent, gone[column]
            if columns and child not in words:
                from dbt_ripple.flow.query_text import names_in

                dialect = dialect_of(head.metadata.adapter_type)
                words[child] = names_in(node.compiled_code or "", dialect)
            for column in columns.keys() & words.get(child, set()):
                yield child, parent, columns[column]


def tests_to_try(comparison: Comparison, running: Collection[str]) -> dict[str, Reason]:
    """Tests whose result cannot have changed, but whose SQL may no longer compile.

    For relations building shows it; for a test, only running it. These are tests of which an edit
    made the text compute something else than before, or be written as an engine may not take it,
    and tests that name a changed column of what
    they read and make nothing of it. (A name that is gone is missing: that is seen where the engine
    looks at it.)

    Args:
        comparison: of base and head.
        running: the tests that are to run anyway.

    Returns:
        The reason of each.
    """
    from dbt_ripple.flow.query_text import computed, is_plainly_written, same_but_for_names

    base, head = comparison.base, comparison.head
    dialect = dialect_of(head.metadata.adapter_type)
    chosen: dict[str, Reason] = {}
    edited = [
        unique_id
        for unique_id in comparison.modified
        if unique_id not in running and head.nodes[unique_id].resource_type == "test"
    ]
    for unique_id in rewritten(comparison, edited):
        then = rename(base.nodes[unique_id].compiled_code or "", other_names(base, head))
        now = head.nodes[unique_id].compiled_code or ""
        if same_but_for_names(then, now, dialect):
            continue
        after, before = computed(now, dialect), computed(then, dialect)
        if (
            after is None
            or before is None
            or not after <= before
            or not is_plainly_written(now, dialect)
        ):
            chosen[unique_id] = Code.TEXT_CHANGED()
    named = [n for n in naming_changed_columns(comparison, ("test",)) if n[0] not in running]
    if named:
        # A name that the test makes something of is seen: the column it stands for has not changed.
        read = {(test, c.lower()) for test, _, c in comparison.head_analysis.test_columns}
        for test, parent, column in named:
            if (test, column.lower()) not in read:
                name = head.nodes[parent].display_name
                chosen.setdefault(test, Code.NAMES_CHANGED_COLUMN(name=name, column=column))
    return chosen


def edited_ephemerals(comparison: Comparison) -> list[str]:
    """The ephemeral models of head of which a vertex changed, or that are in other words."""
    nodes = comparison.head.nodes
    touched = dict.fromkeys([*comparison.changed, *edited_alike(comparison)])
    return [u for u in touched if u in nodes and nodes[u].is_ephemeral]


def only_tests_compile(comparison: Comparison, running: Collection[str]) -> dict[str, Reason]:
    """Tests that have to run because nothing else compiles an ephemeral model that may compile no more.

    It was edited, or names a changed column and makes nothing of it: that may have a type with which the
    engine refuses what is written.

    Args:
        comparison: of base and head.
        running: the tests that are to run anyway.

    Returns:
        One test with its reason for each such ephemeral model that no relation inlines and no
        test that runs.
    """
    head = comparison.head
    chosen: dict[str, Reason] = {}
    nodes = head.nodes
    because = {
        ephemeral: Code.ONLY_TESTS_INLINE(name=nodes[ephemeral].display_name)
        for ephemeral in edited_ephemerals(comparison)
    }
    for unique_id, parent, column in naming_changed_columns(comparison, ("model",)):
        if nodes[unique_id].is_ephemeral:
            name = nodes[parent].display_name
            because.setdefault(unique_id, Code.NAMES_CHANGED_COLUMN(name=name, column=column))
    for ephemeral, reason in because.items():
        relations, tests = inlined_by(head, ephemeral)
        if relations or not tests or any(t in running or t in chosen for t in tests):
            continue
        chosen[next(u for u in nodes if u in tests)] = reason
    return chosen


def blocked_tests(
    comparison: Comparison,
    impacted: Iterable[str],
    models: Collection[str],
) -> list[BlockedTest]:
    """The impacted tests below a relation that cannot be built, so that dbt would skip them.

    A relation whose query names a column that does not exist fails in CI, and dbt skips everything below
    it. So does one whose text no engine accepts, whatever its sources hold (`engine_checks.BY_TEXT_ALONE`). So
    does one that failed in base's build for a reason that has not changed (`changes.certain_failures`).
    Running the tests there would show nothing more. They are listed with the relation that blocks
    them: its failure makes CI red, and where it is built after all (``--run`` notices), they run.

    Args:
        comparison: of base and head.
        impacted: unique_ids of tests.
        models: what CI builds; everything else is deferred to base, where it exists.

    Returns:
        In the order of ``impacted``, each with the nearest relation that blocks it.
    """
    head, built = comparison.head, frozenset(models)
    impacted = list(impacted)
    if not impacted:
        return []
    verdict = verdict_of(comparison)
    refused = [unique_id for unique_id in verdict.refused if unique_id in built]
    if not refused and not verdict.failing:
        return []
    skipped = {r.unique_id for r in comparison.base.run_results if r.status == "skipped"}
    blocked_by = {unique_id: unique_id for unique_id in (*refused, *verdict.failing)}
    causes = dict(blocked_by)
    ahead = list(blocked_by)
    while ahead:  # the nearest first
        following = []
        for parent in ahead:
            for child in head.children.get(parent, ()):
                node = head.nodes.get(child)
                if node is None or child in blocked_by:
                    continue
                # What base skipped is not there either, though nothing builds it.
                gone = child in skipped and causes[parent] in verdict.failing
                if node.resource_type == "test" or node.is_ephemeral or child in built or gone:
                    above = blocked_by[parent]
                    blocked_by[child] = child if child in built and above not in built else above
                    causes[child] = causes[parent]
                    following.append(child)
        ahead = following
    return [
        BlockedTest(
            unique_id=test,
            reason=_why(comparison, verdict, model, causes[test]),
            blocked_by=model,
        )
        for test in impacted
        if (model := blocked_by.get(test)) in built and model is not None
    ]


def _why(comparison: Comparison, verdict: BuildVerdict, model: str, cause: str) -> Reason:
    """Why a relation cannot be built, because of itself or of one above it."""
    nodes = comparison.head.nodes
    if cause in verdict.refused:
        because = verdict.refused[cause]
    elif cause != model:
        error = verdict.failing[cause]
        because = Code.READS_FAILED(name=nodes[cause].display_name, error=error)
    else:
        because = Code.FAILED_ON_BASE(error=verdict.failing[cause])
    return Code.CANNOT_BE_BUILT(name=nodes[model].display_name, because=because)
