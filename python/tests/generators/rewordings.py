"""The same query in other words: refactors that only the second comparison sees through.

Each answers the tree in other words, or None where there is nothing in it to say otherwise.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from sqlglot import exp

Reword = Callable[[Any], Any]


def each(*types: type, top: bool = True) -> Callable[[Reword], Reword]:
    """A refactor of every node of these classes; `change` answers the new node, or None."""

    def of(change: Reword) -> Reword:
        def reword(tree: Any) -> Any:
            made = False
            for node in list(tree.find_all(*types)):
                if node.root() is not tree or isinstance(node.parent, exp.Pivot):
                    continue
                new = change(node)
                if new is None:
                    continue
                made = True
                if new is not node:
                    node.replace(exp.Paren(this=new) if isinstance(new, _LOOSE) else new)
            return tree if made else None

        return reword

    return of


_LOOSE: Final = (exp.Connector, exp.Not, exp.Predicate)


def paren(node: Any) -> Any:
    return exp.Paren(this=node.copy())


@each(exp.And)
def de_morgan(node: Any) -> Any:
    sides = [exp.Not(this=paren(side)) for side in (node.this, node.expression)]
    return exp.Not(this=exp.Paren(this=exp.Or(this=sides[0], expression=sides[1])))


@each(exp.GT, exp.LT, exp.GTE, exp.LTE)
def negated(node: Any) -> Any:
    other = {exp.GT: exp.LTE, exp.LTE: exp.GT, exp.LT: exp.GTE, exp.GTE: exp.LT}[type(node)]
    return exp.Not(
        this=exp.Paren(this=other(this=node.this.copy(), expression=node.expression.copy()))
    )


@each(exp.GT, exp.LT, exp.GTE, exp.LTE)
def flipped(node: Any) -> Any:
    other = {exp.GT: exp.LT, exp.LT: exp.GT, exp.GTE: exp.LTE, exp.LTE: exp.GTE}[type(node)]
    return other(this=node.expression.copy(), expression=node.this.copy())


def literals(nodes: Any) -> bool:
    return all(isinstance(n, exp.Literal) for n in nodes)


@each(exp.In)
def or_for_in(node: Any) -> Any:
    if not node.expressions or not literals(node.expressions):
        return None
    disjunction = None
    for item in node.expressions:
        one = exp.EQ(this=node.this.copy(), expression=item.copy())
        disjunction = one if disjunction is None else exp.Or(this=disjunction, expression=one)
    return disjunction


@each(exp.EQ)
def in_for_equal(node: Any) -> Any:
    if not isinstance(node.expression, exp.Literal) or not isinstance(node.this, exp.Column):
        return None
    return exp.In(this=node.this.copy(), expressions=[node.expression.copy()])


@each(exp.Between)
def two_for_between(node: Any) -> Any:
    low, high = node.args["low"].copy(), node.args["high"].copy()
    return exp.And(
        this=exp.GTE(this=node.this.copy(), expression=low),
        expression=exp.LTE(this=node.this.copy(), expression=high),
    )


@each(exp.Where)
def and_true(node: Any) -> Any:
    node.set("this", exp.And(this=exp.Boolean(this=True), expression=paren(node.this)))
    return node


def where_true(tree: Any) -> Any:
    made = False
    for select in tree.find_all(exp.Select):
        if select.args.get("from_") is not None and select.args.get("where") is None:
            select.set(
                "where",
                exp.Where(
                    this=exp.EQ(this=exp.Literal.number(1), expression=exp.Literal.number(1))
                ),
            )
            made = True
    return tree if made else None


@each(exp.Where)
def said_twice(node: Any) -> Any:
    node.set("this", exp.And(this=paren(node.this), expression=paren(node.this)))
    return node


@each(exp.Where)
def not_null_too(node: Any) -> Any:
    first = node.this
    while isinstance(first, (exp.And, exp.Paren)):
        first = first.this
    if not isinstance(first, (exp.GT, exp.LT, exp.EQ, exp.NEQ)) or not isinstance(
        first.this, exp.Column
    ):
        return None
    is_not_null = exp.Not(this=exp.Is(this=first.this.copy(), expression=exp.Null()))
    node.set("this", exp.And(this=is_not_null, expression=paren(node.this)))
    return node


@each(exp.Case)
def else_null(node: Any) -> Any:
    if node.args.get("default") is not None:
        return None
    node.set("default", exp.Null())
    return node


@each(exp.Case)
def searched_case(node: Any) -> Any:
    if node.this is None:
        return None
    for branch in node.args["ifs"]:
        branch.set("this", exp.EQ(this=node.this.copy(), expression=branch.this.copy()))
    node.set("this", None)
    return node


@each(exp.Case)
def case_in_else(node: Any) -> Any:
    branches = node.args["ifs"]
    if node.this is not None or len(branches) < 2:
        return None
    rest = exp.Case(ifs=[b.copy() for b in branches[1:]], default=node.args.get("default"))
    return exp.Case(ifs=[branches[0].copy()], default=rest)


@each(exp.Case)
def case_as_if(node: Any) -> Any:
    branches = node.args["ifs"]
    if node.this is not None or len(branches) != 1:
        return None
    false = node.args.get("default") or exp.Null()
    return exp.If(
        this=branches[0].this.copy(), true=branches[0].args["true"].copy(), false=false.copy()
    )


@each(exp.Coalesce)
def case_for_coalesce(node: Any) -> Any:
    if len(node.expressions) != 1 or node.this.find(exp.Query):
        return None
    test = exp.Not(this=exp.Is(this=exp.Paren(this=node.this.copy()), expression=exp.Null()))
    return exp.Case(
        ifs=[exp.If(this=test, true=node.this.copy())], default=node.expressions[0].copy()
    )


@each(exp.Coalesce)
def case_on_null_for_coalesce(node: Any) -> Any:
    if len(node.expressions) != 1 or node.this.find(exp.Query):
        return None
    test = exp.Is(this=exp.Paren(this=node.this.copy()), expression=exp.Null())
    return exp.Case(
        ifs=[exp.If(this=test, true=node.expressions[0].copy())], default=node.this.copy()
    )


@each(exp.Nullif)
def case_for_nullif(node: Any) -> Any:
    test = exp.EQ(this=paren(node.this), expression=paren(node.expression))
    return exp.Case(ifs=[exp.If(this=test, true=exp.Null())], default=node.this.copy())


@each(exp.Mul)
def product_turned(node: Any) -> Any:
    return exp.Mul(this=paren(node.expression), expression=paren(node.this))


@each(exp.Add)
def sum_turned(node: Any) -> Any:
    return exp.Add(this=paren(node.expression), expression=paren(node.this))


def plain_call(node: Any) -> bool:
    return not isinstance(node.parent, (exp.Filter, exp.Window, exp.WithinGroup, exp.IgnoreNulls))


@each(exp.Sum, exp.Min, exp.Max, exp.Avg)
def filter_for_case(node: Any) -> Any:
    case = node.this
    if not isinstance(case, exp.Case) or not plain_call(node) or case.this is not None:
        return None
    default = case.args.get("default")
    if len(case.args["ifs"]) != 1 or (default is not None and not isinstance(default, exp.Null)):
        return None
    branch = case.args["ifs"][0]
    call = type(node)(this=branch.args["true"].copy())
    return exp.Filter(this=call, expression=exp.Where(this=branch.this.copy()))


@each(exp.Filter)
def case_for_filter(node: Any) -> Any:
    call, where = node.this, node.expression
    if type(call) not in (exp.Count, exp.Sum, exp.Min, exp.Max, exp.Avg):
        return None
    value = exp.Literal.number(1) if isinstance(call.this, exp.Star) else call.this
    if isinstance(value, exp.Distinct):
        return None
    return type(call)(this=exp.Case(ifs=[exp.If(this=where.this.copy(), true=value.copy())]))


def plain_joins(select: Any) -> list[Any]:
    """The joins of a SELECT, where all are inner or left joins of relations by ON."""
    joins = select.args.get("joins") or []
    ours = {"this", "on", "kind", "side"}
    relations = (
        [select.args["from_"].this, *(j.this for j in joins)] if select.args.get("from_") else []
    )
    good = all(
        {k for k, v in j.args.items() if v} <= ours
        and j.args.get("on") is not None
        and (j.args.get("side") or "") in ("", "LEFT")
        and (j.args.get("kind") or "") in ("", "INNER", "OUTER")
        for j in joins
    ) and all(isinstance(r, (exp.Table, exp.Subquery)) and r.alias_or_name for r in relations)
    seen = (
        select.is_star
        or select.args.get("laterals")
        or any(r.args.get("pivots") for r in relations)
    )
    return list(joins) if good and not seen else []


def is_inner(join: Any) -> bool:
    return not join.args.get("side")


@each(exp.Select)
def inner_joins_swapped(select: Any) -> Any:
    joins = plain_joins(select)
    if not joins or not is_inner(joins[0]):
        return None
    first, second = select.args["from_"].this, joins[0].this
    select.args["from_"].set("this", second.copy())
    joins[0].set("this", first.copy())
    return select


@each(exp.Select)
def conditions_in_where(select: Any) -> Any:
    joins = plain_joins(select)
    if not joins or not all(map(is_inner, joins)):
        return None
    for join in joins:
        condition = join.args["on"]
        join.set("on", None)
        join.set("kind", "CROSS")
        where = select.args.get("where")
        both = (
            paren(condition)
            if where is None
            else exp.And(this=paren(where.this), expression=paren(condition))
        )
        select.set("where", exp.Where(this=both))
    return select


@each(exp.Select)
def left_and_not_null(select: Any) -> Any:
    joins = plain_joins(select)
    if not joins or not is_inner(joins[-1]):
        return None
    join = joins[-1]
    alias = join.this.alias_or_name
    on = join.args["on"]
    keys = [c for c in on.find_all(exp.Column) if c.table == alias]
    if not isinstance(on, exp.EQ) or len(keys) != 1 or keys[0] not in (on.this, on.expression):
        return None
    join.set("side", "LEFT")
    join.set("kind", None)
    met = exp.Not(this=exp.Is(this=keys[0].copy(), expression=exp.Null()))
    where = select.args.get("where")
    select.set(
        "where",
        exp.Where(this=met if where is None else exp.And(this=met, expression=paren(where.this))),
    )
    return select


@each(exp.Select)
def right_for_left(select: Any) -> Any:
    joins = plain_joins(select)
    if len(joins) != 1 or is_inner(joins[0]):
        return None
    first = select.args["from_"].this
    select.args["from_"].set("this", joins[0].this.copy())
    joins[0].set("this", first.copy())
    joins[0].set("side", "RIGHT")
    return select


@each(exp.Select)
def filter_before_join(select: Any) -> Any:
    """A condition of WHERE on the first relation of inner joins moves into a subquery of it."""
    joins = plain_joins(select)
    where = select.args.get("where")
    first = select.args["from_"].this if joins else None
    if where is None or not isinstance(first, exp.Table) or not all(map(is_inner, joins)):
        return None
    alias = first.alias_or_name
    if where.find(exp.Query) or any(c.table != alias for c in where.find_all(exp.Column)):
        return None
    inner = exp.select("*").from_(first.copy()).where(where.this.copy())
    select.args["from_"].set(
        "this", exp.Subquery(this=inner, alias=exp.TableAlias(this=exp.to_identifier(alias)))
    )
    select.set("where", None)
    return select


@each(exp.Union)
def branches_swapped(node: Any) -> Any:
    left, right = node.this, node.expression
    if (
        node.args.get("by_name")
        or not isinstance(left, exp.Select)
        or not isinstance(right, exp.Select)
    ):
        return None
    if left.is_star or right.is_star or node.args.get("order") or node.args.get("with_"):
        return None
    if left.args.get("limit") or right.args.get("limit") or left.args.get("with_"):
        return None
    names = [item.alias_or_name for item in left.expressions]
    items = []
    for item, name in zip(right.expressions, names, strict=True):
        items.append(exp.alias_(item.unalias().copy(), name, quoted=True))
    first = right.copy()
    first.set("expressions", items)
    return exp.Union(this=first, expression=left.copy(), distinct=node.args.get("distinct"))


@each(exp.Select)
def group_for_distinct(select: Any) -> Any:
    distinct = select.args.get("distinct")
    if distinct is None or distinct.args.get("on") or select.is_star or select.args.get("group"):
        return None
    if select.find(exp.AggFunc, exp.Window) or select.args.get("order"):
        return None
    keys = [exp.Literal.number(i + 1) for i in range(len(select.expressions))]
    select.set("distinct", None)
    select.set("group", exp.Group(expressions=keys))
    return select


@each(exp.Select)
def having_for_where(select: Any) -> Any:
    """A condition of WHERE that asks a key of the groups only becomes one of HAVING."""
    group, where = select.args.get("group"), select.args.get("where")
    if group is None or where is None or select.args.get("having") or len(group.expressions) == 0:
        return None
    if {k for k, v in group.args.items() if v} != {"expressions"} or where.find(exp.Query):
        return None
    keys = {k.sql() for k in group.expressions if isinstance(k, exp.Column)}
    columns = [c.sql() for c in where.find_all(exp.Column)]
    if (
        not columns
        or not keys.issuperset(columns)
        or select.find(exp.Func, exp.Cast) in where.walk()
    ):
        return None
    select.set("having", exp.Having(this=where.this.copy()))
    select.set("where", None)
    return select


@each(exp.Window)
def partition_turned(node: Any) -> Any:
    keys = node.args.get("partition_by") or []
    if len(keys) < 2:
        return None
    node.set("partition_by", list(reversed([k.copy() for k in keys])))
    return node


@each(exp.Select)
def exists_for_in(select: Any) -> Any:
    where = select.args.get("where")
    for node in list(where.find_all(exp.In)) if where is not None else ():
        query = node.args.get("query")
        query = query.this if isinstance(query, exp.Subquery) else query
        if not isinstance(query, exp.Select) or isinstance(node.parent, exp.Not):
            continue
        if {k for k, v in query.args.items() if v} - {"expressions", "from_", "where"}:
            continue
        if (
            not isinstance(node.this, exp.Column)
            or not node.this.table
            or len(query.expressions) != 1
        ):
            continue
        alias = query.args["from_"].this.alias_or_name
        if alias == node.this.table:
            continue
        value = query.expressions[0].unalias().copy()
        if not isinstance(value, exp.Column):
            continue
        value.set("table", exp.to_identifier(alias))
        met = exp.EQ(this=value, expression=node.this.copy())
        inner = query.args.get("where")
        both = met if inner is None else exp.And(this=met, expression=paren(inner.this))
        made = exp.select("1").from_(query.args["from_"].this.copy()).where(both)
        node.replace(exp.Exists(this=made))
        return select
    return None


REWORDINGS: Final[dict[str, Reword]] = {
    "De Morgan": de_morgan,
    "comparison negated": negated,
    "comparison flipped": flipped,
    "OR for IN": or_for_in,
    "IN for =": in_for_equal,
    "two comparisons for BETWEEN": two_for_between,
    "and true": and_true,
    "where 1 = 1": where_true,
    "condition said twice": said_twice,
    "NOT NULL said too": not_null_too,
    "else null": else_null,
    "searched CASE": searched_case,
    "CASE in ELSE": case_in_else,
    "IF for CASE": case_as_if,
    "CASE for COALESCE": case_for_coalesce,
    "CASE on NULL for COALESCE": case_on_null_for_coalesce,
    "CASE for NULLIF": case_for_nullif,
    "factors turned": product_turned,
    "terms turned": sum_turned,
    "FILTER for CASE": filter_for_case,
    "CASE for FILTER": case_for_filter,
    "inner joins swapped": inner_joins_swapped,
    "WHERE for ON": conditions_in_where,
    "LEFT JOIN and IS NOT NULL": left_and_not_null,
    "RIGHT JOIN for LEFT": right_for_left,
    "filter before the join": filter_before_join,
    "branches of UNION swapped": branches_swapped,
    "GROUP BY for DISTINCT": group_for_distinct,
    "HAVING for WHERE": having_for_where,
    "PARTITION BY turned": partition_turned,
    "EXISTS for IN": exists_for_in,
}
"""Every one by the name the report has."""
