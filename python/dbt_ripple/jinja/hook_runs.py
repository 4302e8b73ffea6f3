"""What a hook runs: its Jinja is run with all that is not known as such (`jinja.unknown`).

What comes out are statements of SQL in which a relation of dbt's is a word, and so is what is not known. A name
of dbt's context is known to do nothing, to run a statement, or it is not known; then the hook cannot be
followed. dbt's own macros run like any other.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Container, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Final, NoReturn

from jinja2 import Template
from jinja2.runtime import Macro as JinjaMacro
from jinja2.runtime import Undefined
from jinja2.utils import missing

from dbt_ripple.artifacts import Macro
from dbt_ripple.flow.statement_effects import MARK, UNKNOWN
from dbt_ripple.jinja.text import pieces
from dbt_ripple.jinja.unknown import (
    MAX_STEPS,
    TOO_MANY,
    CannotTellError,
    Named,
    Run,
    Unknown,
    UnknownEnvironment,
)

_VALUES: Final = frozenset(
    """
    config database database_schemas dbt_metadata_envs dbt_version flags graph invocation_args_dict invocation_id
    model modules post_hooks pre_hooks project_name results run_started_at schema schemas selected_resources sql
    any_literal_of_the_hook sql_header thread_id wrapped_exports compiled_code connection_name column_name
    diff_of_two_dicts doc env_var fromjson fromyaml load_agate_table load_result local_md5 metric set
    set_strict tojson toyaml try_or_compiler_error var zip zip_strict
    """.split()
)
"""Names of values and functions that are not known, and that do nothing."""

_SILENT: Final = frozenset("log print store_raw_result store_result write".split())
"""Functions that give no text and write to no relation."""

_ASKS: Final = frozenset(
    """
    already_exists check_schema_exists get_columns_in_relation get_columns_in_table get_missing_columns get_partitions_metadata
    is_replaceable list_relations list_relations_without_caching list_schemas nice_connection_name
    """.split()
)
"""Methods of the adapter that only look."""

_KEEPS: Final = frozenset(
    "cache_added cache_dropped cache_renamed clear_transaction commit commit_if_has_connection create_schema".split()
)
"""Methods of the adapter that give no text and keep the rows of all relations."""

_ACTS: Final = {
    "drop_relation": "drop table {0}",
    "truncate_relation": "truncate table {0}",
    "rename_relation": "alter table {0} rename to {1}",
    "alter_column_type": "alter table {0} add column other_type int",
    "expand_target_column_types": "alter table {1} add column other_type int",
}
"""Methods of the adapter that write, as SQL that writes to the same relations."""

_OF_TYPE: Final = frozenset({"is defined", "is mapping", "is none", "is string", "is undefined"})
_IDENTIFIER: Final = frozenset({"identifier", "name", "table"})
_SAME_PLACE: Final = frozenset({"include", "quote", "render", "without_identifier"})
_RELATION: Final = re.compile(r"__relation(\d+)__", re.I)
_REFUSED: Final = re.compile(r"macro '\w+' takes (?:no keyword argument|not more than)")
"""How Jinja says that a macro has no such parameters."""

_DEPTHS: Final = (1000, 3, 1)
"""How deep macros call each other before what one gives is not looked at: less where there are too many ways."""

_DEEP: Final = 40
_ALONE: Final = "athena bigquery clickhouse duckdb postgres snowflake spark trino"
_PREFIXES: Final[dict[str, tuple[str, ...]]] = {
    **{adapter: (adapter,) for adapter in _ALONE.split()},
    "databricks": ("databricks", "spark"),
    "materialize": ("materialize", "postgres"),
    "redshift": ("redshift", "postgres"),
}
"""By adapter, the prefixes of the macros that it dispatches to before ``default``: its own, and those of what it is built on."""

THIS: Final = ("this",)

Place = tuple[str, ...]
"""A relation: `THIS`; ``ref`` or ``source`` and what these are given; ``named`` and a name."""


_ANY_LITERAL: Final = "any_literal_of_the_hook"


def with_any_literal(text: str) -> str:
    """A hook with a name whose value is not known in place of each string that a call is given.

    Example:
        >>> with_any_literal("{{ load('a.csv', kind = 'b') }} -- {{ f(x['c']) }}")
        "{{ load ( any_literal_of_the_hook , kind = any_literal_of_the_hook ) }} -- {{ f ( x [ 'c' ] ) }}"
    """
    parts = pieces(text)
    if parts is None:
        return text
    written = []
    for part in parts:
        words = [value for _, value in part.tokens]
        for at, (kind, _) in enumerate(part.tokens):
            around = words[at - 1], words[at + 1 : at + 2]
            if kind == "string" and around[0] in ("(", ",", "=") and around[1] in ([","], [")"]):
                words[at] = _ANY_LITERAL
        changed = _ANY_LITERAL in words
        written.append(
            f"{part.text[:2]} {' '.join(words)} {part.text[-2:]}" if changed else part.text
        )
    return "".join(written) if any(_ANY_LITERAL in each for each in written) else text


@dataclass
class HookRun:
    """What one text may run.

    Attributes:
        statements: of SQL that it runs, each once; `HookRunner.places_in` says which relations are meant.
        output: what the text itself gives, in each way that it may take.
        reads: the relations of which the adapter was asked something.
        called: the macros that it called, by unique_id.
        known: those of them that are known without being run.
        skipped: those of them that were not run, because they run no statement.
        branches: the branches of Jinja that it took, each by its text and its number there.
        because: why it cannot be followed to the end; None where it can.
    """

    statements: dict[str, None] = field(default_factory=dict)
    output: dict[str, None] = field(default_factory=dict)
    reads: set[Place] = field(default_factory=set)
    called: set[str] = field(default_factory=set)
    known: set[str] = field(default_factory=set)
    skipped: set[str] = field(default_factory=set)
    branches: set[tuple[str, int]] = field(default_factory=set)
    because: str | None = None


class _ReturnError(Exception):
    """Carries what a macro returns."""

    def __init__(self, value: Any) -> None:
        super().__init__()
        self.value = value


class _PathEndsError(Exception):
    """An error that the text raises itself: nothing further runs."""


class _Relation(Unknown):
    """A relation that dbt names; in a text it is a word."""

    __slots__ = ("hooks", "number", "sure")

    def __init__(self, hooks: HookRunner, number: int, *, sure: bool = True) -> None:
        super().__init__(hooks.env.run)
        self.hooks, self.number, self.sure = hooks, number, sure

    def part(self, name: Any) -> Any:
        if name in _IDENTIFIER:
            return self if self.sure else self.hooks.relation(self.hooks.places[self.number])
        if name in _SAME_PLACE:
            return lambda *_, **__: self
        if name in ("incorporate", "replace_path"):
            return self._moved
        if self.sure and isinstance(name, tuple) and name[0] in _OF_TYPE:
            return name[0] == "is defined"
        return super().part(name)

    def _moved(self, path: Any = None, identifier: Any = None, **_: Any) -> Any:
        if isinstance(path, dict):
            identifier = path.get("identifier", identifier)
        elif path is not None:
            return Unknown(self.run)
        return self if identifier is None else self.hooks.created(identifier=identifier)

    def __bool__(self) -> bool:
        return self.sure or super().__bool__()

    def __str__(self) -> str:
        return f"__relation{self.number}__"

    __repr__ = __html__ = __str__


class HookRunner:
    """Runs the hooks of one project. Which macro a name means, and what ``dispatch`` takes, are dbt's rules.

    Args:
        macros: of the project and its packages.
        root: the name of the project.
        adapter: its type.
        internal: the packages that come with dbt.
        known: macros of which it is known what they do, by unique_id.
        config: what is known of the config of the node that is built.
        may_run: those that may run a statement, themselves or further. What another gives is not known
            where a text has too many ways to be followed with it.
    """

    def __init__(
        self,
        macros: Iterable[Macro],
        root: str | None,
        adapter: str,
        internal: Iterable[str],
        known: Iterable[str] = (),
        may_run: Callable[[], Container[str]] = frozenset,
        config: Mapping[str, Any] | None = None,
    ) -> None:
        self.env = UnknownEnvironment(self.resolved)
        self.root, self.adapter = root or "", adapter
        self.internal = frozenset(internal)
        self.by_name: dict[str, dict[str, Macro]] = {}
        self.packages: dict[str, dict[str, Macro]] = {}
        for macro in macros:
            self.by_name.setdefault(macro.name, {})[macro.package_name] = macro
            package = "dbt" if macro.package_name in self.internal else macro.package_name
            self.packages.setdefault(package, {})[macro.name] = macro
        self.config = config or {}
        self.package = self.root
        self.depth = 0
        self._macros: dict[str, Any] = {}
        self.known_macros = frozenset(known)
        self.may_run = may_run
        self.brief_below = _DEPTHS[0]
        self.places: list[Place] = []
        self._numbers: dict[Place, int] = {}
        run = self.env.run
        self._values = {name: Unknown(run, name) for name in _VALUES}
        self._values |= {
            "config": _Known(run, {"get": self._configured, "require": self._configured}, None),
            "target": _Known(run, {"type": self.adapter}, None),
            **{kind: _Known(run, {}, partial(self.named, kind)) for kind in ("ref", "source")},
        }
        self.done = HookRun()

    def run(self, text: str, package: str, *, output: bool = True) -> HookRun:
        """What a text of a package runs, and what it gives; without ``output`` that does not matter."""
        for depth in _DEPTHS if output else (0,):
            self._brief_below(depth)
            run = self._run(text, package)
            if run.because != TOO_MANY:
                break
        return run

    def _brief_below(self, depth: int) -> None:
        self.brief_below, run = depth, self.env.run
        run.brief = depth < _DEPTHS[0]
        # What takes long in full, mostly has too many ways; then it is run in brief.
        run.max_steps = MAX_STEPS if run.brief else MAX_STEPS // 4

    def _run(self, text: str, package: str) -> HookRun:
        self.package = package
        self.done = done = HookRun()
        self.env.reached = done.branches
        try:
            template, names = self._template(text, package)
            for _ in self.env.run.paths():
                self.depth = 0
                with suppress(_PathEndsError):
                    done.output[template.render(names)] = None
        except CannotTellError as error:
            done.because = str(error)
        except Exception as error:  # whatever goes wrong in a template
            done.because = f"{type(error).__name__}: {error}"
        return done

    def certainly_ends(self, macro: Macro, package: str) -> set[str] | None:
        """The macros that one calls which ends in an error whichever way it takes; None where it may not.

        What else it does on its way does not matter.
        """
        self.package = package
        self._brief_below(_DEPTHS[-1])
        self.env.free_name = lambda _: Unknown(self.env.run)
        self.done = HookRun(called={macro.unique_id})
        try:
            for _ in self.env.run.paths():
                with suppress(_PathEndsError):
                    self._given(macro, (), {})
                    return None
        except Exception:  # whatever goes wrong in a template
            return None
        return self.done.called

    def _configured(self, name: Any, *_: Any, **__: Any) -> Any:
        known = isinstance(name, str) and name in self.config
        return self.config[name] if known else self._values["config"].asked("get", [name])

    def record(self, statement: Any) -> None:
        """Note a statement that is run."""
        self.done.statements[str(statement)] = None

    def relation(self, place: Place, *, sure: bool = True) -> _Relation:
        """What Jinja has of a relation."""
        number = self._numbers.setdefault(place, len(self.places))
        if number == len(self.places):
            self.places.append(place)
        return _Relation(self, number, sure=sure)

    def places_in(self, name: str) -> list[Place]:
        """The relations whose words are in a piece of SQL."""
        return [self.places[int(number)] for number in _RELATION.findall(name)]

    # -- names --------------------------------------------------------------------------------------

    def function(self, macro: Macro) -> Callable[..., Any]:
        """A macro as what Jinja calls: not run where it is known what it does."""

        def call(*args: Any, **kwargs: Any) -> Any:
            self.done.called.add(macro.unique_id)
            if macro.unique_id in self.known_macros:
                self.done.known.add(macro.unique_id)
                for given in (*args, *kwargs.values()):
                    if isinstance(given, _Relation):  # to which it may be told to write
                        self.record(_ACTS["truncate_relation"].format(given))
                return ""
            if self.depth >= self.brief_below:
                return self._in_brief(macro, args, kwargs)
            return self._given(macro, args, kwargs)

        return call

    def _given(self, macro: Macro, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """What a macro gives."""
        if self.depth > _DEEP:
            raise CannotTellError("it calls itself")
        self.depth += 1
        try:
            return str(self._made(macro)(*args, **kwargs))
        except _ReturnError as returned:
            return returned.value
        finally:
            self.depth -= 1

    def _made(self, macro: Macro) -> Any:
        """The macro as Jinja makes it of its text."""
        made = self._macros.get(macro.unique_id)
        if made is None:
            template, names = self._template(macro.macro_sql, macro.package_name)
            context = template.new_context(names)
            for _ in template.root_render_func(context):
                pass
            # A materialization is called by another name.
            made = next(each for each in context.vars.values() if isinstance(each, JinjaMacro))
            self._macros[macro.unique_id] = made
        return made

    def _template(self, text: str, package: str) -> tuple[Template, dict[str, Any]]:
        """A text, ready to be run, and with what."""
        template = self.env.from_string(text)
        return template, {"package": package, "set_here": self.env.set_in_last}

    def _in_brief(self, macro: Macro, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Run a macro apart from what is around it, if it can run a statement at all.

        What it gives is known where none of its ways gives anything.
        """
        functions = (
            g for g in (*args, *kwargs.values()) if callable(g) and not isinstance(g, Unknown)
        )
        if macro.unique_id not in self.may_run() and not any(functions):
            self.done.skipped.add(macro.unique_id)
            return Unknown(self.env.run)
        silent = ends = True
        for _ in self.env.run.apart():
            with suppress(_PathEndsError):
                given = self._given(macro, args, kwargs)
                ends = False
                silent = silent and (
                    given is None or (isinstance(given, str) and not given.strip())
                )
        if ends:
            raise _PathEndsError
        return "" if silent else Unknown(self.env.run)

    def resolved(self, name: str, package: str) -> Any:
        """What a name means in a package; `missing` where that is not known."""
        if (
            name in ("run_query", "statement")
            and self.by_name.get(name, {}).keys() <= self.internal
        ):
            return self._run_query if name == "run_query" else self._statement
        macro = self._meant(self.by_name.get(name, {}), package)
        found = self.function(macro) if macro is not None else self.name(name, package)
        if found is missing and name in self.packages:
            return Named(name, partial(self._of_package, self.packages[name]))
        return found

    def _of_package(self, macros: Mapping[str, Macro], name: str) -> Any:
        return self.function(macros[name]) if name in macros else missing

    def _meant(self, of: Mapping[str, Macro], package: str) -> Macro | None:
        """The macro that a bare name means, whoever says it: the node's package's, the project's, or dbt's."""
        for each in (self.package, self.root):
            if each in of:
                return of[each]
        of_dbt = [macro for each, macro in of.items() if each in self.internal]
        return of_dbt[0] if len(of_dbt) == 1 else of.get(package)

    def dispatched(self, name: str) -> list[Macro]:
        """The macros that ``adapter.dispatch`` may take, one of each package that has some.

        Which package is first, the project file may say. Of an adapter that is not known any version may be taken.
        """
        prefixes = _PREFIXES.get(self.adapter)
        if prefixes is None:
            versions = (f.partition("__") for f in self.by_name)
            others = [prefix for prefix, _, of in versions if of == name]
            return [m for p in others for m in self.by_name[f"{p}__{name}"].values()]
        found: dict[str, Macro] = {}
        for prefix in (*prefixes, "default"):
            for of, macro in self.by_name.get(f"{prefix}__{name}", {}).items():
                found.setdefault("dbt" if of in self.internal else of, macro)
        return list(found.values())

    def name(self, name: str, package: str) -> Any:
        """What a name of dbt's context means; `missing` where it is not known to be harmless."""
        if name in self._values:
            return self._values[name]
        if name in _SILENT:
            return _silent
        match name:
            case "execute":
                return True
            case "this":
                return self.relation(THIS)
            case "return":
                return _return
            case "exceptions":
                return Named(name, lambda name: _silent if name == "warn" else _ends)
            case "builtins":
                known = {n: self._values[n] for n in ("ref", "source", "var", "config")}
                return Named(name, known)
            case "context":
                return Named(name, lambda name: self.resolved(name, package))
            case "adapter":
                return Named(name, self._of_adapter)
            case "api":
                relation = Named("api.Relation", {"create": self.created})
                return Named(name, {"Relation": relation, "Column": Unknown(self.env.run)})
        return missing

    def _of_adapter(self, name: str) -> Any:
        """What the adapter has by a name."""
        if name in _ASKS:
            return self.asked
        if name in _KEEPS:
            return _silent
        if name in _ACTS:
            return lambda *relations, **by_name: self.record(
                _ACTS[name].format(*relations, *by_name.values(), UNKNOWN)
            )
        match name:
            case "dispatch":
                return self._dispatch
            case "config":
                return Unknown(self.env.run)
            case "execute":
                return self._run_query
            case "type":
                return lambda: self.adapter
            case "quote" | "quote_as_configured":
                return lambda name, *_: name
            case "get_relation":
                return lambda database=None, schema=None, identifier=None: self.created(
                    identifier=identifier, sure=False
                )
        return self.env.free_name(f"adapter.{name}")

    def named(self, kind: str, *args: Any, **_: Any) -> Any:
        """The relation that ``ref`` or ``source`` is asked for."""
        texts = [arg for arg in args if isinstance(arg, str)]
        if not texts or any(map(MARK.search, texts)):
            return Unknown(self.env.run)
        return self.relation((kind, *texts))

    def created(self, *_: Any, identifier: Any = None, sure: bool = True, **__: Any) -> Any:
        """The relation that is called so, wherever it is."""
        if isinstance(identifier, _Relation):
            return self.relation(self.places[identifier.number], sure=sure)
        name = str(identifier)
        if (mark := _RELATION.fullmatch(name)) is not None:
            return self.relation(self.places[int(mark[1])], sure=sure)
        if identifier is None or isinstance(identifier, (Unknown, Undefined)) or MARK.search(name):
            return Unknown(self.env.run)
        return self.relation(("named", name), sure=sure)

    def asked(self, *args: Any, **by_name: Any) -> Any:
        """The answer to a question about relations."""
        for relation in (*args, *by_name.values()):
            if isinstance(relation, _Relation):
                self.done.reads.add(self.places[relation.number])
        return Unknown(self.env.run)

    def _run_query(self, sql: Any, *_: Any, **__: Any) -> Any:
        self.record(sql)
        return Unknown(self.env.run)

    def _statement(self, *_: Any, caller: Any = None, **__: Any) -> str:
        if caller is None:
            raise CannotTellError("a statement without its SQL")
        self.record(caller())
        return ""

    def _dispatch(self, name: Any, *_: Any, **__: Any) -> Any:
        """One of the macros that may be dispatched to."""
        known = isinstance(name, str) and not self.env.is_unknown(name)
        macros = self.dispatched(name) if known else []
        if not macros:
            raise CannotTellError("what is dispatched to")
        which = self.env.run.choose(Unknown(self.env.run), len(macros)) if len(macros) > 1 else 0
        function = self.function(macros[which])

        def call(*args: Any, **kwargs: Any) -> Any:
            try:
                return function(*args, **kwargs)
            except TypeError as error:
                if _REFUSED.match(str(error)):  # dbt fails here, too
                    raise _PathEndsError from None
                raise

        return call


class _Known(Unknown):
    """Something of which some attributes are known, or what it gives."""

    __slots__ = ("call", "parts")

    def __init__(self, run: Run, parts: Mapping[str, Any], call: Callable[..., Any] | None) -> None:
        super().__init__(run)
        self.parts, self.call = parts, call

    def part(self, name: Any) -> Any:
        return self.parts[name] if name in self.parts else super().part(name)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.call(*args, **kwargs) if self.call else super().__call__(*args, **kwargs)


def _silent(*_: Any, **__: Any) -> str:
    return ""


def _ends(*_: Any, **__: Any) -> NoReturn:
    raise _PathEndsError


def _return(value: Any = None) -> NoReturn:
    raise _ReturnError(value)
