"""What a macro without parameters gives, evaluated as dbt does, where it reads nothing but ``graph``.

A macro that puts the nodes of the project into rows is often edited without another outcome (a
metric without a measure is provided for, and no metric is without). Its text does not tell; what it
gives does. It is evaluated in Jinja's sandbox, over the nodes that dbt wrote into the manifest.

`CannotTellError` ends this wherever dbt might give something else: any other name of dbt's context (``var``,
``target``, ``ref``, ``this``, ``run_query``, ...), what a node has only while or after it is compiled, a
property that the manifest does not list, and whatever Jinja cannot evaluate.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any, Final, NoReturn

import msgspec

from dbt_ripple.artifacts import Macro, Project
from dbt_ripple.graph.macros import INTERNAL

_SECTIONS: Final = (
    "exposures",
    "groups",
    "metrics",
    "nodes",
    "saved_queries",
    "semantic_models",
    "sources",
)
_CHANGES: Final = frozenset(
    {
        *("build_path", "compiled", "compiled_code", "compiled_path", "contract", "created_at"),
        *("defer_relation", "deferred", "extra_ctes", "extra_ctes_injected", "patch_path"),
        *("root_path", "unrendered_config"),
    }
)
"""Properties that depend on when, where and how dbt read or compiled a node."""

_TYPES: Final = {"duckdb": {"STRING": "TEXT"}}
"""By adapter, the types that its ``Column.translate_type`` calls otherwise."""

_DISPATCHES: Final = {"duckdb": ("duckdb",), "postgres": ("postgres",), "snowflake": ("snowflake",)}
"""By adapter, the prefixes of macros that it dispatches to before ``default``."""


class CannotTellError(Exception):
    """What a macro gives may be something else in dbt."""


class Evaluator:
    """The macros of one project, to be evaluated over its nodes.

    Args:
        project: with its macros.
        sections: its nodes, as the manifest lists them.
        backwards: hand over the nodes in the opposite order. dbt's order is not known, so that only
            what comes out in both is independent of it.
    """

    def __init__(
        self, project: Project, sections: Mapping[str, Any], *, backwards: bool = False
    ) -> None:
        self.project = project
        self.adapter = project.metadata.adapter_type or ""
        self.graph = {name: _nodes(sections.get(name) or {}, backwards) for name in _SECTIONS}
        self.environment = _environment()
        self.by_name: dict[str, dict[str, Macro]] = {}
        for macro in project.macros.values():
            self.by_name.setdefault(macro.name, {})[macro.package_name] = macro
        self.templates: dict[str, Any] = {}
        self.contexts: dict[str, dict[str, Any]] = {}
        self.depth = 0

    def value(self, macro: Macro) -> str:
        """What the macro gives, in one text that is another one for another value.

        Raises:
            CannotTellError: it may be something else in dbt.
        """
        try:
            return json.dumps(self.function(macro)(), allow_nan=False)
        except CannotTellError:
            raise
        except Exception as error:  # whatever goes wrong in a template
            raise CannotTellError(str(error)) from error

    def function(self, macro: Macro) -> Callable[..., Any]:
        """A macro as what Jinja calls."""

        def call(*args: Any, **kwargs: Any) -> Any:
            self.depth += 1
            if self.depth > _DEEP:
                raise CannotTellError("it calls itself")
            try:
                template = self.templates.get(macro.unique_id)
                if template is None:
                    template = self.environment.from_string(macro.macro_sql)
                    self.templates[macro.unique_id] = template
                module = template.make_module(self.context(macro.package_name))
                return str(getattr(module, macro.name)(*args, **kwargs))
            except _ReturnError as returned:
                return returned.value
            finally:
                self.depth -= 1

        return call

    def context(self, package: str) -> dict[str, Any]:
        """The names that a macro of a package may use."""
        if package not in self.contexts:
            self.contexts[package] = self._context(package)
        return self.contexts[package]

    def _context(self, package: str) -> dict[str, Any]:
        context: dict[str, Any] = {
            name: self.function(self.called(name, package, of)) for name, of in self.by_name.items()
        }
        for of_package in {m.package_name for m in self.project.macros.values()}:
            if of_package not in context:
                context[of_package] = _Package(self, of_package)
        return context | {
            "adapter": _Adapter(self, package),
            "api": _Api(self.adapter),
            "execute": True,
            "graph": _NodeInGraph(self.graph),
            "return": _return,
            "tojson": _to_json,
        }

    def called(self, name: str, package: str, of: Mapping[str, Macro]) -> Macro:
        """The macro that a bare name means in a package: its own, the project's, or dbt's."""
        for each in (package, self.project.name):
            if each in of:
                return of[each]
        of_dbt = [macro for each, macro in of.items() if each in INTERNAL]
        return of_dbt[0] if len(of_dbt) == 1 else _NOWHERE

    def dispatched(self, name: str, package: str | None) -> Callable[..., Any]:
        """The macro that ``adapter.dispatch`` takes, where nothing else may be configured."""
        if self.adapter not in _DISPATCHES:
            raise CannotTellError(f"where {self.adapter} dispatches to")
        prefixes = (*_DISPATCHES[self.adapter], "default")
        macros = [m for p in prefixes for m in self.by_name.get(f"{p}__{name}", {}).values()]
        places = {"dbt" if m.package_name in INTERNAL else m.package_name for m in macros}
        if len(places) != 1:  # which of them is first may be configured
            raise CannotTellError(f"what {name} of {package} dispatches to")
        return self.function(macros[0])


_DEEP: Final = 40
_NOWHERE: Final = Macro(
    unique_id="", name="nowhere", macro_sql="{% macro nowhere() %}{{ unknown }}{% endmacro %}"
)
"""Stands for a macro of which it is not known which one is meant."""


class _ReturnError(Exception):
    """Carries what a macro returns."""

    def __init__(self, value: Any) -> None:
        super().__init__()
        self.value = value


def _return(value: Any = None) -> NoReturn:
    raise _ReturnError(value)


def _to_json(value: Any, default: Any = None, sort_keys: bool = False) -> Any:
    if default is not None:
        raise CannotTellError("tojson")
    return json.dumps(value, sort_keys=sort_keys)


class _ReadByName:
    """Something of dbt's context that can only be asked for what it has by name."""

    def get(self, name: str, *_: Any) -> Any:
        raise NotImplementedError

    def __str__(self) -> str:
        raise CannotTellError("the text of what is no text")

    __repr__ = __html__ = __str__

    def __eq__(self, other: object) -> bool:
        raise CannotTellError("whether two nodes are equal")

    __hash__ = None  # type: ignore[assignment]


class _NodeInGraph(_ReadByName):
    """A node (or ``graph``), of which only properties that the manifest lists can be read."""

    def __init__(self, properties: Mapping[str, Any]) -> None:
        self._properties = properties

    def get(self, name: str, *_: Any) -> Any:
        if name in _CHANGES or name not in self._properties:
            raise CannotTellError(f"the property {name} of a node")
        return self._properties[name]


class _Nothing:
    """What an attribute of ``none`` is in dbt: not true, and no text."""

    def __bool__(self) -> bool:
        return False

    def __str__(self) -> str:
        raise CannotTellError("an attribute of none")

    __repr__ = __html__ = __str__


class _Package(_ReadByName):
    def __init__(self, evaluator: Evaluator, package: str) -> None:
        self._evaluator, self._package = evaluator, package

    def get(self, name: str, *_: Any) -> Any:
        of = self._evaluator.by_name.get(name, {})
        packages = INTERNAL if self._package == "dbt" else {self._package}
        macros = [macro for package, macro in of.items() if package in packages]
        if len(macros) != 1:
            raise CannotTellError(f"{self._package}.{name}")
        return self._evaluator.function(macros[0])


class _Adapter(_ReadByName):
    def __init__(self, evaluator: Evaluator, package: str) -> None:
        self._evaluator, self._package = evaluator, package

    def get(self, name: str, *_: Any) -> Any:
        if name != "dispatch":
            raise CannotTellError(f"adapter.{name}")
        return self._dispatch

    def _dispatch(self, macro_name: str, macro_namespace: str | None = None) -> Any:
        return self._evaluator.dispatched(macro_name, macro_namespace or self._package)


class _Api(_ReadByName):
    """``api.Column.translate_type``."""

    def __init__(self, adapter: str) -> None:
        self._names = _TYPES.get(adapter)

    def get(self, name: str, *_: Any) -> Any:
        if self._names is None or name not in ("Column", "translate_type"):
            raise CannotTellError(f"api.{name}")
        return self if name == "Column" else self._translate

    def _translate(self, dtype: str) -> str:
        assert self._names is not None
        return self._names.get(dtype.upper(), dtype)


def _nodes(section: Mapping[str, Any], backwards: bool) -> dict[str, _NodeInGraph]:
    in_order = sorted(section, reverse=backwards)
    return {unique_id: _NodeInGraph(section[unique_id]) for unique_id in in_order}


def _environment() -> Any:
    """Jinja as dbt sets it up, in a sandbox."""
    from jinja2.sandbox import SandboxedEnvironment

    class Environment(SandboxedEnvironment):
        def getitem(self, obj: Any, argument: Any) -> Any:
            return self._looked_up(obj, argument, super().getitem)

        def getattr(self, obj: Any, attribute: str) -> Any:
            if attribute == "get" and isinstance(obj, _NodeInGraph):
                return obj.get
            return self._looked_up(obj, attribute, super().getattr)

        @staticmethod
        def _looked_up(obj: Any, name: Any, otherwise: Callable[[Any, Any], Any]) -> Any:
            if isinstance(obj, _ReadByName):
                return obj.get(name)
            if obj is None or isinstance(obj, _Nothing):
                return _Nothing()
            return otherwise(obj, name)

    def undefined(
        hint: str | None = None, obj: Any = None, name: str | None = None, *_: Any
    ) -> Any:
        raise CannotTellError(f"{name or hint} is not known")

    environment = Environment(extensions=["jinja2.ext.do"])
    environment.undefined = undefined  # type: ignore[assignment]
    return environment


def sections_of(project: Project) -> dict[str, Any] | None:
    """The nodes of a project as dbt wrote them; None where its manifest is not at hand any more."""
    from pathlib import Path

    file = Path(project.target_path) / "manifest.json"
    try:
        manifest = msgspec.json.decode(file.read_bytes(), type=dict[str, msgspec.Raw])
        metadata = msgspec.json.decode(manifest["metadata"])
        if metadata.get("invocation_id") != project.metadata.invocation_id:
            return None
        return {name: msgspec.json.decode(manifest[name]) for name in _SECTIONS if name in manifest}
    except (OSError, KeyError, msgspec.DecodeError):
        return None
