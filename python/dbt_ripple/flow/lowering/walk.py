"""The walk over one statement: an expression is lowered by the handler of its class, or generically.

A node no handler knows is hashed argument by argument, so that nothing of it is lost.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import cache, lru_cache
from typing import Any, Final

from sqlglot import exp

from dbt_ripple.flow import alias_resolution
from dbt_ripple.flow.fingerprint import digest
from dbt_ripple.flow.functions import functions
from dbt_ripple.flow.identifiers import AS_STORED, fold, folds, keeps_case, lowered
from dbt_ripple.flow.ir import IDENTITY, TRANSFORMATION, Expr, LoweredExpr, Rel
from dbt_ripple.flow.lowering.parse_tree import verbatim
from dbt_ripple.flow.lowering.scope import Scope
from dbt_ripple.flow.reading.dialects import name_key
from dbt_ripple.flow.reading.refusals import MAX_NESTING, Unsupported
from dbt_ripple.reasons import Code

_MAX_DEPTH: Final = 2 * MAX_NESTING
_NONE: Final[dict[int, int]] = {}  # never written to: what an expression holds is not changed
Rule = Callable[[Any, Any, int], Expr]
"""How a node is lowered: a method that leaves nothing of it out, or one with `hashing_unread` around it."""


@lru_cache(maxsize=50_000)
def literal_fingerprint(is_string: bool, text: str) -> bytes:
    """The fingerprint of a literal, which is its text and whether it is a string."""
    return digest(b"string" if is_string else b"number", text.encode())


@cache
def type_fingerprint(name: exp.DType) -> bytes:
    """The fingerprint of a type without arguments, as `flow.row_constraints` knows it."""
    return digest(b"type", f"DType.{name.name}".encode(), b"None")


class _Tags(dict[type[Any], bytes]):
    """The name of each class, as it is hashed."""

    def __missing__(self, t: type[Any]) -> bytes:
        tag = self[t] = t.__name__.encode()
        return tag


class _NamesOfArgs(dict[str, bytes]):
    """The name of each argument, as it is hashed."""

    def __missing__(self, name: str) -> bytes:
        tag = self[name] = name.encode()
        return tag


TAGS: Final = _Tags()
_NAMES_OF_ARGS: Final = _NamesOfArgs()
_NODE: Final = exp.Expression
IDENTIFIER: Final = exp.Identifier
_TRUE: Final = digest(b"True")


def _repr(value: Any) -> bytes:
    return digest(repr(value).encode())


def merkle(pieces: list[Expr]) -> Expr:
    """Combine pieces into a node; a node without references is its fingerprint already."""
    for piece in pieces:
        if type(piece) is not bytes:
            return pieces
    return digest(*pieces)


def hashing_unread(method: Rule, reads: frozenset[str]) -> Rule:
    """A rule that hashes what is set of a node, besides these arguments, beside what the method makes."""

    def rule(walk: Any, node: Any, kind: int) -> Expr:
        e = method(walk, node, kind)
        if reads.issuperset(node.args):
            return e
        return walk.with_unread(e, node, reads, kind)

    return rule


class ExpressionWalk:
    """What every handler of an expression needs; `flow.lowering.expressions` adds the handlers."""

    masking_names: frozenset[str]
    listed_masks: frozenset[str]
    by_class: dict[type[Any], Rule]
    handlers: dict[type[Any], Rule]
    by_name: dict[tuple[type[Any], str | None], Rule]

    def __init__(self, dialect: str) -> None:
        self.dialect = dialect
        self.functions = functions(dialect)
        self.name_key = name_key(dialect)
        self.of_one_row = False
        self.one_row = dialect != "clickhouse"  # its arrayJoin may stand anywhere
        self.keeps_case = keeps_case(dialect)
        self.folds = folds(dialect)
        self.as_stored = dialect in AS_STORED
        self.resolution = alias_resolution.resolution(dialect)
        self.scopes: list[Scope] = []
        self.visible_ctes: list[dict[str, int]] = []
        self.cte_count = 0
        self.volatile_calls: dict[str, int] = {}
        self.evaluated: bytes | None = None
        self.tables: dict[str, None] = {}
        self.called: dict[str, None] = {}
        self.sources_named: set[str] = set()
        self.tokens: Sequence[Any] = ()
        """Of the text that is lowered."""
        self.lambdas: list[dict[str, bytes]] = []
        self.named_values: list[tuple[int, str, Any]] = []
        """How deep the SELECT is that has ``with e as name`` (ClickHouse), the name, and e."""
        self.in_value = 0
        self.outward = 0
        self.depth = 0
        self.deps: dict[int, int] = {}
        self.sub_deps: dict[int, int] = {}
        self.rows = 0
        self.read: dict[int, str] = {}
        """The names and values come across, by the identity of their nodes (see `flow.dropped_tokens`)."""

    def fold(self, node: Any) -> str:
        """The key of an identifier (or of the bare string sqlglot sometimes leaves)."""
        if type(node) is exp.Identifier:
            node.parent = None  # see `cut_parents`
            args = node.args
            name = args["this"]
            key = self.read[id(node)] = lowered[name]
            if (self.keeps_case and args.get("quoted")) or not name.isascii():
                return fold(name, bool(args.get("quoted")), self.dialect)
            return key
        return fold(node if isinstance(node, str) else node.name, False, self.dialect)

    def spelled(self, node: Any) -> bytes:
        """A name that is data: the key of a struct or of JSON, in the case the engine keeps."""
        if self.folds and isinstance(node, exp.Identifier):
            return self.fold(node).encode()
        return (node if isinstance(node, str) else str(node.name)).encode()

    def query(self, node: Any) -> Rel:
        """Lower a query; it stands in `lower`, which knows about FROM."""
        raise NotImplementedError

    def aggregate(self, node: Any, kind: int) -> Expr:
        """Lower the call of an aggregate (`flow.lowering.aggregates_and_windows`)."""
        raise NotImplementedError

    def enter(self) -> Scope:
        """Begin a scope, with collectors of its own. An exception ends the whole lowering, not the scope."""
        scope = Scope((self.deps, self.sub_deps, self.rows, self.lambdas, self.of_one_row))
        self.scopes.append(scope)
        self.lambdas = []
        self.of_one_row = False
        return scope

    def leave(self) -> None:
        """End the scope begun last."""
        outer = self.scopes.pop().outer
        self.deps, self.sub_deps, self.rows, self.lambdas, self.of_one_row = outer

    def lower_alone(self, node: Any, kind: int) -> LoweredExpr:
        """Lower one expression on its own, with what it depends on."""
        saved = (self.deps, self.sub_deps, self.rows)
        self.deps, self.sub_deps, self.rows = {}, {}, 0
        e = self.expr(node, kind)
        x = LoweredExpr(e, self.deps, self.sub_deps or _NONE, self.rows)
        self.deps, self.sub_deps, self.rows = saved
        return x

    def lower_together(self, nodes: Iterable[Any], kind: int, tag: bytes) -> LoweredExpr:
        """Lower several expressions as one."""
        saved = (self.deps, self.sub_deps, self.rows)
        self.deps, self.sub_deps, self.rows = {}, {}, 0
        pieces: list[Expr] = [tag]
        for node in nodes:
            pieces.append(
                self.expr(node, kind)
                if isinstance(node, exp.Expression)
                else digest(repr(node).encode())
            )
        x = LoweredExpr(merkle(pieces), self.deps, self.sub_deps, self.rows)
        self.deps, self.sub_deps, self.rows = saved
        return x

    def constant(self, node: Any) -> bytes:
        e = self.expr(node, TRANSFORMATION)
        if not isinstance(e, bytes):
            raise Unsupported("PIVOT over values that are not constant")
        return e

    def expr(self, node: Any, kind: int) -> Expr:
        self.depth += 1
        if self.depth > _MAX_DEPTH:
            raise Unsupported(Code.NESTED_TOO_DEEP(levels=MAX_NESTING))
        try:
            node.parent = None  # see `cut_parents`
        except AttributeError:  # sqlglot puts None where a call lacks an argument
            raise Unsupported("a call that lacks an argument") from None
        e = self.handlers.get(type(node), GENERIC)(self, node, kind)
        self.depth -= 1
        return e

    def with_unread(self, e: Expr, node: Any, reads: frozenset[str], kind: int) -> Expr:
        """What a rule made of a node, and beside it every argument that the rule does not read."""
        left = {k: v for k, v in node.args.items() if v and k not in reads}
        if not left:
            return e
        if isinstance(node, exp.Column) and self.scopes:
            # Oracle's (+) makes an outer join of the condition it stands in: no mere filter.
            self.scopes[-1].extra.append(LoweredExpr(digest(verbatim(left)), {}, {}))
        pieces: list[Expr] = [b"unread", e]
        self.arguments(left, kind, pieces)
        return merkle(pieces)

    def generic(self, node: Any, kind: int) -> Expr:
        """Any node: its class, then every argument that is set, in the order of the class."""
        if kind == IDENTITY:
            kind = TRANSFORMATION
        pieces: list[Expr] = [TAGS[type(node)]]
        self.arguments(node.args, kind, pieces)
        for piece in pieces:  # as `merkle` does, without a call
            if type(piece) is not bytes:
                return pieces
        return digest(*pieces)

    def arguments(self, args: dict[str, Any], kind: int, pieces: list[Expr]) -> None:
        """Add every argument that is set, by name, to the pieces of an expression."""
        for name, value in args.items():
            if value is None or value is False:  # the same to sqlglot, too
                continue
            if type(value) is list:
                if value:
                    pieces.append(_NAMES_OF_ARGS[name])
                for item in value:
                    if isinstance(item, _NODE):
                        pieces.append(self.expr(item, kind))
                    else:
                        pieces.append(_repr(item))
            else:
                pieces.append(_NAMES_OF_ARGS[name])
                if isinstance(value, _NODE):
                    pieces.append(self.expr(value, kind))
                else:
                    pieces.append(_TRUE if value is True else _repr(value))


GENERIC: Final[Rule] = ExpressionWalk.generic
