"""Hooks that only delete rows of their model's own table, as a filter of the model's query.

``post_hook: delete from {{ this }} where is_test`` leaves the rows of which the condition is false or
NULL. So the table holds what ``select * from (query) where (is_test) is not true`` returns: columns and
the other rows stay as they were. `deletes_as_filters` writes such models in this way, so that what is
proven of filters holds of them (rule 15).

It is done where this is all that the hooks can do: each is one DELETE without any other Jinja than
``{{ this }}``, which keeps or deletes a row by its own values (`flow.delete_statements`), of columns
that the table has. The model is a table without a contract (a contract's types may change the values
that the condition sees), built by dbt's own materialization and hooks, and its hooks run when it is built.
"""

from __future__ import annotations

import re
from typing import Final

import msgspec

from dbt_ripple.artifacts import Node
from dbt_ripple.graph.config_fingerprints import hooks_of
from dbt_ripple.graph.lineage import Analysis, NodeAnalysis
from dbt_ripple.graph.linking.project_context import ProjectContext

_THIS: Final = re.compile(r"\{\{-?\s*this\s*-?\}\}")
_OWN: Final = "dbt_ripple_own_table"
_RUN_BY: Final = frozenset({"run_hooks", "make_hook_config", "before_begin", "in_transaction"})
"""Macros of dbt by which hooks run."""


def deletes_as_filters(context: ProjectContext, analysis: Analysis) -> dict[str, Node]:
    """The models whose hooks only delete from their own table, without hooks and with a filter.

    Args:
        context: of the project.
        analysis: of the project.

    Returns:
        By unique_id; the nodes of the project stay as they are.
    """
    project, macros = context.project, context.macros
    if not _RUN_BY.isdisjoint(macros.users_by_name) or macros.of_materialization("table"):
        return {}
    nodes = {}
    for unique_id, node in project.nodes.items():
        if node.resource_type != "model" or not hooks_of(node):
            continue
        analysed = analysis.nodes.get(unique_id)
        text = _filtered(node, analysed, context.dialect) if analysed is not None else None
        if text is not None:
            config = {k: v for k, v in node.config.items() if k not in ("pre-hook", "post-hook")}
            nodes[unique_id] = msgspec.structs.replace(node, compiled_code=text, config=config)
    return nodes


def _filtered(node: Node, analysed: NodeAnalysis, dialect: str) -> str | None:
    """The query of what is left in a model's table; None where its hooks may do anything else."""
    if (
        node.materialized != "table"
        or node.contract_enforced
        or node.is_python
        or not node.compiled_code
        or analysed.status != "analysed"
    ):
        return None
    columns = [name.lower() for name in analysed.columns]
    left = []
    for when, sql in hooks_of(node):
        statement = _THIS.sub(_OWN, sql).strip().removesuffix(";")
        if when != "post-hook" or re.search(r"\{[{%#]", statement):
            return None
        # Here, because hardly any model deletes, and a parser takes its time to load.
        from dbt_ripple.flow.delete_statements import deleted_rows

        deleted = deleted_rows(statement, _OWN, dialect)
        if deleted is None or any(columns.count(name) != 1 for name in deleted.columns):
            return None
        left.append(f"({deleted.condition}) is not true")
    query = node.compiled_code.strip().removesuffix(";")
    return f"select * from (\n{query}\n) as {_OWN} where {' and '.join(left)}"
