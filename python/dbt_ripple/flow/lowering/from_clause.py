"""FROM: tables, joins, subqueries and VALUES."""

from __future__ import annotations

from typing import Any, Final

from sqlglot import exp

from dbt_ripple.flow import alias_resolution
from dbt_ripple.flow.fingerprint import digest
from dbt_ripple.flow.functions import FLATTEN_COLUMNS
from dbt_ripple.flow.identifiers import fold
from dbt_ripple.flow.ir import (
    JOIN,
    TRANSFORMATION,
    CteRef,
    FromItem,
    Generator,
    LoweredExpr,
    Rel,
    Table,
    Values,
)
from dbt_ripple.flow.lowering.after_from import AfterFrom
from dbt_ripple.flow.lowering.clause_helpers import READ_OF_NAME, as_written, refuse_unread
from dbt_ripple.flow.lowering.parse_tree import argument_names, as_list, verbatim
from dbt_ripple.flow.lowering.pivot import Pivots, without_group
from dbt_ripple.flow.lowering.table_functions import TableFunctions
from dbt_ripple.flow.reading.dialects import function_name
from dbt_ripple.flow.reading.refusals import Unsupported

READ_OF_SUBQUERY: Final = argument_names("with_ this alias pivots joins")
_READ_OF_NESTED_JOINS: Final = argument_names("this joins")
READ_OF_VALUES: Final = argument_names("with_ expressions alias pivots")
READ_OF_TABLE: Final = argument_names("this db catalog alias joins pivots")
_READ_OF_FUNCTION: Final = argument_names("this db catalog alias joins pivots")
_HIDES_SEMI_JOINED: Final = frozenset({"databricks", "duckdb", "spark"})
"""Where nothing after a SEMI or ANTI join sees its right side (ClickHouse shows it)."""
_READ_OF_JOIN: Final = argument_names("this on side kind using method match_condition")


def _is_bare(node: Any) -> bool:
    """Whether a parenthesis in FROM holds joined relations rather than a query."""
    if isinstance(node, exp.Table):
        return True
    if not isinstance(node, exp.Subquery):
        return False
    return bool(node.args.get("joins")) or (_is_bare(node.this) and not node.args.get("alias"))


def _begins_with_types(row: Any) -> bool:
    """Whether ClickHouse's VALUES says its columns first: `('id Int, k String', (1, 'a'), ...)`."""
    first, second = row.expressions[:2] if len(row.expressions) > 1 else (None, None)
    return isinstance(first, exp.Literal) and first.is_string and isinstance(second, exp.Tuple)


def taken_joins(first: Any) -> list[Any]:
    """The joins that sqlglot hangs on the first of the joined relations."""
    joins = first.args.get("joins") or []
    if isinstance(first, exp.Subquery):  # a bracket reads those inside itself
        first.args["joins"] = None
    return list(joins)


class FromClauses(AfterFrom, TableFunctions, Pivots):
    """FROM."""

    def join(self, node: exp.Join) -> FromItem:
        args = node.args
        if args.get("kind") == "ARRAY":
            return self.array_join(node)
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
            for key in as_list(args["using"]):
                if isinstance(key, exp.Column):
                    refuse_unread(key, READ_OF_NAME)
            item.using = [
                self.fold(u.this if isinstance(u, exp.Column) else u)
                for u in as_list(args["using"])
            ]
        if args.get("on") is not None:
            item.conds = self.conjuncts(args["on"], JOIN)
        if args.get("match_condition"):
            matched = self.lower_together([args["match_condition"]], JOIN, b"match_condition")
            item.conds = [*item.conds, matched]
        of_item = args.get("on") is not None or args.get("using") or comma
        if comma and self.dialect in alias_resolution.COMMA_IS_A_JOIN:
            of_item = False
        if args.get("pivots") or (node.this.args.get("pivots") and not of_item):
            # Behind a join without a condition engines turn all that is joined so far, not its last item.
            raise Unsupported("PIVOT of a join")
        self.hash_unread(node, _READ_OF_JOIN)
        for nested in node.this.args.get("joins") or []:
            if isinstance(node.this, exp.TableFromRows):
                raise Unsupported("joins within a table function")
            if isinstance(node.this, exp.Table):
                # `a join b join c on .. on ..`: the parser hangs the inner join on the table.
                item.nested = [*(item.nested or [FromItem(item.source, "")]), self.join(nested)]
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
            self.hash_unread(node, _READ_OF_NESTED_JOINS)
            joins = taken_joins(node.this)
            nested = [self.from_item(node.this, "")]
            nested.extend(self.join(j) for j in joins)
            nested.extend(self.join(j) for j in node.args.get("joins") or [])
            return FromItem(-1, kind, nested)
        return FromItem(self.source(node), kind)

    def source(self, node: Any) -> int:
        if "pivots" in node.args and self.dialect == "duckdb":
            node = without_group(node)
        node.parent = None
        args = node.args
        alias, columns = self.alias_and_columns(node)
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
                rel = self.function_as_table(node, columns)
                columns = []
                if alias is None:
                    alias = function_name(node.this)
        else:
            given = columns
            rel, columns = self.unnamed_relation(node, columns)
            if given and self.fields_of_elements(node, given):
                alias = fold(given[0], False, self.dialect)  # the name of each struct
        for pivot in args.get("pivots") or []:
            rel = self.pivot(pivot, rel, columns)
            columns = []
            pivot_alias = pivot.args.get("alias")
            if pivot_alias is not None:
                alias = self.fold(pivot_alias.this) if pivot_alias.this else alias
                columns = self.column_names(pivot_alias)
        in_brackets = isinstance(node, exp.Subquery)
        return self.add_source(alias, full_name, rel, columns or None, in_brackets)

    def alias_and_columns(self, node: Any) -> tuple[str | None, list[str]]:
        """The key of an item's alias, and the names that it gives to columns."""
        alias_node = node.args.get("alias")
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
                types = digest(b"columns", verbatim(listed_columns))
                self.scopes[-1].extra.append(LoweredExpr(types, {}, {}))
        return alias, columns

    def function_as_table(self, node: exp.Table, columns: list[str]) -> Rel:
        """A table function, which sqlglot takes for the name of a table."""
        if node.args.get("ordinality") and len(columns) < 2:
            raise Unsupported("WITH ORDINALITY without names of its columns")
        if node.this is None or node.this == "":
            raise Unsupported("a relation without a name")
        rel = self.table_function(node.this, columns, self.parts(node)[:-1])
        self.hash_unread(node, _READ_OF_FUNCTION)
        return rel

    def unnamed_relation(self, node: Any, columns: list[str]) -> tuple[Rel, list[str]]:
        """A relation that is not named, and those of the columns' new names that are still to be given."""
        args = node.args
        rel: Rel
        if isinstance(node, exp.Subquery):
            inner = node.this
            if isinstance(inner, exp.Table) or args.get("joins"):
                self.hash_unread(node, READ_OF_SUBQUERY)
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
            rel = self.values(node, args.get("alias"))
            self.hash_unread(node, READ_OF_VALUES)
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
            self.hash_unread(node, _READ_OF_FUNCTION)
            columns = []
        elif isinstance(node, (exp.Alias, exp.AtIndex, exp.Pivot)) and self.dialect == "redshift":
            rel = self.navigated_array(node)
            columns = []
        elif isinstance(node, (exp.Func, exp.UDTF)):
            rel = self.table_function(node, columns)
            columns = []
        else:
            raise Unsupported(f"cannot follow {as_written(node)} in FROM")
        return rel, columns

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
        more = not READ_OF_TABLE.issuperset(node.args)
        extra = (
            b"".join(
                digest(name.encode(), verbatim(value))
                for name, value in node.args.items()
                if value and name not in READ_OF_TABLE
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
                        self.select_star_from(rel, None, {}, [LoweredExpr(extra, {}, {})])
                        if extra
                        else rel
                    )
        key = ".".join(parts)
        self.tables[key] = None
        return Table(key, ".".join(p.name for p in node.parts), extra)

    def values(self, node: exp.Values, alias: Any) -> Rel:
        scope = self.enter()
        self.of_one_row = self.one_row
        rows = node.expressions
        if self.dialect == "clickhouse" and _begins_with_types(rows[0]):
            raise Unsupported("VALUES with the types of its columns")
        width = max((len(r.expressions) if isinstance(r, exp.Tuple) else 1) for r in rows)
        columns = []
        for i in range(width):
            cells = [
                (r.expressions[i] if i < len(r.expressions) else exp.Null())
                if isinstance(r, exp.Tuple)
                else r
                for r in rows
            ]
            columns.append(self.lower_together(cells, TRANSFORMATION, b"values"))
        alias = alias or node.args.get("alias")
        named = [c.name for c in (alias.args.get("columns") or [])] if alias else []
        default = "column" if self.dialect in ("postgres", "snowflake", "redshift") else "col"
        first = 0 if self.dialect in ("duckdb",) else 1
        names = [named[i] if i < len(named) else f"{default}{i + first}" for i in range(width)]
        keys = [fold(n, False, self.dialect) for n in names]
        self.leave()
        return Values(columns, names, keys, len(rows), scope.refs, scope.subs)
