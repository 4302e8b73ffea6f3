"""What a text of Jinja uses of what it did not make itself: names of dbt's context, macros, strings.

The tree is walked once a text. What cannot be parsed is taken for anything (`Facts.readable`).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator
from typing import Final, NamedTuple

import msgspec
from jinja2 import meta, nodes

from dbt_ripple.jinja.assigned import read_unset
from dbt_ripple.jinja.kept import kept
from dbt_ripple.jinja.text import OF_OTHER_RUNS, in_tags, names_in, tree_of

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
            a call, and ``('x')`` for a call of which the first argument is the string ``x``. A variable of the
            text's own has a ``%`` before its name, and another expression is empty.
        given_to: what it is an argument of, dotted (``adapter.quote``); empty for nothing, and within a list.
    """

    path: tuple[str, ...]
    given_to: str = ""

    @property
    def name(self) -> str:
        """Where it begins."""
        return self.path[0]


class Given(NamedTuple):
    """What a call of a macro is given by name or place: what may be the name of a var there.

    Attributes:
        called: the macro's name, without its package.
        arguments: by the place (``0``) or the name of the argument: ``=`` and a string that stands there, ``%`` and
            a parameter of the calling macro, or nothing for anything else; under `ANY` those that are unpacked.
    """

    called: str
    arguments: tuple[tuple[str, str], ...]

    def value(self, parameters: tuple[str, ...], name: str) -> str:
        """What a parameter of the macro is given; nothing where that is not known."""
        arguments = dict(self.arguments)
        place = str(parameters.index(name)) if name in parameters else ""
        return "" if ANY in arguments else arguments.get(name, arguments.get(place, ""))


class Facts(msgspec.Struct, frozen=True):
    """What a text uses.

    Attributes:
        readable: whether Jinja can parse it. Where not, everything else is empty.
        uses: of names that are not variables of its own, and of attributes of those that are.
        words: these names, and all attributes: whatever may be a macro, or something of dbt's.
        texts: the strings that stand in its tags, each with the call whose argument it is in, dotted, or nothing.
        variables: the vars it asks for, `ANY` where a name is put together.
        asked_by: those parameters that are the names of vars it asks for, whatever it is given.
        given: what it gives macros that it calls.
        environment: likewise, the environment variables.
        calls_any_macro: whether it calls macros by names that do not stand in it, or renders other Jinja.
        parameters: of the macro that it is, in order.
        sets: the variables that it sets, its parameters among them.
    """

    readable: bool = True
    uses: frozenset[Use] = frozenset()
    words: frozenset[str] = frozenset()
    texts: frozenset[tuple[str, str]] = frozenset()
    variables: frozenset[str] = frozenset()
    asked_by: frozenset[str] = frozenset()
    given: frozenset[Given] = frozenset()
    environment: frozenset[str] = frozenset()
    calls_any_macro: bool = False
    parameters: tuple[str, ...] = ()
    sets: frozenset[str] = frozenset()

    @property
    def said(self) -> frozenset[str]:
        """Its words, and its strings that may be the name of something."""
        return self.words | self.strings

    @property
    def strings(self) -> frozenset[str]:
        """The strings that stand in its tags."""
        return frozenset(text for text, _ in self.texts)

    def uses_of(self, *names: str) -> Iterator[Use]:
        """The uses of these names."""
        return (use for use in self.uses if use.name in names)

    def asks_whether_it_exists(self) -> bool:
        """Whether it may do something else on the first run of a model than on later ones."""
        return not self.readable or not OF_OTHER_RUNS.isdisjoint(self.said)

    def asks_for_full_refresh(self) -> bool:
        """Whether a table or a view of it may be something else under ``--full-refresh``."""
        return not self.readable or not OF_FULL_REFRESH.isdisjoint(self.said)

    def asks_which_command(self) -> bool:
        """Whether it may be something else when it is built than ``dbt compile`` shows."""
        return (
            not self.readable
            or not _OF_COMMANDS.isdisjoint(self.words)
            or any(
                not use.path[1:] or not use.path[1].isupper() or use.path[1] in _FLAGS_OF_COMMANDS
                for use in self.uses_of("flags")
            )
        )


_CALL_BY_NAME: Final = ("context", "adapter_macro", "dispatch", "render")


_BY_A_LITERAL: Final = re.compile(r"""\bdispatch\s*\(\s*(['"])\w+\1\s*[,)]""")


def calls_any_macro(text: str) -> bool:
    """Whether a text calls macros by names that do not stand in it; a text is only parsed where it may."""
    if not any(word in text for word in _CALL_BY_NAME):
        return False
    tags = _BY_A_LITERAL.sub("", in_tags(text))
    return any(word in tags for word in _CALL_BY_NAME) and facts_of(text).calls_any_macro


def asks(text: str, what: Callable[[Facts], bool]) -> bool:
    """What a question to its facts says of a text, which is only parsed where it may be true."""
    words = _MAY_ASK.get(what)
    if words is not None:
        if not any(word in text for word in words):  # which is quick, and mostly so
            return False
        tags = in_tags(text)
        if not any(word in tags for word in words):
            return False
    return what(facts_of(text))


def looks_at_it(facts: Facts) -> bool:
    """Whether a text queries the warehouse by itself."""
    return (
        not facts.readable
        or not _LOOKS_AT_IT.isdisjoint(facts.words)
        or any(
            "adapter" in use.path and _ASKS_NOTHING.isdisjoint(use.path[1:2]) for use in facts.uses
        )
    )


_LOOKS_AT_IT: Final = frozenset(
    """
    context get_columns_in_relation get_relation load_cached_relation load_relation run_query statement
    """.split()
)
_ASKS_NOTHING: Final = frozenset({"dispatch", "quote", "type"})
"""Of ``adapter``, what needs no warehouse."""


def names_this(facts: Facts) -> bool:
    """Whether a text may name the relation that is built."""
    return not facts.readable or "this" in facts.words


def names_this_or_model(facts: Facts) -> bool:
    """The same, by what dbt calls the node itself, too."""
    return names_this(facts) or "model" in facts.words


def asks_the_graph(facts: Facts) -> bool:
    """Whether a text looks at nodes by ``graph`` or ``results``, which hold all of them."""
    return not facts.readable or not _ALL_NODES.isdisjoint(facts.words)


_ALL_NODES: Final = frozenset({"graph", "results"})
_MAY_ASK: Final[dict[Callable[[Facts], bool], Collection[str]]] = {
    Facts.asks_whether_it_exists: OF_OTHER_RUNS,
    Facts.asks_for_full_refresh: OF_OTHER_RUNS,
    looks_at_it: (*_LOOKS_AT_IT, "adapter"),
    Facts.asks_which_command: ("flags", "invocation_args_dict", "selected_resources"),
    names_this: ("this",),
    names_this_or_model: ("this", "model"),
    asks_the_graph: _ALL_NODES,
}
"""By question, words of which one stands in each text of which it is true."""

OF_FULL_REFRESH: Final = OF_OTHER_RUNS - {"is_incremental"}
_OF_COMMANDS: Final = frozenset({"invocation_args_dict", "selected_resources"})
_FLAGS_OF_COMMANDS: Final = frozenset({"WHICH", "EMPTY", "SAMPLE"})

NOTHING: Final = Facts()
UNREADABLE: Final = Facts(
    readable=False,
    variables=frozenset({ANY}),
    environment=frozenset({ANY}),
    calls_any_macro=True,
)


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
    return _facts_of(text)


@kept(Facts)
def _facts_of(text: str) -> Facts:
    return facts_without(text, lambda _: False)


def facts_without(text: str, without: Callable[[nodes.Call], bool]) -> Facts:
    """What a text uses besides some calls and their arguments."""
    tree = tree_of(text)
    return UNREADABLE if tree is None else _Visitor(tree, without).facts()


class _Visitor:
    def __init__(self, tree: nodes.Template, without: Callable[[nodes.Call], bool]) -> None:
        self.without = without
        self.uses: set[Use] = set()
        self.texts: set[tuple[str, str]] = set()
        self.more: set[str] = set()
        self.set_: set[str] = set()
        self.macros: list[nodes.Macro] = []
        self.asked: set[str] = set()
        self.given: set[Given] = set()
        only = list(tree.find_all(nodes.Macro))
        self.parameters = tuple(arg.name for arg in only[0].args) if len(only) == 1 else ()
        stored = {name.name for name in tree.find_all(nodes.Name) if name.ctx == "store"}
        self.as_given = {*self.parameters} - stored
        """The parameters that are what a call gives, wherever they are read."""
        self._each(tree)
        read = {use.name for use in self.uses}
        own = self.set_.difference(OF_DBT & read) & read
        if len(own) < len(self.set_ & read):
            # It counts as dbt's own name where, on some way through the text, it is not set before.
            unset = self.set_ & read & meta.find_undeclared_variables(tree)
            own = self.set_ & read - (read_unset(tree, unset) if unset else unset)
        # A variable may have the name of a macro that is called where it is not set: a parameter is always.
        own &= OF_DBT.union(self.parameters)
        if own:
            self.uses = {
                use._replace(path=(f"%{use.name}", *use.path[1:])) if use.name in own else use
                for use in self.uses
            }

    def facts(self) -> Facts:
        words = set(self.more)
        for use in self.uses:
            words.update(step for step in use.path if step[:1].isidentifier())
            if "dispatch" in use.path[:-1] and (
                name := use.path[use.path.index("dispatch") + 1]
            ).startswith("('"):
                words.add(name[2:-2])
        if not self.uses and not self.texts and not words and not self.set_:
            return NOTHING
        return Facts(
            uses=frozenset(self.uses),
            words=frozenset(words),
            texts=frozenset(self.texts),
            variables=self._asked_for("var"),
            asked_by=frozenset(self.asked - {""}),
            given=frozenset(self.given),
            environment=self._asked_for("env_var"),
            calls_any_macro=any(map(_by_another_name, self.uses)),
            parameters=self.parameters,
            sets=frozenset(self.set_),
        )

    def _asked_for(self, function: str) -> frozenset[str]:
        """The literal names that a function is given, `ANY` where it is given others, or is itself given away."""
        names: set[str] = set()
        for use in self.uses:
            if use.name == "context" or (
                use.name == "builtins" and use.path[1:2] in ((), ("[]",), ("items",), ("values",))
            ):
                names.add(ANY)
            for at, step in enumerate(use.path):
                if step != function:
                    continue
                after = use.path[at + 1 :]
                if after[:1] == ("has_var",):
                    after = after[1:]
                literal = bool(after) and after[0].startswith("('")
                if not literal and step == "var" and at == 0 and after and "" not in self.asked:
                    continue  # each such call is in `asked`
                names.add(after[0][2:-2] if literal else ANY)
        return frozenset(names)

    def _each(self, node: nodes.Node, within: str = "", given_to: str = "") -> None:
        """Go through a node and all below it, which stands within a call, and is its argument itself."""
        if isinstance(node, nodes.Name | nodes.Getattr | nodes.Getitem | nodes.Call) or (
            isinstance(node, nodes.Filter) and node.name == "attr"
        ):
            path = self._path(node, within)
            if any(path):
                self.uses.add(Use(path, given_to))
            return
        if isinstance(node, nodes.Const):
            if isinstance(node.value, str):
                self.texts.add((node.value, within))
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
            self._each(child, within, given_to)

    def _path(self, node: nodes.Node, within: str) -> tuple[str, ...]:
        """What a name goes on to, where the node is the last step of it; empty for what is no use of a name."""
        steps: tuple[str, ...]
        match node:
            case nodes.Getattr(node=of, attr=name):
                steps = (name,)
            case nodes.Getitem(node=of, arg=nodes.Const(value=str(key))):
                steps = (key,)
            case nodes.Getitem(node=of, arg=key):
                steps = ("[]",)
                self._each(key, within)
            case nodes.Filter(
                node=nodes.Expr() as of, name="attr", args=[nodes.Const(value=str(key)), *_]
            ):
                steps = (key,)
            case nodes.Filter(node=nodes.Expr() as of, name="attr"):
                steps = ("[]",)
            case nodes.Call() if self.without(node):
                return ()
            case nodes.Call(
                node=nodes.Call(
                    node=nodes.Getattr(node=of, attr="get"), args=[nodes.Const(value=str(key)), *_]
                )
            ):  # What is looked up by `get` and then called is called by that name.
                steps = (key, _arguments(node))
                self._within(node)
                self._gives(key, node)
            case nodes.Call(node=of):
                steps = (_arguments(node),)
                self._within(node)
                self._gives(_called(of), node)
            case nodes.Name(name=name, ctx="load"):
                return (name,)
            case nodes.Name(name=name):
                self.set_.add(name)
                return ()
            case _:
                self._each(node, within)
                return ("",)
        before = self._path(of, within)
        return (*before, *steps) if before else ()

    def _within(self, call: nodes.Call) -> None:
        """Go through the arguments of a call."""
        called = _dotted(call.node)
        more = (call.dyn_args, call.dyn_kwargs)
        for argument in (*call.args, *(keyword.value for keyword in call.kwargs), *more):
            if argument is not None:
                self._each(argument, called, called)

    def _gives(self, called: str, call: nodes.Call) -> None:
        """Note what a call is given."""
        if called == "var":
            name = call.args[0] if call.args else None
            if not isinstance(name, nodes.Const):
                self.asked.add(self._value(name)[1:])
        elif called and called not in OF_DBT and called != "dispatch":
            arguments = [(str(at), self._value(given)) for at, given in enumerate(call.args)]
            arguments += [(keyword.key, self._value(keyword.value)) for keyword in call.kwargs]
            if call.dyn_args is not None or call.dyn_kwargs is not None:
                arguments.append((ANY, ""))
            self.given.add(Given(called, tuple(arguments)))

    def _value(self, node: nodes.Expr | None) -> str:
        """An argument as `Given` has it."""
        match node:
            case nodes.Const(value=str(text)):
                return f"={text}"
            case nodes.Name(name=name) if name in self.as_given:
                return f"%{name}"
        return ""


def _called(node: nodes.Expr) -> str:
    """The name of the macro that is called, where it stands there; of ``var``, whether it is asked if there is one, too."""
    match node:
        case nodes.Getattr(node=nodes.Name(name="var"), attr="has_var"):
            return "var"
        case nodes.Name(name=name) | nodes.Getattr(attr=name):
            return name
        case nodes.Call(
            node=nodes.Getattr(attr="dispatch"), args=[nodes.Const(value=str(name)), *_]
        ):
            return name
    return ""


def _arguments(call: nodes.Call) -> str:
    """What a path says of a call."""
    match call:
        case (
            nodes.Call(args=[nodes.Const(value=str(first)), *_])
            | nodes.Call(
                args=[],
                kwargs=[nodes.Keyword(value=nodes.Const(value=str(first))), *_],
                dyn_args=None,
            )
        ):
            return f"('{first}')"
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


class Argument(NamedTuple):
    """What ``config`` is given in a text.

    Attributes:
        name: of the setting; empty for all that a call is given.
        expression: the same for two texts if they give the same expression, whatever it is worth.
        by_target: whether it asks for the target or an environment variable.
        by_clock: whether the time alone decides what it is worth.
        names: what it names that is not its own: macros, variables, names of dbt's context.
        entries: how many entries it adds to a list; at least.
    """

    name: str
    expression: str
    by_target: bool
    by_clock: bool
    names: frozenset[str]
    entries: int


@kept(tuple[Argument, ...])
def configured(text: str) -> tuple[Argument, ...]:
    """What the calls of ``config`` in a text are given: each argument by name, and each call as a whole.

    Nothing of a text without a word by which one of them could depend on the target or the time. The macro that
    gives a hook may.

    Example:
        >>> text = "{{ config(alias='a', schema=target.schema, predicates=[modules.datetime.date.today()]) }}"
        >>> [(a.name, a.by_target, a.by_clock) for a in configured(text)]
        [('alias', False, False), ('schema', True, False), ('predicates', False, True), ('', True, False)]
    """
    may_depend = any(word in text for word in (*_OF_THE_TARGET, *OF_THE_RUN, "_hook"))
    tree = tree_of(text) if may_depend and "config" in text else None
    arguments: list[Argument] = []
    for call in tree.find_all(nodes.Call) if tree is not None else ():
        if isinstance(call.node, nodes.Name) and call.node.name == "config":
            given = [(keyword.key, keyword.value) for keyword in call.kwargs]
            for name, value in (*given, ("", call)):
                names = frozenset(each.name for each in names_in(value))
                by_target = not names.isdisjoint(_OF_THE_TARGET)
                by_clock = bool(names) and names <= _OF_THE_CLOCK
                entries = len(value.items) if isinstance(value, nodes.List) else 1
                arguments.append(Argument(name, repr(value), by_target, by_clock, names, entries))
    return tuple(arguments)


_OF_THE_TARGET: Final = frozenset({"target", "env_var", "this"})
_OF_THE_CLOCK: Final = frozenset({"modules", "run_started_at"})
OF_THE_RUN: Final = _OF_THE_CLOCK | {"invocation_id"}
"""What tells of the command that renders a text."""
