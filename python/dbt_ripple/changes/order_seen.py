"""What sees the order of rows that an edit above may have changed.

An engine promises an order only to what asks for one by ORDER BY. Whatever else sees it (a LIMIT, the
first of a group, a list, the number of a row, a sum of floating point numbers, which of equal values
is shown) may come out otherwise with any edit above, even where that leaves the same bag of rows.

So once all else is compared, what reads a relation whose order may be another one is looked at
(`graph.order_seen`). Where no ORDER BY stands, any edit above counts, and so does a view
that is made a table. Where one does, and of sums and the like, what is known to decide the order
counts: what a relation's ``order`` and ``incidental`` say, and how it is laid out. An edit of the reader
itself shows in its own fingerprint.
"""

from __future__ import annotations

from collections.abc import Iterable

from dbt_ripple.artifacts import Node, Project
from dbt_ripple.changes.comparison import Comparison
from dbt_ripple.changes.rewritten import rewritten
from dbt_ripple.flow.identifiers import dialect_of
from dbt_ripple.flow.varying_columns import EVERYTHING
from dbt_ripple.graph.cache import Cache
from dbt_ripple.graph.order_seen import READERS, OrderReads, counted, laid_out, table_of
from dbt_ripple.graph.traversal import reach_all
from dbt_ripple.graph.unresolved_names import STORED


def readers_of_order(
    comparison: Comparison, cache: Cache | None = None
) -> dict[str, frozenset[str]]:
    """The nodes and tests of head that may see other rows come first, each with the columns for which.

    Args:
        comparison: of base and head.
        cache: has which queries see no order.

    Returns:
        Columns in lower case, `EVERYTHING` for all of it; nothing of what changed as a whole anyway.
    """
    head, base = comparison.head, comparison.base
    stored_otherwise, laid_out_otherwise = _stored_otherwise(base, head)
    edited = {*_edited(comparison), *stored_otherwise, *laid_out_otherwise}
    before, now = comparison.base_analysis.nodes, comparison.head_analysis.nodes
    moved = {
        unique_id
        for unique_id, here in now.items()
        if (then := before.get(unique_id)) is not None
        and then is not here
        and then.rows_fingerprint == here.rows_fingerprint  # else what sees them has changed
        and (then.order, then.incidental) != (here.order, here.incidental)
    }
    moved |= laid_out_otherwise
    moved |= {u for u in stored_otherwise if u in now and (now[u].order or now[u].incidental)}
    names = comparison.head_context.names.canonical
    children = {**head.children}
    for source, built in names.items():
        children[built] = [*children.get(built, ()), source]
    reads = OrderReads(head, base.types, cache)
    seen: dict[str, frozenset[str]] = {}
    starts = {*edited, *moved}
    below = reach_all((child for u in starts for child in children.get(u, ())), children)
    reached = [head.nodes[u] for u in starts | below.keys() if u in head.nodes]
    # The text of an ephemeral model is its reader's own, its order is not.
    tables = {table_of(node) for node in reached if not node.is_ephemeral}
    for unique_id in below:
        node = head.nodes.get(unique_id)
        if node is None or node.resource_type not in READERS or unique_id not in base.nodes:
            continue
        if _has_changed(comparison, unique_id):
            continue
        read = reads.of(node)
        if read is None:
            continue
        parents = {names.get(p, p) for p in head.parents.get(unique_id, ())} & moved
        inlined = {table_of(head.nodes[p]) for p in parents if head.nodes[p].is_ephemeral}
        order = read.by(tables | inlined)
        columns = counted(node, order.ties if parents else order.open)
        if columns and not _has_changed(comparison, unique_id, columns):
            seen[unique_id] = columns
    return seen


def _edited(comparison: Comparison) -> Iterable[str]:
    """The relations of head whose own query was edited beyond layout, names and what is no condition."""
    from dbt_ripple.flow.query_text import folded, same_but_for_names

    head, base = comparison.head.nodes, comparison.base.nodes
    dialect = dialect_of(comparison.head.metadata.adapter_type)
    # A query that is modified, and neither changed nor reworded, has base's fingerprints: it is planned alike.
    queries = dict.fromkeys(
        u
        for u in (*comparison.changed, *comparison.reworded)
        if u in head and head[u].resource_type in ("model", "snapshot")
    )
    for unique_id in rewritten(comparison, queries):
        one, other = base[unique_id].compiled_code or "", head[unique_id].compiled_code or ""
        if not same_but_for_names(folded(one, dialect), folded(other, dialect), dialect):
            yield unique_id
    python = (u for u in comparison.modified if u in head and head[u].is_python)
    yield from (u for u in python if _code_differs(base, head[u]))


def _code_differs(base: dict[str, Node], node: Node) -> bool:
    return node.unique_id not in base or base[node.unique_id].raw_code != node.raw_code


def _stored_otherwise(base: Project, head: Project) -> tuple[set[str], set[str]]:
    """The models that are a table on one side and a view on the other one; the relations laid out otherwise."""
    both = [
        (then, node)
        for node in head.of_type("model", "snapshot", "seed")
        if (then := base.nodes.get(node.unique_id)) is not None and then is not node
    ]
    return (
        {n.unique_id for t, n in both if (t.materialized in STORED) != (n.materialized in STORED)},
        {n.unique_id for t, n in both if laid_out(t) != laid_out(n)},
    )


def _has_changed(
    comparison: Comparison, unique_id: str, columns: frozenset[str] | None = None
) -> bool:
    """Whether these columns of a node, or its rows, are known to have changed; by default all of it."""
    if unique_id in comparison.head_analysis.tests:
        then = comparison.base_analysis.tests.get(unique_id)
        now = comparison.head_analysis.tests[unique_id]
        return then is None or then.rows_fingerprint != now.rows_fingerprint
    change = comparison.changed.get(unique_id)
    if change is None:
        return False
    changed = {name.lower() for name in (*change.redefined, *change.added)}
    if columns is None:
        there = comparison.head_analysis.nodes[unique_id].columns
        return change.rows and changed >= {name.lower() for name in there}
    if EVERYTHING in columns:
        return change.rows
    return columns <= changed
