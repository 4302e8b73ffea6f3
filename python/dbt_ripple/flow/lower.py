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

import sqlglot
from sqlglot import exp
from sqlglot.errors import SqlglotError

from dbt_ripple.flow.definitions import definitions
from dbt_ripple.flow.dropped_tokens import dropped_tokens, holds
from dbt_ripple.flow.invisible_spaces import with_spaces
from dbt_ripple.flow.ir import Lowered
from dbt_ripple.flow.lowering.query import Lowering
from dbt_ripple.flow.lowering.scope import Unsupported
from dbt_ripple.flow.lowering.walk import MAX_NESTING
from dbt_ripple.flow.parse import (
    _first_line,
    _nesting,
    _parse_one,
    _parse_one_remembering,
    _reader,
    _statements,
    _tokens,
)
from dbt_ripple.flow.pipe_syntax import without_unknown_pipes
from dbt_ripple.flow.token_kinds import has_pipe, may_nest
from dbt_ripple.flow.unused_cte_bodies import empty_unused_ctes
from dbt_ripple.reasons import Code
from dbt_ripple.tuning import deep_recursion


@deep_recursion()
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
    sqlglot.parse_one = _parse_one_remembering
    try:
        tokenizer, parser = _reader(dialect)
        sql = with_spaces(sql, dialect, tokenizer.tokenize)
        tokens, marks = _tokens(tokenizer, sql, dialect)
        if has_pipe(marks):
            sql = without_unknown_pipes(sql, tokenizer.tokenize)
            tokens, marks = _tokens(tokenizer, sql, dialect)
        if may_nest(marks, MAX_NESTING) and _nesting(tokens) > MAX_NESTING:
            return Lowered(None, Code.NESTED_TOO_DEEP(levels=MAX_NESTING))
        statements = _statements(parser, tokens, sql)
        if len(statements) != 1:
            return Lowered(None, Code.NOT_ONE_QUERY(statements=len(statements)))
        if edit is not None:
            edit(statements[0])
        texts = definitions(statements[0], dialect) if expressions else {}
        lowering = Lowering(dialect, masking)
        lowering.tokens = tokens
        try:
            lowered = lowering.statement(statements[0])
        except Unsupported as why:
            tree = _statements(parser, tokens, sql)[0]  # the walk has cut the other one
            if (lost := dropped_tokens(sql, tokens, marks, tree, dialect)).words:
                return Lowered(None, why.reason)
            if edit is not None:
                edit(tree)
            if not empty_unused_ctes(tree, dialect):
                return Lowered(None, why.reason)
            lowering = Lowering(dialect, masking)
            lowering.tokens = tokens
            lowered = lowering.statement(tree, lost.constants)
            lowered.expressions = texts
            return lowered
        if not holds(lowering.read.values(), tokens, marks):
            statements = _statements(parser, tokens, sql)  # the walk has cut the tree
            lost = dropped_tokens(sql, tokens, marks, statements[0], dialect)
            if lost.words:
                return Lowered(None, Code.WORDS_DROPPED(words=[*lost.words[:3]]))
            if lost.constants:
                if edit is not None:
                    edit(statements[0])
                lowering = Lowering(dialect, masking)
                lowering.tokens = tokens
                lowered = lowering.statement(statements[0], lost.constants)
        lowered.expressions = texts
        return lowered
    except Unsupported as why:
        return Lowered(None, why.reason)
    except SqlglotError as error:
        return Lowered(None, Code.CANNOT_PARSE(error=_first_line(error)))
    except RecursionError:
        return Lowered(None, Code.NESTED_TOO_DEEP(levels=MAX_NESTING))
    except Exception as error:
        # Over SQL that no engine takes sqlglot stumbles, or makes trees that are none.
        message = f"{type(error).__name__}: {error}"[:200]
        return Lowered(None, Code.CANNOT_PARSE(error=message))
    finally:
        sqlglot.parse_one = _parse_one


@deep_recursion()
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
        lowering = Lowering(dialect, masking)
        lowering.tokens = tokens
        return lowering.statement(tree.copy())
    except Unsupported as why:
        return Lowered(None, why.reason)
    except Exception as error:  # of a tree that is none
        message = f"{type(error).__name__}: {error}"[:200]
        return Lowered(None, Code.CANNOT_PARSE(error=message))
