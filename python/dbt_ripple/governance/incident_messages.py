"""Which kind of error a message of dbt is about, without a word of what it quotes."""

from __future__ import annotations

from typing import Final

KINDS: Final = (
    # dbt's own
    "enforced contract",
    "Compilation Error",
    "Dependency Error",
    "Parsing Error",
    # of engines, in their words
    "Conversion Error",
    "Constraint Error",
    "Binder Error",
    "Catalog Error",
    "Parser Error",
    "Out of Range Error",
    "Out of Memory Error",
    "UNRESOLVED_COLUMN",
    "TABLE_OR_VIEW_NOT_FOUND",
    "CAST_INVALID_INPUT",
    "DIVIDE_BY_ZERO",
    "permission denied",
    "timeout",
    # dbt's words around what an engine says
    "Runtime Error",
    "Database Error",
)
"""All that is ever told of a message: a longer phrase of this list, and nothing beside it."""


def error_kind(message: str | None) -> str | None:
    r"""The first of `KINDS` that stands in a message; None where none does.

    Example:
        >>> error_kind("Runtime Error in model m\n  Conversion Error: Could not convert 'x@y.z'")
        'Conversion Error'
        >>> error_kind("ada@x.example") is None
        True
    """
    text = (message or "").casefold()
    return next((kind for kind in KINDS if kind.casefold() in text), None)
