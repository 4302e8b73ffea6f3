"""Edits that mean the same: whatever they are made on, no test may be selected.

Each takes a world and a model and answers the edit, or None where it does not apply. What comes out
is executed like any other edit: one that changes what a test returns is no refactor, and a fault of
the catalogue.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import msgspec
import sqlglot
from report import IN_WORDS
from sqlglot import exp
from sqlglot.tokens import TokenType
from world import Edit, World, relation, with_inlined, without_inlined

from dbt_ripple.artifacts import Node
from dbt_ripple.artifacts.project import Contract
from dbt_ripple.flow.functions import functions
from dbt_ripple.flow.may_fail import Evaluated
from dbt_ripple.graph.order_seen import OrderReads
from dbt_ripple.graph.traversal import reach_all

sys.path.append(str(Path(__file__).parents[1]))  # as pytest does
from generators.rewordings import REWORDINGS

Refactor = Callable[[World, str], Edit | None]


def parsed(node: Node) -> tuple[Any, list[Any]]:
    return without_inlined(sqlglot.parse_one(node.compiled_code or "", dialect="duckdb"))


def text_of(tree: Any, inlined: list[Any]) -> str:
    text: str = with_inlined(tree, inlined).sql("duckdb", pretty=True)
    return text


def has_branches(node: Node) -> bool:
    """Whether compiled SQL is only one of the texts a model can compile to: its Jinja decides."""
    return any(name in node.raw_code for name in ("is_incremental", "columns_of(", "values_of("))


def own_ctes(tree: Any) -> list[Any]:
    with_ = tree.args.get("with_")
    return [] if with_ is None or with_.args.get("recursive") else list(with_.expressions)


def on_text(change: Callable[[str], str]) -> Refactor:
    """A refactor of the text, in which Jinja does not matter."""

    def refactor(world: World, unique_id: str) -> Edit | None:
        node = world.project.nodes[unique_id]
        return Edit(
            sql={unique_id: change(node.compiled_code or "")},
            raw={unique_id: change(node.raw_code)},
        )

    return refactor


def on_tree(change: Callable[[World, Any], Any | None]) -> Refactor:
    """A refactor of the parse tree: answers the new tree, or None."""

    def refactor(world: World, unique_id: str) -> Edit | None:
        node = world.project.nodes[unique_id]
        if has_branches(node):
            return None
        tree, inlined = parsed(node)
        made = change(world, tree)
        return None if made is None else Edit(sql={unique_id: text_of(made, inlined)})

    return refactor


# --- text ------------------------------------------------------------------------------------------


def spaced(text: str) -> str:
    """Other line breaks and indents; lines that hold a comment keep their end."""
    lines = text.splitlines()
    return "\n\n".join(f"\t   {line}  " for line in lines) + "\n\n"


def reformatted(world: World, tree: Any) -> Any:
    return tree


def commented(text: str) -> str:
    """Comments before clauses and lines of comments around."""
    if "{" in text:
        return f"-- who reads this: everyone\n{text}\n-- the end; select 1\n"
    places = [
        t.start
        for t in sqlglot.tokenize(text, dialect="duckdb")
        if t.token_type in (TokenType.SELECT, TokenType.FROM, TokenType.WHERE, TokenType.ON)
    ]
    for place in reversed(places):
        text = f"{text[:place]}/* it's why -- not */ {text[place:]}"
    return f"-- who reads this: everyone\n{text}\n-- the end; select 1\n"


# --- CTEs ------------------------------------------------------------------------------------------


def ctes_renamed(world: World, tree: Any) -> Any | None:
    ctes = own_ctes(tree)
    names = [c.alias for c in ctes]
    if not ctes or len(set(names)) != len(names):
        return None
    if any(len(list(c.this.find_all(exp.With))) for c in ctes):
        return None
    for table in list(tree.find_all(exp.Table)):
        if table.name in names and not table.db:
            if not table.alias:
                table.set("alias", exp.TableAlias(this=exp.to_identifier(table.name)))
            table.set("this", exp.to_identifier(f"{table.name}_renamed"))
    for cte in ctes:
        cte.args["alias"].set("this", exp.to_identifier(f"{cte.alias}_renamed"))
    return tree


def cte_split(world: World, tree: Any) -> Any | None:
    """A filter moves into a CTE of its own, before the query that filtered."""
    for cte in own_ctes(tree):
        select = cte.this
        if filter_moves(select):
            name = f"{cte.alias}_filtered"
            first, rest = filter_apart(select, name)
            with_ = tree.args["with_"]
            place = with_.expressions.index(cte)
            cte.set("this", rest)
            made = exp.CTE(this=first, alias=exp.TableAlias(this=exp.to_identifier(name)))
            with_.set("expressions", [*with_.expressions[:place], made, *with_.expressions[place:]])
            return tree
    if filter_moves(tree) and not own_ctes(tree):
        first, rest = filter_apart(tree, "rows_filtered")
        made = exp.CTE(this=first, alias=exp.TableAlias(this=exp.to_identifier("rows_filtered")))
        rest.set("with_", exp.With(expressions=[made]))
        return rest
    return None


def filter_moves(select: Any) -> bool:
    source = select.args.get("from_") if isinstance(select, exp.Select) else None
    return (
        source is not None
        and isinstance(source.this, exp.Table)
        and not source.this.args.get("pivots")
        and not select.args.get("joins")
        and not select.args.get("laterals")
        and select.args.get("where") is not None
        and select.args.get("with_") is None
    )


def filter_apart(select: Any, name: str) -> tuple[Any, Any]:
    table = select.args["from_"].this
    alias = table.alias_or_name
    first = exp.select("*").from_(table.copy()).where(select.args["where"].this.copy())
    rest = select.copy()
    rest.set("where", None)
    rest.args["from_"].set("this", exp.alias_(exp.to_table(name), alias, table=True))
    return first, rest


def cte_inlined(world: World, tree: Any) -> Any | None:
    """A CTE that is read once becomes a subquery where it is read."""
    for cte in own_ctes(tree):
        reads = [t for t in tree.find_all(exp.Table) if t.name == cte.alias and not t.db]
        if len(reads) != 1 or reads[0].args.get("pivots") or cte.args["alias"].columns:
            continue
        read = reads[0]
        with_ = tree.args["with_"]
        subquery = exp.Subquery(
            this=cte.this.copy(), alias=exp.TableAlias(this=exp.to_identifier(read.alias_or_name))
        )
        read.replace(subquery)
        rest = [c for c in with_.expressions if c.alias != cte.alias]
        if rest:
            with_.set("expressions", rest)
        else:
            tree.set("with_", None)
        return tree
    return None


def ctes_reordered(world: World, tree: Any) -> Any | None:
    ctes = own_ctes(tree)
    names = {c.alias for c in ctes}
    for index in range(len(ctes) - 1):
        one, two = ctes[index], ctes[index + 1]
        if one.alias in {t.name for t in two.find_all(exp.Table)} or one.alias == two.alias:
            continue
        if any(t.name in names and t.db for t in tree.find_all(exp.Table)):
            return None
        ctes[index], ctes[index + 1] = two, one
        tree.args["with_"].set("expressions", ctes)
        return tree
    return None


def wrapped_in_star(world: World, tree: Any) -> Any | None:
    return exp.select("*").from_(
        exp.Subquery(this=tree, alias=exp.TableAlias(this=exp.to_identifier("wrapped_whole")))
    )


def aliases_changed(world: World, tree: Any) -> Any | None:
    """Tables get other aliases, and the columns that are read by them."""
    sources: dict[str, list[Any]] = {}
    for source in tree.find_all(exp.From, exp.Join):
        table = source.this
        if isinstance(table, (exp.Table, exp.Subquery)) and table.alias_or_name:
            sources.setdefault(table.alias_or_name.lower(), []).append(table)
    changed = False
    for name, tables in sources.items():
        table = tables[0]
        if len(tables) != 1 or table.args.get("pivots"):
            continue
        if table.args.get("alias") is not None and table.args["alias"].columns:
            continue
        select = table.find_ancestor(exp.Select)
        if select is None or any(
            c.table.lower() == name and c.find_ancestor(exp.Select) is None
            for c in tree.find_all(exp.Column)
        ):
            continue
        for column in tree.find_all(exp.Column):
            if column.table.lower() == name:
                column.set("table", exp.to_identifier(f"{name}_too"))
        table.set("alias", exp.TableAlias(this=exp.to_identifier(f"{name}_too")))
        changed = True
    return tree if changed else None


# --- several nodes ---------------------------------------------------------------------------------


def last_select(tree: Any) -> Any | None:
    """The SELECT whose list is the model's columns, where there is one that says them."""
    return tree if isinstance(tree, exp.Select) and not tree.args.get("distinct") else None


def readers(world: World, unique_id: str) -> list[str]:
    return [
        c
        for c in world.project.children.get(unique_id, ())
        if world.project.nodes[c].resource_type in ("model", "snapshot", "test")
        and world.project.nodes[c].compiled_code
    ]


def whole_rows(world: World, unique_id: str) -> bool:
    """Whether a node asks for whatever columns there are: then somebody reads each."""
    node = world.project.nodes[unique_id]
    if "columns_of(" in node.raw_code:
        return True
    return node.resource_type in ("test", "snapshot") and "*" in (node.compiled_code or "").replace(
        "count(*)", ""
    )


def simple_home(world: World, unique_id: str) -> bool:
    """Whether others can be told to read something else of the model: it is a plain relation."""
    node = world.project.nodes[unique_id]
    return not (
        node.is_ephemeral
        or node.contract_enforced
        or node.config.get("post-hook")
        or has_branches(node)
        or node.resource_type != "model"
    )


def column_renamed(world: World, unique_id: str) -> Edit | None:
    """A column gets another name, and all that read the model read it by that."""
    if not simple_home(world, unique_id):
        return None
    nodes = world.project.nodes
    below = readers(world, unique_id)
    if any(has_branches(nodes[r]) or nodes[r].is_ephemeral for r in below):
        return None
    tree, inlined = parsed(nodes[unique_id])
    select = last_select(tree)
    if select is None:
        return None
    names = [c.name for c in world.columns[unique_id]]
    for item in select.expressions:
        name = item.alias_or_name
        ordered = select.args.get("order")
        if item.is_star or name not in names or (ordered and name in ordered.sql("duckdb")):
            continue
        if (
            select.args.get("group")
            and any(
                c.name == name and not c.table for c in select.args["group"].find_all(exp.Column)
            )
            and isinstance(item, exp.Alias)
        ):
            continue
        if any(
            c.name == name and not c.table and c.find_ancestor(exp.Having, exp.Qualify, exp.Where)
            for c in select.find_all(exp.Column)
        ) and isinstance(item, exp.Alias):
            continue
        inner = item.this if isinstance(item, exp.Alias) else item
        item.replace(exp.alias_(inner.copy(), "renamed_column"))
        sql = {unique_id: text_of(tree, inlined)}
        listed = ", ".join(f'renamed_column as "{n}"' if n == name else f'"{n}"' for n in names)
        here = relation(nodes[unique_id])
        for reader in below:
            read, theirs = parsed(nodes[reader])
            for table in list(read.find_all(exp.Table)):
                if ".".join(p.name for p in table.parts) == here.replace('"', ""):
                    alias = table.alias_or_name
                    if table.args.get("pivots"):
                        return None
                    inside = sqlglot.parse_one(f"select {listed} from {here}", dialect="duckdb")
                    table.replace(
                        exp.Subquery(
                            this=inside, alias=exp.TableAlias(this=exp.to_identifier(alias))
                        )
                    )
            sql[reader] = text_of(read, theirs)
        return Edit(sql=sql)
    return None


def imported(tree: Any, table: Any) -> Any:
    """The relation that a table in FROM is: a CTE that is all of one stands for it."""
    for cte in own_ctes(tree):
        if cte.alias != table.name or table.db or not isinstance(cte.this, exp.Select):
            continue
        source = cte.this.args.get("from_")
        if source is None or not isinstance(source.this, exp.Table):
            continue
        if cte.this.sql() == f"SELECT * FROM {source.this.sql()}":
            return source.this
    return table


def may_give_rows(call: exp.Func) -> bool:
    """Whether a call may give several rows for one, or one for several."""
    kind_of_function = functions("duckdb").kind(
        call.name.lower() if isinstance(call, exp.Anonymous) else call.sql_name().lower()
    )
    return (
        kind_of_function != "scalar"
        if isinstance(call, exp.Anonymous)
        else kind_of_function == "generator"
    )


def expression_moved(world: World, unique_id: str) -> Edit | None:
    """An expression over one parent's columns is computed in that parent."""
    nodes = world.project.nodes
    if has_branches(nodes[unique_id]):
        return None
    tree, inlined = parsed(nodes[unique_id])
    for select in tree.find_all(exp.Select):
        source = select.args.get("from_")
        if source is None or not isinstance(source.this, exp.Table) or select.args.get("group"):
            continue
        table = source.this
        name = ".".join(p.name for p in imported(tree, table).parts)
        parent = next(
            (
                p
                for p in world.project.parents[unique_id]
                if p in world.columns and relation(nodes[p]).replace('"', "") == name
            ),
            None,
        )
        if parent is None or not simple_home(world, parent) or table.args.get("pivots"):
            continue
        if any(whole_rows(world, r) for r in readers(world, parent)):
            continue
        above, theirs = parsed(nodes[parent])
        if last_select(above) is None:
            continue
        held = {c.name for c in world.columns[parent]}
        joined = bool(select.args.get("joins") or select.args.get("laterals"))
        for item in select.expressions:
            inner = item.this if isinstance(item, exp.Alias) else item
            columns = list(inner.find_all(exp.Column))
            if (
                isinstance(inner, (exp.Column, exp.Star))
                or not columns
                or inner.find(exp.Query, exp.Window, exp.AggFunc, exp.Star)
                or any(map(may_give_rows, inner.find_all(exp.Func)))
                or any(c.name not in held for c in columns)
                or any(c.table != table.alias_or_name for c in columns if c.table or joined)
            ):
                continue
            moved = inner.copy()
            for column in list(moved.find_all(exp.Column)):
                column.set("table", None)
            upstream = exp.select("*", exp.alias_(moved, "moved_here")).from_(
                exp.Subquery(this=above, alias=exp.TableAlias(this=exp.to_identifier("as_it_was")))
            )
            alias = item.alias_or_name
            item.replace(exp.alias_(exp.column("moved_here", table=table.alias_or_name), alias))
            return Edit(sql={parent: text_of(upstream, theirs), unique_id: text_of(tree, inlined)})
    return None


def model_split(world: World, unique_id: str) -> Edit | None:
    """One of the model's CTEs, or all of it, becomes a model of its own."""
    node = world.project.nodes[unique_id]
    if has_branches(node) or node.resource_type != "model":
        return None
    tree, inlined = parsed(node)
    home = next(n for n in world.project.nodes.values() if n.resource_type == "model")
    name = f"{node.alias or node.name}__part"
    there = f'"{home.database}"."{home.schema}"."{name}"'
    ctes = own_ctes(tree)
    if ctes:
        place = len(ctes) // 2
        part = ctes[place].this.copy()
        if part.args.get("with_") is not None:
            return None
        if ctes[:place]:
            part.set("with_", exp.With(expressions=[c.copy() for c in ctes[:place]]))
        ctes[place].set("this", exp.select("*").from_(exp.to_table(there, dialect="duckdb")))
    else:
        part = tree
        tree = exp.select("*").from_(exp.to_table(there, dialect="duckdb"))
    sql = text_of(part, [c.copy() for c in inlined])
    new = msgspec.structs.replace(
        node,
        unique_id=f"{unique_id}__part",
        name=name,
        alias=name,
        relation_name=there,
        database=home.database,
        schema=home.schema,
        compiled_code=sql,
        raw_code=sql,
        config={"materialized": "view"},
        contract=Contract(),
        columns={},
        version=None,
        latest_version=None,
    )
    return Edit(sql={unique_id: text_of(tree, inlined)}, added=[new])


def view_to_table(world: World, unique_id: str) -> Edit | None:
    node = world.project.nodes[unique_id]
    other = {"view": "table", "table": "view"}.get(node.materialized or "")
    if other is None or node.config.get("post-hook") or node.contract_enforced:
        return None
    # A table's rows may lie in another order than a view gives them: who sees that, sees the change.
    project = world.project
    inlined = lambda u: project.nodes[u].is_ephemeral  # noqa: E731
    readers = reach_all([unique_id], project.children, through=inlined)
    reads = OrderReads(project, project.types)
    if any(reads.of(project.nodes[u]) for u in readers if u != unique_id):
        return None
    # What may fail fails where a view is read, and where a table is built.
    views = reach_all(
        [unique_id], project.parents, keep=lambda u: project.nodes[u].materialized == "view"
    )
    if any(Evaluated(project.nodes[u].compiled_code or "", "duckdb").may_fail() for u in views):
        return None
    return Edit(config={unique_id: {"materialized": other}})


def goes_by_all(tree: Any) -> bool:
    """Whether a query groups or orders by all columns, of which a new one is one more."""
    return any(g.args.get("all") for g in tree.find_all(exp.Group)) or any(
        isinstance(o.this, exp.Var) and o.name.upper() == "ALL" for o in tree.find_all(exp.Ordered)
    )


def new_column(world: World, unique_id: str) -> Edit | None:
    """A column more, which nobody names."""
    node = world.project.nodes[unique_id]
    if has_branches(node) or node.contract_enforced or node.resource_type != "model":
        return None
    if any(whole_rows(world, r) for r in world.below[unique_id]):
        return None
    tree, inlined = parsed(node)
    select = last_select(tree)
    if select is None or goes_by_all(tree):
        return None
    inner = exp.Count(this=exp.Star()) if select.args.get("group") else exp.Literal.number("7")
    select.append("expressions", exp.alias_(inner, "nobody_reads_this"))
    return Edit(sql={unique_id: text_of(tree, inlined)})


def operands_swapped(world: World, tree: Any) -> Any | None:
    """Both sides of AND, OR, = and <> in the other order."""
    swappable = list(tree.find_all(exp.And, exp.Or, exp.EQ, exp.NEQ))
    plain = (exp.Column, exp.Literal, exp.Func, exp.Paren, exp.Cast)
    swappable = [
        node
        for node in swappable
        if isinstance(node, exp.Connector)
        or (isinstance(node.this, plain) and isinstance(node.expression, plain))
    ]
    for node in swappable:
        left, right = node.this, node.expression
        node.set("this", right)
        node.set("expression", left)
    return tree if swappable else None


def rows_counted_by_one(world: World, tree: Any) -> Any | None:
    """count(1) for count(*)."""
    row_counts = [count for count in tree.find_all(exp.Count) if isinstance(count.this, exp.Star)]
    for count in row_counts:
        count.set("this", exp.Literal.number(1))
    return tree if row_counts else None


CATALOGUE: Final[dict[str, Refactor]] = {
    "other white space": on_text(spaced),
    "reformatted": on_tree(reformatted),
    "commented": on_text(commented),
    "CTEs renamed": on_tree(ctes_renamed),
    "CTE split": on_tree(cte_split),
    "CTE inlined": on_tree(cte_inlined),
    "CTEs reordered": on_tree(ctes_reordered),
    "wrapped in select *": on_tree(wrapped_in_star),
    "table aliases changed": on_tree(aliases_changed),
    "operands swapped": on_tree(operands_swapped),
    "count(1) for count(*)": on_tree(rows_counted_by_one),
    "column renamed with its readers": column_renamed,
    "expression moved upstream": expression_moved,
    "model split in two": model_split,
    "view to table": view_to_table,
    "new column nobody reads": new_column,
}
"""Every refactor by the name the report has."""


def in_words(reword: Callable[[Any], Any]) -> Refactor:
    return on_tree(lambda world, tree: reword(tree))


IN_OTHER_WORDS: Final[dict[str, Refactor]] = {
    IN_WORDS + name: in_words(reword) for name, reword in REWORDINGS.items()
}
"""Those that only the second comparison sees through."""
