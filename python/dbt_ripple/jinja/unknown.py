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
from jinja2.runtime import LoopContext, StrictUndefined, Undefined
from jinja2.sandbox import safe_range
from jinja2.utils import Namespace, missing
from jinja2.visitor import NodeTransformer

from dbt_ripple.flow.statement_effects import MARK, UNKNOWN
from dbt_ripple.jinja.evaluate import CannotTellError, Environment, ReadByName

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


class Unknown:
    """What is not known: it may be anything but a function that writes."""

    __slots__ = ("name", "run")

    def __init__(self, run: Run, name: Any = None) -> None:
        self.run, self.name = run, name

    def part(self, name: Any) -> Any:
        """An attribute, or an entry."""
        return self.run.part_of(self, name)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """What it gives: the same each time, where it can."""
        if self.name in _OTHER_EACH_TIME or kwargs:
            return Unknown(self.run)
        return self.run.part_of(self, ("()", *map(str, args)))

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
    """

    def __init__(self) -> None:
        self.steps = 0
        self.loops = 0
        self.brief = False
        self._script: list[list[int]] = []
        self.begin()

    def begin(self) -> None:
        """Begin to run the text once more."""
        self._at = 0
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
        self._script = []
        for _ in range(MAX_PATHS):
            self.loops = 0
            self.begin()
            yield
            if not self._next():
                return
        raise CannotTellError(TOO_MANY)

    def apart(self) -> Iterator[None]:
        """Once for each way of a part of the text: which one it is, decides nothing of the rest.

        What that part changes besides is not known any more.

        Raises:
            CannotTellError: there are too many.
        """
        outside = self._script, self._at, self._chosen, self.loops
        before = {id(n): dict(n._Namespace__attrs) for n in self.namespaces}
        self._script = []
        try:
            for _ in range(MAX_PATHS):
                self._at, self._chosen, self.loops = 0, dict(outside[2]), outside[3] + 1
                yield
                if not self._next():
                    return
            raise CannotTellError(TOO_MANY)
        finally:
            self._script, self._at, self._chosen, self.loops = outside
            self.forget(before)

    def _next(self) -> bool:
        """Whether there is another way; it is the next one then."""
        del self._script[self._at :]
        while self._script and self._script[-1][0] + 1 == self._script[-1][1]:
            self._script.pop()
        if self._script:
            self._script[-1][0] += 1
        return bool(self._script)

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
        if self.steps > MAX_STEPS:
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

    def compared(self, name: str, left: Any, right: Any) -> Any:
        """Whether something that is not known holds: where that can be told, the same answer each time."""
        if not isinstance(left, Unknown) or not isinstance(right, (str, int, type(None))):
            return Unknown(self)
        positive = {"ne": "eq", "notin": "in"}.get(name)
        if positive is not None:
            return _Not(self, self.part_of(left, (positive, right)))
        return self.part_of(left, (name, right))

    def note_growth(self, of: object) -> None:
        """Note that something is changed: where it is not known how often, if in such a loop."""
        if self.loops:
            self.grows(of)

    def grows(self, of: Any) -> Any:
        """Something of which it is not known how many entries it has."""
        self._kept.append(of)
        self.grown.add(id(of))
        return of

    def has_grown(self, of: object) -> bool:
        """Whether it is not known how many entries something has."""
        return id(of) in self.grown


class _Not(Unknown):
    """The opposite of what is not known."""

    __slots__ = ("of",)

    def __init__(self, run: Run, of: Unknown) -> None:
        super().__init__(run)
        self.of = of

    def __bool__(self) -> bool:
        return not self.of


class Rounds:
    """What a loop walks over of which it is not known how many rounds it has."""

    def __init__(self, run: Run, items: list[Any]) -> None:
        self.run, self.items = run, items
        self.at = 0
        self.of_round = Unknown(run)

    def __iter__(self) -> Iterator[Any]:
        before = {id(n): dict(n._Namespace__attrs) for n in self.run.namespaces}
        if self.run.brief:  # one round stands for all
            before = {of: {} for of in before}
        for i, item in enumerate(self.items):
            if i or self.run.brief:
                self.run.forget(before)  # more rounds may change further what these have
            self.at, self.of_round = i, Unknown(self.run)
            self.run.loops += 1
            self.run.step()
            yield item
            self.run.loops -= 1


class _InLoop(ReadByName):
    """``loop`` in such a loop."""

    def __init__(self, rounds: Rounds) -> None:
        self.rounds, self.of_round = rounds, rounds.of_round

    def part(self, name: str) -> Any:
        """What is known of the loop: where it is, and that a first round is not the last of two."""
        rounds = self.rounds
        if rounds.run.brief:
            return rounds.run.part_of(self.of_round, name)
        if name == "first":
            return rounds.at == 0
        if name == "last" and rounds.at == 0:
            return len(rounds.items) == 1
        return rounds.run.part_of(self.of_round, name)


class UnknownEnvironment(Environment):
    """Jinja as dbt sets it up, for values that may be unknown.

    Attributes:
        run: what is chosen while a text is run.
    """

    # What a text may do is told by its names (`Runner.name`), so that these are all that it can reach.
    intercepted_unops = frozenset({"-", "+"})

    def __init__(self) -> None:
        super().__init__()
        self.run = Run()
        self.finalize = _as_text
        self.filters = {name: self._careful(name, f) for name, f in self.filters.items()}
        tests: Mapping[str, Any] = self.tests
        self.tests = {name: self._careful_test(name, test) for name, test in tests.items()}
        self.globals = {"namespace": self._namespace, "range": self._range, "dict": dict}
        self.reached: set[tuple[str, int]] = set()

    def unknown_name(
        self, hint: str | None = None, obj: Any = missing, name: str | None = None, *_: Any
    ) -> Any:
        """What stands for a name that is not there: nothing, as in dbt."""
        return Undefined(hint, obj, name)

    def free_name(self, name: str) -> Any:
        """What stands for a name of dbt's context of which it is not known what it does."""
        return StrictUndefined(name=name)

    def _parse(self, source: str, name: str | None, filename: str | None) -> nodes.Template:
        tree = super()._parse(source, name, filename)
        rewritten: nodes.Template = _Rewritten(source).visit(tree)
        return rewritten

    # -- what a rewritten text calls ----------------------------------------------------------------

    def joined(self, *parts: Any) -> str:
        """``~``."""
        joined = "".join(map(_as_string, parts))
        self._of_a_size(joined)
        return joined

    def compare(self, name: str, left: Any, right: Any) -> Any:
        """Two values, compared."""
        if self.is_unknown(left) or self.is_unknown(right):
            return self.run.compared(name, left, right)
        return _COMPARE[name](left, right)

    def seen(self, value: Any) -> Any:
        """A value that is asked for its truth: a text of nothing but what is not known may be empty."""
        if isinstance(value, str) and _ONLY_MARKS.fullmatch(value):
            return Unknown(self.run)
        return value

    def rounds(self, over: Any, names: int) -> Any:
        """What a loop walks over; in each round it gives that many names a value, or one where none."""
        self.run.step()
        if isinstance(over, Unknown) or (isinstance(over, str) and MARK.search(over)):
            rounds = self.run.choose(over, 2 if self.run.brief else 3)
            over = Rounds(self.run, [Unknown(self.run) for _ in range(rounds)])
        elif self.run.has_grown(over):
            over = Rounds(self.run, list(over))
        elif isinstance(over, Sized):
            self.run.step(len(over))
        if not names:
            return over
        if isinstance(over, Rounds):
            over.items = [self.spread(each, names) for each in over.items]
            return over
        return [self.spread(each, names) for each in over]

    def spread(self, value: Any, names: int) -> Any:
        """A value that is given to several names."""
        if isinstance(value, Unknown) or self._is_cut(value):
            return [
                self.run.part_of(value, i) if isinstance(value, Unknown) else Unknown(self.run)
                for i in range(names)
            ]
        return value

    def cut(self, value: Any, *of: Any) -> Any:
        """A slice of a value."""
        if isinstance(value, Unknown) or self._is_cut(value) or any(map(self.is_unknown, of)):
            self._require_no_functions(value)
            if isinstance(value, (list, tuple)):  # some of its entries, in any number
                return self.run.grows(list(value))
            return Unknown(self.run)
        return value[slice(*of)]

    def loop(self, value: Any) -> Any:
        """What ``loop`` means."""
        if isinstance(value, LoopContext) and isinstance(value._iterable, Rounds):
            return _InLoop(value._iterable)
        return value

    def reach(self, text: str, branch: int) -> str:
        """Note that a branch of a text has been taken."""
        self.reached.add((text, branch))
        return ""

    # -- what Jinja calls ---------------------------------------------------------------------------

    def looked_up(self, obj: Any, name: Any, otherwise: Callable[[Any, Any], Any]) -> Any:
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
            self.run.note_growth(owner)
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
        if isinstance(value, str):
            return MARK.search(value) is not None
        if isinstance(value, dict):
            return self.run.has_grown(value) or any(map(self.is_unknown, (*value, *value.values())))
        if isinstance(value, _ITERATED):
            return self.run.has_grown(value) or any(map(self.is_unknown, value))
        return isinstance(value, Unknown)

    def _is_cut(self, value: Any) -> bool:
        """Whether a part of it is not known by its place or name."""
        if isinstance(value, str):
            return MARK.search(value) is not None
        if isinstance(value, dict):
            return self.run.has_grown(value) or any(map(self.is_unknown, value))
        return isinstance(value, _ITERATED) and self.run.has_grown(value)

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

    def _careful(self, name: str, filter_: Callable[..., Any]) -> Callable[..., Any]:
        """A filter that knows what is not known."""
        skipped = 1 if hasattr(filter_, "jinja_pass_arg") else 0

        @functools.wraps(filter_)
        def careful(*args: Any, **kwargs: Any) -> Any:
            given = args[skipped:]
            of = _known_name(given[0]) if given else None
            if isinstance(of, Unknown) and name != "string":
                return of if name in _KEEP_MARKS else self.run.part_of(of, ("|", name))
            grown = isinstance(of, _ITERATED) and self.run.has_grown(of)
            keeps = name in _KEEP_MARKS and not (grown and name in ("first", "last"))
            if not keeps and any(map(self.is_unknown, (*given, *kwargs.values()))):
                return Unknown(self.run)
            _require_small(*given, *kwargs.values())
            result = self._of_a_size(filter_(*args, **kwargs))
            if isinstance(result, GeneratorType):
                result = list(result)
            return self.run.grows(result) if grown and isinstance(result, list) else result

        return careful

    def _careful_test(self, name: str, test: Callable[..., Any]) -> Callable[..., Any]:
        skipped = 1 if hasattr(test, "jinja_pass_arg") else 0

        @functools.wraps(test)
        def careful(*args: Any, **kwargs: Any) -> Any:
            given = args[skipped:]
            if isinstance(_known_name(given[0]), Unknown):
                return given[0].part(("is", name, *map(str, given[1:])))
            if name not in _BY_TYPE and any(map(self.is_unknown, given)):
                return Unknown(self.run)
            return test(*args, **kwargs)

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


def _known_name(value: Any) -> Any:
    if isinstance(value, StrictUndefined):
        raise CannotTellError("a name that dbt may know")
    return value


def _as_text(value: Any) -> Any:
    return "" if value is None else value


def _as_string(value: Any) -> str:
    return str(value)


class _Rewritten(NodeTransformer):
    """A tree in which what may be unknown is asked for through the environment."""

    def __init__(self, source: str) -> None:
        self.source = source
        self.branches = 0

    def get_visitor(self, node: nodes.Node) -> Callable[..., Any] | None:
        """How a node is rewritten; None where only what is in it is."""
        visitors: dict[type[nodes.Node], Callable[..., Any]] = {
            nodes.And: self._either,
            nodes.Assign: self._assign,
            nodes.Compare: self._compare,
            nodes.Concat: self._concat,
            nodes.CondExpr: self._conditional,
            nodes.For: self._for,
            nodes.Getitem: self._getitem,
            nodes.If: self._if,
            nodes.Name: self._name,
            nodes.Not: self._not,
            nodes.Or: self._either,
        }
        return visitors.get(type(node))

    def _ask(self, name: str, *args: Any) -> nodes.Call:
        of = nodes.EnvironmentAttribute(name)
        call = nodes.Call(of, list(args), [], None, None)
        call.set_lineno(args[0].lineno if args else 1)
        return call

    def _concat(self, node: nodes.Concat) -> nodes.Node:
        self.generic_visit(node)
        return self._ask("joined", *node.nodes)

    def _compare(self, node: nodes.Compare) -> nodes.Node:
        self.generic_visit(node)
        left = node.expr
        asked: nodes.Expr | None = None
        for operand in node.ops:
            one = self._ask(
                "compare", nodes.Const(operand.op, lineno=node.lineno), left, operand.expr
            )
            asked = one if asked is None else nodes.And(asked, one, lineno=node.lineno)
            left = operand.expr
        assert asked is not None
        return asked

    def _either(self, node: nodes.And) -> nodes.Node:
        self.generic_visit(node)
        node.left = self._ask("seen", node.left)
        return node

    def _not(self, node: nodes.Not) -> nodes.Node:
        self.generic_visit(node)
        node.node = self._ask("seen", node.node)
        return node

    def _conditional(self, node: nodes.CondExpr) -> nodes.Node:
        self.generic_visit(node)
        node.test = self._ask("seen", node.test)
        return node

    def _if(self, node: nodes.If) -> nodes.Node:
        node.test = self._ask("seen", self.visit(node.test))
        node.body = self._branch(node.body)
        node.elif_ = [self.visit(each) for each in node.elif_]
        if node.else_:
            node.else_ = self._branch(node.else_)
        return node

    def _branch(self, body: list[nodes.Node]) -> list[nodes.Node]:
        self.branches += 1
        key = nodes.Const(self.source), nodes.Const(self.branches)
        for each in key:
            each.set_lineno(body[0].lineno if body else 1)
        reached = nodes.ExprStmt(self._ask("reach", *key), lineno=key[0].lineno)
        return [reached, *_flat(self.visit(each) for each in body)]

    def _for(self, node: nodes.For) -> nodes.Node:
        self.generic_visit(node)
        node.iter = self._ask("rounds", node.iter, nodes.Const(_names_in(node.target)))
        return node

    def _assign(self, node: nodes.Assign) -> nodes.Node:
        self.generic_visit(node)
        if names := _names_in(node.target):
            node.node = self._ask("spread", node.node, nodes.Const(names))
        return node

    def _getitem(self, node: nodes.Getitem) -> nodes.Node:
        self.generic_visit(node)
        if not isinstance(node.arg, nodes.Slice):
            return node
        none = nodes.Const(None)
        return self._ask(
            "cut",
            node.node,
            *(each or none for each in (node.arg.start, node.arg.stop, node.arg.step)),
        )

    def _name(self, node: nodes.Name) -> nodes.Node:
        if node.name == "loop" and node.ctx == "load":
            return self._ask("loop", node)
        return node


def _names_in(target: nodes.Node) -> int:
    """How many names a value is given to; 0 for one."""
    return len(target.items) if isinstance(target, nodes.Tuple) else 0


def _flat(visited: Iterable[Any]) -> list[nodes.Node]:
    return [
        n
        for each in visited
        if each is not None
        for n in (each if isinstance(each, list) else [each])
    ]
