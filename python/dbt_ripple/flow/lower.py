"""Compiled SQL -> the plain query of `ir.py`. This module knows queries, `expressions.py` expressions.

Guarantees: one parse, one walk over the tree; no schema, no parent and no connection is needed;
every token that can change what the query returns enters a fingerprint (an argument this module
does not know by name is hashed as it stands, so a construct new to it makes the answer wider, not
wrong). What it cannot follow raises `Unsupported` inside and comes back as a reason, never as a
guess: `lower` itself does not raise on bad SQL.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Collection, Sequence
from itertools import compress
from typing import Any, Final, overload

import sqlglot
from sqlglot import exp
from sqlglot.dialects.dialect import Dialect
from sqlglot.errors import ParseError, SqlglotError, TokenError

from dbt_ripple.flow import alias_resolution, pivot_statements
from dbt_ripple.flow.as_written import as_written
from dbt_ripple.flow.bracketed_lists import with_lists_as_calls
from dbt_ripple.flow.builtin_names import CASTS, FLATTEN_COLUMNS, GENERATED_COLUMNS
from dbt_ripple.flow.data_types import Fields, fields_of_data_type
from dbt_ripple.flow.definitions import definitions
from dbt_ripple.flow.doubled_quotes import with_doubled_quotes
from dbt_ripple.flow.dropped_tokens import dropped_tokens, holds
from dbt_ripple.flow.expressions import (
    MAX_NESTING,
    TWICE,
    Expressions,
    Scope,
    Unsupported,
    function_name,
    let_go,
    listed,
    merkle,
    name_key,
    one_of,
    unwrapped,
    written,
)
from dbt_ripple.flow.fingerprint import digest
from dbt_ripple.flow.grouping_keys import spelled_alike
from dbt_ripple.flow.identifiers import MADE_UP, fold
from dbt_ripple.flow.invisible_spaces import with_spaces
from dbt_ripple.flow.ir import (
    AGGREGATION,
    ALL_OUTPUTS,
    CONDITIONAL,
    EPHEMERAL_PREFIX,
    FILTER,
    GROUP_BY,
    IDENTITY,
    JOIN,
    LITERAL_COLUMN,
    SORT,
    TRANSFORMATION,
    Cte,
    CteRef,
    FromItem,
    GeneratedColumns,
    Generator,
    Lowered,
    LoweredExpr,
    Out,
    Pivot,
    Rel,
    Select,
    SetOp,
    Source,
    Star,
    StructShape,
    Table,
    Unpivot,
    Values,
    With,
    hidden_in,
)
from dbt_ripple.flow.leading_points import with_leading_points
from dbt_ripple.flow.misread_operators import misread_arrow, misread_operator
from dbt_ripple.flow.pipe_syntax import without_unknown_pipes
from dbt_ripple.flow.token_kinds import (
    OPENING,
    UNARY,
    has_arrow,
    has_pipe,
    has_values_side_by_side,
    marks_of,
    may_have_bracketed_list,
    may_have_leading_point,
    may_nest,
)
from dbt_ripple.flow.unused_cte_bodies import empty_unused_ctes
from dbt_ripple.reasons import Code
from dbt_ripple.tuning import deep_recursion

_COMMENT: Final = re.compile(r"\s*/\*.*?\*/", re.S)

_SPARK: Final = ("spark", "databricks", "hive", "spark2")
_UNNAMED: Final = "?column?"
_NAMED_AS_THE_FUNCTION: Final = ("materialize", "postgres", "redshift", "risingwave")
"""Dialects in which an expression without a name has that of its function."""
_CASTS_KEEP_NAMES: Final = (*_SPARK, *_NAMED_AS_THE_FUNCTION)
_FIND_BY_NAME: Final = ("query", "query_table")
"""DuckDB's functions that read relations, and CTEs, of which they are told by strings."""
_OVER_A_RELATION: Final = {
    "histogram": ("bin", "count", "bar"),
    "histogram_values": ("bin", "count"),
}
"""DuckDB's macros that read a relation of which they are told the name, and the columns they give."""
_PLAIN: Final = (exp.Literal, exp.Array, exp.Paren, exp.Boolean)
_WORD: Final = re.compile(r"\w+")
_NUMBERED_NAMES: Final = {
    "athena": ("_col", False, ""),
    "bigquery": ("f", True, "_"),
    "hive": ("_c", False, ""),
    "presto": ("_col", False, ""),
    "trino": ("_col", False, ""),
}
"""How a dialect numbers what has no name, and whether it counts only what has none."""
_MAY_BE_STRUCTS: Final = (exp.Struct, exp.Cast, exp.Dot, exp.Column)
_EVIDENT_ARRAYS: Final = (
    exp.Array,
    exp.ArrayAgg,
    exp.ArrayDistinct,
    exp.ArrayFilter,
    exp.ArrayUniqueAgg,
    exp.Flatten,
    exp.GenerateSeries,
    exp.RegexpSplit,
    exp.Split,
    exp.Transform,
)
_EVIDENT_MAPS: Final = (exp.Map, exp.MapFromEntries, exp.StrToMap, exp.VarMap)
_NAMES_A_COLUMN: Final = (
    exp.PivotAlias,
    exp.Alias,
    exp.Literal,
    exp.Cast,
    exp.Column,
    exp.Identifier,
    exp.Null,
    exp.Tuple,
)
"""Values of a PIVOT of which we know what the columns are called that they make."""
_GROUP_STRUCTURES: Final = (exp.Rollup, exp.Cube, exp.GroupingSets)
_ORDERING: Final = ("order", "sort", "cluster", "distribute")
_TABLE_NAME: Final = frozenset({"this", "db", "catalog"})
_IMPORT: Final = frozenset({"expressions", "from_", "with_"})


def _args(names: str) -> frozenset[str]:
    return frozenset(names.split())


# Which arguments of a node its rule reads. What is set besides goes into the rows and all columns
# of the SELECT it stands in (`beyond`), or makes the query opaque (`nothing_beyond`).
_READ_OF_WITH: Final = _args("expressions recursive")
_READ_OF_CTE: Final = _args("this alias materialized")
_READ_OF_SELECT: Final = _args(
    """
    with_ hint distinct expressions from_ laterals joins prewhere where group having qualify
    windows cluster distribute sort order limit offset
    """
)
_READ_BEHIND: Final = _args("order sort cluster distribute limit offset where group having qualify")
_READ_OF_SET_OPERATION: Final = _args("with_ this expression distinct by_name side kind on")
_READ_OF_SUBQUERY: Final = _args("with_ this alias pivots joins")
_READ_OF_NESTED_JOINS: Final = _args("this joins")
_READ_OF_VALUES: Final = _args("with_ expressions alias pivots")
_READ_OF_TABLE: Final = _args("this db catalog alias joins pivots")
_READ_OF_FUNCTION: Final = _args("this db catalog alias joins pivots")
_READ_OF_LATERAL: Final = _args("this alias view outer cross_apply ordinality")
_READ_OF_LATERAL_QUERY: Final = _args("this alias cross_apply")
_READ_OF_UNNEST: Final = _args("expressions alias offset")
_ARRAYS_OF_SCALARS: Final = (
    exp.GenerateSeries,
    exp.GenerateDateArray,
    exp.GenerateTimestampArray,
    exp.RegexpExtractAll,
    exp.Split,
)
_HIDES_SEMI_JOINED: Final = frozenset({"databricks", "duckdb", "spark"})
"""Where nothing after a SEMI or ANTI join sees its right side (ClickHouse shows it)."""

_READ_OF_JOIN: Final = _args("this on side kind using method match_condition")
_READ_OF_PIVOT: Final = _args(
    """
    alias expressions fields unpivot columns include_nulls default_on_null identify_pivot_strings
    prefixed_pivot_columns pivot_column_naming value_columns_first
    """
)
_READ_OF_GROUP: Final = _args("expressions grouping_sets cube rollup totals all")
_READ_OF_ORDER: Final = _args("expressions")
_READ_OF_DISTINCT: Final = _args("on")
_READ_OF_STAR: Final = _args("except_ rename replace")
_READ_OF_NAME: Final = _args("this table")
_READ_OF_PIVOT_FIELD: Final = _args("this expressions")
_READ_OF_STATEMENT: Final = _args("this expression with_ kind exists replace")
_NO_COLUMNS: Final = _args("settings format options for_ locks into operation_modifiers")
"""Clauses of a SELECT whose names are none of its columns: hashed as they stand."""


@deep_recursion()
def lower(
    sql: str,
    dialect: str,
    *,
    expressions: bool = False,
    masking: Collection[str] = (),
    edit: Callable[[exp.Expression], None] | None = None,
) -> Lowered:
    """Parse one query and lower it.

    Args:
        sql: one statement: a SELECT, or a CREATE ... AS / INSERT ... whose query counts.
        dialect: the sqlglot dialect it is written in.
        expressions: whether to write out the SQL behind each output, too.
        masking: functions that mask their arguments, besides those known to.
        edit: changes the parse tree in place before it is lowered.

    Returns:
        The lowered query, or a `Lowered` with the reason why there is none. Never raises on bad
        SQL, and never recurses deeper than `MAX_NESTING` allows.
    """
    sqlglot.parse_one = _parse_one_remembering
    try:
        tokenizer, parser = _reader(dialect)
        sql = with_spaces(sql, dialect, tokenizer.tokenize)
        tokens, marks = _tokens(tokenizer, sql, dialect)
        if has_pipe(marks):
            sql = without_unknown_pipes(sql, tokenizer.tokenize)
            tokens, marks = _tokens(tokenizer, sql, dialect)
        if may_nest(marks, MAX_NESTING) and _nesting(tokens) > MAX_NESTING:
            return Lowered(None, Code.NESTED_TOO_DEEP(levels=MAX_NESTING))
        statements = _statements(parser, tokens, sql)
        if len(statements) != 1:
            return Lowered(None, Code.NOT_ONE_QUERY(statements=len(statements)))
        misread = misread_operator(sql, tokens, dialect)
        if misread is None and dialect == "duckdb" and has_arrow(marks):
            misread = misread_arrow(statements[0])
        if misread is not None:
            raise Unsupported(misread)
        if edit is not None:
            edit(statements[0])
        texts = definitions(statements[0], dialect) if expressions else {}
        lowering = _Lowering(dialect, masking)
        lowering.tokens = tokens
        try:
            lowered = lowering.statement(statements[0])
        except Unsupported as why:
            tree = _statements(parser, tokens, sql)[0]  # the walk has cut the other one
            if (lost := dropped_tokens(sql, tokens, marks, tree, dialect)).words:
                return Lowered(None, why.reason)
            if edit is not None:
                edit(tree)
            if not empty_unused_ctes(tree, dialect):
                return Lowered(None, why.reason)
            lowering = _Lowering(dialect, masking)
            lowering.tokens = tokens
            lowered = lowering.statement(tree, lost.constants)
            lowered.expressions = texts
            return lowered
        if not holds(lowering.read.values(), tokens, marks):
            statements = _statements(parser, tokens, sql)  # the walk has cut the tree
            lost = dropped_tokens(sql, tokens, marks, statements[0], dialect)
            if lost.words:
                return Lowered(None, Code.WORDS_DROPPED(words=[*lost.words[:3]]))
            if lost.constants:
                if edit is not None:
                    edit(statements[0])
                lowering = _Lowering(dialect, masking)
                lowering.tokens = tokens
                lowered = lowering.statement(statements[0], lost.constants)
        lowered.expressions = texts
        return lowered
    except Unsupported as why:
        return Lowered(None, why.reason)
    except SqlglotError as error:
        return Lowered(None, Code.CANNOT_PARSE(error=_first_line(error)))
    except RecursionError:
        return Lowered(None, Code.NESTED_TOO_DEEP(levels=MAX_NESTING))
    except Exception as error:
        # Over SQL that no engine takes sqlglot stumbles, or makes trees that are none.
        message = f"{type(error).__name__}: {error}"[:200]
        return Lowered(None, Code.CANNOT_PARSE(error=message))
    finally:
        sqlglot.parse_one = _parse_one


def parse(sql: str, dialect: str) -> tuple[exp.Expression, Sequence[Any]] | None:
    """The parse tree of one statement, and its tokens; None where `lower` would not follow it."""
    try:
        tokenizer, parser = _reader(dialect)
        sql = with_spaces(sql, dialect, tokenizer.tokenize)
        tokens, marks = _tokens(tokenizer, sql, dialect)
        if has_pipe(marks) or (may_nest(marks, MAX_NESTING) and _nesting(tokens) > MAX_NESTING):
            return None
        statements = _statements(parser, tokens, sql)
    except (Unsupported, SqlglotError, RecursionError):
        return None
    return (statements[0], tokens) if len(statements) == 1 else None


@deep_recursion()
def lower_tree(
    tree: exp.Expression, tokens: Sequence[Any], dialect: str, masking: Collection[str] = ()
) -> Lowered:
    """Lower a parse tree, which is left as it is; what sqlglot drops of a text is not looked for.

    Args:
        tree: the tree, made of a text's or rewritten from that.
        tokens: of the text.
        dialect: it is written in.
        masking: functions that mask their arguments, besides those known to.
    """
    try:
        lowering = _Lowering(dialect, masking)
        lowering.tokens = tokens
        return lowering.statement(tree.copy())
    except Unsupported as why:
        return Lowered(None, why.reason)
    except Exception as error:  # of a tree that is none
        message = f"{type(error).__name__}: {error}"[:200]
        return Lowered(None, Code.CANNOT_PARSE(error=message))


_T: Final = sqlglot.TokenType
_CLOSING: Final = frozenset({_T.R_PAREN, _T.R_BRACKET, _T.R_BRACE, _T.END})
_TYPE_BRACKETS: Final = frozenset({_T.LT, _T.GT, _T.COMMA})
_NESTED_TYPES: Final = frozenset({_T.ARRAY, _T.MAP, _T.STRUCT})


def _nesting(tokens: list[Any]) -> int:
    """How deep a query nests, read off its tokens before the parser recurses into it."""
    depth = deepest = unary = types = 0
    previous = None
    for token in tokens:
        kind = token.token_type
        if kind in OPENING:
            depth += 1
            deepest = max(deepest, depth)
        elif kind in _CLOSING:
            depth -= 1
        elif kind in _TYPE_BRACKETS:
            # array<map<..>>: the parser tries each level twice, so these must stay few.
            types = types + 1 if kind is _T.LT and previous in _NESTED_TYPES else 0
            deepest = max(deepest, types * 4)
        unary = unary + 1 if kind in UNARY else 0
        deepest = max(deepest, unary)
        previous = kind
    return deepest


_CHARACTER_TYPES: Final = {
    name: dict(sqlglot.parse_one(name, into=exp.DataType).args) for name in ("char", "varchar")
}
_parse_one = sqlglot.parse_one


def _parse_one_remembering(
    sql: str, read: Any = None, dialect: Any = None, into: Any = None, **options: Any
) -> Any:
    """`sqlglot.parse_one`, which knows two answers by heart.

    For every type in a query, the Hive family of dialects asks whether it is "char" or "varchar",
    and parses these two words anew to find out: a seventh of all the time it takes to parse. It
    stands in sqlglot's place only while a query is lowered.
    """
    if into is exp.DataType and not read and not dialect and sql in _CHARACTER_TYPES:
        return exp.DataType(**_CHARACTER_TYPES[sql])
    return _parse_one(sql, read, dialect, into, **options)


_readers = threading.local()


def _reader(dialect: str) -> tuple[Any, Any]:
    """The tokenizer and parser of a dialect: making them anew costs as much as a small query."""
    readers: dict[str, tuple[Any, Any]] = _readers.__dict__
    if dialect not in readers:
        reader = Dialect.get_or_raise(dialect)
        reader.ORIGINAL_NAME_META_KEY = name_key(dialect)
        reader.INDEX_OFFSET = 0  # see `as_written`
        readers[dialect] = (reader.tokenizer(), reader.parser())
    return readers[dialect]


def _tokens(tokenizer: Any, sql: str, dialect: str) -> tuple[list[Any], bytes]:
    """The tokens of a text, and what each of them is."""
    tokens = tokenizer.tokenize(sql)
    marks = marks_of(tokens)
    rewritten = tokens
    if has_values_side_by_side(marks):
        rewritten = with_doubled_quotes(sql, rewritten, dialect)
    if may_have_leading_point(marks):
        rewritten = with_leading_points(sql, rewritten)
    if may_have_bracketed_list(marks):
        rewritten = with_lists_as_calls(rewritten, dialect)
    return rewritten, marks if rewritten is tokens else marks_of(rewritten)


def _statements(parser: Any, tokens: list[Any], sql: str) -> list[Any]:
    """What the parser makes of a text; whatever goes wrong in it is an error of the text."""
    try:
        return [s for s in parser.parse(tokens, sql) if s is not None]
    except (SqlglotError, RecursionError):
        raise
    except Exception as error:  # a builder of sqlglot that does not expect these arguments
        raise Unsupported(Code.CANNOT_PARSE(error=_first_line(error))) from error


_REQUIRED: Final = re.compile(r"Required keyword: '\w+' missing for <class '[\w.]*?(\w+)'>")
_GOT: Final = re.compile(r" but got <Token .*", re.DOTALL)


def _first_line(error: Exception) -> str:
    """What an error says, and where; without the text around it, underlining and Python's names."""
    if isinstance(error, TokenError):
        error = next(
            (e for e in (error.__cause__, error.__context__) if isinstance(e, TokenError)), error
        )
    details = error.errors[0] if isinstance(error, ParseError) and error.errors else {}
    message = _GOT.sub("", str(details.get("description") or error)).strip()
    message = (message.splitlines() or [type(error).__name__])[0][:200]
    if not details.get("line"):
        return message
    message = _REQUIRED.sub(lambda match: f"something is missing in {match[1].upper()}", message)
    near = " ".join(str(details.get("highlight") or "").split())[:30]
    message = message.rpartition(" / ")[2].rstrip(".")
    message = message[:1].lower() + message[1:]
    return f"{message} (line {details['line']} of the compiled SQL, near `{near}`)"


class _Lowering(Expressions):
    """One walk over one statement: queries, FROM clauses and select lists."""

    tokens: Sequence[Any] = ()

    # -- statements and queries -----------------------------------------------------------------

    def statement(self, node: Any, constants: Sequence[str] = ()) -> Lowered:
        """A whole statement; `constants` stand in its text and not in its tree."""
        columns: list[str] = []
        storage = (
            [LoweredExpr(digest(b"constants", repr(constants).encode()), {}, {})]
            if constants
            else []
        )
        if isinstance(node, (exp.Create, exp.Insert)):
            if node.expression is None:
                raise Unsupported(f"{node.key.upper()} without a query")
            more = {k: v for k, v in node.args.items() if v and k not in _READ_OF_STATEMENT}
            if more:
                # Of a table its storage, in words: `using parquet` is `USING PARQUET`.
                words = written(more).lower() if isinstance(node, exp.Create) else written(more)
                storage.append(LoweredExpr(digest(b"statement", words), {}, {}))
            inner = node.args.get("with_")
            named = node.this.expressions if isinstance(node.this, exp.Schema) else []
            into = node.this.this if isinstance(node.this, exp.Schema) else node.this
            if isinstance(into, exp.Table):  # its name is the node's, but not PARTITION (d = 1)
                more = {k: v for k, v in into.args.items() if v and k not in _READ_OF_TABLE}
                if more:
                    storage.append(LoweredExpr(digest(b"into", written(more)), {}, {}))
            columns = [c.name for c in named if isinstance(c, (exp.Identifier, exp.ColumnDef))]
            if any(not isinstance(c, exp.Identifier) for c in named):
                storage.append(LoweredExpr(digest(b"schema", written(named)), {}, {}))
            node = node.expression
            if inner is not None and node.args.get("with_") is None:
                node.set("with_", inner)
        rel = self.query(node)
        if columns or storage:
            rel = self.passed_on(rel, columns or None, {}, storage)
        return Lowered(rel, None, self.cte_count, list(self.tables), called=list(self.called))

    def query(self, node: Any) -> Rel:
        self.depth += 1
        if self.depth > 2 * MAX_NESTING:
            raise Unsupported(Code.NESTED_TOO_DEEP(levels=MAX_NESTING))
        args = node.args
        with_ = args.get("with_")
        ctes: list[Cte] = []
        if with_ is not None:
            ctes = self.with_(with_)
        if isinstance(node, exp.Select):
            body: Rel = self.select(node)
        elif isinstance(node, exp.SetOperation):
            body = self.around(node, self.set_operation(node), _READ_OF_SET_OPERATION)
        elif isinstance(node, exp.Subquery):
            inner = args["this"]
            if isinstance(inner, exp.Table) or args.get("joins") or args.get("pivots"):
                alone = {k: v for k, v in args.items() if k in _READ_OF_SUBQUERY and k != "with_"}
                source = exp.From(this=exp.Subquery(**alone))
                body = self.select(exp.Select(expressions=[exp.Star()], from_=source))
            else:
                body = self.query(inner)
            body = self.around(node, body, _READ_OF_SUBQUERY)
        elif isinstance(node, exp.Values):
            body = self.around(node, self.values(node, None), _READ_OF_VALUES - {"pivots"})
        elif isinstance(node, exp.Table):
            body = self.select(exp.Select(expressions=[exp.Star()], from_=exp.From(this=node)))
        elif isinstance(node, exp.Pivot) and self.dialect == "duckdb":
            body = self.select(pivot_statements.as_select(node))
        else:
            raise Unsupported(Code.NO_QUERY_BUT_A_STATEMENT(statement=node.key.upper()))
        self.depth -= 1
        let_go(node)
        if with_ is not None:
            self.visible_ctes.pop()
            return With(ctes, body)
        return body

    def with_(self, node: exp.With) -> list[Cte]:
        """Lower CTE definitions; the caller pops the names when the query that sees them is done."""
        nothing_beyond(node, _READ_OF_WITH)
        recursive = bool(node.args.get("recursive"))
        visible: dict[str, int] = {}
        self.visible_ctes.append(visible)
        ctes: list[Cte] = []
        ahead = [self.fold(cte.args["alias"].this) for cte in node.expressions] if recursive else []
        before = set(self.tables) if recursive else ()
        for cte in node.expressions:
            nothing_beyond(cte, _READ_OF_CTE)
            alias = cte.args.get("alias")
            key = self.fold(alias.this)
            columns = self.column_names(alias)
            index = self.cte_count
            self.cte_count += 1
            ephemeral = key.startswith(EPHEMERAL_PREFIX)
            if recursive:
                visible[key] = index
            evaluated = self.evaluated
            if (materialized := cte.args.get("materialized")) is not None:
                # Whether it runs once or for each reader: of what is volatile that is other values.
                self.evaluated = b"once" if materialized else b"for each"
            rel = Table(key, alias.name) if ephemeral else self.query(cte.this)
            self.evaluated = evaluated
            if ephemeral:
                self.tables[key] = None
            if any(name in self.tables and name not in before for name in ahead[len(ctes) + 1 :]):
                raise Unsupported("a CTE that is read before it is defined")  # as Postgres allows
            visible[key] = index
            cte.parent = cte.this.parent = alias.parent = None
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

    def around(self, node: Any, rel: Rel, reads: frozenset[str]) -> Rel:
        """Apply the ORDER BY, LIMIT and the like that stand after a set operation or a subquery."""
        if reads.issuperset(node.args):
            return rel
        modifiers = {k: v for k, v in node.args.items() if v and k not in reads}
        if "order" in modifiers and self.dialect in alias_resolution.ORDERED_BY_ANY_BRANCH:
            modifiers["order"] = self.by_items(modifiers["order"], node)
        return self.passed_on(rel, None, modifiers) if modifiers else rel

    def by_items(self, order: exp.Order, node: Any) -> exp.Order:
        """ORDER BY behind a set operation: what reads like an item of a branch is its output.

        That is a position, or behind BY NAME the item's name.
        """
        items: dict[bytes, dict[str, Any]] = {}
        names: set[str] = set()
        ahead = [node]
        by_name = isinstance(node, exp.SetOperation) and bool(node.args.get("by_name"))
        while ahead:
            branch = ahead.pop()
            if isinstance(branch, exp.SetOperation):
                if bool(branch.args.get("by_name")) is by_name:
                    ahead += [branch.this, branch.expression]
            elif isinstance(branch, exp.Subquery):
                ahead.append(branch.this)
            elif isinstance(branch, exp.Select) and not branch.is_star:
                for i, item in enumerate(branch.expressions):
                    name = self.fold(item.alias_or_name)
                    names.add(name)
                    if by_name and not name:
                        continue
                    output = exp.column(name, quoted=True) if by_name else exp.Literal.number(i + 1)
                    items.setdefault(written(item.unalias()).lower(), {})[output.name] = output
        order_keys: list[Any] = []
        for ordered in order.expressions:
            target = unwrapped(ordered.this if isinstance(ordered, exp.Ordered) else ordered)
            named = isinstance(target, exp.Column) and self.fold(target.this) in names
            named = named or (_ordinal(target) or _hash_ordinal(target)) is not None
            outputs = {} if named else items.get(written(target).lower(), {})
            for output in outputs.values():
                order_keys.append(
                    exp.Ordered(**{**ordered.args, "this": output})
                    if isinstance(ordered, exp.Ordered)
                    else output
                )
            if not outputs:
                order_keys.append(ordered)
        return exp.Order(**{**order.args, "expressions": order_keys})

    def passed_on(
        self,
        rel: Rel,
        columns: list[str] | None,
        modifiers: dict[str, Any] | None = None,
        extra: Sequence[LoweredExpr] = (),
    ) -> Select:
        """`select * from rel`, under other column names or with what stands behind it."""
        scope = self.enter()
        scope.extra.extend(extra)
        self.add_source(None, None, rel, columns)
        scope.items.append(_first_item(0))
        args = modifiers or {}
        select = self.select_behind(args, scope, [""], [""], [_star()], _READ_BEHIND)
        self.leave()
        return select

    def beyond(self, node: Any, reads: frozenset[str]) -> None:
        """What is set of a node and read by no rule: all of the SELECT it stands in moves with it."""
        if reads.issuperset(node.args):
            return
        for name, value in node.args.items():
            if value and name not in reads:
                tag = f"{type(node).__name__} {name}".encode()
                self.scopes[-1].extra.append(self.x_of(listed(value), FILTER, tag))

    def set_operation(self, node: exp.SetOperation) -> Rel:
        branches: list[Any] = []
        ops: list[str] = []
        by_name: list[bool] = []
        current: Any = node
        while isinstance(current, exp.SetOperation):
            args = current.args
            if current is not node and (
                args.get("with_")
                or any(v for k, v in args.items() if k not in _READ_OF_SET_OPERATION)
            ):
                break
            branches.append(args["expression"])
            flags = [
                type(current).__name__.upper(),
                "DISTINCT" if args.get("distinct") else "ALL",
                *(str(args[k]).upper() for k in ("side", "kind") if args.get(k)),
            ]
            if args.get("on"):
                flags.append(written(args["on"]).decode())
            ops.append(" ".join(flags))
            by_name.append(bool(args.get("by_name")))
            current = args["this"]
        branches.append(current)
        branches.reverse()
        ops.reverse()
        by_name.reverse()
        return SetOp([self.query(b) for b in branches], ops, by_name)

    def values(self, node: exp.Values, alias: Any) -> Rel:
        scope = self.enter()
        self.of_one_row = self.one_row
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
        self.leave()
        return Values(columns, names, keys, len(rows), scope.refs, scope.subs)

    # -- SELECT ---------------------------------------------------------------------------------

    def select(self, node: exp.Select) -> Rel:
        args = {name: value for name, value in node.args.items() if value}
        if "match" in args or "exclude" in args:
            raise Unsupported("MATCH_RECOGNIZE" if "match" in args else "SELECT ... EXCLUDE")
        if "pivots" in args:
            raise Unsupported("PIVOT of a SELECT")
        if (imported := self.imported(args)) is not None:
            return imported
        scope = self.enter()
        self.of_one_row = self.one_row
        from_ = args.get("from_")
        if from_ is not None:
            # FROM before SELECT: sqlglot hangs the joins on the first relation.
            joins = _taken_joins(from_.this)
            scope.items.append(self.from_item(from_.this, ""))
            for join in joins:
                scope.items.append(self.join(join))
        for join in args.get("joins", ()):
            scope.items.append(self.join(join))
        for lateral in args.get("laterals", ()):
            scope.items.append(self.from_item(lateral, "LATERAL"))
        if len(scope.items) > 2 and _is_outer_behind_cross(scope.items):
            # `a, b right join c` is a CROSS JOIN (b RIGHT JOIN c), which `a cross join b right join c`
            # is not; the parse tree is the same of some dialects, and the words are not.
            crosses = sum(token.token_type is _T.CROSS for token in self.tokens)
            scope.extra.append(LoweredExpr(digest(b"cross joins", str(crosses).encode()), {}, {}))
        for window in args.get("windows", ()):
            scope.windows[self.fold(window.this)] = window
        self.of_one_row = False
        outputs = self.select_list(args.get("expressions", ()), scope.aliases)
        select = self.select_behind(args, scope, *outputs, _READ_OF_SELECT)
        self.leave()
        return select

    def imported(self, args: dict[str, Any]) -> Rel | None:
        """The relation itself, where a SELECT is no more than `select * from it`."""
        outs = args.get("expressions", ())
        if len(outs) != 1 or type(outs[0]) is not exp.Star or not _IMPORT.issuperset(args):
            return None
        table = args["from_"].this if "from_" in args else None
        if type(table) is not exp.Table or type(table.this) is not exp.Identifier:
            return None
        if any(outs[0].args.values()) or any(
            value and name not in _TABLE_NAME for name, value in table.args.items()
        ):
            return None
        table.parent = None
        return self.table(table, self.parts(table))

    def select_behind(
        self,
        args: dict[str, Any],
        scope: Scope,
        names: list[str],
        keys: list[str],
        outs: list[Out],
        reads: frozenset[str],
    ) -> Select:
        """Everything of a SELECT after its FROM and select list; `args` holds what is set."""
        select = Select(
            sources=scope.sources,
            items=scope.items,
            refs=scope.refs,
            subs=scope.subs,
            names=names,
            keys=keys,
            outs=outs,
            wide="" in keys,
            generators=scope.generators,
            grouped=False,
            aggregated=False,
        )
        if "where" in args:
            scope.place = alias_resolution.WHERE
            self.of_one_row = self.one_row
            select.where = self.conjuncts(args["where"].this, FILTER)
            self.of_one_row = False
        if "prewhere" in args and "prewhere" in reads:
            select.where = [*select.where, *self.conjuncts(args["prewhere"].this, FILTER)]
        if "group" in args:
            self.grouping_of(args["group"], select, scope)
        if "having" in args:
            scope.place = (
                alias_resolution.HAVING_ALL if select.group_all else alias_resolution.HAVING
            )
            select.having = self.conjuncts(args["having"].this, FILTER)
        select.uncertain, scope.uncertain = scope.uncertain, []
        select.sorts = scope.sorts
        if select.wide:
            scope.sorts = []
        scope.shown = select.wide  # what stands behind the select list sees the outputs of a star
        if "qualify" in args:
            scope.place = alias_resolution.QUALIFY
            select.qualify = self.conjuncts(args["qualify"].this, FILTER)
        select.as_stored = scope.as_stored
        select.shapes = scope.shapes
        if not args.keys().isdisjoint(_ORDERING):
            self.ordering(args, select, scope)
        if "limit" in args or "offset" in args:
            self.of_one_row = self.one_row
            select.limit = [self.x(args[k], FILTER) for k in ("limit", "offset") if k in args]
            self.of_one_row = False
        if "distinct" in args:
            select.distinct = True
            self.beyond(args["distinct"], _READ_OF_DISTINCT)
            on = args["distinct"].args.get("on")
            if on is not None:
                self.distinct_on(on.expressions if isinstance(on, exp.Tuple) else [on], select)
        if "hint" in args:
            select.hint = digest(b"hint", written(args["hint"]).lower())
        if not reads.issuperset(args):
            scope.extra += [
                LoweredExpr(digest(name.encode(), written(value)), {}, {})
                if name in _NO_COLUMNS
                else self.x_of(listed(value), FILTER, name.encode())
                for name, value in args.items()
                if name not in reads
            ]
        if "sample" in args and not (len(scope.items) == 1 and type(scope.sources[0].rel) is Table):
            # Which rows it takes of what is not a table rests on the plan, and that on all of the text.
            scope.extra.append(
                LoweredExpr(digest(b"plan", *(t.text.encode() for t in self.tokens)), {}, {})
            )
        if "kind" in args or "for_" in args:
            # AS STRUCT, FOR JSON: the names of its columns are data.
            column_names = select.keys if self.folds else select.names
            stars = [exp.Star()] if select.wide else []
            tag = digest(b"names", *(name.encode() for name in column_names))
            scope.extra.append(self.x_of(stars, FILTER, tag))
        select.extra = scope.extra
        select.uncertain_late = scope.uncertain
        # An aggregate makes groups in whichever clause it stands.
        select.aggregated = scope.aggregated or bool(select.uncertain)
        select.grouped = scope.aggregated or "group" in args or bool(select.having)
        select.windowed = scope.windowed
        if select.wide:
            select.sorts_late = scope.sorts
        select.outward = scope.outward
        select.may_lift = scope.may_lift
        select.collates = scope.collates
        select.volatile = bool(scope.volatile)
        return select

    def ordinal(self, node: Any) -> int | None:
        """The position a bare integer stands for in GROUP BY and ORDER BY."""
        position = _ordinal(node)
        if position is not None:
            self.literal(node, SORT)
        return position

    def column_names(self, alias: Any) -> list[str]:
        """The names that an alias gives to columns."""
        columns = alias.args.get("columns") or ()
        for column in columns:
            self.fold(column)
        return [column.name for column in columns]

    def distinct_on(self, nodes: list[Any], select: Select) -> None:
        """DISTINCT ON: its keys, and the positions it names."""
        scope = self.scopes[-1]
        keys: list[LoweredExpr] = []
        ordinals: list[int] = []
        for node in nodes:
            key = unwrapped(node)
            if (ordinal := self.ordinal(key)) is not None:
                ordinals.append(ordinal)
                continue
            if (ordinal := _hash_ordinal(key)) is not None:
                ordinals.append(ordinal)
            bare = isinstance(key, exp.Column)
            scope.place = alias_resolution.DISTINCT_ON if bare else alias_resolution.DISTINCT_ON_IN
            keys.append(self.x(key, GROUP_BY))
        select.distinct_on, select.distinct_on_outs = keys, ordinals

    def grouping_of(self, node: exp.Group, select: Select, scope: Scope) -> None:
        """GROUP BY: its keys, the positions it names, and the structure of its sets."""
        self.beyond(node, _READ_OF_GROUP)
        select.group_all = bool(node.args.get("all"))
        if select.group_all and node.expressions:  # no engine's list of keys: ALL of their sets
            self.scopes[-1].extra.append(LoweredExpr(digest(b"group by all"), {}, {}))
        structures: list[Any] = []
        keys: list[LoweredExpr] = []
        ordinals: list[int] = []
        for key in node.expressions:
            key = unwrapped(key)
            if isinstance(key, exp.Identifier):  # what sqlglot leaves of a pipe's alias
                key = exp.Column(this=key)
            bare = isinstance(key, (exp.Column, *_GROUP_STRUCTURES, exp.Tuple))
            scope.place = alias_resolution.GROUP if bare else alias_resolution.GROUP_IN
            if isinstance(key, _GROUP_STRUCTURES):
                structures.append(key)
            elif (ordinal := self.ordinal(key)) is not None:
                ordinals.append(ordinal)
            else:
                keys.append(self.x(key, GROUP_BY))
        for name in ("grouping_sets", "cube", "rollup", "totals"):
            value = node.args.get(name)
            for structure in value if isinstance(value, list) else [value] if value else []:
                if isinstance(structure, exp.Expression) and structure.expressions:
                    structures.append(structure)
                else:
                    select.group_tag += name.encode()
        scope.place = alias_resolution.GROUP
        for structure in structures:
            ordinals.extend(_positions(structure))
            keys.append(self.x(structure, GROUP_BY))
            select.group_tag += b"*"
        if structures and node.args.get("all") is False:
            select.group_tag += b"distinct"
        if structures:
            alike, select.group_spelled = spelled_alike(self.tokens, self.dialect == "duckdb")
            select.group_tag += alike
            if len(set(select.keys)) < len(select.keys):
                # Of two items of one alias a key may be either, each spelled in its own way.
                words = (token.text.encode() for token in self.tokens)
                select.group_tag += digest(b"aliases", *words)
        select.group, select.group_outs = keys, ordinals

    def ordering(self, args: dict[str, Any], select: Select, scope: Scope) -> None:
        """ORDER BY and its like: which of them it is, expressions, and the positions it names."""
        order: list[LoweredExpr] = []
        order_outs: list[int] = []
        for name, clause in [(name, args[name]) for name in _ORDERING if name in args]:
            if name != "order":  # SORT BY sorts within a partition, DISTRIBUTE BY does not sort
                order.append(LoweredExpr(digest(b"clause", name.encode()), {}, {}))
            self.beyond(clause, _READ_OF_ORDER)
            for item in clause.expressions:
                target = unwrapped(item.this if isinstance(item, exp.Ordered) else item)
                sorted_by = target
                while isinstance(sorted_by, exp.Collate) and self.dialect == "duckdb":
                    sorted_by = unwrapped(sorted_by.this)  # it is the name alone to DuckDB
                bare = isinstance(sorted_by, exp.Column)
                scope.place = alias_resolution.ORDER if bare else alias_resolution.ORDER_IN
                fill = item.args.get("with_fill")
                if fill is not None:  # it adds rows
                    scope.extra.append(self.x(fill, FILTER))
                ordinal = self.ordinal(target)
                flags = {k: v for k, v in item.args.items() if k != "this" and v}
                if ordinal is not None:
                    order_outs.append(ordinal)
                    order.append(
                        LoweredExpr(
                            digest(b"ordinal", str(ordinal).encode(), written(flags)), {}, {}
                        )
                    )
                elif isinstance(target, exp.Var) and target.name.upper() == "ALL":
                    order.append(LoweredExpr(digest(b"order by all", written(flags)), {}, {}))
                    order_outs.append(ALL_OUTPUTS)
                else:
                    if (ordinal := _hash_ordinal(target)) is not None:
                        order_outs.append(ordinal)
                    order.append(self.x(item, SORT))
        select.order, select.order_outs = order, order_outs

    def conjuncts(self, condition: Any, kind: int) -> list[LoweredExpr]:
        """A condition as the list of what AND joins: a row is kept when all of them hold."""
        conjuncts: list[LoweredExpr] = []
        stack = [condition]
        while stack:
            node = stack.pop()
            node.parent = None
            if isinstance(node, exp.And):
                stack.append(node.args["expression"])
                stack.append(node.args["this"])
            elif isinstance(node, exp.Paren):
                stack.append(node.this)
            else:
                conjuncts.append(self.x(node, kind))
        return conjuncts

    def select_list(
        self, nodes: Sequence[Any], aliases: dict[str, int]
    ) -> tuple[list[str], list[str], list[Out]]:
        """The names, keys and items of a select list.

        Aliases are noted as they come, because later items see them.
        """
        names: list[str] = []
        keys: list[str] = []
        outs: list[Out] = []
        scope = self.scopes[-1]
        of_alias, of_column = exp.Alias, exp.Column
        for node in nodes:
            alias = None
            value = node
            if type(node) is of_alias:
                alias = node.args["alias"]
                value = node.args["this"]
                value.parent = None
            # Most items are a column, with or without an alias.
            if type(value) is of_column and (plain := self.plain(value)) is not None:
                if alias is None:
                    name, key = value.args["this"].args["this"], scope.refs[plain].key
                    if self.as_stored:
                        scope.as_stored.append(len(outs))
                else:
                    name, key = alias.args["this"], self.fold(alias)
                aliases[key] = len(outs)
                names.append(name)
                keys.append(key)
                outs.append(plain)
                continue
            out: Out
            if type(_generator_of(node)) is exp.Stack:
                for name, key, out in self.stack_columns(node):
                    aliases[key] = len(outs)
                    names.append(name)
                    keys.append(key)
                    outs.append(out)
                continue
            if isinstance(value, _MAY_BE_STRUCTS) and (shape := self.shape(value)) is not None:
                scope.shapes[len(outs)] = shape
            name, key, out = self.projection(node, keys)
            for generated_key in out.keys or () if type(out) is GeneratedColumns else ():
                aliases[generated_key] = len(outs)
            if key:
                aliases[key if key[0] != MADE_UP else key[1:]] = len(outs)
            names.append(name)
            keys.append(key)
            outs.append(_as_column(out, value))
        return names, keys, outs

    def stack_columns(self, node: Any) -> list[tuple[str, str, Out]]:
        """The columns of STACK in a select list, each made of its own arguments."""
        stack = _generator_of(node)
        x = self.x(stack, TRANSFORMATION)
        each = self.stacked(stack, x)
        aliases = [a.name for a in node.expressions] if stack is not node else []
        names = aliases or self.generated_columns(stack) or []
        return [
            (name, fold(name, False, self.dialect), each[i] if i < len(each) else x)
            for i, name in enumerate(names)
        ]

    def stacked(self, node: exp.Stack, whole: LoweredExpr) -> list[LoweredExpr]:
        """STACK(n, ...) is positional: column j is made of the arguments j, j + width, ..."""
        rows = _ordinal(node.this)
        arguments = node.expressions
        if not rows:
            return []
        width = -(-len(arguments) // rows)
        columns = [self.x_of(arguments[j::width], TRANSFORMATION, b"stack") for j in range(width)]
        return [
            LoweredExpr(
                [b"stacked", str(j).encode(), whole.e]
                if type(whole.e) is not bytes
                else digest(b"stacked", str(j).encode(), whole.e),
                x.deps,
                x.subs,
                x.rows,
            )
            for j, x in enumerate(columns)
        ]

    def projection(self, node: Any, keys: Sequence[str]) -> tuple[str, str, Out]:
        """Name, key and value of an item of a select list; no name where it is not one column.

        `keys` are those of the items before it.
        """
        t = type(node)
        if t is exp.Alias:
            alias, inner = node.args["alias"], node.args["this"]
            name, key = alias.args["this"], self.fold(alias)
            if key == "export_state" and self.dialect == "duckdb":
                raise Unsupported("EXPORT_STATE, which is no alias")
            x = self.x(inner, IDENTITY)
            return (
                ("", "", GeneratedColumns(x, [name], [key]))
                if self.generates(inner)
                else (name, key, x)
            )
        if t is exp.Column and type(node.args["this"]) is exp.Identifier:
            this = node.args["this"]
            return this.args["this"], self.fold(this), self.x(node, IDENTITY)
        if isinstance(node, exp.Star):
            return "", "", self.star(node, -1, 0, None)
        if isinstance(node, exp.Column) and isinstance(node.this, exp.Star):
            return self.qualified_star(node)
        if isinstance(node, exp.Dot) and isinstance(node.expression, exp.Star):
            struct = self.x(node.this, TRANSFORMATION)
            star = self.star(node.expression, -2, 0, struct)
            star.shape = self.shape(node.this)
            return "", "", star
        if isinstance(node, exp.QueryTransform):
            schema = node.args.get("schema")
            names = [e.name for e in schema.expressions] if schema is not None else ["key", "value"]
            x = self.x(node, TRANSFORMATION)
            self.scopes[-1].generators.append(x)
            return "", "", GeneratedColumns(x, names, [fold(n, False, self.dialect) for n in names])
        if isinstance(node, exp.Aliases):
            names = [e.name for e in node.expressions]
            keys = [self.fold(e) for e in node.expressions]
            return "", "", GeneratedColumns(self.x(node.this, TRANSFORMATION), names, keys)
        if self.generates(node):
            x = self.x(node, IDENTITY)
            default = self.generated_columns(node)
            generated_columns = GeneratedColumns(x, default, default)
            if self.dialect == "duckdb" and type(node) is exp.Explode and not node.expressions:
                # Of a struct, unnest gives the fields; of an array, one column.
                generated_columns.shape = self.shape(node.this)
                if isinstance(node.this, _EVIDENT_ARRAYS):
                    name = node.sql(dialect=as_written("duckdb"), comments=False)
                    generated_columns.names, generated_columns.keys = (
                        [name],
                        [MADE_UP + fold(name, True, self.dialect)],
                    )
            return "", "", generated_columns
        name, generated = self.auto_name(node)  # before the walk cuts the tree (`let_go`)
        x = self.x(node, IDENTITY)
        if not generated:
            return name, self.key_of_name(node, name), x
        numbered = _NUMBERED_NAMES.get(self.dialect)
        if numbered is not None:
            prefix, of_unnamed, suffix = numbered
            nth = sum(key[:1] == MADE_UP for key in keys) if of_unnamed else len(keys)
            name = f"{prefix}{'?' if not of_unnamed and '' in keys else nth}{suffix}"
        return name, MADE_UP + fold(name, True, self.dialect), x

    def generated_columns(self, node: Any) -> list[str] | None:
        """The names a generator gives its columns; None where only its value would tell."""
        name = function_name(node)
        if name == "json_tuple":
            return [f"c{i}" for i in range(len(node.expressions) - 1)]
        if isinstance(node, exp.Stack):
            rows = _ordinal(node.this)
            return [f"col{i}" for i in range(-(-len(node.expressions) // rows))] if rows else None
        if isinstance(node, (exp.Explode, exp.Posexplode)) and self.dialect in _SPARK:
            # An array gives col, a map key and value: only what is evident can be named.
            position = ["pos"] if isinstance(node, exp.Posexplode) else []
            if isinstance(node.this, _EVIDENT_MAPS):
                return [*position, "key", "value"]
            return [*position, "col"] if isinstance(node.this, _EVIDENT_ARRAYS) else None
        if self.dialect in _SPARK:
            return GENERATED_COLUMNS.get(name)
        if self.dialect in _NAMED_AS_THE_FUNCTION and isinstance(node, exp.Explode):
            return ["unnest"]
        return None

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
        node = unwrapped(node)
        if isinstance(node, exp.Column):
            return node.name, False
        if isinstance(node, exp.Dot) and isinstance(node.expression, exp.Identifier):
            return node.expression.name, False
        if self.dialect in _CASTS_KEEP_NAMES:
            cast = None
            if isinstance(node, exp.Cast):
                cast = node.this
            elif function_name(node) in CASTS and len(node.expressions) == 1:
                cast = node.expressions[0]
            if cast is not None:
                name, generated = self.auto_name(cast)
                if not generated:
                    return name, False
        if self.dialect in _NAMED_AS_THE_FUNCTION:
            return _function_behind(node), True
        if isinstance(node, exp.Count) and isinstance(node.this, exp.Star):
            return "count_star()" if self.dialect == "duckdb" else "count(1)", True
        if isinstance(node, exp.Literal):
            return node.this, True
        try:
            return node.sql(dialect=as_written(self.dialect), comments=False), True
        except (SqlglotError, ValueError, RecursionError):
            return node.key, True

    def qualified_star(self, node: exp.Column) -> tuple[str, str, Star]:
        star = node.this
        parts = [self.fold(p) for p in node.parts[:-1]]
        for up, scope in enumerate(reversed(self.scopes)):
            index = scope.full_names.get(".".join(parts))
            if index is None and len(parts) == 1:
                index = one_of(scope.names.get(parts[0]))
            if index is not None:
                return "", "", self.star(star, index, up, None)
        identifiers = list(node.parts[:-1])
        column = exp.Column(
            **dict(zip(("this", "table", "db", "catalog"), reversed(identifiers), strict=False))
        )
        lowered_star = self.star(star, -2, 0, self.x(column, TRANSFORMATION))
        lowered_star.shape = self.shape(column)
        return "", "", lowered_star

    def shape(self, node: Any) -> StructShape | None:
        """The fields of an expression that is a struct, as far as the text shows them."""
        node = unwrapped(node)
        if isinstance(node, exp.Cast):
            return _shape_of_type(fields_of_data_type(node.args.get("to")))
        if isinstance(node, exp.Struct):
            fields: list[tuple[str, StructShape | None]] = []
            for field in node.expressions:
                if isinstance(field, exp.PropertyEQ) and isinstance(field.this, exp.Identifier):
                    fields.append((field.this.name, self.shape(field.expression)))
                elif isinstance(field, exp.Column) and isinstance(field.this, exp.Identifier):
                    fields.append((field.name, self.shape(field)))
                else:
                    return None
            return StructShape(-1, [], fields)
        if isinstance(node, exp.Dot) and isinstance(node.expression, exp.Identifier):
            of = self.shape(node.this)
            if of is None or of.fields is not None:
                return None
            return StructShape(of.ref, [*of.path, self.fold(node.expression)], None)
        if not isinstance(node, exp.Column) or not isinstance(node.this, exp.Identifier):
            return None
        e = self.x(node, TRANSFORMATION).e
        depth = 0
        while type(e) is list and e[0] == b"Dot":
            e, depth = e[2], depth + 1
        parts = [self.fold(part) for part in node.parts]
        return StructShape(e, parts[len(parts) - depth :], None) if type(e) is int else None

    def star(self, node: Any, source: int, up: int, struct: LoweredExpr | None) -> Star:
        args = node.args
        except_ = [self.hidden(c) for c in listed(args.get("except_"))]
        renames: dict[str, list[str]] = {}
        for r in listed(args.get("rename")):
            if isinstance(r.this, exp.Column):
                nothing_beyond(r.this, _READ_OF_NAME)
            renames[self.fold(r.this.this if isinstance(r.this, exp.Column) else r.this)] = [
                r.alias,
                self.fold(r.args["alias"]),
            ]
        replaces = {}
        for r in listed(args.get("replace")):
            replaces[self.fold(r.args["alias"])] = _as_column(self.x(r.this, IDENTITY), r.this)
        if not _READ_OF_STAR.issuperset(args) and args.get("ilike"):
            raise Unsupported("a * filtered by a name pattern")
        nothing_beyond(node, _READ_OF_STAR)
        return Star(source, up, struct, except_, renames, replaces)

    def hidden(self, node: Any) -> str:
        """A column left out of a star, of one source where it is qualified."""
        if not isinstance(node, exp.Column):
            return self.fold(node)
        nothing_beyond(node, _READ_OF_NAME)
        key = self.fold(node.this)
        table = node.args.get("table")
        if table is None:
            return key
        source = one_of(self.scopes[-1].names.get(self.fold(table)))
        if source is None:
            raise Unsupported("a field of a column left out of a star")
        return hidden_in(source, key)

    # -- FROM -----------------------------------------------------------------------------------

    def add_source(
        self,
        alias: str | None,
        full_name: str | None,
        rel: Rel,
        columns: list[str] | None,
        in_brackets: bool = False,
    ) -> int:
        scope = self.scopes[-1]
        index = len(scope.sources)
        scope.sources.append(Source(alias, rel, columns, in_brackets))
        free = alias in scope.hidden
        if free:
            scope.hidden = scope.hidden.difference((alias,))
        if alias is not None:
            scope.names[alias] = TWICE if alias in scope.names and not free else index
        if full_name is not None:
            twice = full_name in scope.full_names and not free
            scope.full_names[full_name] = TWICE if twice else index
        return index

    def join(self, node: exp.Join) -> FromItem:
        args = node.args
        scope = self.scopes[-1]
        before = len(scope.sources)
        words = [str(args[k]).upper() for k in ("method", "side", "kind") if args.get(k)]
        natural = "NATURAL" in words
        implied = ("NATURAL", "OUTER", "INNER") if args.get("side") else ("NATURAL", "INNER")
        words = [w for w in words if w not in implied]
        if node.this.args.get("cross_apply") is False:
            words.append("OUTER APPLY")
        if node.this.args.get("laterals"):
            raise Unsupported("LATERAL VIEW inside a join")
        comma = not (words or args.get("on") or args.get("using") or natural)
        if comma:
            words = ["CROSS"]
        item = self.from_item(node.this, " ".join(words) or "INNER")
        item.natural, item.comma = natural, comma
        if args.get("using"):
            for key in listed(args["using"]):
                if isinstance(key, exp.Column):
                    nothing_beyond(key, _READ_OF_NAME)
            item.using = [
                self.fold(u.this if isinstance(u, exp.Column) else u) for u in listed(args["using"])
            ]
        if args.get("on") is not None:
            item.conds = self.conjuncts(args["on"], JOIN)
        if args.get("match_condition"):
            matched = self.x_of([args["match_condition"]], JOIN, b"match_condition")
            item.conds = [*item.conds, matched]
        of_item = args.get("on") is not None or args.get("using") or comma
        if comma and self.dialect in alias_resolution.COMMA_IS_A_JOIN:
            of_item = False
        if args.get("pivots") or (node.this.args.get("pivots") and not of_item):
            # Behind a join without a condition engines turn all that is joined so far, not its last item.
            raise Unsupported("PIVOT of a join")
        self.beyond(node, _READ_OF_JOIN)
        for nested in node.this.args.get("joins") or []:
            if isinstance(node.this, exp.TableFromRows):
                raise Unsupported("joins within a table function")
            if isinstance(node.this, exp.Table):
                # `a join b join c on .. on ..`: the parser hangs the inner join on the table.
                item.nested = [*(item.nested or [_first_item(item.source)]), self.join(nested)]
                item.source = -1
        if self.dialect in _HIDES_SEMI_JOINED and ("SEMI" in item.kind or "ANTI" in item.kind):
            # What is joined later may have the name: from here on it is meant.
            scope.hidden |= {name for name, i in scope.names.items() if i >= before}
        return item

    def from_item(self, node: Any, kind: str) -> FromItem:
        """A relation of a FROM clause, as a step of the tree."""
        if (
            isinstance(node, exp.Subquery)
            and _is_bare(node.this)
            and node.args.get("alias") is None
            and not node.args.get("pivots")
        ):
            # Parenthesised joins: their names stay visible outside, unless an alias hides them.
            self.beyond(node, _READ_OF_NESTED_JOINS)
            joins = _taken_joins(node.this)
            nested = [self.from_item(node.this, "")]
            nested.extend(self.join(j) for j in joins)
            nested.extend(self.join(j) for j in node.args.get("joins") or [])
            return FromItem(-1, kind, nested)
        return FromItem(self.source(node), kind)

    def source(self, node: Any) -> int:
        if "pivots" in node.args and self.dialect == "duckdb":
            node = pivot_statements.without_group(node)
        node.parent = None
        args = node.args
        alias_node = args.get("alias")
        alias = None
        columns: list[str] = []
        if alias_node is not None:
            alias_node.parent = None
            if isinstance(alias_node.this, exp.Parameter):  # `from orders@v1`, an older version
                raise Unsupported("@ behind a relation")
            alias = self.fold(alias_node.this) if alias_node.this else None
            listed_columns = alias_node.args.get("columns") or ()
            columns = self.column_names(alias_node)
            if any(type(c) is not exp.Identifier for c in listed_columns):  # with their types
                types = digest(b"columns", written(listed_columns))
                self.scopes[-1].extra.append(LoweredExpr(types, {}, {}))
        full_name: str | None = None
        rel: Rel
        if isinstance(node, exp.Final):  # ClickHouse: the last version of each row
            self.scopes[-1].extra.append(LoweredExpr(digest(b"final"), {}, {}))
            if node.this.args.get("joins"):
                raise Unsupported("joins within FINAL")
            return self.source(node.this)
        if isinstance(node, exp.Table):
            if isinstance(node.this, exp.Identifier):
                parts = self.parts(node)
                rel = self.array_of(node, parts) or self.table(node, parts)
                if alias is None:
                    alias = parts[-1]
                    full_name = ".".join(parts)
                if args.get("laterals"):
                    raise Unsupported("LATERAL VIEW inside parentheses")
            else:
                if args.get("ordinality") or node.this is None or node.this == "":
                    raise Unsupported(
                        "WITH ORDINALITY" if args.get("ordinality") else "a relation without a name"
                    )
                rel = self.table_function(node.this, columns, self.parts(node)[:-1])
                self.beyond(node, _READ_OF_FUNCTION)
                columns = []
                if alias is None:
                    alias = function_name(node.this)
        elif isinstance(node, exp.Subquery):
            inner = node.this
            if isinstance(inner, exp.Table) or args.get("joins"):
                self.beyond(node, _READ_OF_SUBQUERY)
                rel = self.query(
                    exp.Select(
                        expressions=[exp.Star()],
                        from_=exp.From(this=inner),
                        joins=args.get("joins") or [],
                    )
                )
            else:
                rel = self.query(
                    exp.Subquery(**{k: v for k, v in args.items() if k not in ("alias", "pivots")})
                )
        elif isinstance(node, exp.Values):
            rel = self.values(node, alias_node)
            self.beyond(node, _READ_OF_VALUES)
            columns = []
        elif isinstance(node, exp.Lateral):
            rel = self.lateral(node, columns)
            if isinstance(rel, Generator):
                columns = []
        elif isinstance(node, exp.Unnest):
            rel = self.unnest(node, columns)
            columns = []
        elif isinstance(node, exp.TableFromRows):
            if self.dialect == "snowflake" and isinstance(node.this, exp.Explode):
                columns = columns or list(FLATTEN_COLUMNS)
            rel = self.table_function(node.this, columns)
            self.beyond(node, _READ_OF_FUNCTION)
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
                columns = self.column_names(pivot_alias)
        in_brackets = isinstance(node, exp.Subquery)
        return self.add_source(alias, full_name, rel, columns or None, in_brackets)

    def parts(self, node: exp.Table) -> list[str]:
        """The keys of the parts of a relation's name."""
        args = node.args
        this = args["this"]
        if args.get("db") is None and type(this) is exp.Identifier:
            key = self.fold(this)
            if len(this.args) > 2 and (this.args.get("temporary") or this.args.get("global_")):
                return ["#" + key]  # a temporary table of T-SQL
            return [key]
        return [self.fold(part) for part in node.parts]

    def table(self, node: exp.Table, parts: list[str]) -> Rel:
        more = not _READ_OF_TABLE.issuperset(node.args)
        extra = (
            b"".join(
                digest(name.encode(), written(value))
                for name, value in node.args.items()
                if value and name not in _READ_OF_TABLE
            )
            if more
            else b""
        )
        if len(parts) == 1:
            for visible in reversed(self.visible_ctes):
                index = visible.get(parts[0])
                if index is not None:
                    rel: Rel = CteRef(index)
                    return (
                        self.passed_on(rel, None, {}, [LoweredExpr(extra, {}, {})])
                        if extra
                        else rel
                    )
        key = ".".join(parts)
        self.tables[key] = None
        return Table(key, ".".join(p.name for p in node.parts), extra)

    def array_of(self, node: exp.Table, parts: list[str]) -> Generator | None:
        """`from t, t.items`: BigQuery unnests the array of a source named before, or further out."""
        if self.dialect != "bigquery" or len(parts) < 2:
            return None
        if not any(parts[0] in scope.names for scope in self.scopes):
            return None
        column = exp.Column(this=node.parts[-1], table=node.parts[-2])
        name = node.alias or node.name
        x = self.x_of([column], TRANSFORMATION, b"unnest")
        return Generator(x, [name], [fold(name, False, self.dialect)], by_field=True)

    def call_in_from(self, node: Any, tag: bytes) -> LoweredExpr:
        """A call in FROM: its rows are a source's, whatever the function does in a select list."""
        scope = self.scopes[-1]
        generators, uncertain = len(scope.generators), len(scope.uncertain)
        aggregated = scope.aggregated
        x = self.x_of([node], TRANSFORMATION, tag)
        del scope.generators[generators:], scope.uncertain[uncertain:]
        scope.aggregated = aggregated
        return x

    def table_function(self, node: Any, columns: list[str], schema: Sequence[str] = ()) -> Rel:
        """A function in FROM; with a query as argument (TABLE(...)) it is seen as a whole."""
        self.note_call(node)
        if self.dialect == "duckdb" and function_name(node) in _OVER_A_RELATION:
            return self.over_a_relation(node, columns)
        self.name_arguments(node)
        ctes = self.ctes_named_in(node)
        x = self.call_in_from(node, ".".join(["function", *schema]).encode())
        x = self.with_ctes(x, ctes)
        names: list[str] | None = list(columns) or self.generated_columns(node)
        keys = [fold(n, False, self.dialect) for n in names] if names is not None else None
        return Generator(x, names, keys)

    def name_arguments(self, node: Any) -> None:
        """DuckDB: `f(num_rows = 3)` names an argument, and asks no column."""
        if self.dialect != "duckdb" or not isinstance(node, exp.Func):
            return
        for argument in node.expressions:
            named = argument.this if isinstance(argument, exp.EQ) else None
            if isinstance(named, exp.Column) and not named.table:
                name = exp.var(named.name.lower())
                argument.replace(exp.Kwarg(this=name, expression=argument.expression))

    def note_call(self, node: Any) -> None:
        """Note a table function and the strings it is given, by which it may find relations."""
        if isinstance(node, exp.Func):
            self.called[function_name(node) + "("] = None
        for literal in node.find_all(exp.Literal):
            if literal.is_string:
                self.called[literal.this] = None

    def over_a_relation(self, call: Any, columns: list[str]) -> Rel:
        """DuckDB's ``histogram(orders, amount)``: a relation, and an expression over its columns."""
        name = function_name(call)
        if len(call.expressions) < 2:
            raise Unsupported(f"{name}() with too few arguments")
        source, *rest = call.expressions
        if isinstance(source, exp.Literal):
            source = exp.to_table(source.this, dialect=self.dialect)
        elif isinstance(source, exp.Column) and all(
            type(p) is exp.Identifier for p in source.parts
        ):
            parts = zip(("this", "db", "catalog"), reversed(source.parts), strict=False)
            source = exp.Table(**dict(parts))
        if not isinstance(source, exp.Table):
            raise Unsupported(f"{name}() of a relation that is not named")
        subs = self.scopes[-1].subs
        subs.append(self.query(exp.Select(expressions=rest, from_=exp.From(this=source))))
        last = len(subs) - 1
        x = LoweredExpr([name.encode(), ["Q", "in", last]], {}, {last: TRANSFORMATION})
        names = [*columns, *_OVER_A_RELATION[name][len(columns) :]]
        return Generator(x, names, [fold(n, False, self.dialect) for n in names])

    def ctes_named_in(self, call: Any) -> list[int]:
        """The CTEs that a table function may find by the strings it is given.

        DuckDB's ``query_table('orders')`` and ``query('from orders')`` read a CTE of that name.
        """
        if self.dialect != "duckdb" or function_name(call) not in _FIND_BY_NAME:
            return []
        literals = list(call.find_all(exp.Literal))
        plain = all(isinstance(n, (*_PLAIN, type(call))) for n in call.walk())
        words = {w for n in literals for w in _WORD.findall(n.this.lower())}
        visible: dict[str, int] = {}
        for names in self.visible_ctes:
            visible.update(names)
        return [
            i
            for name, i in visible.items()
            if not plain or not words.isdisjoint(_WORD.findall(name))
        ]

    def with_ctes(self, x: LoweredExpr, ctes: list[int]) -> LoweredExpr:
        """A call that reads CTEs, too."""
        if not ctes:
            return x
        subs = self.scopes[-1].subs
        places = range(len(subs), len(subs) + len(ctes))
        subs.extend(map(CteRef, ctes))
        read = [["Q", "in", i] for i in places]
        return LoweredExpr(
            [b"reads", x.e, *read],
            x.deps,
            {**x.subs, **dict.fromkeys(places, TRANSFORMATION)},
            x.rows,
        )

    def lateral(self, node: exp.Lateral, columns: list[str]) -> Rel:
        inner = node.this
        if isinstance(inner, (exp.Subquery, exp.Select, exp.SetOperation)):
            self.beyond(node, _READ_OF_LATERAL_QUERY)  # OUTER APPLY: see `join`
            return self.query(inner)
        if isinstance(inner, exp.Unnest):
            self.beyond(node, _READ_OF_LATERAL_QUERY)
            return self.unnest(inner, columns)
        self.beyond(node, _READ_OF_LATERAL)
        flags = [k for k in ("view", "outer", "cross_apply", "ordinality") if node.args.get(k)]
        self.note_call(inner)
        x = self.call_in_from(inner, " ".join(["lateral", *flags]).encode())
        names: list[str] | None = list(columns) or self.generated_columns(inner)
        if (
            node.args.get("view")
            and not columns
            and isinstance(inner, (exp.Explode, exp.Posexplode))
        ):
            names = None  # a map gives key and value, an array col
        keys = [fold(n, False, self.dialect) for n in names] if names is not None else None
        each = self.stacked(inner, x) if isinstance(inner, exp.Stack) else []
        return Generator(x, names, keys, each)

    def unnest(self, node: exp.Unnest, columns: list[str]) -> Rel:
        """UNNEST; several arrays are zipped, one column each where the names say so."""
        self.beyond(node, _READ_OF_UNNEST)
        x = self.x_of(node.expressions, TRANSFORMATION, b"unnest")
        names: list[str] | None = list(columns)
        each = (
            [self.x(e, TRANSFORMATION) for e in node.expressions]
            if len(node.expressions) == len(columns)
            else []
        )
        offset = node.args.get("offset")
        if isinstance(offset, exp.Identifier):
            names = [*columns, offset.name]
            each = [*each, x] if each else []
        elif offset:
            x = LoweredExpr(merkle([b"offset", x.e]), x.deps, x.subs, x.rows)
        if not names:
            names = ["unnest"] if self.dialect == "duckdb" else None
        if names is not None and len(names) == 1 and offset is True and self.dialect == "duckdb":
            names = [*names, "ordinality"]
            each = [*each, x] if each else []
        keys = [fold(n, False, self.dialect) for n in names] if names is not None else None
        by_field = self.dialect == "bigquery" and not all(map(_of_scalars, node.expressions))
        return Generator(x, names, keys, each, by_field)

    def pivot(self, node: exp.Pivot, rel: Rel, columns: list[str]) -> Rel:
        scope = self.enter()
        self.add_source(None, None, rel, columns or None)
        args = node.args
        nothing_beyond(node, _READ_OF_PIVOT)
        if args.get("unpivot"):
            unpivot = self.unpivot(node, rel, scope)
            self.leave()
            return unpivot
        aggregates = [
            self.x(e.this if isinstance(e, exp.Alias) else e, AGGREGATION) for e in node.expressions
        ]
        fields: list[LoweredExpr] = []
        values: list[bytes] = []
        listed = True
        for field in args.get("fields") or []:
            if not isinstance(field, exp.In):
                raise Unsupported("PIVOT without a list of values")
            nothing_beyond(field, _READ_OF_PIVOT_FIELD)
            fields.append(self.x(field.this, CONDITIONAL))
            listed = listed and bool(field.expressions)
            each = [
                self.constant(v.this if isinstance(v, exp.PivotAlias) else v)
                for v in field.expressions
            ]
            values = [digest(a, b) for a in values for b in each] if values else each
            # sqlglot loses the sign and the word of others (`-1`, `true`) in the names it makes.
            listed = listed and all(isinstance(v, _NAMES_A_COLUMN) for v in field.expressions)
        pivoted: list[Any] = args.get("columns") or [] if listed else []
        for column in pivoted:  # sqlglot makes the names out of SQL, comments and all
            column.set("this", _COMMENT.sub("", column.this))
        names = [c.name for c in pivoted]
        keys = [self.fold(c) for c in pivoted]
        self.leave()
        return Pivot(
            rel,
            aggregates,
            fields,
            values,
            names,
            keys,
            written(args.get("default_on_null") or None),
            scope.refs,
            scope.subs,
        )

    def unpivot(self, node: exp.Pivot, rel: Rel, scope: Scope) -> Rel:
        fields = node.args.get("fields") or []
        if len(fields) != 1 or not isinstance(fields[0], exp.In):
            raise Unsupported("UNPIVOT of this form")
        field = fields[0]
        nothing_beyond(field, _READ_OF_PIVOT_FIELD)
        value_nodes: list[Any] = []
        for e in node.expressions:
            e = e.this if isinstance(e, exp.Paren) else e
            value_nodes.extend(e.expressions if isinstance(e, exp.Tuple) else [e])
        groups: list[list[int]] = [[] for _ in value_nodes]
        labels: list[bytes] = []
        stored: list[int] = []
        for entry in field.expressions:
            label = None
            if isinstance(entry, exp.PivotAlias):
                label = self.spelled(entry.args["alias"])
                entry = entry.this
            if isinstance(entry, exp.Paren):
                entry = entry.this
            parts = entry.expressions if isinstance(entry, exp.Tuple) else [entry]
            if len(parts) != len(value_nodes):
                raise Unsupported("UNPIVOT with unequal lists of columns")
            for i, part in enumerate(parts):
                if not isinstance(part, exp.Column):
                    raise Unsupported("UNPIVOT of an expression")
                nothing_beyond(part, _READ_OF_NAME)
                groups[i].append(self.ref(0, 0, self.fold(part.this), part.name))
                if label is None and self.as_stored:
                    stored.append(groups[i][-1])
            if label is None and not self.as_stored:
                label = b"_".join(self.spelled(p.this) for p in parts)
            labels.append(label or b"")
        name_node = field.this
        return Unpivot(
            rel=rel,
            value_names=[_name_of(v) for v in value_nodes],
            value_keys=[self.fold(_identifier_of(v)) for v in value_nodes],
            name_column=_name_of(name_node),
            name_key=self.fold(_identifier_of(name_node)),
            groups=groups,
            labels=repr(labels).encode(),
            include_nulls=bool(node.args.get("include_nulls")),
            values_first=self.dialect == "bigquery" or bool(node.args.get("value_columns_first")),
            refs=scope.refs,
            stored=stored,
        )


def nothing_beyond(node: Any, reads: frozenset[str]) -> None:
    """Refuse a node of which something is set that no rule reads."""
    args = node.args
    if not reads.issuperset(args) and not reads.issuperset(compress(args, args.values())):
        name = next(name for name, value in args.items() if value and name not in reads)
        raise Unsupported(f"{type(node).__name__} with {name.rstrip('_')}")


def _ordinal(node: Any) -> int | None:
    """The position a bare integer stands for in GROUP BY and ORDER BY."""
    if isinstance(node, exp.Literal) and not node.args.get("is_string"):
        try:
            return int(node.this)
        except ValueError:
            return None
    return None


def _hash_ordinal(node: Any) -> int | None:
    """The position that ``#2`` is in ORDER BY and DISTINCT ON; inside of expressions it is not."""
    return _ordinal(node.this) if isinstance(node, exp.PositionalColumn) else None


def _positions(structure: Any) -> list[int]:
    """The bare integers of ROLLUP, CUBE and GROUPING SETS; those inside an expression are values."""
    positions = []
    for item in structure.expressions:
        if isinstance(item, (exp.Tuple, *_GROUP_STRUCTURES)):
            positions.extend(_positions(item))
        elif (ordinal := _ordinal(unwrapped(item))) is not None:
            positions.append(ordinal)
    return positions


def _shape_of_type(fields: Fields | None) -> StructShape | None:
    """A shape as a type lists it."""
    if fields is None:
        return None
    return StructShape(-1, [], [(name, _shape_of_type(inner)) for name, inner in fields])


def _function_behind(node: Any) -> str:
    """The name that Postgres gives an expression: that of its function, or none."""
    while isinstance(node, (exp.Paren, exp.Filter, exp.Window, exp.WithinGroup, exp.Collate)):
        node = node.this
    if isinstance(node, exp.Case):
        default = unwrapped(node.args.get("default"))
        return default.name if isinstance(default, exp.Column) else "case"
    if isinstance(node, exp.Cast):
        inner = _function_behind(node.this)
        return inner if inner != _UNNAMED else str(node.to.this.value).lower()
    if isinstance(node, exp.Subquery):
        selects: list[Any] = getattr(node.unnest(), "selects", [])
        return selects[0].alias_or_name or _function_behind(selects[0]) if selects else _UNNAMED
    if isinstance(node, exp.Func) and not isinstance(node, (exp.Binary, exp.Connector)):
        return function_name(node)
    return _UNNAMED


def _generator_of(node: Any) -> Any:
    """The call behind `f(...) AS (a, b)`."""
    return node.this if type(node) is exp.Aliases else node


@overload
def _as_column(out: LoweredExpr, node: Any) -> LoweredExpr: ...


@overload
def _as_column(out: Out, node: Any) -> Out: ...


def _as_column(out: Out, node: Any) -> Out:
    """An item of a select list; a literal has, as a column, another type than where it is written.

    Engines give a literal the type of what it meets: `1` beside a TINYINT is one, and a column of
    ones is not.
    """
    node = unwrapped(node)
    if isinstance(node, exp.Neg):
        node = unwrapped(node.this)
    if isinstance(node, (exp.Literal, exp.Null)) and type(out) is LoweredExpr:
        return LoweredExpr([LITERAL_COLUMN, out.e], out.deps, out.subs)
    return out


def _of_scalars(array: Any) -> bool:
    """Whether the text of an array shows that what it holds has no fields."""
    if isinstance(array, exp.Array):
        return all(isinstance(e, exp.Literal) for e in array.expressions)
    return isinstance(array, _ARRAYS_OF_SCALARS)


def _star(source: int = -1) -> Star:
    return Star(source, 0, None, [], {}, {})


def _first_item(source: int) -> FromItem:
    return FromItem(source, "")


def _is_outer_behind_cross(items: Sequence[FromItem]) -> bool:
    """Whether a join that keeps rows of its right side stands behind a cross join, or a comma."""
    kinds = [item.kind for item in items]
    if "CROSS" not in kinds:
        return False
    behind = kinds[kinds.index("CROSS") + 1 :]
    return any("RIGHT" in kind or "FULL" in kind for kind in behind)


def _is_bare(node: Any) -> bool:
    """Whether a parenthesis in FROM holds joined relations rather than a query."""
    if isinstance(node, exp.Table):
        return True
    if not isinstance(node, exp.Subquery):
        return False
    return bool(node.args.get("joins")) or (_is_bare(node.this) and not node.args.get("alias"))


def _taken_joins(first: Any) -> list[Any]:
    """The joins that sqlglot hangs on the first of the joined relations."""
    joins = first.args.get("joins") or []
    if isinstance(first, exp.Subquery):  # a bracket reads those inside itself
        first.args["joins"] = None
    return list(joins)


def _name_of(node: Any) -> str:
    return str(node.name)


def _identifier_of(node: Any) -> Any:
    return node.this if isinstance(node, exp.Column) else node


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
