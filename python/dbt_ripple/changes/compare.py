"""Base and head, analysed -> which vertices changed (rules 1-12), with notes on the comparison.

A vertex is a column of a node, or its set of rows (``*rows*``). It *changed* if its fingerprint
differs or base does not have it. A column that has another name and an equal fingerprint is
*renamed*: it did not change, because a reader of the new name reads the same values.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Literal

from dbt_ripple.artifacts import Node, Project
from dbt_ripple.artifacts.project import WITH_SQL
from dbt_ripple.changes.causes import Causes
from dbt_ripple.changes.change_paths import change_paths
from dbt_ripple.changes.comparability import (
    changed_hooks,
    check,
    compiled_blindly,
    followed_hooks,
    with_environment,
    with_known_variables,
)
from dbt_ripple.changes.compiled_sql_reuse import AgreedText, agree
from dbt_ripple.changes.equivalent_macros import with_same_macros
from dbt_ripple.changes.equivalent_queries import prove_equivalent
from dbt_ripple.changes.kept_rows import prove_rows_kept
from dbt_ripple.changes.order_seen import readers_of_order
from dbt_ripple.changes.renamed_nodes import with_names_of_head
from dbt_ripple.changes.seed_changes import SeedPair, pair_seeds
from dbt_ripple.changes.state_modified import modified
from dbt_ripple.changes.syntax_errors import syntax_errors
from dbt_ripple.flow.identifiers import dialect_of
from dbt_ripple.graph.analyse_project import analyse
from dbt_ripple.graph.broken_nodes import NOT_FOUND, cannot_follow, ran
from dbt_ripple.graph.cache import Cache
from dbt_ripple.graph.config_fingerprints import hooks_of
from dbt_ripple.graph.hooks import Hook
from dbt_ripple.graph.lineage import Analysis, NodeAnalysis
from dbt_ripple.graph.lineage_tables import ROWS
from dbt_ripple.graph.linking.project_context import ProjectContext, ProjectContexts
from dbt_ripple.graph.query_cache import QueryCache
from dbt_ripple.graph.semantic_layer import over_analysis
from dbt_ripple.graph.semantic_references import SEMANTIC
from dbt_ripple.reasons import Code, Reason, names_missing

Vertex = tuple[str, str]


@dataclass(slots=True)
class NodeChange:
    """How one relation of head differs from its counterpart on base.

    Attributes:
        kind: ``added`` where base has no such node, else ``changed``.
        rows: whether its row set changed.
        added: columns base does not have; ``renamed`` maps those of them that have the definition
            of a removed one to it.
        removed: columns head no longer has.
        redefined: columns both sides have, with another fingerprint.
        reordered: whether columns both sides have stand in another order.
    """

    unique_id: str
    kind: Literal["added", "changed"]
    rows: bool = False
    added: list[str] = field(default_factory=list)
    removed: list[str] = field(default_factory=list)
    renamed: dict[str, str] = field(default_factory=dict)
    redefined: list[str] = field(default_factory=list)
    reordered: bool = False

    def vertices(self) -> Iterator[Vertex]:
        """The vertices of head that changed: rows first, then columns."""
        if self.rows:
            yield self.unique_id, ROWS
        for column in self.redefined:
            yield self.unique_id, column
        for column in self.added:
            if column not in self.renamed:
                yield self.unique_id, column


@dataclass
class Comparison:
    """Two sides of a project and what differs.

    Attributes:
        base: what is deployed, with what only the comparison knows of it: sources and tests that
            head has under another name have that one (`changes.renamed_nodes`).
        head: likewise, what is proposed.
        changed: the relations of head of which a vertex changed, or a column came, went or changed
            its name or place, by unique_id.
        removed: relations (not sources) only base has.
        seeds: the files of seeds on both sides.
        everything: why every test is selected, where a change reaches all of them.
        notes: what the answer had to assume.
        hooks: those of head that do something to other relations than their own.
        reworded: the nodes and tests whose fingerprints differed and that mean the same in other
            words, each with the rules that show it (`changes.equivalent_queries`): of one that is only below
            such nodes there are none. `head_analysis` has base's fingerprints for them.
        given: base as it was given: dbt does not know what is only named otherwise.
        contexts: of the projects that were analysed for it.
        project_dir: where head's files are; None for the current folder.
    """

    base: Project
    head: Project
    base_analysis: Analysis
    head_analysis: Analysis
    seeds: SeedPair
    changed: dict[str, NodeChange] = field(default_factory=dict)
    removed: list[str] = field(default_factory=list)
    everything: list[Reason] = field(default_factory=list)
    notes: list[Reason] = field(default_factory=list)
    hooks: list[Hook] = field(default_factory=list)
    reworded: dict[str, list[str]] = field(default_factory=dict)
    given: Project | None = None
    contexts: ProjectContexts = field(default_factory=ProjectContexts)
    project_dir: Path | None = None

    @property
    def base_context(self) -> ProjectContext:
        """What base's manifest says before anything is linked."""
        return self.contexts.of(self.base)

    @property
    def head_context(self) -> ProjectContext:
        """What head's manifest says before anything is linked."""
        return self.contexts.of(self.head)

    @cached_property
    def modified(self) -> set[str]:
        """What dbt itself calls modified (see `changes.state_modified`)."""
        return modified(self.given or self.base, self.head)

    def is_semantic(self, unique_id: str) -> bool:
        """Whether it is a semantic model, a metric or a saved query."""
        node = self.head.nodes.get(unique_id)
        return node is not None and node.resource_type in SEMANTIC

    def unchanged(self) -> frozenset[str]:
        """The relations that are the same on both sides, with the order of their rows; it follows `changed`."""
        base, head = self.base_analysis.nodes, self.head_analysis.nodes
        return frozenset(
            unique_id
            for unique_id, now in head.items()
            if unique_id not in self.changed
            and (then := base.get(unique_id)) is not None
            and (
                then is now
                or (then.status, then.order, then.incidental, then.columns)
                == (now.status, now.order, now.incidental, now.columns)
            )
        )

    @cached_property
    def causes(self) -> Causes:
        """What was edited (see `changes.causes`)."""
        return Causes(self, self.project_dir)

    @cached_property
    def predecessors(self) -> dict[Vertex, Vertex | None]:
        """The way to each vertex that changed (see `changes.change_paths`)."""
        return change_paths(self)

    @cached_property
    def syntax_errors(self) -> dict[str, Reason]:
        """The nodes and tests that an edit made unparseable (see `changes.syntax_errors`)."""
        return syntax_errors(self)

    @cached_property
    def changed_vertices(self) -> set[Vertex]:
        """Every vertex of head that changed."""
        return {vertex for change in self.changed.values() for vertex in change.vertices()}


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
        base, head, base_analysis, head_analysis, seeds, given=given, contexts=contexts
    )
    comparison.notes += [*conditions, *seeds.notes]
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
    _believe_base(comparison)
    base_analysis, head_analysis = comparison.base_analysis, comparison.head_analysis
    comparison.changed = _changed(base_analysis, head_analysis, head, seeds, projects)
    agreed = agree(base, head, _suspects(comparison))
    if agreed:
        base = comparison.base = base.with_compiled(agreed.base)
        head = comparison.head = head.with_compiled(agreed.head)
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
    comparison.removed = [
        unique_id
        for unique_id, node in base.nodes.items()
        if unique_id in base_analysis.nodes
        and node.resource_type != "source"
        and unique_id not in head.nodes
    ]
    if _prove(comparison, cache):
        _semantic_layer_again(comparison, cache)
    if projects is not None and (seen := readers_of_order(comparison, cache)):
        _compare_in_other_order(comparison, seen, cache, projects)
    return comparison


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
    """What head cannot find is not missing where base could not find it either, and was built.

    It is us who cannot follow such a name. If nothing says that base was built, a name that base did not
    certainly lack is not certainly missing on head.
    """
    base, before, now = comparison.base, comparison.base_analysis, comparison.head_analysis
    doubtful = {
        unique_id: then
        for unique_id, then in (before.nodes | before.tests).items()
        if then.reason is not None and then.reason.code in NOT_FOUND
    }
    if not doubtful:
        return
    built = ran(base)
    found: dict[str, NodeAnalysis] = {}
    there: dict[str, NodeAnalysis] = {}
    for unique_id, then in doubtful.items():
        if then.status == "broken":
            if unique_id not in built and not _in_catalog(base, then):
                continue
            there[unique_id] = replace(then, status="opaque", reason=cannot_follow(then))
        here = now.nodes.get(unique_id) or now.tests.get(unique_id)
        if here is None or here.status != "broken":
            continue
        accepted = names_missing(then.reason)
        lost = [name for name in names_missing(here.reason) if name not in accepted]
        if lost:
            found[unique_id] = replace(here, reason=Code.CANNOT_FIND(names=lost))
        else:
            found[unique_id] = replace(here, status="opaque", reason=cannot_follow(here))
    comparison.base_analysis = _with(before, there)
    comparison.head_analysis = _with(now, found)


def _in_catalog(project: Project, analysed: NodeAnalysis) -> bool:
    """Whether the catalog lists a relation, with all the columns that its query seems to have."""
    listed = project.catalog.get(analysed.unique_id)
    if not listed or project.catalog_is_older:
        return False
    return {name.lower() for name in analysed.columns} <= {c.name.lower() for c in listed}


def _with(analysis: Analysis, judged: dict[str, NodeAnalysis]) -> Analysis:
    """An analysis with some nodes and tests judged otherwise."""
    if not judged:
        return analysis
    return replace(
        analysis,
        nodes={u: judged.get(u, seen) for u, seen in analysis.nodes.items()},
        tests={u: judged.get(u, seen) for u, seen in analysis.tests.items()},
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


def node_change(before: NodeAnalysis, now: NodeAnalysis) -> NodeChange | None:
    """What differs between two analyses of a node; None where it is the case of names only."""
    then = _by_name(before)
    here = _by_name(now)
    change = NodeChange(
        now.unique_id,
        "changed",
        rows=before.rows_fingerprint != now.rows_fingerprint,
        added=[name for key, (name, _) in here.items() if key not in then],
        removed=[name for key, (name, _) in then.items() if key not in here],
        redefined=[
            name for key, (name, fps) in here.items() if key in then and then[key][1] != fps
        ],
    )
    if change.added and change.removed:
        gone = {tuple(then[name.lower()][1]): name for name in reversed(change.removed)}
        for name in change.added:
            old = gone.pop(tuple(here[name.lower()][1]), None)
            if old is not None:
                change.renamed[name] = old
    common = [key for key in then if key in here]
    change.reordered = common != [key for key in here if key in then]
    if change.rows or change.added or change.removed or change.redefined or change.reordered:
        return change
    return None


def _by_name(analysis: NodeAnalysis) -> dict[str, tuple[str, list[str]]]:
    """The columns by lower-case name, each as spelled first and with all fingerprints it has."""
    columns: dict[str, tuple[str, list[str]]] = {}
    for name, fingerprint in zip(analysis.columns, analysis.fingerprints, strict=True):
        key = name.lower()
        if key in columns:
            columns[key][1].append(fingerprint)
        else:
            columns[key] = (name, [fingerprint])
    return columns
