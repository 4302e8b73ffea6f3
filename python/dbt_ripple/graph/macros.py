"""Macros that matter although compiled SQL does not show them.

A materialization, a hook or a branch that was not compiled runs macros whose text is in no
compiled SQL. dbt's own macros change only with dbt's version. Those of the project and its
packages are called the *user's* here, and a user's macro may replace one of dbt's by its name.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from functools import cached_property
from typing import Final

from dbt_ripple.artifacts import Macro, Node, Project
from dbt_ripple.flow.fingerprint import digest
from dbt_ripple.flow.identifiers import DIALECTS
from dbt_ripple.graph.jinja import (
    ASKS_WHETHER_IT_EXISTS,
    names,
    normalised,
    normalised_macro,
    tags,
)
from dbt_ripple.graph.jinja_reads import NOTHING, Reads, reads_of

INTERNAL: Final = frozenset({"dbt", *(f"dbt_{adapter}" for adapter in DIALECTS)})
"""Packages that come with dbt and its adapters."""

APPLY_TAGS: Final = "macro.dbt_ripple.apply_tags"
"""The package's post-hook. It queries the warehouse, and changes properties of a relation: never its
rows, nor what its SQL compiles to."""

OWN: Final = "dbt_ripple"
"""Our own package, whose macros write to tables of its own and to comments, whatever they read."""

_SHOWN: Final = re.compile(
    r"generate_\w+_name$|test_|get_catalog|collect_freshness|get_where_subquery$|get_show_sql$"
)
"""Names of macros of dbt's whose work compiled SQL and artifacts show, or that build nothing."""

_COMPILED_ONLY: Final = ("macros/utils/", "macros/get_custom_name/", "macros/generic_test_sql/")
"""Where dbt keeps macros that only write SQL or names."""

_RUN_BY_ADAPTERS: Final = re.compile(
    r"(?:alter_column_type|check_schema_exists|create_schema|drop_relation|drop_schema"
    r"|get_columns_in_relation(?:_raw)?|list_\w+|describe_\w+|rename_relation|truncate_relation"
    r"|validate_sql)$"
)
"""Macros that the Python of adapters runs by name (``execute_macro`` in `dbt.adapters`), so that a text
which calls ``adapter.something`` may run them, and dbt itself in a unit test."""

_BY_NAME_AT_RUN: Final = {
    "incremental": re.compile(r"get_incremental_\w+_sql$"),
    "snapshot": re.compile(r"snapshot_\w+_strategy$"),
}
"""Macros that dbt looks up by a name it puts together, so that nothing in a text calls them."""

ANY: Final = "*"
"""Among names of vars: it may be any."""

_ASKING: Final = {
    function: (
        re.compile(rf"""\b{function}\s*\(\s*(['"])([^'"\\]*)\1\s*[,)]"""),
        re.compile(rf"\b{function}\b"),
    )
    for function in ("var", "env_var")
}
_BY_NAME: Final = ("context", "dispatch", "render")
CALLS_BY_NAME: Final = re.compile(
    r"\bcontext\b|\bdispatch\s*\(\s*(?!(?:macro_name\s*=\s*)?(['\"])\w+\1\s*[,)])|(?<![\w.])render\s*\("
)
"""What calls a macro by a name that stands in no text, or what stands in a string."""

_OF_OS: Final = re.compile(r"\b(?:environ|getenv)\b")
_OF_OS_BY_NAME: Final = re.compile(
    r"""\b(?:environ\s*(?:\[|\.\s*get\s*\()|getenv\s*\()\s*(['"])(\w+)\1\s*[\],)]"""
)
_IMPORTED_OF_OS: Final = re.compile(r"\bimport\s+(?:environ|getenv)\s*$", re.M)
_STRING: Final = re.compile(r"""'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*\"""", re.S)


class Macros:
    """The macros of one project, by what can call them."""

    def __init__(self, project: Project) -> None:
        self.project = project
        self.macros = project.macros
        self.user = {
            unique_id for unique_id, m in self.macros.items() if m.package_name not in INTERNAL
        }
        self.users_by_name: dict[str, list[str]] = {}
        for unique_id in self.user:
            name = self.macros[unique_id].name
            self.users_by_name.setdefault(name, []).append(unique_id)
            if (plain := dispatched(name)) != name:
                self.users_by_name.setdefault(plain, []).append(unique_id)
        self.internal = {
            name
            for unique_id, m in self.macros.items()
            if unique_id not in self.user
            for name in (m.name, dispatched(m.name))
        }
        self._materializations: dict[str, tuple[frozenset[str], bytes]] = {}
        self._reads: dict[str, Reads] = {}
        self._texts: dict[str, str] = {}
        self._asks: dict[tuple[str, re.Pattern[str]], bool] = {}
        self._calls_any: dict[str, bool] = {}

    def closure(self, start: Iterable[str]) -> set[str]:
        """The macros that these call, by unique_id, themselves included.

        A call of a name may also land at a user's macro of that name, dispatched or not, and a call
        by a name that is put together at any user's macro.
        """
        unique_ids: set[str] = set()
        stack = list(start)
        while stack:
            unique_id = stack.pop()
            macro = self.macros.get(unique_id)
            if macro is None or unique_id in unique_ids:
                continue
            unique_ids.add(unique_id)
            stack += macro.depends_on.macros
            stack += self.users_by_name.get(dispatched(macro.name), ())
            if unique_id in self.user and self._calls_any_macro(unique_id):
                stack += self.user - unique_ids
        return unique_ids

    @cached_property
    def beside(self) -> frozenset[str]:
        """The macros of packages of which it is known that what they run beside a node leaves it as it is."""
        from dbt_ripple.graph.known_hooks import known_macros  # which is told by the macros

        return known_macros(self).beside

    def _calls_any_macro(self, unique_id: str) -> bool:
        calls_any = self._calls_any.get(unique_id)
        if calls_any is None:
            macro = self.macros[unique_id]
            is_known = macro.package_name == OWN or unique_id in self.beside
            any_macro = not is_known and calls_any_macro(macro.macro_sql)
            calls_any = self._calls_any[unique_id] = any_macro
        return calls_any

    def fingerprint(self, start: Iterable[str]) -> bytes:
        """Of the texts of the user's macros among those and what they call; empty for none."""
        reached = sorted(self.closure(start) & self.user)
        if not reached:
            return b""
        texts = map(self.text, reached)
        parts = [
            f"{u}\n{t}{self.variables(t)}".encode() for u, t in zip(reached, texts, strict=True)
        ]
        if self.project.macro_order is not None and not self.in_order.isdisjoint(reached):
            parts.append(self.project.macro_order.encode())
        return digest(b"macros", *parts)

    @cached_property
    def in_order(self) -> frozenset[str]:
        """The user's macros that are one of the versions in several packages of one name.

        Which of them runs, ``dispatch`` and the flags of the project file decide. That the root
        project's come before dbt's goes without saying.
        """
        versions: dict[str, list[str]] = {}
        for unique_id, macro in self.macros.items():
            plain = dispatched(macro.name)
            if plain != macro.name or _materializes(macro, None):
                versions.setdefault(plain, []).append(unique_id)
        own_packages = frozenset({self.project.name})
        in_order: set[str] = set()
        for unique_ids in versions.values():
            if len(unique_ids) > 1:
                packages = {self.macros[u].package_name for u in unique_ids} - {OWN}
                if len(packages) > 1 and packages - own_packages - INTERNAL:
                    in_order.update(unique_ids)
        return frozenset(in_order & self.user)

    def variables(self, text: str) -> str:
        """What differs between the sides, of the vars and environment variables a text uses.

        Each with its value here; empty for none.
        """
        return self._values(self.project.variables, text, variables_in) + self._values(
            self.project.environment, text, environment_in
        )

    def variables_of(self, node: Node) -> str:
        """As `variables`, of a node's code in its language."""
        if not node.is_python:
            return self.variables(node.raw_code)
        return self._values(self.project.environment, node.raw_code, environment_in_python)

    @staticmethod
    def _values(
        values: dict[str, str] | None, text: str, names_in: Callable[[str], set[str]]
    ) -> str:
        if not values or not (names := names_in(text)):
            return ""
        used = {n: v for n, v in values.items() if n in names or n == ANY or ANY in names}
        return repr(sorted(used.items())) if used else ""

    def text(self, unique_id: str) -> str:
        """The text of a macro, without what is no more than layout or a comment."""
        text = self._texts.get(unique_id)
        if text is None:
            text = self._texts[unique_id] = normalised_macro(self.macros[unique_id].macro_sql)
        return text

    def named_in(self, text: str) -> list[str]:
        """The user's macros that a piece of Jinja names; all of them where it calls by another's name."""
        if not self.user:
            return []
        if calls_any_macro(text):
            return sorted(self.user)
        words = names(" ".join(tags(text)))
        return [u for name in sorted(words) for u in self.users_by_name.get(name, ())]

    def that_ask(
        self, start: Iterable[str], what: re.Pattern[str] = ASKS_WHETHER_IT_EXISTS
    ) -> list[str]:
        """Those of the user's macros that ask for something, themselves or further.

        Args:
            start: macros by unique_id.
            what: how that is written; whether the model exists, by default.
        """
        asking = []
        for unique_id in start:
            if unique_id in self.user:
                asks = self._asks.get((unique_id, what))
                if asks is None:
                    asks = self._asks[unique_id, what] = any(
                        what.search(self.text(u)) for u in self.closure([unique_id]) & self.user
                    )
                if asks:
                    asking.append(unique_id)
        return asking

    def of_materialization(self, name: str) -> bytes:
        """A fingerprint of the user's macros that a materialization may run; empty for none."""
        return self._run_by(name)[1]

    def run_by(self, name: str) -> frozenset[str]:
        """The user's macros that a materialization may run, by itself or through the adapter."""
        return self._run_by(name)[0]

    def _run_by(self, name: str) -> tuple[frozenset[str], bytes]:
        run_and_fingerprint = self._materializations.get(name)
        if run_and_fingerprint is None:
            start = [*self._materializing(name), *self.called_by_adapters]
            if (at_run := _BY_NAME_AT_RUN.get(name)) is not None:
                start += self._named(at_run)
            run = frozenset(self.closure(u for u in start if u not in self.beside) & self.user)
            run_and_fingerprint = self._materializations[name] = run, self.fingerprint(run)
        return run_and_fingerprint

    def _materializing(self, name: str | None) -> list[str]:
        """The macros that are a materialization of this name, or of any."""
        return [u for u, m in self.macros.items() if _materializes(m, name)]

    def _named(self, pattern: re.Pattern[str]) -> list[str]:
        return [u for u, m in self.macros.items() if pattern.search(m.name)]

    @cached_property
    def called_by_adapters(self) -> list[str]:
        """The user's macros in place of such of dbt's as adapters run, in any build.

        These are looked up by name, as ``create_schema`` is, and so is what no macro calls, as far as
        is known. What only writes SQL into compiled code, or a name, shows there.
        """
        called: set[str] | None = None
        macros = []
        for unique_id in sorted(self.user):
            name = dispatched(self.macros[unique_id].name)
            if name not in self.internal or _SHOWN.match(name):
                continue
            places = [
                m.original_file_path
                for u, m in self.macros.items()
                if u not in self.user and dispatched(m.name) == name
            ]
            if all(place.startswith(_COMPILED_ONLY) for place in places):
                continue
            if _RUN_BY_ADAPTERS.match(name):
                macros.append(unique_id)
                continue
            if called is None:
                by_name = [u for at_run in _BY_NAME_AT_RUN.values() for u in self._named(at_run)]
                called = self.closure([*self._materializing(None), *by_name])
            if unique_id not in called:
                macros.append(unique_id)
        return macros

    def reads(self, start: Iterable[str]) -> Reads:
        """What of a node's properties the user's macros among those read, and what they call."""
        reads = NOTHING
        for unique_id in self.closure(start) & self.user:
            reads |= self.read_by(unique_id)
        return reads

    def read_by(self, unique_id: str) -> Reads:
        """What of a node's properties one macro reads."""
        reads = self._reads.get(unique_id)
        if reads is None:
            macro = self.macros[unique_id]
            replaces_internal = (
                macro.name in self.internal or dispatched(macro.name) in self.internal
            )
            reads = self._reads[unique_id] = (
                NOTHING
                if macro.package_name == OWN
                else reads_of(macro.macro_sql, self.internal, replaces_internal=replaces_internal)
            )
        return reads


def calls_any_macro(text: str) -> bool:
    """Whether a text calls macros by names that do not stand in it as such, or renders other Jinja.

    Example:
        >>> calls_any_macro("{{ context['tidy_' ~ target.name]() }}")
        True
        >>> calls_any_macro("{{ adapter.dispatch('tidy', 'shop')() }} {{ this.render() }}")
        False
    """
    if not any(word in text for word in _BY_NAME):
        return False
    return any(map(CALLS_BY_NAME.search, tags(text)))


def variables_in(text: str) -> set[str]:
    """The names of the vars that the Jinja of a text uses; ``ANY`` where it puts a name together.

    Example:
        >>> sorted(variables_in("{{ var('from') }} {% if var( 'deep', 1) %} var('not')"))
        ['deep', 'from']
        >>> variables_in("{{ var('of_' ~ name) }}") == {ANY}
        True
    """
    return _asked_for(text, "var")


def environment_in(text: str) -> set[str]:
    """As `variables_in`, of the environment variables.

    Example:
        >>> environment_in("{{ env_var('DBT_USER', 'me') }} {{ var('x') }}")
        {'DBT_USER'}
    """
    return _asked_for(text, "env_var")


def _asked_for(text: str, function: str) -> set[str]:
    names: set[str] = set()
    by_name, at_all = _ASKING[function]
    for inside in tags(text) if function in text else ():
        named = by_name.findall(inside)
        names.update(name for _, name in named)
        plain = _STRING.sub("''", inside)
        if len(named) < len(at_all.findall(plain)) or "context" in plain:
            names.add(ANY)
    return names


def environment_in_python(code: str) -> set[str]:
    """The environment variables that a piece of Python asks ``os`` for; ``ANY`` where not by name.

    Example:
        >>> environment_in_python("import os; a = os.environ['A'] + os.getenv('B', '')") == {"A", "B"}
        True
        >>> environment_in_python("from os import environ; print(environ)") == {ANY}
        True
    """
    asked = len(_OF_OS.findall(code))
    named = _OF_OS_BY_NAME.findall(code)
    imports = len(_IMPORTED_OF_OS.findall(code))
    names = {name for _, name in named}
    return names | {ANY} if len(named) + imports < asked else names


def dispatched(name: str) -> str:
    """The name a macro is called by where it is one adapter's version of it."""
    prefix, separator, rest = name.partition("__")
    return rest if separator and prefix and rest else name


def _materializes(macro: Macro, name: str | None) -> bool:
    kind, separator, rest = macro.name.partition("materialization_")
    return bool(separator) and not kind and (name is None or rest.rpartition("_")[0] == name)


def project_hooks(project: Project) -> dict[str, tuple[str, bytes]]:
    """Each on-run hook's text and a fingerprint of the macros it calls."""
    hooks: list[Node] = project.of_type("operation")
    if not hooks:
        return {}
    macros = Macros(project)
    return {
        node.unique_id: (
            normalised(node.raw_code) + macros.variables(node.raw_code),
            macros.fingerprint(macros.named_in(node.raw_code)),
        )
        for node in hooks
    }
