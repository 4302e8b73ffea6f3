"""Whether everything that a hook runs is in texts that can be read.

The statements of a hook are in its own text, in the macros it calls, and in the strings and blocks
that these pass to ``run_query`` and the like. A statement may also come from elsewhere: a var, a
property of a node, the result of a query, a method of the adapter. Then it may be any statement.

Values within a statement (``delete from {{ var('table') }}``) are not checked here: the beginning
of a statement says what it does.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from functools import cached_property
from typing import Final

from dbt_ripple.graph.jinja import Tag, tagged
from dbt_ripple.graph.macros import Macros, dispatched

ONLY_A_MESSAGE: Final = re.compile(
    r"\s*(?:do\s+)?(?:log|print|exceptions\s*\.\s*\w+|dbt\s*\.\s*log\w*)\s*\(", re.S
)
"""A tag that only logs, prints or raises a message."""

GIVEN: Final = "__given__"
"""What a macro was given, or what a variable of Jinja holds, in a text without its Jinja."""

BRANCH: Final = "\x03"
"""What stands for a tag between which and the next one text may be left out."""

_LITERAL: Final = re.compile(r"'(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\"", re.S)
_FILTER: Final = re.compile(r"\|\s*\w+")
_NAME: Final = re.compile(r"(?<![\w.])[A-Za-z_]\w*(?!\s*=(?!=))")
_COMMENT: Final = re.compile(r"--[^\n]*|/\*.*?\*/|\{\#.*?\#\}", re.S)
_STATEMENT: Final = re.compile(r"\s*(\w+)\b(.*)", re.S)
_ASSIGNED: Final = re.compile(r"([^=]*?)=(?!=)(.*)", re.S)
_LOOP: Final = re.compile(r"(.*?)\bin\b(.*)", re.S)
_ADDED: Final = re.compile(r"\b(\w+)\s*\.\s*(?:append|extend|insert|update)\s*\((.*)", re.S)
_RUN: Final = re.compile(r"\b(?:run_query|execute)\s*\(")
_CALLED_STATEMENT: Final = re.compile(r"\s*call\s+(?:dbt\s*\.\s*)?statement\b")
_METHOD: Final = re.compile(r"\badapter\b(?:\s*\.\s*(\w+))?")
_DISPATCHED: Final = re.compile(r"\bdispatch\s*\(\s*(?:macro_name\s*=\s*)?['\"](\w+)['\"]")
_RETURNED: Final = re.compile(r"\breturn\s*\((.*)\)", re.S)
_WRITES: Final = re.compile(
    r"\b(?:insert|update|delete|merge|truncate|create|replace|drop|alter|rename|call|exec|execute"
    r"|copy)\b",
    re.I,
)
_FIRST: Final = re.compile(
    r"""\s*('\s*\w(?:[^'\\]|\\.)*'|"\s*\w(?:[^"\\]|\\.)*")\s*(?:[~+%,)]|\.\s*format\b|\Z)""", re.S
)
"""An expression that begins with a string, and that with a word."""

_MACRO: Final = re.compile(r"\s*macro\s+(\w+)\s*\(")
_KEYWORD: Final = re.compile(r"\w+\s*=(?!=)")
_OPENS: Final = frozenset({"if", "for"})
_CLOSES: Final = frozenset({"endif", "endfor"})
BOUNDARIES: Final = frozenset("call endcall endmacro endset macro set".split())
"""Statements of Jinja before and after which another text begins, but ``set x = ...``."""

_ANYTHING: Final = frozenset("adapter_macro builtins context render submit_python_job".split())
_METHODS: Final = frozenset(
    """
    already_exists cache_added check_schema_exists commit_if_has_connection create_schema dispatch
    execute get_columns_in_relation get_missing_columns get_relation is_relation list_relations
    list_relations_without_caching list_schemas quote quote_as_configured type
    alter_column_type drop_relation rename_relation truncate_relation
    """.split()
)
"""Of ``adapter``, what makes no statement, or one whose target `Hooks` knows."""

_WRITE_NOTHING: Final = frozenset(
    """
    alter_column_type create_schema drop_relation get_relation quote rename_relation
    truncate_relation
    """.split()
)
"""Of ``adapter``, what gives Jinja no text, or a name."""

_NO_TEXT: Final = frozenset(
    """
    alter_column_type alter_relation_add_remove_columns create_schema drop_relation
    drop_relation_if_exists load_csv_rows rename_relation reset_csv_table truncate_relation
    """.split()
)
"""dbt's macros that run statements themselves, whose target `Hooks` knows."""

_TAKES_NO_TEXT: Final = _NO_TEXT | _WRITE_NOTHING | {"dispatch", "ref", "source"}
"""What is given names, and nothing to run."""

_KNOWN_MACROS: Final = _NO_TEXT | {"create_table_as", "create_view_as", "run_query", "statement"}
_HOLDS_NO_TEXT: Final = frozenset(
    """
    False None True and call caller defined dict do elif else endif exceptions execute false for
    if in is list log loop macro namespace none not or print range ref return set source string
    target this true tuple zip
    """.split()
)
"""Names in Jinja that hold no text of their own."""


class HookStatements:
    """The texts of a hook and of the user's macros that it calls.

    Args:
        hook: the text of the hook.
        called: the texts of the macros, by unique_id.
        macros: of the project.
        read: whether a string can be told as a statement or as a part of one.
    """

    def __init__(
        self,
        hook: str,
        called: Mapping[str, str],
        macros: Macros,
        read: Callable[[str], bool],
    ) -> None:
        self.macros = macros
        self.read = read
        self.texts = [hook, *called.values()]
        self.tags = [list(tagged(text)) for text in self.texts]
        self.of_macro = {unique_id: i + 1 for i, unique_id in enumerate(called)}
        self.values = [
            _values(text, tags) for text, tags in zip(self.texts, self.tags, strict=True)
        ]
        self.looked: set[tuple[int, str, bool]] = set()
        self.writing: dict[str, bool] = {}

    def all_read(self) -> bool:
        """Whether each statement begins in one of the texts."""
        return all(self.runs_nothing_else(i) and self.begins_here(i) for i in range(len(self.tags)))

    def runs_nothing_else(self, of: int) -> bool:
        """Whether Jinja runs no statement but by ``run_query``, ``statement`` and what is known."""
        for tag in self.tags[of]:
            plain = _LITERAL.sub("''", tag.inside)
            names = set(_NAME.findall(plain))
            if names & _ANYTHING or any(m[1] not in _METHODS for m in _METHOD.finditer(plain)):
                return False
            if "statement" in names and not _CALLED_STATEMENT.match(plain):
                return False
            dotted = set(re.findall(r"[A-Za-z_]\w*", plain))
            for name in (dotted & self.macros.internal) - _KNOWN_MACROS:
                if name not in self.macros.users_by_name and self.writes(name):
                    return False
        return True

    def writes(self, name: str) -> bool:
        """Whether one of dbt's own macros may run a statement that does something."""
        if name not in self.writing:
            self.writing[name] = self._writes(name)
        return self.writing[name]

    def _writes(self, name: str) -> bool:
        start = [
            u
            for u, m in self.macros.macros.items()
            if u not in self.macros.user and (m.name == name or m.name.endswith(f"__{name}"))
        ]
        return any(
            _WRITES.search(_without_tags(self.macros.macros[u].macro_sql))
            for u in self.macros.closure(start)
        )

    def begins_here(self, of: int) -> bool:
        """Whether what a text, or Jinja in it, runs begins with words that stand in some text.

        What a macro writes is run where it is handed over or called in place of a statement.
        """
        for tag, in_call in beginning(self.texts[of], self.tags[of]):
            if (not of or in_call) and not self.is_read_to_run(tag.inside, of):
                return False
        for tag in self.tags[of]:
            for call in _RUN.finditer(tag.inside):
                if not self.is_read_to_run(_up_to_its_end(tag.inside, call.end()), of):
                    return False
        return True

    def is_read_to_run(self, expression: str, of: int) -> bool:
        """Whether a statement that is put together begins with words of a text."""
        if ONLY_A_MESSAGE.match(expression):
            return True
        first = _FIRST.match(expression)
        plain = _LITERAL.sub("''", expression)
        if first is None or {"else", "if", "or"} & set(_NAME.findall(plain)):
            return self.is_read(expression, of, to_run=True)
        return self.read(first[1][1:-1])

    def is_read(self, expression: str, of: int, *, to_run: bool = False) -> bool:
        """Whether an expression of Jinja is put together from texts alone.

        Args:
            expression: of Jinja.
            of: in which text.
            to_run: whether it is a statement, and not a relation.
        """
        whole, expression = expression, self.without_arguments(without_conditions(expression))
        literals = _LITERAL.findall(expression) if to_run else ()
        if not all(self.read(literal[1:-1]) for literal in literals):
            return False
        plain = _FILTER.sub("", _LITERAL.sub("''", expression))
        for name in _NAME.findall(plain):
            if name == "adapter":
                named = _DISPATCHED.findall(whole)
                methods = [m for m in _METHOD.findall(plain) if m not in _WRITE_NOTHING]
                if len(named) < len(methods):
                    return False
                if not all(self.returned(n, to_run) for n in named):
                    return False
            elif name in self.values[of]:
                if not self.value(name, of, to_run):
                    return False
            elif name in self.macros.users_by_name:
                if not self.returned(name, to_run):
                    return False
            elif not (name in _HOLDS_NO_TEXT or name in _NO_TEXT or name.startswith("__")) and (
                name not in self.packages
            ):
                return False
        return True

    def without_arguments(self, expression: str) -> str:
        """An expression without what the user's macros are given in it: see `arguments`."""
        pieces = []
        at = 0
        for called in re.finditer(r"\b(\w+)\s*\(", expression):
            without_text = called[1] in _TAKES_NO_TEXT or called[1] in self.macros.users_by_name
            if called.start() < at or not without_text:
                continue
            pieces.append(expression[at : called.end()])
            at = called.end() + len(_up_to_its_end(expression, called.end()))
        return "".join((*pieces, expression[at:]))

    @cached_property
    def packages(self) -> set[str]:
        """The names of packages, which stand before those of macros."""
        return {m.package_name for m in self.macros.macros.values()}

    def value(self, name: str, of: int, to_run: bool) -> bool:
        """Whether all that a variable of Jinja is set to is put together from texts."""
        if (of, name, to_run) in self.looked:
            return True
        self.looked.add((of, name, to_run))
        is_read = self.is_read_to_run if to_run else self.is_read
        for expression in self.values[of][name]:
            if expression is None:
                if not self.arguments(name, of, to_run):
                    return False
            elif expression.startswith(BRANCH):
                if to_run and not self.block(expression[1:], of):
                    return False
            elif not is_read(expression, of):
                return False
        return True

    def block(self, text: str, of: int) -> bool:
        """Whether a statement that stands in a block of Jinja can be read."""
        tags = list(tagged(text))
        pieces = []
        at = 0
        for tag in tags:
            pieces += [text[at : tag.start], f" {GIVEN} " if tag.kind == "{{" else BRANCH]
            at = tag.end
        plain = _COMMENT.sub(" ", "".join((*pieces, text[at:])))
        return self.read(plain) and all(
            self.is_read_to_run(tag.inside, of) for tag, _ in beginning(text, tags)
        )

    def returned(self, macro: str, to_run: bool) -> bool:
        """Whether what the user's macros of a name write or return is put together from texts."""
        macros = self.macros.users_by_name.get(macro, ())
        is_read = self.is_read_to_run if to_run else self.is_read
        for unique_id in macros:
            of = self.of_macro.get(unique_id)
            if of is None or (of, "return", to_run) in self.looked:
                continue
            self.looked.add((of, "return", to_run))
            for tag in self.tags[of]:
                given = _RETURNED.search(tag.inside)
                if given is not None and not is_read(given[1], of):
                    return False
            for tag, in_call in beginning(self.texts[of], self.tags[of]):
                if in_call or _RETURNED.search(tag.inside):
                    continue
                if not is_read(tag.inside, of):
                    return False
        return bool(macros)

    def arguments(self, parameter: str, of: int, to_run: bool) -> bool:
        """Whether all that a macro is given for a parameter in these texts is told."""
        signature = next((t.inside for t in self.tags[of] if _MACRO.match(t.inside)), "")
        begin = _MACRO.match(signature)
        if begin is None:
            return False
        parameters = arguments_in(signature, begin.end())
        names = [p.partition("=")[0].strip() for p in parameters]
        place = names.index(parameter) if parameter in names else -1
        name = dispatched(begin[1])
        is_read = self.is_read_to_run if to_run else self.is_read
        called = re.compile(
            rf"\b{re.escape(name)}\s*\(|\bdispatch\s*\(\s*['\"]{re.escape(name)}['\"][^()]*\)\s*\("
        )
        calls = 0
        for where, tags in enumerate(self.tags):
            for tag in tags:
                if _MACRO.match(tag.inside):
                    continue
                for call in called.finditer(tag.inside):
                    calls += 1
                    arguments = arguments_in(tag.inside, call.end())
                    by_name = [a for a in arguments if _KEYWORD.match(a)]
                    given = [
                        a.partition("=")[2] for a in by_name if a.split("=")[0].strip() == parameter
                    ]
                    by_place = [a for a in arguments if not _KEYWORD.match(a)]
                    if place < 0 or any(a.lstrip().startswith("*") for a in arguments):
                        return False
                    given = given or by_place[place : place + 1]
                    given = given or [parameters[place].partition("=")[2] or "none"]
                    if not is_read(given[0], where):
                        return False
        return calls > 0


def without_conditions(expression: str) -> str:
    """An expression without what only decides which of its parts it is."""
    pieces = []
    at = 0
    masked = _LITERAL.sub(lambda literal: "'" * len(literal[0]), expression)
    for condition in re.finditer(r"\bif\b.*?(?:\belse\b|\Z)", masked, re.S):
        pieces.append(expression[at : condition.start()])
        at = condition.end()
    return " ".join((*pieces, expression[at:]))


def arguments_in(text: str, start: int) -> list[str]:
    """The arguments of a call, as they are written, from behind its bracket."""
    inside = _up_to_its_end(text, start)
    arguments = [""]
    at = depth = 0
    while at < len(inside):
        if (literal := _LITERAL.match(inside, at)) is not None:
            arguments[-1] += literal[0]
            at = literal.end()
            continue
        letter = inside[at]
        depth += (letter in "([{") - (letter in ")]}")
        if letter == "," and not depth:
            arguments.append("")
        else:
            arguments[-1] += letter
        at += 1
    return [each.strip() for each in arguments if each.strip()]


def _values(text: str, tags: list[Tag]) -> dict[str, list[str | None]]:
    """What each variable of a text is set to; None for what a macro is given.

    What is set to a block has its text, behind a mark.
    """
    values: dict[str, list[str | None]] = {}
    for i, tag in enumerate(tags):
        statement = _STATEMENT.match(tag.inside) if tag.kind == "{%" else None
        word, rest = statement.groups() if statement is not None else ("", "")
        if word == "set" and (assigned := _ASSIGNED.match(rest)) is not None:
            for name in re.findall(r"(?<![\w.])[A-Za-z_]\w*", assigned[1]):
                values.setdefault(name, []).append(assigned[2])
        elif word == "set":
            end = next((t for t in tags[i:] if t.inside.split()[:1] == ["endset"]), None)
            block = text[tag.end : end.start if end is not None else len(text)]
            values.setdefault(rest.split("|")[0].strip(), []).append(BRANCH + block)
        elif word == "for" and (loop := _LOOP.match(rest)) is not None:
            for name in re.findall(r"[A-Za-z_]\w*", loop[1]):
                values.setdefault(name, []).append(loop[2])
        elif word == "macro":
            for name in re.findall(r"[(,]\s*(\w+)", rest):
                values.setdefault(name, []).append(None)
        if (added := _ADDED.search(tag.inside)) is not None:
            values.setdefault(added[1], []).append(_up_to_its_end(added[2], 0))
    return values


def beginning(text: str, tags: list[Tag]) -> Iterator[tuple[Tag, bool]]:
    """The tags that write the first words of a statement, each with whether it is in a ``call``."""
    before = ""
    open_: list[str] = []
    calls = 0
    at = 0
    for tag in tags:
        before = _since_the_last(before + text[at : tag.start])
        at = tag.end
        if tag.kind == "{{":
            if not before.strip():
                yield tag, calls > 0
            before += " x "
            continue
        statement = _STATEMENT.match(tag.inside)
        word = statement[1] if statement is not None else ""
        calls += (word == "call") - (word == "endcall")
        if is_boundary(tag):
            before = ""
        elif word in _OPENS:
            open_.append(before)
        elif word in ("elif", "else") and open_:
            before = open_[-1]
        elif word in _CLOSES and open_ and not (outside := open_.pop()).strip():
            before = outside


def is_boundary(tag: Tag) -> bool:
    """Whether another text begins behind a tag."""
    statement = _STATEMENT.match(tag.inside) if tag.kind == "{%" else None
    if statement is None or statement[1] not in BOUNDARIES:
        return False
    return statement[1] != "set" or _ASSIGNED.match(statement[2]) is None


def _since_the_last(text: str) -> str:
    """What a statement that is not at its end holds so far."""
    return _COMMENT.sub(" ", text).rpartition(";")[2]


def _without_tags(text: str) -> str:
    pieces = []
    at = 0
    for tag in tagged(text):
        pieces.append(text[at : tag.start])
        at = tag.end
    return _COMMENT.sub(" ", " ".join((*pieces, text[at:])))


def _up_to_its_end(text: str, start: int) -> str:
    """The text up to where the bracket closes that stands open."""
    depth = 0
    at = start
    while at < len(text):
        if (literal := _LITERAL.match(text, at)) is not None:
            at = literal.end()
            continue
        depth += (text[at] in "([{") - (text[at] in ")]}")
        if depth < 0:
            break
        at += 1
    return text[start:at]
