"""How an expression's kind of dependency changes for what stands inside it."""

from __future__ import annotations

from dbt_ripple.flow.ir import AGGREGATION, DIRECT, IDENTITY, MASK_SHIFT, TRANSFORMATION


def transformed(kind: int) -> int:
    """The kind of what stands inside a transformation of this kind."""
    if kind == IDENTITY:
        return TRANSFORMATION
    if kind == IDENTITY << MASK_SHIFT:
        return TRANSFORMATION << MASK_SHIFT
    return kind


def masked(kind: int) -> int:
    """The kind of what stands inside a call that masks its arguments."""
    return kind << MASK_SHIFT if kind & (IDENTITY | TRANSFORMATION | AGGREGATION) else kind


def aggregated(kind: int) -> int:
    """The kind of what stands inside an aggregate."""
    if kind & (IDENTITY | TRANSFORMATION | AGGREGATION):
        return AGGREGATION
    if kind & DIRECT:
        return AGGREGATION << MASK_SHIFT
    return kind


def indirect(kind: int, to: int) -> int:
    """The kind of what an expression depends on without taking its value from there (a condition, a sort key)."""
    return to if kind & DIRECT else kind
