"""Small questions to sqlglot's parse trees, which the whole lowering asks."""

from __future__ import annotations

from typing import Any, Final

from sqlglot import exp

from dbt_ripple.flow.reading.sqlglot_versions import Stack

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
            Stack,
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
QUANTIFIERS: Final = frozenset({exp.All, exp.Any, exp.Anonymous})
_QUANTIFIER_NAMES: Final = frozenset({"all", "any", "some"})
AROUND_CALLS: Final = (exp.Filter, exp.WithinGroup, exp.IgnoreNulls, exp.RespectNulls)


def argument_names(names: str) -> frozenset[str]:
    """Names of arguments of a node of sqlglot's tree, of a text with spaces between them."""
    return frozenset(names.split())


def cut_parents(node: Any) -> None:
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


def without_parens(node: Any) -> Any:
    """What stands in parentheses."""
    while type(node) is exp.Paren:
        node = node.args["this"]
    return node


def as_list(value: Any) -> list[Any]:
    """An argument that may be one node, a list of them, or absent."""
    return value if isinstance(value, list) else [] if value is None or value is False else [value]


def verbatim(value: Any) -> bytes:
    """An argument as it stands, for what is hashed without being followed; comments do not count.

    False counts: SKIP LOCKED is `wait=False`.
    """
    if isinstance(value, exp.Expression):
        inner = b",".join(
            k.encode() + b"=" + verbatim(v)
            for k, v in value.args.items()
            if v is not None and (v or type(v) is not list)
        )
        return type(value).__name__.encode() + b"(" + inner + b")"
    if isinstance(value, dict):
        return b"{" + b",".join(k.encode() + b"=" + verbatim(v) for k, v in value.items()) + b"}"
    if isinstance(value, list):
        return b"[" + b",".join(map(verbatim, value)) + b"]"
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


def called_on(receiver: Any, call: Any) -> Any:
    """``s.f(x) filter (where y)`` as a filter around ``s.f(x)``; sqlglot has it inside out."""
    if isinstance(call, AROUND_CALLS):
        inner = called_on(receiver, call.args["this"])
        return type(call)(**{**call.args, "this": inner})
    return exp.Dot(this=receiver, expression=call)


def as_call(node: Any) -> Any:
    """What sqlglot made a column, or the part behind a point, of: the call that it is."""
    if isinstance(node, exp.Dot) and isinstance(node.expression, AROUND_CALLS):
        return called_on(node.this, node.expression)
    if isinstance(node, exp.Column) and isinstance(node.this, AROUND_CALLS):
        *names, call = node.parts
        return called_on(exp.Dot.build(names) if len(names) > 1 else names[0], call)
    return node


def ordinal_of(node: Any) -> int | None:
    """The position a bare integer stands for in GROUP BY and ORDER BY."""
    if isinstance(node, exp.Literal) and not node.args.get("is_string"):
        try:
            return int(node.this)
        except ValueError:
            return None
    return None
