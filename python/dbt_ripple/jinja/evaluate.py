"""Macros run as dbt runs them, by Jinja itself, in a sandbox.

Which macro a name means, what `adapter.dispatch` takes and what `return` gives are dbt's rules. What else
is in the context of a text is up to who runs it: `Runner.name` is asked for each name.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Final, NoReturn

from jinja2 import Template, nodes
from jinja2.runtime import Context
from jinja2.utils import missing

from dbt_ripple.artifacts import Macro
from dbt_ripple.jinja.text import DbtEnvironment, tree_of

_DEEP: Final = 40
_ALONE: Final = "athena bigquery clickhouse duckdb postgres snowflake spark trino"
_PREFIXES: Final[dict[str, tuple[str, ...]]] = {
    **{adapter: (adapter,) for adapter in _ALONE.split()},
    "databricks": ("databricks", "spark"),
    "materialize": ("materialize", "postgres"),
    "redshift": ("redshift", "postgres"),
}
"""By adapter, the prefixes of the macros that it dispatches to before ``default``: its own, and those of what it is built on."""


class CannotTellError(Exception):
    """What a text gives may be something else in dbt."""


class _ReturnError(Exception):
    """Carries what a macro returns."""

    def __init__(self, value: Any) -> None:
        super().__init__()
        self.value = value


class ReadByName:
    """Something of dbt's context that can only be asked for what it has by name."""

    def part(self, name: str) -> Any:
        """What it has by that name.

        Raises:
            CannotTellError: that is not known.
        """
        raise NotImplementedError

    def __str__(self) -> str:
        raise CannotTellError("the text of what is no text")

    __repr__ = __html__ = __str__

    def __eq__(self, other: object) -> bool:
        raise CannotTellError("whether two objects are equal")

    __hash__ = None  # type: ignore[assignment]


class Named(ReadByName):
    """What has these names, and nothing else that is known."""

    def __init__(self, called: str, names: Mapping[str, Any]) -> None:
        self._called, self._names = called, names

    def part(self, name: str) -> Any:
        """One of them."""
        if name not in self._names:
            raise CannotTellError(f"{self._called}.{name}")
        return self._names[name]


class _Nothing:
    """What an attribute of ``none`` is in dbt: not true, and no text."""

    def __bool__(self) -> bool:
        return False

    def __str__(self) -> str:
        raise CannotTellError("an attribute of none")

    __repr__ = __html__ = __str__


class _Context(Context):
    def resolve_or_missing(self, key: str) -> Any:
        if key in self.vars:
            return self.vars[key]
        environment = self.environment
        assert isinstance(environment, Environment)
        found = environment.runner.resolved(key, self.parent["package"])
        found = super().resolve_or_missing(key) if found is missing else found
        is_free = found is missing and key not in self.parent["set_here"]
        return environment.free_name(key) if is_free else found


class Environment(DbtEnvironment):
    """The sandbox of one `Runner`."""

    context_class = _Context
    runner: Runner

    def __init__(self) -> None:
        super().__init__()
        self.undefined = self.unknown_name  # type: ignore[assignment]

    def unknown_name(
        self, hint: str | None = None, obj: Any = missing, name: str | None = None, *_: Any
    ) -> Any:
        """What stands for a name that is not there."""
        raise CannotTellError(f"{name or hint} is not known")

    def free_name(self, name: str) -> Any:
        """What stands for a name that nothing has."""
        return missing

    def getitem(self, obj: Any, argument: Any) -> Any:
        """``obj[argument]``."""
        return self.looked_up(obj, argument, super().getitem)

    def getattr(self, obj: Any, attribute: str) -> Any:
        """``obj.attribute``."""
        return self.looked_up(obj, attribute, super().getattr)

    def looked_up(self, obj: Any, name: Any, otherwise: Callable[[Any, Any], Any]) -> Any:
        """An attribute or an entry of something."""
        if isinstance(obj, ReadByName):
            return obj.part(name)
        if obj is None or isinstance(obj, _Nothing):
            return _Nothing()
        return otherwise(obj, name)


class Runner:
    """The macros of one project, to be run.

    Args:
        macros: of the project and its packages, dbt's among them.
        root: the name of the project.
        adapter: its type.
        internal: the packages that come with dbt.
        environment: in which they run.
    """

    def __init__(
        self,
        macros: Iterable[Macro],
        root: str | None,
        adapter: str,
        internal: Iterable[str],
        environment: Environment,
    ) -> None:
        self.root, self.adapter = root or "", adapter
        self.internal = frozenset(internal)
        self.environment = environment
        environment.runner = self
        self.by_name: dict[str, dict[str, Macro]] = {}
        self.packages: dict[str, dict[str, Macro]] = {}
        for macro in macros:
            self.by_name.setdefault(macro.name, {})[macro.package_name] = macro
            package = "dbt" if macro.package_name in self.internal else macro.package_name
            self.packages.setdefault(package, {})[macro.name] = macro
        self.depth = 0
        self._macros: dict[str, Any] = {}

    def name(self, name: str, package: str) -> Any:
        """What a name means that is no macro; `missing` where that is not known."""
        return missing

    def resolved(self, name: str, package: str) -> Any:
        """What a name means in a package; `missing` where that is not known."""
        of = self.by_name.get(name)
        if of is not None and (macro := self._meant(of, package)) is not None:
            return self.function(macro)
        found = self.name(name, package)
        if found is missing and name in self.packages:
            macros = self.packages[name]
            return Named(name, _Functions(self, macros))
        return found

    def _meant(self, of: Mapping[str, Macro], package: str) -> Macro | None:
        """The macro that a bare name means: the package's own, the project's, or dbt's."""
        for each in (package, self.root):
            if each in of:
                return of[each]
        of_dbt = [macro for each, macro in of.items() if each in self.internal]
        return of_dbt[0] if len(of_dbt) == 1 else None

    def function(self, macro: Macro) -> Callable[..., Any]:
        """A macro as what Jinja calls."""

        def call(*args: Any, **kwargs: Any) -> Any:
            if self.depth > _DEEP:
                raise CannotTellError("it calls itself")
            self.depth += 1
            try:
                return str(self._made(macro)(*args, **kwargs))
            except _ReturnError as returned:
                return returned.value
            finally:
                self.depth -= 1

        return call

    def _made(self, macro: Macro) -> Any:
        """The macro as Jinja makes it of its text."""
        made = self._macros.get(macro.unique_id)
        if made is None:
            template = self.template(macro.macro_sql)
            context = template.new_context(self.names_of(macro.macro_sql, macro.package_name))
            for _ in template.root_render_func(context):
                pass
            made = self._macros[macro.unique_id] = context.vars[macro.name]
        return made

    @staticmethod
    def names_of(text: str, package: str) -> dict[str, Any]:
        """What a template of this text is run with."""
        tree = tree_of(text)
        names = tree.find_all(nodes.Name) if tree is not None else ()
        return {"package": package, "set_here": {n.name for n in names if n.ctx != "load"}}

    def template(self, text: str) -> Template:
        """A text, ready to be run."""
        return self.environment.from_string(text)

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


class _Functions(Mapping[str, Any]):
    """The macros of a package by name, each made a function when it is asked for."""

    def __init__(self, runner: Runner, macros: Mapping[str, Macro]) -> None:
        self._runner, self._macros = runner, macros

    def __getitem__(self, name: str) -> Callable[..., Any]:
        return self._runner.function(self._macros[name])

    def __iter__(self) -> Iterator[str]:
        return iter(self._macros)

    def __len__(self) -> int:
        return len(self._macros)


def return_(value: Any = None) -> NoReturn:
    """Dbt's ``return``."""
    raise _ReturnError(value)
