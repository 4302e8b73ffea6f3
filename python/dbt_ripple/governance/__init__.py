"""The gate: what a change breaks, which promises it does not keep, and who has to approve it."""

from __future__ import annotations
