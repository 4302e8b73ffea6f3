"""Walking the graph, against definitions that are slow and plain."""

from __future__ import annotations

from collections import deque

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dbt_ripple.graph.lineage import ColumnEdge
from dbt_ripple.graph.lineage_tables import ROWS
from dbt_ripple.graph.traversal import closure, column_graph, reach, trace

Graph = dict[str, list[str]]

DIAMOND: Graph = {"a": ["b", "c"], "b": ["d"], "c": ["d", "e"], "d": ["e"]}


def reverse(graph: Graph) -> Graph:
    reversed_graph: Graph = {}
    for near, fars in graph.items():
        for far in fars:
            reversed_graph.setdefault(far, []).append(near)
    return reversed_graph


@st.composite
def graphs(draw: st.DrawFn) -> Graph:
    """Any graph, as a map of parents; also with cycles, loops and parents named twice."""
    size = draw(st.integers(1, 12))
    names = [f"n{i}" for i in range(size)]
    return {name: draw(st.lists(st.sampled_from(names), max_size=4)) for name in names}


def distances(start: str, graph: Graph) -> dict[str, int]:
    distance_to = {start: 0}
    waiting = deque([start])
    while waiting:
        vertex = waiting.popleft()
        for neighbour in graph.get(vertex, []):
            if neighbour not in distance_to:
                distance_to[neighbour] = distance_to[vertex] + 1
                waiting.append(neighbour)
    return distance_to


def all_pairs(parents: Graph) -> list[tuple[str, str, int]]:
    return [
        (row["ancestor_id"], row["descendant_id"], row["depth"])
        for batch in closure(parents)
        for row in batch.to_pylist()
    ]


# --- reach and trace -------------------------------------------------------------------------------


def test_reach_gives_the_shortest_distance() -> None:
    assert reach("a", DIAMOND) == {"a": 0, "b": 1, "c": 1, "d": 2, "e": 2}
    assert reach("e", DIAMOND) == {"e": 0}
    assert reach("nowhere", DIAMOND) == {"nowhere": 0}


@pytest.mark.parametrize(
    ("depth", "expected"), [(0, "a"), (1, "abc"), (2, "abcde"), (None, "abcde")]
)
def test_depth(depth: int | None, expected: str) -> None:
    assert "".join(reach("a", DIAMOND, depth)) == expected


def test_nothing_is_reached_through_what_is_left_out() -> None:
    assert reach("a", {"a": ["b"], "b": ["c"]}, keep=lambda v: v != "b") == {"a": 0}


def test_a_chain_may_be_long() -> None:
    chain = {str(i): [str(i + 1)] for i in range(20_000)}
    assert reach("0", chain)["20000"] == 20_000


@settings(deadline=None)
@given(graphs(), st.integers(0, 4))
def test_reach_is_breadth_first(graph: Graph, depth: int) -> None:
    plain = distances("n0", graph)
    assert reach("n0", graph) == plain
    assert reach("n0", graph, depth) == {v: d for v, d in plain.items() if d <= depth}
    assert list(reach("n0", graph).values()) == sorted(plain.values())


def test_trace_in_every_direction() -> None:
    up = reverse(DIAMOND)
    down = trace("c", up, DIAMOND)
    assert down.depths == {"c": 0, "d": 1, "e": 1}
    assert set(down.edges) == {("c", "d"), ("c", "e"), ("d", "e")}

    above = trace("d", up, DIAMOND, "upstream")
    assert above.depths == {"d": 0, "b": 1, "c": 1, "a": 2}
    assert set(above.edges) == {("b", "d"), ("c", "d"), ("a", "b"), ("a", "c")}

    both = trace("c", up, DIAMOND, "both", depth=1)
    assert both.depths == {"c": 0, "d": 1, "e": 1, "a": 1}
    assert set(both.edges) == {("a", "c"), ("c", "d"), ("c", "e"), ("d", "e")}


def test_an_edge_around_the_root_is_not_part_of_its_trace() -> None:
    children = {"a": ["b", "c"], "b": ["c"]}
    both = trace("b", reverse(children), children, "both")
    assert set(both.edges) == {("a", "b"), ("b", "c")}


@settings(deadline=None)
@given(graphs())
def test_up_and_down_are_each_others_inverse(parents: Graph) -> None:
    children = reverse(parents)
    for far in trace("n0", parents, children).downstream:
        assert "n0" in trace(far, parents, children, "upstream").upstream


# --- closure ---------------------------------------------------------------------------------------


@settings(deadline=None)
@given(graphs())
def test_closure_is_every_reach(parents: Graph) -> None:
    expected = {
        (ancestor, descendant, depth)
        for descendant in parents
        for ancestor, depth in distances(descendant, parents).items()
    }
    pairs = all_pairs(parents)
    assert len(pairs) == len(set(pairs))
    assert set(pairs) == expected


def test_closure_of_nothing_and_of_parents_without_an_entry() -> None:
    assert all_pairs({}) == []
    assert set(all_pairs({"b": ["a"]})) == {("a", "a", 0), ("b", "b", 0), ("a", "b", 1)}


def test_closure_past_one_batch_and_one_machine_word() -> None:
    size = 2100
    parents = {f"n{i}": [f"n{i - 1}"] if i % 70 else [] for i in range(size)}
    pairs = all_pairs(parents)
    assert len(pairs) == size // 70 * sum(range(1, 71))
    assert ("n70", "n139", 69) in pairs


def test_closure_comes_as_arrow() -> None:
    (first, *_) = closure({"b": ["a"]})
    assert first.schema.names == ["ancestor_id", "descendant_id", "depth"]
    assert first.schema.field("depth").type == pa.int64()
    assert first.schema.field("ancestor_id").type.value_type == pa.string()


# --- columns ---------------------------------------------------------------------------------------


def edge(parent: str, child: str, kind: str = "DIRECT IDENTITY") -> ColumnEdge:
    type_, subtype = kind.split()
    return ColumnEdge(*parent.split("."), *child.split("."), type_, subtype, False)


def test_a_column_that_decides_rows_reaches_the_rows_below() -> None:
    graph = column_graph(
        [
            edge("raw.status", f"stg.{ROWS}", "INDIRECT FILTER"),
            edge("raw.amount", "stg.amount"),
            edge(f"stg.{ROWS}", f"fct.{ROWS}"),
            edge("stg.amount", "fct.total", "DIRECT AGGREGATION"),
            edge(f"stg.{ROWS}", "fct.orders", "DIRECT AGGREGATION"),
        ]
    )
    assert reach(("raw", "status"), graph.children) == {
        ("raw", "status"): 0,
        ("stg", ROWS): 1,
        ("fct", ROWS): 2,
        ("fct", "orders"): 2,
    }
    assert reach(("fct", "total"), graph.parents) == {
        ("fct", "total"): 0,
        ("stg", "amount"): 1,
        ("raw", "amount"): 2,
    }
    assert graph.columns("stg") == ["amount"]


def test_one_pair_may_depend_in_several_ways() -> None:
    several = [
        edge("a.x", "b.y"),
        edge("a.x", "b.y", "INDIRECT WINDOW"),
        edge("a.x", "b.y"),
    ]
    graph = column_graph(several)
    assert graph.children == {("a", "x"): [("b", "y")]}
    kinds = graph.kinds[("a", "x"), ("b", "y")]
    assert [(kind.type, kind.subtype) for kind in kinds] == [
        ("DIRECT", "IDENTITY"),
        ("INDIRECT", "WINDOW"),
    ]
