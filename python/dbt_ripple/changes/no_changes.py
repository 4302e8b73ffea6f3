"""What the answer says where nothing changed."""

from __future__ import annotations

from typing import Final

from dbt_ripple.changes.compare import Comparison

NOTHING: Final = "nothing changed"
NOTHING_TO_DO: Final = "nothing changed that a test reads or dbt builds"
_NAMES: Final = 5


def nothing_changed(comparison: Comparison) -> str | None:
    """A message that no relation differs, with the nodes that were edited; None if a relation differs."""
    if comparison.changed or comparison.removed or comparison.everything:
        return None
    head = comparison.head.nodes
    edited = [node.display_name for u, node in head.items() if u in comparison.modified]
    if not edited:
        return NOTHING
    more = f" and {len(edited) - _NAMES:,} more" if len(edited) > _NAMES else ""
    return f"no column and no row set changed (edited: {', '.join(edited[:_NAMES])}{more})"
