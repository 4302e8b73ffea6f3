"""What a text of Jinja decides by things that may be otherwise in production than where it was compiled."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from itertools import accumulate
from typing import Final

from jinja2 import nodes

from dbt_ripple.jinja.text import names_in, tree_of

_CONTEXT: Final = frozenset(
    """
    builtins dbt_version env_var flags invocation_args_dict invocation_id modules run_started_at
    selected_resources target thread_id var
    """.split()
)
"""Names of dbt's context that may be something else in production, wherever they are used."""
_ASKED: Final = frozenset(
    """
    adapter database graph is_incremental load_cached_relation load_relation load_result model ref
    run_query schema should_full_refresh source this
    """.split()
)
"""Those that every model uses, and that only tell places apart where something is decided by them."""
_PLACE: Final = frozenset({"catalog", "database", "dataset", "dbname", "project", "schema"})
"""Attributes that say where something is."""
_LATER_RUNS: Final = {"is_incremental"}

_AFTER_FROM: Final = re.compile(
    r"\b(?:from|join|into|update|table)\s+(?:[\w\"`]+\.)?[\"`]?\Z", re.I
)
_BEFORE_NAME: Final = re.compile(r"[\"`]?\.")
# No white space, comma or point: between two literals nothing of the query fits in.
_IN_LITERAL: Final = re.compile(r"'[\w/:@-]*\Z"), re.compile(r"[\w/:@-]*'")
_FILTER: Final = re.compile(r"\s*(?:where|and)\b", re.I)
_LITERAL: Final = re.compile(r"'[^'\\]*'")
_MORE: Final = re.compile(r"\b(?:union|intersect|except|minus)\b|[;'\"`\\]|--|/\*", re.I)
"""What may be more than a filter, or hide it."""


def decisions(text: str) -> Iterator[tuple[str, frozenset[str]]]:
    """What a text decides: the code that depends on it, and the names it depends on.

    Text that Jinja cannot parse decides nothing: dbt refuses it.

    Example:
        >>> [sorted(names) for _, names in decisions("{% if target.name == 'prod' %}, email{% endif %}")]
        [['target']]
        >>> list(decisions("select a from {{ target.schema }}.t"))
        []
    """
    if not any(name in text for name in _CONTEXT | _ASKED):
        return
    tree = tree_of(text)
    if tree is None:
        return
    told = _Told(tree)
    seen: set[int] = set()
    for node in tree.find_all((nodes.If, nodes.CondExpr, nodes.Getitem, nodes.Call, nodes.Filter)):
        asked = _asked(node)
        if asked is None:
            continue
        of = told.by(names_in(asked))
        if of and not (of == _LATER_RUNS and isinstance(node, nodes.If) and _only_filters(node)):
            yield repr(node), of
        seen.update(map(id, names_in(asked)))
    for output in tree.find_all(nodes.Output):
        for place, expression in enumerate(output.nodes):
            printed = _printed(output.nodes, place)
            names = [n for n in names_in(expression) if id(n) not in seen and n is not printed]
            seen.update(map(id, names_in(expression)))
            if of := _of_context(names):
                yield repr(expression), of
    # What is set by one decides wherever it is used.
    if of := _of_context(name for name in names_in(tree) if id(name) not in seen):
        yield repr(tree), of


def _of_context(names: Iterable[nodes.Name]) -> frozenset[str]:
    return frozenset(name.name for name in names) & _CONTEXT


class _Told:
    """Which names of the context the variables of a text were made of.

    Args:
        tree: of the text.
    """

    def __init__(self, tree: nodes.Template) -> None:
        own = {name.name for name in names_in(tree) if name.ctx == "param"}
        self._of = {name: frozenset({name}) for name in _CONTEXT | _ASKED - own}
        given: list[tuple[nodes.Node, list[nodes.Name]]] = []
        for node in tree.find_all(nodes.Assign):
            given.append((node.target, names_in(node.node)))
        for block in tree.find_all(nodes.AssignBlock):
            given.append((block.target, [name for one in block.body for name in names_in(one)]))
        for loop in tree.find_all(nodes.For):
            given.append((loop.target, names_in(loop.iter)))
        for _ in given:  # one may be made of another
            before = dict(self._of)
            for target, values in given:
                of = self.by(values)
                for name in names_in(target) if of else ():
                    self._of[name.name] = self._of.get(name.name, frozenset()) | of
            if self._of == before:
                break

    def by(self, names: Iterable[nodes.Name]) -> frozenset[str]:
        """The names of the context that these are, or were made of."""
        return frozenset().union(*(self._of.get(name.name, frozenset()) for name in names))


def _asked(node: nodes.Node) -> nodes.Node | None:
    """The part of a node by which it decides something."""
    if isinstance(node, (nodes.If, nodes.CondExpr)):
        return node.test
    if isinstance(node, nodes.Getitem):
        return None if isinstance(node.arg, nodes.Const) else node.arg
    # `{...}.get(this.schema)`, `this.schema.replace('a', 'b')`, `this.schema | replace('a', 'b')`
    if isinstance(node, nodes.Call) and isinstance(node.node, nodes.Getattr):
        if node.node.attr == "get" and isinstance(node.node.node, nodes.Dict):
            return nodes.List([*node.args])
        return node.node.node if _is_place(node.node.node) else None
    if isinstance(node, nodes.Filter) and node.node is not None:
        return node.node if _is_place(node.node) else None
    return None


def _is_place(node: nodes.Node) -> bool:
    return isinstance(node, nodes.Getattr) and node.attr in _PLACE


def _printed(parts: list[nodes.Expr], place: int) -> nodes.Name | None:
    """The name of which a part of an output prints a value where that decides nothing.

    That is a var, and of the target the schema or database of a relation, or anything within a literal.
    """
    part: nodes.Node = parts[place]
    attributes = []
    while isinstance(part, nodes.Getattr):
        attributes.append(part.attr)
        part = part.node
    if isinstance(part, nodes.Call) and isinstance(part.node, nodes.Name):
        return part.node if part.node.name == "var" else None
    if not isinstance(part, nodes.Name) or part.name != "target":
        return None
    before = "".join(p.data if isinstance(p, nodes.TemplateData) else "x" for p in parts[:place])
    after = parts[place + 1] if place + 1 < len(parts) else None
    following = after.data if isinstance(after, nodes.TemplateData) else ""
    opens, closes = _IN_LITERAL
    if opens.search(before) and closes.match(following):
        return part
    is_of_relation = _AFTER_FROM.search(before) and _BEFORE_NAME.match(following)
    return part if is_of_relation and attributes[:1] and attributes[0] in _PLACE else None


def _only_filters(branch: nodes.If) -> bool:
    """Whether all that a condition chooses between are filters: they say which rows, and give no value."""
    if branch.elif_:
        return False
    return all(map(_is_filter, filter(None, (branch.body, branch.else_))))


def _is_filter(body: list[nodes.Node]) -> bool:
    outputs = [one for one in body if isinstance(one, nodes.Output)]
    if len(outputs) != len(body):
        return False
    text = "".join(
        part.data if isinstance(part, nodes.TemplateData) else "x"
        for output in outputs
        for part in output.nodes
    )
    text = _LITERAL.sub("x", text)
    if not text.strip():
        return True
    if _FILTER.match(text) is None or _MORE.search(text) is not None:
        return False
    steps = accumulate({"(": 1, ")": -1}.get(letter, 0) for letter in text)
    return min(steps) >= 0
