"""Why a test is selected or a column differs, or where the change stops having an effect before it gets there."""

from __future__ import annotations

import msgspec

from dbt_ripple.artifacts import Node, Project, did_you_mean, find_node
from dbt_ripple.artifacts.node_names import UnknownNodeError
from dbt_ripple.changes import Comparison
from dbt_ripple.changes.causes import Cause, causes_of
from dbt_ripple.changes.column_types import FixtureTypes
from dbt_ripple.changes.comparison import NodeChange, Vertex
from dbt_ripple.changes.diff import Texts
from dbt_ripple.changes.verdict import verdict_of
from dbt_ripple.errors import RippleError
from dbt_ripple.graph.lineage_tables import ROWS
from dbt_ripple.graph.lineage_tests import lineage_tests
from dbt_ripple.graph.traversal import breadth_first_tree, reach
from dbt_ripple.reasons import Code, Reason
from dbt_ripple.selection.impact_paths import nearest_changed
from dbt_ripple.selection.result import Selection
from dbt_ripple.selection.select import changed_for_exposure

TESTS = frozenset({"test", "unit_test"})


class PathStep(msgspec.Struct, kw_only=True):
    """A vertex on the way of a change.

    Attributes:
        column: ``*rows*`` for the row set; None for the test at the end.
        expression: the SQL that computes the column on head, over the relations that its query
            reads, where it is at hand.
    """

    unique_id: str
    column: str | None = None
    expression: str | None = None


class Beginning(msgspec.Struct, kw_only=True):
    """Where a change began, and what it reaches of the relation that is asked about.

    Attributes:
        path: from there down to the first column it reaches; `PathStep` of one vertex if it began
            in the relation itself.
        before: what base has there: an expression, or clauses.
        after: likewise, of head.
        reaches: the columns of the relation that differ because of it, with their SQL on head;
            ``*rows*`` for its row set.
        edited: what was edited there.
    """

    path: list[PathStep]
    before: list[str] = []
    after: list[str] = []
    reaches: list[PathStep] = []
    edited: list[Cause] = []


class Renamed(msgspec.Struct, kw_only=True):
    """A column that has the definition it had on base, under another name."""

    before: str
    after: str


class Explanation(msgspec.Struct, kw_only=True):
    """Why a test is selected or not, or why a relation or a column differs or not.

    Attributes:
        verdict: of a test: selected, proven, blocked or not selected. Of a relation or a column: new,
            changed (by itself), affected (by what it reads) or not changed.
        path: of a selected test, from where the change began down to it; of another, the vertex
            where the ripple stopped. Of a column that differs, from where its change began.
        before: at the beginning of the path, what base has there: an expression, or clauses.
        after: likewise, of head.
        facts: of a proven test, the tests it rests on.
        blocked_by: of a blocked test, the relation that cannot be built.
        not_proven: of a selected test, what is missing to prove it, where that was looked at.
        broken: why its query cannot compile on head; None where it can.
        causes: of a relation that differs, where the changes began that it shows.
        edited: of a test that is affected, what was edited where the path begins.
        removed: of a relation, the columns that only base has.
        renamed: likewise, the columns that only have another name.
    """

    unique_id: str
    name: str
    verdict: str
    reason: Reason
    path: list[PathStep] = []
    before: list[str] = []
    after: list[str] = []
    facts: list[str] = []
    blocked_by: str | None = None
    not_proven: Reason | msgspec.UnsetType = msgspec.UNSET
    broken: Reason | None = None
    causes: list[Beginning] = []
    edited: list[Cause] = []
    removed: list[str] = []
    renamed: list[Renamed] = []


def find(head: Project, text: str) -> tuple[Node, str | None]:
    """The test, the relation or the column that a person means.

    Args:
        head: the project.
        text: a unique_id, a name, ``relation.column``, or a part of the name of one test.

    Returns:
        The node, and the column where one is named.

    Raises:
        RippleError: there is none, or several; the nearest names are given.
    """
    text = text.strip()
    wanted = text.casefold()
    tests = [node for node in head.nodes.values() if node.resource_type in TESTS]
    if any(text == test.unique_id or wanted == test.name.casefold() for test in tests):
        return find_test(head, text), None
    try:
        return find_node(head, text)
    except RippleError as error:
        if any(wanted in test.name.casefold() for test in tests):
            return find_test(head, text), None
        if not isinstance(error, UnknownNodeError):
            raise
    names = (node.name for node in head.nodes.values())
    raise RippleError(
        f"no test or node of this name in project {head.name}",
        text,
        did_you_mean(text, names, "`dbt ls` lists the nodes and the tests"),
    )


def find_test(head: Project, text: str) -> Node:
    """The test a person means by a unique_id, a name, or a part of a name only one test has.

    Raises:
        RippleError: there is none, or several; the nearest names are given.
    """
    tests = [node for node in head.nodes.values() if node.resource_type in TESTS]
    wanted = text.strip().casefold()
    for matches in (
        lambda node: text == node.unique_id,
        lambda node: wanted == node.name.casefold(),
        lambda node: node.name.casefold().startswith(wanted),
        lambda node: wanted in node.name.casefold(),
    ):
        matching = [node for node in tests if matches(node)]
        if len(matching) == 1:
            return matching[0]
        if matching:
            some = ", ".join(sorted(node.unique_id for node in matching)[:5])
            raise RippleError(
                f"{len(matching)} tests have this in their name: {some}"
                + (", ..." if len(matching) > 5 else ""),
                text,
                "name one by its id",
            )
    raise RippleError(
        f"no test of this name in project {head.name}",
        text,
        did_you_mean(
            text, (node.name for node in tests), "`dbt ls --resource-type test` lists the tests"
        ),
    )


def explain(comparison: Comparison, selection: Selection, test: Node) -> Explanation:
    """Explain one test.

    Args:
        comparison: of base and head.
        selection: what is selected of it, not restricted.
        test: a data test or unit test of head.
    """
    texts = Texts(comparison)
    unique_id = test.unique_id
    explanation = Explanation(
        unique_id=unique_id,
        name=test.name,
        verdict="not selected",
        reason=Code.NOTHING_CHANGED(),
    )
    selected = next((t for t in selection.tests if t.unique_id == unique_id), None)
    proven = next((t for t in selection.proven if t.unique_id == unique_id), None)
    blocked = next((t for t in selection.blocked if t.unique_id == unique_id), None)
    broken = verdict_of(comparison).broken.get(unique_id)
    explanation.broken = broken.reason if broken is not None else None
    if (chosen := selected or proven or blocked) is not None:
        explanation.reason = chosen.reason
        nearest = nearest_changed(comparison, [unique_id])
        _put_way(explanation, comparison, texts, nearest.get(unique_id))
    if selected is not None:
        explanation.verdict, explanation.not_proven = "selected", selected.not_proven
    elif proven is not None:
        explanation.verdict, explanation.facts = "proven", proven.facts
    elif blocked is not None:
        explanation.verdict, explanation.blocked_by = "blocked", blocked.blocked_by
    elif test.resource_type == "unit_test":
        if unique_id in selection.unit_tests:
            explanation.verdict = "selected"
            explanation.reason = _unit_test_reason(comparison, test)
        else:
            explanation.reason = Code.UNIT_TEST_AS_BEFORE()
    else:
        analysis = comparison.head_analysis
        read = [(node, column) for t, node, column in analysis.test_columns if t == unique_id]
        _stopped(explanation, comparison, texts, test, read)
    return explanation


def explain_node(comparison: Comparison, node: Node, column: str | None) -> Explanation:
    """Explain why a relation, or one of its columns, differs from base, or why not.

    Args:
        comparison: of base and head.
        node: a relation of head.
        column: of it, on either side; None for all of it.

    Raises:
        RippleError: neither side has such a column.
    """
    texts, unique_id = Texts(comparison), node.unique_id
    explanation = Explanation(
        unique_id=unique_id,
        name=node.display_name if column is None else f"{node.display_name}.{column}",
        verdict="not changed",
        reason=Code.NOTHING_CHANGED(),
    )
    broken = verdict_of(comparison).broken.get(unique_id)
    explanation.broken = broken.reason if broken is not None else None
    change = comparison.changed.get(unique_id) or NodeChange(unique_id, "changed")
    analysed = comparison.head_analysis.nodes.get(unique_id)
    columns = [*(analysed.columns if analysed is not None else ()), ROWS]
    asked = [c for c in columns if column is None or c.lower() == column.lower()]
    former = {new: old for new, old in change.renamed.items() if new in asked}
    explanation.renamed = [Renamed(before=old, after=new) for new, old in former.items()]
    gone = [c for c in change.removed if column is None or c.lower() == column.lower()]
    explanation.removed = [c for c in gone if c not in former.values()]
    if column is not None and not asked and not gone:
        fix = did_you_mean(column, columns[:-1], "`dbt-ripple trace` shows its columns")
        raise RippleError(f"{node.display_name} has no column {column!r}", explanation.name, fix)
    vertices = [v for v in change.vertices() if v[1] in asked]
    if node.resource_type == "exposure":  # nothing is computed of what it reads
        vertices = list(changed_for_exposure(comparison, node))
    causes = _causes(comparison, texts, vertices)
    began = [cause for cause in causes if cause.path[0].unique_id == unique_id]
    explanation.causes = [*began, *(cause for cause in causes if cause not in began)]
    if explanation.causes:
        first = explanation.causes[0]
        explanation.path, explanation.before, explanation.after = (
            first.path,
            first.before,
            first.after,
        )
        explanation.verdict = "changed" if began else "affected"
        explanation.reason = _changed(comparison, first.path[0])
    elif explanation.removed or explanation.renamed:
        explanation.verdict = "changed"
        explanation.reason = Code.COLUMNS_GONE(
            name=node.display_name, columns=[*explanation.removed, *former.values()]
        )
    else:
        _stopped(explanation, comparison, texts, node, [(unique_id, c) for c in asked])
    if change.kind == "added":
        explanation.verdict, explanation.reason = "new", Code.NODE_NEW(name=node.display_name)
    return explanation


def _causes(comparison: Comparison, texts: Texts, vertices: list[Vertex]) -> list[Beginning]:
    """Where the changes of some vertices of a relation began."""
    causes: dict[Vertex, Beginning] = {}
    for vertex in vertices:
        way = comparison.way_to(vertex)
        cause = causes.get(way[0])
        if cause is None:
            before, after = _values_before_and_after(comparison, texts, way[0])
            path = [_step(texts, step) for step in way]
            cause = causes[way[0]] = Beginning(
                path=path,
                before=before,
                after=after,
                edited=causes_of(comparison).of_all([way[0][0]]),
            )
        cause.reaches.append(_step(texts, vertex))
    return list(causes.values())


def _changed(comparison: Comparison, step: PathStep) -> Reason:
    """That a vertex changed, as it is said of tests."""
    name = comparison.name(step.unique_id)
    if step.column is None or step.column == ROWS:
        return Code.ROWS_CHANGED(name=name)
    return Code.COLUMN_CHANGED(name=name, column=step.column)


def _put_way(
    explanation: Explanation, comparison: Comparison, texts: Texts, vertex: Vertex | None
) -> None:
    if vertex is not None:
        way = comparison.way_to(vertex)
        explanation.path = [_step(texts, step) for step in way]
        explanation.before, explanation.after = _values_before_and_after(comparison, texts, way[0])
    elif explanation.unique_id in comparison.base.nodes:
        then, now = (texts.of(side, explanation.unique_id) for side in (0, 1))
        explanation.before = list((then.clauses - now.clauses).elements())
        explanation.after = list((now.clauses - then.clauses).elements())
        for name in dict.fromkeys([*then.columns, *now.columns]):
            a, b = texts.column(explanation.unique_id, name, name)
            if a != b:
                explanation.before += [a] if a else []
                explanation.after += [b] if b else []
    explanation.path.append(PathStep(unique_id=explanation.unique_id))
    explanation.edited = causes_of(comparison).of_all([explanation.path[0].unique_id])


def _step(texts: Texts, vertex: Vertex) -> PathStep:
    unique_id, column = vertex
    expression = None if column == ROWS else texts.definition(1, unique_id, column)
    return PathStep(unique_id=unique_id, column=column, expression=expression)


def _values_before_and_after(
    comparison: Comparison, texts: Texts, vertex: Vertex
) -> tuple[list[str], list[str]]:
    unique_id, column = vertex
    if column == ROWS:
        return texts.rows(unique_id) if unique_id in comparison.base.nodes else ([], [])
    before, after = texts.column(unique_id, column, column)
    return ([before] if before else []), ([after] if after else [])


def _unit_test_reason(comparison: Comparison, test: Node) -> Reason:
    then = comparison.base.nodes.get(test.unique_id)
    if then is None:
        return Code.NEW_UNIT_TEST()
    if (then.given, then.expect, then.overrides) != (test.given, test.expect, test.overrides):
        return Code.FIXTURE_CHANGED()
    if comparison.everything:
        return comparison.everything[0]
    before = comparison.base_analysis.unit_tests.get(test.unique_id)
    now = comparison.head_analysis.unit_tests.get(test.unique_id)
    if before is None or now is None or before.fingerprint != now.fingerprint:
        return Code.TESTED_QUERY_CHANGED(model=str(test.model))
    for (parent, column), type_ in now.types.items():
        if before.types.get((parent, column), type_) != type_:
            was = before.types[parent, column]
            name = comparison.name(parent)
            return Code.GIVEN_TYPE_CHANGED(name=name, column=column, was=was, now=type_)
    if (given := FixtureTypes(comparison).differ(now)) is not None:
        return Code.GIVEN_TYPE_MAY_CHANGE(name=comparison.name(given[0]), column=given[1])
    return Code.NOT_ANALYSED_ON_BOTH(model=str(test.model))


def _stopped(
    explanation: Explanation, comparison: Comparison, texts: Texts, node: Node, start: list[Vertex]
) -> None:
    """Explain where the change stops having an effect above what is not impacted.

    Args:
        explanation: what is completed.
        comparison: of base and head.
        texts: of both.
        node: a test or a relation.
        start: the vertices that it reads, or those of the relation.
    """
    head = comparison.head
    asked = lineage_tests(head, [node]) if node.resource_type in TESTS else []
    if asked and comparison.changed:
        name = comparison.name(asked[0].node)
        explanation.reason = Code.LINEAGE_AS_BEFORE(name=name, column=asked[0].column)
        return
    distance = reach(node.unique_id, head.parents)
    reworded = [u for u in distance if comparison.reworded.get(u)]
    if reworded and not any(u in comparison.changed for u in distance):
        rules = comparison.reworded[reworded[0]]
        explanation.reason = Code.MEANS_THE_SAME(name=comparison.name(reworded[0]), rules=[*rules])
        return
    if not comparison.changed:
        explanation.reason = Code.NOTHING_CHANGED()
        return
    changed = [unique_id for unique_id in distance if unique_id in comparison.changed]
    if not changed:
        names = sorted({comparison.name(unique_id) for unique_id, _ in _origins(comparison)})
        explanation.reason = Code.NOT_DOWNSTREAM(names=[*names])
        return
    analysis = comparison.head_analysis
    parents: dict[Vertex, list[Vertex]] = {}
    for edge in analysis.edges:
        parents.setdefault((edge[2], edge[3]), []).append((edge[0], edge[1]))
    below = breadth_first_tree(start, parents)
    nearest = next((vertex for vertex in below if vertex in comparison.changed_vertices), None)
    if nearest is not None:
        equal = below[nearest]
        explanation.path = [_step(texts, nearest)]
        reader = comparison.spoken(equal) if equal is not None else "the test"
        if equal is not None:
            explanation.path.append(_step(texts, equal))
        explanation.reason = Code.EQUAL_AGAIN(reader=reader, changed=comparison.spoken(nearest))
        explanation.before, explanation.after = _values_before_and_after(comparison, texts, nearest)
        return
    nearest_changed = changed[0]
    change = comparison.changed[nearest_changed]
    columns = [column for _, column in change.vertices()] or change.removed or change.added
    read = sorted({c for u, c in below if u == nearest_changed and c != ROWS})
    explanation.path = [_step(texts, (nearest_changed, column)) for column in columns[:1]]
    name = comparison.name(nearest_changed)
    what: list[str | Reason] = ["its rows" if column == ROWS else column for column in columns[:5]]
    if not columns:
        explanation.reason = Code.ONLY_REORDERED(name=name)
    elif nearest_changed == node.unique_id:
        explanation.reason = Code.OTHERS_CHANGED(name=name, changed=what)
    elif read:
        explanation.reason = Code.READS_ONLY(name=name, changed=what, read=[*read])
    else:
        explanation.reason = Code.DOES_NOT_READ(name=name, changed=what)


def _origins(comparison: Comparison) -> list[Vertex]:
    began = [vertex for vertex, before in comparison.predecessors.items() if before is None]
    return began or [(unique_id, ROWS) for unique_id in comparison.changed]
