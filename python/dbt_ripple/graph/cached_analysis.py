"""An analysis as the cache keeps it: its edges packed, each node and test to be decoded on its own."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Final

import msgspec

from dbt_ripple.graph.column_edges import Edges, PackedEdges, pack_edges, unpack_edges
from dbt_ripple.graph.lineage import Analysis, NodeAnalysis, Own, RelationOrder, UnitTestAnalysis
from dbt_ripple.tuning import collector_paused


class _Whole(msgspec.Struct, array_like=True):
    analysis: Analysis
    edges: PackedEdges


class _Undecoded(msgspec.Struct):
    """The fields of `Analysis` that are kept: all but its edges and its seconds."""

    nodes: dict[str, msgspec.Raw]
    test_columns: list[tuple[str, str, str]]
    tests: dict[str, msgspec.Raw]
    typed_tests: dict[str, NodeAnalysis]
    orders: dict[str, RelationOrder]
    orders_seen: dict[str, str]
    unit_tests: dict[str, UnitTestAnalysis]
    own: dict[str, Own]
    unlisted: list[str]
    functions: dict[str, str]


class CachedAnalysis(msgspec.Struct, array_like=True):
    """What `encode` has written, read with MessagePack."""

    analysis: _Undecoded
    edges: PackedEdges

    def decoded(self, other_side: tuple[CachedAnalysis, Analysis] | None = None) -> Analysis:
        """The analysis, without `seconds`.

        Args:
            other_side: the same of another side of the project; what it says in the same bytes is
                taken from there, so that it is one object in both.
        """
        kept = self.analysis
        before, analysis_before = other_side or _NOTHING
        with collector_paused():
            nodes = _decoded(kept.nodes, before.analysis.nodes, analysis_before.nodes)
            tests = _decoded(kept.tests, before.analysis.tests, analysis_before.tests)
        return Analysis(
            nodes=nodes,
            edges=unpack_edges(self.edges, nodes),
            test_columns=kept.test_columns,
            seconds={},
            tests=tests,
            typed_tests=kept.typed_tests,
            orders=kept.orders,
            orders_seen=kept.orders_seen,
            unit_tests=kept.unit_tests,
            own=kept.own,
            unlisted=kept.unlisted,
            functions=kept.functions,
        )


_NOTHING: Final = (
    CachedAnalysis(_Undecoded({}, [], {}, {}, {}, {}, {}, {}, [], {}), PackedEdges({}, [])),
    Analysis({}, [], [], {}),
)


def encode(analysis: Analysis) -> bytes:
    """An analysis whose edges are still to be made, as `CachedAnalysis` reads it."""
    assert isinstance(analysis.edges, Edges)
    whole = _Whole(replace(analysis, edges=[]), pack_edges(analysis.edges))
    return msgspec.msgpack.encode(whole)


def _decoded(
    packed: Mapping[str, msgspec.Raw],
    packed_before: Mapping[str, msgspec.Raw],
    decoded_before: Mapping[str, NodeAnalysis],
) -> dict[str, NodeAnalysis]:
    decode = msgspec.msgpack.Decoder(NodeAnalysis).decode
    return {
        unique_id: decoded_before[unique_id] if packed_before.get(unique_id) == raw else decode(raw)
        for unique_id, raw in packed.items()
    }
