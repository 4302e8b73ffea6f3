"""The statements that Jinja runs itself while a text is rendered, as far as they stand in it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from jinja2 import nodes

from dbt_ripple.jinja.text import tree_of

_RUN: Final = frozenset({"add_query", "execute", "run_query"})
_BLOCKS: Final = frozenset({"set_sql_header", "statement"})
_UNKNOWN: Final = "?"
_DEEPEST: Final = 20
"""Variables that are made of variables; what goes on beyond is not known."""


def statements_run(text: str) -> Iterator[str]:
    """What a text has the warehouse run: ``run_query``, ``adapter.execute``, ``{% call statement() %}``.

    What does not stand in the text is ``?``.

    Example:
        >>> list(statements_run("{% set q = 'drop ' ~ 'table ' ~ t %}{% do run_query(q) %}"))
        ['drop table ?']
    """
    if not any(word in text for word in _RUN | _BLOCKS):
        return
    tree = tree_of(text)
    if tree is None:
        return
    texts = _Texts(tree)
    for call in tree.find_all(nodes.Call):
        if _name(call.node) in _RUN:
            given = [*call.args, *(keyword.value for keyword in call.kwargs)]
            yield texts.of(given[0]) if given else _UNKNOWN
    for block in tree.find_all(nodes.CallBlock):
        if _name(block.call.node) in _BLOCKS:
            yield texts.of_all(block.body)


def written(text: str) -> str:
    """A text as it is rendered, as far as it stands in its source; what does not is ``?``.

    ``{{ this }}`` stays as it is.

    Example:
        >>> written("{{ 'cre' ~ 'ate' }} table {{ name }} as {{ this }}")
        'create table ? as {{ this }}'
    """
    tree = tree_of(text)
    return text if tree is None else _Texts(tree).of_all(tree.body)


def _name(node: nodes.Node) -> str:
    if isinstance(node, nodes.Getattr):
        return str(node.attr)
    if isinstance(node, nodes.Getitem) and isinstance(node.arg, nodes.Const):
        return str(node.arg.value)
    return node.name if isinstance(node, nodes.Name) else ""


class _Texts:
    """The texts that expressions of a tree give."""

    def __init__(self, tree: nodes.Template) -> None:
        self._set: dict[str, list[nodes.Node]] = {}
        for one in tree.find_all((nodes.Assign, nodes.AssignBlock)):
            if isinstance(one, nodes.Assign) and isinstance(one.target, nodes.Name):
                self._set.setdefault(one.target.name, []).append(one.node)
            elif isinstance(one, nodes.AssignBlock) and isinstance(one.target, nodes.Name):
                self._set.setdefault(one.target.name, []).extend(one.body)

    def of(self, node: nodes.Node, depth: int = 0) -> str:
        if isinstance(node, nodes.TemplateData):
            return str(node.data)
        if isinstance(node, nodes.Const):
            return str(node.value)
        if isinstance(node, nodes.Name):
            values = self._set.get(node.name) if depth < _DEEPEST else None
            if values:
                return "".join(self.of(value, depth + 1) for value in values)
            return "{{ this }}" if node.name == "this" else _UNKNOWN
        known = isinstance(
            node, (nodes.Concat, nodes.Add, nodes.List, nodes.Tuple, nodes.Output, nodes.Keyword)
        ) or not isinstance(node, nodes.Expr)
        inner = self.of_all(node.iter_child_nodes(), depth)
        # What a call or a filter makes of its texts is not known; their words are.
        return inner if known else _UNKNOWN + inner

    def of_all(self, parts: Iterator[nodes.Node] | list[nodes.Node], depth: int = 0) -> str:
        return "".join(self.of(part, depth) for part in parts)
