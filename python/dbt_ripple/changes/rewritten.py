"""Which queries were edited, beyond their layout."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from dbt_ripple.changes.compile_inputs import rename
from dbt_ripple.changes.compiled_sql_reuse import other_names
from dbt_ripple.flow.identifiers import dialect_of
from dbt_ripple.jinja.text import normalised

if TYPE_CHECKING:
    from dbt_ripple.changes.comparison import Comparison


def rewritten(comparison: Comparison, unique_ids: Iterable[str]) -> Iterator[str]:
    """Those of the nodes of head whose own query base has in other words, not only in other layout."""
    base, head = comparison.base, comparison.head
    names: dict[str, str] | None = None
    for unique_id in unique_ids:
        node, then = head.nodes[unique_id], base.nodes.get(unique_id)
        if then is None or not then.compiled_code or not node.compiled_code:
            continue
        if names is None:
            names = other_names(base, head)
        one, other = normalised(rename(then.compiled_code, names)), normalised(node.compiled_code)
        if one == other:
            continue
        # Here, because it takes its time and hardly any change comes here.
        from dbt_ripple.flow.query_text import same_words

        if not same_words(one, other, dialect_of(head.metadata.adapter_type)):
            yield unique_id
