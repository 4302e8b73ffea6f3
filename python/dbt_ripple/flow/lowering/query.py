"""Statements and queries: CTEs, set operations and SELECT."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final

from sqlglot import TokenType, exp

from dbt_ripple.flow import alias_resolution
from dbt_ripple.flow.fingerprint import digest
from dbt_ripple.flow.identifiers import lowered
from dbt_ripple.flow.ir import (
    EPHEMERAL_PREFIX,
    Cte,
    CteRef,
    FromItem,
    GeneratedColumns,
    Lowered,
    LoweredExpr,
    Out,
    Pivot,
    Rel,
    Select,
    SetOp,
    Table,
    Unpivot,
    Values,
    With,
)
from dbt_ripple.flow.lowering.clause_helpers import refuse_unread
from dbt_ripple.flow.lowering.from_clause import (
    READ_OF_SUBQUERY,
    READ_OF_TABLE,
    READ_OF_VALUES,
    FromClauses,
    taken_joins,
)
from dbt_ripple.flow.lowering.parse_tree import argument_names, cut_parents, verbatim
from dbt_ripple.flow.lowering.pivot import as_select
from dbt_ripple.flow.lowering.scope import Scope
from dbt_ripple.flow.reading.refusals import MAX_NESTING, Unsupported
from dbt_ripple.reasons import Code

_TABLE_NAME: Final = frozenset({"this", "db", "catalog"})
_IMPORT: Final = frozenset({"expressions", "from_", "with_"})
# Which arguments of a node its rule reads. What is set besides goes into the rows and all columns
# of the SELECT it stands in (`hash_unread`), or makes the query opaque (`refuse_unread`).
_READ_OF_WITH: Final = argument_names("expressions recursive")
_READ_OF_CTE: Final = argument_names("this alias materialized")
_FURTHER_IN: Final = -1
"""How deep a SELECT is in which what WITH names is seen from outside: a CTE beside it."""
_READ_OF_NAMED_VALUE: Final = argument_names("this alias scalar")
_READ_OF_SELECT: Final = argument_names(
    """
    with_ hint distinct expressions from_ laterals joins match prewhere where group having qualify
    windows cluster distribute sort order limit offset
    """
)
_READ_OF_SET_OPERATION: Final = argument_names(
    "with_ this expression distinct by_name side kind on"
)
_READ_OF_STATEMENT: Final = argument_names("this expression with_ kind exists replace")


def _refuse_alias_before_it(scope: Scope, outs: Sequence[Out], in_items: bool) -> None:
    """Refuse names in FROM, and perhaps in items before it, that may mean an alias of the select list.

    Behind it both count (`flow.alias_resolution`), and in its own item the column is meant.
    """
    for i, ref in enumerate(scope.refs):
        at = scope.aliases.get(ref.key)
        if at is None or ref.source != -1 or ref.up or ref.rule:
            continue
        out = outs[at]
        if isinstance(out, int) and scope.refs[out].key == ref.key:
            continue
        others = [o.x if isinstance(o, GeneratedColumns) else o for o in outs] if in_items else []
        del others[at : at + 1]
        conditions = [x for item in scope.items for x in _conditions(item)]
        if any(x == i or (isinstance(x, LoweredExpr) and i in x.deps) for x in others + conditions):
            raise Unsupported(f"cannot follow `{ref.name}`, which may be an alias")


def _conditions(item: FromItem) -> Iterator[LoweredExpr]:
    yield from item.conds
    for nested in item.nested:
        yield from _conditions(nested)


def _is_outer_behind_cross(items: Sequence[FromItem]) -> bool:
    """Whether a join that keeps rows of its right side stands behind a cross join, or a comma."""
    kinds = [item.kind for item in items]
    if "CROSS" not in kinds:
        return False
    behind = kinds[kinds.index("CROSS") + 1 :]
    return any("RIGHT" in kind or "FULL" in kind for kind in behind)


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


class Lowering(FromClauses):
    """One walk over one statement."""

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
                words = verbatim(more).lower() if isinstance(node, exp.Create) else verbatim(more)
                storage.append(LoweredExpr(digest(b"statement", words), {}, {}))
            inner = node.args.get("with_")
            named = node.this.expressions if isinstance(node.this, exp.Schema) else []
            into = node.this.this if isinstance(node.this, exp.Schema) else node.this
            if isinstance(into, exp.Table):  # its name is the node's, but not PARTITION (d = 1)
                more = {k: v for k, v in into.args.items() if v and k not in READ_OF_TABLE}
                if more:
                    storage.append(LoweredExpr(digest(b"into", verbatim(more)), {}, {}))
            columns = [c.name for c in named if isinstance(c, (exp.Identifier, exp.ColumnDef))]
            if any(not isinstance(c, exp.Identifier) for c in named):
                storage.append(LoweredExpr(digest(b"schema", verbatim(named)), {}, {}))
            node = node.expression
            if inner is not None and node.args.get("with_") is None:
                node.set("with_", inner)
        rel = self.query(node)
        if columns or storage:
            rel = self.select_star_from(rel, columns or None, {}, storage)
        return Lowered(rel, None, self.cte_count, list(self.tables), called=list(self.called))

    def query(self, node: Any) -> Rel:
        self.depth += 1
        if self.depth > 2 * MAX_NESTING:
            raise Unsupported(Code.NESTED_TOO_DEEP(levels=MAX_NESTING))
        args = node.args
        with_ = args.get("with_")
        ctes: list[Cte] = []
        named_values = len(self.named_values)
        if with_ is not None:
            ctes = self.with_(with_)
            depth = len(self.scopes) + 1
            for i in range(named_values, len(self.named_values)):
                self.named_values[i] = (depth, *self.named_values[i][1:])
        if isinstance(node, exp.Select):
            body: Rel = self.select(node)
        elif isinstance(node, exp.SetOperation):
            body = self.with_modifiers(node, self.set_operation(node), _READ_OF_SET_OPERATION)
        elif isinstance(node, exp.Subquery):
            inner = args["this"]
            if isinstance(inner, exp.Table) or args.get("joins") or args.get("pivots"):
                alone = {k: v for k, v in args.items() if k in READ_OF_SUBQUERY and k != "with_"}
                source = exp.From(this=exp.Subquery(**alone))
                body = self.select(exp.Select(expressions=[exp.Star()], from_=source))
            else:
                body = self.query(inner)
            body = self.with_modifiers(node, body, READ_OF_SUBQUERY)
        elif isinstance(node, exp.Values):
            body = self.with_modifiers(node, self.values(node, None), READ_OF_VALUES - {"pivots"})
        elif isinstance(node, exp.Table):
            body = self.select(exp.Select(expressions=[exp.Star()], from_=exp.From(this=node)))
        elif isinstance(node, exp.Pivot) and self.dialect == "duckdb":
            body = self.select(as_select(node))
        else:
            raise Unsupported(Code.NO_QUERY_BUT_A_STATEMENT(statement=node.key.upper()))
        self.depth -= 1
        cut_parents(node)
        if with_ is not None:
            self.visible_ctes.pop()
            del self.named_values[named_values:]
            return With(ctes, body) if ctes else body
        return body

    def with_(self, node: exp.With) -> list[Cte]:
        """Lower CTE definitions; the caller pops the names when the query that sees them is done."""
        for clause, name in (("udfs", "WITH FUNCTION"), ("search", "SEARCH or CYCLE of a CTE")):
            if node.args.get(clause):
                raise Unsupported(name)
        refuse_unread(node, _READ_OF_WITH)
        recursive = bool(node.args.get("recursive"))
        visible: dict[str, int] = {}
        self.visible_ctes.append(visible)
        ctes: list[Cte] = []
        ahead = [self.fold(cte.args["alias"].this) for cte in node.expressions] if recursive else []
        before = set(self.tables) if recursive else ()
        for cte in node.expressions:
            alias = cte.args.get("alias")
            key = self.fold(alias.this)
            if cte.args.get("scalar"):
                refuse_unread(cte, _READ_OF_NAMED_VALUE)
                self.named_values.append((_FURTHER_IN, key, cte.this))
                continue
            refuse_unread(cte, _READ_OF_CTE)
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
            rel = self.ephemeral(key, cte) if ephemeral else self.query(cte.this)
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

    def ephemeral(self, key: str, cte: Any) -> Table:
        """An ephemeral model, whose own text is lowered where it stands: here it is only read."""
        for word in cte.this.find_all(exp.Identifier, exp.Literal):
            self.read[id(word)] = lowered[word.args["this"]]
        return Table(key, cte.alias)

    def with_modifiers(self, node: Any, rel: Rel, reads: frozenset[str]) -> Rel:
        """Apply the ORDER BY, LIMIT and the like that stand after a set operation or a subquery."""
        if reads.issuperset(node.args):
            return rel
        modifiers = {k: v for k, v in node.args.items() if v and k not in reads}
        if "order" in modifiers and self.dialect in alias_resolution.ORDERED_BY_ANY_BRANCH:
            modifiers["order"] = self.order_by_items(modifiers["order"], node)
        return self.select_star_from(rel, None, modifiers) if modifiers else rel

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
                flags.append(verbatim(args["on"]).decode())
            ops.append(" ".join(flags))
            by_name.append(bool(args.get("by_name")))
            current = args["this"]
        branches.append(current)
        branches.reverse()
        ops.reverse()
        by_name.reverse()
        return SetOp([self.query(b) for b in branches], ops, by_name)

    def select(self, node: exp.Select) -> Rel:
        args = {name: value for name, value in node.args.items() if value}
        if "exclude" in args:  # of Redshift: what it leaves out of all that is selected
            inner = {
                name: value for name, value in args.items() if name not in ("exclude", "with_")
            }
            star = exp.Star(except_=args["exclude"])
            all_of_it = exp.From(this=exp.Subquery(this=exp.Select(**inner)))
            return self.select(exp.Select(expressions=[star], from_=all_of_it))
        if "pivots" in args:
            raise Unsupported("PIVOT of a SELECT")
        if (itself := self.relation_itself(args)) is not None:
            return itself
        scope = self.enter()
        self.of_one_row = self.one_row
        from_ = args.get("from_")
        if "match" in args:
            scope.items.append(self.matched(args))
        elif from_ is not None:
            # FROM before SELECT: sqlglot hangs the joins on the first relation.
            joins = taken_joins(from_.this)
            scope.items.append(self.from_item(from_.this, ""))
            for join in joins:
                scope.items.append(self.join(join))
        for join in () if "match" in args else args.get("joins", ()):
            scope.items.append(self.join(join))
        for lateral in args.get("laterals", ()):
            scope.items.append(self.from_item(lateral, "LATERAL"))
        if len(scope.items) > 2 and _is_outer_behind_cross(scope.items):
            # `a, b right join c` is a CROSS JOIN (b RIGHT JOIN c), which `a cross join b right join c`
            # is not; the parse tree is the same of some dialects, and the words are not.
            crosses = sum(token.token_type is TokenType.CROSS for token in self.tokens)
            scope.extra.append(LoweredExpr(digest(b"cross joins", str(crosses).encode()), {}, {}))
        for window in args.get("windows", ()):
            scope.windows[self.fold(window.this)] = window
        self.of_one_row = False
        outputs = self.select_list(args.get("expressions", ()), scope.aliases)
        if self.dialect not in alias_resolution.RESOLUTION:
            _refuse_alias_before_it(scope, outputs[2], self.dialect == "clickhouse")
        select = self.select_behind(args, scope, *outputs, _READ_OF_SELECT)
        self.leave()
        return select

    def relation_itself(self, args: dict[str, Any]) -> Rel | None:
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
