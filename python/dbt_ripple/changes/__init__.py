"""Two projects -> what differs between them, column by column, and where it began."""

from __future__ import annotations

from dbt_ripple.changes.compare import compare
from dbt_ripple.changes.comparison import Comparison, NodeChange

__all__ = ["Comparison", "NodeChange", "compare"]
