"""Macros that matter although compiled SQL does not show them.

A materialization, a hook or a branch that was not compiled runs macros whose text is in no
compiled SQL. dbt's own macros change only with dbt's version. Those of the project and its
packages are called the *user's* here, and a user's macro may replace one of dbt's by its name.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Collection, Iterable, Iterator
from functools import cached_property
from typing import TYPE_CHECKING, Final

from msgspec.structs import replace

from dbt_ripple.artifacts import Macro, Node, Project
from dbt_ripple.flow.fingerprint import digest
from dbt_ripple.flow.identifiers import DIALECTS
from dbt_ripple.jinja.facts import ANY, Facts, Use, asks, calls_any_macro, facts_of
from dbt_ripple.jinja.facts import NOTHING as UNUSED
from dbt_ripple.jinja.kept import cached_method
from dbt_ripple.jinja.reads import NOTHING, Reads, reads_of
from dbt_ripple.jinja.text import normalised, normalised_macro, of_adapter

if TYPE_CHECKING:
    from dbt_ripple.graph.hook_reader import HookReader
    from dbt_ripple.graph.known_hooks import KnownMacros

INTERNAL: Final = frozenset({"dbt", *(f"dbt_{adapter}" for adapter in DIALECTS)})
"""Packages that come with dbt and its adapters."""

APPLY_TAGS: Final = "macro.dbt_ripple.apply_tags"
"""The package's post-hook. It queries the warehouse, and changes properties of a relation: never its
rows, nor what its SQL compiles to."""

OWN: Final = "dbt_ripple"
"""Our own package, whose macros write to tables of its own and to comments, whatever they read."""

NAMING: Final = re.compile(r"generate_\w+_name$")
"""Names of the macros by which dbt names relations."""

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
    "function": re.compile(r"\w+_function_(?:sql|python|javascript)$"),
}
"""Macros that dbt looks up by a name it puts together, so that nothing in a text calls them."""

_WORD: Final = re.compile(r"\w+")
_ASKS_BY_NAME: Final = re.compile(r"\bvar\s*(?:\.\s*has_var\s*)?\(\s*[A-Za-z_]")
"""How a var is asked for by the name that a variable has; a text is only parsed where that stands in it."""

_OF_ALL: Final = frozenset({"[]", "items", "values"})
"""Steps by which a text takes from a package what it does not name."""

Question = Callable[[Facts], bool]
"""What is asked of the facts of a macro."""


def _of_adapter(macro: Macro, adapter: str | None) -> Macro:
    """A macro as the project's adapter runs it: what is only for other ones is left out."""
    sql = of_adapter(macro.macro_sql, adapter) if adapter else macro.macro_sql
    if sql is macro.macro_sql:
        return macro
    words = set(_WORD.findall(sql))
    names = {unique_id: unique_id.rpartition(".")[2] for unique_id in macro.depends_on.macros}
    called = [u for u, name in names.items() if words & {name, dispatched(name)}]
    return replace(macro, macro_sql=sql, depends_on=replace(macro.depends_on, macros=called))


class Macros:
    """The macros of one project, by what can call them."""

    def __init__(self, project: Project) -> None:
        self.project = project
        adapter = project.metadata.adapter_type
        self.macros = {u: _of_adapter(m, adapter) for u, m in project.macros.items()}
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

    def closure(self, start: Iterable[str]) -> frozenset[str]:
        """The macros that these call, by unique_id, themselves included.

        A call of a name may also land at a user's macro of that name, dispatched or not, and a call
        by a name that is put together at any user's macro.
        """
        return self._closure(frozenset(start))

    @cached_method
    def _closure(self, start: frozenset[str], package: str | None = None) -> frozenset[str]:
        """As `closure`; for a node of a package where that is given."""
        unseen = self._unseen_by(package) if package is not None else frozenset[str]()
        found: set[str] = set()
        stack = list(start)
        while stack:
            unique_id = stack.pop()
            if unique_id not in found and unique_id in self.macros:
                found.add(unique_id)
                called = self._called_by(unique_id)
                stack += (
                    called if unique_id in self.user else (c for c in called if c not in unseen)
                )
        return frozenset(found)

    @cached_method
    def _unseen_by(self, package: str) -> frozenset[str]:
        """The macros of other packages with a name of dbt's own: dbt calls its own by that name.

        It does not where it dispatches (``default__...``), nor where an adapter runs it.
        """
        own = (self.project.name, package)
        return frozenset(
            u
            for u in self.user
            if (macro := self.macros[u]).package_name not in own
            and macro.name == dispatched(macro.name)
        )

    @cached_property
    def hook_reader(self) -> HookReader:
        """What reads the hooks that call these."""
        from dbt_ripple.graph.hook_reader import HookReader  # which reads by the macros

        return HookReader(self)

    @cached_property
    def known(self) -> KnownMacros:
        """Those of packages of which it is known what they do."""
        from dbt_ripple.graph.known_hooks import known_macros  # which is told by the macros

        return known_macros(self)

    @cached_method
    def _called_by(self, unique_id: str) -> tuple[str, ...]:
        """What a macro calls itself."""
        macro = self.macros[unique_id]
        called = (*macro.depends_on.macros, *self.users_by_name.get(dispatched(macro.name), ()))
        if unique_id not in self.user:
            # What stands in for one of dbt's and gives the same is no other macro.
            return tuple(u for u in called if u not in self.known.beside)
        if macro.package_name != OWN and unique_id not in self.known.beside:
            by_name = calls_any_macro(macro.macro_sql) or (
                self._package_alone.search(macro.macro_sql) is not None
                and self._takes_from_package(self.facts(unique_id))
            )
            called += (*self.user,) if by_name else ()
        return called

    @cached_property
    def packages(self) -> frozenset[str]:
        """The names of packages, which are names in Jinja, too."""
        return frozenset(macro.package_name for macro in self.macros.values())

    @cached_property
    def _package_alone(self) -> re.Pattern[str]:
        """The name of a package without the name of a macro of it behind: in each text that `_takes_from_package`."""
        names = "|".join(map(re.escape, sorted(self.packages)))
        return re.compile(rf"\b(?:{names})\b(?!\s*\.\s*(?!(?:items|values|get)\b)\w)")

    def _takes_from_package(self, facts: Facts) -> bool:
        """Whether it takes macros of a package by names that do not stand there, or all of them."""
        return any(
            not use.path[1:] or use.path[1] in _OF_ALL or use.path[1:3] == ("get", "()")
            for use in facts.uses_of(*self.packages - facts.sets)
        )

    def facts(self, unique_id: str) -> Facts:
        """What a macro uses."""
        return facts_of(self.macros[unique_id].macro_sql)

    def texts_of(self, start: Iterable[str]) -> tuple[str, ...]:
        """As they are written, the user's macros among those and what they call, but our own package's."""
        return self._texts_of(self.closure(start) & self.user)

    @cached_method
    def _texts_of(self, user: frozenset[str]) -> tuple[str, ...]:
        macros = map(self.macros.__getitem__, sorted(user))
        return tuple(m.macro_sql for m in macros if m.package_name != OWN)

    def any_that(self, start: Iterable[str], what: Question) -> bool:
        """Whether something is true of the facts of one of `texts_of`."""
        return self._any_of(self.texts_of(start), what)

    @cached_method
    def _any_of(self, texts: tuple[str, ...], what: Question) -> bool:
        return any(asks(text, what) for text in texts)

    def fingerprint(self, start: Iterable[str]) -> bytes:
        """Of the texts of the user's macros among those and what they call; empty for none."""
        return self._fingerprint(self.closure(start) & self.user)

    @cached_method
    def _fingerprint(self, reached: frozenset[str]) -> bytes:
        if not reached:
            return b""
        parts = [
            f"{u}\n{self.text(u)}{self.variables(self.macros[u].macro_sql)}".encode()
            for u in sorted(reached)
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
        variables, environment = self.project.variables, self.project.environment
        if not variables and not environment:
            return ""
        return _used(variables, self.variables_in(text)) + _used(
            environment, facts_of(text).environment
        )

    def variables_in(self, text: str) -> frozenset[str]:
        """The vars that a text asks for, itself or by giving their names to macros; `ANY` where it may be any."""
        facts, asking = facts_of(text), self._asking
        if not asking or facts is UNUSED:
            return facts.variables
        if text in self._called_by_dbt or facts.calls_any_macro or self._takes_from_package(facts):
            return facts.variables | {ANY}
        given = (self._given(facts, name) for name in facts.words & self.users_by_name.keys())
        return facts.variables.union(*given)

    def _given(self, facts: Facts, name: str) -> Iterator[str]:
        """The names of vars that a text gives to the macros of a name."""
        for unique_id in self.users_by_name[name]:
            macro = self.facts(unique_id)
            calls = [call for call in facts.given if call.called == name]
            for parameter in self._asking.get(unique_id, ()):
                if not calls or any(_is_passed_on(use, name) for use in facts.uses):
                    yield ANY
                for call in calls:
                    value = call.value(macro.parameters, parameter)
                    if not value.startswith("%"):  # what calls this one gives its name
                        yield value[1:] or ANY

    @cached_property
    def _asking(self) -> dict[str, frozenset[str]]:
        """The user's macros that ask for vars by names that they are given, and the parameters that are these names."""
        by_name = (u for u in self.user if _ASKS_BY_NAME.search(self.macros[u].macro_sql))
        asking = {u: by for u in by_name if (by := self.facts(u).asked_by)}
        changed = bool(asking)
        while changed:
            changed = False
            for unique_id in self.user:
                more = asking.get(unique_id, frozenset()).union(
                    value[1:]
                    for call in self.facts(unique_id).given
                    for called in self.users_by_name.get(call.called, ())
                    for parameter in asking.get(called, ())
                    if (value := call.value(self.facts(called).parameters, parameter))[:1] == "%"
                )
                if len(more) > len(asking.get(unique_id, ())):
                    asking[unique_id] = more
                    changed = True
        return asking

    @cached_property
    def _called_by_dbt(self) -> frozenset[str]:
        """The texts of those that dbt itself may call, with what it likes."""
        return frozenset(
            self.macros[u].macro_sql
            for u in self._asking
            if dispatched(self.macros[u].name) in self.internal
        )

    def variables_of(self, node: Node) -> str:
        """As `variables`, of a node's code in its language."""
        if not node.is_python:
            return self.variables(node.raw_code)
        return _used(self.project.environment, environment_in_python(node.raw_code))

    def text(self, unique_id: str) -> str:
        """The text of a macro, without what is no more than layout or a comment."""
        return normalised_macro(self.macros[unique_id].macro_sql)

    def named_in(self, text: str) -> list[str]:
        """The user's macros that a piece of Jinja names; all of them where it calls by another's name."""
        facts = facts_of(text)
        if facts is UNUSED or not self.user:
            return []
        if facts.calls_any_macro or self._takes_from_package(facts):
            return sorted(self.user)
        return [u for name in sorted(facts.words) for u in self.users_by_name.get(name, ())]

    def that_ask(
        self, start: Iterable[str], what: Question = Facts.asks_whether_it_exists
    ) -> list[str]:
        """Those of the user's macros that ask for something, themselves or further.

        Args:
            start: macros by unique_id.
            what: a question to their facts.
        """
        return [u for u in start if u in self.user and self._asks(u, what)]

    @cached_method
    def _asks(self, unique_id: str, what: Question) -> bool:
        reached = self.closure([unique_id]) & self.user
        return any(asks(self.macros[u].macro_sql, what) for u in reached)

    def of_materialization(self, name: str, package: str | None = None) -> bytes:
        """A fingerprint of the user's macros that a materialization may run; empty for none."""
        return self._fingerprint(self.run_by(name, package))

    @cached_method
    def run_by(self, name: str, package: str | None = None) -> frozenset[str]:
        """The user's macros that a materialization may run, by itself or through the adapter.

        Those of any node, or those of the nodes of a package.
        """
        start = [*self._materializing(name), *self.called_by_adapters]
        if (at_run := _BY_NAME_AT_RUN.get(name)) is not None:
            start += self._named(at_run)
        return self._closure(frozenset({*start} - self.known.beside), package) & self.user

    def _materializing(self, name: str | None) -> list[str]:
        """The macros that are a materialization of this name, or of any."""
        return [u for u, m in self.macros.items() if _materializes(m, name)]

    def _named(self, pattern: re.Pattern[str]) -> list[str]:
        return [u for u, m in self.macros.items() if pattern.search(m.name)]

    def naming(self, package: str) -> list[str]:
        """The user's macros that may name the relations of a package.

        A package's own ``generate_schema_name`` names the relations of that package alone; what
        ``dispatch`` may look for counts for all.
        """
        own = (self.project.name, package)
        return [
            unique_id
            for unique_id in self.user
            if NAMING.match(plain := dispatched((macro := self.macros[unique_id]).name))
            and (macro.package_name in own or macro.name != plain)
        ]

    @cached_property
    def called_by_adapters(self) -> list[str]:
        """The user's macros in place of such of dbt's as adapters run, in any build.

        These are looked up by name, as ``create_schema`` is, and so is what no macro calls, as far as
        is known. What only writes SQL into compiled code, or a name, shows there.
        """
        called: frozenset[str] | None = None
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
        return self._reads(self.closure(start) & self.user)

    @cached_method
    def _reads(self, user: frozenset[str]) -> Reads:
        reads = NOTHING
        for unique_id in user:
            reads |= self._read_by(unique_id)
        return reads

    @cached_method
    def _read_by(self, unique_id: str) -> Reads:
        macro = self.macros[unique_id]
        if macro.package_name == OWN:
            return NOTHING
        replaces = not self.internal.isdisjoint((macro.name, dispatched(macro.name)))
        return reads_of(macro.macro_sql, self.internal, replaces_internal=replaces)


def _is_passed_on(use: Use, name: str) -> bool:
    """Whether a macro of a name is not called where it is named."""
    dispatched_as = f"('{name}')"
    steps = (*use.path, "")
    return any(
        (step == name or (step == dispatched_as and before == "dispatch")) and after[:1] != "("
        for before, step, after in zip(("", *steps), steps, steps[1:], strict=False)
    )


def _used(values: dict[str, str] | None, names: Collection[str]) -> str:
    """Those of some values that are asked for by these names; empty for none."""
    if not values or not names:
        return ""
    used = {n: v for n, v in values.items() if n in names or n == ANY or ANY in names}
    return repr(sorted(used.items())) if used else ""


def environment_in_python(code: str) -> set[str]:
    """The environment variables that a piece of Python asks ``os`` for; ``ANY`` where not by name.

    Example:
        >>> environment_in_python("import os; a = os.environ['A'] + os.getenv('B', '')") == {"A", "B"}
        True
        >>> environment_in_python("from os import environ; print(environ)") == {ANY}
        True
    """
    if "environ" not in code and "getenv" not in code:
        return set()
    try:
        tree = ast.parse(code)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return {ANY}
    names: set[str] = set()
    asked = 0
    for node in ast.walk(tree):
        asked += _is_of_os(node, "environ") or _is_of_os(node, "getenv")
        match node:
            case ast.Constant(value="environ" | "getenv"):
                return {ANY}
            case ast.alias(name="environ" | "getenv", asname=str()):
                return {ANY}
            case (
                ast.Subscript(value=of, slice=ast.Constant(value=str(name)))
                | ast.Call(
                    func=ast.Attribute(value=of, attr="get"),
                    args=[ast.Constant(value=str(name)), *_],
                )
            ) if _is_of_os(of, "environ"):
                names.add(name)
                asked -= 1
            case ast.Call(func=of, args=[ast.Constant(value=str(name)), *_]) if _is_of_os(
                of, "getenv"
            ):
                names.add(name)
                asked -= 1
    return names | {ANY} if asked else names


def _is_of_os(node: ast.AST, name: str) -> bool:
    return (isinstance(node, ast.Attribute) and node.attr == name) or (
        isinstance(node, ast.Name) and node.id == name
    )


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
