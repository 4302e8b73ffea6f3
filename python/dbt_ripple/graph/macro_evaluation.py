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
from collections.abc import Mapping
from typing import Any, Final

import msgspec
from jinja2 import Undefined
from jinja2.utils import missing

from dbt_ripple.artifacts import Macro, Project
from dbt_ripple.graph.macros import INTERNAL
from dbt_ripple.jinja.hook_runs import HookRunner
from dbt_ripple.jinja.unknown import CannotTellError, Named

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

_MAX_STEPS: Final = 10_000_000


class _NoText(Undefined):
    """What is not there: not true, and no text."""

    def __str__(self) -> str:
        raise CannotTellError("the text of what is not there")

    __html__ = __str__


class Evaluator(HookRunner):
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
        adapter = project.metadata.adapter_type or ""
        super().__init__(project.macros.values(), project.name, adapter, INTERNAL)
        self.env.undefined = _NoText
        self.env.run.max_steps = _MAX_STEPS
        graph = {name: _nodes(sections.get(name) or {}, backwards) for name in _SECTIONS}
        column = Named("api.Column", {"translate_type": self._translate})
        self._names = {
            "adapter": Named("adapter", {"dispatch": self._dispatch}),
            "api": Named("api", {"Column": column}),
            "graph": _node_in_graph(graph),
            "tojson": _to_json,
        }

    def value(self, macro: Macro) -> str:
        """What the macro gives, in one text that is another one for another value.

        Raises:
            CannotTellError: it may be something else in dbt.
        """
        values = set()
        try:
            for _ in self.env.run.paths():
                values.add(json.dumps(self.function(macro)(), allow_nan=False))
        except Exception as error:  # whatever goes wrong in a template
            raise CannotTellError(str(error)) from error
        (value, *others) = values
        if others or self.done.statements or self.env.is_unknown(value):
            raise CannotTellError("a value that is not known")
        return value

    def name(self, name: str, package: str) -> Any:
        """What of dbt's context is known here."""
        return super().name(name, package) if name in _SAME else self._names.get(name, missing)

    def _translate(self, dtype: str) -> str:
        if self.adapter not in _TYPES:
            raise CannotTellError(f"the types of {self.adapter}")
        return _TYPES[self.adapter].get(dtype.upper(), dtype)


_SAME: Final = frozenset({"execute", "return"})


def _to_json(value: Any, default: Any = None, sort_keys: bool = False) -> Any:
    if default is not None:
        raise CannotTellError("tojson")
    return json.dumps(value, sort_keys=sort_keys)


def _node_in_graph(properties: Mapping[str, Any]) -> Named:
    """A node (or ``graph``), of which only properties that the manifest lists can be read."""
    return Named("a node", {n: v for n, v in properties.items() if n not in _CHANGES})


def _nodes(section: Mapping[str, Any], backwards: bool) -> dict[str, Named]:
    in_order = sorted(section, reverse=backwards)
    return {unique_id: _node_in_graph(section[unique_id]) for unique_id in in_order}


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
