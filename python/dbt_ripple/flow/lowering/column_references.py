"""Columns in expressions: the references that names are, fields of structs, and `*`."""

from __future__ import annotations

from itertools import compress
from typing import Any, Final

from sqlglot import TokenType, exp

from dbt_ripple.flow.fingerprint import digest
from dbt_ripple.flow.identifiers import lowered
from dbt_ripple.flow.ir import CteRef, Expr, Ref
from dbt_ripple.flow.lowering.parse_tree import (
    AROUND_CALLS,
    argument_names,
    as_call,
    as_list,
    ordinal_of,
    without_parens,
)
from dbt_ripple.flow.lowering.scope import TWICE, RefKey, by_suffix, one_of, transformed
from dbt_ripple.flow.lowering.walk import IDENTIFIER, ExpressionWalk, hashing_unread, merkle
from dbt_ripple.flow.reading.refusals import Unsupported

_READ_OF_COLUMN: Final = argument_names("this table db catalog")
_READ_OF_PLAIN: Final = argument_names("this table")


def field_names(struct: exp.Struct) -> list[str]:
    """The names of the fields of a struct that is written out; none where one has no name."""
    names = []
    for field in struct.expressions:
        if isinstance(field, (exp.PropertyEQ, exp.Column)) and type(field.this) is exp.Identifier:
            names.append(field.this.name)
        else:
            return []
    return names


def named_field(struct: exp.Struct, key: str) -> Any:
    """The value of the one field of this name in a struct that is written out; None of others."""
    names = [lowered[name] for name in field_names(struct)]
    if names.count(lowered[key]) != 1:
        return None
    field = struct.expressions[names.index(lowered[key])]
    return field.expression if isinstance(field, exp.PropertyEQ) else field


class ColumnReferences(ExpressionWalk):
    """Names, and what they may mean before the parents are known."""

    def identifier(self, node: exp.Identifier, kind: int) -> Expr:
        key = self.fold(node)
        for names in reversed(self.lambdas):
            if key in names:
                return names[key]
        return digest(b"name", key.encode())

    def ref(self, up: int, source: int, key: str, name: str) -> int:
        """The index of a reference in its scope; a bare name may also mean an earlier output."""
        scope = self.scopes[-1]
        rule = among = 0
        if source < 0 and (scope.shown or key in scope.aliases):
            rule = self.resolution[scope.place]
            among = scope.aliases.get(key, -1) + 1
        ref_key: RefKey = (up, source, key, rule, among) if up or rule else (source, key)
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
        if type(this) is not IDENTIFIER or self.lambdas or self.named_values:
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
        if self.keeps_case or not name.isascii():
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

    def qualified_column(self, node: exp.Column, kind: int) -> Expr:
        """A column that takes more than its name: fields, a query outside, the parameter of a lambda."""
        args = node.args
        this = args["this"]
        if isinstance(this, exp.Star):
            return self.star_in_expression(node, kind)
        if isinstance(this, AROUND_CALLS):
            return self.expr(as_call(node), kind)
        if isinstance(this, exp.Parameter):
            return self.nth_column(this, self.scopes[-1].names.get(self.fold(args["table"])), kind)
        if not (args.get("table") or args.get("db") or args.get("catalog")):
            key = self.fold(this)
            for names in reversed(self.lambdas):
                if key in names:
                    return names[key]
            if self.named_values and (value := self.named_value(this, key, kind)) is not None:
                return value
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
                    return self.fields(self.depend(ref, transformed(kind) if rest else kind), rest)
        whole = ".".join(keys)
        for up, scope in enumerate(reversed(self.scopes)):
            if (
                whole in scope.full_names or by_suffix(scope.full_names, whole) is not None
            ):  # the rows of a relation, named with its schema
                return self.depend(self.ref(up, -1, keys[-1], parts[-1].name), transformed(kind))
            if any(
                whole.find(f".{name}.") > 0
                for name, i in scope.full_names.items()
                if i < 0 or type(scope.sources[i].rel) is not CteRef  # which no schema has
            ):
                raise Unsupported("a column with more of a relation's name than FROM has")
        if keys[0] == "alias" and self.dialect == "duckdb":
            raise Unsupported("alias.x, which means an alias of the select list")
        if keys[0] in self.sources_named and any(
            token.token_type is TokenType.PIPE_GT for token in self.tokens
        ):
            raise Unsupported(f"cannot follow `{whole}`, which stands behind a pipe")
        if self.named_values and isinstance(parts[0], exp.Identifier):
            value = self.named_value(parts[0], keys[0], transformed(kind))
            if value is not None:
                return self.fields(value, fields[1:])
        ref = self.ref(0, -1, keys[0], parts[0].name)
        return self.fields(self.depend(ref, transformed(kind)), fields[1:])

    def named_value(self, name: exp.Identifier, key: str, kind: int) -> Expr | None:
        """ClickHouse's ``with e as name``: the name is the expression, wherever it stands.

        A setting decides whether a column of that name comes first, so that counts as well.
        """
        for nth, (depth, named, value) in reversed([*enumerate(self.named_values)]):
            if named != key:
                continue
            if len(self.scopes) != depth and value.find(exp.Column, exp.Star) is not None:
                raise Unsupported("a value of WITH that reads columns, in a query further in")
            before, self.named_values = self.named_values, self.named_values[:nth]
            e = self.expr(value.copy(), transformed(kind))
            self.named_values = before
            column = self.depend(self.ref(0, -3, key, name.name), transformed(kind))
            return merkle([b"value", e, column])
        return None

    def fields(self, e: Expr, names: list[bytes]) -> Expr:
        """Access to fields of a struct, written as a longer name; of a map or JSON, case counts."""
        for name in names:
            e = merkle([b"Dot", b"this", e, b"expression", digest(b"name", name)])
        return e

    def dot(self, node: exp.Dot, kind: int) -> Expr:
        """`(e).name`, as `fields` writes it."""
        if not isinstance(node.expression, exp.Identifier):
            return self.generic(node, kind)
        struct = without_parens(node.this)
        if isinstance(struct, exp.Struct) and not self.lambdas:
            value = named_field(struct, self.fold(node.expression))
            if value is not None:
                for field in struct.expressions:  # what the others say of the SELECT counts
                    self.lower_alone(field, kind)
                return merkle([b"field", self.expr(value, transformed(kind))])
        return self.fields(self.expr(node.this, transformed(kind)), [self.spelled(node.expression)])

    def star_in_expression(self, node: Any, kind: int) -> Expr:
        """A ``*`` inside an expression: every column, by name."""
        source = -1
        if isinstance(node, exp.Column):
            named = one_of(self.scopes[-1].names.get(self.fold(node.parts[-2])))
            source = -1 if named is None else named
            if source < 0:  # the fields of a struct
                parts = list(node.parts[:-1])
                names = dict(zip(("this", "table", "db"), reversed(parts), strict=False))
                return merkle([b"fields", self.column(exp.Column(**names), transformed(kind))])
            node = node.this
        if any(value and name != "except_" for name, value in node.args.items()):
            raise Unsupported("a * with other columns, inside an expression")
        excluded = [
            self.fold(c.this if isinstance(c, exp.Column) else c)
            for c in as_list(node.args.get("except_"))
        ]
        # A reference to all columns: `up` holds the source, `name` what is left out.
        ref_key = (source, -2, "\x1f".join(excluded), 0, 0)
        index = self.scopes[-1].ref_index.get(ref_key)
        if index is None:
            index = self.scopes[-1].ref_index[ref_key] = len(self.scopes[-1].refs)
            self.scopes[-1].refs.append(Ref(source, -2, "*", ref_key[2]))
        return self.depend(index, transformed(kind))

    def position(self, node: exp.PositionalColumn, kind: int) -> Expr:
        """DuckDB's ``#2``, the second column of FROM: made of all of them, in their order."""
        if not self.scopes:
            return self.generic(node, kind)
        nth = self.expr(node.this, kind)
        return merkle([b"position", nth, self.star_in_expression(exp.Star(), kind)])

    def parameter(self, node: exp.Parameter, kind: int) -> Expr:
        """Snowflake's ``$2``, the second column of FROM; elsewhere something from outside."""
        if self.dialect == "snowflake" and ordinal_of(node.this) is not None and self.scopes:
            return self.nth_column(node, -1, kind)
        return self.generic(node, kind)

    def nth_column(self, node: exp.Parameter, source: int | None, kind: int) -> Expr:
        """The nth column of a relation, or of the only one in FROM."""
        nth = ordinal_of(node.this)
        if nth is None or source is None or source == TWICE:
            raise Unsupported("a position of a relation that is not in FROM")
        self.read[id(node.this)] = str(nth)
        ref_key = (source, -4, str(nth), 0, 0)
        scope = self.scopes[-1]
        index = scope.ref_index.get(ref_key)
        if index is None:
            index = scope.ref_index[ref_key] = len(scope.refs)
            scope.refs.append(Ref(0, -4, str(nth), f"${nth}", 0, source))
        return self.depend(index, kind)

    def chosen_columns(self, node: Any, kind: int) -> Expr:
        """COLUMNS(...): one expression for each column whose name is chosen."""
        raise Unsupported("COLUMNS(...)")


_PARTS: Final = hashing_unread(ColumnReferences.qualified_column, _READ_OF_COLUMN)
