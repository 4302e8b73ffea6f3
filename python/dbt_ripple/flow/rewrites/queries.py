"""Rules of queries: what stands in FROM, WHERE, GROUP BY and set operations.

They ask which source a column is of, by its alias, so that they apply only where that is known of
every column and no alias stands for two sources (`Rewriting.apart`).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Final

from sqlglot import exp

from dbt_ripple.flow.functions import functions
from dbt_ripple.flow.ir import EPHEMERAL_PREFIX
from dbt_ripple.flow.lowering.parse_tree import GENERATOR_TYPES, verbatim
from dbt_ripple.flow.rewrites.rules import (
    MAX_NODES,
    Rewriting,
    conjuncts,
    is_not_null,
    is_null,
    is_pure,
    is_steady,
    joined,
    one_type,
    only_truth_counts,
    operands_not_null,
    rule,
    terms,
)

_SEES_NO_ORDER: Final = (exp.Count, exp.Sum, exp.Avg, exp.Min, exp.Max)
_SEES_ORDER: Final = (exp.Limit, exp.Offset, exp.Fetch, exp.Window, exp.TableSample, exp.Qualify)
_PLAIN: Final = frozenset({"expressions", "from_", "joins", "where"})
"""What a SELECT has that only chooses rows of its sources and computes values of each."""


def sees_order(tree: Any, dialect: str, beside: Any = None) -> bool:
    """Whether a query asks anywhere in which order rows come, but in the node `beside`."""
    kind = functions(dialect).kind
    for node in tree.walk():
        if node is beside:
            continue
        if isinstance(node, _SEES_ORDER):
            return True
        if isinstance(node, exp.Distinct) and node.args.get("on"):
            return True
        if isinstance(node, exp.AggFunc) and not isinstance(node, _SEES_NO_ORDER):
            return True
        if isinstance(node, exp.Anonymous) and kind(str(node.this).lower()) != "scalar":
            return True
        if isinstance(node, exp.Join) and (
            node.args.get("method") or node.args.get("kind") == "ASOF"
        ):
            return True
        if isinstance(node, (exp.Array, exp.ArrayAgg)) and node.find(exp.Query):
            return True
    return False


# -- what rules ask ---------------------------------------------------------------------------------


def _given(node: Any) -> set[str]:
    return {name for name, value in node.args.items() if value}


def _sources(select: Any) -> list[tuple[str, Any, Any]]:
    """The alias and relation of each source of a SELECT, with its join; empty where one is special.

    None of the joins is other than inner, cross, left, semi or anti, by a condition or by none.
    """
    from_ = select.args.get("from_")
    if from_ is None or select.args.get("laterals"):
        return []
    sources = [(from_.this.alias_or_name, from_.this, None)]
    for join in select.args.get("joins") or ():
        if not _given(join) <= {"this", "on", "kind", "side"} or _kind(join) is None:
            return []
        sources.append((join.this.alias_or_name, join.this, join))
    for alias, relation, _ in sources:
        if not isinstance(relation, (exp.Table, exp.Subquery)) or not alias:
            return []
        if not _given(relation) <= {"this", "alias", "db", "catalog"}:
            return []
        if isinstance(relation, exp.Table) and not isinstance(relation.this, exp.Identifier):
            return []
        named = relation.args.get("alias")
        if named is not None and named.args.get("columns"):
            return []
    return sources


def _kind(join: Any) -> str | None:
    """What kind of join it is; None for one that is not known here."""
    words = [str(join.args[k]).upper() for k in ("side", "kind") if join.args.get(k)]
    words = [w for w in words if w not in ("OUTER", "INNER", "CROSS")]
    if not words:
        return "INNER"
    if words == ["LEFT"] and join.args.get("on") is not None:
        return "LEFT"
    if words in (["SEMI"], ["LEFT", "SEMI"], ["ANTI"], ["LEFT", "ANTI"]):
        return words[-1] if join.args.get("on") is not None else None
    return None


def _tables(node: Any) -> set[str]:
    """The aliases by which columns anywhere in an expression are read."""
    return {column.table for column in node.find_all(exp.Column)}


def _add(select: Any, conditions: Iterable[Any], clause: type = exp.Where) -> None:
    """Put more conditions into WHERE or HAVING."""
    name = "where" if clause is exp.Where else "having"
    before = select.args.get(name)
    parts = [*(conjuncts(before.this) if before is not None else ()), *conditions]
    select.set(name, clause(this=joined(parts, exp.And)) if parts else None)


def _put(select: Any, conditions: Sequence[Any], name: str = "where") -> None:
    """Put these conditions in place of those of WHERE or HAVING."""
    clause = exp.Where if name == "where" else exp.Having
    select.set(name, clause(this=joined(conditions, exp.And)) if conditions else None)


def _where(select: Any) -> list[Any]:
    where = select.args.get("where")
    return conjuncts(where.this) if where is not None else []


def _aggregates(node: Any, dialect: str) -> bool:
    """Whether an expression may be more than a value of its row."""
    kind = functions(dialect).kind
    return any(
        isinstance(part, (exp.AggFunc, exp.Window, exp.Query, *GENERATOR_TYPES))
        or (isinstance(part, exp.Anonymous) and kind(str(part.this).lower()) != "scalar")
        for part in node.walk()
    )


def _outputs(query: Any) -> dict[str, Any] | None:
    """The expressions behind the columns of a SELECT, by name; None where they are not all told."""
    outputs: dict[str, Any] = {}
    for item in query.expressions:
        name = item.alias_or_name
        if isinstance(item, exp.Star) or item.is_star or not name or name in outputs:
            return None
        if not isinstance(item, (exp.Alias, exp.Column)):
            return None
        outputs[name] = item.this if isinstance(item, exp.Alias) else item
    return outputs


def _with_outputs(node: Any, alias: str, outputs: dict[str, Any]) -> Any:
    """A copy of an expression over a source in which its columns are what they are made of."""
    copy = exp.Tuple(expressions=[node.copy()])
    for column in list(copy.find_all(exp.Column)):
        if column.table == alias:
            column.replace(outputs[column.name].copy())
    return copy.expressions[0]


def _reads_only(node: Any, alias: str, outputs: dict[str, Any]) -> bool:
    return all(c.table == alias and c.name in outputs for c in node.find_all(exp.Column))


def _plain_group(select: Any) -> list[Any] | None:
    """The keys of GROUP BY; None where there are none, or sets of them."""
    group = select.args.get("group")
    if group is None or _given(group) != {"expressions"}:
        return None
    keys = list(group.expressions)
    special = (exp.Rollup, exp.Cube, exp.GroupingSets, exp.Tuple, exp.Literal)
    return None if any(isinstance(key, special) for key in keys) else keys


_COMPARES: Final = (exp.EQ, exp.NEQ, exp.GT, exp.GTE, exp.LT, exp.LTE, exp.Is, exp.In, exp.Between)


def _compares_keys(node: Any, keys: set[bytes]) -> bool:
    """Whether a condition compares keys of groups, and asks nothing else of their rows.

    Values that are equal may still differ (0.0 and -0.0), and a group shows one of them: so that
    nothing but a comparison asks a key.
    """
    if verbatim(node) in keys:
        return isinstance(node.parent, _COMPARES)
    if isinstance(node, (exp.Column, exp.Star)):
        return False
    return all(_compares_keys(child, keys) for child in node.iter_expressions())


# -- CTEs and subqueries ----------------------------------------------------------------------------


@rule("a CTE where it is read", exp.With, of_sources=True)
def inlined(node: exp.With, rewriting: Rewriting) -> Any:
    """A CTE is the query that it names; one that is read twice only if it gives the same twice."""
    query = node.parent
    if node.args.get("recursive") or query is None or not isinstance(query.parent, exp.Tuple):
        return None  # only of the whole statement: no other can hide its names
    names = [cte.alias for cte in node.expressions]
    if len(set(names)) < len(names) or len(list(query.find_all(exp.With))) > 1:
        return None
    for cte in reversed(node.expressions):
        body = cte.this
        if cte.alias.lower().startswith(EPHEMERAL_PREFIX) or cte.args["alias"].args.get("columns"):
            continue
        if not isinstance(body, exp.Query) or body.args.get("with_") is not None:
            continue
        reads = [
            t
            for t in query.find_all(exp.Table)
            if t.name == cte.alias and not t.args.get("db") and _given(t) <= {"this", "alias"}
        ]
        every = [t for t in query.find_all(exp.Table) if t.name == cte.alias]
        if not reads or len(reads) < len(every):
            continue
        if len(reads) > 1:
            size = sum(1 for _ in body.walk())
            if size * len(reads) > MAX_NODES // 10 or not is_steady(body, rewriting.dialect):
                continue
            if sees_order(body, rewriting.dialect):
                continue
        for i, read in enumerate(reads):
            alias = _alias_named(read, read.alias_or_name)
            copy = body.copy()
            if i:
                _rename_sources(copy, rewriting)
            read.replace(exp.Subquery(this=copy, alias=alias))
        kept = [c for c in node.expressions if c is not cte]
        if kept:
            node.set("expressions", kept)
            return node
        query.set("with_", None)
        return query
    return None


def _rename_sources(query: Any, rewriting: Rewriting) -> None:
    """Give the sources of a copy of a query aliases that no other has."""
    for source in list(query.find_all(exp.Table, exp.Subquery)):
        alias = source.alias_or_name
        if not alias or not isinstance(source.parent, (exp.From, exp.Join)):
            continue
        rewriting.fresh += 1
        new = f"copy_{rewriting.fresh}"
        for column in query.find_all(exp.Column):
            if column.table == alias:
                column.set("table", exp.to_identifier(new))
        source.set("alias", _alias_named(source, new))
        if alias in rewriting.types:
            rewriting.types[new] = rewriting.types[alias]


def _alias_named(source: Any, name: str) -> exp.TableAlias:
    """The alias of a source under this name, with the names that it gives its columns."""
    alias = source.args.get("alias")
    alias = exp.TableAlias() if alias is None else alias.copy()
    alias.set("this", exp.to_identifier(name))
    return alias


@rule("a subquery within its query", exp.Select, of_sources=True)
def merged(select: exp.Select, rewriting: Rewriting) -> Any:
    """A subquery that filters and computes is part of the query that reads it.

    The sources of one that is joined inwardly, or stands first, are sources of the query around, and
    its conditions are conditions of that. One on the right side of a left join has one source, whose
    columns it passes on as they are; its conditions are conditions of the join.
    """
    sources = _sources(select)
    for alias, relation, join in sources:
        inner = relation.this if isinstance(relation, exp.Subquery) else None
        if not isinstance(inner, exp.Select) or not _given(inner) <= _PLAIN:
            continue
        outputs, inside = _outputs(inner), _sources(inner)
        if outputs is None or not inside:
            continue
        if any(_aggregates(item, rewriting.dialect) for item in inner.expressions):
            continue
        if any(not is_pure(item, rewriting.dialect) for item in inner.expressions):
            continue
        if len(sources) > 1 and not _chooses_steadily(inner, rewriting.dialect):
            continue  # of a row that meets several, it would be asked once for each of them
        kinds = {_kind(j) for _, _, j in inside if j is not None}
        left = join is not None and _kind(join) != "INNER"
        if left:
            plain = all(isinstance(value, exp.Column) for value in outputs.values())
            if _kind(join) != "LEFT" or len(inside) > 1 or not plain:
                continue
        elif not kinds <= ({"INNER", "LEFT"} if join is None else {"INNER"}):
            continue
        read = [c for c in select.find_all(exp.Column) if c.table == alias]
        if any(c.name not in outputs for c in read):
            continue
        if any(_is_literal(outputs[c.name]) and not _is_item(c) for c in read):
            continue  # it is another value there: a position, or of the type of what it meets
        conditions = _where(inner)
        for column in read:
            value = outputs[column.name].copy()
            named = column.name
            keep_name = column.parent is select and column.arg_key == "expressions"
            column.replace(exp.alias_(value, named) if keep_name else value)
        first = inside[0][1]
        if join is None:
            select.args["from_"].set("this", first)
            select.set(
                "joins", [*(inner.args.get("joins") or ()), *(select.args.get("joins") or ())]
            )
        else:
            join.set("this", first)
            joins = list(select.args["joins"])
            place = joins.index(join) + 1
            select.set("joins", [*joins[:place], *(inner.args.get("joins") or ()), *joins[place:]])
        if left:
            join.set("on", joined([*terms(join.args["on"], exp.And), *conditions], exp.And))
        elif conditions:
            _put(select, [*conditions, *_where(select)])  # they are asked first
        return select
    return None


def _chooses_steadily(select: Any, dialect: str) -> bool:
    """Whether a SELECT chooses the same rows each time, as far as its conditions tell."""
    asked = [select.args.get("where"), *(j.args.get("on") for j in select.args.get("joins") or ())]
    return all(is_steady(condition, dialect) for condition in asked if condition is not None)


def _is_literal(value: Any) -> bool:
    """Whether a value has a type only where it stands."""
    while isinstance(value, (exp.Paren, exp.Neg)):
        value = value.this
    return isinstance(value, (exp.Literal, exp.Null))


def _is_item(column: Any) -> bool:
    """Whether a column is all of an item of a select list."""
    if isinstance(column.parent, exp.Alias):
        column = column.parent
    return isinstance(column.parent, exp.Select) and column.arg_key == "expressions"


# -- joins ------------------------------------------------------------------------------------------


@rule("WHERE for ON", exp.Select, of_sources=True, evaluates=True)
def where_for_on(select: exp.Select, rewriting: Rewriting) -> Any:
    """What an inner join is joined ON is a condition of WHERE."""
    conditions: list[Any] = []
    for _, _, join in _sources(select):
        if join is not None and _kind(join) == "INNER" and join.args.get("on") is not None:
            conditions += terms(join.args["on"], exp.And)
            join.set("on", None)
            join.set("kind", "CROSS")
    if not conditions:
        return None
    _add(select, conditions)
    return select


@rule("LEFT JOIN that has to meet", exp.Select, of_sources=True, reorders=True, evaluates=True)
def inner_for_left(select: exp.Select, rewriting: Rewriting) -> Any:
    """A left join is an inner one where WHERE is only true of rows that it has met."""
    for alias, _, join in _sources(select):
        if join is None or _kind(join) != "LEFT":
            continue
        for condition in _where(select):
            choices = terms(condition, exp.Or)
            if all(
                any(isinstance(v, exp.Column) and v.table == alias for v in operands_not_null(one))
                for one in choices
            ):
                join.set("side", None)
                join.set("kind", None)
                return select
    return None


@rule("semi join", exp.Select, of_sources=True, reorders=True, evaluates=True)
def semi_join(select: exp.Select, rewriting: Rewriting) -> Any:
    """A semi join is EXISTS in WHERE, and an anti join NOT EXISTS."""
    for alias, relation, join in _sources(select):
        if join is None or _kind(join) not in ("SEMI", "ANTI"):
            continue
        on = join.args["on"]
        if any(c.table == alias for c in select.find_all(exp.Column) if not _within(c, join)):
            continue
        negated = _kind(join) == "ANTI"
        select.set("joins", [j for j in select.args["joins"] if j is not join])
        _add(select, [_exists(relation, [on], negated)])
        return select
    return None


@rule("LEFT JOIN that has not met", exp.Select, of_sources=True, reorders=True, evaluates=True)
def anti_join(select: exp.Select, rewriting: Rewriting) -> Any:
    """A left join of which WHERE keeps what has met nothing is NOT EXISTS.

    That a column is NULL shows it only where the join is on something that it then is not.
    """
    for alias, relation, join in _sources(select):
        if join is None or _kind(join) != "LEFT":
            continue
        on = join.args["on"]
        there = {
            verbatim(value)
            for condition in terms(on, exp.And)
            for value in operands_not_null(condition)
            if isinstance(value, exp.Column) and value.table == alias
        }
        conditions = _where(select)
        asked = [c for c in conditions if is_null(c) and verbatim(c.this) in there]
        if len(asked) != 1:
            continue
        reads = [c for c in select.find_all(exp.Column) if c.table == alias]
        if any(not _within(c, join) and not _within(c, asked[0]) for c in reads):
            continue
        select.set("joins", [j for j in select.args["joins"] if j is not join])
        others = [c for c in conditions if c is not asked[0]]
        _put(select, [*others, _exists(relation, [on], True)])
        return select
    return None


def _within(node: Any, ancestor: Any) -> bool:
    while node is not None:
        if node is ancestor:
            return True
        node = node.parent
    return False


def _exists(relation: Any, conditions: list[Any], negated: bool) -> Any:
    select = exp.Select(expressions=[exp.Literal.number(1)], from_=exp.From(this=relation))
    _put(select, conditions)
    exists = exp.Exists(this=select)
    return exp.Not(this=exists) if negated else exists


# -- IN and EXISTS ----------------------------------------------------------------------------------


@rule("EXISTS for IN", exp.In, of_sources=True, reorders=True, evaluates=True)
def exists_for_in(node: exp.In, rewriting: Rewriting) -> Any:
    """As a condition, `a in (select b from t)` is `exists (select 1 from t where b = a)`.

    Only of values of one type: IN compares others as another type than `=` does.
    """
    query = node.args.get("query")
    while isinstance(query, exp.Subquery) and _given(query) == {"this"}:
        query = query.this
    if _given(node) != {"this", "query"} or not isinstance(query, exp.Select):
        return None
    if not only_truth_counts(node) or isinstance(node.this, exp.Tuple):
        return None
    dialect = rewriting.dialect
    if not is_pure(node.this, dialect) or _aggregates(node.this, dialect):
        return None
    outputs = _outputs(query)
    if outputs is None or len(outputs) != 1:
        return None
    (name, value), *_ = outputs.items()
    if one_type([value, node.this], rewriting) in (None, "NULL"):
        return None
    plain = _given(query) - {"distinct"} <= _PLAIN and not _aggregates(value, rewriting.dialect)
    if query.args.get("distinct") and query.args["distinct"].args.get("on"):
        plain = False
    if plain and is_pure(value, rewriting.dialect):
        query.set("distinct", None)
        query.set("expressions", [exp.Literal.number(1)])
        _add(query, [exp.EQ(this=value, expression=node.this)])
        return exp.Exists(this=query)
    rewriting.fresh += 1
    alias = f"in_{rewriting.fresh}"
    source = exp.Subquery(this=query, alias=exp.TableAlias(this=exp.to_identifier(alias)))
    condition = exp.EQ(this=exp.column(name, table=alias), expression=node.this)
    return _exists(source, [condition], False)


@rule("what EXISTS selects", exp.Exists, of_sources=True, evaluates=True)
def exists(node: exp.Exists, rewriting: Rewriting) -> Any:
    """EXISTS asks whether there is a row, not what is in it, nor how often it is there."""
    query = node.this
    while isinstance(query, exp.Subquery) and _given(query) == {"this"}:
        query = query.this
    if not isinstance(query, exp.Select) or not _given(query) - {"distinct", "order"} <= _PLAIN:
        return None
    if query.args.get("distinct") and query.args["distinct"].args.get("on"):
        return None
    if any(_aggregates(item, rewriting.dialect) for item in query.expressions):
        return None
    one = exp.Literal.number(1)
    if _given(query) <= _PLAIN and [verbatim(e) for e in query.expressions] == [verbatim(one)]:
        return None if query is node.this else exp.Exists(this=query)
    query.set("distinct", None)
    query.set("order", None)
    query.set("expressions", [one])
    return exp.Exists(this=query)


# -- groups -----------------------------------------------------------------------------------------


@rule("HAVING on a key", exp.Select, of_sources=True, reorders=True, evaluates=True)
def having_on_a_key(select: exp.Select, rewriting: Rewriting) -> Any:
    """A condition of HAVING that asks only keys of the groups is one of WHERE."""
    having, keys = select.args.get("having"), _plain_group(select)
    if having is None or not keys:
        return None
    keys_written = {verbatim(key) for key in keys}
    conditions = conjuncts(having.this)
    on_keys = [
        c
        for c in conditions
        if not _aggregates(c, rewriting.dialect)
        and is_pure(c, rewriting.dialect)
        and any(True for _ in c.find_all(exp.Column))
        and _compares_keys(c, keys_written)
    ]
    if not on_keys or not all(is_pure(key, rewriting.dialect) for key in keys):
        return None
    _put(select, [c for c in conditions if c not in on_keys], "having")
    _add(select, on_keys)
    return select


@rule("a filter above groups", exp.Select, of_sources=True, evaluates=True)
def having_for_where(select: exp.Select, rewriting: Rewriting) -> Any:
    """What is asked of the groups of a subquery is HAVING in it."""
    above = _above(select, rewriting)
    for condition, relation, alias in above:
        inner = relation.this
        if not isinstance(inner, exp.Select) or _plain_group(inner) is None:
            continue
        if not _given(inner) <= _PLAIN | {"group", "having"}:
            continue
        outputs = _outputs(inner)
        if outputs is None or not _reads_only(condition, alias, outputs):
            continue
        if not all(is_pure(value, rewriting.dialect) for value in outputs.values()):
            continue
        _put(select, [c for c in _where(select) if c is not condition])
        _add(inner, [_with_outputs(condition, alias, outputs)], exp.Having)
        return select
    return None


def _above(select: Any, rewriting: Rewriting) -> list[tuple[Any, Any, str]]:
    """The conditions of WHERE that ask one subquery in FROM only, with this and its alias."""
    sources = {
        alias: relation
        for alias, relation, join in _sources(select)
        if isinstance(relation, exp.Subquery) and (join is None or _kind(join) == "INNER")
    }
    columns = []
    for condition in _where(select) if sources else ():
        read = _tables(condition)
        if len(read) != 1 or not is_pure(condition, rewriting.dialect):
            continue
        (alias,) = read
        if alias in sources and not _aggregates(condition, rewriting.dialect):
            columns.append((condition, sources[alias], alias))
    return columns


@rule("DISTINCT of groups", exp.Select, of_sources=True, reorders=True)
def distinct_of_groups(select: exp.Select, rewriting: Rewriting) -> Any:
    """Groups of which all keys are shown are distinct."""
    distinct, keys = select.args.get("distinct"), _plain_group(select)
    if distinct is None or distinct.args.get("on") or not keys:
        return None
    outputs = _outputs(select)
    if outputs is None or not {verbatim(k) for k in keys} <= {
        verbatim(v) for v in outputs.values()
    }:
        return None
    if any(_generates(item) for item in select.expressions):
        return None
    select.set("distinct", None)
    return select


def _generates(node: Any) -> bool:
    return any(isinstance(p, GENERATOR_TYPES) for p in node.walk())


# -- set operations ---------------------------------------------------------------------------------


@rule("a filter above UNION", exp.Select, of_sources=True, evaluates=True)
def filter_of_branches(select: exp.Select, rewriting: Rewriting) -> Any:
    """What is asked of the rows of a UNION is asked of each of its branches."""
    for condition, relation, alias in _above(select, rewriting):
        branches = _branches(relation.this)
        if len(branches) < 2:
            continue
        shown = [
            _outputs(branch) if isinstance(branch, exp.Select) else None for branch in branches
        ]
        if any(
            outputs is None
            or not _given(branch) <= _PLAIN
            or any(_aggregates(item, rewriting.dialect) for item in branch.expressions)
            or not all(is_pure(value, rewriting.dialect) for value in outputs.values())
            for branch, outputs in zip(branches, shown, strict=True)
        ):
            continue
        names = list(shown[0] or ())
        if any(len(outputs or ()) != len(names) for outputs in shown):
            continue
        values: list[dict[str, Any]] = [
            dict(zip(names, (o or {}).values(), strict=True)) for o in shown
        ]
        if not _reads_only(condition, alias, values[0]):
            continue
        asked = {c.name for c in condition.find_all(exp.Column)}
        typed = [one_type((o[name] for o in values), rewriting) for name in asked]
        if not (is_null(condition) or is_not_null(condition)) and None in typed:
            continue  # a branch compares as what it is, the rows of a UNION as what all of them are
        _put(select, [c for c in _where(select) if c is not condition])
        for branch, outputs in zip(branches, values, strict=True):
            _add(branch, [_with_outputs(condition, alias, outputs)])
        return select
    return None


def _branches(query: Any) -> list[Any]:
    """The branches of UNIONs by position, however nested; empty where there is anything else."""
    if isinstance(query, exp.Subquery) and _given(query) == {"this"}:
        return _branches(query.this)
    if type(query) is not exp.Union:
        return [query]
    if not _given(query) <= {"this", "expression", "distinct"}:
        return []
    left, right = _branches(query.this), _branches(query.expression)
    return [*left, *right] if left and right else []


def _are_of_one_type(branches: Sequence[Any], rewriting: Rewriting) -> bool:
    """Whether each column of a UNION is known to have one type in all of its branches."""
    shown = [_outputs(b) if isinstance(b, exp.Select) else None for b in branches]
    if any(outputs is None for outputs in shown):
        return False
    columns = [list((outputs or {}).values()) for outputs in shown]
    return len(set(map(len, columns))) == 1 and None not in (
        one_type(values, rewriting) for values in zip(*columns, strict=True)
    )


@rule("DISTINCT within UNION", exp.Union, of_sources=True, reorders=True)
def distinct_in_union(union: exp.Union, rewriting: Rewriting) -> Any:
    """The branches of a UNION need not be distinct themselves.

    Not where a branch compares its rows as what it is, and the UNION as what all branches are: 0.0
    and -0.0 are equal, and are not as texts.
    """
    if not union.args.get("distinct") or union.args.get("by_name"):
        return None
    branches = _branches(union)
    if not _are_of_one_type(branches, rewriting):
        return None
    for branch in branches:
        distinct = branch.args.get("distinct") if isinstance(branch, exp.Select) else None
        if distinct is None or distinct.args.get("on"):
            continue
        if not _given(branch) - {"distinct"} <= _PLAIN | {"group", "having"}:
            continue
        branch.set("distinct", None)
        return union
    return None
