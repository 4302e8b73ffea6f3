"""Literals, types, structs, named arguments and lambdas."""

from __future__ import annotations

from typing import Any, Final

from sqlglot import exp

from dbt_ripple.flow.fingerprint import digest
from dbt_ripple.flow.identifiers import lowered
from dbt_ripple.flow.ir import IDENTITY, TRANSFORMATION, Expr
from dbt_ripple.flow.lowering.parse_tree import argument_names, verbatim
from dbt_ripple.flow.lowering.scope import transformed
from dbt_ripple.flow.lowering.walk import (
    ExpressionWalk,
    literal_fingerprint,
    merkle,
    type_fingerprint,
)
from dbt_ripple.flow.reading.refusals import Unsupported

_NAME_OF_TYPE: Final = argument_names("this kind")


class LiteralsAndTypes(ExpressionWalk):
    """Literals, types, structs, named arguments and lambdas."""

    def literal(self, node: exp.Literal, kind: int) -> Expr:
        args = node.args
        self.read[id(node)] = lowered[args["this"]]
        return literal_fingerprint(bool(args.get("is_string")), args["this"])

    def var(self, node: exp.Var, kind: int) -> Expr:
        self.read[id(node)] = lowered[node.args["this"]]
        return self.generic(node, kind)

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
            return [b"Collate", merkle(pieces), verbatim(collation)]  # see `collation`
        name = args["this"]
        kind_ = args.get("kind")
        if kind_ is None and type(name) is exp.DType:
            return type_fingerprint(name)
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

    def inner_alias(self, node: exp.Alias, kind: int) -> Expr:
        alias = node.args["alias"]
        if self.dialect == "clickhouse":
            raise Unsupported(f"cannot follow `{node.alias}`, an alias inside of an expression")
        return merkle([b"named", self.spelled(alias), self.expr(node.this, transformed(kind))])

    def struct(self, node: exp.Struct, kind: int) -> Expr:
        """A struct: the names of its fields are data, those that columns give them, too."""
        if {name for name, value in node.args.items() if value} - {"expressions"}:
            return self.generic(node, kind)
        kind = transformed(kind)
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
        typed = [verbatim(p) for p in node.expressions if type(p) is not exp.Identifier]
        return merkle([b"Lambda", str(len(node.expressions)).encode(), *typed, body])

    def comprehension(self, node: exp.Comprehension, kind: int) -> Expr:
        """[e FOR x IN array IF c]: x is a parameter, as of a lambda."""
        args = node.args
        pieces: list[Expr] = [b"Comprehension", self.expr(args["iterator"], transformed(kind))]
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
        pieces.append(self.expr(args["this"], transformed(kind)))
        if args.get("condition") is not None:
            pieces.append(self.expr(args["condition"], transformed(kind)))
        self.lambdas = self.lambdas[:-1]
        return merkle(pieces)
