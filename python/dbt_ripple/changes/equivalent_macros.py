"""Edited macros that return the same as before: head gets base's text of them.

Only macros of the user's without parameters, which are evaluated on both sides (`Evaluator`) over what each side's
manifest lists. What such a macro gives is the same wherever it is called from.

A macro that puts the nodes of the project into rows is often edited without another outcome (a
metric without a measure is provided for, and no metric is without). Its text does not tell; what it
gives does. It is evaluated as dbt does, where it reads nothing but ``graph``, in Jinja's sandbox, over the nodes that
dbt wrote into the manifest.

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
from dbt_ripple.jinja.facts import facts_of
from dbt_ripple.jinja.hook_runs import HookRunner
from dbt_ripple.jinja.unknown import CannotTellError, Named


def with_same_macros(base: Project, head: Project) -> tuple[Project, list[str]]:
    """Head with base's text of the edited macros that give the same on both sides.

    How head has them written is kept in its ``edited_macros``.

    Returns:
        Head, and the names of those macros.
    """
    if base.metadata.dbt_version != head.metadata.dbt_version:
        return head, []
    edited = [
        (base.macros[unique_id], macro)
        for unique_id, macro in head.macros.items()
        if unique_id in base.macros
        and macro.macro_sql != base.macros[unique_id].macro_sql
        and all(map(_can_be_evaluated, (macro, base.macros[unique_id])))
    ]
    if not edited:
        return head, []
    sides = sections_of(base), sections_of(head)
    if sides[0] is None or sides[1] is None:
        return head, []
    in_both_orders = [
        [Evaluator(*side, backwards=backwards) for side in ((base, sides[0]), (head, sides[1]))]
        for backwards in (False, True)
    ]
    same = []
    for then, macro in edited:
        try:
            if all(before.value(then) == now.value(macro) for before, now in in_both_orders):
                same.append((then, macro))
        except CannotTellError:
            continue
    if same:
        head = head.having(
            edited_macros={macro.unique_id: macro for _, macro in same},
            macros=head.macros | {macro.unique_id: then for then, macro in same},
        )
    return head, [macro.name for _, macro in same]


def _can_be_evaluated(macro: Macro) -> bool:
    """Whether it is worth a try: a macro of the user's without parameters that reads ``graph``."""
    if macro.package_name in INTERNAL or "graph" not in macro.macro_sql:
        return False
    facts = facts_of(macro.macro_sql)
    return facts.readable and not facts.parameters


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
