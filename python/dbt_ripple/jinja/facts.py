"""What a text of Jinja uses of what it did not make itself: names of dbt's context, macros, strings.

The tree is walked once a text. What cannot be parsed is taken for anything (`Facts.readable`).
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import Final, NamedTuple

import msgspec
from jinja2 import meta, nodes

from dbt_ripple.jinja.text import tree_of

ANY: Final = "*"
"""Among names of vars, environment variables and macros: it may be any."""

OF_DBT: Final = frozenset(
    """
    adapter adapter_macro builtins config context database env_var flags graph invocation_args_dict invocation_id
    load_result model modules ref render results run_query run_started_at schema selected_resources source
    statement target this thread_id var
    """.split()
)
"""Names of dbt's context of which it matters whether a text has a variable of the same name."""


class Use(NamedTuple):
    """One use of a name: ``config.get('a').b`` is ``("config", "get", "('a')", "b")``.

    Attributes:
        path: the name, then attributes and literal keys as they are, ``[]`` for a key that is no literal, ``()`` for
            a call, and ``('x')`` for a call of which the first argument is the string ``x``. The name is empty
            where it is a variable of the text's own or another expression.
        given_to: what it is an argument of, dotted (``adapter.quote``); empty for nothing, and within a list.
    """

    path: tuple[str, ...]
    given_to: str = ""

    @property
    def name(self) -> str:
        """Where it begins; empty for a variable of the text's own."""
        return self.path[0]

    def calls(self, *names: str) -> bool:
        """Whether one of these is called, by this name or as an attribute of another."""
        return any(
            n in names and step[:1] == "("
            for n, step in zip(self.path, self.path[1:], strict=False)
        )


class Facts(msgspec.Struct, frozen=True):
    """What a text uses.

    Attributes:
        readable: whether Jinja can parse it. Where not, everything else is empty.
        uses: of names that are not variables of its own, and of attributes of those that are.
        words: these names, and all attributes: whatever may be a macro, or something of dbt's.
        strings: the strings that stand in its tags.
        variables: the vars it asks for, `ANY` where a name is put together.
        environment: likewise, the environment variables.
        calls_any_macro: whether it calls macros by names that do not stand in it, or renders other Jinja.
        parameters: of the macro that it is, in order.
    """

    readable: bool = True
    uses: frozenset[Use] = frozenset()
    words: frozenset[str] = frozenset()
    strings: frozenset[str] = frozenset()
    variables: frozenset[str] = frozenset()
    environment: frozenset[str] = frozenset()
    calls_any_macro: bool = False
    parameters: tuple[str, ...] = ()

    @property
    def said(self) -> frozenset[str]:
        """Its words, and its strings that may be the name of something."""
        return self.words | self.strings

    def uses_of(self, *names: str) -> Iterator[Use]:
        """The uses of these names."""
        return (use for use in self.uses if use.name in names)


NOTHING: Final = Facts()
UNREADABLE: Final = Facts(
    readable=False,
    variables=frozenset({ANY}),
    environment=frozenset({ANY}),
    calls_any_macro=True,
)


@cache
def facts_of(text: str) -> Facts:
    """What a text uses.

    Example:
        >>> facts = facts_of("{{ dbt_utils.star(ref('x')) if var('deep') }}")
        >>> sorted(facts.words), sorted(facts.variables)
        (['dbt_utils', 'ref', 'star', 'var'], ['deep'])
        >>> facts_of("select 1") is facts_of("{# none #} select 1") is NOTHING
        True
        >>> facts_of("{% if %}").readable
        False
    """
    if "{{" not in text and "{%" not in text:
        return NOTHING
    tree = tree_of(text)
    return UNREADABLE if tree is None else _Visitor(tree).facts()


class _Visitor:
    def __init__(self, tree: nodes.Template) -> None:
        self.uses: set[Use] = set()
        self.strings: set[str] = set()
        self.more: set[str] = set()
        self.set_: set[str] = set()
        self.macros: list[nodes.Macro] = []
        self._each(tree)
        one = self.macros[0].args if len(self.macros) == 1 else ()
        self.parameters = tuple(arg.name for arg in one)
        read = {use.path[0] for use in self.uses}
        own = self.set_.difference(OF_DBT & read) & read
        if len(own) < len(self.set_ & read):
            # It counts as dbt's own name where, on some way through the text, it is not set before.
            own = self.set_ & read - meta.find_undeclared_variables(tree)
        # A variable may have the name of a macro that is called where it is not set: a parameter is always.
        own &= OF_DBT.union(self.parameters)
        if own:
            self.uses = {
                use._replace(path=("", *use.path[1:])) if use.path[0] in own else use
                for use in self.uses
            }
            self.uses = {use for use in self.uses if use.path != ("",)}

    def facts(self) -> Facts:
        words = set(self.more)
        for use in self.uses:
            words.update(step for step in use.path if step[:1] not in "([" and step)
        if not self.uses and not self.strings and not words:
            return NOTHING if not self.parameters else Facts(parameters=self.parameters)
        return Facts(
            uses=frozenset(self.uses),
            words=frozenset(words),
            strings=frozenset(self.strings),
            variables=self._asked_for("var"),
            environment=self._asked_for("env_var"),
            calls_any_macro=any(map(_by_another_name, self.uses)),
            parameters=self.parameters,
        )

    def _asked_for(self, function: str) -> frozenset[str]:
        """The literal names that a function is given, `ANY` where it is given others, or is itself given away."""
        names: set[str] = set()
        for use in self.uses:
            if use.name == "context":
                names.add(ANY)
            for at, step in enumerate(use.path):
                if step != function:
                    continue
                after = use.path[at + 1 :]
                if after[:1] == ("has_var",):
                    after = after[1:]
                literal = bool(after) and after[0].startswith("('")
                names.add(after[0][2:-2] if literal else ANY)
        return frozenset(names)

    def _each(self, node: nodes.Node, given_to: str = "") -> None:
        """Go through a node and all below it."""
        if isinstance(node, nodes.Name | nodes.Getattr | nodes.Getitem | nodes.Call):
            self._use(node, given_to)
            return
        if isinstance(node, nodes.Const):
            if isinstance(node.value, str):
                self.strings.add(node.value)
            return
        if isinstance(node, nodes.TemplateData):
            return
        if isinstance(node, nodes.Filter | nodes.Test):
            self.more.add(node.name)
        elif isinstance(node, nodes.List | nodes.Tuple | nodes.Dict):
            given_to = ""
        elif isinstance(node, nodes.Macro):
            self.macros.append(node)
            self.set_.add(node.name)
        for child in node.iter_child_nodes():
            self._each(child, given_to)

    def _use(self, node: nodes.Node, given_to: str) -> None:
        """Note what a name goes on to: the node is the last step of it."""
        steps: list[str] = []
        current = node
        while True:
            if isinstance(current, nodes.Getattr):
                steps.append(current.attr)
                current = current.node
            elif isinstance(current, nodes.Getitem):
                key = current.arg
                if isinstance(key, nodes.Const) and isinstance(key.value, str):
                    steps.append(key.value)
                else:
                    steps.append("[]")
                    self._each(key)
                current = current.node
            elif isinstance(current, nodes.Call):
                steps.append(_arguments(current))
                self._within(current)
                current = current.node
            else:
                break
        if isinstance(current, nodes.Name):
            if current.ctx != "load":
                self.set_.add(current.name)
                return
            name = current.name
        else:
            name = ""
            self._each(current)
        if name or steps:
            self.uses.add(Use((name, *reversed(steps)), given_to))

    def _within(self, call: nodes.Call) -> None:
        """Go through the arguments of a call."""
        called = _dotted(call.node)
        for argument in call.args:
            self._each(argument, called)
        for keyword in call.kwargs:
            self._each(keyword.value, called)
        for more in (call.dyn_args, call.dyn_kwargs):
            if more is not None:
                self._each(more, called)


def _arguments(call: nodes.Call) -> str:
    """What a path says of a call."""
    first = call.args[0] if call.args else None
    if first is None and call.kwargs and call.dyn_args is None:
        first = call.kwargs[0].value
    if isinstance(first, nodes.Const) and isinstance(first.value, str):
        return f"('{first.value}')"
    return "()"


def _dotted(node: nodes.Node) -> str:
    """The name of what is called."""
    if isinstance(node, nodes.Name):
        return node.name
    if isinstance(node, nodes.Getattr):
        return f"{_dotted(node.node)}.{node.attr}".lstrip(".")
    return ""


def _by_another_name(use: Use) -> bool:
    """Whether a macro is called by a name that does not stand there, or Jinja is rendered that is no text of a tag."""
    if use.name in ("context", "adapter_macro") or (use.name == "render" and use.path[1:2]):
        return True
    for name, step in zip(use.path, use.path[1:], strict=False):
        if name == "dispatch" and not step.startswith("('"):
            return True
    return use.path[-1] == "dispatch"
