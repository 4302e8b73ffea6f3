"""A comparison with the declared assets of both sides, for questions of who is affected.

dbt's own comparison stays as it is: tests are selected from that. In this one the assets are nodes, of which
some changed because of what they read, or because they are declared otherwise.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import NamedTuple

from dbt_ripple.artifacts import Project
from dbt_ripple.artifacts.assets_file import DeclaredAsset
from dbt_ripple.changes.comparison import Comparison, NodeChange, node_change
from dbt_ripple.graph.analyse_project import analyse
from dbt_ripple.graph.assets.asset_lineage import AssetLineage
from dbt_ripple.graph.assets.asset_nodes import ASSET, text_of
from dbt_ripple.graph.assets.declared_graph import DeclaredGraph
from dbt_ripple.graph.cache import Cache
from dbt_ripple.graph.hypothetical import Supposed, written_otherwise
from dbt_ripple.graph.lineage import Analysis
from dbt_ripple.graph.traversal import reach_all


class HypotheticalResult(NamedTuple):
    """The result of a hypothetical change in dbt's project and in the declared assets.

    Attributes:
        analysis: dbt's, as it then is.
        assets: the assets, as they then are.
    """

    analysis: Analysis
    assets: AssetLineage


def carried_through(
    before: AssetLineage, changes: Mapping[str, Supposed], cache: Cache | None = None
) -> HypotheticalResult:
    """What a hypothetical change does in dbt's project, in the assets that read it, and in what these write.

    Args:
        before: the assets as they are.
        changes: of relations and assets, by unique_id.
        cache: for the analyses that are made here.

    Returns:
        Both, once nothing more changes: of a cycle each source is gone through once for what it changes.
    """
    project = before.graph.project
    own = {u: s for u, s in changes.items() if u in project.nodes}
    changed: dict[str, set[str]] = {}
    while True:
        written = {
            u: written_otherwise(u, before.dbt.nodes[u], names, u in before.dbt.unlisted)
            for u, names in changed.items()
            if u in before.dbt.nodes
        }
        now = before.dbt
        if own or written:
            now = analyse(project, cache=cache, hypothetical={**written, **own})
        assets = AssetLineage(before.graph, now, cache, {**written, **changes})
        changed_columns = assets.changed_since(before)
        fresh = {
            u: names for u, names in changed_columns.items() if not names <= changed.get(u, set())
        }
        if not fresh:
            return HypotheticalResult(now, assets)
        for unique_id, names in fresh.items():
            changed[unique_id] = changed.get(unique_id, set()) | names


def declared_otherwise(
    base: Project,
    head: Project,
    then: Sequence[DeclaredAsset],
    now: Sequence[DeclaredAsset],
    analysis: Callable[[], Analysis],
    cache: Cache | None = None,
) -> dict[str, frozenset[str]]:
    """The sources that assets write differently, according to their declarations on base and on head.

    Both declarations are taken over head's project: what dbt's own change does to an asset that reads it is
    no change of what the asset writes here and now, because nobody runs it in between.

    Args:
        base: dbt's project as it is deployed.
        head: as it is proposed.
        then: base's assets.
        now: head's.
        analysis: gives head's analysis; it is asked only where the declarations differ.
        cache: where lowered queries may be found.

    Returns:
        The columns (in lower case) and the rows that may differ, by source.

    Raises:
        RippleError: a name in head's declarations means nothing.
    """
    graph = DeclaredGraph(head, now, formerly=base)
    texts = [{a.unique_id: text_of(a) for a in side if a.retired is None} for side in (then, now)]
    if texts[0] == texts[1]:
        return {}
    before = DeclaredGraph(head, then, formerly=base, lenient=True)
    sides = [AssetLineage(side, analysis(), cache) for side in (before, graph)]
    return {
        unique_id: frozenset(names) for unique_id, names in sides[1].changed_since(sides[0]).items()
    }


def with_assets(
    comparison: Comparison,
    base: tuple[Project, Analysis],
    head: tuple[Project, Analysis],
) -> Comparison:
    """A comparison in which assets are nodes.

    Args:
        comparison: of dbt's project.
        base: its base and base's analysis, with assets.
        head: likewise.
    """
    before, now = base[1].nodes, head[1].nodes
    changed: dict[str, NodeChange] = dict(comparison.changed)
    more = [u for u in now if u not in comparison.head_analysis.nodes]
    for unique_id in more:
        here, then = now[unique_id], before.get(unique_id)
        if then is None:
            changed[unique_id] = NodeChange(unique_id, "added", rows=True, added=list(here.columns))
        elif (change := node_change(then, here)) is not None:
            changed[unique_id] = change
    gone = [u for u in before if u not in comparison.base_analysis.nodes and u not in head[0].nodes]
    given = comparison.given or comparison.base
    contexts = comparison.contexts
    contexts.share(base[0], comparison.base_context)
    contexts.share(head[0], comparison.head_context)
    return dataclasses.replace(
        comparison,
        base=base[0],
        head=head[0],
        base_analysis=base[1],
        head_analysis=head[1],
        changed=changed,
        removed=[*comparison.removed, *gone],
        given=given.having(nodes={**base[0].nodes, **given.nodes}),
        of_dbt=comparison,
    )


def with_declared_assets(
    comparison: Comparison, base: DeclaredGraph, head: DeclaredGraph, cache: Cache | None = None
) -> Comparison:
    """The comparison with the declared assets of both sides in it, as `with_assets`."""
    sides = [
        (graph.whole, AssetLineage(graph, analysis, cache).analysis)
        for graph, analysis in (
            (base, comparison.base_analysis),
            (head, comparison.head_analysis),
        )
    ]
    return with_assets(comparison, *sides)


def read_by_change(comparison: Comparison, only: Collection[str] | None = None) -> list[str]:
    """The assets of a comparison that read something that changed, by unique_id, in the order of the file.

    Args:
        comparison: with assets.
        only: of these nodes, where that is asked: then the assets below them.
    """
    head = comparison.head
    below = None if only is None else reach_all(only, head.children)
    return [
        unique_id
        for unique_id, node in head.nodes.items()
        if node.resource_type == ASSET
        and (change := comparison.changed.get(unique_id)) is not None
        and change.kind == "changed"
        and (below is None or unique_id in below)
    ]
