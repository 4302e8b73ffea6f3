"""The query as lowered: plain, parent-free, serialisable, and independent of sqlglot.

A query is lowered once from its text (`lower.py`) and may be stored; names and ``*`` stay symbolic
in it. Linking (`link.py`) resolves them against the columns of the parents.

An expression is one of

* ``bytes``: the fingerprint of a subtree without references, ready to use;
* ``int``: the index of a reference in the scope's ``refs``;
* ``list``: a node; its first element says how to combine the rest:
  ``bytes`` (a Merkle node: prefix, then pieces), ``"A"`` (an aggregate: the rows it ran over count),
  ``"W"`` (a window: likewise; a third element says that it sees in which order rows come that are
  equal to it, and whether it sorts them itself), ``"U"`` (what may be an aggregate: likewise), ``"G"`` (what a
  generator or a volatile function gives), ``"F"`` (a left fold of one binary operator), ``"C"``
  (what AND or OR joins, in no order), ``"Q"`` (a subquery: its rows and values, or the names of its
  columns), ``"L"`` (how a column is spelled: its name is data).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import Any, Final, TypeAlias

import msgspec

from dbt_ripple.reasons import Reason
from dbt_ripple.tuning import deep_recursion

Expr: TypeAlias = Any

# Kinds of dependency, as bits; a set of kinds is their union.
IDENTITY: Final = 1
TRANSFORMATION: Final = 2
AGGREGATION: Final = 4
MASK_SHIFT: Final = 3
DIRECT: Final = 63
JOIN: Final = 64
FILTER: Final = 128
GROUP_BY: Final = 256
SORT: Final = 512
WINDOW: Final = 1024
CONDITIONAL: Final = 2048
EPHEMERAL_PREFIX: Final = "__dbt__cte__"
"""What dbt puts before an ephemeral model's name where it inlines its text as a CTE."""

EXISTS: Final = 4096
"""Not a kind: marks a subquery of which only the rows matter, not the columns."""

ALL_OUTPUTS: Final = -1
"""Among the positions of ORDER BY: every output, however many a ``*`` makes of them."""

INNER_JOINS: Final = frozenset({"INNER", "CROSS", ""})
"""Kinds of joins whose rows are those pairs that meet the conditions."""

KINDS: Final[tuple[tuple[int, str, str, bool], ...]] = (
    (1, "DIRECT", "IDENTITY", False),
    (2, "DIRECT", "TRANSFORMATION", False),
    (4, "DIRECT", "AGGREGATION", False),
    (8, "DIRECT", "IDENTITY", True),
    (16, "DIRECT", "TRANSFORMATION", True),
    (32, "DIRECT", "AGGREGATION", True),
    (64, "INDIRECT", "JOIN", False),
    (128, "INDIRECT", "FILTER", False),
    (256, "INDIRECT", "GROUP_BY", False),
    (512, "INDIRECT", "SORT", False),
    (1024, "INDIRECT", "WINDOW", False),
    (2048, "INDIRECT", "CONDITIONAL", False),
)
"""Bit, OpenLineage type, subtype, masking."""


class Ref(msgspec.Struct, array_like=True, frozen=True, gc=False):
    """A column reference as written.

    ``up`` counts scopes outwards, ``source`` is an index there, -1 where the name has no
    qualifier, -2 for all columns of the source ``up`` (-1: of all sources) but those in ``name``, or
    -3 for a name that is a column only if there is such a column, or -4 for the column at position ``key``
    of the source ``outputs`` (-1: of the only one);
    ``rule`` says which of a column and an alias the name means here (`flow.alias_resolution`), and
    ``outputs`` how many items of the select list are seen here.
    """

    up: int
    source: int
    key: str
    name: str
    rule: int = 0
    outputs: int = 0


LITERAL_COLUMN: Final = b"literal column"
"""Begins the expression of an output that is a literal."""


class LoweredExpr(msgspec.Struct, array_like=True, gc=False, tag="x"):
    """An expression with what it depends on.

    ``deps`` maps a reference to kinds, ``subs`` a subquery to the kinds its value has here, ``rows``
    holds the kinds in which the row set itself is the value (``count(*)``). Whether a condition
    ``may_fail`` says if it counts which rows it is asked of.
    """

    e: Expr
    deps: dict[int, int]
    subs: dict[int, int]
    rows: int = 0
    may_fail: bool = False


class Table(msgspec.Struct, array_like=True, gc=False, tag="t"):
    """A relation by name; ``key`` is its folded name, ``extra`` what else the query gives for it (time travel)."""

    key: str
    name: str
    extra: bytes = b""


class CteRef(msgspec.Struct, array_like=True, gc=False, tag="c"):
    """A reference to a CTE of the query, by its index."""

    index: int


class Generator(msgspec.Struct, array_like=True, gc=False, tag="g"):
    """Rows out of an expression of the scope around it: LATERAL VIEW, UNNEST, a table function.

    ``names`` are its output columns; ``None`` where they cannot be known from the text. ``each``
    holds what each of them is made of, where that is not all of ``x`` (STACK). ``by_field``: if what
    comes out are structs, their fields are names, too (BigQuery).
    """

    x: LoweredExpr
    names: list[str] | None
    keys: list[str] | None
    each: list[LoweredExpr] = []
    by_field: bool = False


class Values(msgspec.Struct, array_like=True, gc=False, tag="v"):
    """Literal rows, column by column."""

    columns: list[LoweredExpr]
    names: list[str]
    keys: list[str]
    count: int
    refs: list[Ref]
    subs: list[Rel]


class SetOp(msgspec.Struct, array_like=True, gc=False, tag="s"):
    """A left fold of set operations; ``ops[i]`` combines what stands before with ``branches[i+1]``."""

    branches: list[Rel]
    ops: list[str]
    by_name: list[bool]


class Pivot(msgspec.Struct, array_like=True, gc=False, tag="p"):
    """PIVOT of ``rel``; ``names`` is empty where the values are not listed in the text."""

    rel: Rel
    aggregates: list[LoweredExpr]
    fields: list[LoweredExpr]
    values: list[bytes]
    names: list[str]
    keys: list[str]
    flags: bytes
    refs: list[Ref]
    subs: list[Rel]


class Unpivot(msgspec.Struct, array_like=True, gc=False, tag="u"):
    """UNPIVOT of ``rel``: ``groups[v]`` are the references that feed value column ``v``.

    ``stored`` are those whose spelling is the label (`flow.identifiers.AS_STORED`).
    """

    rel: Rel
    value_names: list[str]
    value_keys: list[str]
    name_column: str
    name_key: str
    groups: list[list[int]]
    labels: bytes
    include_nulls: bool
    refs: list[Ref]
    values_first: bool = False
    stored: Sequence[int] = ()


class Source(msgspec.Struct, array_like=True, gc=False):
    """A relation in a FROM clause, with the names its alias gives to it and its columns.

    ``in_brackets`` is a query in brackets that is not LATERAL.
    """

    alias: str | None
    rel: Rel
    columns: list[str] | None
    in_brackets: bool = False


class FromItem(msgspec.Struct, array_like=True, gc=False):
    """One step of a left-deep FROM tree: a source, or a nested (parenthesised) list of steps.

    ``comma`` is whether it stands behind a comma, or perhaps behind a JOIN that has no condition.
    """

    source: int
    kind: str
    nested: Sequence[FromItem] = ()
    conds: Sequence[LoweredExpr] = ()
    using: Sequence[str] = ()
    natural: bool = False
    comma: bool = False


class StructShape(msgspec.Struct, array_like=True, gc=False, tag="h"):
    """The fields of a struct: as the text lists them, or those of a reference's field `path`."""

    ref: int
    path: list[str]
    fields: list[tuple[str, StructShape | None]] | None


class Star(msgspec.Struct, array_like=True, gc=False, tag="*"):
    """A ``*`` in a select list. ``source`` is -1 for all; ``struct`` is the column of ``s.*``.

    A column of one source only that is left out stands in ``except_`` as `hidden_in` writes it.
    """

    source: int
    up: int
    struct: LoweredExpr | None
    except_: list[str]
    renames: dict[str, list[str]]
    replaces: dict[str, LoweredExpr]
    shape: StructShape | None = None


def names_within(out: Out) -> Iterable[str]:
    """The names, folded, that one item gives to several columns: a generator's, or a star's RENAME's."""
    if type(out) is GeneratedColumns:
        return out.keys or ()
    if type(out) is Star:
        return [key for _, key in out.renames.values()]
    return ()


def hidden_in(source: int, key: str) -> str:
    """How a column that is left out of one source only is written."""
    return f"{source}\x1f{key}"


class GeneratedColumns(msgspec.Struct, array_like=True, gc=False, tag="m"):
    """What a generator gives in a select list; ``names`` is None where the text does not tell.

    ``shape`` is that of the struct whose fields it gives.
    """

    x: LoweredExpr
    names: list[str] | None
    keys: list[str] | None
    shape: StructShape | None = None


Value: TypeAlias = int | LoweredExpr
"""An expression; an ``int`` where it is a column as it stands, which most are: its reference."""

Out: TypeAlias = int | LoweredExpr | Star | GeneratedColumns
"""One item of a select list."""


class Select(msgspec.Struct, array_like=True, gc=False, tag="q"):
    """One SELECT, or the query modifiers around another query.

    ``names`` and ``keys`` go with ``outs``; they are empty where an item does not give exactly one
    column, and ``wide`` says that there is such an item. ``as_stored`` lists the items that are a
    column without an alias, where the dialect keeps its spelling (`flow.identifiers.AS_STORED`);
    ``shapes`` has the items that are a struct whose fields can be seen.
    ``extra`` is what no rule reads: the rows and every column depend on it; of ``hint`` the rows do.
    ``sorts`` has what each window sorts by; ``sorts_late`` those behind a select list with a ``*``,
    of which only linking knows the names. ``outward`` has the references of each aggregate that may
    be one of a query around, ``may_lift`` the subqueries with such aggregates. ``group_spelled`` is
    how the keys of grouping sets are written, and all beside them, which counts where two of them
    are one column.
    """

    sources: list[Source]
    items: list[FromItem]
    refs: list[Ref]
    subs: list[Rel]
    names: list[str]
    keys: list[str]
    outs: list[Out]
    wide: bool
    generators: list[LoweredExpr]
    grouped: bool
    aggregated: bool
    where: Sequence[LoweredExpr] = ()
    group: Sequence[LoweredExpr] = ()
    group_outs: Sequence[int] = ()
    group_tag: bytes = b""
    group_all: bool = False
    having: Sequence[LoweredExpr] = ()
    qualify: Sequence[LoweredExpr] = ()
    distinct: bool = False
    distinct_on: Sequence[LoweredExpr] = ()
    order: Sequence[LoweredExpr] = ()
    order_outs: Sequence[int] = ()
    limit: Sequence[LoweredExpr] = ()
    extra: Sequence[LoweredExpr] = ()
    distinct_on_outs: Sequence[int] = ()
    as_stored: Sequence[int] = ()
    shapes: dict[int, StructShape] = {}
    windowed: bool = False
    volatile: bool = False
    hint: bytes = b""
    uncertain: Sequence[LoweredExpr] = ()
    uncertain_late: Sequence[LoweredExpr] = ()
    sorts: Sequence[Expr] = ()
    sorts_late: Sequence[Expr] = ()
    outward: Sequence[Sequence[int]] = ()
    may_lift: Sequence[int] = ()
    group_spelled: bytes = b""
    collates: bool = False


class Cte(msgspec.Struct, array_like=True, gc=False):
    """A CTE: ``node`` is set where it is an ephemeral model's text, which is that node."""

    index: int
    name: str
    rel: Rel
    columns: list[str] | None
    recursive: bool
    ephemeral: bool


class With(msgspec.Struct, array_like=True, gc=False, tag="w"):
    """CTE definitions in order, then the query that sees them."""

    ctes: list[Cte]
    body: Rel


Rel: TypeAlias = Table | CteRef | Generator | Values | SetOp | Pivot | Unpivot | Select | With


class Lowered(msgspec.Struct, array_like=True, gc=False):
    """A lowered query, or the reason why it could not be lowered.

    ``expressions`` holds, where it was asked for, the SQL behind each output, by key. ``called``
    holds what a FROM clause calls: the names of table functions, each with ``(``, and the strings
    they are given, which may name relations (``query_table('orders')``). ``varying`` holds the
    columns that may be other values each time it runs (`flow.varying_columns.other_each_time`).
    """

    rel: Rel | None
    reason: Reason | None
    ctes: int = 0
    tables: list[str] = []
    expressions: dict[str, str] = {}
    called: list[str] = []
    varying: list[str] = []


_encode: Final = msgspec.msgpack.Encoder().encode
_decode: Final = msgspec.msgpack.Decoder(Lowered).decode


def pack(lowered: Lowered) -> bytes:
    """The query as bytes, to be stored or sent to another process."""
    with deep_recursion:
        return _encode(lowered)


def unpack(packed: bytes) -> Lowered:
    """The query that was packed.

    It links to exactly what went in links to: sequences come back as lists, nothing else differs.

    Raises:
        msgspec.DecodeError: these are not the bytes of one.
    """
    with deep_recursion:
        return _decode(packed)


def lower_packed(
    queries: Iterable[str], dialect: str, expressions: bool, masking: Collection[str] = ()
) -> list[bytes]:
    """Lower queries, in order, for another process.

    Args:
        queries: as `lower` takes them.
        dialect: they are written in.
        expressions: whether to write out the SQL behind each output, too.
        masking: functions that mask their arguments, besides those known to.

    Returns:
        Each query, packed; no bytes where that failed, which the reader then sees for itself.
    """
    from dbt_ripple.flow.lower import lower

    packed = []
    for sql in queries:
        try:
            packed.append(pack(lower(sql, dialect, expressions=expressions, masking=masking)))
        except Exception:  # a defect of ours is told where the query is followed
            packed.append(b"")
    return packed
