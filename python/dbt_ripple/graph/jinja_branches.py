"""The pieces of Jinja that run for a hook, without the branches that its arguments rule out.

A hook may be one macro for many purposes (``{{ insert_from_graph(this, kind='sources') }}``). What
it does then stands in the branches of that macro, and of those that this one calls, that are taken
where ``kind`` is ``'sources'``. Only what stands in the text is followed: literals that are handed
over, and conditions that compare a parameter with one. Whatever else decides is taken either way.
"""

from __future__ import annotations

import re
from typing import Final

from dbt_ripple.graph.hook_statements import arguments_in
from dbt_ripple.graph.jinja import Tag, names, tagged
from dbt_ripple.graph.macros import OWN, Macros, dispatched

KnownValues = dict[str, str]
"""Parameters of which the value is known, as it is written."""

_LITERAL: Final = re.compile(r"""'[^'\\]*'|"[^"\\]*"|[Tt]rue|[Ff]alse|[Nn]one|\d+""")
_FALSE: Final = frozenset({"false", "none", "0", "''"})
_STATEMENT: Final = re.compile(r"\s*(\w+)\b(.*)", re.S)
_IS: Final = re.compile(r"\s*(\w+)\s*(==|!=)\s*('[^'\\]*'|\"[^\"\\]*\")\s*\Z")
_ALONE: Final = re.compile(r"\s*(not\s+)?(\w+)\s*\Z")
_MACRO: Final = re.compile(r"\s*(?:macro|materialization|test)\s+(\w+)\s*\(")
_SET: Final = re.compile(r"\s*(?:set|for|call)\b([^=]*)")
_CALL: Final = re.compile(
    r"\bdispatch\s*\(\s*(?:macro_name\s*=\s*)?['\"](?P<dispatched>\w+)['\"][^()]*\)\s*\(|\b(?P<called>\w+)\s*\("
)
_KEYWORD: Final = re.compile(r"(\w+)\s*=(?!=)\s*(.*)", re.S)


def texts_taken(text: str, macros: Macros) -> list[str]:
    """The text of a hook and those of the user's macros that it reaches, as far as they may run."""
    texts: list[str] = []
    internal: dict[str, list[str]] = {}
    for unique_id, macro in macros.macros.items():
        if unique_id not in macros.user:
            internal.setdefault(dispatched(macro.name), []).append(unique_id)
    seen: set[tuple[str, frozenset[tuple[str, str]]]] = set()
    waiting: list[tuple[str, KnownValues]] = [(text, {})]
    while waiting:
        taken = _taken(*waiting.pop())
        texts.append(taken[0])
        for unique_id, arguments in _called(*taken, macros, internal):
            key = unique_id, frozenset(arguments.items())
            if key not in seen and macros.macros[unique_id].package_name != OWN:
                seen.add(key)
                waiting.append((macros.macros[unique_id].macro_sql, arguments))
    return texts


def _taken(text: str, values: KnownValues) -> tuple[str, KnownValues]:
    """A text without the branches that are not taken, and what is known of its names to the end."""
    tags = list(tagged(text))
    values = dict(values)
    for tag in tags:
        if tag.kind == "{%" and (other := _SET.match(tag.inside)) is not None:
            for name in re.findall(r"\w+", other[1].partition(" in ")[0]):
                values.pop(name, None)
    pieces: list[str] = []
    # Of each `if` that is open: whether what stands around it counts, whether this branch does, and
    # whether one before it is certainly the one.
    open_: list[tuple[bool, bool, bool]] = []
    at = 0
    for tag in tags:
        counts = not open_ or open_[-1][1]
        if counts:
            pieces.append(text[at : tag.start])
        at = tag.end
        statement = _STATEMENT.match(tag.inside) if tag.kind == "{%" else None
        word, rest = statement.groups() if statement is not None else ("", "")
        if word == "if":
            holds = _holds(rest, values) if counts else None
            open_.append((counts, counts and holds is not False, holds is True))
        elif word in ("elif", "else") and open_ and not _in_a_loop(word, tags, tag.start):
            outside, _, done = open_[-1]
            holds = True if word == "else" else _holds(rest, values)
            open_[-1] = outside, outside and not done and holds is not False, done or holds is True
        elif word == "endif" and open_:
            open_.pop()
        if counts or (open_ and open_[-1][1]):
            pieces.append(text[tag.start : tag.end])
    if not open_ or open_[-1][1]:
        pieces.append(text[at:])
    return "".join(pieces), values


def _in_a_loop(word: str, tags: list[Tag], start: int) -> bool:
    """Whether an ``else`` belongs to a ``for``."""
    open_: list[str] = []
    for tag in tags:
        if tag.start >= start:
            break
        statement = _STATEMENT.match(tag.inside) if tag.kind == "{%" else None
        if statement is not None and statement[1] in ("if", "for"):
            open_.append(statement[1])
        elif statement is not None and statement[1] in ("endif", "endfor") and open_:
            open_.pop()
    return word == "else" and bool(open_) and open_[-1] == "for"


def _holds(condition: str, values: KnownValues) -> bool | None:
    """Whether a condition holds; None where that is not known."""
    if (compared := _IS.match(condition)) is not None and compared[1] in values:
        equal = values[compared[1]] == compared[3].replace('"', "'")
        return equal == (compared[2] == "==")
    if (alone := _ALONE.match(condition)) is not None and alone[2] in values:
        return (values[alone[2]].lower() not in _FALSE) == (alone[1] is None)
    return None


def _called(
    text: str, values: KnownValues, macros: Macros, internal: dict[str, list[str]]
) -> list[tuple[str, KnownValues]]:
    """The user's macros that a text calls or names, each with what is known of its parameters."""
    reached: list[tuple[str, KnownValues]] = []
    for tag in tagged(text):
        inside = tag.inside
        if _MACRO.match(inside):
            continue
        calls: dict[str, int] = {}
        for call in _CALL.finditer(inside):
            name = call["dispatched"] or call["called"]
            calls[name] = calls.get(name, 0) + 1
            for unique_id in macros.users_by_name.get(name, ()):
                given = given_to(
                    macros.macros[unique_id].macro_sql, arguments_in(inside, call.end()), values
                )
                reached.append((unique_id, given))
        words = re.findall(r"\w+", inside)
        for name in names(inside) | {dispatched(word) for word in words}:
            of_users = macros.users_by_name.get(name, ())
            if of_users and words.count(name) > calls.get(name, 0):
                reached += [(unique_id, {}) for unique_id in of_users]
            elif name in internal and not of_users:
                reached += [(u, {}) for u in macros.closure(internal[name]) & macros.user]
    return reached


def given_to(text: str, arguments: list[str], values_of_caller: KnownValues) -> KnownValues:
    """What is known of a macro's parameters in this call."""
    signature = next((t.inside for t in tagged(text) if _MACRO.match(t.inside)), "")
    begin = _MACRO.match(signature)
    if begin is None or any(argument.startswith("*") for argument in arguments):
        return {}
    values: dict[str, str] = {}
    parameters = []
    for parameter in arguments_in(signature, begin.end()):
        name, _, default = parameter.partition("=")
        parameters.append(name.strip())
        values[name.strip()] = default.strip()
    for place, argument in enumerate(arguments):
        if (by_name := _KEYWORD.fullmatch(argument)) is not None:
            values[by_name[1]] = values_of_caller.get(by_name[2].strip(), by_name[2].strip())
        elif place < len(parameters):
            values[parameters[place]] = values_of_caller.get(argument, argument)
    return {n: v.replace('"', "'") for n, v in values.items() if _LITERAL.fullmatch(v)}
