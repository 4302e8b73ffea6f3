"""The text of models and macros as written, before Jinja: what of it means something.

Used where compiled SQL is not enough: the branch that was not compiled, hooks, macros that a
materialization calls. Layout and comments do not count; literals are kept to the letter.
"""

from __future__ import annotations

import re
from typing import Final

_COMMENT: Final = re.compile(r"\{#.*?#\}", re.S)
_TAG: Final = re.compile(r"\{([{%])[-+]?(.*?)[-+]?[%}]\}", re.S)
_STATEMENT: Final = re.compile(r"\{%[-+]?\s*(\w+)(.*?)[-+]?%\}", re.S)
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


def tags(text: str) -> list[str]:
    """The insides of every ``{{ }}`` and ``{% %}``, in order, comments left out.

    Example:
        >>> tags("select {{ f('x') }} {# {{ g() }} #} {%- if y -%}")
        [" f('x') ", ' if y ']
    """
    return [found[2] for found in _TAG.finditer(_COMMENT.sub(" ", text))]


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
    text = _COMMENT.sub(" ", raw_code)
    if not ASKS_WHETHER_IT_EXISTS.search("\n".join(tags(text))):
        return []
    parts: list[str] = []
    inside: list[int] = []
    kept_from = -1
    for found in _STATEMENT.finditer(text):
        word = found[1]
        if word in ("macro", "call", "filter", "raw", "endset") or (
            word == "set" and "=" not in found[2]
        ):
            return [normalised(text)]
        asks = ASKS_WHETHER_IT_EXISTS.search(found[2]) is not None
        if asks and word not in ("if", "elif") and kept_from < 0:
            return [normalised(text)]
        if word == "if":
            inside.append(found.start())
            if asks and kept_from < 0:
                kept_from = len(inside)
        elif word == "elif" and asks and kept_from < 0:
            kept_from = len(inside)
        if word == "endif":
            if not inside:
                return [normalised(text)]
            start = inside.pop()
            if kept_from > len(inside):
                parts.append(text[start : found.end()])
                kept_from = -1
                continue
        if kept_from < 0:
            parts.append(found[0])
    if kept_from >= 0 or inside:
        return [normalised(text)]
    outside = ASKS_WHETHER_IT_EXISTS.search(
        "\n".join(
            found[2]
            for found in _TAG.finditer(text)
            if found[1] == "{" and not found[2].lstrip().startswith("config")
        )
    )
    if outside:
        return [normalised(text)]
    return [normalised(part) for part in parts]
