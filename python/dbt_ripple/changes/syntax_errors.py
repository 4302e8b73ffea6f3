"""Models and tests that an edit made into what no engine can parse.

Only what stands otherwise on head than on base is looked at, and only what is certain counts
(`flow.syntax_errors`); of base's own mistakes the change is not to blame.
"""

from __future__ import annotations

from collections.abc import Iterator

from dbt_ripple.artifacts import Node
from dbt_ripple.changes.comparison import Comparison
from dbt_ripple.flow.identifiers import DIALECTS
from dbt_ripple.graph.broken_nodes import inlined_by, runs_its_query
from dbt_ripple.graph.lineage import Analysis
from dbt_ripple.reasons import Code, Reason


def syntax_errors(comparison: Comparison) -> dict[str, Reason]:
    """The nodes and tests of head that no engine can parse, and that base had otherwise.

    Returns:
        By unique_id, what is wrong with the text that dbt compiled.
    """
    head = comparison.head
    dialect = DIALECTS.get(head.metadata.adapter_type or "")
    if dialect is None:
        return {}
    wrong = {
        node.unique_id: reason
        for node in edited_texts(comparison)
        if (reason := _syntax_error(comparison, node, dialect)) is not None
    }
    if not wrong:
        return {}
    context = comparison.head_context
    # What Jinja finds in the warehouse may be another text when it is built (rule 11).
    run = {
        unique_id
        for unique_id in wrong
        if runs_its_query(context, node := head.nodes[unique_id])
        and not context.introspection.of(node)
    }
    return {
        unique_id: reason
        for unique_id, reason in wrong.items()
        if unique_id in run
        or (
            head.nodes[unique_id].is_ephemeral
            and not all(map(run.isdisjoint, inlined_by(head, unique_id)))
        )
    }


def edited_texts(comparison: Comparison) -> Iterator[Node]:
    """The nodes of head whose text may be another one than base's, in head's order."""
    base, head = comparison.base.nodes, comparison.head
    edited = comparison.modified | comparison.changed.keys()
    for unique_id, node in head.nodes.items():
        then = base.get(unique_id)
        if (
            node.compiled_code
            and (then is None or unique_id in edited)
            and (then is None or then.compiled_code != node.compiled_code)
            and node.resource_type in ("model", "snapshot", "test")
            and not node.is_python
        ):
            yield node


def _syntax_error(comparison: Comparison, node: Node, dialect: str) -> Reason | None:
    # Here, because most changes have no edit that gets here.
    from dbt_ripple.flow.syntax_errors import syntax_error

    now = comparison.head_analysis
    columns = {
        column.lower()
        for parent in comparison.head.parents.get(node.unique_id, ())
        if (above := now.nodes.get(parent)) is not None
        for column in above.columns
    }
    unread = not_parsed(now, node.unique_id) is not None
    reason = syntax_error(node.compiled_code or "", dialect, unread=unread, columns=columns)
    if reason is None:
        return None
    then = comparison.base.nodes.get(node.unique_id)
    before = then.compiled_code if then is not None else None
    if before and syntax_error(before, dialect, unread=True, columns=columns) is not None:
        return None
    return reason


def not_parsed(analysis: Analysis, unique_id: str) -> Reason | None:
    """Why a node's or a test's query cannot be parsed here; None where it can."""
    analysed = analysis.nodes.get(unique_id) or analysis.tests.get(unique_id)
    if analysed is None or analysed.reason is None or analysed.reason.code is not Code.CANNOT_PARSE:
        return None
    return analysed.reason
