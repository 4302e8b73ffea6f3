"""What a call hands over to a macro, as far as it is written as a literal."""

from __future__ import annotations

from typing import Any

from jinja2 import nodes

from dbt_ripple.jinja.text import tree_of

KnownValues = dict[str, Any]
"""Parameters of which the value is known."""


def parameters_of(macro: str) -> dict[str, nodes.Expr | None] | None:
    """The parameters of a macro's text, each with its default; None where it is no macro.

    Example:
        >>> list(parameters_of("{% macro f(a, b=1) %}{% endmacro %}"))
        ['a', 'b']
    """
    tree = tree_of(macro)
    found = tree.find(nodes.Macro) if tree is not None else None
    if found is None:
        return None
    names = [argument.name for argument in found.args]
    without = len(names) - len(found.defaults)
    return dict(zip(names, [*[None] * without, *found.defaults], strict=True))


def literals_given(macro: str, call: str) -> KnownValues:
    """The parameters of a macro whose values are literals in a call of it.

    Example:
        >>> literals_given("{% macro f(a, b=1, c=2) %}{% endmacro %}", "f(x, c='y')")
        {'b': 1, 'c': 'y'}
    """
    parameters = parameters_of(macro)
    tree = tree_of(f"{{{{ {call} }}}}")
    called = tree.find(nodes.Call) if tree is not None else None
    if parameters is None or called is None or called.dyn_args or called.dyn_kwargs:
        return {}
    given = {**parameters, **dict(zip(parameters, called.args, strict=False))}
    given |= {keyword.key: keyword.value for keyword in called.kwargs}
    return {name: v.value for name, v in given.items() if isinstance(v, nodes.Const)}
