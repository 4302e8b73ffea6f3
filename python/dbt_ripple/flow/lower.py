"""Compiled SQL -> the plain query of `ir.py`. The one module that knows sqlglot's expressions.

Guarantees: one parse, one walk over the tree; no schema, no parent and no connection is needed;
every token that can change what the query returns enters a fingerprint (an argument this module
does not know by name is hashed as it stands, so a construct new to it makes the answer wider, not
wrong). What it cannot follow raises `Unsupported` inside and comes back as a reason, never as a
guess: `lower` itself does not raise on bad SQL.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any, Final

import sqlglot
import xxhash
from sqlglot import exp
from sqlglot.dialects.dialect import Dialect
from sqlglot.errors import SqlglotError

from dbt_ripple.flow.ir import (
    AGGREGATION,
    CONDITIONAL,
    DIRECT,
    FILTER,
    GROUP_BY,
    IDENTITY,
    JOIN,
    MASK_SHIFT,
    SORT,
    TRANSFORMATION,
    WINDOW,
    Cte,
    CteRef,
    Expr,
    FromItem,
    Generator,
    Lowered,
    Out,
    Pivot,
    Ref,
    Rel,
    Select,
    SetOp,
    Source,
    Star,
    Table,
    Unpivot,
    Values,
    With,
    X,
)
from dbt_ripple.flow.names import fold

MAX_NESTING: Final = 200
"""Parentheses or expressions nested deeper than this are reported, not followed: the parser and
the walk recurse, and a stack must not overflow on somebody's generated SQL."""

EPHEMERAL_PREFIX: Final = "__dbt__cte__"

AGGREGATE_NAMES: Final = frozenset(
    """
    any approx_count_distinct approx_percentile approx_top_k array_agg avg bit_and bit_or bit_xor
    bitmap_construct_agg bitmap_or_agg bool_and bool_or collect_list collect_set corr count count_if
    count_min_sketch covar_pop covar_samp every first first_value grouping grouping_id
    histogram_numeric hll_sketch_agg hll_union_agg kll_merge_agg_bigint kll_merge_agg_double
    kll_merge_agg_float kll_sketch_agg_bigint kll_sketch_agg_double kll_sketch_agg_float kurtosis last
    last_value listagg max max_by mean measure median min min_by mode percentile percentile_approx
    percentile_cont percentile_disc regr_avgx regr_avgy regr_count regr_intercept regr_r2 regr_slope
    regr_sxx regr_sxy regr_syy schema_of_json_agg schema_of_variant_agg skewness some std stddev
    stddev_pop stddev_samp string_agg sum theta_intersection_agg theta_sketch_agg theta_union_agg
    try_avg try_sum var_pop var_samp variance histogram approx_distinct arbitrary checksum
    geometric_mean map_agg map_union multimap_agg set_agg set_union numeric_histogram arg_max arg_min
    entropy favg fsum product quantile quantile_cont quantile_disc mad reservoir_quantile sum_no_overflow
    """.split()
)
"""Aggregates that sqlglot may leave as unknown functions: Spark's own list first (a test reads it
from Spark's function registry), then Trino's and DuckDB's."""

GENERATOR_NAMES: Final = frozenset(
    """
    collations explode explode_outer flatten generate_series inline inline_outer json_array_elements
    json_array_elements_text json_each json_tuple jsonb_array_elements jsonb_array_elements_text
    jsonb_each posexplode posexplode_outer regexp_split_to_table sql_keywords stack
    string_split_to_table unnest variant_explode variant_explode_outer
    """.split()
)
"""Functions that give several rows for one."""

MASKING_NAMES: Final = frozenset(
    """
    aes_encrypt crc32 hash mask md5 md5_hex md5_binary murmur_hash sha sha1 sha1_hex sha2 sha2_hex
    sha224 sha256 sha384 sha512 try_aes_encrypt xxhash64 farm_fingerprint hash_agg hmac
    """.split()
)
"""Functions whose result does not give their argument back (OpenLineage's ``masking``)."""

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
_VALUE_WINDOW_TYPES: Final = (exp.Lag, exp.Lead, exp.FirstValue, exp.LastValue, exp.NthValue)
_CHAIN_TYPES: Final = frozenset({exp.And, exp.Or, exp.Add, exp.Mul, exp.DPipe, exp.Sub})
_GENERATOR_TYPES: Final = tuple(
    t
    for n in (
        "Explode",
        "ExplodeOuter",
        "Posexplode",
        "PosexplodeOuter",
        "Inline",
        "Stack",
        "Unnest",
        "ExplodingGenerateSeries",
        "Flatten",
    )
    if (t := getattr(exp, n, None)) is not None and n != "Flatten"
)
_GROUP_STRUCTURES: Final = (exp.Rollup, exp.Cube, exp.GroupingSets)

_GENERATED_COLUMNS: Final = {
    "explode": ["col"],
    "explodeouter": ["col"],
    "explode_outer": ["col"],
    "posexplode": ["pos", "col"],
    "posexplodeouter": ["pos", "col"],
    "posexplode_outer": ["pos", "col"],
    "range": ["id"],
    "variant_explode": ["pos", "key", "value"],
    "variant_explode_outer": ["pos", "key", "value"],
}
"""Spark's column names where a generator's alias names none (maps differ and stay unknown)."""


class Unsupported(Exception):  # noqa: N818  (it is a reason, not an error of the user's)
    """The query holds something this module does not follow; the message says what."""


def digest(*parts: bytes) -> bytes:
    """Return the 16-byte fingerprint of the parts, in order."""
    return xxhash.xxh3_128_digest(b"\x00".join(parts))


def lower(sql: str, dialect: str) -> Lowered:
    """Parse one query and lower it.

    Args:
        sql: one statement: a SELECT, or a CREATE ... AS / INSERT ... whose query counts.
        dialect: the sqlglot dialect it is written in.

    Returns:
        The lowered query, or a `Lowered` with the reason why there is none. Never raises on bad
        SQL, and never recurses deeper than `MAX_NESTING` allows.
    """
    limit = sys.getrecursionlimit()
    try:
        reader = Dialect.get_or_raise(dialect)
        tokens = reader.tokenize(sql)
        depth = deepest = 0
        unary = 0
        for token in tokens:
            kind = token.token_type
            if kind in _OPENING:
                depth += 1
                if depth > deepest:
                    deepest = depth
            elif kind in _CLOSING:
                depth -= 1
            if kind in _UNARY:
                unary += 1
                if unary > deepest:
                    deepest = unary
            else:
                unary = 0
        if deepest > MAX_NESTING:
            return Lowered(None, f"nested deeper than {MAX_NESTING} levels")
        sys.setrecursionlimit(max(limit, 20_000))
        statements = [s for s in reader.parser().parse(tokens, sql) if s is not None]
        if len(statements) != 1:
            return Lowered(None, f"{len(statements)} statements where one query was expected")
        return _Lowering(dialect).statement(statements[0])
    except Unsupported as why:
        return Lowered(None, str(why))
    except SqlglotError as error:
        return Lowered(None, _first_line(error))
    except RecursionError:
        return Lowered(None, f"nested deeper than {MAX_NESTING} levels")
    finally:
        sys.setrecursionlimit(limit)


_T: Final = sqlglot.TokenType
_OPENING: Final = frozenset({_T.L_PAREN, _T.L_BRACKET, _T.L_BRACE, _T.CASE})
_CLOSING: Final = frozenset({_T.R_PAREN, _T.R_BRACKET, _T.R_BRACE, _T.END})
_UNARY: Final = frozenset({_T.NOT, _T.DASH, _T.PLUS, _T.TILDE})


def _first_line(error: Exception) -> str:
    """The error's first line, without sqlglot's underlining and terminal codes."""
    lines = str(error).strip().splitlines() or [type(error).__name__]
    return "cannot parse: " + lines[0].replace("\x1b[4m", "").replace("\x1b[0m", "")[:200]


class _Scope:
    """What one SELECT has gathered so far."""

    __slots__ = (
        "aggregated",
        "full_names",
        "generators",
        "items",
        "names",
        "outputs",
        "outputs_first",
        "ref_index",
        "refs",
        "sources",
        "subs",
        "windows",
    )

    def __init__(self) -> None:
        self.names: dict[str, int] = {}
        self.full_names: dict[str, int] = {}
        self.sources: list[Source] = []
        self.items: list[FromItem] = []
        self.refs: list[Ref] = []
        self.ref_index: dict[tuple[int, int, str, int, int], int] = {}
        self.subs: list[Rel] = []
        self.generators: list[X] = []
        self.windows: dict[str, exp.Window] = {}
        self.aggregated = False
        self.outputs_first = 0
        self.outputs = 0


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


class _Lowering:
    """One walk over one statement."""

    def __init__(self, dialect: str) -> None:
        self.dialect = dialect
        self.scopes: list[_Scope] = []
        self.visible_ctes: list[dict[str, int]] = []
        self.cte_count = 0
        self.tables: dict[str, None] = {}
        self.lambdas: list[dict[str, bytes]] = []
        self.depth = 0
        self.deps: dict[int, int] = {}
        self.sub_deps: dict[int, int] = {}
        self.rows = 0
        self.named_arguments: dict[str, bytes] = {}
        self.handlers: dict[type, Callable[[Any, int], Expr]] = {
            exp.Column: self.column,
            exp.Literal: self.literal,
            exp.Paren: self.paren,
            exp.Alias: self.inner_alias,
            exp.Identifier: self.identifier,
            exp.Star: self.inner_star,
            exp.Subquery: self.scalar,
            exp.Select: self.scalar,
            exp.Union: self.scalar,
            exp.Except: self.scalar,
            exp.Intersect: self.scalar,
            exp.Exists: self.exists,
            exp.In: self.is_in,
            exp.Case: self.case,
            exp.If: self.condition,
            exp.Window: self.window,
            exp.Filter: self.filter,
            exp.WithinGroup: self.within_group,
            exp.Order: self.inner_order,
            exp.Lambda: self.lambda_,
            exp.DataType: self.data_type,
            exp.Anonymous: self.anonymous,
            exp.AnonymousAggFunc: self.aggregate,
            exp.Grouping: self.grouping,
            exp.GroupingId: self.grouping,
        }
        for t in vars(exp).values():
            if isinstance(t, type) and issubclass(t, exp.AggFunc) and t not in self.handlers:
                self.handlers[t] = self.aggregate
        for t in _CHAIN_TYPES:
            self.handlers[t] = self.chain
        for t in _GENERATOR_TYPES:
            self.handlers[t] = self.generator
        for t in _MASKING_TYPES:
            self.handlers[t] = self.masking

    # -- statements and queries -----------------------------------------------------------------

    def statement(self, node: Any) -> Lowered:
        if isinstance(node, (exp.Create, exp.Insert)):
            if node.expression is None:
                raise Unsupported(f"{node.key.upper()} without a query")
            inner = node.args.get("with_")
            node = node.expression
            if inner is not None and node.args.get("with_") is None:
                node.set("with_", inner)
        rel = self.query(node)
        return Lowered(rel, None, self.cte_count, list(self.tables))

    def fold(self, node: Any) -> str:
        """The key of an identifier (or of the bare string sqlglot sometimes leaves)."""
        if isinstance(node, exp.Identifier):
            return fold(node.this, bool(node.args.get("quoted")), self.dialect)
        return fold(node if isinstance(node, str) else node.name, False, self.dialect)

    def query(self, node: Any) -> Rel:
        self.depth += 1
        if self.depth > MAX_NESTING:
            raise Unsupported(f"nested deeper than {MAX_NESTING} levels")
        args = node.args
        with_ = args.get("with_")
        ctes: list[Cte] = []
        if with_ is not None:
            ctes = self.with_(with_)
        if isinstance(node, exp.Select):
            body: Rel = self.select(node)
        elif isinstance(node, exp.SetOperation):
            body = self.around(node, self.set_operation(node))
        elif isinstance(node, exp.Subquery):
            inner = args["this"]
            if isinstance(inner, exp.Table) or args.get("joins") or args.get("pivots"):
                body = self.select(exp.Select(expressions=[exp.Star()], from_=exp.From(this=node)))
            else:
                body = self.around(node, self.query(inner))
        elif isinstance(node, exp.Values):
            body = self.values(node, None)
        elif isinstance(node, exp.Table):
            body = self.select(exp.Select(expressions=[exp.Star()], from_=exp.From(this=node)))
        else:
            raise Unsupported(f"statement {node.key.upper()} is not a query")
        self.depth -= 1
        if with_ is not None:
            self.visible_ctes.pop()
            return With(ctes, body)
        return body

    def with_(self, node: exp.With) -> list[Cte]:
        """Lower CTE definitions; the caller pops the names when the query that sees them is done."""
        recursive = bool(node.args.get("recursive"))
        visible: dict[str, int] = {}
        self.visible_ctes.append(visible)
        ctes = []
        for cte in node.expressions:
            alias = cte.args.get("alias")
            key = self.fold(alias.this)
            columns = [c.name for c in alias.args.get("columns") or []]
            index = self.cte_count
            self.cte_count += 1
            ephemeral = key.startswith(EPHEMERAL_PREFIX)
            if recursive:
                visible[key] = index
            rel = Table(key, alias.name) if ephemeral else self.query(cte.this)
            if ephemeral:
                self.tables[key] = None
            visible[key] = index
            ctes.append(
                Cte(
                    index,
                    key,
                    rel,
                    columns or None,
                    recursive and not ephemeral and _mentions(rel, index),
                    ephemeral,
                )
            )
        return ctes

    def around(self, node: Any, rel: Rel) -> Rel:
        """Apply the ORDER BY, LIMIT and the like that stand after a set operation or a subquery."""
        modifiers = {k: v for k, v in node.args.items() if v and k in _MODIFIERS and k != "sample"}
        if not modifiers:
            return rel
        with self.scope() as scope:
            self.add_source(None, None, rel, None)
            scope.items.append(FromItem(0, [], "", [], [], False, b""))
            return self.rest_of_select(
                exp.Subquery(**modifiers), scope, [Out([], [], None, _star())]
            )

    def set_operation(self, node: exp.SetOperation) -> Rel:
        branches: list[Any] = []
        ops: list[str] = []
        by_name: list[bool] = []
        current: Any = node
        while isinstance(current, exp.SetOperation):
            args = current.args
            if current is not node and (args.get("with_") or any(args.get(k) for k in _MODIFIERS)):
                break
            branches.append(args["expression"])
            flags = [
                type(current).__name__.upper(),
                "DISTINCT" if args.get("distinct") else "ALL",
                *(str(args[k]).upper() for k in ("side", "kind") if args.get(k)),
            ]
            if args.get("on"):
                flags.append(repr(args["on"]))
            ops.append(" ".join(flags))
            by_name.append(bool(args.get("by_name")))
            current = args["this"]
        branches.append(current)
        branches.reverse()
        ops.reverse()
        by_name.reverse()
        return SetOp([self.query(b) for b in branches], ops, by_name)

    def values(self, node: exp.Values, alias: Any) -> Rel:
        with self.scope() as scope:
            rows = node.expressions
            width = max((len(r.expressions) if isinstance(r, exp.Tuple) else 1) for r in rows)
            columns = []
            for i in range(width):
                cells = [
                    (r.expressions[i] if i < len(r.expressions) else exp.Null())
                    if isinstance(r, exp.Tuple)
                    else r
                    for r in rows
                ]
                columns.append(self.x_of(cells, TRANSFORMATION, b"values"))
            alias = alias or node.args.get("alias")
            named = [c.name for c in (alias.args.get("columns") or [])] if alias else []
            default = "column" if self.dialect in ("postgres", "snowflake", "redshift") else "col"
            first = 0 if self.dialect in ("duckdb",) else 1
            names = [named[i] if i < len(named) else f"{default}{i + first}" for i in range(width)]
            keys = [fold(n, False, self.dialect) for n in names]
            return Values(columns, names, keys, len(rows), scope.refs, scope.subs)

    @contextmanager
    def scope(self) -> Iterator[_Scope]:
        """A new scope, with collectors of its own."""
        scope = _Scope()
        saved = (self.deps, self.sub_deps, self.rows, self.lambdas)
        self.scopes.append(scope)
        self.lambdas = []
        try:
            yield scope
        finally:
            self.scopes.pop()
            self.deps, self.sub_deps, self.rows, self.lambdas = saved

    # -- SELECT ---------------------------------------------------------------------------------

    def select(self, node: exp.Select) -> Select:
        with self.scope() as scope:
            args = node.args
            if args.get("match") or args.get("exclude"):
                raise Unsupported("MATCH_RECOGNIZE" if args.get("match") else "SELECT ... EXCLUDE")
            from_ = args.get("from_")
            if from_ is not None:
                scope.items.append(self.from_item(from_.this, "", None))
                for join in from_.this.args.get("joins") or []:
                    scope.items.append(self.join(join))
            for join in args.get("joins") or []:
                scope.items.append(self.join(join))
            for lateral in args.get("laterals") or []:
                scope.items.append(self.from_item(lateral, "LATERAL", None))
            for window in args.get("windows") or []:
                scope.windows[self.fold(window.this)] = window
            outs: list[Out] = []
            for projection in node.expressions:
                scope.outputs = len(outs)
                outs.append(self.projection(projection))
            return self.rest_of_select(node, scope, outs)

    def rest_of_select(self, node: Any, scope: _Scope, outs: list[Out]) -> Select:
        """Everything of a SELECT after its FROM and select list."""
        args = node.args
        outputs_win = self.dialect in ("spark", "databricks", "hive")
        scope.outputs = len(outs)
        where = self.conjuncts(args.get("where"), FILTER)
        group: list[X] = []
        group_outs: list[int] = []
        tag = b""
        group_all = False
        grouping = args.get("group")
        if grouping is not None:
            group_all = bool(grouping.args.get("all"))
            structures: list[Any] = []
            for key in grouping.expressions:
                if isinstance(key, _GROUP_STRUCTURES):
                    structures.append(key)
                elif (ordinal := _ordinal(key)) is not None:
                    group_outs.append(ordinal)
                else:
                    group.append(self.x(key, GROUP_BY))
            for name in ("grouping_sets", "cube", "rollup", "totals"):
                value = grouping.args.get(name)
                for structure in value if isinstance(value, list) else [value] if value else []:
                    if isinstance(structure, exp.Expression) and structure.expressions:
                        structures.append(structure)
                    else:
                        tag += name.encode()
            for structure in structures:
                group_outs.extend(
                    o
                    for inner in structure.find_all(exp.Literal)
                    if (o := _ordinal(inner)) is not None
                )
                group.append(self.x(structure, GROUP_BY))
                tag += b"*"
        scope.outputs_first = len(outs) if outputs_win else 0
        having = self.conjuncts(args.get("having"), FILTER)
        scope.outputs_first = 0
        qualify = self.conjuncts(args.get("qualify"), FILTER)
        aggregated = scope.aggregated
        scope.outputs_first = len(outs)
        order: list[X] = []
        order_outs: list[int] = []
        for name in ("order", "sort", "cluster", "distribute"):
            clause = args.get(name)
            for item in clause.expressions if clause is not None else []:
                target = item.this if isinstance(item, exp.Ordered) else item
                ordinal = _ordinal(target)
                if ordinal is not None:
                    order_outs.append(ordinal)
                    flags = {k: v for k, v in item.args.items() if k != "this" and v}
                    order.append(
                        X(digest(b"ordinal", str(ordinal).encode(), repr(flags).encode()), {}, {})
                    )
                elif target.name.lower() == "all" and isinstance(target, exp.Column):
                    order.append(
                        X(digest(b"order by all", repr(item.args.get("desc")).encode()), {}, {})
                    )
                    order_outs.extend(range(1, len(outs) + 1))
                else:
                    order.append(self.x(item, SORT))
        scope.outputs_first = 0
        limit = [self.x(args[k], FILTER) for k in ("limit", "offset") if args.get(k)]
        distinct = args.get("distinct")
        on = distinct.args.get("on") if distinct is not None else None
        distinct_on = (
            [self.x(e, GROUP_BY) for e in (on.expressions if isinstance(on, exp.Tuple) else [on])]
            if on is not None
            else []
        )
        extra = []
        for name, value in args.items():
            if value and name not in _KNOWN_SELECT:
                if name == "hint":
                    extra.append(X(digest(b"hint", repr(value).encode()), {}, {}))
                elif name in _MODIFIERS or isinstance(node, exp.Select):
                    extra.append(self.x_of(_listed(value), FILTER, name.encode()))
        grouped = grouping is not None
        return Select(
            sources=scope.sources,
            items=scope.items,
            refs=scope.refs,
            subs=scope.subs,
            outs=outs,
            where=where,
            group=group,
            group_outs=group_outs,
            group_tag=tag,
            group_all=group_all,
            grouped=grouped or aggregated or bool(having),
            aggregated=aggregated,
            having=having,
            qualify=qualify,
            distinct=distinct is not None,
            distinct_on=distinct_on,
            order=order,
            order_outs=order_outs,
            limit=limit,
            extra=extra,
            generators=scope.generators,
            outputs_win=outputs_win,
        )

    def conjuncts(self, clause: Any, kind: int) -> list[X]:
        """A condition as the list of what AND joins: a row is kept when all of them hold."""
        if clause is None:
            return []
        found: list[X] = []
        stack = [clause.this]
        while stack:
            node = stack.pop()
            if isinstance(node, exp.And):
                stack.append(node.args["expression"])
                stack.append(node.args["this"])
            elif isinstance(node, exp.Paren):
                stack.append(node.this)
            else:
                found.append(self.x(node, kind))
        return found

    def projection(self, node: Any) -> Out:
        if isinstance(node, exp.Star):
            return Out([], [], None, self.star(node, -1, 0, None))
        if isinstance(node, exp.Column) and isinstance(node.this, exp.Star):
            return self.qualified_star(node)
        if isinstance(node, exp.Dot) and isinstance(node.expression, exp.Star):
            return Out(
                [], [], None, self.star(node.expression, -2, 0, self.x(node.this, TRANSFORMATION))
            )
        if isinstance(node, exp.QueryTransform):
            schema = node.args.get("schema")
            names = [e.name for e in schema.expressions] if schema is not None else ["key", "value"]
            x = self.x(node, TRANSFORMATION)
            self.scopes[-1].generators.append(x)
            return Out(names, [fold(n, False, self.dialect) for n in names], x, None, 0)
        if isinstance(node, exp.Aliases):
            names = [e.name for e in node.expressions]
            keys = [self.fold(e) for e in node.expressions]
            return Out(names, keys, self.x(node.this, TRANSFORMATION), None, 0)
        if isinstance(node, exp.Alias):
            inner = node.this
            x = self.x(inner, IDENTITY)
            if _generates(inner) and _first_width(inner) == 1:
                return Out([node.alias], [self.fold(node.args["alias"])], x, None, 0)
            return Out([node.alias], [self.fold(node.args["alias"])], x)
        x = self.x(node, IDENTITY)
        if _generates(node):
            default = _GENERATED_COLUMNS.get(_function_name(node))
            if default is not None:
                return Out(list(default), list(default), x, None, 0, True)
            return Out([], [], x, _star(-3), 0, True)
        name, generated = self.auto_name(node)
        return Out(
            [name],
            [fold(name, True, self.dialect) if generated else self.key_of_name(node, name)],
            x,
            None,
            -1,
            generated,
        )

    def key_of_name(self, node: Any, name: str) -> str:
        while isinstance(node, (exp.Paren, exp.Cast)):
            node = node.this
        if isinstance(node, exp.Dot):
            node = node.expression
        if isinstance(node, exp.Column):
            node = node.this
        return (
            self.fold(node) if isinstance(node, exp.Identifier) else fold(name, False, self.dialect)
        )

    def auto_name(self, node: Any) -> tuple[str, bool]:
        """The name an unnamed output gets, and whether the engine makes it up."""
        while isinstance(node, exp.Paren):
            node = node.this
        if isinstance(node, exp.Column):
            return node.name, False
        if isinstance(node, exp.Dot) and isinstance(node.expression, exp.Identifier):
            return node.expression.name, False
        if isinstance(node, exp.Cast) and isinstance(node.this, exp.Column):
            return node.this.name, False
        if isinstance(node, exp.Count) and isinstance(node.this, exp.Star):
            return "count_star()" if self.dialect == "duckdb" else "count(1)", True
        if isinstance(node, exp.Literal):
            return node.this, True
        try:
            return node.sql(dialect=self.dialect, comments=False), True
        except (SqlglotError, ValueError, RecursionError):
            return node.key, True

    def qualified_star(self, node: exp.Column) -> Out:
        star = node.this
        parts = [self.fold(p) for p in node.parts[:-1]]
        for up, scope in enumerate(reversed(self.scopes)):
            index = scope.full_names.get(".".join(parts))
            if index is None and len(parts) == 1:
                index = scope.names.get(parts[0])
            if index is not None:
                return Out([], [], None, self.star(star, index, up, None))
        identifiers = list(node.parts[:-1])
        column = exp.Column(
            **dict(zip(("this", "table", "db", "catalog"), reversed(identifiers), strict=False))
        )
        return Out([], [], None, self.star(star, -2, 0, self.x(column, TRANSFORMATION)))

    def star(self, node: Any, source: int, up: int, struct: X | None) -> Star:
        args = node.args
        except_ = [
            self.fold(c.this if isinstance(c, exp.Column) else c)
            for c in _listed(args.get("except_"))
        ]
        renames: dict[str, list[str]] = {}
        for r in _listed(args.get("rename")):
            renames[self.fold(r.this.this if isinstance(r.this, exp.Column) else r.this)] = [
                r.alias,
                self.fold(r.args["alias"]),
            ]
        replaces = {}
        for r in _listed(args.get("replace")):
            replaces[self.fold(r.args["alias"])] = self.x(r.this, IDENTITY)
        like = repr(args["ilike"]).encode() if args.get("ilike") else b""
        if like:
            raise Unsupported("a * filtered by a name pattern")
        return Star(source, up, struct, except_, renames, replaces, like)

    # -- FROM -----------------------------------------------------------------------------------

    def add_source(
        self, alias: str | None, full_name: str | None, rel: Rel, columns: list[str] | None
    ) -> int:
        scope = self.scopes[-1]
        index = len(scope.sources)
        scope.sources.append(Source(alias, rel, columns))
        if alias is not None:
            scope.names.setdefault(alias, index)
        if full_name is not None:
            scope.full_names.setdefault(full_name, index)
        return index

    def join(self, node: exp.Join) -> FromItem:
        args = node.args
        words = [str(args[k]).upper() for k in ("method", "side", "kind") if args.get(k)]
        natural = "NATURAL" in words
        words = [w for w in words if w not in ("NATURAL", "OUTER", "INNER")]
        if node.this.args.get("laterals"):
            raise Unsupported("LATERAL VIEW inside a join")
        if not words and not args.get("on") and not args.get("using") and not natural:
            words = ["CROSS"]
        item = self.from_item(node.this, " ".join(words) or "INNER", node)
        item.natural = natural
        item.using = [
            self.fold(u.this if isinstance(u, exp.Column) else u)
            for u in _listed(args.get("using"))
        ]
        if args.get("on") is not None:
            item.conds = self.conjuncts(exp.Where(this=args["on"]), JOIN)
        for name, value in args.items():
            if value and name not in ("this", "on", "side", "kind", "using", "method"):
                if name == "pivots":
                    raise Unsupported("PIVOT of a join")
                item.conds.append(self.x_of(_listed(value), JOIN, name.encode()))
        for nested in node.this.args.get("joins") or []:
            if isinstance(node.this, exp.Table):
                # `a join b join c on .. on ..`: the parser hangs the inner join on the table.
                item.nested = [*(item.nested or [_leaf_item(item.source)]), self.join(nested)]
                item.source = -1
        return item

    def from_item(self, node: Any, kind: str, join: Any) -> FromItem:
        """A relation of a FROM clause, as a step of the tree."""
        extra = b""
        if isinstance(node, exp.Subquery) and (
            isinstance(node.this, (exp.Table, exp.Subquery)) and _is_bare(node.this)
        ):
            # Parenthesised joins: their names stay visible outside, unless an alias hides them.
            if node.args.get("alias") is None and not node.args.get("pivots"):
                nested = [self.from_item(node.this, "", None)]
                nested.extend(self.join(j) for j in node.this.args.get("joins") or [])
                nested.extend(self.join(j) for j in node.args.get("joins") or [])
                return FromItem(-1, nested, kind, [], [], False, b"")
        index = self.source(node)
        return FromItem(index, [], kind, [], [], False, extra)

    def source(self, node: Any) -> int:
        args = node.args
        alias_node = args.get("alias")
        alias = self.fold(alias_node.this) if alias_node is not None and alias_node.this else None
        columns = (
            [c.name for c in alias_node.args.get("columns") or []] if alias_node is not None else []
        )
        full_name: str | None = None
        if isinstance(node, exp.Table):
            if isinstance(node.this, exp.Identifier):
                rel: Rel = self.table(node)
                parts = [self.fold(p) for p in node.parts]
                if alias is None:
                    alias = parts[-1]
                    full_name = ".".join(parts)
            else:
                rel = self.table_function(node.this, columns)
                if args.get("ordinality"):
                    raise Unsupported("WITH ORDINALITY")
                columns = []
                if alias is None:
                    alias = _function_name(node.this)
        elif isinstance(node, exp.Subquery):
            inner = node.this
            if isinstance(inner, exp.Table) or args.get("joins"):
                rel = self.query(
                    exp.Select(
                        expressions=[exp.Star()],
                        from_=exp.From(this=inner),
                        joins=args.get("joins") or [],
                    )
                )
            else:
                rel = self.query(
                    exp.Subquery(
                        **{k: v for k, v in args.items() if k not in ("alias", "pivots", "sample")}
                    )
                )
            if args.get("sample"):
                rel = self.sampled(rel, args["sample"])
        elif isinstance(node, exp.Values):
            rel = self.values(node, alias_node)
            columns = []
        elif isinstance(node, exp.Lateral):
            rel = self.lateral(node, columns)
            if isinstance(rel, Generator):
                columns = []
        elif isinstance(node, exp.Unnest):
            rel = self.unnest(node, columns)
            columns = []
        elif isinstance(node, exp.TableFromRows):
            rel = self.table_function(node.this, columns)
            columns = []
        elif isinstance(node, (exp.Func, exp.UDTF)):
            rel = self.table_function(node, columns)
            columns = []
        else:
            raise Unsupported(f"FROM {node.key.upper()}")
        for pivot in args.get("pivots") or []:
            rel = self.pivot(pivot, rel, columns)
            columns = []
            pivot_alias = pivot.args.get("alias")
            if pivot_alias is not None:
                alias = self.fold(pivot_alias.this) if pivot_alias.this else alias
                columns = [c.name for c in pivot_alias.args.get("columns") or []]
        return self.add_source(alias, full_name, rel, columns or None)

    def table(self, node: exp.Table) -> Rel:
        parts = [self.fold(p) for p in node.parts]
        if len(parts) == 1:
            for visible in reversed(self.visible_ctes):
                index = visible.get(parts[0])
                if index is not None:
                    rel: Rel = CteRef(index)
                    return (
                        self.sampled(rel, node.args["sample"]) if node.args.get("sample") else rel
                    )
        elif self.dialect == "bigquery" and self.scopes and parts[0] in self.scopes[-1].names:
            # `from t, t.items`: BigQuery unnests the array of the source named before.
            column = exp.Column(this=node.parts[-1], table=node.parts[-2])
            name = node.alias or node.name
            return Generator(
                self.x_of([column], TRANSFORMATION, b"unnest"),
                [name],
                [fold(name, False, self.dialect)],
            )
        extra = [
            digest(name.encode(), repr(value).encode())
            for name, value in node.args.items()
            if value
            and name not in ("this", "db", "catalog", "alias", "pivots", "joins", "laterals")
        ]
        key = ".".join(parts)
        self.tables[key] = None
        return Table(key, ".".join(p.name for p in node.parts), b"".join(extra))

    def sampled(self, rel: Rel, sample: Any) -> Rel:
        with self.scope() as scope:
            self.add_source(None, None, rel, None)
            scope.items.append(FromItem(0, [], "", [], [], False, b""))
            select = self.rest_of_select(exp.Subquery(), scope, [Out([], [], None, _star())])
            select.extra.append(X(digest(b"sample", repr(sample).encode()), {}, {}))
            return select

    def table_function(self, node: Any, columns: list[str]) -> Rel:
        """A function in FROM; with a query as argument (TABLE(...)) it is seen as a whole."""
        x = self.x(node, TRANSFORMATION)
        names: list[str] | None = list(columns) or _GENERATED_COLUMNS.get(_function_name(node))
        keys = [fold(n, False, self.dialect) for n in names] if names is not None else None
        return Generator(x, names, keys)

    def lateral(self, node: exp.Lateral, columns: list[str]) -> Rel:
        inner = node.this
        if isinstance(inner, (exp.Subquery, exp.Select, exp.SetOperation)):
            return self.query(inner)
        flags = [k for k in ("view", "outer", "cross_apply", "ordinality") if node.args.get(k)]
        x = self.x_of([inner], TRANSFORMATION, " ".join(["lateral", *flags]).encode())
        names: list[str] | None = list(columns) or _GENERATED_COLUMNS.get(_function_name(inner))
        if (
            node.args.get("view")
            and not columns
            and isinstance(inner, (exp.Explode, exp.Posexplode))
        ):
            names = None  # a map gives key and value, an array col
        keys = [fold(n, False, self.dialect) for n in names] if names is not None else None
        return Generator(x, names, keys)

    def unnest(self, node: exp.Unnest, columns: list[str]) -> Rel:
        x = self.x_of(node.expressions, TRANSFORMATION, b"unnest")
        names: list[str] | None = list(columns)
        offset = node.args.get("offset")
        if isinstance(offset, exp.Identifier):
            names = [*columns, offset.name]
        elif offset:
            x = X(
                digest(b"offset", x.e) if isinstance(x.e, bytes) else [b"offset", x.e],
                x.deps,
                x.subs,
                x.rows,
            )
        if not names:
            names = ["unnest"] if self.dialect == "duckdb" else None
        if names is not None and self.dialect == "bigquery" and columns:
            # Fields of an unnested struct are columns too; only the alias is known from the text.
            pass
        keys = [fold(n, False, self.dialect) for n in names] if names is not None else None
        return Generator(x, names, keys)

    def pivot(self, node: exp.Pivot, rel: Rel, columns: list[str]) -> Rel:
        with self.scope() as scope:
            self.add_source(None, None, rel, columns or None)
            args = node.args
            rest = {
                k: repr(v)
                for k, v in args.items()
                if v
                and k
                not in (
                    "this", "alias", "expressions", "fields", "unpivot", "columns", "include_nulls",
                    "identify_pivot_strings", "prefixed_pivot_columns", "pivot_column_naming",
                    "value_columns_first",
                )
            }  # fmt: skip
            if args.get("unpivot"):
                return self.unpivot(node, rel, scope, rest)
            aggregates = [
                self.x(e.this if isinstance(e, exp.Alias) else e, AGGREGATION)
                for e in node.expressions
            ]
            fields: list[X] = []
            values: list[bytes] = []
            listed = True
            for field in args.get("fields") or []:
                if not isinstance(field, exp.In):
                    raise Unsupported("PIVOT without a list of values")
                fields.append(self.x(field.this, CONDITIONAL))
                listed = listed and bool(field.expressions)
                each = [
                    self.constant(v.this if isinstance(v, exp.PivotAlias) else v)
                    for v in field.expressions
                ]
                values = [digest(a, b) for a in values for b in each] if values else each
            names = [c.name for c in args.get("columns") or []] if listed else []
            keys = [self.fold(c) for c in args.get("columns") or []] if listed else []
            return Pivot(
                rel,
                aggregates,
                fields,
                values,
                names,
                keys,
                repr(rest).encode(),
                scope.refs,
                scope.subs,
            )

    def unpivot(self, node: exp.Pivot, rel: Rel, scope: _Scope, rest: dict[str, str]) -> Rel:
        fields = node.args.get("fields") or []
        if len(fields) != 1 or not isinstance(fields[0], exp.In):
            raise Unsupported("UNPIVOT of this form")
        field = fields[0]
        value_nodes: list[Any] = []
        for e in node.expressions:
            value_nodes.extend(e.expressions if isinstance(e, exp.Tuple) else [e])
        groups: list[list[int]] = [[] for _ in value_nodes]
        labels: list[str] = []
        for entry in field.expressions:
            label = None
            if isinstance(entry, exp.PivotAlias):
                label = entry.args["alias"].name
                entry = entry.this
            parts = entry.expressions if isinstance(entry, exp.Tuple) else [entry]
            if len(parts) != len(value_nodes):
                raise Unsupported("UNPIVOT with unequal lists of columns")
            for i, part in enumerate(parts):
                if not isinstance(part, exp.Column):
                    raise Unsupported("UNPIVOT of an expression")
                groups[i].append(self.ref(0, 0, self.fold(part.this), part.name))
            labels.append(label or "_".join(p.name for p in parts))
        name_node = field.this
        return Unpivot(
            rel=rel,
            value_names=[_name_of(v) for v in value_nodes],
            value_keys=[self.fold(_identifier_of(v)) for v in value_nodes],
            name_column=_name_of(name_node),
            name_key=self.fold(_identifier_of(name_node)),
            groups=groups,
            labels=(repr(labels) + repr(rest)).encode(),
            include_nulls=bool(node.args.get("include_nulls")),
            refs=scope.refs,
        )

    # -- expressions ----------------------------------------------------------------------------

    def x(self, node: Any, kind: int) -> X:
        """Lower one expression on its own, with what it depends on."""
        saved = (self.deps, self.sub_deps, self.rows)
        self.deps, self.sub_deps, self.rows = {}, {}, 0
        e = self.expr(node, kind)
        x = X(e, self.deps, self.sub_deps, self.rows)
        self.deps, self.sub_deps, self.rows = saved
        return x

    def x_of(self, nodes: Iterable[Any], kind: int, tag: bytes) -> X:
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
        x = X(_node(pieces), self.deps, self.sub_deps, self.rows)
        self.deps, self.sub_deps, self.rows = saved
        return x

    def constant(self, node: Any) -> bytes:
        e = self.expr(node, TRANSFORMATION)
        if not isinstance(e, bytes):
            raise Unsupported("PIVOT over values that are not constant")
        return e

    def expr(self, node: Any, kind: int) -> Expr:
        handler = self.handlers.get(type(node))
        self.depth += 1
        if self.depth > 2 * MAX_NESTING:
            raise Unsupported(f"nested deeper than {MAX_NESTING} levels")
        e = handler(node, kind) if handler is not None else self.generic(node, kind)
        self.depth -= 1
        return e

    def generic(self, node: Any, kind: int, skip: str = "") -> Expr:
        """Any node: its class, then every argument that is set, in the order of the class."""
        if kind == IDENTITY:
            kind = TRANSFORMATION
        pieces: list[Expr] = [type(node).__name__.encode()]
        for name, value in node.args.items():
            if value is None or value is False or name == skip:
                continue
            if isinstance(value, exp.Expression):
                pieces.append(name.encode())
                pieces.append(self.expr(value, kind))
            elif isinstance(value, list):
                if value:
                    pieces.append(name.encode())
                    for item in value:
                        pieces.append(
                            self.expr(item, kind)
                            if isinstance(item, exp.Expression)
                            else digest(repr(item).encode())
                        )
            else:
                pieces.append(name.encode())
                pieces.append(digest(repr(value).encode()))
        return _node(pieces)

    def paren(self, node: exp.Paren, kind: int) -> Expr:
        return self.expr(node.args["this"], kind)

    def inner_alias(self, node: exp.Alias, kind: int) -> Expr:
        return _node(
            [
                b"named",
                digest(self.fold(node.args["alias"]).encode()),
                self.expr(node.this, _direct(kind)),
            ]
        )

    def literal(self, node: exp.Literal, kind: int) -> Expr:
        args = node.args
        return digest(b"string" if args.get("is_string") else b"number", args["this"].encode())

    def identifier(self, node: exp.Identifier, kind: int) -> Expr:
        key = self.fold(node)
        for names in reversed(self.lambdas):
            if key in names:
                return names[key]
        return digest(b"name", key.encode())

    def data_type(self, node: exp.DataType, kind: int) -> Expr:
        if not node.args.get("expressions") and not node.args.get("nested"):
            return digest(
                b"type", repr(node.args["this"]).encode(), repr(node.args.get("kind")).encode()
            )
        return self.generic(node, kind)

    def ref(self, up: int, source: int, key: str, name: str) -> int:
        scope = self.scopes[-1]
        known = (up, source, key, scope.outputs_first, scope.outputs)
        index = scope.ref_index.get(known)
        if index is None:
            index = scope.ref_index[known] = len(scope.refs)
            if source < 0:
                scope.refs.append(Ref(up, source, key, name, scope.outputs_first, scope.outputs))
            else:
                scope.refs.append(Ref(up, source, key, name))
        return index

    def depend(self, ref: int, kind: int) -> int:
        self.deps[ref] = self.deps.get(ref, 0) | kind
        return ref

    def column(self, node: exp.Column, kind: int) -> Expr:
        args = node.args
        table = args.get("table")
        this = args["this"]
        if isinstance(this, exp.Star):
            return self.inner_star(node, kind)
        if not self.scopes:
            raise Unsupported("a column outside of a query")
        if table is None:
            key = self.fold(this)
            for names in reversed(self.lambdas):
                if key in names:
                    return names[key]
            return self.depend(self.ref(0, -1, key, this.name), kind)
        parts = node.parts
        keys = [self.fold(p) for p in parts]
        for names in reversed(self.lambdas):
            if keys[0] in names:
                return self.fields(names[keys[0]], keys[1:])
        # The longest qualifier that names a source wins; what is left are fields of a struct.
        for length in range(len(keys) - 1, 0, -1):
            qualifier = ".".join(keys[:length])
            for up, scope in enumerate(reversed(self.scopes)):
                index = scope.full_names.get(qualifier)
                if index is None and length == 1:
                    index = scope.names.get(qualifier)
                if index is None and length > 1:
                    index = _by_suffix(scope.full_names, qualifier)
                if index is not None:
                    rest = keys[length + 1 :]
                    ref = self.ref(up, index, keys[length], parts[length].name)
                    return self.fields(self.depend(ref, _direct(kind) if rest else kind), rest)
        ref = self.ref(0, -1, keys[0], parts[0].name)
        return self.fields(self.depend(ref, _direct(kind)), keys[1:])

    def fields(self, e: Expr, keys: list[str]) -> Expr:
        """Access to fields of a struct, written as a longer name."""
        for key in keys:
            e = _node([b"Dot", b"this", e, b"expression", digest(b"name", key.encode())])
        return e

    def inner_star(self, node: Any, kind: int) -> Expr:
        """A ``*`` inside an expression: every column, by name."""
        source = -1
        if isinstance(node, exp.Column):
            key = self.fold(node.parts[-2])
            source = self.scopes[-1].names.get(key, -1)
            node = node.this
        excluded = [
            self.fold(c.this if isinstance(c, exp.Column) else c)
            for c in _listed(node.args.get("except_"))
        ]
        # A reference to all columns: `up` holds the source, `name` what is left out.
        known = (source, -2, "\x1f".join(excluded), 0, 0)
        index = self.scopes[-1].ref_index.get(known)
        if index is None:
            index = self.scopes[-1].ref_index[known] = len(self.scopes[-1].refs)
            self.scopes[-1].refs.append(Ref(source, -2, "*", known[2]))
        return self.depend(index, _direct(kind))

    def subquery(self, node: Any, mode: str, kind: int) -> Expr:
        while isinstance(node, exp.Paren):
            node = node.this
        saved_lambdas = self.lambdas
        rel = self.query(node)
        self.lambdas = saved_lambdas
        subs = self.scopes[-1].subs if self.scopes else []
        subs.append(rel)
        index = len(subs) - 1
        self.sub_deps[index] = kind
        return ["Q", mode, index]

    def scalar(self, node: Any, kind: int) -> Expr:
        if not self.scopes:
            raise Unsupported("a subquery outside of a query")
        return self.subquery(node, "scalar", kind)

    def exists(self, node: exp.Exists, kind: int) -> Expr:
        inner = node.this
        if not isinstance(inner, (exp.Query, exp.Subquery)):
            return self.generic(node, kind)  # the higher-order function exists(array, lambda)
        return _node([b"Exists", self.subquery(inner, "exists", _indirect(kind, CONDITIONAL))])

    def is_in(self, node: exp.In, kind: int) -> Expr:
        query = node.args.get("query")
        if query is None:
            return self.generic(node, kind)
        return _node(
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

    def case(self, node: exp.Case, kind: int) -> Expr:
        kind = _direct(kind)
        test = _indirect(kind, CONDITIONAL)
        args = node.args
        pieces: list[Expr] = [b"Case"]
        if args.get("this") is not None:
            pieces += [b"this", self.expr(args["this"], test)]
        for branch in args.get("ifs") or []:
            pieces += [
                b"when",
                self.expr(branch.args["this"], test),
                self.expr(branch.args["true"], kind),
            ]
        if args.get("default") is not None:
            pieces += [b"else", self.expr(args["default"], kind)]
        return _node(pieces)

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
        return _node(pieces)

    def chain(self, node: Any, kind: int) -> Expr:
        """A left-deep run of one operator, without recursion: 10,000 terms are data, not depth."""
        kind = _direct(kind)
        t = type(node)
        terms: list[Any] = []
        current: Any = node
        while type(current) is t:
            terms.append(current.args["expression"])
            if len(current.args) > 2:
                extra = {
                    k: v for k, v in current.args.items() if k not in ("this", "expression") and v
                }
                if extra:
                    return self.generic(node, kind)
            current = current.args["this"]
            while type(current) is exp.Paren:
                current = current.args["this"]
        pieces: list[Expr] = [self.expr(current, kind)]
        terms.reverse()
        for term in terms:
            pieces.append(self.expr(term, kind))
        tag = t.__name__.encode()
        while len(pieces) > 1 and isinstance(pieces[0], bytes) and isinstance(pieces[1], bytes):
            pieces[0:2] = [digest(tag, pieces[0], pieces[1])]
        return pieces[0] if len(pieces) == 1 else ["F", tag, *pieces]

    def masking(self, node: Any, kind: int) -> Expr:
        return self.generic(node, _masked(_direct(kind)))

    def anonymous(self, node: exp.Anonymous, kind: int) -> Expr:
        name = str(node.this.name if isinstance(node.this, exp.Expression) else node.this).lower()
        if name in AGGREGATE_NAMES:
            return self.aggregate(node, kind)
        if name in GENERATOR_NAMES:
            return self.generator(node, kind)
        kind = _direct(kind)
        if name in MASKING_NAMES:
            kind = _masked(kind)
        return self.call(node, kind)

    def generator(self, node: Any, kind: int) -> Expr:
        """A function that gives several rows for one: its expression also decides the rows."""
        saved = (self.deps, self.sub_deps, self.rows)
        self.deps, self.sub_deps, self.rows = {}, {}, 0
        if isinstance(node, exp.Anonymous):
            e = self.call(node, TRANSFORMATION)
        else:
            e = self.generic(node, TRANSFORMATION)
        x = X(e, self.deps, self.sub_deps, self.rows)
        self.deps, self.sub_deps, self.rows = saved
        if self.scopes:
            self.scopes[-1].generators.append(x)
        for ref, mask in x.deps.items():
            self.depend(ref, mask if kind & DIRECT else kind)
        for sub, mask in x.subs.items():
            self.sub_deps[sub] = self.sub_deps.get(sub, 0) | (mask if kind & DIRECT else kind)
        return e

    def call(self, node: exp.Anonymous, kind: int) -> Expr:
        """A function sqlglot does not know: its folded name and its arguments in order."""
        name = node.this.name if isinstance(node.this, exp.Expression) else node.this
        pieces: list[Expr] = [b"call", digest(str(name).lower().encode())]
        pieces.extend(self.expr(e, kind) for e in node.expressions)
        return _node(pieces)

    def grouping(self, node: Any, kind: int) -> Expr:
        self.scopes[-1].aggregated = True
        return self.generic(node, _indirect(kind, GROUP_BY))

    def aggregate(self, node: Any, kind: int) -> Expr:
        if self.scopes:
            self.scopes[-1].aggregated = True
        return self.aggregate_call(node, kind, "A")

    def aggregate_call(self, node: Any, kind: int, mode: str) -> Expr:
        """The call of an aggregate, over a group (``A``) or, from `window`, over a frame."""
        inner = _aggregate(kind)
        if (
            isinstance(node, exp.Count)
            and isinstance(node.this, exp.Star)
            and not node.this.args.get("except_")
        ):
            self.rows |= inner
            return [mode, digest(b"count(*)")]
        before = len(self.deps), len(self.sub_deps)
        if isinstance(node, (exp.Count, exp.CountIf, exp.ApproxDistinct)):
            e = self.generic(node, _masked(inner))
        elif isinstance(node, exp.Anonymous):
            e = self.call(node, inner)
        else:
            e = self.generic(node, inner)
        if isinstance(e, bytes) and before == (len(self.deps), len(self.sub_deps)):
            self.rows |= inner  # sum(1), count(1): a number of rows
        return [mode, e]

    def filter(self, node: exp.Filter, kind: int) -> Expr:
        return self.filtered(node, kind, self.expr(node.this, kind))

    def filtered(self, node: exp.Filter, kind: int, call: Expr) -> Expr:
        where = node.args["expression"]
        test = where.this if isinstance(where, exp.Where) else where
        return _node([b"Filter", call, self.expr(test, _indirect(kind, CONDITIONAL))])

    def within_group(self, node: exp.WithinGroup, kind: int) -> Expr:
        inner = _aggregate(kind)
        self.scopes[-1].aggregated = True
        order = node.args["expression"]
        e = _node([b"WithinGroup", self.generic(node.this, inner), self.generic(order, inner)])
        return ["A", e]

    def inner_order(self, node: exp.Order, kind: int) -> Expr:
        pieces: list[Expr] = [b"Order"]
        if node.args.get("this") is not None:
            pieces.append(self.expr(node.this, kind))
        pieces.extend(self.expr(e, _indirect(kind, SORT)) for e in node.expressions)
        return _node(pieces)

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
        return _node([b"Lambda", str(len(node.expressions)).encode(), body])

    def window(self, node: exp.Window, kind: int) -> Expr:
        kind = _direct(kind)
        partition, order, spec, leftover = self.window_parts(node)
        over = _indirect(kind, WINDOW)
        pieces: list[Expr] = [b"Window", self.window_function(node.this, kind)]
        pieces.append(b"partition")
        pieces.extend(self.expr(p, over) for p in partition)
        if order is not None:
            pieces.append(b"order")
            pieces.extend(self.expr(o, over) for o in order.expressions)
        if spec is not None:
            pieces += [b"spec", self.expr(spec, over)]
        pieces += [digest(repr(leftover).encode())]
        return ["W", _node(pieces)]

    def window_parts(self, node: exp.Window) -> tuple[list[Any], Any, Any, dict[str, str]]:
        """PARTITION BY, ORDER BY and frame of a window, those of the window it names included."""
        args = node.args
        partition = list(args.get("partition_by") or [])
        order = args.get("order")
        spec = args.get("spec")
        leftover = {
            k: repr(v)
            for k, v in args.items()
            if v and k not in ("this", "partition_by", "order", "spec", "alias", "over")
        }
        alias = args.get("alias")
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
        if isinstance(node, exp.Filter):
            return self.filtered(node, kind, self.window_function(node.this, kind))
        if isinstance(node, (exp.IgnoreNulls, exp.RespectNulls)):
            return _node([type(node).__name__.encode(), self.window_function(node.this, kind)])
        if isinstance(node, _VALUE_WINDOW_TYPES):
            return self.generic(node, kind)
        if isinstance(node, exp.WithinGroup):
            return _node(
                [
                    b"WithinGroup",
                    self.generic(node.this, _aggregate(kind)),
                    self.generic(node.args["expression"], _aggregate(kind)),
                ]
            )
        if isinstance(node, (exp.First, exp.Last)):
            return self.generic(node, kind)
        if isinstance(node, exp.AggFunc) and not isinstance(node, _RANKS):
            return self.aggregate_call(node, kind, "W")
        if isinstance(node, exp.Anonymous) and str(node.this).lower() in AGGREGATE_NAMES:
            return self.aggregate_call(node, kind, "W")
        if isinstance(node, _RANKS):
            return self.generic(node, _indirect(kind, WINDOW))
        return self.expr(node, kind)


_RANKS: Final = tuple(
    t
    for n in ("RowNumber", "Rank", "DenseRank", "PercentRank", "CumeDist", "Ntile")
    if (t := getattr(exp, n, None)) is not None
)


_MODIFIERS: Final = frozenset(
    """
    match laterals joins connect pivots prewhere where group having qualify windows distribute sort
    cluster order limit offset locks sample settings format options for_
    """.split()
)
_KNOWN_SELECT: Final = frozenset(
    """
    with_ kind_ expressions distinct from_ laterals joins where group having qualify windows
    distribute sort cluster order limit offset this alias expression by_name side kind on pivots
    """.split()
) - {"kind"}


def _node(pieces: list[Expr]) -> Expr:
    """Combine pieces into a node; a node without references is its fingerprint already."""
    for piece in pieces:
        if type(piece) is not bytes:
            return pieces
    return digest(*pieces)


def _listed(value: Any) -> list[Any]:
    """An argument that may be one node, a list of them, or absent."""
    return value if isinstance(value, list) else [] if value is None or value is False else [value]


def _ordinal(node: Any) -> int | None:
    """The position a bare integer stands for in GROUP BY and ORDER BY."""
    if isinstance(node, exp.Literal) and not node.args.get("is_string"):
        try:
            return int(node.this)
        except ValueError:
            return None
    return None


def _generates(node: Any) -> bool:
    return isinstance(node, _GENERATOR_TYPES) or (
        isinstance(node, exp.Anonymous) and str(node.this).lower() in GENERATOR_NAMES
    )


def _first_width(node: Any) -> int:
    return len(_GENERATED_COLUMNS.get(_function_name(node), ["col"]))


def _function_name(node: Any) -> str:
    return str(node.this).lower() if isinstance(node, exp.Anonymous) else str(node.key)


def _star(source: int = -1) -> Star:
    return Star(source, 0, None, [], {}, {}, b"")


def _leaf_item(source: int) -> FromItem:
    return FromItem(source, [], "", [], [], False, b"")


def _is_bare(node: Any) -> bool:
    """Whether a parenthesis in FROM holds joined relations rather than a query."""
    if isinstance(node, exp.Table):
        return True
    return isinstance(node, exp.Subquery) and _is_bare(node.this) and not node.args.get("alias")


def _name_of(node: Any) -> str:
    return str(node.name)


def _identifier_of(node: Any) -> Any:
    return node.this if isinstance(node, exp.Column) else node


def _by_suffix(full_names: dict[str, int], qualifier: str) -> int | None:
    """A source written `cat.db.t` may be qualified as `db.t`."""
    found = [i for name, i in full_names.items() if name.endswith("." + qualifier)]
    return found[0] if len(found) == 1 else None


def _mentions(rel: Any, index: int) -> bool:
    """Whether a lowered query refers to the CTE of this index."""
    stack = [rel]
    while stack:
        r = stack.pop()
        if isinstance(r, CteRef):
            if r.index == index:
                return True
        elif isinstance(r, SetOp):
            stack.extend(r.branches)
        elif isinstance(r, (Pivot, Unpivot)):
            stack.append(r.rel)
        elif isinstance(r, Select):
            stack.extend(s.rel for s in r.sources)
            stack.extend(r.subs)
        elif isinstance(r, With):
            stack.extend(c.rel for c in r.ctes)
            stack.append(r.body)
        elif isinstance(r, Values):
            stack.extend(r.subs)
    return False
