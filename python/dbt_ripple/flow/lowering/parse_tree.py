"""Small questions to sqlglot's parse trees, which the whole lowering asks."""

from __future__ import annotations

from functools import cache
from typing import Any, Final

from sqlglot import exp
from sqlglot.dialects.dialect import Dialect

GENERATOR_TYPES: Final = tuple(
    t
    for t in vars(exp).values()
    if isinstance(t, type)
    and issubclass(
        t,
        (
            exp.Explode,
            exp.Posexplode,
            exp.Inline,
            exp.Stack,
            exp.Unnest,
            exp.ExplodingGenerateSeries,
        ),
    )
)
VOLATILE_TYPES: Final = tuple(
    t
    for n in "Rand Randn Randstr Seq1 Seq2 Seq4 Seq8 Shuffle Uniform Uuid".split()
    if (t := getattr(exp, n, None)) is not None
)
IN_ANY_ORDER: Final = "\x00in any order "
"""Begins the name of what is no function: an operator whose operands may change places, which
`flow.rewrites` makes of one. No text is read as that."""
_QUANTIFIERS: Final = frozenset({exp.All, exp.Any, exp.Anonymous})
_QUANTIFIER_NAMES: Final = frozenset({"all", "any", "some"})


def _args(names: str) -> frozenset[str]:
    return frozenset(names.split())


def let_go(node: Any) -> None:
    """Forget the way up from the children of a node: they die with it.

    A parse tree whose nodes know their parents is one big cycle, which only the garbage collector
    can free, and that is a tenth of the time an analysis takes. The walk only looks down, so it
    cuts the way back as it goes (``parent = None``): here, and where it reads a single node. What
    it leaves, the collector finds.
    """
    for value in node.args.values():
        if type(value) is list:
            try:
                for child in value:
                    child.parent = None
            except AttributeError:  # a list of texts, which has no more nodes in it
                continue
        elif isinstance(value, exp.Expression):
            value.parent = None


def unwrapped(node: Any) -> Any:
    """What stands in parentheses."""
    while type(node) is exp.Paren:
        node = node.args["this"]
    return node


def listed(value: Any) -> list[Any]:
    """An argument that may be one node, a list of them, or absent."""
    return value if isinstance(value, list) else [] if value is None or value is False else [value]


def written(value: Any) -> bytes:
    """An argument as it stands, for what is hashed without being followed; comments do not count.

    False counts: SKIP LOCKED is `wait=False`.
    """
    if isinstance(value, exp.Expression):
        inner = b",".join(
            k.encode() + b"=" + written(v)
            for k, v in value.args.items()
            if v is not None and (v or type(v) is not list)
        )
        return type(value).__name__.encode() + b"(" + inner + b")"
    if isinstance(value, dict):
        return b"{" + b",".join(k.encode() + b"=" + written(v) for k, v in value.items()) + b"}"
    if isinstance(value, list):
        return b"[" + b",".join(map(written, value)) + b"]"
    return repr(value).encode()


def is_quantified(comparison: Any) -> bool:
    """Whether a value is compared with any or all of several: `a = all (select ...)`, `a = some(list)`.

    It does not say of the value what `a = b` says. sqlglot takes the words for functions where a
    list follows them.
    """
    other = comparison.args.get("expression")
    return isinstance(other, (exp.Any, exp.All)) or (
        isinstance(other, exp.Anonymous) and str(other.this).lower() in _QUANTIFIER_NAMES
    )


def function_name(node: Any) -> str:
    """The folded name of a function call."""
    if isinstance(node, exp.Anonymous):
        return str(node.this).lower()
    return str(node.key).lstrip("_")


@cache
def name_key(dialect: str) -> str:
    """Where sqlglot keeps the name a call was written with."""
    return Dialect.get_or_raise(dialect).ORIGINAL_NAME_META_KEY or "name"
