"""Which marks of the macro ``mask`` count: those that it made itself.

The macro writes a mark around what it hides (`flow.builtin_names.MASK_MARK`). A mark that somebody writes
by hand masks nothing, so a node's marks count only if it calls the macro (itself, through other macros, or
in an ephemeral model that dbt puts into it), and none of its own texts spells the mark.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from dbt_ripple.artifacts import Node
from dbt_ripple.flow.builtin_names import MASK_MARK
from dbt_ripple.graph.macros import OWN

if TYPE_CHECKING:
    from dbt_ripple.graph.linking.project_context import ProjectContext

MASK: Final = f"macro.{MASK_MARK}"
_CALL: Final = re.compile(r"\bdbt_ripple\s*\.\s*mask\s*\(")
_NO_MARK: Final = "no mask"
_NOT_OF_NAMES: Final = re.compile(r"[^\w.]")


def without_forged_marks(text: str) -> str:
    """SQL in which no mark counts."""
    return text.replace(f"'{MASK_MARK}'", f"'{_NO_MARK}'")


def text_of(node: Node, context: ProjectContext) -> str:
    """A node's compiled SQL, in which its marks are only those of the macro."""
    text = node.compiled_code or ""
    if f"'{MASK_MARK}'" not in text:
        return text
    called = False
    for one in _with_ephemerals(node, context):
        if _spells_it(one.raw_code):
            return without_forged_marks(text)
        for unique_id in context.macros.closure(one.depends_on.macros):
            macro = context.project.macros[unique_id]
            called = called or unique_id == MASK
            if macro.package_name != OWN and _spells_it(macro.macro_sql):
                return without_forged_marks(text)
        called = called or MASK in one.depends_on.macros
    return text if called else without_forged_marks(text)


def _spells_it(text: str) -> bool:
    """Whether a text has the mark otherwise than by a call of the macro, also in pieces."""
    spelled = _NOT_OF_NAMES.sub("", text).count(MASK_MARK)
    return spelled > len(_CALL.findall(text))


def _with_ephemerals(node: Node, context: ProjectContext) -> Iterator[Node]:
    """The node and the ephemeral models whose SQL stands in its own."""
    seen, stack = {node.unique_id}, [node]
    while stack:
        one = stack.pop()
        yield one
        for unique_id in one.depends_on.nodes:
            above = context.project.nodes.get(unique_id)
            if above is not None and above.is_ephemeral and unique_id not in seen:
                seen.add(unique_id)
                stack.append(above)
