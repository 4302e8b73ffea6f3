"""Calls of a project's own functions, found in a text and marked with what decides their values.

What a call gives does not stand in the query that has it. So the name of the schema before the function's is
replaced by a mark: what the function is, and its fingerprint. All that is made of the call then differs
where the function does, wherever that is, and nothing else.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection
from typing import Any, Final, Literal, NamedTuple

FunctionKind = Literal["scalar", "aggregate", "unknown"]

KINDS: Final[dict[str, FunctionKind]] = {
    "scalar": "scalar",
    "aggregate": "aggregate",
    "unknown": "unknown",
}
"""What a function may be."""
_MARK: Final = re.compile(rf"dbt_ripple_({'|'.join(KINDS)})_[0-9a-f]{{32}}", re.I)
_WORD: Final = re.compile(r"\w+")
_CALLED_WITHOUT_BRACKETS: Final = frozenset({"oracle", "postgres", "redshift", "materialize"})
"""Dialects where a name without brackets may call a function: one without arguments, or `row.function`."""


class MarkedText(NamedTuple):
    """A text with marks.

    Attributes:
        sql: the text.
        shown: what stands there without them, by mark.
        called: the functions that a call was found of.
        elsewhere: the names that stand in the text in another way, which may call a function too.
    """

    sql: str
    shown: dict[str, str]
    called: frozenset[str]
    elsewhere: frozenset[str]

    def without_marks(self, sql: str) -> str:
        """SQL that was made of it, as a person has written it."""
        for mark, written in self.shown.items():
            sql = sql.replace(mark if written else f"{mark}.", written)
        return sql


def mark_of(kind: FunctionKind, fingerprint: bytes) -> str:
    """What stands before the name of a marked function."""
    return f"dbt_ripple_{kind}_{fingerprint.hex()[:32]}"


def kind_of_mark(name: str) -> FunctionKind | None:
    """What a function is that this stands before; None where it is no mark."""
    marked = _MARK.fullmatch(name)
    return None if marked is None else KINDS[marked[1].lower()]


def mark_calls(
    sql: str,
    dialect: str,
    names: Collection[str],
    meant: Callable[[str, list[str]], Collection[str]],
    mark: Callable[[Collection[str], bool], str],
) -> MarkedText:
    """Mark the calls of some functions.

    Args:
        sql: the text of a query.
        dialect: its dialect.
        names: the functions' names, in lower case.
        meant: which functions a call means, by its name and what stands before that, both in lower case.
        mark: the mark of a call that means these functions, and whether a schema stands before it.
    """
    text = sql.lower()
    if not any(name in text for name in names):
        return MarkedText(sql, {}, frozenset(), frozenset())
    # Here, because it takes its time and a project without functions does without.
    from dbt_ripple.flow.reading.reader import UNREAD, tokenize, tokens_as_they_stand

    try:
        tokens, as_read = tokens_as_they_stand(sql, dialect), tokenize(sql, dialect)
    except UNREAD:
        return MarkedText(sql, {}, frozenset(), frozenset(names))
    calls, elsewhere = _calls(tokens, dialect, names)
    if [c[:2] for c in calls] != [c[:2] for c in _calls(as_read, dialect, names)[0]]:
        return MarkedText(sql, {}, frozenset(), frozenset(names))
    called: set[str] = set()
    shown: dict[str, str] = {}
    pieces: list[str] = []
    at = 0
    for name, path, first, last in calls:
        functions = meant(name, path) if path is not None else ()
        if not functions:
            elsewhere.add(name)
            continue
        called.update(functions)
        marked = mark(functions, bool(path))
        end = last.end + 1 if path else first.start
        shown.setdefault(marked, sql[first.start : end])
        pieces += [sql[at : first.start], marked, "" if path else "."]
        at = end
    return MarkedText("".join((*pieces, sql[at:])), shown, frozenset(called), frozenset(elsewhere))


_Call = tuple[str, list[str] | None, Any, Any]
"""A name, what stands before it (None where that is no name), and the first and last token of that; of nothing
the name itself."""


def _calls(tokens: list[Any], dialect: str, names: Collection[str]) -> tuple[list[_Call], set[str]]:
    """The calls of functions of these names, and the names that stand there otherwise."""
    from sqlglot import TokenType as T

    calls: list[_Call] = []
    elsewhere: set[str] = set()
    for i, token in enumerate(tokens):
        text = token.text.lower()
        if text not in names or token.token_type not in (T.VAR, T.IDENTIFIER):
            elsewhere.update(word for word in _WORD.findall(text) if word in names)
            continue
        if i + 1 == len(tokens) or tokens[i + 1].token_type is not T.L_PAREN:
            given = i > 0 and tokens[i - 1].token_type is T.ALIAS
            if dialect in _CALLED_WITHOUT_BRACKETS and not given:
                elsewhere.add(text)
            continue
        path: list[str] | None = []
        first = i
        while first > 0 and tokens[first - 1].token_type is T.DOT:
            before = tokens[first - 2] if first > 1 else None
            is_name = before is not None and (
                before.token_type is T.IDENTIFIER or _WORD.fullmatch(before.text)
            )
            if before is None or not is_name:
                path = None
                break
            path = [before.text.lower(), *(path or ())]
            first -= 2
        calls.append((text, path, tokens[first], tokens[i - 2] if path else token))
    return calls, elsewhere
