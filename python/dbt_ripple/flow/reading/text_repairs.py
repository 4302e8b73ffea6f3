"""Texts that sqlglot misreads or does not parse, as texts that it reads: text in, text out.

Comments and strings are safe, because the work is done between tokens. At the end are the trees that sqlglot makes
otherwise than the engine reads the text (`with_json_arrows`, `with_aliases`): they are changed in place.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final

from sqlglot import TokenType, exp

from dbt_ripple.flow.reading.dialects import (
    GIVEN_LAMBDAS,
    HAVE_LAMBDAS,
    LIKE_POSTGRES,
    function_name,
)
from dbt_ripple.flow.reading.refusals import Unsupported
from dbt_ripple.flow.reading.token_kinds import NAMES, VALUES

# -- characters without a width ---------------------------------------------------------------------

_INVISIBLE: Final = {
    "clickhouse": "\u180e\u200b\u200c\u200d\u2060\ufeff",
    "duckdb": "\u200b\u2060\ufeff",
}
"""What an engine reads as a space, and sqlglot as a letter of a name. A file may begin with one."""


def with_spaces(sql: str, dialect: str, tokenize: Callable[[str], list[Any]]) -> str:
    """The text with a space for each character that the engine reads as one and sqlglot as a letter of a name.

    It is as long as before, so that places in it stay what they are; quotes and comments stay, too.
    """
    invisible = "" if sql.isascii() else _INVISIBLE.get(dialect, "")
    if not any(c in sql for c in invisible):
        return sql
    as_spaces = str.maketrans(invisible, " " * len(invisible))
    pieces = []
    done = 0
    for token in tokenize(sql):
        if token.token_type is TokenType.VAR or sql[token.start] in invisible:
            pieces += [
                sql[done : token.start],
                sql[token.start : token.end + 1].translate(as_spaces),
            ]
            done = token.end + 1
    return "".join((*pieces, sql[done:]))


# -- pipes ------------------------------------------------------------------------------------------

_OPEN: Final = frozenset({TokenType.L_PAREN, TokenType.L_BRACKET})
_CLOSE: Final = frozenset({TokenType.R_PAREN, TokenType.R_BRACKET})
_REWRITTEN: Final = frozenset({"SET", "DROP", "RENAME", "AS"})
_ENDS: Final = frozenset({"LIMIT", "OFFSET", "DISTINCT", "TABLESAMPLE"})
"""Operators of which sqlglot makes clauses that are evaluated after those of a later operator."""
_READ_FIRST: Final = frozenset(
    "JOIN INNER LEFT RIGHT FULL CROSS NATURAL SEMI ANTI LATERAL PIVOT UNPIVOT TABLESAMPLE".split()
)
"""Operators of which it makes a part of FROM, which is evaluated before the WHERE of an earlier one."""
_KEEP_NAMES: Final = frozenset({"WHERE", "ORDER BY", "SORT BY", "EXTEND", *_ENDS})
"""Operators behind which the name of the relation in FROM still has a meaning."""


def without_unknown_pipes(sql: str, tokenize: Callable[[str], list[Any]]) -> str:
    """The query with other pipes for those that sqlglot does not parse, or misreads; as it is where there are none.

    ``|> SET c = e`` is ``|> SELECT * REPLACE (e AS c)``, ``|> DROP c`` is ``|> SELECT * EXCEPT (c)``,
    ``|> RENAME c AS d`` is ``|> SELECT * RENAME (c AS d)``, and ``FROM ... |> AS p`` is ``FROM (FROM ...) AS p``.
    sqlglot also makes one SELECT of operators that follow one another, whatever their order: ``|> LIMIT 1 |> WHERE a``
    as if it were ``|> WHERE a |> LIMIT 1``. Where that would be another query, what comes first is put in brackets:
    ``FROM (... |> LIMIT 1) |> WHERE a``; and ``|> SELECT DISTINCT c``, of which it drops the word, is
    ``|> SELECT c |> DISTINCT``.
    """
    while True:
        tokens = tokenize(sql)
        pipes = [i for i, t in enumerate(tokens[:-1]) if t.token_type is TokenType.PIPE_GT]
        for pipe in pipes:
            word = tokens[pipe + 1].text.upper()
            if word in _REWRITTEN:
                sql = _rewritten(sql, tokens, pipe)
                break
            if (
                word == "SELECT"
                and tokens[min(pipe + 2, len(tokens) - 1)].text.upper() == "DISTINCT"
            ):
                end = _end_of_operator(tokens, pipe)
                items = sql[tokens[pipe + 2].end + 1 : tokens[end - 1].end + 1]
                rest = sql[tokens[end - 1].end + 1 :]
                sql = f"{sql[: tokens[pipe].start]}|> SELECT{items} |> DISTINCT{rest}"
                break
            begin = _pipeline_start(tokens, pipe)
            earlier = _operators(tokens, begin, pipe)
            if (
                _ENDS & {*earlier}
                or (word in _READ_FIRST and "WHERE" in earlier)
                or tokens[begin].token_type is not TokenType.FROM
            ):
                inner = sql[tokens[begin].start : tokens[pipe].start]
                name = _name(tokens, begin, pipe) if _KEEP_NAMES.issuperset(earlier) else ""
                sql = (
                    f"{sql[: tokens[begin].start]}FROM ({inner}){name} {sql[tokens[pipe].start :]}"
                )
                break
        else:
            return sql


def _operators(tokens: list[Any], begin: int, pipe: int) -> list[str]:
    """The words of the operators of a pipeline before one of its pipes."""
    words = []
    depth = 0
    for i in range(begin, pipe):
        kind = tokens[i].token_type
        depth += (kind in _OPEN) - (kind in _CLOSE)
        if kind is TokenType.PIPE_GT and depth == 0:
            words.append(tokens[i + 1].text.upper())
    return words


def _name(tokens: list[Any], begin: int, pipe: int) -> str:
    """`` AS name`` of the one relation in the FROM that a pipeline begins with, if there is just one."""
    if tokens[begin].token_type is not TokenType.FROM:
        return ""
    behind = next(i for i in range(begin, pipe + 1) if tokens[i].token_type is TokenType.PIPE_GT)
    relation = tokens[begin + 1 : behind]
    plain = {TokenType.VAR, TokenType.IDENTIFIER, TokenType.DOT, TokenType.ALIAS}
    if not relation or any(t.token_type not in plain for t in relation):
        return ""
    last = relation[-1]
    quote = "`" if last.token_type is TokenType.IDENTIFIER else ""
    return f" AS {quote}{last.text}{quote}"


def _rewritten(sql: str, tokens: list[Any], pipe: int) -> str:
    """Replace the operator behind one pipe."""
    word = tokens[pipe + 1].text.upper()
    end = _end_of_operator(tokens, pipe)
    starts = [pipe + 2]  # of the comma-separated parts
    depth = 0
    for i in range(pipe + 2, end):
        kind = tokens[i].token_type
        depth += (kind in _OPEN) - (kind in _CLOSE)
        if depth == 0 and kind is TokenType.COMMA:
            starts.append(i + 1)
    stops = [*(s - 1 for s in starts[1:]), end]
    head, tail = sql[: tokens[pipe].start], sql[tokens[end - 1].end + 1 :]

    def text(first: int, stop: int) -> str:
        return sql[tokens[first].start : tokens[stop - 1].end + 1]

    if word == "AS":
        begin = _pipeline_start(tokens, pipe)
        inner = sql[tokens[begin].start : tokens[pipe].start]
        return f"{sql[: tokens[begin].start]}FROM ({inner}) AS {text(pipe + 2, end)}{tail}"
    if word == "DROP":
        return f"{head}|> SELECT * EXCEPT ({text(pipe + 2, end)}){tail}"
    if word == "RENAME":
        pairs = (
            f"{text(start, start + 1)} AS {text(stop - 1, stop)}"  # AS may be left out
            for start, stop in zip(starts, stops, strict=True)
        )
        return f"{head}|> SELECT * RENAME ({', '.join(pairs)}){tail}"
    # name = expression, ...
    parts = [
        f"{text(start + 2, stop)} AS {text(start, start + 1)}"
        for start, stop in zip(starts, stops, strict=True)
    ]
    return f"{head}|> SELECT * REPLACE ({', '.join(parts)}){tail}"


def _end_of_operator(tokens: list[Any], pipe: int) -> int:
    """The token behind the operator that a pipe begins."""
    depth = 0
    for i in range(pipe + 2, len(tokens)):
        kind = tokens[i].token_type
        depth += (kind in _OPEN) - (kind in _CLOSE)
        if depth < 0 or (depth == 0 and kind in (TokenType.PIPE_GT, TokenType.SEMICOLON)):
            return i
    return len(tokens)


def _pipeline_start(tokens: list[Any], pipe: int) -> int:
    """The first token of the query a pipe continues: behind its bracket or the WITH before it."""
    depth = 0
    begin = 0
    for i in range(pipe - 1, -1, -1):
        kind = tokens[i].token_type
        if kind in _CLOSE:
            depth += 1
        elif kind in _OPEN:
            depth -= 1
            if depth < 0:
                break
        elif depth == 0 and kind in (TokenType.FROM, TokenType.SELECT, TokenType.TABLE):
            begin = i
    return begin


# -- clauses that are not parsed --------------------------------------------------------------------

_OF_JSON: Final = "|".join(
    (
        r"RETURNING \w+(?: \( \d+(?: , \d+)? \))?",
        r"(?:NULL|ABSENT) ON NULL",
        r"(?:NULL|ERROR|EMPTY|DEFAULT (?:'[^']*'|\d+|NULL)) ON (?:ERROR|EMPTY)",
        r"FORMAT JSON(?: ENCODING UTF\d+)?",
        r"(?:WITH|WITHOUT)(?: (?:UN)?CONDITIONAL)?(?: ARRAY)? WRAPPER",
    )
)
"""What may stand behind the arguments of a function of JSON, and behind a column of JSON_TABLE."""
_CLAUSES: Final = {
    "": rf"(?:{_OF_JSON})(?: (?:{_OF_JSON}))*(?= [),])",
    "clickhouse": r"(?:(?<=ANY )|(?<=ALL )|(?<=SEMI )|(?<=ANTI )|(?<=ASOF ))OUTER(?= JOIN)",
    "postgres": r"USING (?:[<>]|OPERATOR \( \w+ \. [<>] \))",
    "tsql": r"(?<=INDEX )= (?:\w+|\( \w+ \))(?= [),])|(?<=OPENROWSET \( )BULK(?= N?')",
}
"""What is left out: of all dialects, and of one; patterns of tokens in upper case, a space between them."""
_BEGIN_AN_ARGUMENT: Final = frozenset({TokenType.L_PAREN, TokenType.COMMA, TokenType.DISTINCT})
_END_AN_OPERAND: Final = frozenset(
    {TokenType.R_PAREN, TokenType.COMMA, TokenType.ORDER_BY, TokenType.ARROW, TokenType.DARROW}
)
_SIGNS_OF_OPERATORS: Final = re.compile(r"[-+*/<>=~!@#%^&|?]+")
_OF_LONGER_OPERATORS: Final = frozenset("~!@#%^&|?")


def without_unparsed_clauses(
    sql: str, tokens: Sequence[Any], dialect: str
) -> tuple[str, list[str]] | None:
    """The text without clauses that sqlglot does not parse and that read no column; None where it has none.

    They say how a function reads and writes JSON, which index is used, how ORDER BY compares. What is left
    out is told: it is a part of all that the query gives, so a change of it counts. An operator of Postgres
    that sqlglot does not know is written as `OPERATOR(public.<#>)`, which it reads.

    Example:
        >>> from sqlglot.dialects.postgres import Postgres
        >>> sql = "select json_serialize(a returning text), b <#> c from t"
        >>> without_unparsed_clauses(sql, Postgres().tokenize(sql), "postgres")
        ('select json_serialize(a ), b  OPERATOR(public.<#>)  c from t', ['RETURNING TEXT'])
    """
    cuts: list[tuple[int, int, str]] = []
    left_out: list[str] = []
    for start, end, words in _clauses(sql, tokens, dialect):
        cuts.append((start, end, ""))
        left_out.append(words)
    if dialect in LIKE_POSTGRES:
        cuts += _unknown_operators(sql, tokens)
    if dialect not in HAVE_LAMBDAS:
        cuts += _arrows(sql, tokens)
    pieces: list[str] = []
    at = 0
    for start, end, instead in sorted(cuts):
        if start >= at:
            pieces += [sql[at:start], instead]
            at = end
    return ("".join([*pieces, sql[at:]]), left_out) if cuts else None


def _clauses(sql: str, tokens: Sequence[Any], dialect: str) -> Iterator[tuple[int, int, str]]:
    """Where such clauses stand, and their words."""
    written = [sql[token.start : token.end + 1].upper() for token in tokens]
    starts: dict[int, int] = {}
    ends: dict[int, int] = {}
    length = 0
    for token, words in zip(tokens, written, strict=True):
        starts[length] = token.start
        length += len(words) + 1
        ends[length - 1] = token.end + 1
    patterns = [_CLAUSES[""], *([_CLAUSES[dialect]] if dialect in _CLAUSES else [])]
    for match in re.finditer("|".join(patterns), " ".join(written)):
        if match.start() in starts and match.end() in ends:
            yield starts[match.start()], ends[match.end()], match[0]


def _arrows(sql: str, tokens: Sequence[Any]) -> Iterator[tuple[int, int, str]]:
    """`f(b -> 'k' order by c)`, where sqlglot sees a lambda: with brackets around `b -> 'k'` it does not."""
    kinds = [token.token_type for token in tokens]
    for i in range(1, len(tokens) - 3):
        before, name, arrow, key, behind = kinds[i - 1 : i + 4]
        if (
            arrow is TokenType.ARROW
            and before in _BEGIN_AN_ARGUMENT
            and name in NAMES
            and key in VALUES
            and behind in _END_AN_OPERAND
        ):
            start, end = tokens[i].start, tokens[i + 2].end + 1
            yield start, end, f"({sql[start:end]})"


def _unknown_operators(sql: str, tokens: Sequence[Any]) -> Iterator[tuple[int, int, str]]:
    """Where operators stand that sqlglot reads as several, or as the mark of a parameter."""
    inside = 0
    for token in tokens:
        match = _SIGNS_OF_OPERATORS.match(sql, token.start)
        if match is None or token.start < inside or token.token_type is TokenType.STRING:
            continue
        operator = match[0]
        if not _OF_LONGER_OPERATORS.intersection(operator):  # `=-1` is `= -1`
            operator = operator[0] + operator[1:].rstrip("+-")
        inside = token.start + len(operator)
        is_known = token.end + 1 == inside and operator != "@"
        if operator == "@" or (len(operator) > 1 and not is_known):
            yield token.start, inside, f" OPERATOR(public.{operator}) "


_NO_VALUES_OF_JSON: Final = (exp.Add, exp.Sub, exp.Mul, exp.Div, exp.IntDiv, exp.Mod, exp.Pow)
"""Operators that bind their operands before `->` does, on Postgres."""
_BIND_LATER: Final = (exp.Binary, exp.Between, exp.In)
_CHAINED: Final = (exp.JSONExtract, exp.JSONExtractScalar)
_BIND_FIRST: Final = (exp.Dot, exp.Collate)


_ALIAS_FIRST: Final = frozenset({"fabric", "tsql"})
"""Dialects that write `a = value` for `value as a` in a select list."""


def with_aliases(tree: Any, dialect: str) -> None:
    """Make `a = (select ...)` a value with an alias: sqlglot takes the name for that of a relation."""
    if dialect not in _ALIAS_FIRST:
        return
    for query in [*tree.find_all(exp.Subquery)]:
        alias = query.args.get("alias")
        if alias is not None and query.arg_key == "expressions" and type(alias) is exp.Identifier:
            query.set("alias", None)
            query.replace(exp.Alias(this=query.copy(), alias=alias))


def with_json_arrows(tree: Any, dialect: str) -> None:
    """Put the operator in the place of each lambda that is none: `f(b -> 'k')` is one to sqlglot.

    Engines that have no lambdas written so read the column b there, and DuckDB does in a call of any
    function but those that are given lambdas. Without this, nobody would see that b is read.
    (https://github.com/tobymao/sqlglot/issues/8074)

    Raises:
        Unsupported: of DuckDB, where another operator stands beside it without brackets.
    """
    if dialect in HAVE_LAMBDAS:
        return
    for node in [*tree.find_all(exp.Lambda)]:
        if len(node.expressions) != 1 or node.args.get("colon"):
            continue
        (name,) = node.expressions
        if type(name) is not exp.Identifier or _is_given_lambdas(node.parent, dialect):
            continue
        for again in [*node.this.find_all(exp.Identifier)]:
            if again.this == name.this and not isinstance(again.parent, (exp.Column, exp.Dot)):
                again.replace(exp.Column(this=again.copy()))
        node.replace(_arrow(exp.Column(this=name.copy()), node.this, dialect))


def _is_given_lambdas(call: Any, dialect: str) -> bool:
    names = GIVEN_LAMBDAS.get(dialect)
    if names is None or not isinstance(call, exp.Func):
        return False
    name = function_name(call)
    return name.startswith(names) if isinstance(names, tuple) else name in names


def _arrow(column: exp.Column, behind: Any, dialect: str) -> Any:
    """`column -> behind`, where of `'k' = 1` only the 'k' belongs to the operator."""
    operand = behind
    while isinstance(operand, _BIND_LATER) and not isinstance(operand, _BIND_FIRST):
        if dialect in LIKE_POSTGRES and isinstance(operand, _NO_VALUES_OF_JSON):
            break
        if dialect == "duckdb" and not isinstance(operand, _CHAINED):
            raise Unsupported("-> beside another operator, without brackets")
        operand = operand.this
    arrow = exp.JSONExtract(this=column, expression=operand.copy(), only_json_types=True)
    if operand is behind:
        return arrow
    operand.replace(arrow)
    return behind
