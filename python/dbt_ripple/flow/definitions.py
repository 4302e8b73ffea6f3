"""What each column of a query is computed as, over the relations the query reads.

For display only: what a change means is told by fingerprints. This writes a column out as an engineer
would who reads the query from its last SELECT up: CTEs and derived tables are replaced by what they
compute, down to columns of relations.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from sqlglot import exp

from dbt_ripple.flow.reading.dialects import written
from dbt_ripple.flow.reading.reader import UNREAD, parse_statement

MAX_LENGTH: Final = 2_000
"""Characters of a definition. One that would be longer keeps the names of what is not written out."""

_QUOTED = r"""(?:"(?:[^"]|"")+"|`(?:[^`]|``)+`)"""
_NAME: Final = re.compile(rf"(?:(?:\w+|{_QUOTED})\.)*(?:[^\W\d]\w*|{_QUOTED})")
"""A column as it stands, with what it is a column of or without."""

_TOO_LONG: Final = "/* too long to write out"

_BRANCH: Final = "another branch of the set operation"

_LEVELS: Final = 100
"""Queries inside of each other that are followed."""


@dataclass(frozen=True, slots=True)
class _DefinedColumn:
    """A column of a query: its expression over relations, and its length as text.

    Attributes:
        tree: the expression; never changed, always copied into another.
        length: characters of it as SQL, roughly.
        kept: names of columns in it that would have made it too long.
    """

    tree: Any
    length: int
    kept: tuple[str, ...] = ()


_Outputs = dict[str, _DefinedColumn]
"""Columns by lower-case name; one without a name by ``#`` and its position; ``*`` where the query
has columns that only an engine can name."""


@dataclass(slots=True)
class _Scope:
    """What the names of columns mean in one SELECT.

    Attributes:
        queries: columns of each CTE or derived table in FROM, by the name it has there.
        others: whether something else is read, too: a relation, a table function.
        left: expressions of the select list so far, which later ones may name.
    """

    queries: dict[str, _Outputs] = field(default_factory=dict)
    others: set[str] = field(default_factory=set)
    left: _Outputs = field(default_factory=dict)

    def find(self, column: Any) -> _DefinedColumn | None:
        """What a column of a CTE or a derived table is; None for one of a relation."""
        name, table = column.name.lower(), column.table.lower()
        if table:
            return self.queries[table].get(name) if table in self.queries else None
        columns = [outputs[name] for outputs in self.queries.values() if name in outputs]
        if columns:
            return columns[0]
        # A column comes before an alias of the same select list, which may be one of the unnamed.
        whole = self.queries and not self.others
        whole = whole and not any("*" in outputs for outputs in self.queries.values())
        return self.left.get(name) if whole else None


def definitions(parsed: Any, dialect: str) -> dict[str, str]:
    """The SQL that each output of a query is computed as, by lower-case name.

    Columns of CTEs and derived tables are written out as what they are there, so that only columns
    of relations are left, named as the innermost query names them. Branches of a set operation that
    differ stand beside each other with its name between them. A column that only an engine can name
    (of a ``*`` over a relation) is left out. What would be longer than `MAX_LENGTH` keeps the names
    of CTEs' columns, and says which in a comment at its end. The tree is left as it is.

    Example:
        >>> from dbt_ripple.flow.reading.reader import parse_statement
        >>> sql = "with d as (select o.qty * o.price as t from orders o) select sum(t) as total from d"
        >>> definitions(parse_statement(sql, "duckdb"), "duckdb")
        {'total': 'SUM(o.qty * o.price)'}
    """
    try:
        outputs = _DefinitionReader(dialect).query(parsed, {}, 0)
    except UNREAD:
        return {}
    texts = {}
    for name, definition in outputs.items():
        if name == "*" or name.startswith("#"):
            continue
        try:
            text = written(definition.tree, dialect)
        except UNREAD:
            continue
        if definition.kept:
            text += f" {_TOO_LONG}: {', '.join(definition.kept)} */"
        texts[name] = text
    return texts


def is_computed(text: str) -> bool:
    """Whether a definition is more than a column of a relation.

    Example:
        >>> is_computed("o.id"), is_computed("o.id + 1")
        (False, True)
    """
    return not _NAME.fullmatch(text)


def is_whole(text: str) -> bool:
    """Whether a definition is written out to its end."""
    return _TOO_LONG not in text


def computed(sql: str, dialect: str) -> dict[str, str]:
    """The definitions of those outputs that are more than a column of a relation, by name.

    Empty where the SQL cannot be parsed.

    Example:
        >>> computed("with d as (select o.id, o.qty * 2 as n from orders o) select id, n from d", "spark")
        {'n': 'o.qty * 2'}
    """
    try:
        parsed = parse_statement(sql, dialect)
    except UNREAD:
        return {}
    outputs = definitions(parsed, dialect)
    return {name: text for name, text in outputs.items() if is_computed(text)}


def pairs_rows(sql: str, dialect: str, of_one_relation: bool) -> bool:
    """Whether how a query joins may decide what a column's value is, not only which rows there are.

    An inner join pairs rows, and leaves alone a value that is made of one relation's row.

    Args:
        sql: the query.
        dialect: its dialect.
        of_one_relation: whether the column is made of columns of one relation.

    Example:
        >>> pairs_rows("select a.x from a join b on a.id = b.id", "spark", True)
        False
        >>> pairs_rows("select a.x from b left join a on a.id = b.id", "spark", True)
        True
    """
    try:
        parsed = parse_statement(sql, dialect)
    except UNREAD:
        return True
    joins = list(parsed.find_all(exp.Join, exp.Lateral))
    if not joins:
        return False
    names = [table.name.lower() for table in parsed.find_all(exp.Table)]
    return (
        not of_one_relation
        or len(set(names)) < len(names)
        or any(
            isinstance(j, exp.Lateral) or j.args.get("side") or j.args.get("method") for j in joins
        )
    )


class _DefinitionReader:
    def __init__(self, dialect: str) -> None:
        self.dialect = dialect

    def query(self, node: Any, ctes: Mapping[str, _Outputs], level: int) -> _Outputs:
        """The columns of a query, in their order; none where it is no query that is followed."""
        if isinstance(node, exp.Create | exp.Insert):
            outer = self.with_(node, ctes, level)
            return self.query(node.expression, outer, level)
        if not isinstance(node, exp.Query) or level > _LEVELS:
            return {}
        ctes = self.with_(node, ctes, level)
        if isinstance(node, exp.Subquery):
            return self.query(node.this, ctes, level + 1) if _plain(node) else {}
        if isinstance(node, exp.SetOperation):
            return self.set_operation(node, ctes, level)
        return self.select(node, ctes, level) if isinstance(node, exp.Select) else {}

    def with_(self, node: Any, ctes: Mapping[str, _Outputs], level: int) -> Mapping[str, _Outputs]:
        with_ = node.args.get("with_")
        if with_ is None:
            return ctes
        inside = dict(ctes)
        for cte in with_.expressions:
            name = cte.alias.lower()
            inside.pop(name, None)  # a recursive CTE reads itself by its own name
            inside[name] = _renamed(self.query(cte.this, inside, level + 1), cte.args.get("alias"))
        return inside

    def set_operation(self, node: Any, ctes: Mapping[str, _Outputs], level: int) -> _Outputs:
        # A chain of a thousand branches leans to the left.
        branches, first = [node], node.this
        while isinstance(first, exp.SetOperation) and first.args.get("with_") is None:
            branches.append(first)
            first = first.this
        outputs = self.query(first, ctes, level + 1)
        for branch in reversed(branches):
            right = self.query(branch.expression, ctes, level + 1)
            by_name = branch.args.get("by_name")
            if not by_name and (len(right) != len(outputs) or "*" in outputs or "*" in right):
                continue  # which column stands where only the engine knows
            words = f" {_operator(branch)} "
            others = iter(right.values())
            for name in outputs:
                other = right.get(name) if by_name else next(others)
                if other is not None:
                    outputs[name] = self.beside(outputs[name], other, words)
            if by_name:
                outputs |= {name: other for name, other in right.items() if name not in outputs}
        return outputs

    def beside(self, one: _DefinedColumn, other: _DefinedColumn, words: str) -> _DefinedColumn:
        texts = [written(m.tree, self.dialect) for m in (one, other)]
        shown = texts[0].strip("()").split(words) if isinstance(one.tree, exp.Var) else texts[:1]
        if texts[1] in shown or texts[0] == texts[1]:
            return one
        if one.length + other.length > MAX_LENGTH:
            return _DefinedColumn(one.tree, one.length, tuple(dict.fromkeys((*one.kept, _BRANCH))))
        first = texts[0][1:-1] if isinstance(one.tree, exp.Var) else texts[0]
        text = f"({first}{words}{texts[1]})"
        return _DefinedColumn(
            exp.Var(this=text), len(text), tuple(dict.fromkeys(one.kept + other.kept))
        )

    def select(self, node: Any, ctes: Mapping[str, _Outputs], level: int) -> _Outputs:
        scope = self.scope(node, ctes, level)
        for position, item in enumerate(node.expressions):
            star = item.this if isinstance(item, exp.Column) else item
            if isinstance(star, exp.Star):
                table = item.table.lower() if isinstance(item, exp.Column) else ""
                self.star(star, table, scope)
                continue
            name = item.alias_or_name.lower() or f"#{position}"
            value = item.this if isinstance(item, exp.Alias) else item
            scope.left[name] = self.written_out(value, scope)
        return scope.left

    def star(self, star: Any, table: str, scope: _Scope) -> None:
        skipped = {e.name.lower() for e in star.args.get("except_") or ()}
        new_names = {e.this.name.lower(): e.alias.lower() for e in star.args.get("rename") or ()}
        replaced = {e.alias.lower(): e.this for e in star.args.get("replace") or ()}
        starred: _Outputs = {}
        for source, outputs in scope.queries.items():
            for name, output in outputs.items() if table in ("", source) else ():
                if name not in skipped and name != "*":
                    value = replaced.get(name)
                    output = output if value is None else self.written_out(value, scope)
                    starred.setdefault(new_names.get(name, name), output)
        for name, value in replaced.items():
            starred.setdefault(name, self.written_out(value, scope))
        if any("*" in outputs for outputs in scope.queries.values()) or scope.others:
            scope.left["*"] = _DefinedColumn(star, 1)
        for name, output in starred.items():
            scope.left.setdefault(name, output)

    def scope(self, node: Any, ctes: Mapping[str, _Outputs], level: int) -> _Scope:
        scope = _Scope()
        from_ = node.args.get("from_")
        waiting = [from_.this] if from_ is not None else []
        waiting += [join.this for join in node.args.get("joins") or ()]
        waiting += node.args.get("laterals") or ()
        for source in waiting:
            name = source.alias_or_name.lower()
            outputs = self.source(source, ctes, level)
            if outputs:
                scope.queries[name] = _renamed(outputs, source.args.get("alias"))
            else:
                scope.others.add(name)
        return scope

    def source(self, node: Any, ctes: Mapping[str, _Outputs], level: int) -> _Outputs:
        if isinstance(node, exp.Table):
            if node.args.get("db") or node.args.get("pivots") or node.args.get("joins"):
                return {}
            return ctes.get(node.name.lower(), {})
        if isinstance(node, exp.Subquery) and _plain(node):
            return self.query(node, ctes, level + 1)
        return {}

    def written_out(self, value: Any, scope: _Scope) -> _DefinedColumn:
        """An expression with what the columns of CTEs in it are; other queries in it stay."""
        length = len(written(value, self.dialect))
        kept: dict[str, None] = {}
        places = []
        for column in _columns(value):
            definition = scope.find(column)
            if definition is None:
                continue
            kept |= dict.fromkeys(definition.kept)
            if length + definition.length > MAX_LENGTH:
                kept[written(column, self.dialect)] = None
                continue
            length += definition.length
            places.append((column, definition))
        if not places:
            return _DefinedColumn(value, length, tuple(kept))
        if places[0][0] is value:
            return _DefinedColumn(places[0][1].tree, length, tuple(kept))
        copies = {id(column): definition for column, definition in places}
        tree = value.copy()
        for original, copy in zip(_columns(value), list(_columns(tree)), strict=True):
            definition = copies.get(id(original))
            if definition is not None:
                copy.replace(_inside(definition.tree.copy(), copy.parent))
        return _DefinedColumn(tree, length, tuple(kept))


def _columns(value: Any) -> Iterator[Any]:
    """The columns of an expression, but for those of queries inside of it."""
    for node in value.walk(prune=lambda n: isinstance(n, exp.Query | exp.Column)):
        if isinstance(node, exp.Column) and not isinstance(node.this, exp.Star):
            yield node


_ARITHMETIC: Final = (exp.Add, exp.Sub, exp.Mul, exp.Div, exp.Mod, exp.IntDiv, exp.DPipe)


def _inside(tree: Any, parent: Any) -> Any:
    """The expression as an operand: in brackets where what is around it would bind its parts."""
    bound = isinstance(parent, exp.Binary | exp.Unary | exp.Bracket | exp.Between | exp.In)
    if not bound or isinstance(parent, exp.Paren) or isinstance(tree, exp.Dot | exp.Paren):
        return tree
    if isinstance(parent, exp.Predicate) and isinstance(tree, _ARITHMETIC):
        return tree
    compound = isinstance(tree, exp.Binary | exp.Unary | exp.Between | exp.In)
    return exp.Paren(this=tree) if compound else tree


def _plain(node: Any) -> bool:
    """Whether a derived table has the columns of its query."""
    return not any(node.args.get(key) for key in ("pivots", "joins", "laterals", "sample"))


def _renamed(outputs: _Outputs, alias: Any) -> _Outputs:
    """The columns of a query under the names that ``as t(a, b)`` gives them."""
    names = [column.name.lower() for column in alias.args.get("columns") or ()] if alias else []
    if not names:
        return outputs
    return dict(zip([*names, *list(outputs)[len(names) :]], outputs.values(), strict=False))


def _operator(node: Any) -> str:
    kind = type(node).__name__.upper()
    return f"{kind} ALL" if node.args.get("distinct") is False else kind
