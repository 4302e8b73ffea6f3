"""Snapshots: what their query has returned so far, with the columns that dbt adds."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from dbt_ripple.artifacts import Node
from dbt_ripple.flow.fingerprint import digest
from dbt_ripple.flow.identifiers import fold
from dbt_ripple.flow.ir import MASK_SHIFT, TRANSFORMATION
from dbt_ripple.flow.relation import Deps, OutputColumn, merge, through
from dbt_ripple.graph.linking.opaque_nodes import link_opaque
from dbt_ripple.graph.linking.query_result import QueryResult
from dbt_ripple.graph.node_properties import listed
from dbt_ripple.graph.relations import LinkedNode
from dbt_ripple.reasons import Reason

if TYPE_CHECKING:
    from dbt_ripple.graph.linking.linker import Linker

_ADDED: Final = ("dbt_scd_id", "dbt_updated_at", "dbt_valid_from", "dbt_valid_to")


def link_snapshot(linker: Linker, unique_id: str, node: Node) -> LinkedNode:
    """A snapshot; opaque where its query cannot be followed."""
    followed = linker.follow(unique_id, node)
    if isinstance(followed, Reason):
        return link_opaque(linker, unique_id, node, followed)
    result = QueryResult(linker, unique_id, node, followed)
    result.list_columns()
    result.add_config()
    result.add_what_it_reads_besides()
    result.break_where_missing()
    if node.contract_enforced:
        result.cast_to_declared_types()
    result.tell_what_varies()
    _add_columns_of_dbt(result)
    return result.linked()


def _add_columns_of_dbt(result: QueryResult) -> None:
    """The columns dbt adds to a snapshot, and what they come from."""
    node, relation, dialect = result.node, result.query.relation, result.linker.dialect
    renamed = node.config.get("snapshot_meta_column_names") or {}
    added = list(_ADDED)
    if node.config.get("hard_deletes") == "new_record":
        added.append("dbt_is_deleted")
    updated: Deps = {}
    updated_at = node.config.get("updated_at")
    if node.config.get("strategy") == "timestamp" and isinstance(updated_at, str):
        column = relation.get(fold(updated_at, False, dialect), updated_at)
        updated = column[1] if column is not None else {}
    scd: Deps = dict(through(TRANSFORMATION << MASK_SHIFT, updated))
    for name in listed(node.config.get("unique_key")):
        column = relation.get(fold(name, False, dialect), name)
        if column is not None:
            merge(scd, through(TRANSFORMATION << MASK_SHIFT, column[1]))
    deps_of = {
        "dbt_scd_id": scd,
        "dbt_updated_at": updated,
        "dbt_valid_from": updated,
        "dbt_valid_to": through(TRANSFORMATION, updated),
    }
    for column_name in added:
        name = str(renamed.get(column_name) or column_name)
        fp = digest(b"snapshot", column_name.encode(), result.config)
        key = fold(name, False, dialect)
        result.columns.append(OutputColumn(name, key, fp, deps_of.get(column_name, {})))
