"""The gate: what a change breaks, promises it does not keep, and who has to say yes."""

from __future__ import annotations
