"""Whether all that a hook runs stands in texts that can be read.

The statements of a hook stand in its own text, in the macros it calls, and in the strings and blocks
that these hand to ``run_query`` and the like. A statement may also come from where no text is: a var,
a property of a node, the result of a query, a method of the adapter. Then it may be any.

Values within a statement (``delete from {{ var('table') }}``) are not looked at here: there it is the
beginning that says what is done.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from functools import cached_property
from typing import Final

from dbt_ripple.graph.jinja import Tag, tagged
from dbt_ripple.graph.macros import Macros

SAYS: Final = re.compile(
    r"\s*(?:do\s+)?(?:log|print|exceptions\s*\.\s*\w+|dbt\s*\.\s*log\w*)\s*\(", re.S
)
"""A tag that only says something."""

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

_KNOWN_MACROS: Final = _NO_TEXT | {"create_table_as", "create_view_as", "run_query", "statement"}
_SEEN: Final = frozenset(
    """
    False None True and call caller defined dict do elif else endif exceptions execute false for
    if in is list log loop macro namespace none not or print range ref return set source string
    target this true tuple zip
    """.split()
)
"""Names in Jinja that hold no text of their own."""


class RunTexts:
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
        self.values = [_values(tags) for tags in self.tags]
        self.looked: set[tuple[int, str]] = set()
        self.writing: dict[str, bool] = {}
        self.arguments_read: bool | None = None

    def all_read(self) -> bool:
        """Whether each statement begins in one of the texts."""
        return all(self.runs_nothing_else(i) and self.begins_here(i) for i in range(len(self.tags)))

    def targets_told(self) -> bool:
        """Whether what Jinja writes into statements of macros, by its name, is from texts."""
        for of, tags in enumerate(self.tags):
            for tag in tags:
                alone = re.fullmatch(r"\s*(\w+)\s*", tag.inside)
                if of and tag.kind == "{{" and alone and not self.told(tag.inside, of):
                    return False
                for call in _RUN.finditer(tag.inside):
                    if not self.told(_up_to_its_end(tag.inside, call.end()), of):
                        return False
        return True

    def runs_nothing_else(self, of: int) -> bool:
        """Whether Jinja runs no statement but by ``run_query``, ``statement`` and what is known."""
        for tag in self.tags[of]:
            plain = _LITERAL.sub("''", tag.inside)
            said = set(_NAME.findall(plain))
            if said & _ANYTHING or any(m[1] not in _METHODS for m in _METHOD.finditer(plain)):
                return False
            if "statement" in said and not _CALLED_STATEMENT.match(plain):
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
        """Whether what a text, or Jinja in it, runs begins with words that stand in some text."""
        for tag in beginning(self.texts[of], self.tags[of]):
            if not SAYS.match(tag.inside) and not self.told(tag.inside, of):
                return False
        for tag in self.tags[of]:
            for call in _RUN.finditer(tag.inside):
                argument = _up_to_its_end(tag.inside, call.end())
                if not self.told_to_run(argument, of):
                    return False
        return True

    def told_to_run(self, argument: str, of: int) -> bool:
        """Whether a statement that is handed over begins with words of a text."""
        first = _LITERAL.match(argument.lstrip())
        others = set(_NAME.findall(_LITERAL.sub("''", argument)))
        if first is None or not re.match(r"['\"]\s*\w", first[0]) or others & {"else", "if", "or"}:
            return self.told(argument, of)
        return self.read(first[0][1:-1])

    def told(self, expression: str, of: int) -> bool:
        """Whether an expression of Jinja is put together from texts alone."""
        expression = self.without_arguments(expression)
        if not all(self.read(literal[0][1:-1]) for literal in _LITERAL.finditer(expression)):
            return False
        plain = _FILTER.sub("", _LITERAL.sub("''", expression))
        for name in _NAME.findall(plain):
            if name == "adapter":
                named = _DISPATCHED.findall(expression)
                methods = [m for m in _METHOD.findall(plain) if m not in _WRITE_NOTHING]
                if len(named) < len(methods):
                    return False
                if not all(self.returned(n) for n in named):
                    return False
            elif name in self.values[of]:
                if not self.value(name, of):
                    return False
            elif name in self.macros.users_by_name:
                if not self.returned(name):
                    return False
            elif name not in _SEEN and name not in _NO_TEXT and name not in self.packages:
                return False
        return True

    def without_arguments(self, expression: str) -> str:
        """An expression without what the user's macros are given in it: see `arguments_are_told`."""
        pieces = []
        at = 0
        for called in re.finditer(r"\b(\w+)\s*\(", expression):
            if called.start() < at or called[1] not in self.macros.users_by_name:
                continue
            pieces.append(expression[at : called.end()])
            at = called.end() + len(_up_to_its_end(expression, called.end()))
        return "".join((*pieces, expression[at:]))

    @cached_property
    def packages(self) -> set[str]:
        """The names of packages, which stand before those of macros."""
        return {m.package_name for m in self.macros.macros.values()}

    def value(self, name: str, of: int) -> bool:
        """Whether all that a variable of Jinja is set to is put together from texts."""
        if (of, name) in self.looked:
            return True
        self.looked.add((of, name))
        for expression in self.values[of][name]:
            if expression is None:
                if not self.arguments_are_told():
                    return False
            elif not self.told(expression, of):
                return False
        return True

    def returned(self, macro: str) -> bool:
        """Whether what the user's macros of a name return is put together from texts."""
        found = self.macros.users_by_name.get(macro, ())
        for unique_id in found:
            of = self.of_macro.get(unique_id)
            if of is None or (of, "return") in self.looked:
                continue
            self.looked.add((of, "return"))
            for tag in self.tags[of]:
                given = _RETURNED.search(tag.inside)
                if given is not None and not self.told(given[1], of):
                    return False
        return bool(found)

    def arguments_are_told(self) -> bool:
        """Whether all that macros are given in these texts is put together from texts."""
        if self.arguments_read is None:
            self.arguments_read = True
            called = re.compile(
                rf"\b(?:{'|'.join(map(re.escape, sorted(self.macros.users_by_name)))})\s*\("
            )
            self.arguments_read = all(
                self.told(_up_to_its_end(tag.inside, call.end()), of)
                for of, tags in enumerate(self.tags)
                for tag in tags
                if not re.match(r"\s*macro\b", tag.inside)
                for call in called.finditer(tag.inside)
            )
        return self.arguments_read


def _values(tags: list[Tag]) -> dict[str, list[str | None]]:
    """What each variable of a text is set to; None for what a macro is given."""
    found: dict[str, list[str | None]] = {}
    for tag in tags:
        statement = _STATEMENT.match(tag.inside) if tag.kind == "{%" else None
        word, rest = statement.groups() if statement is not None else ("", "")
        if word == "set" and (assigned := _ASSIGNED.match(rest)) is not None:
            for name in re.findall(r"(?<![\w.])[A-Za-z_]\w*", assigned[1]):
                found.setdefault(name, []).append(assigned[2])
        elif word == "set":
            found.setdefault(rest.split("|")[0].strip(), []).append("")
        elif word == "for" and (loop := _LOOP.match(rest)) is not None:
            for name in re.findall(r"[A-Za-z_]\w*", loop[1]):
                found.setdefault(name, []).append(loop[2])
        elif word == "macro":
            for name in re.findall(r"[(,]\s*(\w+)", rest):
                found.setdefault(name, []).append(None)
        if (added := _ADDED.search(tag.inside)) is not None:
            found.setdefault(added[1], []).append(_up_to_its_end(added[2], 0))
    return found


def beginning(text: str, tags: list[Tag]) -> Iterator[Tag]:
    """The tags that write the first words of a statement."""
    before = ""
    open_: list[str] = []
    at = 0
    for tag in tags:
        before = _since_the_last(before + text[at : tag.start])
        at = tag.end
        if tag.kind == "{{":
            if not before.strip():
                yield tag
            before += " x "
            continue
        statement = _STATEMENT.match(tag.inside)
        word = statement[1] if statement is not None else ""
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
