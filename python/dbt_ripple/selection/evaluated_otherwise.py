"""Who reads a view that is evaluated otherwise, though its values are the same (rule 13).

A view is evaluated by whoever reads it. An engine evaluates nothing that is not read, may evaluate a condition
after what that guards, and orders conditions by what it takes to evaluate them. So `cast(s as int)` in a view may
fail for a reader, or fail no more, after an edit that fingerprints see through: of how the view is stored, of a
condition that says the same in other words, of an ORDER BY. Such a reader is a test that runs, or a table that is built;
and a view between them is made anew, because base's reads base's.

What is stored is evaluated when it is built, and CI builds what was edited.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from functools import cache
from itertools import chain
from types import MappingProxyType
from typing import Final

from dbt_ripple.artifacts import Node, Project
from dbt_ripple.changes import Comparison
from dbt_ripple.changes.comparison import made_once
from dbt_ripple.changes.compile_inputs import rename
from dbt_ripple.changes.compiled_sql_reuse import other_names
from dbt_ripple.changes.rewritten import rewritten
from dbt_ripple.flow.identifiers import dialect_of
from dbt_ripple.flow.may_fail import ASKED, INLINING, Evaluated
from dbt_ripple.flow.varying_columns import EVERYTHING
from dbt_ripple.graph.column_edges import edges_into
from dbt_ripple.graph.lineage_tables import ROWS
from dbt_ripple.graph.traversal import Vertex, reach, reach_all
from dbt_ripple.graph.unresolved_names import STORED

_FORCING: Final = re.compile(
    r"(?i)\b(?:order|distinct|materialized|union|intersect|except|sort|cluster|distribute)\b"
)
"""Words of which one stands in every query that `Evaluated.forced` finds something in, where CTEs are inlined."""


@made_once
def readers_of_what_may_fail(comparison: Comparison) -> list[tuple[str, str]]:
    """The tests, tables and views that may fail by what they read of a view, or may not any more.

    They read, directly or through views, columns that may fail of a model that is a view on a side and
    stored in another way on the other one, or whose query is in other words, where it matters to these columns.

    Returns:
        The unique_id of the reader, and the model's.
    """
    base, head, analysis = comparison.base, comparison.head, comparison.head_analysis
    views = [*_views_on_either_side(comparison)]
    edited = {*rewritten(comparison, views)}
    sides = views_of(comparison)

    def passes_on(of: str) -> bool:
        return _is_view(head.nodes.get(of))

    inlining = dialect_of(head.metadata.adapter_type) in INLINING
    fails_otherwise = [u for u in views if sides[0].fails_by(u) != sides[1].fails_by(u)]
    views += [
        u
        for u in reach_all(fails_otherwise, head.children, through=passes_on)
        if u not in views
        and passes_on(u)
        and u in base.nodes
        and (not inlining or _FORCING.search(head.nodes[u].compiled_code or ""))
    ]
    found: list[tuple[str, str]] = []
    for unique_id in views:
        then, now = base.nodes[unique_id], head.nodes[unique_id]
        change = comparison.changed.get(unique_id)
        columns: Collection[str] = ()
        # Without any condition what is stored evaluates at least as much, and was built.
        if then.materialized != now.materialized and any(s.steps(unique_id) for s in sides):
            columns = _may_fail(sides, unique_id)
        # Proofs of tests ask themselves who evaluates what gives other rows.
        if not (change is not None and change.rows):
            redefined = {c.lower() for c in change.redefined} if change is not None else set()
            columns = {
                *columns,
                *_evaluated_otherwise(sides, unique_id, unique_id in edited, redefined),
            }
        if not columns:
            continue
        there = (*analysis.nodes[unique_id].columns, ROWS) if unique_id in analysis.nodes else ()
        starts = [(unique_id, c) for c in there if EVERYTHING in columns or c.lower() in columns]
        below = reach_all([unique_id], head.children, through=passes_on)
        children: dict[Vertex, list[Vertex]] = {}
        for edge in edges_into(analysis.edges, below.keys() - {unique_id}):
            children.setdefault((edge[0], edge[1]), []).append((edge[2], edge[3]))
        read = reach_all(starts, children, through=lambda vertex: passes_on(vertex[0]))
        readers = {reader for reader, _ in read} - {unique_id}
        readers |= {test for test, *vertex in analysis.test_columns if (*vertex,) in read}
        found += [(u, unique_id) for u in sorted(readers)]
    return found


@made_once
def views_of(comparison: Comparison) -> tuple[Views, Views]:
    """What is evaluated of base's views, in the names of head, and of head's."""
    base, head = comparison.base, comparison.head
    renamed = {
        old.lower(): new.lower()
        for change in comparison.changed.values()
        for new, old in change.renamed.items()
    }
    return Views(base, renamed, other_names(base, head)), Views(head)


def is_guarded_as_before(comparison: Comparison, unique_id: str) -> bool:
    """Whether head evaluates a view for the rows of base, in these words, or only asks more of them."""
    if unique_id not in comparison.base.nodes:
        return False
    before, after = (side.steps(unique_id) for side in views_of(comparison))
    return before <= after and all(step.startswith(ASKED) for step in after - before)


def tests_that_may_fail(comparison: Comparison, left_out: Collection[str]) -> dict[str, str]:
    """The tests among `readers_of_what_may_fail`, but those that are left out: whatever is proven of their rows.

    Returns:
        The model that each reads.
    """
    nodes = comparison.head.nodes
    return {
        unique_id: view
        for unique_id, view in readers_of_what_may_fail(comparison)
        if nodes[unique_id].resource_type == "test" and unique_id not in left_out
    }


class Views:
    """What is evaluated of the views of a project, and what of it may fail.

    Args:
        project: one side of a comparison.
        renamed: how the columns that it reads are called on the other side.
        names: how its relations are.
    """

    def __init__(
        self,
        project: Project,
        renamed: Mapping[str, str] = MappingProxyType({}),
        names: Mapping[str, str] = MappingProxyType({}),
    ) -> None:
        self._project, self._renamed, self._names = project, renamed, names
        # Once for each view, however many ways lead to it.
        self.query = cache(self._query)

    def _query(self, unique_id: str) -> Evaluated:
        sql = rename(self._project.nodes[unique_id].compiled_code or "", self._names)
        dialect = dialect_of(self._project.metadata.adapter_type)
        read: dict[str, frozenset[str]] = {}
        for view in self._views(unique_id):
            for name, texts in self.query(view).fails_by().items():
                read[name] = read.get(name, frozenset()) | texts
        return Evaluated(sql, dialect, read, self._renamed)

    def fails_by(self, unique_id: str) -> dict[str, frozenset[str]]:
        """What fails, by the columns of a view that may fail; nothing of what is stored."""
        is_view = _is_view(self._project.nodes.get(unique_id))
        return self.query(unique_id).fails_by() if is_view else {}

    def may_fail(self, unique_id: str, *, forced: bool = False) -> frozenset[str]:
        """The columns of a view that may fail."""
        return self.query(unique_id).may_fail(forced=forced)

    def _views(self, unique_id: str) -> list[str]:
        nodes, parents = self._project.nodes, self._project.parents
        return [p for p in parents.get(unique_id, ()) if _is_view(nodes.get(p))]

    def whole(self, unique_id: str) -> list[Evaluated]:
        """A view and all views above it: to an engine that is one query, however it is divided."""
        nodes = self._project.nodes
        above = reach(unique_id, self._project.parents, keep=lambda u: _is_view(nodes.get(u)))
        return [self.query(u) for u in above]

    def steps(self, unique_id: str) -> set[str]:
        """What decides for which rows anything of a view is evaluated."""
        return {*chain(*(query.steps for query in self.whole(unique_id)))}

    def made_otherwise(self, unique_id: str, said: Collection[str]) -> frozenset[str]:
        """The columns of a view that enter what may fail and is not said on the other side."""
        made: dict[str, frozenset[str]] = {}

        def of(view: str) -> frozenset[str]:
            if view not in made:
                above = frozenset[str]().union(*map(of, self._views(view)))
                made[view] = self.query(view).made_otherwise(said, above)
            return made[view]

        return of(unique_id)


def _evaluated_otherwise(
    sides: tuple[Views, Views], unique_id: str, edited: bool, redefined: Collection[str]
) -> frozenset[str]:
    """The columns of a view with the same values that may fail for a reader of one side alone."""
    before, after = ([*side.whole(unique_id)] for side in sides)

    def differ(part: Callable[[Evaluated], Iterable[str]]) -> bool:
        return {*chain(*map(part, before))} != {*chain(*map(part, after))}

    if differ(lambda query: query.forced):
        return _may_fail(sides, unique_id, forced=True)
    failing = _may_fail(sides, unique_id) if edited else frozenset()
    if not failing or differ(lambda query: query.steps):
        return failing
    said = [{text for query in queries for text in query.items} for queries in (after, before)]
    otherwise = (side.made_otherwise(unique_id, s) for side, s in zip(sides, said, strict=True))
    return frozenset[str]().union(*otherwise) - {*redefined}


def _may_fail(
    sides: tuple[Views, Views], unique_id: str, *, forced: bool = False
) -> frozenset[str]:
    return frozenset[str]().union(*(side.may_fail(unique_id, forced=forced) for side in sides))


def _views_on_either_side(comparison: Comparison) -> Iterator[str]:
    """The models that are a view on one side, and of which the query or how it is stored may differ."""
    for now in comparison.head.of_type("model"):
        then = comparison.base.nodes.get(now.unique_id)
        if (
            then is not None
            and (_is_view(then) or _is_view(now))
            and (then.materialized, then.compiled_code) != (now.materialized, now.compiled_code)
        ):
            yield now.unique_id


def _is_view(node: Node | None) -> bool:
    """Whether it is a model that every reader evaluates anew."""
    return node is not None and node.resource_type == "model" and node.materialized not in STORED
