"""The text of models and macros as written, before Jinja: which parts of it matter.

Used where compiled SQL is not enough: the branch that was not compiled, hooks, macros that a
materialization calls. Layout and comments do not count; literals are kept to the letter.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from functools import lru_cache
from typing import Final, NamedTuple

_BEGIN: Final = re.compile(
    r"\{#.*?(?:#\}|\Z)"
    r"|\{%[-+]?\s*raw\s*-?%\}.*?(?:\{%[-+]?\s*endraw\s*[-+]?%\}|\Z)"
    r"|(?P<kind>\{[{%])[-+]?",
    re.S,
)
_STRING: Final = r"""'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*\""""
_IN_BRACKETS: Final = re.compile(rf"{_STRING}|(?P<opens>[({{\[])|(?P<closes>[)}}\]])", re.S)
_OF_ARGUMENTS: Final = re.compile(rf"{_IN_BRACKETS.pattern}|(?P<comma>,)", re.S)
_TO_THE_END: Final = {
    "{{": re.compile(rf"{_STRING}|(?P<ends>-?\}}\}})|(?P<opens>[({{\[])", re.S),
    "{%": re.compile(rf"{_STRING}|(?P<ends>[-+]?%\}})|(?P<opens>[({{\[])", re.S),
}
_PLAIN_INSIDE: Final = r"""([^'"{}%]*(?:(?:'[^'\\{}%]*'|"[^"\\{}%]*")[^'"{}%]*)*)"""
_PLAIN_TAG: Final = re.compile(rf"\{{(?:\{{{_PLAIN_INSIDE}\}}|%{_PLAIN_INSIDE}%)\}}")
"""A tag that has no brace, no per cent sign and no backslash in it: nearly every tag of a model."""
_STATEMENT: Final = re.compile(r"\s*(\w+)(.*)", re.S)
_LITERAL: Final = re.compile(r"'(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\"", re.S)
_WORD: Final = re.compile(r"[A-Za-z_]\w*")
_TAG: Final = "\x01"
_NOTE: Final = "\x02"
"""What stands for a tag, and for a comment of Jinja, while the text around them is read."""
_MARK: Final = re.compile("[\x01\x02]")
_PIECE: Final = re.compile(
    r"""(?P<kept>'[^']*'|"[^"]*"|`[^`]*`|/\*\+.*?\*/)"""
    r"""|(?P<blank>(?:\s|\x02|--[^\n]*|/\*(?!\+).*?\*/)+)|(?P<open>['"`]|/\*)""",
    re.S,
)
_UNSURE: Final = re.compile(r"""\\['"`]|\$\w*\$|'{3}|"{3}|\#|/\*!|/\*(?:(?!\*/).)*/\*""", re.S)
"""Where a string or a comment ends here is another thing for each engine."""
_IN_A_TAG: Final = re.compile(rf"(?P<kept>{_STRING})|\s+", re.S)
_SQL: Final = frozenset(
    """
    alter analyze begin call copy create delete drop execute explain from grant having insert join
    merge msck optimize qualify refresh replace revoke select set truncate update use vacuum where
    with
    """.split()
)
"""The words a statement of SQL, or a clause of one, begins with."""

ASKS_WHETHER_IT_EXISTS: Final = re.compile(
    r"\b(?:is_incremental|should_full_refresh|FULL_REFRESH|full_refresh)\b"
)
"""What a model asks to tell its first run from the later ones."""

ASKS_FOR_FULL_REFRESH: Final = re.compile(
    r"\b(?:should_full_refresh|FULL_REFRESH|full_refresh)\b(?!\s*=[^=])"
)
"""What a table or a view asks to do something else under ``--full-refresh``."""

_OF_COMMANDS: Final = ("WHICH", "EMPTY", "SAMPLE", "invocation_args_dict", "selected_resources")
ASKS_WHICH_COMMAND: Final = re.compile(
    rf"\b(?:{'|'.join(_OF_COMMANDS)})\b|\bflags\b(?!\s*\.\s*[A-Z_]+\b)"
)
"""What a node asks to do something else when it is built than ``dbt compile`` shows."""
OF_COMMANDS: Final = (*_OF_COMMANDS, "flags", "full_refresh", "FULL_REFRESH")
"""One of these is in every text in which one of the two patterns above finds something."""


LOOKS_AT_IT: Final = (
    *("adapter", "context", "get_columns_in_relation", "get_relation", "load_cached_relation"),
    *("load_relation", "run_query", "statement"),
)
"""One of these is in every text that queries the warehouse by itself."""
_LOOKS_AT_IT: Final = re.compile(
    rf"\badapter\s*\.\s*(?!dispatch\b|quote|type\b)\w|\b(?:{'|'.join(LOOKS_AT_IT[1:])})\b"
)
_THIS: Final = re.compile(r"\bthis\b")
_CONFIG: Final = re.compile(r"\s*config\s*\((?:[^()]|\([^()]*\))*\)\s*\Z")
"""A tag that is a call of ``config`` and nothing else: the name it gives is for dbt."""
_ITSELF: Final = re.compile(rf"{_THIS.pattern}|\bmodel\s*[.\[]")


def normalised(text: str) -> str:
    r"""Return SQL with Jinja without comments, every run of white space outside of literals as one.

    Inside of a tag the rules are Jinja's: ``--`` is no comment there. Signs of white space control
    stay, since they can make one word of two. A text of which it is not sure where its strings and
    comments end comes back as it is.

    Example:
        >>> normalised("select a, -- the id\n   'x  y' {# note #}\nfrom t")
        "select a, 'x  y' from t"
        >>> normalised("{% set  x = 1 -- 2 %}  select '{{ x }}  y'")
        "{% set x = 1 -- 2 %} select '{{ x }}  y'"
    """
    marks = list(_marks(text))
    plain = _marked(text, marks)
    if len(marks) != len(_MARK.findall(plain)) or _UNSURE.search(plain):
        return text
    waiting = iter(marks)

    def of_mark(_: re.Match[str]) -> str:
        mark = next(waiting)
        whole = text[mark.start : mark.end]
        return "" if mark.kind == "{#" else whole if mark.kind == "raw" else _tag(whole)

    def as_written(_: re.Match[str]) -> str:
        mark = next(waiting)
        return text[mark.start : mark.end]

    out: list[str] = []
    at = 0
    for piece in _PIECE.finditer(plain):
        out.append(_MARK.sub(of_mark, plain[at : piece.start()]))
        at = piece.end()
        part = piece[0]
        if piece["kept"]:
            out.append(_MARK.sub(as_written, part))
        elif piece["open"] or _TAG in part:
            return text  # a string that does not end, or a comment that Jinja may end
        else:
            _MARK.sub(of_mark, part)
            out.append(" " if part.strip(_NOTE) else "")
    out.append(_MARK.sub(of_mark, plain[at:]))
    return "".join(out).strip()


def normalised_macro(text: str) -> str:
    """A macro's text for comparison: `normalised` where it writes a statement or a clause of SQL.

    What another macro writes may end up inside of a literal, so that its white space is data; what
    it gives back by ``return`` is not.
    """
    marks = list(_marks(text))
    plain = _marked(text, marks)
    words = _MARK.sub(" ", plain).split(None, 1)
    if not words:
        if any("return" in tag for tag in tags(text)):
            return normalised(text)
    elif words[0].lower() in _SQL:
        return normalised(text)
    if len(marks) != len(_MARK.findall(plain)):
        return text
    waiting = iter(marks)

    def of_mark(_: re.Match[str]) -> str:
        mark = next(waiting)
        whole = text[mark.start : mark.end]
        if mark.kind == "{#":
            return "" if whole[2] not in "-+" and whole[-3:-2] not in ("-", "+") else "{#-#}"
        return whole if mark.kind == "raw" else _tag(whole)

    return _MARK.sub(of_mark, plain)


def _tag(whole: str) -> str:
    """A tag with every run of white space outside of its strings as one."""
    return _IN_A_TAG.sub(lambda match: match["kept"] or " ", whole)


def _marked(text: str, marks: list[Mark]) -> str:
    """The text with one letter in place of each mark."""
    pieces = []
    at = 0
    for mark in marks:
        pieces += [text[at : mark.start], _NOTE if mark.kind == "{#" else _TAG]
        at = mark.end
    return "".join((*pieces, text[at:]))


class Mark(NamedTuple):
    """What is of Jinja in a text: ``{{ }}``, ``{% %}``, ``{# #}``, or a whole ``raw`` block.

    Attributes:
        kind: how it begins, or ``raw``.
        start: where it begins in the text.
        inside: where its inside begins.
        inside_end: where its inside ends.
        end: where the text goes on after it.
    """

    kind: str
    start: int
    inside: int
    inside_end: int
    end: int


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
    for mark in _marks(text):
        if mark.kind in _TO_THE_END:
            yield Tag(mark.kind, text[mark.inside : mark.inside_end], mark.start, mark.end)


def _marks(text: str) -> Iterator[Mark]:
    at = 0
    while (begin := _BEGIN.search(text, at)) is not None:
        at = begin.end()
        kind = begin["kind"]
        if not kind:
            kind = "{#" if begin[0].startswith("{#") else "raw"
            yield Mark(kind, begin.start(), begin.start(), at, at)
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
        yield Mark(kind, begin.start(), inside, stop, at)


def tags(text: str) -> list[str]:
    """The insides of every ``{{ }}`` and ``{% %}``, in order, comments left out.

    Example:
        >>> tags("select {{ f('x') }} {# {{ g() }} #} {%- if y -%}")
        [" f('x') ", ' if y ']
        >>> tags("{{ f('}}') ~ g({'a': {'b': 1}}) }}")
        [" f('}}') ~ g({'a': {'b': 1}}) "]
    """
    return list(_insides(text))


@lru_cache(maxsize=64)  # several questions are asked of one text after another
def _insides(text: str) -> tuple[str, ...]:
    plain = _PLAIN_TAG.findall(text)
    # Every brace opens one of these: no comment, and no tag that is less plain.
    braces = sum([2 if expression else 1 if statement else 0 for expression, statement in plain])
    if (
        text.count("{") == braces
        and not any("raw" in statement for _, statement in plain)
        and all(_closes_its_brackets(expression or statement) for expression, statement in plain)
    ):
        return tuple(
            [
                _without_signs(expression or statement, "-" if expression else "-+")
                for expression, statement in plain
            ]
        )
    return tuple([tag.inside for tag in tagged(text)])


def tags_name(text: str, words: Iterable[str]) -> bool:
    """Whether one of these words is in a tag, if only within another one: nearly always none is."""
    inside = "\n".join(_insides(text))
    return any(map(inside.__contains__, words))


def _closes_its_brackets(inside: str) -> bool:
    return inside.count("(") == inside.count(")") and inside.count("[") == inside.count("]")


def _without_signs(inside: str, last: str) -> str:
    """The inside of a tag without the signs that tell Jinja what to do with white space."""
    if inside[:1] in ("-", "+"):
        inside = inside[1:]
    return inside[:-1] if inside[-1:] and inside[-1] in last else inside


def argument(inside: str, name: str) -> str | None:
    """The value that a call in a piece of Jinja gives to a named argument; None if it does not name it.

    Example:
        >>> argument("config(alias=f('a, b', 1), schema = target.schema)", "alias")
        "f('a, b', 1)"
        >>> argument("config(alias=f('a, b', 1), schema = target.schema)", "schema")
        'target.schema'
        >>> argument("config(tags=['alias'])", "alias") is None
        True
    """
    begin = re.search(rf"(?<=[(,\s]){re.escape(name)}\s*=(?!=)", inside)
    if begin is None:
        return None
    at, depth = begin.end(), 0
    while (piece := _OF_ARGUMENTS.search(inside, at)) is not None:
        if depth == 0 and piece.lastgroup in ("comma", "closes"):
            return inside[begin.end() : piece.start()].strip()
        depth += (piece.lastgroup == "opens") - (piece.lastgroup == "closes")
        at = piece.end()
    return inside[begin.end() :].strip()


def looks_and_itself(
    text: str, name: str, *, as_incremental: bool = False, of_test: bool = False
) -> tuple[bool, bool]:
    """Whether a piece of Jinja queries the warehouse, and whether it names the relation it builds.

    What does both may write other SQL where that relation is not there yet, or is another.

    Args:
        text: of a node, or of a macro that it calls.
        name: the relation's.
        as_incremental: whether what stands below ``is_incremental()`` is left out, which `branches`
            has.
        of_test: whether it is of a data test, where ``model`` is what is tested, and whose name is only
            that of the table of its failures.

    Example:
        >>> looks_and_itself("{% if load_relation(this) %} 1 {% endif %}", "m")
        (True, True)
        >>> looks_and_itself("{{ star(ref('a')) }} '{{ this }}'", "m")
        (False, True)
        >>> looks_and_itself("{{ adapter.get_columns_in_relation(model.x) }}", "t", of_test=True)
        (True, False)
    """
    insides = [*(_outside_of_branches(text) if as_incremental else tags(text))]
    named = _THIS if of_test else re.compile(rf"{_ITSELF.pattern}|\b{re.escape(name)}\b")
    return (
        any(map(_LOOKS_AT_IT.search, insides)),
        any(named.search(inside) for inside in insides if not _CONFIG.match(inside)),
    )


def _outside_of_branches(text: str) -> Iterator[str]:
    """The insides of the tags that stand in no ``if`` which asks whether the model exists."""
    open_: list[bool] = []
    for inside in tags(text):
        statement = _STATEMENT.match(inside)
        word, rest = statement.groups() if statement is not None else ("", "")
        asks = ASKS_WHETHER_IT_EXISTS.search(rest) is not None
        if word == "if":
            open_.append(asks)
        elif word == "elif" and open_:
            open_[-1] = open_[-1] or asks
        if not any(open_):
            yield inside
        if word == "endif" and open_:
            open_.pop()


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
    return _both_branches(raw_code)


@lru_cache(maxsize=64)  # several questions are asked of one text after another
def _both_branches(raw_code: str) -> str:
    return "\n".join(branches(raw_code))


def _part(text: str, start: int, end: int) -> str:
    """A part of a text, `normalised`, unless it stands in a literal or in a comment.

    In a literal white space is data; what stands behind a ``--`` is another branch than the same
    words on a line of their own.
    """
    before = text[:start]
    plain = _marked(before, list(_marks(before)))
    pieces = list(_PIECE.finditer(plain))
    if _UNSURE.search(plain) or any(piece["open"] for piece in pieces):
        return text[start:end]
    if pieces and pieces[-1].end() == len(plain) and "--" in pieces[-1][0].rpartition("\n")[2]:
        return "--" + text[start:end]
    return normalised(text[start:end])


def branches(raw_code: str) -> list[str]:
    """What decides the SQL on the runs that were not compiled, empty where nothing does.

    That is every ``if`` that asks whether the model exists, whole, and every other statement of
    Jinja outside of those, because it may set what they use. Where this cannot be told apart from
    the rest it is the whole text.
    """
    text = raw_code
    all_tags = list(tagged(text))
    if not any(ASKS_WHETHER_IT_EXISTS.search(tag.inside) for tag in all_tags):
        return []
    parts: list[str] = []
    inside: list[int] = []
    kept_from = -1
    for tag in all_tags:
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
                parts.append(_part(text, start, tag.end))
                kept_from = -1
                continue
        if kept_from < 0:
            parts.append(_tag(text[tag.start : tag.end]))
    if kept_from >= 0 or inside:
        return [normalised(text)]
    shown = (t.inside for t in all_tags if t.kind == "{{")
    if any(ASKS_WHETHER_IT_EXISTS.search(s) for s in shown if not s.lstrip().startswith("config")):
        return [normalised(text)]
    return parts
