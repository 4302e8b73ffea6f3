"""How an expression's kind of dependency changes for what stands inside it."""

from __future__ import annotations

from dbt_ripple.flow.ir import AGGREGATION, DIRECT, IDENTITY, MASK_SHIFT, TRANSFORMATION


def _direct(kind: int) -> int:
    """The kind of what stands inside a transformation of this kind."""
    if kind == IDENTITY:
        return TRANSFORMATION
    if kind == IDENTITY << MASK_SHIFT:
        return TRANSFORMATION << MASK_SHIFT
    return kind


def _masked(kind: int) -> int:
    return kind << MASK_SHIFT if kind & (IDENTITY | TRANSFORMATION | AGGREGATION) else kind


def _aggregate(kind: int) -> int:
    if kind & (IDENTITY | TRANSFORMATION | AGGREGATION):
        return AGGREGATION
    if kind & DIRECT:
        return AGGREGATION << MASK_SHIFT
    return kind


def _indirect(kind: int, to: int) -> int:
    return to if kind & DIRECT else kind
