"""Models: what their query returns, as their materialization and contract leave it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from dbt_ripple.artifacts import Node
from dbt_ripple.flow.fingerprint import digest
from dbt_ripple.graph.linking.opaque_nodes import link_opaque
from dbt_ripple.graph.linking.query_result import QueryResult
from dbt_ripple.graph.relations import LinkedNode
from dbt_ripple.reasons import Code, Reason

if TYPE_CHECKING:
    from dbt_ripple.graph.linking.linker import Linker

KNOWN_MATERIALIZATIONS: Final = frozenset(
    """
    dynamic_table ephemeral incremental materialized_view seed snapshot streaming_table table test
    view
    """.split()
)
"""Materializations that write what the query returns (rule 7); another one may do anything."""


def link_model(linker: Linker, unique_id: str, node: Node) -> LinkedNode:
    """A model; opaque where it is Python, or its query cannot be followed."""
    followed = linker.follow(unique_id, node)
    if isinstance(followed, Reason):
        return link_opaque(linker, unique_id, node, followed)
    is_known = node.materialized in KNOWN_MATERIALIZATIONS
    result = QueryResult(linker, unique_id, node, followed)
    result.list_columns()
    if node.contract_enforced and node.materialized in ("table", "incremental"):
        result.put_in_declared_order()
    if not is_known:
        _write_unknown(result)
    result.add_config()
    result.add_what_it_reads_besides()
    result.tell_what_varies()
    if is_known:
        result.break_where_missing()
    if node.contract_enforced:
        result.cast_to_declared_types()
    return result.linked()


def _write_unknown(result: QueryResult) -> None:
    """A materialization of the project's own may do anything with the query."""
    node, relation = result.node, result.query.relation
    result.status = "opaque"
    result.reason = Code.UNKNOWN_MATERIALIZATION(materialization=str(node.materialized))
    code = (node.raw_code or "").encode()
    result.wrapped = digest(result.wrapped, code, relation.all_fp(), relation.rows.fp)
