"""Rewrites of a query that mean the same: named rules that bring it into one form.

A rule takes a node of the parse tree and answers what stands in its place, or None where it does
not apply. It holds on bags of rows with NULLs, and says nothing of a query it does not know. As
everywhere here, the order in which an engine evaluates what AND and OR join is not part of what a
query means, nor is which of two errors it raises first.
"""

from __future__ import annotations

from dbt_ripple.flow.rewrites import conditions, queries, values  # noqa: F401  (they register rules)
from dbt_ripple.flow.rewrites.rules import RULES, Rewriting, rewrite, settle

__all__ = ["RULES", "Rewriting", "rewrite", "settle"]
