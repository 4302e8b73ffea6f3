"""Which tests a change can break, what CI must build for them, and why."""

from __future__ import annotations

from dbt_ripple.changes.verdict import Broken
from dbt_ripple.selection.result import (
    BlockedTest,
    Counts,
    Opaque,
    ProvenTest,
    SelectedTest,
    Selection,
)
from dbt_ripple.selection.select import select, select_from, state_modified

__all__ = [
    "BlockedTest",
    "Broken",
    "Counts",
    "Opaque",
    "ProvenTest",
    "SelectedTest",
    "Selection",
    "select",
    "select_from",
    "state_modified",
]
