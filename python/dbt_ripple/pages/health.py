"""The figures of the package's health models that artifacts alone tell, by the same definitions.

Those of ``lineage_coverage``, ``unknown_downstreams`` and ``certified_path_integrity``; a test compares them
with the models. What needs a history (incidents, MTTR, changes) only the lineage tables know.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import Final

import msgspec

from dbt_ripple.graph.lineage_tables import ROWS, ColumnEdgeRow, ColumnRow, EdgeRow, NodeRow

UNSEEN: Final = frozenset({"opaque", "broken"})
_CHECKS: Final = frozenset({"test", "unit_test"})
_RELATIONS: Final = frozenset({"model", "seed", "snapshot", "source"})
_CONSUMERS: Final = frozenset({"exposure", "metric", "semantic_model", "saved_query"})
_PACKAGE: Final = "dbt_ripple"

SLO_TESTS: Final = frozenset(
    {"fresh_within", "null_rate_at_most", "volume_within_sigma", "schema_matches_contract"}
)
"""Generic tests of the package that check service levels; a test tagged ``slo`` does, too."""


class Slos(msgspec.Struct, frozen=True):
    """Service levels, as their tests ended in the last run at hand.

    Attributes:
        unknown: those whose test did not run, was skipped or could not be executed.
    """

    met: int = 0
    violated: int = 0
    unknown: int = 0

    @property
    def share(self) -> float | None:
        """The share that is met of those that are known; None where none is."""
        return share(self.met, self.met + self.violated)

    def __add__(self, other: Slos) -> Slos:
        return Slos(
            self.met + other.met, self.violated + other.violated, self.unknown + other.unknown
        )


def slo_of(status: str | None) -> Slos:
    """One service level whose test ended so, as the model ``slo_status`` judges it.

    Example:
        >>> slo_of("pass").met, slo_of("warn").violated, slo_of("error").unknown
        (1, 1, 1)
    """
    if status in ("pass", "success"):
        return Slos(met=1)
    return Slos(violated=1) if status in ("fail", "warn") else Slos(unknown=1)


class Health(msgspec.Struct, frozen=True, kw_only=True):
    """How well a project, a domain or a node is known and kept.

    Attributes:
        nodes: those with a query, or that name what they read; ``covered_nodes`` were followed.
        tier1_nodes: models and snapshots of criticality ``tier1``; covered if all of their columns are.
        unknown_downstreams: relations of which it is not known who reads which columns.
        certified_nodes: those that are certified; of ``complete_nodes`` all above could be followed.
    """

    nodes: int
    covered_nodes: int
    tier1_nodes: int
    covered_tier1_nodes: int
    tier1_columns: int
    covered_tier1_columns: int
    unknown_downstreams: int
    certified_nodes: int
    complete_nodes: int
    slos: Slos

    @property
    def node_coverage(self) -> float | None:
        """The share of the nodes that could be followed, from 0 to 1."""
        return share(self.covered_nodes, self.nodes)

    @property
    def tier1_node_coverage(self) -> float | None:
        """The share of the nodes of tier 1 all of whose columns could be followed."""
        return share(self.covered_tier1_nodes, self.tier1_nodes)

    @property
    def tier1_column_coverage(self) -> float | None:
        """The share of their columns."""
        return share(self.covered_tier1_columns, self.tier1_columns)

    @property
    def certified_path_integrity(self) -> float | None:
        """The share of the certified nodes above which everything could be followed."""
        return share(self.complete_nodes, self.certified_nodes)


def share(part: int, whole: int) -> float | None:
    """A share from 0 to 1; None of nothing."""
    return part / whole if whole else None


def incomplete_paths(nodes: Iterable[NodeRow], edges: Iterable[EdgeRow]) -> set[str]:
    """The nodes that could not be followed, and all below them, as ``certified_path_integrity``."""
    from dbt_ripple.graph.traversal import reach_all

    children: dict[str, list[str]] = {}
    for edge in edges:
        children.setdefault(edge.parent_id, []).append(edge.child_id)
    return set(reach_all((n.unique_id for n in nodes if n.analysis_status in UNSEEN), children))


def unknown_downstreams(
    nodes: Sequence[NodeRow], edges: Iterable[EdgeRow], column_edges: Iterable[ColumnEdgeRow]
) -> set[str]:
    """The relations of which it is not known who reads which columns, as the model of that name."""
    telling = {edge.child_id for edge in column_edges if edge.parent_column != ROWS}
    unseen = {
        node.unique_id
        for node in nodes
        if node.analysis_status in UNSEEN
        or (node.resource_type in _CONSUMERS and node.unique_id not in telling)
    }
    own = {node.unique_id for node in nodes if node.package_name == _PACKAGE}
    checks = {node.unique_id for node in nodes if node.resource_type in _CHECKS} | own
    readers: dict[str, set[bool]] = {}
    for edge in edges:
        if edge.child_id not in checks:
            readers.setdefault(edge.parent_id, set()).add(edge.child_id in unseen)
    return {
        node.unique_id
        for node in nodes
        if node.resource_type in _RELATIONS
        and node.unique_id not in own
        and True in readers.get(node.unique_id, {True})
    }


def health(
    nodes: Iterable[NodeRow],
    columns: dict[str, list[ColumnRow]],
    unknown: Collection[str],
    incomplete: Collection[str],
    slos: Iterable[Slos],
) -> Health:
    """The figures of some nodes.

    Args:
        nodes: of which.
        columns: of each node, by unique_id.
        unknown: as `unknown_downstreams` says of the project.
        incomplete: as `incomplete_paths` does.
        slos: of these nodes.
    """
    all_nodes = [node for node in nodes if node.resource_type not in _CHECKS]
    counted = [
        node
        for node in all_nodes
        if node.analysis_status != "leaf" and node.package_name != _PACKAGE
    ]
    tier1 = [
        node
        for node in counted
        if (node.criticality or "").lower() == "tier1"
        and node.resource_type in ("model", "snapshot")
    ]
    of_tier1 = [columns.get(node.unique_id, []) for node in tier1]
    covered = [
        sum(column.fingerprint is not None for column in own)
        if node.analysis_status == "analysed"
        else 0
        for node, own in zip(tier1, of_tier1, strict=True)
    ]
    certified = [node for node in all_nodes if node.certified]
    return Health(
        nodes=len(counted),
        covered_nodes=sum(node.analysis_status == "analysed" for node in counted),
        tier1_nodes=len(tier1),
        covered_tier1_nodes=sum(
            n == len(own) > 0 for n, own in zip(covered, of_tier1, strict=True)
        ),
        tier1_columns=sum(map(len, of_tier1)),
        covered_tier1_columns=sum(covered),
        unknown_downstreams=sum(node.unique_id in unknown for node in all_nodes),
        certified_nodes=len(certified),
        complete_nodes=sum(node.unique_id not in incomplete for node in certified),
        slos=sum(slos, Slos()),
    )
