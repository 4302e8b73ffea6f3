"""Functions in FROM: table functions, LATERAL, UNNEST."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, Final

from sqlglot import exp

from dbt_ripple.flow.fingerprint import digest
from dbt_ripple.flow.identifiers import fold
from dbt_ripple.flow.ir import TRANSFORMATION, CteRef, Expr, FromItem, Generator, LoweredExpr, Rel
from dbt_ripple.flow.lowering.clause_helpers import refuse_unread
from dbt_ripple.flow.lowering.column_references import field_names
from dbt_ripple.flow.lowering.parse_tree import argument_names, verbatim
from dbt_ripple.flow.lowering.select_list import SelectLists
from dbt_ripple.flow.lowering.walk import merkle
from dbt_ripple.flow.reading.dialects import function_name
from dbt_ripple.flow.reading.reader import table_named
from dbt_ripple.flow.reading.refusals import Unsupported
from dbt_ripple.flow.reading.sqlglot_versions import Stack

_FIND_BY_NAME: Final = ("query", "query_table")
"""DuckDB's functions that read relations, and CTEs, of which they are told by strings."""
_OVER_A_RELATION: Final = {
    "histogram": ("bin", "count", "bar"),
    "histogram_values": ("bin", "count"),
}
"""DuckDB's macros that read a relation of which they are told the name, and the columns they give."""
_NAVIGATE_ARRAYS: Final = frozenset({"bigquery", "redshift"})
_NAME_ARGUMENTS: Final = frozenset({"clickhouse", "duckdb", "tsql"})
_PLAIN: Final = (exp.Literal, exp.Array, exp.Paren, exp.Boolean)
_WORD: Final = re.compile(r"\w+")
_COMMENT: Final = re.compile(r"/\*.*?\*/|--[^\n]*", re.S)
_IN_PATTERN: Final = re.compile(r"\w+|\S")
_READ_OF_LATERAL: Final = argument_names("this alias view outer cross_apply ordinality")
_READ_OF_LATERAL_QUERY: Final = argument_names("this alias cross_apply")
_READ_OF_OBJECT: Final = argument_names("this unpivot")
_READ_OF_ARRAY_JOIN: Final = argument_names("this expressions side kind")
_READ_OF_UNNEST: Final = argument_names("expressions alias offset")
_ARRAYS_OF_SCALARS: Final = (
    exp.GenerateSeries,
    exp.GenerateDateArray,
    exp.GenerateTimestampArray,
    exp.RegexpExtractAll,
    exp.Split,
)


def _of_scalars(array: Any) -> bool:
    """Whether the text of an array shows that what it holds has no fields."""
    if isinstance(array, exp.Array):
        return all(isinstance(e, exp.Literal) for e in array.expressions)
    return isinstance(array, _ARRAYS_OF_SCALARS)


class TableFunctions(SelectLists):
    """Functions in FROM."""

    def array_of(self, node: exp.Table, parts: list[str]) -> Generator | None:
        """`from t, t.items`: BigQuery and Redshift unnest the array of a source named before, or further out."""
        if self.dialect not in _NAVIGATE_ARRAYS or len(parts) < 2:
            return None
        if not any(parts[0] in scope.names for scope in self.scopes):
            return None
        column = exp.Column(this=node.parts[-1], table=node.parts[-2])
        name = node.alias or node.name
        x = self.lower_together([column], TRANSFORMATION, b"unnest")
        return Generator(x, [name], [fold(name, False, self.dialect)], by_field=True)

    def navigated_array(self, node: Any) -> Generator:
        """Redshift's ``t.items as v at i``, and ``UNPIVOT t.item as v at k``."""
        tag = b"unnest"
        if isinstance(node, exp.Pivot):
            refuse_unread(node, _READ_OF_OBJECT)
            node, tag = node.this, b"unpivot"
        names = []
        if isinstance(node, exp.AtIndex):
            names = [node.expression]
            node = node.this
        if not isinstance(node, exp.Alias):
            raise Unsupported("an array in FROM without a name")
        x = self.lower_together([node.this], TRANSFORMATION, tag)
        names = [node.args["alias"], *names]
        keys = [self.fold(name) for name in names]
        return Generator(x, [name.name for name in names], keys, by_field=True)

    def array_join(self, node: exp.Join) -> FromItem:
        """ClickHouse's ARRAY JOIN: a row for each element; without AS the column becomes its elements."""
        refuse_unread(node, _READ_OF_ARRAY_JOIN)
        arrays = [node.this, *(node.args.get("expressions") or [])]
        named = [array for array in arrays if isinstance(array, exp.Alias)]
        values = [array.this if isinstance(array, exp.Alias) else array for array in arrays]
        x = self.lower_together(values, TRANSFORMATION, b"array join")
        if len(named) < len(arrays):
            self.scopes[-1].extra.append(LoweredExpr([b"elements", x.e], x.deps, x.subs, x.rows))
        each = [self.lower_alone(array.this, TRANSFORMATION) for array in named]
        keys = [self.fold(array.args["alias"]) for array in named]
        rel = Generator(x, [array.alias for array in named], keys, each)
        kind = "LEFT ARRAY" if node.args.get("side") else "LATERAL"
        return FromItem(self.add_source(None, None, rel, None), kind)

    def call_in_from(self, node: Any, tag: bytes) -> LoweredExpr:
        """A call in FROM: its rows are a source's, whatever the function does in a select list."""
        scope = self.scopes[-1]
        generators, uncertain = len(scope.generators), len(scope.uncertain)
        aggregated = scope.aggregated
        x = self.lower_together([node], TRANSFORMATION, tag)
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
        x = _with_names(self.with_ctes(x, ctes))
        names: list[str] | None = list(columns) or self.generated_columns(node)
        keys = [fold(n, False, self.dialect) for n in names] if names is not None else None
        return Generator(x, names, keys)

    def name_arguments(self, node: Any) -> None:
        """`f(num_rows = 3)` names an argument, and asks no column; nor does ClickHouse's `file(a, CSV)`."""
        if self.dialect not in _NAME_ARGUMENTS or not isinstance(node, exp.Func):
            return
        values = {name for _, name, _ in self.named_values}
        for argument in node.expressions:
            named = argument.this if isinstance(argument, exp.EQ) else None
            if isinstance(named, exp.Column) and not named.table:
                name = exp.var(named.name.lower())
                argument.replace(exp.Kwarg(this=name, expression=argument.expression))
            elif (
                self.dialect == "clickhouse"
                and isinstance(argument, exp.Column)
                and self.fold(argument.parts[0]) not in values
            ):
                word = ".".join(part.name for part in argument.parts)
                self.called[word] = None  # a format, or a relation of `remote(...)`
                argument.replace(exp.var(word))

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
            source = table_named(source.this, self.dialect)
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

    def matched(self, args: dict[str, Any]) -> FromItem:
        """MATCH_RECOGNIZE of what FROM gives: each column is made of all that the clause names."""
        match = args["match"]
        rows = match.args.get("rows")
        if "laterals" in args or (rows is not None and "ONE ROW" not in rows.name.upper()):
            raise Unsupported("MATCH_RECOGNIZE with ALL ROWS PER MATCH")
        named = [*(match.args.get("partition_by") or []), *(match.args.get("measures") or [])]
        columns = [
            node.this if isinstance(node, exp.MatchRecognizeMeasure) else node for node in named
        ]
        names = [self.column_named(node) for node in columns]
        read: list[Any] = [exp.Star()]
        if not any(match.find_all(exp.Star)):
            read = [exp.Column(this=column.this.copy()) for column in match.find_all(exp.Column)]
        inside = {k: v for k, v in args.items() if k in ("from_", "joins")}
        subs = self.scopes[-1].subs
        for call in match.find_all(exp.Anonymous):
            call.set("this", function_name(call))
        pattern = _COMMENT.sub(" ", match.args["pattern"].name).lower()
        hashed = {k: v for k, v in match.args.items() if k not in ("alias", "pattern")}
        hashed["pattern"] = _IN_PATTERN.findall(pattern)
        clause = digest(b"match", verbatim(hashed))
        subs.append(self.query(exp.Select(expressions=read or [exp.Star()], **inside)))
        last = len(subs) - 1
        x = LoweredExpr([b"match", clause, ["Q", "in", last]], {}, {last: TRANSFORMATION})
        rel = Generator(x, [name.name for name in names], [self.fold(name) for name in names])
        alias = match.args.get("alias")
        if alias is not None and alias.args.get("columns"):
            raise Unsupported("MATCH_RECOGNIZE with new names of its columns")
        key = self.fold(alias.this) if alias is not None and alias.this else None
        return FromItem(self.add_source(key, None, rel, None), "")

    def column_named(self, node: Any) -> Any:
        """The identifier that names a column of MATCH_RECOGNIZE."""
        name = node.args["alias"] if isinstance(node, exp.Alias) else node.this
        if not isinstance(name, exp.Identifier):
            raise Unsupported("MATCH_RECOGNIZE over an expression without a name")
        return name

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
            self.hash_unread(node, _READ_OF_LATERAL_QUERY)  # OUTER APPLY: see `join`
            return self.query(inner)
        if isinstance(inner, exp.Unnest):
            self.hash_unread(node, _READ_OF_LATERAL_QUERY)
            return self.unnest(inner, columns)
        self.hash_unread(node, _READ_OF_LATERAL)
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
        each = self.stacked(inner, x) if isinstance(inner, Stack) else []
        return Generator(x, names, keys, each)

    def unnest(self, node: exp.Unnest, columns: list[str]) -> Rel:
        """UNNEST; several arrays are zipped, one column each where the names say so."""
        self.hash_unread(node, _READ_OF_UNNEST)
        x = self.lower_together(node.expressions, TRANSFORMATION, b"unnest")
        names: list[str] | None = list(columns)
        of_structs = self.fields_of_elements(node, columns)
        each = (
            [self.lower_alone(e, TRANSFORMATION) for e in node.expressions]
            if len(node.expressions) == len(columns)
            else []
        )
        if of_structs:
            names = columns = [*of_structs]
            each = [self.lower_together(es, TRANSFORMATION, b"f") for es in of_structs.values()]
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
        by_field = self.dialect == "bigquery" and not (
            of_structs or all(map(_of_scalars, node.expressions))
        )
        return Generator(x, names, keys, each, by_field)

    def fields_of_elements(self, node: Any, alias: list[str]) -> dict[str, list[Any]]:
        """The fields of the structs in an array that is written out, on BigQuery; each with its values.

        None where a field has the name of the whole struct, its alias.
        """
        if self.dialect != "bigquery" or not isinstance(node, exp.Unnest):
            return {}
        array = node.expressions[0] if len(node.expressions) == 1 else None
        structs = array.expressions if isinstance(array, exp.Array) else []
        if not structs or not all(type(s) is exp.Struct for s in structs):
            return {}
        names = field_names(structs[0])
        told_apart = {name.lower() for name in (*names, *alias)}
        if len(told_apart) < len(names) + len(alias) or any(
            len(s.expressions) != len(names) for s in structs
        ):
            return {}
        rows = [[_value_of(field) for field in s.expressions] for s in structs]
        return dict(zip(names, map(list, zip(*rows, strict=True)), strict=True))


def _value_of(field: Any) -> Any:
    return field.expression if isinstance(field, exp.PropertyEQ) else field


def _with_names(x: LoweredExpr) -> LoweredExpr:
    """A call that is given queries: their columns' names may be those of what it gives."""
    if not x.subs:
        return x
    names: list[Expr] = [["Q", "names", i] for i in x.subs]
    return LoweredExpr([b"names", x.e, *names], x.deps, x.subs, x.rows)
