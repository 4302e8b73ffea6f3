"""Data tests: what their queries read, and their fingerprints."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, NamedTuple

from dbt_ripple.artifacts import Node
from dbt_ripple.flow.fingerprint import digest
from dbt_ripple.flow.link import Linked
from dbt_ripple.flow.relation import unlisted_fp
from dbt_ripple.graph.hooks import not_followed
from dbt_ripple.graph.lineage import NodeAnalysis
from dbt_ripple.graph.lineage_tests import is_lineage_test, lineage_tests
from dbt_ripple.graph.linking.node_parents import relations_above
from dbt_ripple.graph.linking.opaque_nodes import link_opaque, unfollowed_text
from dbt_ripple.graph.linking.other_dependencies import (
    besides_query,
    unnamed_fingerprint,
    unnamed_reads,
    whole_fingerprints,
    whole_relations,
    why_unnamed,
)
from dbt_ripple.graph.linking.project_context import ProjectContext
from dbt_ripple.graph.node_properties import of_test
from dbt_ripple.graph.unresolved_names import opaque_names
from dbt_ripple.reasons import Code, Reason

if TYPE_CHECKING:
    from dbt_ripple.graph.linking.linker import Linker


class LinkedTest(NamedTuple):
    """A data test, linked.

    Attributes:
        analysis: its fingerprints; of the columns, too, that it returns.
        reads: the columns and the row sets that its query depends on, by unique_id and name.
    """

    analysis: NodeAnalysis
    reads: list[tuple[str, str]]


def may_discover(linker: Linker, unique_id: str) -> bool:
    """Whether a test can show a column that nothing lists: it reads an open relation."""
    for declared_parent in linker.project.parents.get(unique_id, ()):
        parent = linker.names.canonical.get(declared_parent, declared_parent)
        linked = linker.linked_nodes.get(parent)
        if linked is not None and linked.relation.unlisted:
            return True
    return False


def link_data_test(linker: Linker, unique_id: str, node: Node) -> LinkedTest:
    """A data test; opaque where its query cannot be followed."""
    if is_lineage_test(node):
        return _link_lineage_test(linker, unique_id, node)
    followed = linker.follow(unique_id, node)
    if isinstance(followed, Reason):
        opaque = link_opaque(linker, unique_id, node, followed)
        return LinkedTest(opaque.analysis, list(opaque.rows))
    return _link_query(linker, unique_id, node, followed[1])


def _link_query(linker: Linker, unique_id: str, node: Node, query: Linked) -> LinkedTest:
    """A test whose query was followed."""
    sought = query.missing
    missing, query, everywhere = opaque_names(linker, unique_id, node, query)
    relation = query.relation
    reads = dict.fromkeys(relation.reads())
    names, fps = relation.names, [fp.hex() for fp in relation.fps]
    if relation.unlisted:  # what a test shows counts, with or without a name
        names.append("*")
        fps.append(unlisted_fp(relation.unlisted).hex())
    rows_fp = relation.rows.fp
    config = linker.context.config_fingerprints.of(node)
    warehouse_reads = linker.context.introspection.of(node)
    besides, introspects = besides_query(linker, unique_id, node, warehouse_reads)
    unnamed = unnamed_reads(linker, unique_id, node, warehouse_reads)
    if config or besides or unnamed:
        of_unnamed = unnamed_fingerprint(linker, unnamed)
        rows_fp = digest(b"aside", rows_fp, config, besides, of_unnamed)
    for _, token in linker.context.in_other_order.get(unique_id, ()):
        rows_fp = digest(rows_fp, token)
    reason: Reason | None = None
    if unnamed:
        reads.update(dict.fromkeys(whole_relations(linker, unnamed.whole)))
        introspects += [u for u in unnamed.whole if u not in introspects]
        reason = why_unnamed(linker, unnamed)
    if missing:
        rows_fp = digest(rows_fp, unfollowed_text(linker, unique_id, node, missing))
    if everywhere:
        parents = relations_above(linker, unique_id)
        rows_fp = digest(rows_fp, *whole_fingerprints(linker, parents))
        reads.update(dict.fromkeys(whole_relations(linker, parents)))
    analysis = NodeAnalysis(
        unique_id,
        "broken" if missing else "analysed",
        Code.CANNOT_FIND(names=missing) if missing else reason,
        columns=names,
        fingerprints=fps,
        expressions=[None] * len(names),
        rows_fingerprint=rows_fp.hex(),
        introspects=introspects,
        unresolved_names=[name for name in sought if name not in missing],
        introspection_fingerprint=besides.hex(),
    )
    return LinkedTest(analysis, list(reads))


def _link_lineage_test(linker: Linker, unique_id: str, node: Node) -> LinkedTest:
    """A test that asks where a column comes from; `lineage_tests.judge_lineage` adds where it does."""
    called = linker.context.macros.fingerprint(node.depends_on.macros)
    asks = next((t for t in lineage_tests(linker.project, [node])), None)
    parts = repr(asks and asks.asks).encode("utf-8", "surrogatepass")
    fingerprint = digest(b"lineage", parts, called).hex()
    analysis = NodeAnalysis(unique_id, "analysed", rows_fingerprint=fingerprint)
    return LinkedTest(analysis, [] if asks is None else [(asks.node, asks.column)])


def outcome_fingerprints(
    context: ProjectContext, tests: Mapping[str, NodeAnalysis]
) -> dict[str, str]:
    """Of each data test, a hash of all that decides its outcome.

    It differs between two loads exactly where `selection.select` without facts selects the test:
    what its query reads and does, its own settings, and the hooks that may write to any relation.

    Args:
        context: of dbt's project, without declared assets and collected jobs.
        tests: as they were analysed, by unique_id; of those that are not dbt's there is none.
    """
    hooks = repr(not_followed(context.hooks_that_write)).encode()
    nodes = context.project.nodes
    result = {}
    for unique_id, analysed in tests.items():
        if unique_id not in nodes:  # a check that collected events tell of
            continue
        config = nodes[unique_id].config
        settings = sorted(of_test(nodes[unique_id]).items())
        by_name = config.get("fail_calc") not in (None, "count(*)")
        outcome = (
            analysed.rows_fingerprint,
            analysed.fingerprints,
            analysed.reason and analysed.reason.message,
            settings,
        )
        result[unique_id] = digest(
            b"test",
            repr(outcome).encode(),
            repr(analysed.columns if by_name else ()).encode(),
            hooks,
        ).hex()
    return result
