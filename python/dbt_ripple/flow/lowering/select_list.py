"""The select list: the name, key and expression of each output, stars, and columns that generators make."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, overload

from sqlglot import exp
from sqlglot.errors import SqlglotError

from dbt_ripple.flow.data_types import Fields, fields_of_data_type
from dbt_ripple.flow.fingerprint import digest
from dbt_ripple.flow.functions import CASTS, GENERATED_COLUMNS
from dbt_ripple.flow.identifiers import MADE_UP, fold
from dbt_ripple.flow.ir import (
    IDENTITY,
    LITERAL_COLUMN,
    TRANSFORMATION,
    GeneratedColumns,
    LoweredExpr,
    Out,
    Star,
    StructShape,
    hidden_in,
    names_within,
)
from dbt_ripple.flow.lowering.clause_helpers import (
    READ_OF_NAME,
    ClauseHelpers,
    refuse_unread,
)
from dbt_ripple.flow.lowering.parse_tree import (
    argument_names,
    as_list,
    ordinal_of,
    without_parens,
)
from dbt_ripple.flow.lowering.scope import one_of
from dbt_ripple.flow.reading.dialects import function_name, written
from dbt_ripple.flow.reading.refusals import Unsupported
from dbt_ripple.flow.reading.sqlglot_versions import Stack

_SPARK: Final = ("spark", "databricks", "hive", "spark2")
_UNNAMED: Final = "?column?"
_NAMED_AS_THE_FUNCTION: Final = ("materialize", "postgres", "redshift", "risingwave")
"""Dialects in which an expression without a name has that of its function."""
_CASTS_KEEP_NAMES: Final = (*_SPARK, *_NAMED_AS_THE_FUNCTION)
_NUMBERED_NAMES: Final = {
    "athena": ("_col", False, ""),
    "bigquery": ("f", True, "_"),
    "hive": ("_c", False, ""),
    "presto": ("_col", False, ""),
    "trino": ("_col", False, ""),
}
"""How a dialect numbers what has no name, and whether it counts only what has none."""
_MAY_BE_STRUCTS: Final = (exp.AnyValue, exp.Bracket, exp.Cast, exp.Column, exp.Dot, exp.Struct)
_SAME_VALUES: Final = (exp.Distinct, exp.HavingMax, exp.IgnoreNulls, exp.Limit, exp.Order)
"""What may stand around the argument of an aggregate, which is the value of some row."""
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
_READ_OF_STAR: Final = argument_names("except_ rename replace")


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
        default = without_parens(node.args.get("default"))
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


def _argument(aggregate: Any) -> Any:
    """What an aggregate gives one of, or all."""
    value = aggregate.this
    while isinstance(value, _SAME_VALUES):
        value = value.this
    return value


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
    node = without_parens(node)
    if isinstance(node, exp.Neg):
        node = without_parens(node.this)
    if isinstance(node, (exp.Literal, exp.Null)) and type(out) is LoweredExpr:
        return LoweredExpr([LITERAL_COLUMN, out.e], out.deps, out.subs)
    return out


class SelectLists(ClauseHelpers):
    """Select lists."""

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
            if type(_generator_of(node)) is Stack:
                for name, key, out in self.stack_columns(node):
                    aliases[key] = len(outs)
                    names.append(name)
                    keys.append(key)
                    outs.append(out)
                continue
            if isinstance(value, _MAY_BE_STRUCTS) and (shape := self.shape(value)) is not None:
                scope.shapes[len(outs)] = shape
            name, key, out = self.projection(node, keys)
            for given in names_within(out):
                aliases[given] = len(outs)
            if key:
                aliases[key if key[0] != MADE_UP else key[1:]] = len(outs)
            names.append(name)
            keys.append(key)
            outs.append(_as_column(out, value))
        return names, keys, outs

    def stack_columns(self, node: Any) -> list[tuple[str, str, Out]]:
        """The columns of STACK in a select list, each made of its own arguments."""
        stack = _generator_of(node)
        x = self.lower_alone(stack, TRANSFORMATION)
        each = self.stacked(stack, x)
        aliases = [a.name for a in node.expressions] if stack is not node else []
        names = aliases or self.generated_columns(stack) or []
        return [
            (name, fold(name, False, self.dialect), each[i] if i < len(each) else x)
            for i, name in enumerate(names)
        ]

    def stacked(self, node: Stack, whole: LoweredExpr) -> list[LoweredExpr]:
        """STACK(n, ...) is positional: column j is made of the arguments j, j + width, ..."""
        rows = ordinal_of(node.this)
        arguments = node.expressions
        if not rows:
            return []
        width = -(-len(arguments) // rows)
        columns = [
            self.lower_together(arguments[j::width], TRANSFORMATION, b"stack") for j in range(width)
        ]
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
            if isinstance(inner, (exp.Star, exp.Column, exp.Dot)) and inner.is_star:
                raise Unsupported("a * with an alias, which gives its name to every column")
            x = self.lower_alone(inner, IDENTITY)
            return (
                ("", "", GeneratedColumns(x, [name], [key]))
                if self.generates(inner)
                else (name, key, x)
            )
        if t is exp.Column and type(node.args["this"]) is exp.Identifier:
            this = node.args["this"]
            return this.args["this"], self.fold(this), self.lower_alone(node, IDENTITY)
        if isinstance(node, exp.Star):
            return "", "", self.star(node, -1, 0, None)
        if isinstance(node, exp.Column) and isinstance(node.this, exp.Star):
            return self.qualified_star(node)
        if isinstance(node, exp.Dot) and isinstance(node.expression, exp.Star):
            struct = self.lower_alone(node.this, TRANSFORMATION)
            star = self.star(node.expression, -2, 0, struct)
            star.shape = self.shape(node.this)
            return "", "", star
        if isinstance(node, exp.QueryTransform):
            schema = node.args.get("schema")
            names = [e.name for e in schema.expressions] if schema is not None else ["key", "value"]
            x = self.lower_alone(node, TRANSFORMATION)
            self.scopes[-1].generators.append(x)
            return "", "", GeneratedColumns(x, names, [fold(n, False, self.dialect) for n in names])
        if isinstance(node, exp.Aliases):
            names = [e.name for e in node.expressions]
            keys = [self.fold(e) for e in node.expressions]
            return (
                "",
                "",
                GeneratedColumns(self.lower_alone(node.this, TRANSFORMATION), names, keys),
            )
        if self.generates(node):
            x = self.lower_alone(node, IDENTITY)
            default = self.generated_columns(node)
            generated_columns = GeneratedColumns(x, default, default)
            if self.dialect == "duckdb" and type(node) is exp.Explode and not node.expressions:
                # Of a struct, unnest gives the fields; of an array, one column.
                generated_columns.shape = self.shape(node.this)
                if isinstance(node.this, _EVIDENT_ARRAYS):
                    name = written(node, "duckdb")
                    generated_columns.names, generated_columns.keys = (
                        [name],
                        [MADE_UP + fold(name, True, self.dialect)],
                    )
            return "", "", generated_columns
        name, generated = self.auto_name(node)  # before the walk cuts the tree (`cut_parents`)
        x = self.lower_alone(node, IDENTITY)
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
        if isinstance(node, Stack):
            rows = ordinal_of(node.this)
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
        node = without_parens(node)
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
            return written(node, self.dialect), True
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
        lowered_star = self.star(star, -2, 0, self.lower_alone(column, TRANSFORMATION))
        lowered_star.shape = self.shape(column)
        return "", "", lowered_star

    def shape(self, node: Any) -> StructShape | None:
        """The fields of an expression that is a struct, as far as the text shows them."""
        node = without_parens(node)
        element = isinstance(node, exp.Bracket) and len(node.expressions) == 1
        if element and not isinstance(node.expressions[0], exp.Slice):
            array = without_parens(node.this)
            return self.shape(_argument(array)) if isinstance(array, exp.ArrayAgg) else None
        if isinstance(node, exp.AnyValue):
            return self.shape(_argument(node))
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
        e = self.lower_alone(node, TRANSFORMATION).e
        depth = 0
        while type(e) is list and e[0] == b"Dot":
            e, depth = e[2], depth + 1
        parts = [self.fold(part) for part in node.parts]
        return StructShape(e, parts[len(parts) - depth :], None) if type(e) is int else None

    def star(self, node: Any, source: int, up: int, struct: LoweredExpr | None) -> Star:
        args = node.args
        except_ = [self.excluded_column(c) for c in as_list(args.get("except_"))]
        renames: dict[str, list[str]] = {}
        for r in as_list(args.get("rename")):
            if isinstance(r.this, exp.Column):
                refuse_unread(r.this, READ_OF_NAME)
            renames[self.fold(r.this.this if isinstance(r.this, exp.Column) else r.this)] = [
                r.alias,
                self.fold(r.args["alias"]),
            ]
        replaces = {}
        for r in as_list(args.get("replace")):
            replaces[self.fold(r.args["alias"])] = _as_column(
                self.lower_alone(r.this, IDENTITY), r.this
            )
        if not _READ_OF_STAR.issuperset(args) and args.get("ilike"):
            raise Unsupported("a * filtered by a name pattern")
        refuse_unread(node, _READ_OF_STAR)
        return Star(source, up, struct, except_, renames, replaces)

    def excluded_column(self, node: Any) -> str:
        """A column left out of a star, of one source where it is qualified."""
        if not isinstance(node, exp.Column):
            return self.fold(node)
        refuse_unread(node, READ_OF_NAME)
        key = self.fold(node.this)
        table = node.args.get("table")
        if table is None:
            return key
        source = one_of(self.scopes[-1].names.get(self.fold(table)))
        if source is None:
            raise Unsupported("a field of a column left out of a star")
        return hidden_in(source, key)
