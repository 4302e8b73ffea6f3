"""A query as a person compares two versions of it: the SQL of its columns and clauses.

Fingerprints decide what an edit means; this shows where it is in the text, and says whether the text
may be SQL to sqlglot alone, so that a test or model runs to show it (`selection.models_to_build`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Final

from sqlglot import TokenType, exp
from sqlglot.errors import SqlglotError

from dbt_ripple.flow.definitions import definitions
from dbt_ripple.flow.reading.dialects import keywords, written
from dbt_ripple.flow.reading.reader import UNREAD, parse_statement, tokenize
from dbt_ripple.tuning import for_deep_queries

_FOLLOWED: Final = 50
"""CTEs a column is followed through."""


@dataclass(slots=True)
class QueryText:
    """The text of a query.

    Attributes:
        columns: the SQL behind each output by lower-case name: as the last SELECT has it, then, as
            long as that is a plain column of a CTE, as that one has it.
        definitions: the SQL behind each output over the relations that the query reads (see
            `flow.definitions`), by lower-case name.
        clauses: the SQL of everything that decides which rows there are, without comments.
    """

    columns: dict[str, list[str]] = field(default_factory=dict)
    definitions: dict[str, str] = field(default_factory=dict)
    clauses: Counter[str] = field(default_factory=Counter)


@for_deep_queries
def text_of_query(sql: str, dialect: str) -> QueryText:
    """The text of one query; empty where it cannot be parsed."""
    try:
        parsed = parse_statement(sql, dialect)
        return QueryText(
            _columns(parsed, dialect),
            definitions(parsed, dialect),
            Counter(_clauses(parsed, dialect)),
        )
    except UNREAD:
        return QueryText()


# Typed as `Any`: sqlglot's compiled classes give their arguments no types.
def _columns(parsed: Any, dialect: str) -> dict[str, list[str]]:
    text = _CteColumns(parsed)
    return {
        name: [written(e, dialect) for e in text.chain(*definition)]
        for name, definition in text.columns(_first_select(parsed)).items()
    }


class _CteColumns:
    """What the CTEs of a query show, a ``*`` over CTEs included; each is looked at once."""

    def __init__(self, parsed: Any) -> None:
        self.ctes = {cte.alias.lower(): cte.this for cte in parsed.find_all(exp.CTE)}
        self.columns_of: dict[str, dict[str, tuple[Any, Any]]] = {}

    def of_cte(self, name: str) -> dict[str, tuple[Any, Any]]:
        """The columns of a CTE; none where it is no CTE."""
        name = name.lower()
        if name not in self.columns_of:
            self.columns_of[name] = {}  # of a recursive CTE, until it is read
            inner = self.ctes.get(name)
            self.columns_of[name] = self.columns(_first_select(inner)) if inner is not None else {}
        return self.columns_of[name]

    def columns(self, select: Any) -> dict[str, tuple[Any, Any]]:
        """Each column by lower-case name: its expression, and the SELECT that this stands in."""
        columns: dict[str, tuple[Any, Any]] = {}
        for item in select.expressions if select is not None else ():
            star = item.this if isinstance(item, exp.Column) else item
            if not isinstance(star, exp.Star):
                if item.alias_or_name:
                    inner = item.this if isinstance(item, exp.Alias) else item
                    columns[item.alias_or_name.lower()] = select, inner
                continue
            left_out = {
                e.name.lower()
                for argument in ("except_", "replace", "rename")
                for e in star.args.get(argument) or ()
            }
            for table in _tables(select, item.table if isinstance(item, exp.Column) else None):
                for name, column in self.of_cte(table.name).items():
                    if name not in left_out:
                        columns.setdefault(name, column)
        return columns

    def chain(self, select: Any, column: Any) -> Iterator[Any]:
        """An expression, and as long as it is a column of a CTE what that is there."""
        for _ in range(_FOLLOWED):
            yield column
            if not isinstance(column, exp.Column):
                return
            source = _source(select, column.table)
            definition = self.of_cte(source).get(column.name.lower()) if source else None
            if definition is None:
                return
            select, column = definition


def _first_select(node: Any) -> Any:
    while node is not None and not isinstance(node, exp.Select):
        node = node.args.get("expression" if isinstance(node, (exp.Create, exp.Insert)) else "this")
        if not isinstance(node, exp.Expression):
            return None
    return node


def _tables(select: Any, qualifier: str | None) -> list[Any]:
    """The tables a SELECT reads by name, or the one that a qualifier means."""
    from_ = select.args.get("from_")
    sources = [from_.this] if from_ is not None else []
    sources += [join.this for join in select.args.get("joins") or ()]
    tables = [s for s in sources if isinstance(s, exp.Table)]
    if qualifier is None:
        return tables
    return [t for t in tables if t.alias_or_name.lower() == qualifier.lower()][:1]


def _source(select: Any, qualifier: str) -> str:
    """The table a qualifier means in a SELECT; without one, the only table there is."""
    tables = _tables(select, qualifier or None)
    alone = len(select.args.get("joins") or ()) == 0
    return str(tables[0].name) if tables and (qualifier or alone) else ""


def _clauses(parsed: Any, dialect: str) -> Iterator[str]:
    ctes = {cte.alias.lower() for cte in parsed.find_all(exp.CTE)}
    for node in parsed.walk():
        if isinstance(node, (exp.Where, exp.Having, exp.Qualify)):
            for condition in conjuncts(node.this):
                yield f"{node.key.upper()} {written(condition, dialect)}"
        elif isinstance(node, (exp.Group, exp.Limit, exp.Offset)):
            yield " ".join(written(node, dialect).split())
        elif isinstance(node, exp.Distinct) and isinstance(node.parent, exp.Select):
            yield "SELECT DISTINCT"
        elif isinstance(node, exp.Join):
            table = node.this
            name = table.name if isinstance(table, exp.Table) else ""
            shown = node.copy()
            if name and name.lower() not in ctes:
                shown.set("this", exp.table_(name))  # where it lies is the target's affair
            yield " ".join(written(shown, dialect).split())
        elif isinstance(node, exp.From):
            if isinstance(node.this, exp.Table) and node.this.name.lower() not in ctes:
                yield f"FROM {node.this.name}"
        elif isinstance(node, exp.SetOperation):
            yield f"{node.key.upper()} {'DISTINCT' if node.args.get('distinct') else 'ALL'}"
        elif isinstance(node, (exp.Lateral, exp.Unnest, exp.TableSample, exp.Pivot)):
            yield " ".join(written(node, dialect).split())


def conjuncts(condition: Any) -> Iterator[Any]:
    """What AND joins in a condition, in its order."""
    stack = [condition]
    while stack:
        node = stack.pop()
        if isinstance(node, exp.And):
            stack += [node.right, node.left]
        elif isinstance(node, exp.Paren) and isinstance(node.unnest(), exp.And):
            stack.append(node.unnest())
        else:
            yield node


def same_words(one: str, other: str, dialect: str) -> bool:
    r"""Whether two queries are the same but for layout, comments and the case of keywords.

    Example:
        >>> same_words("SELECT a FROM t -- all", "select a\nfrom t", "spark")
        True
        >>> same_words("select a from t", "select A from t", "spark")
        False
    """
    try:
        first, second, words = _tokens(one, other, dialect)
    except SqlglotError:
        return one == other
    return [_word(t, words) for t in first] == [_word(t, words) for t in second]


def _tokens(one: str, other: str, dialect: str) -> tuple[list[Any], list[Any], Any]:
    """Two queries as tokens, and the keywords of their dialect."""
    return tokenize(one, dialect), tokenize(other, dialect), keywords(dialect)


def same_but_for_names(one: str, other: str, dialect: str) -> bool:
    r"""Whether two queries are the same but for layout, comments and consistently other names.

    Example:
        >>> same_but_for_names("with a as (select x from t) select x from a",
        ...                    "with b as (select x from t) select x from b", "spark")
        True
        >>> same_but_for_names("select a, b from t", "select a, a from t", "spark")
        False
        >>> same_but_for_names("select lower(a) from t", "select upper(a) from t", "spark")
        False
    """
    try:
        first, second, words = _tokens(one, other, dialect)
    except SqlglotError:
        return one == other
    pairs: set[tuple[str, str]] = set()
    if len(first) != len(second):
        return False
    calls = [t.token_type == TokenType.L_PAREN for t in first[1:]] + [False]
    for token, twin, call in zip(first, second, calls, strict=True):
        if not call and _is_name(token) and _is_name(twin):
            pairs.add((token.text, twin.text))
        elif _word(token, words) != _word(twin, words):
            return False
    return len(pairs) == len({old for old, _ in pairs}) == len({new for _, new in pairs})


_PLAIN: Final = (
    exp.Column,
    exp.Identifier,
    exp.Literal,
    exp.Paren,
    exp.Null,
    exp.Boolean,
    exp.Not,
    exp.And,
    exp.Or,
    exp.Predicate,
    exp.Neg,
)
"""What a condition is made of that is one value however often it is evaluated."""


def folded(sql: str, dialect: str) -> str:
    """A query without what every engine takes out of it before it makes a plan.

    These are conditions that are true by themselves, conditions that are said twice, ``else null``, and the 1 of
    ``count(1)``.
    What cannot be parsed comes back as it is.

    Example:
        >>> folded("select a from t where (a > 1) and 1 = 1 and a > 1", "duckdb")
        'SELECT a FROM t WHERE a > 1'
        >>> folded("select case when a then b else null end from t where true", "duckdb")
        'SELECT CASE WHEN a THEN b END FROM t'
        >>> folded("select a from t where f(a) and f(a)", "duckdb")
        'SELECT a FROM t WHERE F(a) AND F(a)'
    """
    try:
        parsed: Any = parse_statement(sql, dialect)
        for case in list(parsed.find_all(exp.Case)):
            if isinstance(case.args.get("default"), exp.Null):
                case.set("default", None)
        for count in list(parsed.find_all(exp.Count)):
            if isinstance(count.this, exp.Literal):
                count.set("this", exp.Star())
        for clause in list(parsed.find_all(exp.Where, exp.Having, exp.Qualify)):
            conditions: list[Any] = []
            for condition in conjuncts(clause.this):
                said = condition.unnest()
                again = said in conditions and all(isinstance(n, _PLAIN) for n in said.walk())
                if not again and not _is_true(said):
                    conditions.append(said)
            if conditions:
                clause.set("this", exp.and_(*conditions, copy=False))
            elif isinstance(clause, exp.Where):  # HAVING makes one row of all
                clause.pop()
        return written(parsed, dialect)
    except UNREAD:
        return sql


def _is_true(condition: Any) -> bool:
    if isinstance(condition, exp.EQ) and isinstance(condition.this, exp.Literal):
        return bool(condition.this == condition.expression)
    return isinstance(condition, exp.Boolean) and bool(condition.this)


def computed(sql: str, dialect: str) -> set[str] | None:
    """What a query computes anywhere, also where nothing reads it; None where it cannot be parsed.

    These are its conditions, keys and outputs, without names of tables and outputs. A column that
    is only passed on is none of them, but beside an aggregate, where it may not stand.
    """
    try:
        parsed: Any = parse_statement(sql, dialect)
        for column in list(parsed.find_all(exp.Column)):
            column.set("table", None)
        texts: set[str] = set()
        # The innermost first: what stands around a query holds a mark in its place.
        for query in reversed(list(parsed.find_all(exp.Select))):
            alone = [e.unalias() for e in query.expressions]
            grouped = query.args.get("group") or any(e.find(exp.AggFunc) for e in alone)
            texts.update(
                written(e, dialect)
                for e in alone
                if grouped or not isinstance(e, exp.Column | exp.Star)
            )
            texts.update(_conditions(query, dialect))
            if query.parent is not None:
                query.replace(exp.var("query"))
        texts.update(_conditions(parsed, dialect))
        return texts
    except UNREAD:
        return None


def _conditions(query: Any, dialect: str) -> Iterator[str]:
    clauses = (exp.Where, exp.Having, exp.Group, exp.Order, exp.Qualify, exp.Join)
    for clause in query.find_all(*clauses):
        condition = clause.args.get("on") if isinstance(clause, exp.Join) else clause
        if condition is not None:
            yield written(condition, dialect)
        if isinstance(clause, exp.Join) and not _every_engine_takes(clause):
            bare = clause.copy()
            bare.set("this", exp.table_("joined"))
            yield written(bare, dialect)


def _every_engine_takes(join: Any) -> bool:
    """Whether a join has a condition where it needs one, and none where it may not have one.

    sqlglot takes ``CROSS JOIN t ON x`` and ``LEFT JOIN t``, which most engines do not.
    """
    kind = {str(join.args.get(part) or "").upper() for part in ("method", "side", "kind")} - {""}
    has_condition = bool(join.args.get("on") or join.args.get("using"))
    if has_condition:
        return len(kind - {"OUTER"}) <= 1 and kind <= {"INNER", "LEFT", "RIGHT", "FULL", "OUTER"}
    # Without words and without a condition it is a comma, or a JOIN whose ON was forgotten.
    return kind == {"CROSS"}


def is_plainly_written(sql: str, dialect: str) -> bool:
    """Whether a query is, but for layout and comments, what its parse tree is as text.

    Then nothing in it is what only sqlglot takes for SQL: clauses in another order, a comma too many,
    a word that is left out.

    Example:
        >>> is_plainly_written("select a from t where a = 1 group by a", "spark")
        True
        >>> is_plainly_written("select a from t group by a where a = 1", "spark")
        False
        >>> is_plainly_written("select a, from t", "spark")
        False
    """
    try:
        again = written(parse_statement(sql, dialect), dialect)
        return same_words(sql, again, dialect)
    except UNREAD:
        return False


def names_in(sql: str, dialect: str) -> set[str]:
    """Every word of a query that may name a column, in lower case; also those nothing reads."""
    try:
        tokens = tokenize(sql, dialect)
    except SqlglotError:
        return set(sql.lower().split())
    strings = (TokenType.STRING, TokenType.NUMBER)
    return {token.text.lower() for token in tokens if token.token_type not in strings}


def _is_name(token: Any) -> bool:
    return token.token_type in (TokenType.VAR, TokenType.IDENTIFIER)


def _word(token: Any, keywords: Any) -> tuple[Any, str]:
    text: str = token.text
    if token.token_type in (TokenType.IDENTIFIER, TokenType.STRING):
        return token.token_type, text
    return token.token_type, text.upper() if text.upper() in keywords else text
