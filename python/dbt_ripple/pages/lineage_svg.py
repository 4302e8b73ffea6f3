"""A part of the lineage as one static picture (SVG): no script, no font, no other file.

Boxes are nodes, by layer from left to right; where columns are asked for, each box lists its own, and
arrows go from column to column. It is drawn for light and dark, and light on paper. Names are text
whatever is in them: what is not seen is written out, long names are in several lines, what is longer than
these is cut, and the whole name is the title that a browser shows.

Boxes are placed (`layout`) so that few arrows cross, by the usual method for directed graphs (Sugiyama's): every box
goes into a layer behind all that it comes from; long arrows get a bend in each layer that they pass; the order in a
layer is that of the mean places of neighbours, swept to and fro. The same graph in the same order gives the same
places.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, Literal
from xml.sax.saxutils import escape, quoteattr

from dbt_ripple.rendering.escaping import columns as columns_wide
from dbt_ripple.rendering.escaping import shown
from dbt_ripple.rendering.output import count

SWEEPS: Final = 4
MAX_BENDS: Final = 20_000
"""Above which long arrows go straight: a graph so large is not read by its arrows."""

Edge = tuple[str, str]


@dataclass(frozen=True, slots=True)
class Point:
    """Where a box is: its left upper corner, in pixels."""

    x: float
    y: float


@dataclass(slots=True)
class Layout:
    """Where everything is.

    Attributes:
        boxes: by id.
        bends: the points through which an arrow goes between its boxes, from left to right.
        width: of the picture; likewise ``height``.
        returning: the arrows that go back to the left, since the graph has a cycle.
    """

    boxes: dict[str, Point]
    bends: dict[Edge, list[Point]] = field(default_factory=dict)
    width: float = 0.0
    height: float = 0.0
    returning: set[Edge] = field(default_factory=set)


def layers_of(ids: Sequence[str], edges: Iterable[Edge]) -> dict[str, int]:
    """The layer of each vertex: one behind the last of its parents, from 0.

    In a cycle, the vertex that stands first in ``ids`` begins.

    Example:
        >>> layers_of(["a", "b", "c"], [("a", "b"), ("b", "c"), ("a", "c")])
        {'a': 0, 'b': 1, 'c': 2}
        >>> layers_of(["a", "b"], [("a", "b"), ("b", "a")])
        {'a': 0, 'b': 1}
    """
    children: dict[str, list[str]] = {id_: [] for id_ in ids}
    waiting = dict.fromkeys(ids, 0)
    for parent, child in dict.fromkeys(edges):
        if parent != child:
            children[parent].append(child)
            waiting[child] += 1
    layers: dict[str, int] = {}
    left = dict.fromkeys(ids)
    earliest = dict.fromkeys(ids, 0)
    ready = [id_ for id_ in ids if not waiting[id_]]
    while left:
        if not ready:  # only cycles are left, and what is behind them
            ready = [next(iter(left))]
        following: list[str] = []
        for id_ in ready:
            if id_ not in left:
                continue
            del left[id_]
            layers[id_] = earliest[id_]
            for child in children[id_]:
                waiting[child] -= 1
                if child in left:
                    earliest[child] = max(earliest[child], layers[id_] + 1)
                    if not waiting[child]:
                        following.append(child)
        ready = following
    return {id_: layers[id_] for id_ in ids}


def layout(
    heights: Mapping[str, float],
    edges: Iterable[Edge],
    *,
    box_width: float,
    between_layers: float,
    between_boxes: float,
) -> Layout:
    """Place boxes of one width.

    Args:
        heights: of each box, by id, in an order that does not change.
        edges: from parents to children; ids that ``heights`` lacks are not allowed.
        box_width: in pixels, as all others.
        between_layers: the space in which the arrows are.
        between_boxes: between boxes of a layer.
    """
    ids = list(heights)
    pairs = [edge for edge in dict.fromkeys(edges) if edge[0] != edge[1]]
    layer = layers_of(ids, pairs)
    forward = [edge for edge in pairs if layer[edge[0]] < layer[edge[1]]]
    result = Layout({}, returning=set(pairs) - set(forward))
    rows: list[list[_Vertex]] = [[] for _ in range(max(layer.values(), default=-1) + 1)]
    for id_ in ids:
        rows[layer[id_]].append(id_)
    above: dict[_Vertex, list[_Vertex]] = {}
    below: dict[_Vertex, list[_Vertex]] = {}
    has_bends = sum(layer[c] - layer[p] - 1 for p, c in forward) <= MAX_BENDS
    for parent, child in forward:
        chain: list[_Vertex] = [parent]
        for number in range(layer[parent] + 1, layer[child]) if has_bends else ():
            bend = (parent, child, number)
            rows[number].append(bend)
            chain.append(bend)
        chain.append(child)
        for left, right in itertools.pairwise(chain):
            below.setdefault(left, []).append(right)
            above.setdefault(right, []).append(left)
    _order(rows, above, below)
    tall = [
        sum(heights.get(v, 0.0) if isinstance(v, str) else 0.0 for v in row)
        + between_boxes * max(len(row) - 1, 0)
        for row in rows
    ]
    result.height = max(tall, default=0.0)
    result.width = max(len(rows) * (box_width + between_layers) - between_layers, 0.0)
    for number, row in enumerate(rows):
        x = number * (box_width + between_layers)
        y = (result.height - tall[number]) / 2
        for vertex in row:
            if isinstance(vertex, str):
                result.boxes[vertex] = Point(x, y)
                y += heights[vertex]
            else:
                result.bends.setdefault(vertex[:2], []).append(Point(x + box_width / 2, y))
            y += between_boxes
    return result


_Vertex = str | tuple[str, str, int]
"""A box, or the bend of an arrow in a layer that it passes."""


def _order(
    rows: list[list[_Vertex]],
    above: Mapping[_Vertex, list[_Vertex]],
    below: Mapping[_Vertex, list[_Vertex]],
) -> None:
    """Order each layer by the mean places of its neighbours in the layer before, to and fro."""
    for sweep in range(SWEEPS):
        numbers = range(1, len(rows)) if sweep % 2 == 0 else range(len(rows) - 2, -1, -1)
        for number in numbers:
            other = rows[number - 1 if sweep % 2 == 0 else number + 1]
            near = above if sweep % 2 == 0 else below
            size = max(len(other), 1)
            place = {vertex: (index + 0.5) / size for index, vertex in enumerate(other)}
            mean: dict[_Vertex, float] = {}
            for index, vertex in enumerate(rows[number]):
                places = [place[v] for v in near.get(vertex, ()) if v in place]
                # What has no neighbour there stays about where it is.
                own = (index + 0.5) / len(rows[number])
                mean[vertex] = sum(places) / len(places) if places else own
            rows[number].sort(key=mean.__getitem__)


Flow = Literal["value", "rows", "possible"]
"""What an arrow says: a value goes along, it only decides about rows or values, or it may be read."""

_WIDTH: Final = 230.0
_BETWEEN_LAYERS: Final = 70.0
_BETWEEN_BOXES: Final = 16.0
_HEAD: Final = 40.0
_ROW: Final = 18.0
_MARGIN: Final = 12.0
_LINE: Final = 16.0
_ROOM: Final = _WIDTH - 20
"""For a text in a box, in pixels."""

_NAME_LETTER: Final = 9.2
_SMALL_LETTER: Final = 7.2
"""How wide a letter is in the widest of the fonts that browsers take for these, in pixels."""

_MOST_LINES: Final = 3


@dataclass(frozen=True, slots=True)
class Box:
    """A node.

    Attributes:
        title: its name, and ``subtitle`` what it is.
        kind: root, source, model or reader: how it is coloured.
        rows: its columns, in order; empty where none are drawn.
        more: how many rows are left out.
        warning: whether something about it is not known, or wrong: its border is dashed.
    """

    id: str
    title: str
    subtitle: str
    kind: Literal["root", "source", "model", "reader"]
    rows: tuple[str, ...] = ()
    warning: bool = False
    more: int = 0

    @property
    def head(self) -> float:
        """How high it is above its rows."""
        return _HEAD + _LINE * (len(_lines(self.title)) - 1)


@dataclass(frozen=True, slots=True)
class Arrow:
    """A dependency of one box on another, or of one of its rows on one of the other's.

    Attributes:
        start: id of the box that is read, ``end`` of the one that reads.
        start_row: the column, if ``rows`` of the box has it; likewise ``end_row``.
        flow: what the arrow says.
        title: a description in words.
    """

    start: str
    end: str
    start_row: str | None = None
    end_row: str | None = None
    flow: Flow = "value"
    title: str = ""


def draw(boxes: Sequence[Box], arrows: Iterable[Arrow], title: str) -> str:
    """The picture, as a document of its own that can also stand inside HTML.

    Args:
        boxes: in an order that does not change.
        arrows: between them; drawn in this order.
        title: what the picture shows, for who cannot see it.
    """
    arrows = list(arrows)
    by_id = {box.id: box for box in boxes}
    places = layout(
        {box.id: _height(box) for box in boxes},
        [(arrow.start, arrow.end) for arrow in arrows],
        box_width=_WIDTH,
        between_layers=_BETWEEN_LAYERS,
        between_boxes=_BETWEEN_BOXES,
    )
    width, height = places.width + 2 * _MARGIN, places.height + 2 * _MARGIN
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" class="lineage" role="img" aria-label={_attribute(title)}'
        f' width="{width:g}" height="{height:g}" viewBox="0 0 {width:g} {height:g}">',
        f"<title>{_text(title)}</title>",
        f"<style>{_STYLE}</style>",
        "<defs>",
        *(
            f'<marker id="lineage-{flow}" viewBox="0 0 8 8" refX="8" refY="4" markerWidth="7"'
            f' markerHeight="7" orient="auto"><path class="tip {flow}" d="M0 0 8 4 0 8z"/></marker>'
            for flow in ("value", "rows", "possible")
        ),
        "</defs>",
        f'<g transform="translate({_MARGIN:g} {_MARGIN:g})">',
        *(_arrow(arrow, by_id, places) for arrow in arrows if arrow.start != arrow.end),
        *(line for box in boxes for line in _box(box, places.boxes[box.id])),
        "</g>",
        "</svg>",
    ]
    return "\n".join(lines) + "\n"


def _height(box: Box) -> float:
    rows = len(box.rows) + bool(box.more)
    return box.head + _ROW * rows + (6.0 if rows else 0.0)


def _box(box: Box, at: Point) -> Iterable[str]:
    warning = " warning" if box.warning else ""
    yield f'<g class="node {box.kind}{warning}" transform="translate({at.x:g} {at.y:g})">'
    yield f"<title>{_text(f'{box.title} ({box.subtitle})')}</title>"
    yield f'<rect width="{_WIDTH:g}" height="{_height(box):g}" rx="5"/>'
    for number, line in enumerate(_lines(box.title)):
        yield f'<text class="name" x="10" y="{17 + _LINE * number:g}">{escape(line)}</text>'
    small = int(_ROOM / _SMALL_LETTER)
    yield f'<text class="what" x="10" y="{box.head - 8:g}">{escape(_cut(box.subtitle, small))}</text>'
    for number, row in enumerate(box.rows):
        y = box.head + _ROW * number + 12
        cut = escape(_cut(row, small))
        yield f'<text class="column" x="14" y="{y:g}"><title>{_text(row)}</title>{cut}</text>'
    if box.more:
        y = box.head + _ROW * len(box.rows) + 12
        yield f'<text class="what" x="14" y="{y:g}">and {count(box.more, "more column")}</text>'
    yield "</g>"


def _port(box: Box, at: Point, row: str | None, *, right: bool) -> Point:
    """Where an arrow leaves a box or comes in."""
    y = box.head / 2
    if row is not None and row in box.rows:
        y = box.head + _ROW * box.rows.index(row) + 8
    return Point(at.x + (_WIDTH if right else 0.0), at.y + y)


def _arrow(arrow: Arrow, by_id: dict[str, Box], places: Layout) -> str:
    start = _port(by_id[arrow.start], places.boxes[arrow.start], arrow.start_row, right=True)
    end = _port(by_id[arrow.end], places.boxes[arrow.end], arrow.end_row, right=False)
    points = [start]
    for bend in places.bends.get((arrow.start, arrow.end), ()):
        # Across the layer in a line, so that no box is crossed.
        points += [
            Point(bend.x - _WIDTH / 2, bend.y),
            Point(bend.x + _WIDTH / 2, bend.y),
        ]
    points.append(end)
    path = f"M{start.x:g} {start.y:g}"
    for number, (one, other) in enumerate(itertools.pairwise(points)):
        if number % 2:
            path += f"L{other.x:g} {other.y:g}"
        else:
            pull = max(abs(other.x - one.x) / 2, 30.0)
            path += f"C{one.x + pull:g} {one.y:g} {other.x - pull:g} {other.y:g} {other.x:g} {other.y:g}"
    title = f"<title>{_text(arrow.title)}</title>" if arrow.title else ""
    return (
        f'<path class="edge {arrow.flow}" d="{path}" marker-end="url(#lineage-{arrow.flow})">'
        f"{title}</path>"
    )


def _text(text: str) -> str:
    return escape(shown(text))


def _attribute(text: str) -> str:
    return quoteattr(shown(text))


def _cut(text: str, longest: int) -> str:
    """A name of so many letters at most."""
    whole = shown(text)
    if columns_wide(whole) <= longest:
        return whole
    kept = ""
    for char in whole:
        if columns_wide(kept + char) >= longest:
            break
        kept += char
    return f"{kept}…"


def _lines(title: str) -> list[str]:
    """A name in lines that fit, broken behind what joins its words.

    Example:
        >>> _lines("stg_shopify__abandoned_checkout_discount_code")
        ['stg_shopify__', 'abandoned_checkout_', 'discount_code']
    """
    longest = int(_ROOM / _NAME_LETTER)
    lines = [""]
    parts = re.findall(r"[^_./ -]*[_./ -]+|[^_./ -]+", shown(title))
    for number, part in enumerate(parts):
        if lines[-1] and columns_wide(lines[-1] + part) > longest:
            if len(lines) == _MOST_LINES:
                lines[-1] += "".join(parts[number:])
                break
            lines.append("")
        lines[-1] += part
    return [_cut(line, longest) for line in lines]


_STYLE: Final = (
    ".lineage{--line:#6b7280;--rows:#9a6700;--text:#111827;--small:#4b5563;--model:#eef2ff;"
    "--source:#ecfdf5;--reader:#fff7ed;--root:#fef9c3;--edge:#c7cdd6;background:transparent;"
    "font-family:system-ui,sans-serif}"
    "@media screen and (prefers-color-scheme:dark){.lineage{--line:#9ca3af;--rows:#e3b341;"
    "--text:#f3f4f6;--small:#c3c8d0;--model:#1e293b;--source:#12352b;--reader:#3a2a17;"
    "--root:#4a4113;--edge:#4b5563}}"
    ".lineage rect{fill:var(--model);stroke:var(--edge)}"
    ".lineage .source rect{fill:var(--source)}.lineage .reader rect{fill:var(--reader)}"
    ".lineage .root rect{fill:var(--root);stroke:var(--text);stroke-width:2}"
    ".lineage .warning rect{stroke-dasharray:5 3;stroke:var(--rows)}"
    ".lineage text{fill:var(--text);unicode-bidi:isolate}"
    ".lineage .name{font-size:13px;font-weight:600}.lineage .what{font-size:11px;fill:var(--small)}"
    ".lineage .column{font-size:11.5px;font-family:ui-monospace,monospace}"
    ".lineage .edge{fill:none;stroke:var(--line);stroke-width:1.3}"
    ".lineage .rows{stroke:var(--rows);stroke-dasharray:5 3}"
    ".lineage .possible{stroke-dasharray:1.5 3}"
    ".lineage .tip{fill:var(--line);stroke:none}.lineage .tip.rows{fill:var(--rows)}"
)
