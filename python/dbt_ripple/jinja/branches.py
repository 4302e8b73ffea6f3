"""A text without the branches of its Jinja that are not taken."""

from __future__ import annotations

from collections.abc import Collection

from dbt_ripple.jinja.text import pieces


def without_branches(text: str, taken: Collection[int]) -> str:
    """A text with what stands around its branches, and with those that are taken.

    Args:
        text: that Jinja can parse.
        taken: numbers of branches: each ``if``, ``elif`` and ``else`` of one begins the next, from 1.

    Example:
        >>> without_branches("a {% if x %}b{% elif y %}c{% else %}d{% endif %} e", [2])
        'a {% if x %}{% elif y %}c{% else %}{% endif %} e'
    """
    left: list[str] = []
    open_: list[
        tuple[str, bool]
    ] = []  # each `if` and `for`, and whether what stands around it counts
    number = 0
    counts = True
    for piece in pieces(text) or ():
        word = piece.statement
        if word in ("if", "for"):
            open_.append((word, counts))
        outer = open_[-1][1] if open_ else counts
        if word in ("if", "elif", "else") and open_[-1][0] == "if":
            number += 1
            counts = outer and number in taken
            left += [piece.text] * outer
        elif word in ("endif", "endfor"):
            counts = open_.pop()[1]
            left += [piece.text] * counts
        else:
            left += [piece.text] * counts
    return "".join(left)
