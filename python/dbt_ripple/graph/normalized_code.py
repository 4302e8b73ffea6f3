"""The code of nodes in a form for comparison, by the rules of each language."""

from __future__ import annotations

import ast
import re
from typing import Final

from dbt_ripple.artifacts import Node
from dbt_ripple.jinja.text import normalised

_QUOTED: Final = re.compile(r"""(?P<kept>'[^']*'|"[^"]*"|`[^`]*`)|(?P<plain>[^'"`]+|['"`])""")


def code_of(node: Node) -> str:
    """The code of a node as written, without what means nothing in its language."""
    return same_program(node.raw_code) if node.is_python else normalised(node.raw_code)


def same_program(code: str) -> str:
    """A text that is equal for two pieces of Python that are the same program.

    Comments and layout are gone from it; indentation, operators and strings are not. A text that is no
    Python is returned as it is.

    Example:
        >>> same_program("a = 7 // 2  # half") == same_program("a=(7//2)")
        True
        >>> same_program("a = 7 // 2") == same_program("a = 7 / 2")
        False
    """
    try:
        return ast.dump(ast.parse(code))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return code


def type_text(type_: str) -> str:
    """A data type for comparison: the case of what is quoted in it is data.

    Example:
        >>> type_text("VARCHAR( 10 )"), type_text("enum('A',  'b  c')")
        ('varchar( 10 )', "enum('A', 'b  c')")
    """
    parts = (
        match["kept"] or re.sub(r"\s+", " ", match["plain"].lower())
        for match in _QUOTED.finditer(type_.strip())
    )
    return "".join(parts)
