"""Base and head, analysed -> which vertices changed (rules 1-12), with notes on the comparison.

A vertex is a column of a node, or its set of rows (``*rows*``). It *changed* if its fingerprint
differs or base does not have it. A column that has another name and an equal fingerprint is
*renamed*: it did not change, because a reader of the new name reads the same values.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from dbt_ripple.artifacts import Node, Project
from dbt_ripple.artifacts.project import WITH_SQL
from dbt_ripple.changes.comparability import (
    changed_hooks,
    check,
    compiled_blindly,
    followed_hooks,
    with_environment,
    with_known_variables,
)
from dbt_ripple.changes.comparison import Comparison, NodeChange, node_change
from dbt_ripple.changes.compiled_sql_reuse import AgreedText, agree
from dbt_ripple.changes.counterparts import SeedPair, pair_seeds, with_names_of_head
from dbt_ripple.changes.equivalent_macros import with_same_macros
from dbt_ripple.changes.equivalent_queries import prove_equivalent
from dbt_ripple.changes.kept_rows import prove_rows_kept
from dbt_ripple.changes.order_seen import readers_of_order
from dbt_ripple.changes.verdict import judged_by_base
from dbt_ripple.flow.identifiers import dialect_of
from dbt_ripple.graph.analyse_project import analyse
from dbt_ripple.graph.cache import Cache
from dbt_ripple.graph.config_fingerprints import hooks_of
from dbt_ripple.graph.lineage import Analysis, NodeAnalysis
from dbt_ripple.graph.linking.project_context import ProjectContexts
from dbt_ripple.graph.query_cache import QueryCache
from dbt_ripple.graph.semantic_layer import over_analysis
from dbt_ripple.graph.semantic_references import SEMANTIC
from dbt_ripple.reasons import Code, Reason

__all__ = ["Comparison", "NodeChange", "compare", "node_change"]


def compare(
    base: Project,
    head: Project,
    *,
    base_analysis: Analysis | None = None,
    head_analysis: Analysis | None = None,
    cache: Cache | None = None,
) -> Comparison:
    """Compare two sides of a project.

    Args:
        base: what is deployed.
        head: what is proposed.
        base_analysis: `analyse(base)`, where it is at hand.
        head_analysis: `analyse(head)`, where it is at hand. One that is given is made again
            where a seed has changed and both of its files are at hand, so that its columns are told
            apart.
        cache: for the analyses that are made here.

    Returns:
        Every relation of head that differs, in the order of its analysis.

    Raises:
        RippleError: the two are not sides of one project.
    """
    given = base
    base, now = with_names_of_head(base, head)
    if base is not given:
        base_analysis = None
    if now is not head:
        head, head_analysis = now, None
    projects = None if base is head else (base, head)  # one project: the change is hypothetical
    base, head, anew = with_environment(base, head)
    blind = compiled_blindly(base, head)
    base, head = base.having(blind=blind), head.having(blind=blind)
    head, same_macros = with_same_macros(base, head)
    anew = bool(blind or same_macros) or anew
    contexts = ProjectContexts()
    conditions = check(contexts.of(base), contexts.of(head))
    if projects is not None and any(note.code is Code.VARS_UNSEEN for note in conditions):
        told = with_known_variables(base, head)
        if told is not None:
            base, head = told
            anew = anew or bool(base.variables or head.variables)
            contexts = ProjectContexts()
            conditions = check(contexts.of(base), contexts.of(head))
    seeds = pair_seeds(base, head, of_one=projects is None)
    anew = anew or seeds.one_sided
    if base_analysis is None or seeds.base.by_content or anew:
        base_analysis = analyse(base, cache=cache, seeds=seeds.base, context=contexts.of(base))
    if head_analysis is None or seeds.head.by_content or seeds.head.digests or anew:
        head_analysis = analyse(head, cache=cache, seeds=seeds.head, context=contexts.of(head))
    comparison = Comparison(
        base, head, base_analysis, head_analysis, seeds, given=given, contexts=contexts, cache=cache
    )
    comparison.notes += [*conditions, *seeds.notes]
    _note_what_is_assumed(comparison, same_macros)
    _believe_base(comparison)
    comparison.changed = _changed(
        comparison.base_analysis, comparison.head_analysis, head, seeds, projects
    )
    _take_agreed_text(comparison, projects)
    comparison.removed = [
        unique_id
        for unique_id, node in comparison.base.nodes.items()
        if unique_id in comparison.base_analysis.nodes
        and node.resource_type != "source"
        and unique_id not in head.nodes
    ]
    if _prove(comparison, cache):
        _semantic_layer_again(comparison, cache)
    if projects is not None and (seen := readers_of_order(comparison, cache)):
        _compare_in_other_order(comparison, seen, cache, projects)
    return comparison


def _note_what_is_assumed(comparison: Comparison, same_macros: list[str]) -> None:
    """Note what assets, macros and hooks do that the analyses do not show."""
    base, head = comparison.base, comparison.head
    if head.written_otherwise:
        names = [
            head.nodes[u].display_name if u in head.nodes else u.partition(".")[2]
            for u in head.written_otherwise
        ]
        comparison.notes.append(Code.ASSETS_DECLARED_OTHERWISE(names=names))
    if same_macros:
        comparison.notes.append(Code.MACROS_GIVE_THE_SAME(names=same_macros))
    before_hooks = comparison.base_context.hooks_that_write
    comparison.hooks = comparison.head_context.hooks_that_write
    comparison.everything = changed_hooks(base, head, before_hooks, comparison.hooks)
    comparison.notes += [Code.EVERY_TEST_SELECTED(because=hook) for hook in comparison.everything]
    if not comparison.everything:
        comparison.notes += followed_hooks(base, head, before_hooks, comparison.hooks)


def _take_agreed_text(comparison: Comparison, projects: tuple[Project, Project] | None) -> None:
    """Compare once more where one side's SQL may be taken for what provably compiles to the same."""
    agreed = agree(comparison.base, comparison.head, _suspects(comparison))
    if not agreed:
        return
    seeds, cache = comparison.seeds, comparison.cache
    base = comparison.base = comparison.base.with_compiled(agreed.base)
    head = comparison.head = comparison.head.with_compiled(agreed.head)
    if agreed.base:
        comparison.base_analysis = analyse(
            base, cache=cache, seeds=seeds.base, context=comparison.base_context
        )
    if agreed.head:
        comparison.head_analysis = analyse(
            head, cache=cache, seeds=seeds.head, context=comparison.head_context
        )
    _believe_base(comparison)
    comparison.changed = _changed(
        comparison.base_analysis, comparison.head_analysis, head, seeds, projects
    )
    comparison.notes += _notes_on(agreed, head)


def _compare_in_other_order(
    comparison: Comparison,
    seen: dict[str, frozenset[str]],
    cache: Cache | None,
    projects: tuple[Project, Project],
) -> None:
    """Compare once more, where what sees the order of rows may see another one."""
    head, context = comparison.head, comparison.head_context
    context.in_other_order = {u: [(columns, b"in other order")] for u, columns in seen.items()}
    seeds = comparison.seeds
    comparison.head_analysis = analyse(head, cache=cache, seeds=seeds.head, context=context)
    _believe_base(comparison)
    comparison.reworded = {}
    in_words = (Code.REWORDED, Code.REWORDED_AND_MORE)
    comparison.notes = [note for note in comparison.notes if note.code not in in_words]
    comparison.changed = _changed(
        comparison.base_analysis, comparison.head_analysis, head, seeds, projects
    )
    comparison.notes.append(
        Code.SEES_ORDER(names=[head.nodes[unique_id].display_name for unique_id in seen])
    )
    if _prove(comparison, cache):
        _semantic_layer_again(comparison, cache)


def _prove(comparison: Comparison, cache: Cache | None) -> bool:
    """Whether more of any relation is the same than its plain fingerprints showed; that is noted then."""
    reworded = prove_equivalent(comparison, cache)
    return prove_rows_kept(comparison, cache) or reworded


def _believe_base(comparison: Comparison) -> None:
    """Have both sides judged in the light of base (`changes.verdict.judged_by_base`)."""
    before, now = comparison.base_analysis, comparison.head_analysis
    comparison.base_analysis, comparison.head_analysis = judged_by_base(
        comparison.base, before, now
    )


def _semantic_layer_again(comparison: Comparison, cache: Cache | None) -> None:
    """Compare the semantic layers once more, over relations that are now known to be the same."""
    if not comparison.head.of_type(*SEMANTIC):
        return
    sides = []
    for project, analysis in (
        (comparison.base, comparison.base_analysis),
        (comparison.head, comparison.head_analysis),
    ):
        dialect = dialect_of(project.metadata.adapter_type)
        semantic_nodes = over_analysis(
            project, dialect, QueryCache(dialect, False, cache, None), analysis
        )
        sides.append(replace(analysis, nodes=analysis.nodes | semantic_nodes))
    before, now = comparison.base_analysis, comparison.head_analysis = sides
    again = _changed(before, now, comparison.head, comparison.seeds)
    comparison.changed = {
        unique_id: again[unique_id] if comparison.is_semantic(unique_id) else change
        for unique_id, change in comparison.changed.items()
        if unique_id in again or not comparison.is_semantic(unique_id)
    }


def _changed(
    before: Analysis,
    now: Analysis,
    head: Project,
    seeds: SeedPair,
    projects: tuple[Project, Project] | None = None,
) -> dict[str, NodeChange]:
    """The relations of head that differ, in the order of its analysis.

    Args:
        before: base's analysis.
        now: head's.
        head: the project.
        seeds: the seeds of both.
        projects: both sides, where they tell which columns of a source are known to be there.
    """
    changes = {}
    for unique_id, here in now.nodes.items():
        then = before.nodes.get(unique_id)
        if unique_id in seeds.head.changed:
            here = _of_its_file(here, head.nodes[unique_id], seeds)
        if then is None:
            changes[unique_id] = NodeChange(unique_id, "added", rows=True, added=list(here.columns))
        elif then is not here and (
            then.rows_fingerprint != here.rows_fingerprint
            or then.fingerprints != here.fingerprints
            or then.columns != here.columns
        ):
            change = node_change(then, here)
            if change is not None and projects is not None:
                change = _without_columns_known_by_use_only(change, *projects)
            if change is not None:
                changes[unique_id] = change
    return changes


def _without_columns_known_by_use_only(
    change: NodeChange, base: Project, head: Project
) -> NodeChange | None:
    """A change without the columns that are declared nowhere and known only because a reader names them.

    Of a source without a catalog, a column that is read no more is not gone, and one that is read for
    the first time is not new.
    """
    unique_id = change.unique_id
    node = head.nodes.get(unique_id)
    if node is not None and node.resource_type != "source":
        return change
    columns_of_sides: list[set[str]] = []
    for project in (base, head):
        listed = project.catalog.get(unique_id, ())
        there = project.nodes.get(unique_id)
        declared = there.columns.values() if there is not None and not listed else ()
        columns_of_sides.append({c.name.lower() for c in (*listed, *declared)})
    change.removed = [name for name in change.removed if name.lower() in columns_of_sides[0]]
    change.added = [name for name in change.added if name.lower() in columns_of_sides[1]]
    change.renamed = {
        name: was
        for name, was in change.renamed.items()
        if name in change.added and was in change.removed
    }
    if change.rows or change.added or change.removed or change.redefined or change.reordered:
        return change
    return None


def _of_its_file(analysis: NodeAnalysis, seed: Node, seeds: SeedPair) -> NodeAnalysis:
    """A seed with only the columns of its file: a reader of any other column does not find it."""
    file = None if hooks_of(seed) else seeds.head.read(seed)  # a hook may add columns
    if file is None:
        return analysis
    there = {name.lower() for name in file.header}
    kept = [i for i, name in enumerate(analysis.columns) if name.lower() in there]
    return replace(
        analysis,
        columns=[analysis.columns[i] for i in kept],
        fingerprints=[analysis.fingerprints[i] for i in kept],
        expressions=[analysis.expressions[i] for i in kept],
    )


def _suspects(comparison: Comparison) -> Iterator[str]:
    """The nodes whose compiled SQL differs although their code does not."""
    base, head = comparison.base.nodes, comparison.head.nodes
    before = comparison.base_analysis
    unique_ids = [*comparison.changed]
    unique_ids += (
        unique_id
        for unique_id, here in comparison.head_analysis.tests.items()
        if (then := before.tests.get(unique_id)) is not None and then is not here and then != here
    )
    for unique_id in unique_ids:
        node, now = base.get(unique_id), head.get(unique_id)
        if (
            node is not None
            and now is not None
            and now.resource_type in WITH_SQL
            and node.raw_code == now.raw_code
            and node.compiled_code != now.compiled_code
        ):
            yield unique_id


def _notes_on(agreed: AgreedText, head: Project) -> Iterator[Reason]:
    for unique_ids, code in (
        (agreed.head, Code.TAKEN_FROM_BASE),
        (agreed.base, Code.TAKEN_FROM_HEAD),
    ):
        if unique_ids:
            yield code(names=[head.nodes[unique_id].display_name for unique_id in unique_ids])
