"""The text of models and macros as written, before Jinja: what of it means something.

Used where compiled SQL is not enough: the branch that was not compiled, hooks, macros that a
materialization calls. Layout and comments do not count; literals are kept to the letter.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final, NamedTuple

_BEGIN: Final = re.compile(
    r"\{#.*?(?:#\}|\Z)"
    r"|\{%[-+]?\s*raw\s*-?%\}.*?(?:\{%[-+]?\s*endraw\s*[-+]?%\}|\Z)"
    r"|(?P<kind>\{[{%])[-+]?",
    re.S,
)
_STRING: Final = r"""'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*\""""
_IN_BRACKETS: Final = re.compile(rf"{_STRING}|(?P<opens>[({{\[])|(?P<closes>[)}}\]])", re.S)
_TO_THE_END: Final = {
    "{{": re.compile(rf"{_STRING}|(?P<ends>-?\}}\}})|(?P<opens>[({{\[])", re.S),
    "{%": re.compile(rf"{_STRING}|(?P<ends>[-+]?%\}})|(?P<opens>[({{\[])", re.S),
}
_STATEMENT: Final = re.compile(r"\s*(\w+)(.*)", re.S)
_LITERAL: Final = re.compile(r"'(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\"", re.S)
_CONTROL: Final = re.compile(r"(?<=\{%)[-+]|(?<=\{\{)-|[-+](?=%\})|-(?=\}\})")
_WORD: Final = re.compile(r"[A-Za-z_]\w*")
_PIECE: Final = re.compile(
    r"""(?P<kept>'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*"|`[^`]*`|/\*\+.*?\*/)"""
    # Jinja inside of a comment of SQL is still run: such a comment ends where it begins.
    r"""|\{\#.*?\#\}|--(?:(?!\{[{%])[^\n])*|/\*(?:(?!\{[{%]).)*?\*/|\s+""",
    re.S,
)

ASKS_WHETHER_IT_EXISTS: Final = re.compile(
    r"\b(?:is_incremental|should_full_refresh|FULL_REFRESH|full_refresh)\b"
)
"""What a model asks to tell its first run from the later ones."""


def normalised(text: str) -> str:
    r"""Return the text without comments, every run of white space outside of literals as one.

    Example:
        >>> normalised("select a, -- the id\n   'x  y' {# note #}\nfrom t")
        "select a, 'x  y' from t"
    """
    plain = _PIECE.sub(lambda found: found["kept"] or "\x00", _CONTROL.sub("", text))
    return re.sub("\x00+", " ", plain).strip()


class Tag(NamedTuple):
    """One ``{{ }}`` or ``{% %}``.

    Attributes:
        kind: how it begins: ``{{`` or ``{%``.
        start: where it begins in the text.
        end: where the text goes on after it.
    """

    kind: str
    inside: str
    start: int
    end: int


def tagged(text: str) -> Iterator[Tag]:
    """Every ``{{ }}`` and ``{% %}``, in order, as Jinja itself finds them.

    A tag does not end in a string or in brackets; comments and what stands in ``raw`` are no tags.
    One that does not end, which Jinja refuses, goes to the end of the text.
    """
    at = 0
    while (begin := _BEGIN.search(text, at)) is not None:
        at = begin.end()
        kind = begin["kind"]
        if not kind:
            continue
        to_the_end = _TO_THE_END[kind]
        inside, depth, stop = at, 0, len(text)
        while (piece := (_IN_BRACKETS if depth else to_the_end).search(text, at)) is not None:
            at = piece.end()
            if piece.lastgroup == "opens":
                depth += 1
            elif piece.lastgroup == "closes":
                depth -= 1
            elif piece.lastgroup == "ends":
                stop = piece.start()
                break
        else:
            at = len(text)
        yield Tag(kind, text[inside:stop], begin.start(), at)


def tags(text: str) -> list[str]:
    """The insides of every ``{{ }}`` and ``{% %}``, in order, comments left out.

    Example:
        >>> tags("select {{ f('x') }} {# {{ g() }} #} {%- if y -%}")
        [" f('x') ", ' if y ']
        >>> tags("{{ f('}}') ~ g({'a': {'b': 1}}) }}")
        [" f('}}') ~ g({'a': {'b': 1}}) "]
    """
    return [tag.inside for tag in tagged(text)]


def without_tags(text: str, instead: str) -> str:
    """The text with something else in place of each ``{{ }}``, and a space for each ``{% %}``.

    Example:
        >>> without_tags("delete from {{ this }} where a", "it")
        'delete from it where a'
    """
    pieces = []
    at = 0
    for tag in tagged(text):
        pieces += [text[at : tag.start], instead if tag.kind == "{{" else " "]
        at = tag.end
    return "".join((*pieces, text[at:]))


def names(text: str) -> set[str]:
    """The words of a piece of Jinja that are not in a string.

    Example:
        >>> sorted(names("dbt_utils.star(ref('orders'))"))
        ['dbt_utils', 'ref', 'star']
    """
    return set(_WORD.findall(_LITERAL.sub("''", text)))


def both_branches(raw_code: str) -> str:
    """The `branches` of a text as one; empty where it has none.

    Example:
        >>> both_branches("select 1 {% if is_incremental() %} where x {% endif %} -- why")
        '{% if is_incremental() %} where x {% endif %}'
        >>> both_branches("select {{ 1 }}")
        ''
    """
    return "\n".join(branches(raw_code))


def branches(raw_code: str) -> list[str]:
    """What decides the SQL on the runs that were not compiled, empty where nothing does.

    That is every ``if`` that asks whether the model exists, whole, and every other statement of
    Jinja outside of those, because it may set what they use. Where this cannot be told apart from
    the rest it is the whole text.
    """
    text = raw_code
    found = list(tagged(text))
    if not any(ASKS_WHETHER_IT_EXISTS.search(tag.inside) for tag in found):
        return []
    parts: list[str] = []
    inside: list[int] = []
    kept_from = -1
    for tag in found:
        statement = _STATEMENT.match(tag.inside) if tag.kind == "{%" else None
        if statement is None:
            continue
        word, rest = statement.groups()
        if word in ("macro", "call", "filter", "raw", "endset") or (
            word == "set" and "=" not in rest
        ):
            return [normalised(text)]
        asks = ASKS_WHETHER_IT_EXISTS.search(rest) is not None
        if asks and word not in ("if", "elif") and kept_from < 0:
            return [normalised(text)]
        if word == "if":
            inside.append(tag.start)
            if asks and kept_from < 0:
                kept_from = len(inside)
        elif word == "elif" and asks and kept_from < 0:
            kept_from = len(inside)
        if word == "endif":
            if not inside:
                return [normalised(text)]
            start = inside.pop()
            if kept_from > len(inside):
                parts.append(text[start : tag.end])
                kept_from = -1
                continue
        if kept_from < 0:
            parts.append(text[tag.start : tag.end])
    if kept_from >= 0 or inside:
        return [normalised(text)]
    shown = (t.inside for t in found if t.kind == "{{")
    if any(ASKS_WHETHER_IT_EXISTS.search(s) for s in shown if not s.lstrip().startswith("config")):
        return [normalised(text)]
    return [normalised(part) for part in parts]
