"""A text without the branches of its Jinja that are not taken."""

from __future__ import annotations

from collections.abc import Collection

from dbt_ripple.jinja.text import lexer


def without_branches(text: str, taken: Collection[int]) -> str:
    """A text with what stands around its branches, and with those that are taken.

    Args:
        text: that Jinja can parse.
        taken: numbers of branches: each ``if``, ``elif`` and ``else`` of one begins the next, from 1.

    Example:
        >>> without_branches("a {% if x %}b{% elif y %}c{% else %}d{% endif %} e", [2])
        'a {% if x %}{% elif y %}c{% else %}{% endif %} e'
    """
    pieces: list[str] = []
    block: list[str] = []
    open_: list[tuple[str, bool]] = []
    number = 0
    counts, inside = True, False
    for _, kind, value in lexer().tokeniter(text, None):
        if kind == "block_begin":
            block, inside = [], True
        if not inside:
            pieces += [value] * counts
            continue
        block.append(value)
        if kind != "block_end":
            continue
        inside = False
        words = "".join(block).strip("{%-+} \t\n\r").split(None, 1)
        word = words[0] if words else ""
        outside = open_[-1][1] if open_ else True
        if word in ("if", "for"):
            open_.append((word, counts))
            outside = counts
        of_if = bool(open_) and open_[-1][0] == "if"
        if word in ("if", "elif", "else") and of_if:
            number += 1
            counts = outside and number in taken
        elif word in ("endif", "endfor") and open_:
            counts = open_.pop()[1]
            outside = counts
        pieces += ["".join(block)] * (outside if word in ("if", "elif", "else", "endif") and (of_if or word == "endif") else counts)
    return "".join(pieces)
