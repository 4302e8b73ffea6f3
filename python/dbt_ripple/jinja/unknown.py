"""Jinja run with values that are not known.

A text is run once for each way that it may take: where it asks whether an `Unknown` is true, or walks over
one, the run chooses, and is repeated for the other choices. A loop over what is not known has no round, one,
or two, of which the second stands for all that follow: what such a loop carries from round to round
(attributes of a namespace, the length of a list that grows) is not known any more when it begins.

What is not known goes into a text as a word, `UNKNOWN`. A text that holds one is compared, cut or searched by
nothing: what comes out of that is not known either.
"""

from __future__ import annotations

import functools
import math
import operator
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sized
from types import GeneratorType
from typing import Any, Final

from jinja2 import nodes
from jinja2.runtime import Context, LoopContext, StrictUndefined
from jinja2.sandbox import safe_range
from jinja2.utils import Namespace, missing
from jinja2.visitor import NodeTransformer

from dbt_ripple.flow.statement_effects import MARK, UNKNOWN
from dbt_ripple.jinja.text import DbtEnvironment, names_in

MAX_PATHS: Final = 256
MAX_STEPS: Final = 3_000
TOO_MANY: Final = "it may go too many ways"
"""Why a text is not followed that may be followed in brief (see `hook_runs.HookRunner`)."""

_ONLY_MARKS: Final = re.compile(rf"(?:\s*{MARK.pattern})+\s*", re.I)
_COMPARE: Final[Mapping[str, Callable[[Any, Any], Any]]] = {
    "eq": operator.eq,
    "ne": operator.ne,
    "lt": operator.lt,
    "lteq": operator.le,
    "gt": operator.gt,
    "gteq": operator.ge,
    "in": lambda a, b: a in b,
    "notin": lambda a, b: a not in b,
}
_KEEP_MARKS: Final = frozenset(
    """
    append d default dictsort e escape extend first format indent insert items join keys last list lower
    map safe string trim update upper values as_text as_bool as_native as_number
    """.split()
)
"""Filters and methods that leave the words in a text as they are."""

_BY_TYPE: Final = frozenset(
    "boolean callable defined mapping none number sequence string undefined".split()
)
"""Tests of what a value is, whatever is in it."""

_OTHER_EACH_TIME: Final = frozenset({"next", "pop", "popitem"})
_LARGE: Final = 1_000_000
_WIDE: Final = 10_000
_WIDTH: Final = re.compile(r"[%{][^%{}]*\d{5}")
"""A placeholder of a format that may ask for a wide text."""
_ITERATED: Final = (list, tuple, set, frozenset, dict)


class CannotTellError(Exception):
    """What a text gives may be something else in dbt."""


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
    """What has some names, and nothing else that is known.

    Args:
        called: its own name.
        names: these, or what gives one of them, `missing` where it is not known.
    """

    def __init__(self, called: str, names: Mapping[str, Any] | Callable[[str], Any]) -> None:
        self._called = called
        self._find = names if callable(names) else lambda name: names.get(name, missing)

    def part(self, name: str) -> Any:
        """What it has by that name."""
        if name == "get":
            return lambda name, *_: self.part(name)
        found = self._find(name)
        if found is missing:
            raise CannotTellError(f"what {self._called}.{name} is")
        return found


class Unknown:
    """What is not known: it may be anything but a function that writes."""

    __slots__ = ("name", "run")

    def __init__(self, run: Run, name: Any = None) -> None:
        self.run, self.name = run, name

    def part(self, name: Any) -> Any:
        """An attribute, or an entry."""
        return self.run.part_of(self, name)

    def asked(self, what: str, of: Iterable[Any]) -> Any:
        """The answer to a question: the same each time, unless something in the question is not known."""
        question = what, *map(repr, of)
        return Unknown(self.run) if UNKNOWN in " ".join(question) else self.part(question)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """What it gives: the same each time, where it can."""
        if self.name in _OTHER_EACH_TIME or kwargs:
            return Unknown(self.run)
        return self.asked("()", args)

    def __bool__(self) -> bool:
        return self.run.choose(self, 2) == 1

    def __str__(self) -> str:
        return UNKNOWN

    __repr__ = __html__ = __str__


class Run:
    """All that is chosen while a text is run, over and over until each way has been taken.

    Attributes:
        brief: whether one round of a loop stands for all of them, so that nothing is known in it of what
            namespaces hold.
        max_steps: how much may be done.
    """

    max_steps = MAX_STEPS

    def __init__(self) -> None:
        self.steps = 0
        self.brief = False
        self._script: list[list[int]] = []
        self.begin()

    def begin(self) -> None:
        """Begin to run the text once more."""
        self._at = self.loops = 0
        self._chosen: dict[int, int] = {}
        self._parts: dict[tuple[int, Any], Any] = {}
        self._kept: list[Any] = []
        self.grown: set[int] = set()
        self.namespaces: list[Namespace] = []

    def paths(self) -> Iterator[None]:
        """Once for each way, until there is no other one.

        Raises:
            CannotTellError: there are too many.
        """
        self.steps = 0
        for _ in self._ways():
            self.begin()
            yield

    def apart(self) -> Iterator[None]:
        """Once for each way of a part of the text: which one it is, decides nothing of the rest.

        What that part changes besides is not known any more.

        Raises:
            CannotTellError: there are too many.
        """
        outside = self._script, self._at, self._chosen, self.loops
        before = self.held()
        try:
            for _ in self._ways():
                self._at, self._chosen, self.loops = 0, dict(outside[2]), outside[3] + 1
                yield
        finally:
            self._script, self._at, self._chosen, self.loops = outside
            self.forget(before)

    def _ways(self) -> Iterator[None]:
        script = self._script = list[list[int]]()
        for _ in range(MAX_PATHS):
            yield
            del script[self._at :]
            while script and script[-1][0] + 1 == script[-1][1]:
                script.pop()
            if not script:
                return
            script[-1][0] += 1
        raise CannotTellError(TOO_MANY)

    def held(self) -> dict[int, dict[str, Any]]:
        """What namespaces hold, by their ids."""
        return {id(n): dict(n._Namespace__attrs) for n in self.namespaces}

    def forget(self, before: Mapping[int, Mapping[str, Any]]) -> None:
        """What has changed in namespaces is not known any more."""
        for namespace in self.namespaces:
            attributes = namespace._Namespace__attrs
            then = before.get(id(namespace), {})
            for name, value in attributes.items():
                if id(namespace) in before and value is not then.get(name, missing):
                    attributes[name] = Unknown(self)

    def choose(self, of: object, options: int) -> int:
        """One of some options; of the same object always the same one."""
        key = id(of)
        if key not in self._chosen:
            self._kept.append(of)  # so that no other object gets its id
            if self._at == len(self._script):
                self._script.append([0, options])
            self._chosen[key] = self._script[self._at][0]
            self._at += 1
        return self._chosen[key]

    def step(self, times: int = 1) -> None:
        """Count what is done."""
        self.steps += times
        if self.steps > self.max_steps:
            raise CannotTellError(TOO_MANY)

    def part_of(self, of: Unknown, name: Any) -> Any:
        """A part of what is not known: the same one each time."""
        try:
            key = id(of), name
            part = self._parts.get(key)
        except TypeError:
            return Unknown(self)
        if part is None:
            self._kept.append(of)
            part = self._parts[key] = Unknown(self, name)
        return part

    def grows(self, of: Any) -> Any:
        """Something of which it is not known how many entries it has."""
        self._kept.append(of)
        self.grown.add(id(of))
        return of

    def has_grown(self, of: object) -> bool:
        """Whether it is not known how many entries something has."""
        return id(of) in self.grown


class Rounds(ReadByName):
    """What a loop walks over of which it is not known how many rounds it has; and ``loop`` in it."""

    def __init__(self, run: Run, items: list[Any]) -> None:
        self.run, self.items = run, items

    def __iter__(self) -> Iterator[Any]:
        run = self.run
        before = run.held()
        if run.brief:  # one round stands for all
            before = {of: {} for of in before}
        for at, item in enumerate(self.items):
            if at or run.brief:
                run.forget(before)  # more rounds may change further what these have
            self.at, self.of_round = at, Unknown(run)
            run.loops += 1
            run.step()
            yield item
            run.loops -= 1

    def part(self, name: str) -> Any:
        """What is known of the loop: where it is, and that a first round is not the last of two."""
        if name == "first" and not self.run.brief:
            return self.at == 0
        if name == "last" and self.at == 0 and not self.run.brief:
            return len(self.items) == 1
        return self.of_round.part(name)


class _Context(Context):
    def resolve_or_missing(self, key: str) -> Any:
        if key in self.vars:
            return self.vars[key]
        environment = self.environment
        assert isinstance(environment, UnknownEnvironment)
        found = environment.resolve(key, self.parent["package"])
        found = super().resolve_or_missing(key) if found is missing else found
        # A variable that is not set is nothing.
        is_free = found is missing and key not in self.parent["set_here"]
        return environment.free_name(key) if is_free else found


class UnknownEnvironment(DbtEnvironment):
    """Jinja as dbt sets it up, for values that may be unknown.

    Args:
        resolve: what a name means in a package; `missing` where that is not known.

    Attributes:
        run: what is chosen while a text is run.
        free_name: what stands for a name of dbt's context that is not known: it may do anything.
        set_in_last: the names that the last text which was made ready gives a value.
    """

    context_class = _Context
    # What a text may do is told by its names (`resolve`), so that these are all that it can reach.
    intercepted_unops = frozenset({"-", "+"})

    def __init__(self, resolve: Callable[[str, str], Any]) -> None:
        super().__init__()
        self.resolve = resolve
        self.run = Run()
        self.free_name: Callable[[str], Any] = lambda name: StrictUndefined(name=name)
        self.finalize = lambda value: "" if value is None else value
        self.filters = {n: self._careful("|", n, f) for n, f in self.filters.items()}
        tests: Mapping[str, Any] = self.tests
        self.tests = {n: self._careful("is", n, f) for n, f in tests.items()}
        self.globals = {"namespace": self._namespace, "range": self._range, "dict": dict}
        self.reached: set[tuple[str, int]] = set()
        self.set_in_last: set[str] = set()

    def _parse(self, source: str, name: str | None, filename: str | None) -> nodes.Template:
        parsed = super()._parse(source, name, filename)
        self.set_in_last = {each.name for each in names_in(parsed) if each.ctx != "load"}
        tree: nodes.Template = _Rewritten(source).visit(parsed)
        return tree.set_lineno(1)  # type: ignore[return-value]

    def getitem(self, obj: Any, argument: Any) -> Any:
        """``obj[argument]``."""
        return self._looked_up(obj, argument, super().getitem)

    def getattr(self, obj: Any, attribute: str) -> Any:
        """``obj.attribute``."""
        return self._looked_up(obj, attribute, super().getattr)

    # -- what a rewritten text calls ----------------------------------------------------------------

    def joined(self, *parts: Any) -> str:
        """``~``."""
        joined: str = self._of_a_size("".join(map(str, parts)))
        return joined

    def compare(self, name: str, left: Any, right: Any) -> Any:
        """Two values, compared."""
        if not self.is_unknown(left) and not self.is_unknown(right):
            return _COMPARE[name](left, right)
        if not isinstance(left, Unknown) or not isinstance(right, (str, int, type(None))):
            return Unknown(self.run)
        opposite = {"ne": "eq", "notin": "in"}.get(name)
        return not left.asked(opposite, [right]) if opposite else left.asked(name, [right])

    def seen(self, value: Any) -> Any:
        """A value that is asked for its truth: a text of nothing but what is not known may be empty."""
        if isinstance(value, str) and _ONLY_MARKS.fullmatch(value):
            return Unknown(self.run)
        return value

    def rounds(self, over: Any, names: int) -> Any:
        """What a loop walks over; in each round it gives that many names a value, or one where none."""
        self.run.step()
        if isinstance(over, Unknown) or (isinstance(over, str) and self.is_unknown(over)):
            rounds = self.run.choose(over, 2 if self.run.brief else 3)
            over = Rounds(self.run, [Unknown(self.run) for _ in range(rounds)])
        elif self.run.has_grown(over):
            over = Rounds(self.run, list(over))
        elif isinstance(over, Sized):
            self.run.step(len(over))
        if not names:
            return over
        items = [self.spread(each, names) for each in over]
        return Rounds(self.run, items) if isinstance(over, Rounds) else items

    def spread(self, value: Any, names: int) -> Any:
        """A value that is given to several names."""
        if not self._is_cut(value):
            return value
        is_one = isinstance(value, Unknown)
        return [value.part(i) if is_one else Unknown(self.run) for i in range(names)]

    def cut(self, value: Any, *of: Any) -> Any:
        """A slice of a value."""
        if self._is_cut(value) or any(map(self.is_unknown, of)):
            self._require_no_functions(value)
            if isinstance(value, (list, tuple)):  # some of its entries, in any number
                return self.run.grows(list(value))
            return Unknown(self.run)
        return value[slice(*of)]

    def loop(self, value: Any) -> Any:
        """What ``loop`` means."""
        if isinstance(value, LoopContext) and isinstance(value._iterable, Rounds):
            return value._iterable
        return value

    def reach(self, text: str, branch: int) -> str:
        """Note that a branch of a text has been taken."""
        self.reached.add((text, branch))
        return ""

    # -- what Jinja calls ---------------------------------------------------------------------------

    def _looked_up(self, obj: Any, name: Any, otherwise: Callable[[Any, Any], Any]) -> Any:
        """An attribute or an entry of something."""
        if isinstance(obj, (Unknown, ReadByName)):
            return obj.part(name)
        if (
            isinstance(name, str)
            and isinstance(obj, (str, *_ITERATED))
            and hasattr(obj, name)
            and (not isinstance(obj, dict) or name not in obj)
        ):
            return otherwise(obj, name)  # a method, see `call`
        if self._is_cut(obj) or self.is_unknown(name):
            self._require_no_functions(obj)
            return Unknown(self.run)
        return otherwise(obj, name)

    def call(self, context: Any, obj: Any, /, *args: Any, **kwargs: Any) -> Any:
        """Call something: each call of Jinja goes through here."""
        self.run.step()
        # The sandbox wraps `format` of a text.
        owner = getattr(getattr(obj, "__wrapped__", obj), "__self__", None)
        if owner is self and obj.__name__ in _OURS:
            return obj(*args)
        if isinstance(obj, type) or isinstance(owner, (str, *_ITERATED)):
            return self._call_of_python(context, obj, owner, args, kwargs)
        return super().call(context, obj, *args, **kwargs)

    def _call_of_python(
        self, context: Any, obj: Any, owner: Any, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> Any:
        name = obj.__name__
        if name in _CHANGE:
            if name == "remove" and any(map(self.is_unknown, (owner, *args))):
                raise CannotTellError("what is removed")
            if self.run.loops:  # of which it is not known how often it is run
                self.run.grows(owner)
        elif (
            name not in _KEEP_MARKS
            and obj is not dict
            and any(map(self.is_unknown, (owner, *args, *_given(kwargs))))
        ):
            self._require_no_functions(owner)
            return Unknown(self.run)
        _require_small(owner, *args, *_given(kwargs))
        result = self._of_a_size(super().call(context, obj, *args, **kwargs))
        if self.run.has_grown(owner) and name in ("items", "keys", "values"):
            result = self.run.grows(list(result))
        return result

    def call_binop(self, context: Any, operator: str, left: Any, right: Any) -> Any:
        """``+`` and the like."""
        if operator in ("*", "**", "%") and not isinstance(left, Unknown):
            _require_small(left, right)
        return self._of_a_size(self._calculated(context, operator, left, right))

    def _calculated(self, context: Any, operator: str, left: Any, right: Any) -> Any:
        if operator == "+" and isinstance(left, str) and isinstance(right, str):
            return left + right
        if operator == "+" and isinstance(left, list) and isinstance(right, list):
            both = left + right
            grown = self.run.has_grown(left) or self.run.has_grown(right)
            return self.run.grows(both) if grown else both
        if operator == "%" and isinstance(left, str) and not MARK.search(left):
            return left % right
        if self.is_unknown(left) or self.is_unknown(right):
            return Unknown(self.run)
        return super().call_binop(context, operator, left, right)

    def call_unop(self, context: Any, operator: str, arg: Any) -> Any:
        """``-`` before a number."""
        return arg if isinstance(arg, Unknown) else super().call_unop(context, operator, arg)

    # -- what is known ------------------------------------------------------------------------------

    def is_unknown(self, value: Any) -> bool:
        """Whether anything in a value is not known."""
        if isinstance(value, _ITERATED):
            held = value.values() if isinstance(value, dict) else value
            return self._is_cut(value) or any(map(self.is_unknown, held))
        return self._is_cut(value)

    def _is_cut(self, value: Any) -> bool:
        """Whether a part of it is not known by its place or name."""
        if isinstance(value, str):
            return MARK.search(value) is not None
        if isinstance(value, _ITERATED):
            names = value if isinstance(value, dict) else ()
            return self.run.has_grown(value) or any(map(self.is_unknown, names))
        return isinstance(value, Unknown)

    @staticmethod
    def _require_no_functions(value: Any) -> None:
        """What is taken of a value that holds functions may be one that writes."""
        items = value.values() if isinstance(value, dict) else value
        if isinstance(value, _ITERATED) and any(
            callable(i) and not isinstance(i, Unknown) for i in items
        ):
            raise CannotTellError("which function is called")

    def _namespace(self, *args: Any, **kwargs: Any) -> Namespace:
        namespace = Namespace(*args, **kwargs)
        self.run.namespaces.append(namespace)
        return namespace

    def _range(self, *args: Any) -> Any:
        return Unknown(self.run) if any(map(self.is_unknown, args)) else safe_range(*args)

    @staticmethod
    def _of_a_size(value: Any) -> Any:
        """A value that is no larger than texts of hooks are: what doubles itself would fill the memory."""
        if isinstance(value, (str, list)) and len(value) > _LARGE:
            raise CannotTellError("a value may be too large")
        return value

    def _careful(self, kind: str, name: str, of_jinja: Callable[..., Any]) -> Callable[..., Any]:
        """A filter or a test that knows what is not known."""
        is_test = kind == "is"
        skipped = 1 if hasattr(of_jinja, "jinja_pass_arg") else 0

        @functools.wraps(of_jinja)
        def careful(*args: Any, **kwargs: Any) -> Any:
            of, *more = given = args[skipped:]
            if isinstance(of, StrictUndefined):
                raise CannotTellError("a name that dbt may know")
            if isinstance(of, Unknown) and (is_test or name != "string"):
                keeps = name in _KEEP_MARKS and not is_test
                return of if keeps else of.asked(f"{kind} {name}", (*more, *kwargs.values()))
            grown = isinstance(of, _ITERATED) and self.run.has_grown(of)
            keeps = name in (_BY_TYPE if is_test else _KEEP_MARKS)
            keeps = keeps and not (grown and name in ("first", "last"))
            if not keeps and any(map(self.is_unknown, (*given, *kwargs.values()))):
                return Unknown(self.run)
            _require_small(*given, *kwargs.values())
            result = self._of_a_size(of_jinja(*args, **kwargs))
            if isinstance(result, GeneratorType):
                result = list(result)
            return self.run.grows(result) if grown and isinstance(result, list) else result

        return careful


_OURS: Final = frozenset({"joined", "compare", "seen", "rounds", "spread", "cut", "loop", "reach"})
_CHANGE: Final = frozenset(
    "append extend insert update add setdefault clear pop popitem remove sort reverse".split()
)


def _require_small(*values: Any) -> None:
    """What is worked out of these may not be larger than texts of hooks are, nor take long."""
    large = any(isinstance(v, int) and abs(v) > _WIDE for v in values)
    wide = any(isinstance(v, str) and _WIDTH.search(v) for v in values)
    length = math.prod(len(v) for v in values if isinstance(v, str) and v)
    if large or wide or length > _LARGE * _WIDE:
        raise CannotTellError("a value may be too large")


def _given(by_name: Mapping[str, Any]) -> Iterator[Any]:
    """The values of arguments, without what Jinja adds to them."""
    return (value for name, value in by_name.items() if not name.startswith("_"))


class _Rewritten(NodeTransformer):
    """A tree in which what may be unknown is asked for through the environment."""

    def __init__(self, source: str) -> None:
        self.source = source
        self.branches = 0

    def visit(self, node: nodes.Node, *_: Any, **__: Any) -> Any:
        """The node that stands in its place."""
        if isinstance(node, nodes.If):
            return self._if(node)
        self.generic_visit(node)
        match node:
            case nodes.And() | nodes.Or():
                node.left = _ask("seen", node.left)
            case nodes.Not():
                node.node = _ask("seen", node.node)
            case nodes.CondExpr():
                node.test = _ask("seen", node.test)
            case nodes.Concat():
                return _ask("joined", *node.nodes)
            case nodes.Compare():
                return self._compared(node)
            case nodes.For(target=nodes.Tuple(items=items)):
                node.iter = _ask("rounds", node.iter, nodes.Const(len(items)))
            case nodes.For():
                node.iter = _ask("rounds", node.iter, nodes.Const(0))
            case nodes.Assign(target=nodes.Tuple(items=items)):
                node.node = _ask("spread", node.node, nodes.Const(len(items)))
            case nodes.Getitem(arg=nodes.Slice(start=start, stop=stop, step=step)):
                of = (each or nodes.Const(None) for each in (start, stop, step))
                return _ask("cut", node.node, *of)
            case nodes.Name(name="loop", ctx="load"):
                return _ask("loop", node)
        return node

    def _compared(self, node: nodes.Compare) -> nodes.Expr:
        left, *others = [node.expr, *(operand.expr for operand in node.ops)]
        asked: list[nodes.Expr] = []
        for operand, right in zip(node.ops, others, strict=True):
            asked.append(_ask("compare", nodes.Const(operand.op), left, right))
            left = right
        return functools.reduce(nodes.And, asked)

    def _if(self, node: nodes.If) -> nodes.If:
        node.test = _ask("seen", self.visit(node.test))
        node.body = self._branch(node.body)
        node.elif_ = list(map(self.visit, node.elif_))
        node.else_ = self._branch(node.else_) if node.else_ else []
        return node

    def _branch(self, body: list[nodes.Node]) -> list[nodes.Node]:
        self.branches += 1
        reached = _ask("reach", nodes.Const(self.source), nodes.Const(self.branches))
        return [nodes.ExprStmt(reached), *map(self.visit, body)]


def _ask(name: str, *args: Any) -> nodes.Call:
    return nodes.Call(nodes.EnvironmentAttribute(name), list(args), [], None, None)
