"""What is upstream and downstream, as a tree, Markdown, Mermaid, Graphviz and JSON."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Generic, Literal, NamedTuple, TypeVar

import click

from dbt_ripple.errors import RippleError
from dbt_ripple.graph.lineage_tables import ROWS
from dbt_ripple.rendering.escaping import SQL_SHOWN, code, one_line, shortened, styled
from dbt_ripple.rendering.escaping import mermaid as quoted
from dbt_ripple.rendering.output import as_document

if TYPE_CHECKING:
    from dbt_ripple.artifacts import Node, Project
    from dbt_ripple.graph.lineage import Analysis
    from dbt_ripple.graph.traversal import ColumnGraph, Direction, Trace, Vertex


HIDDEN = frozenset({"test", "unit_test", "operation"})
"""Resource types left out unless asked for: they read the data, nothing reads them."""

MAY_READ = "may read"
_TESTS = {"DATA_TEST": "tests it", "UNIT_TEST": "tests it"}
_OF_ONE_COLUMN = frozenset({"METRIC"})
_CHECKS = frozenset({"TEST", "UNIT_TEST"})
"""Labels of what is named without a column."""

_TESTED = "tests"

_LEAST = 10
"""Characters of an expression below which a tree shows nothing of it."""

V = TypeVar("V", bound=Hashable)


class Label(NamedTuple):
    """How a vertex reads: ``TABLE raw_orders``, ``DBT_MODEL fct_orders.amount``."""

    kind: str
    name: str

    def __str__(self) -> str:
        return f"{self.kind} {self.name}"


@dataclass(slots=True)
class TraceView(Generic[V]):
    """A trace with all that is needed to print it in any form."""

    trace: Trace[V]
    label: Callable[[V], Label]
    kinds: Callable[[V, V], list[str]]
    """The kinds of dependency between a parent and a child; empty for nodes."""
    expression: Callable[[V], str | None]
    """The SQL that computes a column; None for nodes, and for what is a column of a parent."""
    document: dict[str, Any]
    """The trace as ``--format json`` prints it."""
    omitted: Sequence[str] = ()
    """What is left out of the trace, because nobody asked for it."""


def node_view(
    project: Project,
    root: Node,
    direction: Direction,
    depth: int | None,
    include_tests: bool,
    wanted: set[str] | None = None,
    whose: Mapping[str, str] | None = None,
) -> TraceView[str]:
    """Trace whole nodes, along dbt's own graph.

    Args:
        project: its artifacts.
        root: where to begin.
        direction: which way to go.
        depth: how many steps.
        include_tests: whether tests and hooks are shown, too.
        wanted: show only ways to these.
        whose: the names of the projects of nodes that are of another one, by unique_id.
    """
    from dbt_ripple.graph.traversal import toward
    from dbt_ripple.graph.traversal import trace as walk

    nodes = project.nodes

    def keep(unique_id: str) -> bool:
        return include_tests or nodes[unique_id].resource_type not in HIDDEN

    traced = walk(root.unique_id, project.parents, project.children, direction, depth, keep)
    if wanted is not None:
        traced = toward(traced, wanted.__contains__)
    return TraceView(
        traced,
        label=lambda unique_id: _label(project, unique_id, whose),
        kinds=lambda _parent, _child: [],
        expression=lambda _: None,
        document={
            "root": root.unique_id,
            "direction": direction,
            "depth": depth,
            "nodes": [
                {
                    "unique_id": unique_id,
                    "name": nodes[unique_id].display_name,
                    "resource_type": nodes[unique_id].resource_type,
                    "depth": distance,
                    **_type_of(project, unique_id),
                    **_project_of(unique_id, whose),
                }
                for unique_id, distance in traced.depths.items()
            ],
            "edges": [{"from": parent, "to": child} for parent, child in traced.edges],
        },
        omitted=_omitted(include_tests, wanted),
    )


def column_view(
    project: Project,
    analysis: Analysis,
    root: Node,
    column: str,
    direction: Direction,
    depth: int | None,
    include_tests: bool = False,
    wanted: set[str] | None = None,
    whose: Mapping[str, str] | None = None,
) -> TraceView[Vertex]:
    """Trace one column, along the column edges of the analysis, and to who may read it.

    Raises:
        RippleError: the node has no such column; the nearest are given.
    """
    from dbt_ripple.graph.possible_readers import guessed_edges, read_by_tests
    from dbt_ripple.graph.traversal import column_graph, toward
    from dbt_ripple.graph.traversal import trace as walk

    guessed, is_guess = guessed_edges(project, analysis, tests=include_tests)
    tested = list(read_by_tests(project, analysis)) if include_tests else []
    graph = column_graph([*analysis.edges, *guessed, *tested])

    def kinds_between(parent: Vertex, child: Vertex) -> list[str]:
        if is_guess(parent, child):
            return [MAY_READ]
        kinds = graph.kinds[parent, child]
        return list(dict.fromkeys(_TESTS.get(k.subtype) or f"{k.type} {k.subtype}" for k in kinds))

    start = (root.unique_id, column_of(analysis, graph, root, column))
    traced = walk(start, graph.parents, graph.children, direction, depth)
    if wanted is not None:
        traced = toward(traced, lambda vertex: vertex[0] in wanted)
    certain = _surely(traced, is_guess)
    expression = expressions_of(project)
    return TraceView(
        traced,
        label=lambda vertex: _column_label(project, vertex, whose),
        kinds=kinds_between,
        expression=expression,
        document={
            "root": start[0],
            "column": start[1],
            "direction": direction,
            "depth": depth,
            "nodes": [
                {
                    "unique_id": unique_id,
                    "name": _name(project, unique_id),
                    "resource_type": _resource_type(project, unique_id),
                    "depth": distance,
                    "column": name,
                    **_type_of(project, unique_id),
                    **_project_of(unique_id, whose),
                    **({"expression": text} if (text := expression((unique_id, name))) else {}),
                    **({"may_read": True} if (unique_id, name) not in certain else {}),
                }
                for (unique_id, name), distance in traced.depths.items()
            ],
            "edges": [
                {
                    "from": parent[0],
                    "to": child[0],
                    "from_column": parent[1],
                    "to_column": child[1],
                    "type": kind.type,
                    "subtype": kind.subtype,
                    "masking": kind.masking,
                    **({"may_read": True} if is_guess(parent, child) else {}),
                }
                for parent, child in traced.edges
                for kind in graph.kinds[parent, child]
            ],
        },
        omitted=_omitted(include_tests, wanted),
    )


def _omitted(include_tests: bool, wanted: set[str] | None) -> list[str]:
    omitted = [] if include_tests else [_TESTED]
    return omitted if wanted is None else [*omitted, "what --select does not name"]


def expressions_of(project: Project) -> Callable[[Vertex], str | None]:
    """The SQL that computes each column, found for a node when it is first asked for."""
    from dbt_ripple.flow.definitions import computed
    from dbt_ripple.flow.identifiers import dialect_of
    from dbt_ripple.graph.assets.asset_nodes import declared_expressions

    dialect = dialect_of(project.metadata.adapter_type)
    by_node: dict[str, dict[str, str]] = {}

    def expression(vertex: Vertex) -> str | None:
        unique_id, column = vertex
        if unique_id not in by_node:
            node = project.nodes.get(unique_id)
            sql = None if node is None or node.is_python else node.compiled_code
            by_node[unique_id] = computed(sql, dialect) if sql else {}
            if node is not None:
                by_node[unique_id] |= declared_expressions(node)
        return by_node[unique_id].get(column.lower())

    return expression


def _surely(traced: Trace[Vertex], is_guess: Callable[[Vertex, Vertex], bool]) -> set[Vertex]:
    """The vertices of a trace that depend on its root, or it on them, as far as is known."""
    from dbt_ripple.graph.traversal import reach

    children: dict[Vertex, list[Vertex]] = {}
    parents: dict[Vertex, list[Vertex]] = {}
    for parent, child in traced.edges:
        if not is_guess(parent, child):
            children.setdefault(parent, []).append(child)
            parents.setdefault(child, []).append(parent)
    return {*reach(traced.root, children), *reach(traced.root, parents)}


def column_of(analysis: Analysis, graph: ColumnGraph, root: Node, asked: str) -> str:
    """The column as the analysis spells it."""
    seen = analysis.nodes.get(root.unique_id)
    columns = dict.fromkeys([*(seen.columns if seen else []), *graph.columns(root.unique_id)])
    if asked in columns or asked == ROWS:
        return asked
    same = [name for name in columns if name.casefold() == asked.casefold()]
    if same:
        return same[0]
    from dbt_ripple.artifacts import did_you_mean

    otherwise = "none of its columns is known: `dbt docs generate` writes them to catalog.json"
    if columns:
        otherwise = f"it has {', '.join(list(columns)[:10])}{', ...' if len(columns) > 10 else ''}"
    fix = did_you_mean(asked, columns, otherwise)
    raise RippleError(f"{root.unique_id} has no column of this name", asked, fix)


def _project_of(unique_id: str, whose: Mapping[str, str] | None) -> dict[str, str]:
    return {"project": whose[unique_id]} if whose and unique_id in whose else {}


def _type_of(project: Project, unique_id: str) -> dict[str, str]:
    """What a declared asset is."""
    from dbt_ripple.artifacts import asset_type

    node = project.nodes.get(unique_id)
    is_asset = node is not None and node.resource_type == "asset"
    return {"asset_type": asset_type(node)} if node is not None and is_asset else {}


def _label(project: Project, unique_id: str, whose: Mapping[str, str] | None = None) -> Label:
    from dbt_ripple.artifacts import asset_type

    node = project.nodes.get(unique_id)
    # Relations the project reads without declaring them have no node.
    name = _name(project, unique_id)
    if whose and unique_id in whose:
        name = f"{whose[unique_id]}.{name}"
    return Label(asset_type(node).upper() if node else "TABLE", name)


def _column_label(
    project: Project, vertex: Vertex, whose: Mapping[str, str] | None = None
) -> Label:
    kind, name = _label(project, vertex[0], whose)
    if kind in _OF_ONE_COLUMN or kind in _CHECKS:
        return Label(kind, f"{name} (rows)" if vertex[1] == ROWS and kind == "METRIC" else name)
    return Label(kind, f"{name} (rows)" if vertex[1] == ROWS else f"{name}.{vertex[1]}")


def _name(project: Project, unique_id: str) -> str:
    node = project.nodes.get(unique_id)
    return node.display_name if node else unique_id


def _resource_type(project: Project, unique_id: str) -> str:
    node = project.nodes.get(unique_id)
    return node.resource_type if node else "relation"


SEE_ABOVE = "(see above)"
"""Stands after a vertex that was reached before: what follows it is shown there."""


class Line(NamedTuple):
    """One line of a tree: where it hangs, and what it says."""

    last: tuple[bool, ...]
    """For each level below the root, whether the line (or the one it hangs from) is the last."""
    label: Label
    kinds: list[str]
    seen: bool
    expression: str | None = None
    vertex: Any = None


def render(view: TraceView[Any], style: str, width: int | None = None) -> list[str]:
    """The trace in one of the formats of ``--format``, line by line.

    Args:
        view: the trace.
        style: the format.
        width: columns that a line of the tree should fit into.
    """
    if style == "json":
        return as_document(view.document)
    if style == "mermaid":
        return list(_mermaid(view))
    if style == "dot":
        return list(_dot(view))
    return list(_markdown(view) if style == "markdown" else _tree(view, width))


def _tree(view: TraceView[Any], width: int | None) -> Iterator[str]:
    for number, (heading, direction) in enumerate(_headed(view.trace.direction)):
        if number:
            yield ""
        yield from heading
        lines = [_drawn(line, width) for line in tree_lines(view, direction)]
        yield from lines
        if len(lines) == 1 and view.trace.depth != 0:
            yield f"└── {_nothing(view, direction)}"


def _nothing(view: TraceView[Any], direction: str) -> str:
    # Nothing is made of a test.
    omitted = [what for what in view.omitted if direction == "downstream" or what != _TESTED]
    more = f"; left out: {', '.join(omitted)}" if omitted else ""
    return f"(nothing {direction}{more})"


def _headed(direction: Direction) -> list[tuple[list[str], Literal["upstream", "downstream"]]]:
    if direction == "both":
        return [(["upstream:"], "upstream"), (["downstream:"], "downstream")]
    return [([], direction)]


def tree_lines(view: TraceView[V], direction: Literal["upstream", "downstream"]) -> Iterator[Line]:
    """The trace as the lines of a tree; what follows a vertex is shown once, the first time."""
    depths = getattr(view.trace, direction)
    limit = view.trace.depth
    following: Mapping[V, Sequence[V]] = _following(view, direction)
    expanded: set[V] = set()
    # A stack of iterators instead of recursion: chains of models can be longer than Python's stack.
    stack: list[tuple[V, V | None, tuple[bool, ...]]] = [(view.trace.root, None, ())]
    while stack:
        vertex, reached_from, last = stack.pop()
        kinds: list[str] = []
        if reached_from is not None:
            pair = (reached_from, vertex) if direction == "downstream" else (vertex, reached_from)
            kinds = view.kinds(*pair)
        more = following.get(vertex, ()) if limit is None or depths[vertex] < limit else ()
        seen = vertex in expanded
        text = None if seen else view.expression(vertex)
        yield Line(last, view.label(vertex), kinds, seen and bool(more), text, vertex)
        if seen:
            continue
        expanded.add(vertex)
        stack.extend(
            (neighbour, vertex, (*last, index == 0))
            for index, neighbour in enumerate(reversed(more))
        )


def _following(
    view: TraceView[V], direction: Literal["upstream", "downstream"]
) -> dict[V, list[V]]:
    """What hangs below each vertex: the busiest branch first, then models, then by name."""
    depths = getattr(view.trace, direction)
    following: dict[V, list[V]] = {}
    for parent, child in view.trace.edges:
        near, far = (parent, child) if direction == "downstream" else (child, parent)
        if near in depths and far in depths:
            following.setdefault(near, []).append(far)
    branches = {vertex: len(neighbours) for vertex, neighbours in following.items()}
    for neighbours in following.values():
        neighbours.sort(key=lambda vertex: (-branches.get(vertex, 0), *_order(view.label(vertex))))
    return following


_FIRST = {"DBT_MODEL": 0, "TABLE": 1}


def _order(label: Label) -> tuple[int, str, str]:
    return (_FIRST.get(label.kind, 2), label.kind, label.name)


def _drawn(line: Line, width: int | None) -> str:
    branch, name = "", line.label.name
    if line.last:
        branch = "".join("    " if last else "│   " for last in line.last[:-1])
        branch += "└── " if line.last[-1] else "├── "
    if width is not None:
        # Of a name both ends tell most: the kinds behind it give way first, see `escaping.cut`.
        if len(branch) > width // 2:
            branch = "…" + branch[1 - width // 2 :]
        name = shortened(name, width - len(branch) - len(line.label.kind) - 1)
    text = f"{branch}{styled(line.label.kind, fg='cyan')} {name}"
    if line.kinds:
        text += "  " + styled(", ".join(line.kinds), dim=True)
    if line.expression:
        # It has what room is left: in a narrow terminal, none.
        left = SQL_SHOWN if width is None else width - len(click.unstyle(text)) - len("  = ")
        if left >= _LEAST:
            text += f"  = {styled(one_line(line.expression, left), dim=True)}"
    return f"{text} {styled(SEE_ABOVE, dim=True)}" if line.seen else text


def _markdown(view: TraceView[Any]) -> Iterator[str]:
    root = view.label(view.trace.root)
    for number, (_, direction) in enumerate(_headed(view.trace.direction)):
        if number:
            yield ""
        yield f"### {direction.capitalize()} of {code(root.name)}"
        yield ""
        lines = list(tree_lines(view, direction))
        for line in lines:
            text = f"{'  ' * len(line.last)}- {line.label.kind} {code(line.label.name)}"
            if line.kinds:
                text += f" ({', '.join(line.kinds)})"
            if line.expression:
                text += f": {code(one_line(line.expression))}"
            yield f"{text} *{SEE_ABOVE[1:-1]}*" if line.seen else text
        if len(lines) == 1 and view.trace.depth != 0:
            yield f"  - {_nothing(view, direction)}"


def _mermaid(view: TraceView[Any]) -> Iterator[str]:
    """A Mermaid flowchart, whatever characters the names have."""
    vertices = list(view.trace.depths)
    ids = {vertex: f"n{number}" for number, vertex in enumerate(vertices)}
    yield "flowchart LR"
    for vertex in vertices:
        label = view.label(vertex)
        opening, closing = _SHAPES.get(label.kind, ("([", "])"))
        yield f'  {ids[vertex]}{opening}"{quoted(label.kind)}<br/>{quoted(label.name)}"{closing}'
    for parent, child in view.trace.edges:
        kinds = view.kinds(parent, child)
        # A dashed arrow: the value does not flow, it only decides; or it is not known whether it does.
        dashed = kinds and all(k.startswith("INDIRECT") or k == MAY_READ for k in kinds)
        arrow = "-.->" if dashed else "-->"
        text = f'|"{"<br/>".join(kinds)}"|' if kinds else ""
        yield f"  {ids[parent]} {arrow}{text} {ids[child]}"
    yield f"  style {ids[view.trace.root]} stroke-width:4px"


_SHAPES = {"TABLE": ("[(", ")]"), "DBT_MODEL": ("[", "]")}


def _dot(view: TraceView[Any]) -> Iterator[str]:
    """A graph for Graphviz, whatever characters the names have."""
    ids = {vertex: f"n{number}" for number, vertex in enumerate(view.trace.depths)}
    yield "digraph lineage {"
    yield "  rankdir=LR; node [shape=box];"
    for vertex, own in ids.items():
        label = view.label(vertex)
        thick = ", penwidth=3" if vertex == view.trace.root else ""
        yield f"  {own} [label={_quoted(f'{label.kind}{chr(10)}{label.name}')}{thick}];"
    for parent, child in view.trace.edges:
        kinds = view.kinds(parent, child)
        dashed = kinds and all(k.startswith("INDIRECT") or k == MAY_READ for k in kinds)
        style = [f"label={_quoted(chr(10).join(kinds))}"] if kinds else []
        style += ["style=dashed"] if dashed else []
        attributes = f" [{', '.join(style)}]" if style else ""
        yield f"  {ids[parent]} -> {ids[child]}{attributes};"
    yield "}"


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{escaped}"'


def nearest(view: TraceView[V], number: int) -> TraceView[V]:
    """The part of a trace with so many of its vertices, those nearest to the root."""
    kept = set(list(view.trace.depths)[:number])
    trace = view.trace
    part = replace(
        trace,
        upstream={v: d for v, d in trace.upstream.items() if v in kept},
        downstream={v: d for v, d in trace.downstream.items() if v in kept},
        edges=[
            (parent, child) for parent, child in trace.edges if parent in kept and child in kept
        ],
    )
    return replace(view, trace=part)
