"""Compiled SQL -> the plain query of `ir.py`.

Guarantees: one parse, one walk over the tree; no schema, no parent and no connection is needed;
every token that can change what the query returns enters a fingerprint (an argument that
`flow.lowering` does not know by name is hashed as it stands, so a construct new to it makes the
answer wider, not wrong). What it cannot follow raises `Unsupported` inside and comes back as a
reason, never as a guess: `lower` itself does not raise on bad SQL.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import Any

from sqlglot import exp
from sqlglot.errors import SqlglotError

from dbt_ripple.flow.definitions import definitions
from dbt_ripple.flow.ir import Lowered
from dbt_ripple.flow.lowering.query import Lowering
from dbt_ripple.flow.reading.dropped_tokens import holds
from dbt_ripple.flow.reading.reader import Text
from dbt_ripple.flow.reading.refusals import MAX_NESTING, Unsupported, first_line
from dbt_ripple.flow.unused_cte_bodies import empty_unused_ctes
from dbt_ripple.flow.varying_columns import varying_in
from dbt_ripple.reasons import Code
from dbt_ripple.tuning import deep_recursion, for_deep_queries


@for_deep_queries
def lower(
    sql: str,
    dialect: str,
    *,
    expressions: bool = False,
    masking: Collection[str] = (),
    edit: Callable[[exp.Expression], None] | None = None,
) -> Lowered:
    """Parse one query and lower it.

    Args:
        sql: one statement: a SELECT, or a CREATE ... AS / INSERT ... whose query counts.
        dialect: the sqlglot dialect it is written in.
        expressions: whether to write out the SQL behind each output, too.
        masking: functions that mask their arguments, besides those known to.
        edit: changes the parse tree in place before it is lowered.

    Returns:
        The lowered query, or a `Lowered` with the reason why there is none. Never raises on bad
        SQL, and never recurses deeper than `MAX_NESTING` allows.
    """
    try:
        return _lower(sql, dialect, expressions, masking, edit)
    except Unsupported as why:
        return Lowered(None, why.reason)
    except SqlglotError as error:
        return Lowered(None, Code.CANNOT_PARSE(error=first_line(error)))
    except RecursionError:
        return Lowered(None, Code.NESTED_TOO_DEEP(levels=MAX_NESTING))
    except Exception as error:
        # Over SQL that no engine takes sqlglot stumbles, or makes trees that are none.
        message = f"{type(error).__name__}: {error}"[:200]
        return Lowered(None, Code.CANNOT_PARSE(error=message))


def _lower(
    sql: str,
    dialect: str,
    expressions: bool,
    masking: Collection[str],
    edit: Callable[[exp.Expression], None] | None,
) -> Lowered:
    """As `lower`, which turns exceptions into reasons."""

    def edited(tree: exp.Expression) -> exp.Expression:
        if edit is not None:
            edit(tree)
        return tree

    text = Text(sql, dialect)
    left_out: list[str] = []
    try:
        tree = text.statement()
    except (SqlglotError, Unsupported):
        shorter = text.shorter()
        if shorter is None:
            raise
        text, left_out = shorter
        tree = text.statement()
    tree = edited(tree)
    texts = definitions(tree, dialect) if expressions else {}
    varying = sorted(varying_in(tree, text))
    lowering = Lowering(dialect, masking, text.tokens)
    try:
        lowered = lowering.statement(tree, left_out)
    except Unsupported:
        # What stands in a CTE that nothing reads may be left out, as the engine leaves it.
        tree = text.statement()
        dropped = text.dropped(tree)
        if dropped.words or not empty_unused_ctes(edited(tree), dialect):
            raise
        lowered = Lowering(dialect, masking, text.tokens).statement(
            tree, [*left_out, *dropped.constants]
        )
    else:
        if not holds(lowering.read.values(), text.tokens, text.marks):
            tree = text.statement()
            dropped = text.dropped(tree)
            if dropped.words:
                return Lowered(None, Code.WORDS_DROPPED(words=[*dropped.words[:3]]))
            if dropped.constants:
                lowering = Lowering(dialect, masking, text.tokens)
                lowered = lowering.statement(edited(tree), [*left_out, *dropped.constants])
    lowered.expressions = texts
    lowered.varying = varying
    return lowered


def lower_tree(
    tree: exp.Expression, tokens: Sequence[Any], dialect: str, masking: Collection[str] = ()
) -> Lowered:
    """Lower a parse tree, which is left as it is; what sqlglot drops of a text is not looked for.

    Args:
        tree: the tree, made of a text's or rewritten from that.
        tokens: of the text.
        dialect: it is written in.
        masking: functions that mask their arguments, besides those known to.
    """
    try:
        with deep_recursion:
            return Lowering(dialect, masking, tokens).statement(tree.copy())
    except Unsupported as why:
        return Lowered(None, why.reason)
    except Exception as error:  # of a tree that is none
        message = f"{type(error).__name__}: {error}"[:200]
        return Lowered(None, Code.CANNOT_PARSE(error=message))
