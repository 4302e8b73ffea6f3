"""How the semantic layer names things in text: ``Dimension('order__status')`` and its like, and filters.

Only text is read here; what a name stands for is `graph.semantic_layer`'s.
"""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Iterable
from typing import Any, Final, NamedTuple

from dbt_ripple.artifacts import Node

SEMANTIC: Final = ("semantic_model", "metric", "saved_query")
"""The resource types of the semantic layer, each after what it stands on."""

_TEMPLATE: Final = re.compile(r"\{\{-?(.*?)-?\}\}", re.S)
_OTHER_JINJA: Final = re.compile(r"\{%|\{#|\{\{|\}\}")
_PATH_AT: Final = {"Dimension": 1, "TimeDimension": 2, "Entity": 1, "Metric": 1}
"""What filters call, and where each takes the entities on the way (of a metric: its group_by)."""
_PATH_NAMED: Final = frozenset({"entity_path", "group_by"})
_NAME_OF: Final = frozenset(
    {"name", "dimension_name", "time_dimension_name", "entity_name", "metric_name"}
)


class SemanticReference(NamedTuple):
    """One element that a filter or a saved query asks for.

    Attributes:
        kind: Dimension, TimeDimension, Entity or Metric.
        name: of the element, as it is written: ``customer__region``.
        path: the entities on the way to it that are named apart; of a metric, what it is grouped by.
        options: the rest of its parameters (a grain, a part of a date), as text.
    """

    kind: str
    name: str
    path: tuple[str, ...]
    options: str


def asked(text: str) -> SemanticReference | None:
    """What one reference asks for; None where it cannot be read.

    Example:
        >>> asked("TimeDimension('order__ordered_at', 'month')")[:3]
        ('TimeDimension', 'order__ordered_at', ())
        >>> asked("order__status")[:2]
        ('Dimension', 'order__status')
        >>> asked("Dimension(var('x'))") is None
        True
    """
    try:
        node = ast.parse(text.strip(), mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None
    options: list[str] = []
    while isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):  # .grain('month')
        if node.func.attr != "descending":
            arguments = [*node.args, *(k.value for k in node.keywords)]
            options.append(" ".join([node.func.attr, *map(ast.dump, arguments)]))
        node = node.func.value
    if isinstance(node, ast.Name):
        return SemanticReference("Dimension", node.id, (), "; ".join(options))
    if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Name)):
        return None
    kind = node.func.id
    if kind not in _PATH_AT:
        return None
    name: str | None = None
    path: tuple[str, ...] | None = ()
    for at, argument in enumerate(node.args):
        if at == 0:
            name = _text(argument)
        elif at == _PATH_AT[kind]:
            path = _texts(argument)
        else:
            options.append(ast.dump(argument))
    for keyword in node.keywords:
        if keyword.arg in _NAME_OF:
            name = _text(keyword.value)
        elif keyword.arg in _PATH_NAMED:
            path = _texts(keyword.value)
        elif keyword.arg is None:
            return None
        elif keyword.arg != "descending":
            options.append(ast.dump(keyword.value))
    return (
        None
        if name is None or path is None
        else SemanticReference(kind, name, path, "; ".join(options))
    )


def _text(node: ast.expr) -> str | None:
    return node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else None


def _texts(node: ast.expr) -> tuple[str, ...] | None:
    if isinstance(node, ast.Constant) and node.value is None:
        return ()
    if not isinstance(node, ast.List | ast.Tuple):
        return None
    texts = [_text(item) for item in node.elts]
    return None if None in texts else tuple(text for text in texts if text is not None)


def placeholder(number: int) -> str:
    """The column that stands for an element in a filter's SQL."""
    return f"element_{number}"


def filter_sql(template: str) -> tuple[str, list[SemanticReference]] | None:
    """A filter as SQL over placeholders, and what each stands for; None where it cannot be read.

    Example:
        >>> sql, elements = filter_sql("{{ Dimension('order__status') }} = 'paid'")
        >>> sql, elements[0].name
        ("element_0 = 'paid'", 'order__status')
    """
    elements: list[SemanticReference] = []
    unread = False

    def as_placeholder(match: re.Match[str]) -> str:
        nonlocal unread
        element = asked(match[1])
        if element is None:
            unread = True
            return ""
        if element not in elements:
            elements.append(element)
        return placeholder(elements.index(element))

    sql = _TEMPLATE.sub(as_placeholder, template)
    return None if unread or _OTHER_JINJA.search(sql) else (sql, elements)


def filters_of(value: Any) -> list[str]:
    """The templates of a filter as dbt writes it; each must hold, in no order."""
    if not value:
        return []
    if isinstance(value, dict):
        return filters_of(value.get("where_filters") or value.get("where_sql_template"))
    if isinstance(value, list):
        return sorted(template for item in value for template in filters_of(item))
    return [str(value)]


_NAMED: Final = frozenset(
    """
    alias base_measure base_metric constant_properties conversion_measure conversion_metric
    denominator entity expr filter input_measures measure metric metric_aggregation_params metrics
    name numerator
    """.split()
)
"""What of a metric's parameters names something else, which counts by what it is."""


def settings(params: Any) -> str:
    """The rest of a metric's parameters, without those that are not given."""
    return json.dumps(_settings(params), sort_keys=True, default=str)


def _settings(params: Any) -> Any:
    if isinstance(params, dict):
        kept = {key: _settings(value) for key, value in params.items() if key not in _NAMED}
        return {key: value for key, value in kept.items() if value not in (None, False, [], {}, "")}
    return [_settings(item) for item in params] if isinstance(params, list) else params


_ON_TIME: Final = frozenset(
    {"fill_nulls_with", "join_to_timespine", "offset_to_grain", "offset_window"}
)


def laid_out_on_time(params: Any) -> bool:
    """Whether a metric's parameters ask for each moment, also where nothing happened at it."""
    if isinstance(params, dict):
        return any(
            (key in _ON_TIME and value not in (None, False)) or laid_out_on_time(value)
            for key, value in params.items()
        )
    return isinstance(params, list) and any(map(laid_out_on_time, params))


_DEFINING: Final = (
    "entities",
    "dimensions",
    "measures",
    "defaults",
    "primary_entity",
    "type",
    "type_params",
    "filter",
    "query_params",
)
_DESCRIBING: Final = frozenset({"config", "description", "label", "meta", "metadata"})


def defined(node: Node) -> str:
    """How a node of the semantic layer is defined, but for what only describes it; empty of another."""
    if node.resource_type not in SEMANTIC:
        return ""
    return json.dumps([_defining(getattr(node, name)) for name in _DEFINING], default=str)


def _defining(definition: Any) -> Any:
    if isinstance(definition, dict):
        kept = {
            key: _defining(value)
            for key, value in sorted(definition.items())
            if key not in _DESCRIBING
        }
        return {key: value for key, value in kept.items() if value not in (None, False, [], {}, "")}
    if isinstance(definition, list):  # in no order, as these lists have none
        return sorted((_defining(item) for item in definition), key=repr)
    return definition


def list_of(value: Any) -> list[Any]:
    """A list in a manifest; nothing where what stands there is none."""
    return value if isinstance(value, list) else []


def listed(names: Iterable[str]) -> str:
    """Some names in a sentence, the first three of them."""
    all_names = list(names)
    return ", ".join(all_names[:3]) + (", ..." if len(all_names) > 3 else "")
