"""Expressions of a parse tree -> the plain expressions of `ir.py`, with what they depend on.

Every handler returns the expression and notes its references in the collectors of the scope; a
node no handler knows is hashed argument by argument, so that nothing of it is lost. A handler that
reads a node by a rule of its own says which arguments it reads (`_handlers`); what is set beyond
these is hashed beside it.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from functools import cache, lru_cache
from itertools import compress
from typing import Any, Final

from sqlglot import exp
from sqlglot.dialects.dialect import Dialect

from dbt_ripple.flow import alias_resolution
from dbt_ripple.flow.builtin_names import (
    BUILT_IN_SCHEMAS,
    MASK_MARK,
    MASKING_NAMES,
    ORDERED_SET_NAMES,
    VOLATILE_NAMES,
)
from dbt_ripple.flow.fingerprint import COMPARED, compared, digest
from dbt_ripple.flow.functions import functions
from dbt_ripple.flow.identifiers import AS_STORED, fold, folds, keeps_case, lowered
from dbt_ripple.flow.ir import (
    AGGREGATION,
    CONDITIONAL,
    DIRECT,
    EXISTS,
    IDENTITY,
    MASK_SHIFT,
    SORT,
    TRANSFORMATION,
    WINDOW,
    Expr,
    FromItem,
    LoweredExpr,
    Ref,
    Rel,
    Source,
    StructShape,
)
from dbt_ripple.flow.relation import compose
from dbt_ripple.reasons import Code, Reason

MAX_NESTING: Final = 200
"""Parentheses or expressions nested deeper than this are reported, not followed: the parser and
the walk recurse, and a stack must not overflow on somebody's generated SQL."""
_MAX_DEPTH: Final = 2 * MAX_NESTING

_MASKING_TYPES: Final = tuple(
    t
    for n in (
        "MD5",
        "MD5Digest",
        "SHA",
        "SHA1Digest",
        "SHA2",
        "SHA2Digest",
        "FarmFingerprint",
        "Encrypt",
    )
    if (t := getattr(exp, n, None)) is not None
)
_NAMED_CALLS: Final = (exp.Anonymous, exp.AnonymousAggFunc, exp.ParameterizedAgg)
_OF_AGGREGATES: Final = (
    exp.Distinct, exp.Order, exp.Limit, exp.HavingMax, exp.IgnoreNulls, exp.RespectNulls,
)  # fmt: skip
_AROUND_CALLS: Final = (exp.Filter, exp.WithinGroup, exp.IgnoreNulls, exp.RespectNulls)
_HOLDS_NAMES: Final = (
    exp.Anonymous, exp.Column, exp.DataType, exp.Dot, exp.Lambda, exp.PropertyEQ,
)  # fmt: skip
"""Where a name is not that of a column."""
_METHODS: Final = ("duckdb", "tsql", "fabric", "oracle")
"""Dialects where ``column.function()`` is a call on a column."""
_NONE: Final[dict[int, int]] = {}  # never written to: what an expression holds is not changed
_VALUE_WINDOW_TYPES: Final = (exp.Lag, exp.Lead, exp.FirstValue, exp.LastValue, exp.NthValue)
_ORDERED_SETS: Final = (exp.PercentileCont, exp.PercentileDisc, exp.Mode, exp.Median)
_LOGIC_TYPES: Final = (exp.And, exp.Or)
_CHAIN_TYPES: Final = frozenset({exp.Add, exp.Mul, exp.DPipe, exp.Sub, exp.Div})
_BINARY_TYPES: Final = (exp.EQ, exp.NEQ, exp.GT, exp.GTE, exp.LT, exp.LTE, exp.Is, exp.Mod)
_COMPARISONS: Final = frozenset(
    {
        *(exp.EQ, exp.NEQ, exp.GT, exp.GTE, exp.LT, exp.LTE, exp.NullSafeEQ, exp.NullSafeNEQ),
        *(exp.Is, exp.In, exp.Between, exp.Like, exp.ILike, exp.SimilarTo),
    }
)
_OF_BITS: Final = frozenset(
    {
        *(exp.BitwiseAnd, exp.BitwiseOr, exp.BitwiseXor),
        *(exp.BitwiseLeftShift, exp.BitwiseRightShift, exp.DPipe),
    }
)
_BY_SIGN: Final = frozenset(
    {
        *(exp.StartsWith, exp.ArrayOverlaps, exp.ArrayContainsAll, exp.ArrayContainedBy, exp.Glob),
        *(exp.RegexpLike, exp.RegexpILike, exp.Distance),
        *(exp.JSONExtract, exp.JSONExtractScalar, exp.JSONBExtract, exp.JSONBExtractScalar),
    }
)
"""What has an operator of its own, ``a ^@ b``; where it is written as a call that makes no difference."""
_ARITHMETIC: Final = frozenset({exp.Add, exp.Sub, exp.Mul, exp.Div, exp.IntDiv, exp.Mod})
_TILDE: Final = frozenset({exp.BitwiseNot})
_BOUND_OTHERWISE: Final[dict[type, frozenset[type]]] = {
    **dict.fromkeys(_COMPARISONS, _COMPARISONS | {exp.Not}),
    **{t: (_OF_BITS | _ARITHMETIC | _BY_SIGN) - {t} for t in _OF_BITS},
    **{t: (_OF_BITS | _BY_SIGN) - {t} for t in _BY_SIGN},
    **dict.fromkeys((*_ARITHMETIC, exp.Neg), _TILDE),
}
"""Operators, and those that some engine binds otherwise than sqlglot where both stand without a bracket.

``a | b & c`` is ``a | (b & c)`` on Spark and ``(a | b) & c`` on DuckDB; ``a = b < c`` is ``(a = b) < c``
on Spark, and so is ``a = b in (c)``. ``a ^@ b || c`` is ``(a ^@ b) || c`` on DuckDB. ``~a + b`` is ``~(a + b)`` on DuckDB and Postgres; as the ``~`` may so reach over
more than its parent here, it is not followed.
"""
_UNBRACKETED: Final = b"unbracketed"
_BOUND_ALIKE: Final[frozenset[type]] = frozenset()
_QUANTIFIERS: Final = frozenset({exp.All, exp.Any, exp.Anonymous})
_QUANTIFIER_NAMES: Final = frozenset({"all", "any", "some"})
GENERATOR_TYPES: Final = tuple(
    t
    for t in vars(exp).values()
    if isinstance(t, type)
    and issubclass(
        t,
        (
            exp.Explode,
            exp.Posexplode,
            exp.Inline,
            exp.Stack,
            exp.Unnest,
            exp.ExplodingGenerateSeries,
        ),
    )
)

VOLATILE_TYPES: Final = tuple(
    t
    for n in "Rand Randn Randstr Seq1 Seq2 Seq4 Seq8 Shuffle Uniform Uuid".split()
    if (t := getattr(exp, n, None)) is not None
)

_RANKS: Final = tuple(
    t
    for n in ("RowNumber", "Rank", "DenseRank", "PercentRank", "CumeDist", "Ntile")
    if (t := getattr(exp, n, None)) is not None
)

_BLIND_TO_TIES: Final = tuple(
    t
    for n in (
        *("Rank", "DenseRank", "PercentRank", "CumeDist", "Count", "CountIf", "ApproxDistinct"),
        *("Avg", "Max", "Median", "Min", "Sum", "LogicalAnd", "LogicalOr"),
        *("Stddev", "StddevPop", "StddevSamp", "Variance", "VariancePop"),
    )
    if (t := getattr(exp, n, None)) is not None
)
"""Functions of a window that see which rows there are, and of rows that are equal no order."""


IN_ANY_ORDER: Final = "\x00in any order "
"""Begins the name of what is no function: an operator whose operands may change places, which
`flow.rewrites` makes of one. No text is read as that."""


class Unsupported(Exception):  # noqa: N818  (it is a reason, not an error of the user's)
    """The query holds something this module does not follow.

    Args:
        what: the construct, as SQL calls it, or another reason.
    """

    def __init__(self, what: str | Reason) -> None:
        self.reason = Code.UNSUPPORTED_SQL(construct=what) if isinstance(what, str) else what
        super().__init__(self.reason)


Around = tuple[dict[int, int], dict[int, int], int, list[dict[str, bytes]], bool]
"""The collectors of the expression around a scope: references, subqueries, rows, lambdas; and
whether it is of one row."""

_IN_AGGREGATE: Final = {
    alias_resolution.HAVING: alias_resolution.HAVING_AGGREGATE,
    alias_resolution.HAVING_ALL: alias_resolution.HAVING_AGGREGATE,
    alias_resolution.ORDER: alias_resolution.ORDER_AGGREGATE,
    alias_resolution.ORDER_IN: alias_resolution.ORDER_AGGREGATE,
}
"""Where a name stands that is inside an aggregate of that place."""
_IN_WINDOW: Final = {
    alias_resolution.SELECT: alias_resolution.WINDOW,
    alias_resolution.ORDER: alias_resolution.ORDER_WINDOW,
    alias_resolution.ORDER_IN: alias_resolution.ORDER_WINDOW,
}

_RefKey = tuple[int, str] | tuple[int, int, str, int, int]
"""A reference, told apart from the others of its scope."""


TWICE: Final = -9
"""In place of a source, for an alias that two of them have."""


_NO_NAMES: Final[frozenset[str]] = frozenset()


class Scope:
    """What one SELECT has gathered so far."""

    __slots__ = (
        "aggregated",
        "aliases",
        "around",
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

    def __init__(self, around: Around) -> None:
        self.around = around
        self.names: dict[str, int] = {}
        self.hidden: frozenset[str] = _NO_NAMES
        self.full_names: dict[str, int] = {}
        self.sources: list[Source] = []
        self.items: list[FromItem] = []
        self.refs: list[Ref] = []
        self.ref_index: dict[_RefKey, int] = {}
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


class Expressions:
    """The walk over one statement, as far as expressions go; `lower` adds queries."""

    def __init__(self, dialect: str, masking: Collection[str] = ()) -> None:
        self.dialect = dialect
        self.masking_names, self.by_class, self.handlers = _masking(frozenset(masking))
        self.functions = functions(dialect)
        self.by_name = _by_name(dialect, frozenset(masking))
        self.name_key = name_key(dialect)
        self.of_one_row = False
        self.one_row = dialect != "clickhouse"  # its arrayJoin may stand anywhere
        self.keeps_case = keeps_case(dialect)
        self.folds = folds(dialect)
        self.as_stored = dialect in AS_STORED
        self.resolution = alias_resolution.resolution(dialect)
        self.scopes: list[Scope] = []
        self.visible_ctes: list[dict[str, int]] = []
        self.cte_count = 0
        self.volatile_calls: dict[str, int] = {}
        self.evaluated: bytes | None = None
        self.tables: dict[str, None] = {}
        self.called: dict[str, None] = {}
        self.lambdas: list[dict[str, bytes]] = []
        self.in_value = 0
        self.outward = 0
        self.depth = 0
        self.deps: dict[int, int] = {}
        self.sub_deps: dict[int, int] = {}
        self.rows = 0
        self.read: dict[int, str] = {}
        """The names and values come across, by the identity of their nodes (see `flow.dropped_tokens`)."""

    def fold(self, node: Any) -> str:
        """The key of an identifier (or of the bare string sqlglot sometimes leaves)."""
        if type(node) is exp.Identifier:
            node.parent = None  # see `let_go`
            args = node.args
            key = self.read[id(node)] = lowered[args["this"]]
            if self.keeps_case and args.get("quoted"):
                return fold(args["this"], True, self.dialect)
            return key
        return lowered[node if isinstance(node, str) else node.name]

    def spelled(self, node: Any) -> bytes:
        """A name that is data: the key of a struct or of JSON, in the case the engine keeps."""
        if self.folds and isinstance(node, exp.Identifier):
            return self.fold(node).encode()
        return (node if isinstance(node, str) else str(node.name)).encode()

    def query(self, node: Any) -> Rel:
        """Lower a query; it stands in `lower`, which knows about FROM."""
        raise NotImplementedError

    def enter(self) -> Scope:
        """Begin a scope, with collectors of its own; whoever leaves by an exception leaves for good."""
        scope = Scope((self.deps, self.sub_deps, self.rows, self.lambdas, self.of_one_row))
        self.scopes.append(scope)
        self.lambdas = []
        self.of_one_row = False
        return scope

    def leave(self) -> None:
        """End the scope begun last."""
        around = self.scopes.pop().around
        self.deps, self.sub_deps, self.rows, self.lambdas, self.of_one_row = around

    # -- expressions ----------------------------------------------------------------------------

    def x(self, node: Any, kind: int) -> LoweredExpr:
        """Lower one expression on its own, with what it depends on."""
        saved = (self.deps, self.sub_deps, self.rows)
        self.deps, self.sub_deps, self.rows = {}, {}, 0
        e = self.expr(node, kind)
        x = LoweredExpr(e, self.deps, self.sub_deps or _NONE, self.rows)
        self.deps, self.sub_deps, self.rows = saved
        return x

    def x_of(self, nodes: Iterable[Any], kind: int, tag: bytes) -> LoweredExpr:
        """Lower several expressions as one."""
        saved = (self.deps, self.sub_deps, self.rows)
        self.deps, self.sub_deps, self.rows = {}, {}, 0
        pieces: list[Expr] = [tag]
        for node in nodes:
            pieces.append(
                self.expr(node, kind)
                if isinstance(node, exp.Expression)
                else digest(repr(node).encode())
            )
        x = LoweredExpr(merkle(pieces), self.deps, self.sub_deps, self.rows)
        self.deps, self.sub_deps, self.rows = saved
        return x

    def constant(self, node: Any) -> bytes:
        e = self.expr(node, TRANSFORMATION)
        if not isinstance(e, bytes):
            raise Unsupported("PIVOT over values that are not constant")
        return e

    def expr(self, node: Any, kind: int) -> Expr:
        self.depth += 1
        if self.depth > _MAX_DEPTH:
            raise Unsupported(Code.NESTED_TOO_DEEP(levels=MAX_NESTING))
        try:
            node.parent = None  # see `let_go`
        except AttributeError:  # sqlglot puts None where a call lacks an argument
            raise Unsupported("a call that lacks an argument") from None
        e = self.handlers.get(type(node), _GENERIC)(self, node, kind)
        self.depth -= 1
        return e

    def with_unread(self, e: Expr, node: Any, reads: frozenset[str], kind: int) -> Expr:
        """What a rule made of a node, and beside it every argument that the rule does not read."""
        left = {k: v for k, v in node.args.items() if v and k not in reads}
        if not left:
            return e
        if isinstance(node, exp.Column) and self.scopes:
            # Oracle's (+) makes an outer join of the condition it stands in: no mere filter.
            self.scopes[-1].extra.append(LoweredExpr(digest(written(left)), {}, {}))
        pieces: list[Expr] = [b"unread", e]
        self.arguments(left, kind, pieces)
        return merkle(pieces)

    def generic(self, node: Any, kind: int) -> Expr:
        """Any node: its class, then every argument that is set, in the order of the class."""
        if kind == IDENTITY:
            kind = TRANSFORMATION
        pieces: list[Expr] = [_TAGS[type(node)]]
        self.arguments(node.args, kind, pieces)
        for piece in pieces:  # as `merkle` does, without a call
            if type(piece) is not bytes:
                return pieces
        return digest(*pieces)

    def arguments(self, args: dict[str, Any], kind: int, pieces: list[Expr]) -> None:
        """Add every argument that is set, by name, to the pieces of an expression."""
        for name, value in args.items():
            if value is None or value is False:  # the same to sqlglot, too
                continue
            if type(value) is list:
                if value:
                    pieces.append(_NAMES_OF_ARGS[name])
                for item in value:
                    if isinstance(item, _NODE):
                        pieces.append(self.expr(item, kind))
                    else:
                        pieces.append(_repr(item))
            else:
                pieces.append(_NAMES_OF_ARGS[name])
                if isinstance(value, _NODE):
                    pieces.append(self.expr(value, kind))
                else:
                    pieces.append(_TRUE if value is True else _repr(value))

    def operator(self, node: Any, kind: int) -> Expr:
        """An operator; on a `*` it chooses columns by their names (`* LIKE 'a%'`)."""
        if type(node.args.get("this")) is exp.Star:
            raise Unsupported("a * filtered by a name pattern")
        return self.generic(node, kind)

    def chosen_columns(self, node: Any, kind: int) -> Expr:
        """COLUMNS(...): one expression for each column whose name is chosen."""
        raise Unsupported("COLUMNS(...)")

    def binary(self, node: Any, kind: int) -> Expr:
        """A comparison and its like: what `generic` gives, without the detours."""
        args = node.args
        if len(args) != 2:
            return self.generic(node, kind)
        if kind == IDENTITY:
            kind = TRANSFORMATION
        left = self.expr(args["this"], kind)
        right = self.expr(args["expression"], kind)
        tag = _TAGS[type(node)]
        if type(args["expression"]) in _QUANTIFIERS and is_quantified(node):
            return merkle([b"quantified", tag, left, right])
        if tag in COMPARED and type(left) is bytes and type(right) is bytes:
            return compared(tag, left, right)
        return merkle([tag, b"this", left, b"expression", right])

    def paren(self, node: exp.Paren, kind: int) -> Expr:
        return self.expr(node.args["this"], kind)

    def inner_alias(self, node: exp.Alias, kind: int) -> Expr:
        alias = node.args["alias"]
        return merkle([b"named", self.spelled(alias), self.expr(node.this, _direct(kind))])

    def struct(self, node: exp.Struct, kind: int) -> Expr:
        """A struct: the names of its fields are data, those that columns give them, too."""
        if {name for name, value in node.args.items() if value} - {"expressions"}:
            return self.generic(node, kind)
        kind = _direct(kind)
        pieces: list[Expr] = [b"Struct"]
        for field in node.expressions:
            value = field
            name = None
            if isinstance(field, exp.PropertyEQ) and isinstance(field.this, exp.Identifier):
                name, value = field.this, field.expression
            elif isinstance(field, exp.Column) and isinstance(field.this, exp.Identifier):
                name = field.this
            if name is None:
                pieces.append(self.expr(value, kind))
                continue
            e = self.expr(value, kind)
            stored = self.as_stored and field is value and type(e) is int
            pieces.append(merkle([b"named", ["L", e] if stored else self.spelled(name), e]))
        return merkle(pieces)

    def literal(self, node: exp.Literal, kind: int) -> Expr:
        args = node.args
        self.read[id(node)] = lowered[args["this"]]
        return _literal(bool(args.get("is_string")), args["this"])

    def var(self, node: exp.Var, kind: int) -> Expr:
        self.read[id(node)] = lowered[node.args["this"]]
        return self.generic(node, kind)

    def identifier(self, node: exp.Identifier, kind: int) -> Expr:
        key = self.fold(node)
        for names in reversed(self.lambdas):
            if key in names:
                return names[key]
        return digest(b"name", key.encode())

    def data_type(self, node: exp.DataType, kind: int) -> Expr:
        args = node.args
        if len(args) > 1 and any(v for k, v in args.items() if k not in _NAME_OF_TYPE):
            collation = args.get("collate")
            if collation is None:
                return self.generic(node, kind)
            if self.scopes:
                self.scopes[-1].collates = True
            pieces: list[Expr] = [b"DataType"]
            self.arguments({**args, "collate": None}, kind, pieces)
            return [b"Collate", merkle(pieces), written(collation)]  # see `collation`
        name = args["this"]
        kind_ = args.get("kind")
        if kind_ is None and type(name) is exp.DType:
            return _type_name(name)
        return digest(b"type", repr(name).encode(), repr(kind_).encode())

    def field_of_type(self, node: exp.ColumnDef, kind: int) -> Expr:
        """A field in the type of a struct, whose name is data."""
        pieces: list[Expr] = [b"ColumnDef"]
        name = node.args.get("this")
        if isinstance(name, exp.Identifier):
            self.fold(name)
            pieces.append(self.spelled(name))
            self.arguments({**node.args, "this": None}, kind, pieces)
        else:
            self.arguments(node.args, kind, pieces)
        return merkle(pieces)

    def ref(self, up: int, source: int, key: str, name: str) -> int:
        """The index of a reference in its scope; a bare name may also mean an earlier output."""
        scope = self.scopes[-1]
        rule = among = 0
        if source < 0 and (scope.shown or key in scope.aliases):
            rule = self.resolution[scope.place]
            among = scope.aliases.get(key, -1) + 1
        ref_key: _RefKey = (up, source, key, rule, among) if up or rule else (source, key)
        index = scope.ref_index.get(ref_key)
        if index is None:
            index = scope.ref_index[ref_key] = len(scope.refs)
            scope.refs.append(Ref(up, source, key, name, rule, among))
        return index

    def depend(self, ref: int, kind: int) -> int:
        self.deps[ref] = self.deps.get(ref, 0) | kind
        return ref

    def plain(self, node: exp.Column) -> int | None:
        """The reference that a column is: ``a``, or ``t.a`` where t is a source of this SELECT."""
        args = node.args
        this = args["this"]
        if type(this) is not _IDENTIFIER or self.lambdas:
            return None
        scope = self.scopes[-1]
        source = -1
        if len(args) > 1:
            table = args.get("table")
            if table is not None:
                named = scope.names.get(self.fold(table))
                if named is None or named == TWICE:
                    return None
                source = named
            if (len(args) > 2 or table is None) and not _READ_OF_PLAIN.issuperset(
                compress(args, args.values())
            ):
                return None
        this.parent = None
        name = this.args["this"]
        key = self.read[id(this)] = lowered[name]
        if self.keeps_case:
            key = self.fold(this)
        if source < 0 and (scope.shown or key in scope.aliases):
            return self.ref(0, -1, key, name)
        ref_key = (source, key)
        index = scope.ref_index.get(ref_key)
        if index is None:
            index = scope.ref_index[ref_key] = len(scope.refs)
            scope.refs.append(Ref(0, source, key, name))
        return index

    def column(self, node: exp.Column, kind: int) -> Expr:
        if not self.scopes:
            raise Unsupported("a column outside of a query")
        plain = self.plain(node)
        if plain is not None:
            self.deps[plain] = self.deps.get(plain, 0) | kind
            return plain
        return _PARTS(self, node, kind)

    def by_parts(self, node: exp.Column, kind: int) -> Expr:
        """A column that takes more than its name: fields, a query outside, the parameter of a lambda."""
        args = node.args
        this = args["this"]
        if isinstance(this, exp.Star):
            return self.inner_star(node, kind)
        if isinstance(this, _AROUND_CALLS):
            return self.expr(_as_call(node), kind)
        if not (args.get("table") or args.get("db") or args.get("catalog")):
            key = self.fold(this)
            for names in reversed(self.lambdas):
                if key in names:
                    return names[key]
            return self.depend(self.ref(0, -1, key, this.args["this"]), kind)
        parts = node.parts
        keys = [self.fold(p) for p in parts]
        fields = [self.spelled(p) for p in parts]
        for names in reversed(self.lambdas):
            if keys[0] in names:
                return self.fields(names[keys[0]], fields[1:])
        # The longest qualifier that names a source wins; what is left are fields of a struct.
        for length in range(len(keys) - 1, 0, -1):
            qualifier = ".".join(keys[:length])
            for up, scope in enumerate(reversed(self.scopes)):
                index_by_name = scope.names if length == 1 else scope.full_names
                index = one_of(index_by_name.get(qualifier))
                if index is None and length > 1:
                    index = by_suffix(scope.full_names, qualifier)
                if index is not None:
                    rest = fields[length + 1 :]
                    ref = self.ref(up, index, keys[length], parts[length].name)
                    return self.fields(self.depend(ref, _direct(kind) if rest else kind), rest)
        whole = ".".join(keys)
        for up, scope in enumerate(reversed(self.scopes)):
            if (
                whole in scope.full_names or by_suffix(scope.full_names, whole) is not None
            ):  # the rows of a relation, named with its schema
                return self.depend(self.ref(up, -1, keys[-1], parts[-1].name), _direct(kind))
            if any(whole.find(f".{name}.") > 0 for name in scope.full_names):
                raise Unsupported("a column with more of a relation's name than FROM has")
        if keys[0] == "alias" and self.dialect == "duckdb":
            raise Unsupported("alias.x, which means an alias of the select list")
        ref = self.ref(0, -1, keys[0], parts[0].name)
        return self.fields(self.depend(ref, _direct(kind)), fields[1:])

    def fields(self, e: Expr, names: list[bytes]) -> Expr:
        """Access to fields of a struct, written as a longer name; of a map or JSON, case counts."""
        for name in names:
            e = merkle([b"Dot", b"this", e, b"expression", digest(b"name", name)])
        return e

    def dot(self, node: exp.Dot, kind: int) -> Expr:
        """`(e).name`, as `fields` writes it."""
        if not isinstance(node.expression, exp.Identifier):
            return self.generic(node, kind)
        return self.fields(self.expr(node.this, _direct(kind)), [self.spelled(node.expression)])

    def inner_star(self, node: Any, kind: int) -> Expr:
        """A ``*`` inside an expression: every column, by name."""
        source = -1
        if isinstance(node, exp.Column):
            named = one_of(self.scopes[-1].names.get(self.fold(node.parts[-2])))
            source = -1 if named is None else named
            if source < 0:  # the fields of a struct
                parts = list(node.parts[:-1])
                names = dict(zip(("this", "table", "db"), reversed(parts), strict=False))
                return merkle([b"fields", self.column(exp.Column(**names), _direct(kind))])
            node = node.this
        if any(value and name != "except_" for name, value in node.args.items()):
            raise Unsupported("a * with other columns, inside an expression")
        excluded = [
            self.fold(c.this if isinstance(c, exp.Column) else c)
            for c in listed(node.args.get("except_"))
        ]
        # A reference to all columns: `up` holds the source, `name` what is left out.
        ref_key = (source, -2, "\x1f".join(excluded), 0, 0)
        index = self.scopes[-1].ref_index.get(ref_key)
        if index is None:
            index = self.scopes[-1].ref_index[ref_key] = len(self.scopes[-1].refs)
            self.scopes[-1].refs.append(Ref(source, -2, "*", ref_key[2]))
        return self.depend(index, _direct(kind))

    def position(self, node: exp.PositionalColumn, kind: int) -> Expr:
        """DuckDB's ``#2``, the second column of FROM: made of all of them, in their order."""
        if not self.scopes:
            return self.generic(node, kind)
        nth = self.expr(node.this, kind)
        return merkle([b"position", nth, self.inner_star(exp.Star(), kind)])

    def subquery(self, node: Any, mode: str, kind: int) -> Expr:
        while isinstance(node, exp.Paren):
            node = node.this
        saved_lambdas = self.lambdas
        scope = self.scopes[-1] if self.scopes else None
        if scope is not None:
            scope.lifted = False
        value = scope is not None and not self.of_one_row
        outward = self.outward
        self.in_value += value
        rel = self.query(node)
        self.in_value -= value
        self.lambdas = saved_lambdas
        subs = scope.subs if scope is not None else []
        subs.append(rel)
        index = len(subs) - 1
        if scope is not None and value and self.outward > outward:
            scope.may_lift.append(index)
        self.sub_deps[index] = kind | EXISTS if mode == "exists" else kind
        e: Expr = ["Q", mode, index]
        if scope is not None and scope.lifted and not self.of_one_row:
            e = ["U", e]
            scope.uncertain.append(LoweredExpr(e, {}, {index: TRANSFORMATION}))
        return e

    def scalar(self, node: Any, kind: int) -> Expr:
        if not self.scopes:
            raise Unsupported("a subquery outside of a query")
        return self.subquery(node, "scalar", kind)

    def exists(self, node: exp.Exists, kind: int) -> Expr:
        inner = node.this
        if not isinstance(inner, (exp.Query, exp.Subquery)):
            return self.generic(node, kind)  # the higher-order function exists(array, lambda)
        return merkle([b"Exists", self.subquery(inner, "exists", _indirect(kind, CONDITIONAL))])

    def is_in(self, node: exp.In, kind: int) -> Expr:
        query = node.args.get("query")
        unnest = node.args.get("unnest")
        if unnest is not None:  # BigQuery: an element of an array, no rows of its own
            kind = _direct(kind)
            pieces: list[Expr] = [b"In unnest"]
            self.arguments({**node.args, "unnest": None}, kind, pieces)
            self.arguments(unnest.args, kind, pieces)
            return merkle(pieces)
        if query is None:
            if self.dialect == "clickhouse" and isinstance(node.args.get("field"), exp.Column):
                raise Unsupported("IN a relation")
            return self.in_list(node, kind)
        return merkle(
            [
                b"In",
                self.expr(node.this, _direct(kind)),
                self.subquery(query, "in", _indirect(kind, CONDITIONAL)),
                self.generic(
                    exp.In(**{k: v for k, v in node.args.items() if k not in ("this", "query")}),
                    kind,
                ),
            ]
        )

    def in_list(self, node: exp.In, kind: int) -> Expr:
        """IN a list: of constants the order says nothing."""
        given = {name for name, value in node.args.items() if value}
        if given != {"this", "expressions"}:
            return self.generic(node, kind)
        kind = _direct(kind)
        this = self.expr(node.args["this"], kind)
        items = [self.expr(item, kind) for item in node.args["expressions"]]
        if all(type(item) is bytes for item in items):
            items.sort()
        return merkle([b"In", b"this", this, b"expressions", *items])

    def case(self, node: exp.Case, kind: int) -> Expr:
        kind = _masked(_direct(kind)) if _is_marked(node) else _direct(kind)
        test = _indirect(kind, CONDITIONAL)
        args = node.args
        pieces: list[Expr] = [b"Case"]
        if args.get("this") is not None:
            pieces += [b"this", self.expr(args["this"], test)]
        for branch in args.get("ifs") or []:
            branch.parent = None
            pieces += [
                b"when",
                self.expr(branch.args["this"], test),
                self.expr(branch.args["true"], kind),
            ]
        if args.get("default") is not None:
            pieces += [b"else", self.expr(args["default"], kind)]
        return merkle(pieces)

    def condition(self, node: exp.If, kind: int) -> Expr:
        kind = _direct(kind)
        args = node.args
        pieces: list[Expr] = [
            b"Case",
            b"when",
            self.expr(args["this"], _indirect(kind, CONDITIONAL)),
        ]
        pieces.append(self.expr(args["true"], kind))
        if args.get("false") is not None:
            pieces += [b"else", self.expr(args["false"], kind)]
        return merkle(pieces)

    def decode(self, node: exp.DecodeCase, kind: int) -> Expr:
        """DECODE(value, search, result, ..., default) chooses like a CASE."""
        kind = _direct(kind)
        test = _indirect(kind, CONDITIONAL)
        value, *rest = node.expressions
        pieces: list[Expr] = [b"Decode", self.expr(value, test)]
        for i, argument in enumerate(rest):
            searched = i % 2 == 0 and i + 1 < len(rest)
            pieces.append(self.expr(argument, test if searched else kind))
        return merkle(pieces)

    def named(self, node: Any, kind: int) -> Expr:
        """An argument by name: `struct_insert(s, B := 1)` makes a field of it, as it is written.

        What is no name is the key of a map, `MAP {id: v}`, which is an expression.
        """
        kind = TRANSFORMATION if kind == IDENTITY else kind
        this = node.this
        key: Expr
        if isinstance(this, (exp.Identifier, exp.Var)) or (
            isinstance(this, exp.Literal) and this.is_string
        ):
            key = this.name.encode()
        else:
            key = self.expr(this, kind) if isinstance(this, exp.Expression) else b""
        return merkle([b"Named", key, self.expr(node.expression, kind)])

    def collation(self, node: Any, kind: int) -> Expr:
        """A text under a collation, whose name is no column."""
        kind = TRANSFORMATION if kind == IDENTITY else kind
        if self.scopes:
            self.scopes[-1].collates = True
        # A node even of constants, so that a proof about equal texts sees it.
        return [b"Collate", self.expr(node.this, kind), written(node.expression)]

    def null_if(self, node: exp.Nullif, kind: int) -> Expr:
        """NULLIF(a, b) is CASE WHEN a = b THEN NULL ELSE a END: both choose, a is the value."""
        kind = _direct(kind)
        test = _indirect(kind, CONDITIONAL)
        this = node.args["this"]
        self.expr(this, test)
        return merkle([b"Nullif", self.expr(this, kind), self.expr(node.args["expression"], test)])

    def chain(self, node: Any, kind: int) -> Expr:
        """A left-deep run of one operator, without recursion: 10,000 terms are data, not depth."""
        kind = _direct(kind)
        t = type(node)
        flags = _flags(node)
        bound_otherwise = _BOUND_OTHERWISE.get(t, _BOUND_ALIKE)
        first_unbracketed = False
        terms: list[Any] = []
        current: Any = node
        while type(current) is t and _flags(current) == flags:
            terms.append(current.args["expression"])
            current = current.args["this"]
            first_unbracketed = type(current) in bound_otherwise
            while type(current) is exp.Paren:
                current = current.args["this"]
        pieces: list[Expr] = [self.expr(current, kind)]
        terms.reverse()
        for term in terms:
            pieces.append(self.expr(term, kind))
        tag = t.__name__.encode() + flags
        if bound_otherwise:
            which = [i for i, term in enumerate(terms, 1) if type(term) in bound_otherwise]
            if first_unbracketed or which:
                if bound_otherwise is _TILDE:
                    raise Unsupported("~ beside arithmetic, without brackets")
                tag += _UNBRACKETED + repr((first_unbracketed, which)).encode()
        while len(pieces) > 1 and isinstance(pieces[0], bytes) and isinstance(pieces[1], bytes):
            pieces[0:2] = [digest(tag, pieces[0], pieces[1])]
        return pieces[0] if len(pieces) == 1 else ["F", tag, *pieces]

    def logic(self, node: Any, kind: int) -> Expr:
        """All that one of AND and OR joins: in SQL's logic their order and brackets say nothing.

        Not recursive, as in `chain`.
        """
        kind = _direct(kind)
        t = type(node)
        terms: list[Expr] = []
        ahead: list[Any] = [node]
        while ahead:
            current = ahead.pop()
            while type(current) is exp.Paren:
                current = current.args["this"]
            if type(current) is t and not _flags(current):
                ahead += [current.args["expression"], current.args["this"]]
            elif current is node:
                return self.generic(node, kind)
            else:
                terms.append(self.expr(current, kind))
        tag = t.__name__.encode()
        if all(type(term) is bytes for term in terms):
            return digest(tag, *sorted(terms))
        return ["C", tag, *terms]

    def masking(self, node: Any, kind: int) -> Expr:
        return self.generic(node, _masked(_direct(kind)))

    def anonymous(self, node: exp.Anonymous, kind: int) -> Expr:
        name = self.name_of(node)
        if name == "columns" and self.dialect in ("duckdb", "clickhouse"):
            return self.chosen_columns(node, kind)  # t.COLUMNS(...)
        if name == "alias" and self.dialect == "duckdb":
            raise Unsupported("alias(), which gives the name of what it stands in")
        if name in VOLATILE_NAMES:
            return self.another(name, self.call(node, _direct(kind)))
        what = self.functions.kind(name)
        if what == "aggregate":
            return self.aggregate(node, kind)
        if what == "generator":
            return self.generator(node, kind)
        if what != "scalar":
            if name.startswith(IN_ANY_ORDER):
                kind = _direct(kind)
                return ["C", name.encode(), *(self.expr(item, kind) for item in node.expressions)]
            return self.uncertain(node, kind, _KNOWN_CALL)
        return self.known_call(node, kind)

    def known_call(self, node: exp.Anonymous, kind: int) -> Expr:
        """A function sqlglot does not know, that gives one value for each row."""
        name = self.name_of(node)
        kind = _direct(kind)
        if name in self.masking_names:
            kind = _masked(kind)
        if name == "nullifzero" and len(node.expressions) == 1:
            return self.null_if(
                exp.Nullif(this=node.expressions[0], expression=exp.Literal.number(0)), kind
            )
        if name == "iff" and len(node.expressions) == 3:
            test, true, false = node.expressions
            return self.condition(exp.If(this=test, true=true, false=false), kind)
        return self.call(node, kind)

    def name_of(self, node: Any) -> str:
        """The folded name of a call, as the text has it; empty where that was not kept."""
        if isinstance(node, _NAMED_CALLS):
            return self.fold(node.this)
        return lowered[str((node.meta if node._meta else {}).get(self.name_key, ""))]

    def generates(self, node: Any) -> bool:
        """Whether a call gives several rows for one."""
        if not isinstance(node, exp.Func):
            return False
        t: Any = type(node)
        if isinstance(node, _NAMED_CALLS):
            return _generates(self.dialect, t, self.fold(node.this))
        meta = node._meta
        return _generates(self.dialect, t, meta.get(self.name_key) if meta else None)

    def typed(self, node: Any, kind: int) -> Expr:
        """A call of a function sqlglot knows: its name on this engine decides what it does."""
        t = type(node)
        meta = node._meta
        name = meta.get(self.name_key) if meta else None
        rule = self.by_name.get((t, name))
        if rule is None:
            rule = self.by_name[t, name] = self.rule_of(t, name)
        return rule(self, node, kind)

    def rule_of(self, t: type, name: str | None) -> _Rule:
        """How calls of this class under this name are lowered."""
        by_class = self.by_class.get(t, _GENERIC)
        if name is None:
            return by_class
        what = self.functions.kind(lowered[name])
        if what == "window" or (what == "aggregate" and by_class is Expressions.grouping):
            return by_class
        if what == "aggregate":
            return Expressions.aggregate
        if what == "generator":
            return Expressions.generator
        plain = by_class
        if by_class in (Expressions.aggregate, Expressions.generator):
            plain = _GENERIC
        if what == "scalar":
            return plain
        return lambda walk, node, kind: walk.uncertain(node, kind, plain, by_class)

    def uncertain(self, node: Any, kind: int, plain: _Rule, otherwise: _Rule | None = None) -> Expr:
        """A call that may aggregate, or give several rows: nobody here knows the function.

        DISTINCT, ORDER BY or FILTER in a call are proof that it aggregates. Where neither would be
        allowed (a condition of WHERE or ON, inside an aggregate, in FROM) it is a value of the row.
        """
        if _only_of_aggregates(node):
            return self.aggregate(node, kind)
        if self.of_one_row or not self.scopes:
            generates = otherwise is Expressions.generator
            e = (otherwise if otherwise and generates else plain)(self, node, kind)
            self.lift(e)
            return e
        saved = (self.deps, self.sub_deps, self.rows)
        self.deps, self.sub_deps, self.rows = {}, {}, 0
        e = ["U", plain(self, node, TRANSFORMATION)]
        x = LoweredExpr(e, self.deps, self.sub_deps, self.rows)
        self.deps, self.sub_deps, self.rows = saved
        self.scopes[-1].uncertain.append(x)
        kind = _direct(kind)
        for ref, mask in x.deps.items():
            self.depend(ref, compose(kind, mask))
        for sub, mask in x.subs.items():
            kinds = compose(kind, mask & ~EXISTS) | (mask & EXISTS)
            self.sub_deps[sub] = self.sub_deps.get(sub, 0) | kinds
        self.rows |= x.rows
        self.lift(e)
        return e

    def lift(self, call: Expr) -> None:
        """Note what may aggregate over the rows of a query outside.

        An aggregate that reads columns of outer queries only is theirs, wherever it stands. Whose a
        bare name is, only linking knows.
        """
        if len(self.scopes) < 2:
            return
        refs = self.scopes[-1].refs
        outwards = 0
        bare_names = False
        used: list[int] = []
        stack = [call]
        while stack:
            piece = stack.pop()
            if type(piece) is int:
                ref = refs[piece]
                bare = ref.source == -3 or (ref.source == -1 and not self.scopes[-1].sources)
                if ref.source == -2 or (ref.up <= 0 and not bare and not self.may_be_outside(ref)):
                    return
                used.append(piece)
                if ref.up <= 0 and not bare:
                    bare_names = True
                else:
                    outwards = max(outwards, ref.up or len(self.scopes) - 1)
            elif type(piece) is list and piece[0] != "Q":
                stack.extend(piece)
        if bare_names:
            if self.in_value:
                self.scopes[-1].outward.append(used)
                self.outward += 1
            return
        for scope in self.scopes[-1 - outwards : -1]:
            scope.lifted = True

    def may_be_outside(self, ref: Ref) -> bool:
        """Whether a name of this query may yet be one of a query around, which linking will know."""
        if ref.source < 0:
            return ref.source == -1
        alias = self.scopes[-1].sources[ref.source].alias
        return any(alias in scope.names for scope in self.scopes[:-1])

    def dotted(self, node: exp.Dot, kind: int) -> Expr:
        """``schema.function(...)``, or ``column.function(...)`` where an engine has that.

        A function of a schema is a user's, unless the schema is one of the engine's own.
        """
        call = node.args["expression"]
        if isinstance(call, _AROUND_CALLS):
            return self.expr(_called_on(node.args["this"], call), kind)
        if not isinstance(call, exp.Func):
            return self.dot(node, kind)
        receiver = node.args["this"]
        path = _path(receiver)
        name = self.name_of(call)
        if path is None:
            what = self.functions.kind(name)
        else:
            schema = ".".join(map(self.fold, path))
            what = self.functions.kind(f"{schema}.{name}")
            if schema in BUILT_IN_SCHEMAS:
                what = self.functions.kind(name)
        if what == "aggregate":
            return self.aggregate(node, kind)
        if what == "scalar":
            return self.dotted_call(node, kind)
        return self.uncertain(node, kind, _DOTTED_CALL)

    def dotted_call(self, node: exp.Dot, kind: int) -> Expr:
        """The receiver or the schema, and the call."""
        kind = _direct(kind)
        receiver, call = node.args["this"], node.args["expression"]
        if self.name_of(call) in self.masking_names:
            kind = _masked(kind)
        path = _path(receiver)
        if path is not None:
            this = self.owner(path, kind)
        else:
            # sqlglot made a mere name of each column there is in what stands before the point.
            receiver = receiver.transform(_columns_again)
            this = self.expr(receiver, kind)
        pieces: list[Expr] = [b"Dot", b"this", this, b"expression"]
        if isinstance(call, exp.Anonymous):
            pieces.append(self.call(call, kind))
        else:
            pieces.append(self.generic(call, kind))
        return merkle(pieces)

    def owner(self, path: list[Any], kind: int) -> Expr:
        """What stands before the point: a column, on engines that have methods, or a schema."""
        keys = [self.fold(p) for p in path]
        schema = digest(b"name", ".".join(keys).encode())
        if self.dialect not in _METHODS or not self.scopes:
            return schema
        if any(keys[0] in scope.names for scope in self.scopes) and len(path) > 1:
            names = dict(zip(("table", "this"), path[:2], strict=True))
            e = self.column(exp.Column(**names), kind)
            return self.fields(e, [self.spelled(p) for p in path[2:]])
        index = self.ref(0, -3, keys[0], path[0].name)
        return self.fields(self.depend(index, kind), [self.spelled(p) for p in path[1:]])

    def net(self, node: exp.NetFunc, kind: int) -> Expr:
        """BigQuery's NET.f(...): none of them aggregates."""
        call = node.this
        rule = _KNOWN_CALL if isinstance(call, exp.Anonymous) else self.by_class.get(type(call))
        return merkle([b"NetFunc", (rule or _GENERIC)(self, call, _direct(kind))])

    def some(self, node: exp.Any, kind: int) -> Expr:
        """ANY of a subquery or an array, or an aggregate of that name."""
        inner = node.this
        if not isinstance(inner, exp.Query) and self.functions.kind("any") == "aggregate":
            return self.aggregate(node, kind)
        return self.generic(node, kind)

    def parameterised(self, node: exp.Aliases, kind: int) -> Expr:
        """``f(1)(x)`` of ClickHouse, which sqlglot takes for ``f(1) as (x)``: an aggregate."""
        call = node.this
        if self.dialect != "clickhouse" or not isinstance(call, exp.Func):
            return self.generic(node, kind)
        arguments = [exp.Column(this=name) for name in node.expressions]
        return self.aggregate(exp.Tuple(expressions=[call, *arguments]), kind)

    def generator(self, node: Any, kind: int) -> Expr:
        """A function that gives several rows for one: its expression also decides the rows."""
        saved = (self.deps, self.sub_deps, self.rows)
        self.deps, self.sub_deps, self.rows = {}, {}, 0
        if isinstance(node, exp.Anonymous):
            e = self.call(node, TRANSFORMATION)
        else:
            e = self.generic(node, TRANSFORMATION)
        x = LoweredExpr(e, self.deps, self.sub_deps, self.rows)
        self.deps, self.sub_deps, self.rows = saved
        if self.scopes:
            self.scopes[-1].generators.append(x)
        for ref, mask in x.deps.items():
            self.depend(ref, mask if kind & DIRECT else kind)
        for sub, mask in x.subs.items():
            self.sub_deps[sub] = self.sub_deps.get(sub, 0) | (mask if kind & DIRECT else kind)
        return ["G", e]

    def volatile(self, node: Any, kind: int) -> Expr:
        """A function that gives another value each time."""
        return self.another(function_name(node), self.generic(node, kind))

    def another(self, name: str, e: Expr) -> Expr:
        """A call of a volatile function: the second one of a query is not the first.

        A CTE that is read twice gives the same values twice, two subqueries of one text do not.
        """
        if not self.scopes:
            return e
        self.scopes[-1].volatile = True
        calls = self.volatile_calls
        calls[name] = calls.get(name, 0) + 1
        pieces: list[Expr] = [b"another", str(calls[name]).encode(), e]
        if self.evaluated is not None:
            pieces.append(self.evaluated)
        return ["G", merkle(pieces)]

    def call(self, node: exp.Anonymous, kind: int) -> Expr:
        """A function sqlglot does not know: its folded name and its arguments in order."""
        pieces: list[Expr] = [b"call", digest(self.name_of(node).encode())]
        pieces.extend(self.expr(e, kind) for e in node.expressions)
        return merkle(pieces)

    def grouping(self, node: Any, kind: int) -> Expr:
        """GROUPING(k) says which grouping set a row is of: no value of k shows in it."""
        self.scopes[-1].aggregated = True
        saved = self.deps
        self.deps = {}
        e = self.generic(node, kind)
        self.deps = saved
        return e

    def aggregate(self, node: Any, kind: int) -> Expr:
        if not self.scopes:
            return self.aggregate_call(node, kind, "A")
        scope = self.scopes[-1]
        scope.aggregated = True
        place, scope.place = scope.place, _IN_AGGREGATE.get(scope.place, scope.place)
        of_one_row, self.of_one_row = self.of_one_row, self.one_row
        call = self.aggregate_call(node, kind, "A")
        scope.place, self.of_one_row = place, of_one_row
        self.lift(call)
        return call

    def aggregate_call(self, node: Any, kind: int, mode: str) -> Expr:
        """The call of an aggregate, over a group (``A``) or, from `window`, over a frame."""
        inner = _aggregate(kind)
        if isinstance(node, exp.Count) and _counts_rows(node):
            self.rows |= inner
            if isinstance(node.this, exp.Literal):
                self.literal(node.this, kind)
            return [mode, digest(b"count(*)")]
        before = len(self.deps), len(self.sub_deps)
        if isinstance(node, (exp.Count, exp.CountIf, exp.ApproxDistinct)):
            e = self.generic(node, _masked(inner))
        elif isinstance(node, exp.Anonymous):
            e = self.call(node, inner)
        elif isinstance(node, exp.Dot):
            e = self.dotted_call(node, inner)
        else:
            e = self.generic(node, inner)
        if isinstance(e, bytes) and before == (len(self.deps), len(self.sub_deps)):
            self.rows |= inner  # sum(1), count(1): a number of rows
        return [mode, e]

    def filter(self, node: exp.Filter, kind: int) -> Expr:
        call = self.aggregate if self.may_aggregate(node.this) else self.expr
        if not self.scopes:
            return self.filtered(node, kind, call(node.this, kind))
        scope = self.scopes[-1]
        place, scope.place = scope.place, _IN_AGGREGATE.get(scope.place, scope.place)
        e = self.filtered(node, kind, call(node.this, kind))
        scope.place = place
        return e

    def may_aggregate(self, call: Any) -> bool:
        """Whether a call is of a function that nobody here knows."""
        if isinstance(call, exp.Anonymous):
            return self.functions.kind(self.name_of(call)) != "aggregate"
        return isinstance(call, exp.Dot) and isinstance(call.expression, exp.Func)

    def filtered(self, node: exp.Filter, kind: int, call: Expr) -> Expr:
        where = node.args["expression"]
        test = where.this if isinstance(where, exp.Where) else where
        of_one_row, self.of_one_row = self.of_one_row, self.one_row
        condition = self.expr(test, _indirect(kind, CONDITIONAL))
        self.of_one_row = of_one_row
        return merkle([b"Filter", call, condition])

    def within_group(self, node: exp.WithinGroup, kind: int) -> Expr:
        if not self.scopes:
            return ["A", self.within_group_call(node, kind)]
        scope = self.scopes[-1]
        scope.aggregated = True
        place, scope.place = scope.place, _IN_AGGREGATE.get(scope.place, scope.place)
        call = self.within_group_call(node, kind)
        scope.place = place
        return ["A", call]

    def within_group_call(self, node: exp.WithinGroup, kind: int) -> Expr:
        """WITHIN GROUP (ORDER BY x): the value of a percentile, the mere order of a list."""
        inner = _aggregate(kind)
        call = node.this
        ordered_set = isinstance(call, _ORDERED_SETS) or function_name(call) in ORDERED_SET_NAMES
        order = node.args["expression"]
        lower = self.dotted_call if isinstance(call, exp.Dot) else self.generic
        pieces: list[Expr] = [b"WithinGroup", lower(call, inner)]
        pieces.append(self.generic(order, inner if ordered_set else _indirect(inner, SORT)))
        return merkle(pieces)

    def inner_order(self, node: exp.Order, kind: int) -> Expr:
        pieces: list[Expr] = [b"Order"]
        if node.args.get("this") is not None:
            pieces.append(self.expr(node.this, kind))
        pieces.extend(self.expr(e, _indirect(kind, SORT)) for e in node.expressions)
        return merkle(pieces)

    def lambda_(self, node: exp.Lambda, kind: int) -> Expr:
        level = len(self.lambdas)
        self.lambdas = [
            *self.lambdas,
            {
                self.fold(p): digest(b"lambda", f"{level}.{i}".encode())
                for i, p in enumerate(node.expressions)
            },
        ]
        body = self.expr(node.this, kind)
        self.lambdas = self.lambdas[:-1]
        typed = [written(p) for p in node.expressions if type(p) is not exp.Identifier]
        return merkle([b"Lambda", str(len(node.expressions)).encode(), *typed, body])

    def comprehension(self, node: exp.Comprehension, kind: int) -> Expr:
        """[e FOR x IN array IF c]: x is a parameter, as of a lambda."""
        args = node.args
        pieces: list[Expr] = [b"Comprehension", self.expr(args["iterator"], _direct(kind))]
        level = len(self.lambdas)
        names = [args.get("expression"), args.get("position")]
        self.lambdas = [
            *self.lambdas,
            {
                self.fold(n): digest(b"lambda", f"{level}.{i}".encode())
                for i, n in enumerate(names)
                if n is not None
            },
        ]
        pieces.append(self.expr(args["this"], _direct(kind)))
        if args.get("condition") is not None:
            pieces.append(self.expr(args["condition"], _direct(kind)))
        self.lambdas = self.lambdas[:-1]
        return merkle(pieces)

    def window(self, node: exp.Window, kind: int) -> Expr:
        if not self.scopes:
            return self.window_call(node, kind)
        scope = self.scopes[-1]
        place, scope.place = scope.place, _IN_WINDOW.get(scope.place, scope.place)
        call = self.window_call(node, kind)
        scope.place = place
        return call

    def window_call(self, node: exp.Window, kind: int) -> Expr:
        kind = _direct(kind)
        if self.scopes:
            self.scopes[-1].windowed = True
        partition, order, spec, leftover = self.window_parts(node)
        over = _indirect(kind, WINDOW)
        keep = leftover.get("over") is not None
        if keep and self.scopes:  # Oracle's KEEP (DENSE_RANK FIRST ORDER BY x): an aggregate
            self.scopes[-1].aggregated = True
        pieces: list[Expr] = [b"Window", self.window_function(node.this, kind)]
        pieces.append(b"partition")
        pieces.extend(self.expr(p, over) for p in partition)
        if order is not None:
            order.parent = None
            pieces.append(b"order")
            pieces.extend(self.expr(o, over) for o in order.expressions)
        sorts = len(pieces) > 3
        if sorts and self.scopes:
            self.scopes[-1].sorts.append(merkle(pieces[2:]))
        if spec is not None:
            pieces += [b"spec", self.expr(spec, over)]
            for bound in spec.args.values():
                for word in bound.lower().split() if isinstance(bound, str) else ():
                    self.read[-len(self.read)] = word
        pieces += [digest(written(leftover))]
        if keep:
            return ["A", merkle(pieces)]
        if _sees_no_ties(node.this, spec):
            return ["W", merkle(pieces)]
        return ["W", merkle(pieces), b"sorted" if sorts else b"as it comes"]

    def window_parts(self, node: exp.Window) -> tuple[list[Any], Any, Any, dict[str, bytes]]:
        """PARTITION BY, ORDER BY and frame of a window, those of the window it names included."""
        args = node.args
        partition = list(args.get("partition_by") or [])
        order = args.get("order")
        spec = args.get("spec")
        leftover = {
            k: written(v)
            for k, v in args.items()
            if v and k not in ("this", "partition_by", "order", "spec", "alias") and v != "OVER"
        }
        if order is not None:
            more = {k: v for k, v in order.args.items() if v and k != "expressions"}
            if more:
                leftover["order"] = written(more)
        alias = args.get("alias")
        if args.get("over") == "KEEP":  # (DENSE_RANK FIRST ORDER BY x): no window of that name
            alias = None
        if alias is not None:
            base = self.scopes[-1].windows.get(
                self.fold(alias if isinstance(alias, exp.Identifier) else alias.this)
            )
            if base is None:
                raise Unsupported(f"window {alias.name} is not defined")
            if base is not node:
                base_partition, base_order, base_spec, base_left = self.window_parts(base)
                partition = partition or base_partition
                order = order or base_order
                spec = spec or base_spec
                leftover = {**base_left, **leftover}
        return partition, order, spec, leftover

    def window_function(self, node: Any, kind: int) -> Expr:
        """The function of a window: it aggregates over its frame and does not group the scope."""
        node = _as_call(node)
        if isinstance(node, exp.Filter):
            return self.filtered(node, kind, self.window_function(node.this, kind))
        if isinstance(node, (exp.IgnoreNulls, exp.RespectNulls)):
            return merkle([type(node).__name__.encode(), self.window_function(node.this, kind)])
        if isinstance(node, _VALUE_WINDOW_TYPES):
            return self.generic(node, kind)
        if isinstance(node, exp.WithinGroup):
            return self.within_group_call(node, kind)
        if isinstance(node, (exp.First, exp.Last)):
            return self.generic(node, kind)
        if isinstance(node, _RANKS):
            return self.generic(node, _indirect(kind, WINDOW))
        if isinstance(node, exp.AggFunc):
            return self.aggregate_call(node, kind, "W")
        if isinstance(node, exp.Func) and self.functions.kind(self.name_of(node)) == "aggregate":
            return self.aggregate_call(node, kind, "W")
        if isinstance(node, exp.Anonymous):
            return self.known_call(node, kind)
        if isinstance(node, exp.Dot) and isinstance(node.expression, exp.Func):
            return self.dotted_call(node, kind)
        plain = self.by_class.get(type(node), _GENERIC)
        return (_GENERIC if plain is Expressions.generator else plain)(self, node, kind)


@lru_cache(maxsize=50_000)
def _literal(is_string: bool, text: str) -> bytes:
    return digest(b"string" if is_string else b"number", text.encode())


@cache
def _type_name(name: exp.DType) -> bytes:
    return digest(
        b"type", f"DType.{name.name}".encode(), b"None"
    )  # as `flow.row_constraints` knows it


class _Tags(dict[type[Any], bytes]):
    """The name of each class, as it is hashed."""

    def __missing__(self, t: type[Any]) -> bytes:
        tag = self[t] = t.__name__.encode()
        return tag


class _NamesOfArgs(dict[str, bytes]):
    """The name of each argument, as it is hashed."""

    def __missing__(self, name: str) -> bytes:
        tag = self[name] = name.encode()
        return tag


_TAGS: Final = _Tags()
_NAMES_OF_ARGS: Final = _NamesOfArgs()
_NODE: Final = exp.Expression
_IDENTIFIER: Final = exp.Identifier


_TRUE: Final = digest(b"True")


def _repr(value: Any) -> bytes:
    return digest(repr(value).encode())


def merkle(pieces: list[Expr]) -> Expr:
    """Combine pieces into a node; a node without references is its fingerprint already."""
    for piece in pieces:
        if type(piece) is not bytes:
            return pieces
    return digest(*pieces)


def let_go(node: Any) -> None:
    """Forget the way up from the children of a node: they die with it.

    A parse tree whose nodes know their parents is one big cycle, which only the garbage collector
    can free, and that is a tenth of the time an analysis takes. The walk only looks down, so it
    cuts the way back as it goes (``parent = None``): here, and where it reads a single node. What
    it leaves, the collector finds.
    """
    for value in node.args.values():
        if type(value) is list:
            try:
                for child in value:
                    child.parent = None
            except AttributeError:  # a list of texts, which has no more nodes in it
                continue
        elif isinstance(value, exp.Expression):
            value.parent = None


def unwrapped(node: Any) -> Any:
    """What stands in parentheses."""
    while type(node) is exp.Paren:
        node = node.args["this"]
    return node


def listed(value: Any) -> list[Any]:
    """An argument that may be one node, a list of them, or absent."""
    return value if isinstance(value, list) else [] if value is None or value is False else [value]


def _counts_rows(node: exp.Count) -> bool:
    """Whether a count counts every row: ``count(*)``, or of a constant that is not NULL."""
    this = node.args.get("this")
    if node.args.get("expressions"):
        return False
    if isinstance(this, exp.Star):
        return not any(this.args.values())
    return isinstance(this, (exp.Literal, exp.Boolean))


def _flags(node: Any) -> bytes:
    """What a binary operator says besides its two sides (`safe`, `typed`)."""
    flags = b""
    for name, value in node.args.items():
        if value is not None and name != "this" and name != "expression":
            flags += repr((name, value)).encode()
    return flags


def written(value: Any) -> bytes:
    """An argument as it stands, for what is hashed without being followed; comments do not count.

    False counts: SKIP LOCKED is `wait=False`.
    """
    if isinstance(value, exp.Expression):
        inner = b",".join(
            k.encode() + b"=" + written(v)
            for k, v in value.args.items()
            if v is not None and (v or type(v) is not list)
        )
        return type(value).__name__.encode() + b"(" + inner + b")"
    if isinstance(value, dict):
        return b"{" + b",".join(k.encode() + b"=" + written(v) for k, v in value.items()) + b"}"
    if isinstance(value, list):
        return b"[" + b",".join(map(written, value)) + b"]"
    return repr(value).encode()


def is_quantified(comparison: Any) -> bool:
    """Whether a value is compared with any or all of several: `a = all (select ...)`, `a = some(list)`.

    It does not say of the value what `a = b` says. sqlglot takes the words for functions where a
    list follows them.
    """
    other = comparison.args.get("expression")
    return isinstance(other, (exp.Any, exp.All)) or (
        isinstance(other, exp.Anonymous) and str(other.this).lower() in _QUANTIFIER_NAMES
    )


def one_of(source: int | None) -> int | None:
    """The relation of an alias, which is the only one of its FROM with it."""
    if source == TWICE:
        raise Unsupported("the name of two relations of one FROM")
    return source


def by_suffix(full_names: dict[str, int], qualifier: str) -> int | None:
    """A source written `cat.db.t` may be qualified as `db.t`."""
    indices = [i for name, i in full_names.items() if name.endswith("." + qualifier)]
    return one_of(indices[0]) if len(indices) == 1 else None


def _sees_no_ties(call: Any, spec: Any) -> bool:
    """Whether a window's value is the same however rows that its ORDER BY leaves equal come."""
    if spec is not None and str(spec.args.get("kind")).upper() not in ("RANGE", "GROUPS"):
        return False
    while isinstance(call, exp.Filter):
        call = call.this
    return isinstance(call, _BLIND_TO_TIES)


def _only_of_aggregates(call: Any) -> bool:
    """Whether a call says what only an aggregate can be told: DISTINCT, ORDER BY, IGNORE NULLS."""
    call = call.args["expression"] if isinstance(call, exp.Dot) else call
    arguments = [call.args.get("this"), call.args.get("expression"), *call.expressions]
    return any(isinstance(argument, _OF_AGGREGATES) for argument in arguments)


def _called_on(receiver: Any, call: Any) -> Any:
    """``s.f(x) filter (where y)`` as a filter around ``s.f(x)``; sqlglot has it inside out."""
    if isinstance(call, _AROUND_CALLS):
        inner = _called_on(receiver, call.args["this"])
        return type(call)(**{**call.args, "this": inner})
    return exp.Dot(this=receiver, expression=call)


def _as_call(node: Any) -> Any:
    """What sqlglot made a column, or the part behind a point, of: the call that it is."""
    if isinstance(node, exp.Dot) and isinstance(node.expression, _AROUND_CALLS):
        return _called_on(node.this, node.expression)
    if isinstance(node, exp.Column) and isinstance(node.this, _AROUND_CALLS):
        *names, call = node.parts
        return _called_on(exp.Dot.build(names) if len(names) > 1 else names[0], call)
    return node


def _path(node: Any) -> list[Any] | None:
    """The names of ``a.b.c``; None where it is something else."""
    parts: list[Any] = []
    while isinstance(node, exp.Dot) and isinstance(node.expression, exp.Identifier):
        parts.append(node.expression)
        node = node.this
    if not isinstance(node, exp.Identifier):
        return None
    return [node, *reversed(parts)]


def _columns_again(node: Any) -> Any:
    """The column that a name is, in an expression of which sqlglot made names only."""
    if isinstance(node, exp.Dot) and (path := _path(node)) is not None:
        names = zip(("this", "table", "db", "catalog"), reversed(path[:4]), strict=False)
        return exp.Column(**dict(names))
    if not isinstance(node, exp.Identifier) or isinstance(node.parent, _HOLDS_NAMES):
        return node
    return exp.Column(this=node)


def function_name(node: Any) -> str:
    """The folded name of a function call."""
    if isinstance(node, exp.Anonymous):
        return str(node.this).lower()
    return str(node.key).lstrip("_")


_Rule = Callable[[Any, Any, int], Expr]
"""How a node is lowered: a method that leaves nothing of it out, or one with `_reading` around it."""


def _reading(method: _Rule, reads: frozenset[str]) -> _Rule:
    """A rule that hashes what is set of a node, besides these arguments, beside what the method makes."""

    def rule(walk: Any, node: Any, kind: int) -> Expr:
        e = method(walk, node, kind)
        if reads.issuperset(node.args):
            return e
        return walk.with_unread(e, node, reads, kind)

    return rule


def _bracketed(method: _Rule) -> _Rule:
    """A rule for an operator; what others do with it, unbracketed, may be something else."""

    def rule(walk: Any, node: Any, kind: int) -> Expr:
        which = unbracketed(node)
        if not which:
            return method(walk, node, kind)
        if _BOUND_OTHERWISE[type(node)] is _TILDE:
            raise Unsupported("~ beside arithmetic, without brackets")
        return merkle([_UNBRACKETED, repr(which).encode(), method(walk, node, kind)])

    return rule


def unbracketed(node: Any) -> list[str]:
    """The operands of an operator that are another, which an engine may bind otherwise."""
    bound_otherwise = _BOUND_OTHERWISE.get(type(node))
    if bound_otherwise is None:
        return []
    return [name for name, operand in node.args.items() if type(operand) in bound_otherwise]


def _args(names: str) -> frozenset[str]:
    return frozenset(names.split())


_READ_OF_COLUMN: Final = _args("this table db catalog")
_READ_OF_PLAIN: Final = _args("this table")
_NAME_OF_TYPE: Final = _args("this kind")


def _handlers() -> dict[type[Any], _Rule]:
    """Which method lowers which class of node; the others are lowered generically.

    Beside the method the arguments it reads; None where it leaves nothing out: it reads the rest
    generically, or raises.
    """
    handlers: dict[type[Any], tuple[_Rule, frozenset[str] | None]] = {
        exp.Column: (Expressions.column, None),
        exp.Literal: (Expressions.literal, _args("this is_string")),
        exp.Var: (Expressions.var, None),
        exp.Paren: (Expressions.paren, _args("this")),
        exp.Alias: (Expressions.inner_alias, _args("this alias")),
        exp.Identifier: (Expressions.identifier, _args("this quoted")),
        exp.Star: (Expressions.inner_star, None),
        exp.Columns: (Expressions.chosen_columns, None),
        exp.Dot: (Expressions.dotted, _args("this expression")),
        exp.Any: (Expressions.some, None),
        exp.NetFunc: (Expressions.net, _args("this")),
        exp.Aliases: (Expressions.parameterised, None),
        exp.Struct: (Expressions.struct, None),
        exp.Subquery: (Expressions.scalar, None),
        exp.Select: (Expressions.scalar, None),
        exp.Union: (Expressions.scalar, None),
        exp.Except: (Expressions.scalar, None),
        exp.Intersect: (Expressions.scalar, None),
        exp.Exists: (Expressions.exists, _args("this")),
        exp.In: (Expressions.is_in, _args("this expressions query unnest field is_global")),
        exp.Case: (Expressions.case, _args("this ifs default")),
        exp.If: (Expressions.condition, _args("this true false")),
        exp.Nullif: (Expressions.null_if, _args("this expression")),
        exp.PropertyEQ: (Expressions.named, _args("this expression")),
        exp.Kwarg: (Expressions.named, _args("this expression")),
        exp.Collate: (Expressions.collation, _args("this expression")),
        exp.Nvl2: (Expressions.condition, _args("this true false")),
        exp.DecodeCase: (Expressions.decode, _args("expressions")),
        exp.Comprehension: (
            Expressions.comprehension,
            _args("this expression position iterator condition"),
        ),
        exp.Window: (
            Expressions.window,
            _args("this partition_by order spec alias over first"),
        ),
        exp.Filter: (Expressions.filter, _args("this expression")),
        exp.WithinGroup: (Expressions.within_group, _args("this expression")),
        exp.Order: (Expressions.inner_order, _args("this expressions")),
        exp.Lambda: (Expressions.lambda_, _args("this expressions")),
        exp.DataType: (Expressions.data_type, None),
        exp.PositionalColumn: (Expressions.position, _args("this")),
        exp.ColumnDef: (Expressions.field_of_type, None),
        exp.Anonymous: (Expressions.anonymous, _args("this expressions")),
        exp.Grouping: (Expressions.grouping, None),
        exp.GroupingId: (Expressions.grouping, None),
    }
    for t in vars(exp).values():
        if isinstance(t, type) and issubclass(t, exp.AggFunc):
            handlers.setdefault(t, (Expressions.aggregate, None))
    for t in _BINARY_TYPES:
        handlers[t] = (Expressions.binary, None)
    for t in _CHAIN_TYPES:
        handlers[t] = (Expressions.chain, None)
    for t in _LOGIC_TYPES:
        handlers[t] = (Expressions.logic, None)
    for t in GENERATOR_TYPES:
        handlers[t] = (Expressions.generator, None)
    for t in _MASKING_TYPES:
        handlers[t] = (Expressions.masking, None)
    for t in VOLATILE_TYPES:
        handlers[t] = (Expressions.volatile, None)
    for t in vars(exp).values():
        if isinstance(t, type) and issubclass(t, (exp.Binary, exp.Unary, exp.Between)):
            handlers.setdefault(t, (Expressions.operator, None))
    for t in _BOUND_OTHERWISE:
        if t not in _CHAIN_TYPES:  # which looks at its terms itself
            rule, reads = handlers.get(t, (Expressions.generic, None))
            handlers[t] = (_bracketed(rule), reads)
    # Where a rule reads all that a class can have, there is nothing to look for beyond it.
    return {
        t: handler if reads is None or reads.issuperset(t.arg_types) else _reading(handler, reads)
        for t, (handler, reads) in handlers.items()
    }


_HANDLERS: Final = _handlers()


_OPERATORS: Final[frozenset[type]] = frozenset({*_LOGIC_TYPES, *_CHAIN_TYPES, *_BINARY_TYPES})
_TYPED: Final = {
    t: Expressions.typed
    for t in vars(exp).values()
    if isinstance(t, type)
    and issubclass(t, exp.Func)
    and not issubclass(t, (exp.Anonymous, exp.Case, exp.Cast, exp.Exists))
    and t not in _OPERATORS
}
"""Calls whose name says what they do, which is not the same on every engine."""


@lru_cache(maxsize=8)
def _masking(
    more: frozenset[str],
) -> tuple[frozenset[str], dict[type[Any], _Rule], dict[type[Any], _Rule]]:
    """The functions that mask, by name; the handlers by class; and those with `typed` before them.

    More names may be sqlglot's own.
    """
    names = MASKING_NAMES | {name.rpartition(".")[2].lower() for name in more}
    types = [t for name in names - MASKING_NAMES if (t := exp.FUNCTION_BY_NAME.get(name.upper()))]
    by_class = _HANDLERS | dict.fromkeys(types, Expressions.masking)
    return names, by_class, {**by_class, **_TYPED}


@lru_cache(maxsize=8)
def _by_name(dialect: str, masking: frozenset[str]) -> dict[tuple[type[Any], str | None], _Rule]:
    """The rules of calls, by class and name, as they are asked for."""
    return {}


@lru_cache(maxsize=10_000)
def _generates(dialect: str, t: type[Any], name: str | None) -> bool:
    """Whether a call of this class under this name gives several rows for one."""
    what = functions(dialect).kind(lowered[str(name or "")])
    return what == "generator" or (what == "unknown" and issubclass(t, GENERATOR_TYPES))


@cache
def name_key(dialect: str) -> str:
    """Where sqlglot keeps the name a call was written with."""
    return Dialect.get_or_raise(dialect).ORIGINAL_NAME_META_KEY or "name"


def _is_marked(node: exp.Case) -> bool:
    """Whether a CASE is what the macro ``mask`` writes around what it hides."""
    mark = node.args.get("this")
    return type(mark) is exp.Literal and bool(mark.is_string) and mark.this == MASK_MARK


_PARTS: Final = _reading(Expressions.by_parts, _READ_OF_COLUMN)
_GENERIC: Final[_Rule] = Expressions.generic
_KNOWN_CALL: Final[_Rule] = Expressions.known_call
_DOTTED_CALL: Final[_Rule] = Expressions.dotted_call
