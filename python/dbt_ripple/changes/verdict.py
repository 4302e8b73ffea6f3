"""What of head cannot be built, run or parsed, and why: found once for each comparison.

Selection, gate, diff, explanations, pages and comments ask `verdict_of` and find out nothing themselves
([decision 36](../../../docs/decisions/0036-one-verdict-on-what-cannot-be-built.md)). Its parts are plain data; each is
made when it is first asked for.

What certainly cannot be built is less than what is broken: the engine must refuse the node whatever its sources hold
(`BuildVerdict.refused`), because tests below it do not run then.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from functools import cache as once
from functools import cached_property

import msgspec

from dbt_ripple.artifacts import CatalogColumn, Project
from dbt_ripple.changes.certain_failures import fail_again, syntax_errors
from dbt_ripple.changes.comparison import Comparison, made_once
from dbt_ripple.changes.removed_columns import (
    RemovedColumn,
    column_is_named,
    lost_columns,
    read_on_base,
    vanished,
)
from dbt_ripple.flow.identifiers import dialect_of
from dbt_ripple.graph.broken_nodes import (
    NOT_FOUND,
    BrokenNodeFinder,
    cannot_follow,
    inlined_by,
    ran,
)
from dbt_ripple.graph.hypothetical import HypotheticalChange
from dbt_ripple.graph.lineage import Analysis, NodeAnalysis
from dbt_ripple.reasons import Code, Reason, names_missing


class Broken(msgspec.Struct, kw_only=True):
    """A node that cannot compile on head; the reason has the name that is missing.

    Attributes:
        gone: the columns it reads that the change took away or renamed, where it is that.
    """

    unique_id: str
    reason: Reason
    gone: list[RemovedColumn] = []


class BuildVerdict:
    """The verdict on one comparison.

    Args:
        comparison: of base and head.
    """

    def __init__(self, comparison: Comparison) -> None:
        self._comparison = comparison
        # Assets are neither parsed nor built by dbt: what is said of its own nodes is the same with them.
        self._own = verdict_of(comparison.of_dbt) if comparison.of_dbt is not None else None

    @cached_property
    def syntax_errors(self) -> dict[str, Reason]:
        """The nodes and tests that an edit made into what no engine can parse (`changes.certain_failures`)."""
        return syntax_errors(self._comparison) if self._own is None else self._own.syntax_errors

    @cached_property
    def vanished(self) -> dict[str, list[str]]:
        """Columns of sources that base's catalog has and head's has not, by unique_id."""
        if self._own is not None:
            return self._own.vanished
        return vanished(self._comparison.base, self._comparison.head)

    @cached_property
    def _not_found(self) -> dict[str, Reason]:
        """What the engine would say of the nodes and tests that name what is not there."""
        now = self._comparison.head_analysis
        return {
            unique_id: analysed.reason or Code.NO_REASON_GIVEN()
            for side in (now.nodes, now.tests)
            for unique_id, analysed in side.items()
            if analysed.status == "broken"
        }

    @cached_property
    def broken(self) -> dict[str, Broken]:
        """The nodes of head that cannot compile, then the tests; as they are on base or not."""
        return self._with_what_is_gone(self._not_found | self.syntax_errors)

    @cached_property
    def newly_broken(self) -> list[Broken]:
        """Those of them that could compile on base, or did not exist, or say something else now."""
        return [
            self.broken[unique_id]
            for unique_id, reason in (self._not_found | self.syntax_errors).items()
            if self._is_new(unique_id, reason)
        ]

    @cached_property
    def relations(self) -> dict[str, Reason]:
        """The relations that newly read what is not there, with the reason."""
        nodes = self._comparison.head_analysis.nodes
        return {
            unique_id: reason
            for unique_id, reason in self._not_found.items()
            if unique_id in nodes and self._is_new(unique_id, reason)
        }

    @cached_property
    def lost(self) -> list[Broken]:
        """What reads a column that an edit took out of a query, though the relation may still have it.

        These may run, so what reads them does not count as broken.
        """
        reasons = self._reading_lost_columns()
        new = {u: reason for u, reason in reasons.items() if self._is_new(u, reason)}
        return [*self._with_what_is_gone(new).values()]

    @cached_property
    def refused(self) -> dict[str, Reason]:
        """The relations of head that could be built on base, and that their engine certainly refuses, in head's order.

        The reason has the names that are missing, or what else is refused, and what became of columns.
        """
        if self._own is not None:
            return self._own.refused
        return {u: self._because_of(u, names) for u, names in self._refused().items()}

    @cached_property
    def failing(self) -> dict[str, str]:
        """Those that failed in base's build and certainly fail again, with the message (`changes.certain_failures`)."""
        if self._own is not None:
            return self._own.failing
        return fail_again(self._comparison.base, self._comparison.head)

    # -- names that are missing -----------------------------------------------------------------

    def _is_new(self, unique_id: str, reason: Reason) -> bool:
        before = self._comparison.base_analysis
        then = before.nodes.get(unique_id) or before.tests.get(unique_id)
        return then is None or then.reason != reason

    def _with_what_is_gone(self, reasons: dict[str, Reason]) -> dict[str, Broken]:
        """What is broken for these reasons, each with what the change did to the columns it asks for."""
        read = read_on_base(self._comparison, reasons) if reasons else {}
        broken = {}
        for unique_id, reason in reasons.items():
            gone = self._gone_for(unique_id, reason, read[unique_id])
            said = self._with(reason, gone)
            broken[unique_id] = Broken(unique_id=unique_id, reason=said, gone=gone)
        return broken

    def _gone_for(
        self, unique_id: str, reason: Reason, read: set[tuple[str, str]]
    ) -> list[RemovedColumn]:
        """The columns that are gone and that a broken node or test asks for by their names."""
        base, head = self._comparison.base, self._comparison.head
        names = names_missing(reason)
        parents = (*head.parents.get(unique_id, ()), *base.parents.get(unique_id, ()))
        removed = [
            gone
            for parent in dict.fromkeys(parents)
            for gone in self._gone_of(parent)
            if any(column_is_named(gone.column, name) for name in names)
        ]
        # Two parents may have lost a column of this name, and only one of them be read.
        return [g for g in removed if (g.unique_id, g.column.lower()) in read] or removed

    def _gone_of(self, parent: str) -> Iterable[RemovedColumn]:
        change = self._comparison.changed.get(parent)
        if change is not None:
            to = {was: name for name, was in change.renamed.items()}
            for name in change.removed:
                yield RemovedColumn(unique_id=parent, column=name, renamed_to=to.get(name))
        for name in self.vanished.get(parent, ()):
            if change is None or name not in change.removed:
                yield RemovedColumn(unique_id=parent, column=name)

    def _with(self, reason: Reason, gone: list[RemovedColumn]) -> Reason:
        """A reason, extended by what happened to the columns that cannot be found."""
        if not gone:
            return reason
        return Code.BROKEN_BY(because=reason, gone=[*map(self._what_became_of, gone)])

    def _what_became_of(self, gone: RemovedColumn) -> Reason:
        base, head = self._comparison.base.nodes, self._comparison.head.nodes
        node = head.get(gone.unique_id) or base.get(gone.unique_id)
        name = node.spoken_name if node else gone.unique_id
        if gone.renamed_to:
            return Code.COLUMN_RENAMED(name=name, column=gone.column, to=gone.renamed_to)
        return Code.COLUMN_GONE(name=name, column=gone.column)

    def _reading_lost_columns(self) -> dict[str, Reason]:
        """Why what may not build does not: it names a column that `lost_columns` has."""
        now = self._comparison.head_analysis
        doubtful = [
            unique_id
            for side in (now.nodes, now.tests)
            for unique_id, analysed in side.items()
            if analysed.reason is not None and analysed.reason.code is Code.MAY_NOT_BUILD
        ]
        lost = lost_columns(self._comparison) if doubtful else {}
        if not lost:
            return {}
        columns = {column for removed in lost.values() for column in removed}
        without = {unique_id: HypotheticalChange(now.nodes[unique_id]) for unique_id in lost}
        finder = BrokenNodeFinder(self._comparison.head_context, hypothetical=without)
        reasons = {}
        for unique_id in doubtful:
            missing = finder.of_own_text(unique_id)
            if names := [n for n in missing if any(column_is_named(c, n) for c in columns)]:
                reasons[unique_id] = Code.CANNOT_FIND(names=names)
        return reasons

    # -- what certainly cannot be built ---------------------------------------------------------

    def _refused(self) -> dict[str, list[str]]:
        """The relations that could be built on base, and whose query its engine certainly refuses.

        Returns:
            By unique_id, in head's order, the names that are missing, or what else is refused.
        """
        comparison = self._comparison
        before, head = comparison.base_analysis.nodes, comparison.head
        broken: dict[str, None] = {}
        for unique_id in self._not_found:
            then = before.get(unique_id)
            if unique_id not in comparison.head_analysis.nodes:
                continue
            if then is not None and then.status == "broken":
                continue
            # An ephemeral model is not built: what it is inlined into is.
            ephemeral = head.nodes[unique_id].is_ephemeral
            broken |= dict.fromkeys(inlined_by(head, unique_id)[0] if ephemeral else (unique_id,))
        if not broken:
            return {}
        context, cache = comparison.head_context, comparison.cache
        finder = BrokenNodeFinder(context, cache, catalog=_unchanged_sources(comparison))

        @once
        def by_text() -> BrokenNodeFinder:
            return BrokenNodeFinder(context, cache, catalog={}, by_text_alone=True)

        refused = {}
        for unique_id in broken:
            names = self._looked_for_on_base(unique_id, self._refused_now(unique_id, finder))
            if names := names or self._refused_now(unique_id, by_text()):
                refused[unique_id] = names
        return {unique_id: refused[unique_id] for unique_id in head.nodes if unique_id in refused}

    def _refused_now(self, unique_id: str, finder: BrokenNodeFinder) -> list[str]:
        """What a finder says that an engine refuses, without what base could not find either."""
        before = self._comparison.base_analysis.nodes
        parts = [before[part] for part in finder.parts(unique_id) if part in before]
        never = {name for part in parts for name in names_missing(part.reason)}
        return [name for name in finder.of(unique_id) if name not in never]

    def _looked_for_on_base(self, unique_id: str, names: list[str]) -> list[str]:
        """Of these names, those that the query named on base, too, and found there.

        Then no column that a source has got since the catalog was written can be meant, and the way the
        query comes to its names is one that was followed to the end.
        """
        from dbt_ripple.flow.query_text import names_in

        then = self._comparison.base.nodes.get(unique_id)
        if not names or then is None or not then.compiled_code:
            return []
        dialect = dialect_of(self._comparison.head.metadata.adapter_type)
        words = names_in(then.compiled_code, dialect)
        return [name for name in names if name.rpartition(".")[2].lower() in words]

    def _because_of(self, unique_id: str, names: list[str]) -> Reason:
        """Why a relation is refused, with what became of the columns that it, or what it inlines, asks for."""
        head = self._comparison.head
        code = Code.CANNOT_FIND if any(" " in name for name in names) else Code.THERE_IS_NO
        own = self.broken.get(unique_id)
        gone = own.gone if own is not None else []
        return self._with(
            code(names=names),
            gone
            or [
                column
                for part in self.newly_broken
                if head.nodes[part.unique_id].is_ephemeral
                and unique_id in inlined_by(head, part.unique_id)[0]
                for column in part.gone
            ],
        )


verdict_of = made_once(BuildVerdict)
"""The verdict on a comparison, made once."""


def _unchanged_sources(comparison: Comparison) -> dict[str, list[CatalogColumn]]:
    """The columns of the sources that are the same table on both sides, and look the same."""
    base, head = comparison.base.catalog, comparison.head.catalog
    before, now = comparison.base_analysis.nodes, comparison.head_analysis.nodes
    return {
        unique_id: head[unique_id]
        for unique_id in head
        if unique_id.startswith("source.")
        and head[unique_id] == base.get(unique_id)
        and (then := before.get(unique_id)) is not None
        and (here := now.get(unique_id)) is not None
        and then.rows_fingerprint == here.rows_fingerprint
    }


# -- one side in the light of the other -------------------------------------------------------------


def judged_by_base(base: Project, before: Analysis, now: Analysis) -> tuple[Analysis, Analysis]:
    """Both analyses, where what base could not find, and was built with, counts as missing on neither side.

    It is us who cannot follow such a name. If nothing says that base was built, a name that base did not
    certainly lack is not certainly missing on head.

    Args:
        base: what is deployed.
        before: its analysis.
        now: head's analysis.
    """
    doubtful = {
        unique_id: then
        for unique_id, then in (before.nodes | before.tests).items()
        if then.reason is not None and then.reason.code in NOT_FOUND
    }
    if not doubtful:
        return before, now
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
    return _with(before, there), _with(now, found)


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
