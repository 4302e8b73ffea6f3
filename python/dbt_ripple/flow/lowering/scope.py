"""What one SELECT has gathered while it is lowered, and how a kind of dependency changes for what stands inside."""

from __future__ import annotations

from typing import Final

from sqlglot import exp

from dbt_ripple.flow import alias_resolution
from dbt_ripple.flow.ir import (
    AGGREGATION,
    DIRECT,
    IDENTITY,
    MASK_SHIFT,
    TRANSFORMATION,
    Expr,
    FromItem,
    LoweredExpr,
    Ref,
    Rel,
    Source,
    StructShape,
)
from dbt_ripple.flow.reading.refusals import Unsupported

OuterCollectors = tuple[dict[int, int], dict[int, int], int, list[dict[str, bytes]], bool]
"""The collectors of the expression around a scope: references, subqueries, rows, lambdas; and
whether it is of one row."""
RefKey = tuple[int, str] | tuple[int, int, str, int, int]
"""A reference, told apart from the others of its scope."""
TWICE: Final = -9
"""In place of a source, for an alias that two of them have."""
_NO_NAMES: Final[frozenset[str]] = frozenset()


class Scope:
    """What one SELECT has gathered so far."""

    __slots__ = (
        "aggregated",
        "aliases",
        "as_stored",
        "collates",
        "extra",
        "full_names",
        "generators",
        "hidden",
        "items",
        "lifted",
        "may_lift",
        "names",
        "outer",
        "outward",
        "place",
        "ref_index",
        "refs",
        "shapes",
        "shown",
        "sorts",
        "sources",
        "subs",
        "uncertain",
        "volatile",
        "windowed",
        "windows",
    )

    def __init__(self, outer: OuterCollectors) -> None:
        self.outer = outer
        self.names: dict[str, int] = {}
        self.hidden: frozenset[str] = _NO_NAMES
        self.full_names: dict[str, int] = {}
        self.sources: list[Source] = []
        self.items: list[FromItem] = []
        self.refs: list[Ref] = []
        self.ref_index: dict[RefKey, int] = {}
        self.subs: list[Rel] = []
        self.generators: list[LoweredExpr] = []
        self.extra: list[LoweredExpr] = []
        self.uncertain: list[LoweredExpr] = []
        self.lifted = False
        self.may_lift: list[int] = []
        self.outward: list[list[int]] = []
        self.windows: dict[str, exp.Window] = {}
        self.sorts: list[Expr] = []
        self.aggregated = False
        self.place = alias_resolution.SELECT
        self.windowed = False
        self.volatile = False
        self.collates = False
        self.aliases: dict[str, int] = {}
        self.as_stored: list[int] = []
        self.shapes: dict[int, StructShape] = {}
        self.shown = False


def one_of(source: int | None) -> int | None:
    """The relation of an alias, which is the only one of its FROM with it."""
    if source == TWICE:
        raise Unsupported("the name of two relations of one FROM")
    return source


def by_suffix(full_names: dict[str, int], qualifier: str) -> int | None:
    """A source written `cat.db.t` may be qualified as `db.t`."""
    indices = [i for name, i in full_names.items() if name.endswith("." + qualifier)]
    return one_of(indices[0]) if len(indices) == 1 else None


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
