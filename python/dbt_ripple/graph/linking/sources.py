"""Sources, and relations that dbt does not know."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from dbt_ripple.artifacts import Node
from dbt_ripple.flow.fingerprint import digest, hashed
from dbt_ripple.flow.identifiers import fold, fold_stored
from dbt_ripple.flow.ir import IDENTITY
from dbt_ripple.flow.relation import (
    OutputColumn,
    Relation,
    RowSet,
    UnlistedColumns,
)
from dbt_ripple.graph.hypothetical import relation_of_builder, written_otherwise
from dbt_ripple.graph.lineage import NodeAnalysis
from dbt_ripple.graph.node_properties import of_source
from dbt_ripple.graph.relations import (
    LinkedNode,
    UnlistedSourceColumns,
    rows_of_node,
    struct_fields,
)

if TYPE_CHECKING:
    from dbt_ripple.graph.linking.linker import Linker

DATASET_PREFIX: Final = "dataset."
"""unique_id prefix of a relation that a query reads and dbt does not know."""


def link_source(linker: Linker, unique_id: str, node: Node) -> LinkedNode:
    """A source, by its name and the settings by which it is read."""
    fingerprint = digest(b"leaf", unique_id.encode(), repr(where_it_is(node)).encode())
    settings = of_source(node, linker.project.metadata.adapter_type)
    if settings:
        fingerprint = digest(fingerprint, repr(settings).encode())
    listed = linker.catalog.get(unique_id, [])
    names = [c.name for c in listed]
    closed = bool(names)
    keys = None
    if not closed:
        names = [c.name for c in node.columns.values()]
        keys = [fold(c.name, bool(c.quote), linker.dialect) for c in node.columns.values()]
    linked = unlisted_relation(linker, unique_id, fingerprint, names, closed, keys)
    linked.relation.fields = struct_fields(linker, node, linked.relation.fields)
    if rewritten := linker.project.written_otherwise.get(unique_id):
        changed = written_otherwise(unique_id, linked.analysis, rewritten, not closed)
        linked = relation_of_builder(linked, changed, linker)
    return linked


def unlisted_relation(
    linker: Linker,
    unique_id: str,
    fingerprint: bytes,
    names: list[str],
    closed: bool,
    keys: list[str] | None = None,
) -> LinkedNode:
    """A relation of these columns, and of any other that is read unless it is closed.

    The names are as the warehouse stores them, unless their keys are given.
    """
    keys = keys or [fold_stored(n, linker.dialect) for n in names]
    prefix = fingerprint + b"\x00"
    fps = [hashed(prefix + k.encode()) for k in keys]  # what `digest` of the two gives
    columns = [
        OutputColumn(name, key, fp, {(unique_id, name): IDENTITY})
        for name, key, fp in zip(names, keys, fps, strict=True)
    ]
    rows = RowSet.unjoined(digest(fingerprint, b"rows"), rows_of_node(unique_id), fingerprint)
    unlisted: list[UnlistedColumns] = [UnlistedSourceColumns(linker, unique_id, fingerprint)]
    relation = Relation(
        columns, rows, [] if closed else unlisted, unresolved=unlisted if closed else None
    )
    analysis = NodeAnalysis(
        unique_id,
        "leaf",
        columns=list(names),
        fingerprints=[fp.hex() for fp in fps],
        expressions=[None] * len(names),
        rows_fingerprint=rows.fp.hex(),
    )
    return LinkedNode(analysis, relation, [{} for _ in names], {})


def where_it_is(source: Node) -> tuple[str | None, ...]:
    """What a project says of where a source is, without what only the target decides (rule 6)."""
    parts: list[str | None] = [source.identifier or source.name]
    for unrendered, rendered in (
        (source.unrendered_database, source.database),
        (source.unrendered_schema, source.schema),
    ):
        parts.append(unrendered)
        if unrendered and "target" not in unrendered and "env_var" not in unrendered:
            parts.append(rendered)
    return tuple(parts)
