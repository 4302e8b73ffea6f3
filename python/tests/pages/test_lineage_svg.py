"""The static picture of a lineage: where boxes stand, and what names do in it."""

from __future__ import annotations

import time
from itertools import pairwise
from xml.etree import ElementTree

from hostile import hostile, unsafe
from hypothesis import given, settings
from hypothesis import strategies as st

from dbt_ripple.pages.lineage_svg import Arrow, Box, draw, layers_of, layout

GRAPHS = st.integers(1, 9).flatmap(
    lambda n: st.tuples(
        st.just([f"n{i}" for i in range(n)]),
        st.lists(st.tuples(st.integers(0, n - 1), st.integers(0, n - 1)), max_size=20),
    )
)
SVG = "{http://www.w3.org/2000/svg}"


@given(GRAPHS)
@settings(deadline=None)
def test_boxes_do_not_overlap_and_arrows_go_to_the_right(
    graph: tuple[list[str], list[tuple[int, int]]],
) -> None:
    ids, numbers = graph
    edges = [(f"n{a}", f"n{b}") for a, b in numbers]
    heights = {id_: 20.0 + 7 * i for i, id_ in enumerate(ids)}
    made = layout(heights, edges, box_width=100, between_layers=50, between_boxes=10)
    assert list(made.boxes) and set(made.boxes) == set(ids)
    columns: dict[float, list[tuple[float, float]]] = {}
    for id_, at in made.boxes.items():
        assert 0 <= at.x <= made.width - 100
        assert 0 <= at.y <= made.height - heights[id_] + 1e-6
        columns.setdefault(at.x, []).append((at.y, at.y + heights[id_]))
    for spans in columns.values():
        for one, other in pairwise(sorted(spans)):
            assert one[1] + 10 <= other[0] + 1e-6
    for parent, child in edges:
        if parent != child and (parent, child) not in made.returning:
            assert made.boxes[parent].x < made.boxes[child].x
    again = layout(heights, edges, box_width=100, between_layers=50, between_boxes=10)
    assert again == made


def test_without_a_cycle_nothing_goes_back() -> None:
    ids = [f"n{i}" for i in range(30)]
    edges = [(ids[i], ids[j]) for i in range(30) for j in range(i + 1, 30, 3)]
    layers = layers_of(list(reversed(ids)), edges)
    assert all(layers[parent] < layers[child] for parent, child in edges)


def test_arrows_go_round_the_boxes_they_pass() -> None:
    edges = [("a", "b"), ("b", "c"), ("a", "c")]
    made = layout(
        dict.fromkeys("abc", 40.0), edges, box_width=100, between_layers=50, between_boxes=10
    )
    (bend,) = made.bends["a", "c"]
    at = made.boxes["b"]
    assert at.x <= bend.x <= at.x + 100
    assert not at.y <= bend.y <= at.y + 40


def test_ten_thousand_boxes_are_drawn_in_time() -> None:
    boxes = [Box(f"n{i}", f"node {i}", "dbt_model", "model") for i in range(10_000)]
    arrows = [Arrow(f"n{i // 3}", f"n{i}") for i in range(1, 10_000)]
    started = time.perf_counter()
    assert draw(boxes, arrows, "many").count("<rect") == 10_000
    assert time.perf_counter() - started < 20


def texts(svg: str) -> list[str]:
    root = ElementTree.fromstring(svg)
    kinds = {element.tag.removeprefix(SVG) for element in root.iter()}
    assert kinds <= {"svg", "title", "style", "defs", "marker", "path", "g", "rect", "text"}
    assert not any(name[:2] == "on" for element in root.iter() for name in element.attrib)
    return ["".join(element.itertext()) for element in root.iter(f"{SVG}title")]


@given(hostile, hostile)
@settings(deadline=None)
def test_names_are_text(name: str, column: str) -> None:
    boxes = [Box("a", name, name, "root", (column,)), Box("b", "x", "y", "reader", (column,))]
    svg = draw(boxes, [Arrow("a", "b", column, column, "value", name)], name)
    assert not unsafe(svg)
    assert len(texts(svg)) == 1 + 2 * 2 + 1
    quiet = [Box("a", "t", "t", "root", ("c",)), Box("b", "x", "y", "reader", ("c",))]
    tame = draw(quiet, [Arrow("a", "b", "c", "c", "value", "t")], "t")
    # A long name has more lines, and nothing else that the short one has not.
    of_lines = [2 * one.count("<text") for one in (svg, tame)]
    assert svg.count("<") - of_lines[0] == tame.count("<") - of_lines[1]


def test_long_names_are_cut_and_whole_in_the_title() -> None:
    svg = draw([Box("a", "n" * 500, "x", "root")], [], "t")
    assert f"{'n' * 500} (x)" in texts(svg)
    shown = [e.text for e in ElementTree.fromstring(svg).iter(f"{SVG}text")]
    assert shown[0] == "n" * 21 + "…"
    long = "monthly_recurring_revenue_by_customer_segment"
    svg = draw([Box("a", long, "x", "root")], [], "t")
    shown = [e.text or "" for e in ElementTree.fromstring(svg).iter(f"{SVG}text")]
    assert "".join(shown[:-1]) == long
