"""Config that decides, together with the columns it names, which rows a relation keeps (rule 7)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dbt_ripple.artifacts import Node
from dbt_ripple.flow.fingerprint import digest
from dbt_ripple.flow.identifiers import fold
from dbt_ripple.flow.ir import FILTER
from dbt_ripple.flow.relation import Deps, Relation, merge, through, unlisted_fp
from dbt_ripple.graph.config_fingerprints import OF_COLUMNS
from dbt_ripple.graph.linking.node_parents import relations_above

if TYPE_CHECKING:
    from dbt_ripple.graph.linking.linker import Linker


def config_with_columns(
    linker: Linker, node: Node, relation: Relation, config: bytes, rows: Deps
) -> tuple[bytes, Deps]:
    """The settings of an incremental model, a snapshot or hooks, with the columns that they name.

    A setting that names a column means what this column is, whatever it is called.

    Args:
        linker: of the project.
        node: a model or a snapshot.
        relation: what its query returns.
        config: the fingerprint of its settings, without those that name columns.
        rows: what the rows of its query depend on.

    Returns:
        The fingerprint of its settings, and what its rows depend on.
    """
    config_fingerprints = linker.context.config_fingerprints
    rows = dict(rows)
    parts = [config]
    named: set[str] = set()
    for setting, kind, name in config_fingerprints.column_uses(node):
        named.add(setting)
        column = relation.get(fold(name, False, linker.dialect), name)
        if column is not None:
            parts += [setting.encode(), column[0]]
            merge(rows, through(kind, column[1]))
        else:
            parts += [setting.encode(), name.encode()]
    if node.resource_type == "snapshot" and node.config.get("check_cols") == "all":
        parts.append(relation.all_fp())
        for of_query in relation.columns:
            merge(rows, through(FILTER, of_query.deps))
    if node.resource_type == "snapshot" or node.materialized == "incremental":
        values = ((name, node.config.get(name)) for name in OF_COLUMNS if name not in named)
        parts += [repr(pair).encode() for pair in values if pair[1]]
    if words := config_fingerprints.words_of_hooks(node):
        parts.append(relation.rows.fp)
        if words & {"insert", "merge", "copy"}:  # values may be told by their places
            parts += [key.encode() for key in relation.keys]
        _add_named(words, relation, parts, rows)
    if words := config_fingerprints.words_of_branches(node):
        for parent in sorted(relations_above(linker, node.unique_id)):
            above = linker.node(parent).relation
            parts += [parent.encode(), above.rows.fp]
            _add_named(words, above, parts, rows)
    if node.config.get("incremental_strategy") == "microbatch":
        # dbt filters each parent by its event_time when it builds a batch.
        for parent in relations_above(linker, node.unique_id):
            event_time = linker.project.nodes[parent].config.get("event_time")
            if isinstance(event_time, str):
                key = fold(event_time, False, linker.dialect)
                column = linker.node(parent).relation.get(key, event_time)
                if column is not None:
                    parts += [parent.encode(), column[0]]
                    merge(rows, through(FILTER, column[1]))
    return digest(*parts), rows


def _add_named(words: set[str], relation: Relation, parts: list[bytes], rows: Deps) -> None:
    """Rows depend on the columns that a text names which is not followed; ``*`` names all."""
    for column in relation.columns:
        if "*" in words or column.key.lower() in words:
            parts.append(column.fp)
            merge(rows, through(FILTER, column.deps))
    if relation.unlisted:
        parts.append(unlisted_fp(relation.unlisted))
