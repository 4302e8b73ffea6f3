"""Prints how large the Python package is: lines of code and modules, by room and as a whole.

    python python/tools/house.py [--files] [FOLDER OR FILE ...]

A line of code holds a token that is no comment and no docstring.
"""

from __future__ import annotations

import ast
import io
import sys
import tokenize
from collections import Counter
from pathlib import Path
from typing import Final

PACKAGE: Final = Path(__file__).resolve().parents[1] / "dbt_ripple"
_SILENT: Final = ("COMMENT", "DEDENT", "ENCODING", "ENDMARKER", "INDENT", "NEWLINE", "NL")
_DOCUMENTED: Final = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)


def code_lines(text: str) -> int:
    """How many lines of a module hold code."""
    lines: set[int] = set()
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if tokenize.tok_name[token.type] not in _SILENT:
            lines.update(range(token.start[0], token.end[0] + 1))
    bodies = (node.body for node in ast.walk(ast.parse(text)) if isinstance(node, _DOCUMENTED))
    for statement in (statement for body in bodies for statement in body):
        match statement:
            case ast.Expr(value=ast.Constant(value=str())):
                lines.difference_update(range(statement.lineno, (statement.end_lineno or 0) + 1))
    return len(lines)


def main() -> None:
    """Print the table."""
    places = [Path(a).resolve() for a in sys.argv[1:] if not a.startswith("-")] or [PACKAGE]
    lines, modules = Counter[str](), Counter[str]()
    for file in sorted({f for p in places for f in (p.rglob("*.py") if p.is_dir() else [p])}):
        within = file.relative_to(PACKAGE) if file.is_relative_to(PACKAGE) else file
        room = str(within) if "--files" in sys.argv else within.parts[0]
        lines[room] += code_lines(file.read_text())
        modules[room] += 1
    for room in [*lines]:
        print(f"{room:40} {lines[room]:>7,} {modules[room]:>5}")
    print(f"{'all':40} {lines.total():>7,} {modules.total():>5}")


if __name__ == "__main__":
    main()
