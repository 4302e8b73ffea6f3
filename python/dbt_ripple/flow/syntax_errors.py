"""Mistakes that no engine takes for SQL, as far as that is certain from the tokens alone.

That sqlglot cannot parse a query proves nothing: the engine may have a clause that sqlglot does not
know. So what is here asks for no grammar of an engine. Each rule is about tokens that stand beside each
other, or that belong together, and that are wrong whatever an engine knows besides:

* a bracket, a quotation mark or a CASE is not closed, or a bracket is closed that is not open;
* a comma stands after another one, or where a list begins;
* something is left out: after WHERE, AND, ``=`` and their like comes nothing that could be compared;
* a comma is left out: in a SELECT list, after an alias, another expression begins; a CTE begins right
  after another one;
* a word is one letter off FROM, GROUP, JOIN, ..., and stands where only that word can.

The last two are about words, which an engine may have more of; so they ask, besides, that sqlglot cannot
parse the query, and that the words in question are none that an engine could know.

Where a text may be divided into tokens in another way (more than one statement, escaped quotation
marks, dollar quoting) no mistake is reported.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

from sqlglot import TokenType as T
from sqlglot.errors import SqlglotError

from dbt_ripple.flow.reading.reader import tokenize
from dbt_ripple.flow.reading.token_kinds import NAMES, VALUES
from dbt_ripple.reasons import Code, Reason

_DIVIDED_OTHERWISE: Final = re.compile(r"\\['\"`]|\$\w*\$|\{[{%#]")
"""Escaped quotation marks, dollar quoting, and what is left of a template."""
_UNCLOSED: Final = re.compile(r"Missing (.+) from \d+:(\d+)", re.DOTALL)

_CLOSED_BY: Final = {T.L_PAREN: T.R_PAREN, T.L_BRACKET: T.R_BRACKET, T.L_BRACE: T.R_BRACE}
_OPENED_BY: Final = {closing: opening for opening, closing in _CLOSED_BY.items()}
_MARK: Final = {T.L_PAREN: "(", T.L_BRACKET: "[", T.L_BRACE: "{"} | {
    T.R_PAREN: ")",
    T.R_BRACKET: "]",
    T.R_BRACE: "}",
}
_NAMED: Final = frozenset({T.DOT, T.ALIAS})
"""What follows one of these is a name, whatever word it is."""

_END_OF_TEXT: Final = None
_ENDS: Final = frozenset({_END_OF_TEXT, T.R_PAREN})
_CLAUSES: Final = frozenset({T.WHERE, T.HAVING, T.GROUP_BY, T.ORDER_BY})
_AND_OR: Final = frozenset({T.AND, T.OR})
_NO_OPERAND: Final = _ENDS | _CLAUSES | _AND_OR | {T.COMMA, T.THEN}
_INCOMPLETE: Final = {
    T.WHERE: _NO_OPERAND,
    T.HAVING: _NO_OPERAND,
    T.AND: _NO_OPERAND,
    T.OR: _NO_OPERAND,
    T.ON: _NO_OPERAND,
    T.GROUP_BY: _NO_OPERAND,
    T.ORDER_BY: _NO_OPERAND,
    T.FROM: _NO_OPERAND | {T.FROM},
    T.JOIN: _NO_OPERAND | {T.ON, T.USING},
    T.UNION: _ENDS | _CLAUSES | {T.COMMA},
    T.EXCEPT: _ENDS | _CLAUSES,
    T.INTERSECT: _ENDS | _CLAUSES,
    T.WHEN: frozenset({T.THEN, *_ENDS}),
    T.THEN: _ENDS | {T.COMMA, T.FROM, T.WHEN},
    T.ELSE: _ENDS | {T.COMMA, T.FROM},
    T.EQ: _NO_OPERAND | {T.FROM},
    T.NEQ: _NO_OPERAND | {T.FROM},
    T.GTE: _NO_OPERAND | {T.FROM},
    T.LTE: _NO_OPERAND | {T.FROM},
    T.DPIPE: _NO_OPERAND | {T.FROM},
    T.SLASH: (_NO_OPERAND | {T.FROM}) - {_END_OF_TEXT},  # Oracle's tools end a statement with it
    T.SELECT: frozenset({T.COMMA}),
    T.L_PAREN: frozenset({T.COMMA}),
    T.COMMA: frozenset({T.COMMA}),
}
"""What cannot follow a token, because something would have to stand between the two."""
_IS_AN_OPERATOR: Final = frozenset({T.EQ, T.NEQ, T.GTE, T.LTE, T.DPIPE, T.SLASH})
_NAMES_AN_OPERATOR: Final = frozenset({T.L_PAREN, T.COMMA, T.DOT, T.USING})
"""Before an operator that is only named, ``operator(pg_catalog.=)``."""

_TRAILING_COMMA_REFUSED: Final = frozenset(
    "athena mysql oracle postgres redshift sqlite trino tsql".split()
)
"""Dialects of engines that take no comma after the last column, and in which FROM is no name."""

_SURE_FUNCTIONS: Final = frozenset(
    """
    abs avg cast coalesce concat count date_trunc dateadd datediff greatest ifnull least lower max min
    nullif nvl round row_number safe_cast split_part substring sum to_date try_cast upper
    """.split()
)
"""Functions whose names are no word of a clause anywhere."""
_WORDS: Final = frozenset(
    """
    all any approximate as asof at between by collate connect_by_root contains cross cube current distinct div
    escape except exclude fetch filter final first following for force format from full glob group
    having ignore ilike in inner interval into is isnull join keep last lateral left like limit match
    member minus mod natural not notnull nulls of offset on operator or order outer over overlaps
    partition pivot positional preceding prior qualify range regexp rename replace respect right rlike
    row rows sample separator settings similar sounds struct tablesample then to top unbounded union
    unpivot using value values version when where window with within without xor
    """.split()
)
"""Words that some engine reads as more than a name."""
_SELECT_LIST_ENDS: Final = _CLAUSES | {
    T.FROM,
    T.QUALIFY,
    T.LIMIT,
    T.UNION,
    T.EXCEPT,
    T.INTERSECT,
    T.WINDOW,
}
_BEGINS_A_LIST: Final = frozenset({T.SELECT, T.DISTINCT, T.ALL, T.COMMA, T.L_PAREN})
_ENDS_AN_EXPRESSION: Final = NAMES | VALUES | {T.R_PAREN, T.R_BRACKET, T.END, T.STAR}
_COMPARES: Final = frozenset(
    {T.EQ, T.NEQ, T.GT, T.LT, T.GTE, T.LTE, T.DOT, T.IS, T.IN, T.LIKE, T.BETWEEN}
)
_SIDES: Final = frozenset({T.LEFT, T.RIGHT, T.FULL, T.INNER, T.OUTER, T.CROSS})


def syntax_error(
    sql: str, dialect: str, *, unread: bool, columns: Collection[str] = ()
) -> Reason | None:
    r"""What is wrong with a query whatever engine reads it; None where nothing is certain.

    Args:
        sql: one compiled query.
        dialect: the dialect that its text is divided into tokens by.
        unread: whether sqlglot cannot parse it.
        columns: names, in lower case, that are columns of what it reads.

    Example:
        >>> print(syntax_error("select (a + 1 as b\nfrom t", "spark", unread=True))
        cannot be parsed: `(` is not closed (line 1 of the compiled SQL)
        >>> syntax_error("select a from t some clause (of, its, own)", "spark", unread=True)
    """
    if _DIVIDED_OTHERWISE.search(sql) or sql.count("/*") != sql.count("*/"):
        return None
    try:
        tokens = tokenize(sql, dialect)
    except SqlglotError as error:
        unclosed = _UNCLOSED.fullmatch(str(error.__cause__ or error.__context__ or ""))
        if unclosed is None:
            return None
        return _at(Code.NOT_CLOSED(mark=unclosed[1]), sql.count("\n", 0, int(unclosed[2])) + 1)
    while tokens and tokens[-1].token_type is T.SEMICOLON:
        tokens.pop()
    kinds = {token.token_type for token in tokens}
    if not tokens or T.SEMICOLON in kinds or T.UNKNOWN in kinds:
        return None
    text = _Text(tokens, dialect, columns)
    rules = [text.brackets, text.left_out]
    if unread:
        rules += [text.misspelt, text.comma_left_out]
    return next((error for rule in rules for error in rule()), None)


def _at(problem: Reason, line: int) -> Reason:
    return Code.SYNTAX_ERROR(problem=problem, line=line)


def is_close_to(word: str, keyword: str) -> bool:
    """Whether a word is a keyword with one letter left out, another one, or two that changed places.

    Example:
        >>> is_close_to("form", "from"), is_close_to("gruop", "group"), is_close_to("slect", "select")
        (True, True, True)
        >>> is_close_to("orders", "order"), is_close_to("from", "from")
        (False, False)
    """
    if word == keyword or not len(keyword) - 1 <= len(word) <= len(keyword):
        return False
    at = next((i for i, (a, b) in enumerate(zip(word, keyword, strict=False)) if a != b), len(word))
    if len(word) < len(keyword):
        return word[at:] == keyword[at + 1 :]
    other = word[at : at + 2] == keyword[at : at + 2][::-1] and word[at + 2 :] == keyword[at + 2 :]
    return other or word[at + 1 :] == keyword[at + 1 :]


@dataclass
class _Text:
    """The tokens of a text that is one statement."""

    tokens: Sequence[Any]
    dialect: str
    columns: Collection[str]

    def kind(self, at: int) -> T | None:
        """The kind of a token; None before the first and after the last."""
        return self.tokens[at].token_type if 0 <= at < len(self.tokens) else None

    def word(self, at: int) -> str:
        """A word that is no keyword of the dialect, in lower case, where one stands there."""
        return self.tokens[at].text.lower() if self.kind(at) is T.VAR else ""

    def _at_token(self, problem: Reason, at: int) -> Reason:
        """A problem, with its line."""
        return _at(problem, self.tokens[min(at, len(self.tokens) - 1)].line)

    # -- whatever stands between ------------------------------------------------------------------

    def brackets(self) -> Iterator[Reason]:
        """Brackets and CASEs that do not match."""
        open_: list[int] = []
        has_when: set[int] = set()  # the CASEs that are certainly no names
        closed_too_much: list[int] = []
        for at, token in enumerate(self.tokens):
            kind = token.token_type
            if kind in _CLOSED_BY or (kind is T.CASE and self.kind(at - 1) not in _NAMED):
                open_.append(at)
            elif kind is T.WHEN and open_:
                has_when.add(open_[-1])
            elif kind is T.END and open_ and self.kind(open_[-1]) is T.CASE:
                open_.pop()
            elif kind in _OPENED_BY:
                while open_ and self.kind(open_[-1]) is T.CASE:
                    if open_[-1] in has_when:
                        yield self._at_token(Code.NOT_CLOSED(mark="case"), open_[-1])
                        return
                    open_.pop()
                if not open_:
                    closed_too_much.append(at)
                elif self.kind(open_[-1]) is not _OPENED_BY[kind]:
                    yield self._at_token(Code.NOT_OPENED(mark=_MARK[kind]), at)
                    return
                else:
                    open_.pop()
        never = [at for at in open_ if self.kind(at) is not T.CASE or at in has_when]
        # As many too much as too few may be closed by what dbt writes around the query.
        if never and not closed_too_much:
            at = self.never_closed(never)
            mark = "case" if self.kind(at) is T.CASE else _MARK[self.tokens[at].token_type]
            yield self._at_token(Code.NOT_CLOSED(mark=mark), at)
        elif closed_too_much and not never:
            at = closed_too_much[0]
            yield self._at_token(Code.NOT_OPENED(mark=_MARK[self.tokens[at].token_type]), at)

    def never_closed(self, open_: list[int]) -> int:
        """Which bracket was meant: one in which a SELECT list ends that does not begin there."""
        inner: list[int] = []
        for at, token in enumerate(self.tokens):
            kind = token.token_type
            if kind is T.L_PAREN:
                inner.append(at)
            elif kind is T.R_PAREN and inner:
                inner.pop()
            elif kind is T.FROM and inner and self.kind(at - 1) in NAMES and self.is_alias(at - 1):
                begins = {self.kind(i) for i in range(inner[-1] + 1, at)}
                if T.SELECT not in begins:
                    return inner[-1]
        return open_[-1]

    def is_alias(self, at: int) -> bool:
        """Whether a name stands after AS."""
        return self.kind(at - 1) is T.ALIAS

    # -- side by side -----------------------------------------------------------------------------

    def left_out(self) -> Iterator[Reason]:
        """Where something has to stand between two tokens."""
        for at, token in enumerate(self.tokens):
            kind = token.token_type
            cannot_follow = _INCOMPLETE.get(kind)
            if cannot_follow is None or self.kind(at + 1) not in cannot_follow:
                if kind is T.COMMA and self.ends_a_list(at):
                    yield self._at_token(Code.COMMA_TOO_MUCH(), at)
                continue
            before = self.kind(at - 1)
            if kind in _IS_AN_OPERATOR:
                if before in _NAMES_AN_OPERATOR:
                    continue
            elif before in _NAMED:
                continue
            if self.kind(at + 1) is T.COMMA and kind in (T.COMMA, T.SELECT, T.L_PAREN):
                yield self._at_token(Code.COMMA_TOO_MUCH(), at + 1)
            else:
                yield self._at_token(Code.NOTHING_AFTER(word=token.text.lower()), at)

    def ends_a_list(self, at: int) -> bool:
        """Whether a comma is the last of a SELECT list, where the engine takes none."""
        return (
            self.dialect in _TRAILING_COMMA_REFUSED
            and self.kind(at + 1) is T.FROM
            and self.kind(at + 2) in NAMES | {T.L_PAREN}
        )

    # -- words --------------------------------------------------------------------------------------

    def clauses(self) -> Iterator[tuple[int, T | None]]:
        """Every token, with the clause it stands in: SELECT and FROM; None for what is neither."""
        within: list[T | None] = [None]
        for at, token in enumerate(self.tokens):
            kind = token.token_type
            if kind in _CLOSED_BY:
                yield at, within[-1]
                within.append(None)
                continue
            if kind in _OPENED_BY:
                if len(within) > 1:
                    within.pop()
            elif kind is T.SELECT or (kind is T.FROM and self.kind(at - 1) is not T.DISTINCT):
                within[-1] = kind
            elif kind in _SELECT_LIST_ENDS:
                within[-1] = None
            yield at, within[-1]

    def comma_left_out(self) -> Iterator[Reason]:
        """Where an expression begins in a SELECT list that still has one that ended, or a CTE so."""
        for at, clause in self.clauses():
            if self.is_after_a_cte(at) or self.is_after_a_number(at):
                yield self._at_token(Code.COMMA_LEFT_OUT(word=self.tokens[at].text), at)
            if clause is not T.SELECT:
                continue
            if (self.is_after_its_name(at) and self.begins_an_expression(at)) or (
                self.is_a_column(at - 1) and self.is_a_call(at)
            ):
                yield self._at_token(Code.COMMA_LEFT_OUT(word=self.tokens[at].text), at)

    def is_after_a_cte(self, at: int) -> bool:
        """Whether a CTE begins right after the bracket of another one, ``) y AS (SELECT``."""
        kinds = [self.kind(at + i) for i in (-1, 1, 2, 3)]
        return (
            self.kind(at) in NAMES
            and self.word(at) not in _WORDS
            and kinds == [T.R_PAREN, T.ALIAS, T.L_PAREN, T.SELECT]
        )

    def is_after_a_number(self, at: int) -> bool:
        """Whether two numbers stand side by side."""
        if not self.kind(at) is self.kind(at - 1) is T.NUMBER:
            return False
        return bool(self.tokens[at].start > self.tokens[at - 1].end + 1)

    def is_after_its_name(self, at: int) -> bool:
        """Whether what stands before is the name of an expression, with AS or certainly without."""
        name = at - 1
        if self.kind(name) not in NAMES or self.word(name) in _WORDS:
            return False
        if self.kind(name - 1) is T.ALIAS:
            return self.kind(name - 2) not in {None, *_BEGINS_A_LIST}
        if self.kind(name - 1) is T.R_PAREN:
            return True
        return self.is_a_column(name - 1)

    def is_a_column(self, at: int) -> bool:
        """Whether a name is a column for certain, qualified or one of what the query reads."""
        if self.kind(at) not in NAMES or self.word(at) in _WORDS:
            return False
        if self.kind(at - 1) is T.DOT:
            return True
        return (
            self.kind(at - 1) in (T.COMMA, T.SELECT)
            and self.tokens[at].text.lower() in self.columns
        )

    def begins_an_expression(self, at: int) -> bool:
        """Whether nothing but an expression can begin with a token that stands after a name."""
        kind, following = self.kind(at), self.kind(at + 1)
        if kind in VALUES or kind is T.CASE or self.is_a_call(at):
            return True
        word = self.tokens[at].text.lower()
        if kind not in NAMES or self.word(at) in _WORDS:
            return False
        return following is T.DOT or (
            word in self.columns and following in {T.COMMA, T.FROM, T.ALIAS, *_ENDS}
        )

    def is_a_call(self, at: int) -> bool:
        """Whether a function is called that is one everywhere."""
        return self.kind(at + 1) is T.L_PAREN and self.tokens[at].text.lower() in _SURE_FUNCTIONS

    def misspelt(self) -> Iterator[Reason]:
        """Words that are one letter off the only one that can stand there."""
        for at, clause in self.clauses():
            word = self.word(at)
            if not word or self.kind(at - 1) in _NAMED:
                continue
            keyword = self.keyword_meant(at, word, clause)
            if keyword:
                yield self._at_token(Code.MISSPELT(word=self.tokens[at].text, keyword=keyword), at)

    def keyword_meant(self, at: int, word: str, clause: T | None) -> str:
        """The keyword that a word was meant to be, where only that can be."""
        before, following = self.kind(at - 1), self.kind(at + 1)
        if before is None:
            first = ("select", "with")
            return next((k for k in first if is_close_to(word, k)), "") if following else ""
        if self.word(at + 1) == "by":
            return next((k for k in ("group", "order") if is_close_to(word, k)), "")
        if before in _SIDES and following in NAMES | {T.L_PAREN} and is_close_to(word, "join"):
            return "join"
        if before not in _ENDS_AN_EXPRESSION:
            return ""
        if clause is T.SELECT and following in NAMES and is_close_to(word, "from"):
            ends = at + 2
            while self.kind(ends) is T.DOT:
                ends += 2
            return "from" if self.kind(ends) in _ENDS | _CLAUSES | _SIDES | {T.JOIN} else ""
        if clause is T.FROM and is_close_to(word, "where"):
            return "where" if following in NAMES and self.kind(at + 2) in _COMPARES else ""
        return ""
