"""The part of a query that its engine checks.

Some engines check the names in a CTE that nothing refers to, and some do not
(`flow.engine_checks`).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec

from dbt_ripple.flow.engine_checks import UNUSED_CTES, UNUSED_RECURSIVE_CTES
from dbt_ripple.flow.ir import Cte, CteRef, Lowered, With


def checked(lowered: Lowered, dialect: str, *, surely: bool) -> Lowered:
    """A lowered query without the CTEs that nothing refers to and its engine does not look into.

    Args:
        lowered: the query.
        dialect: it is written in.
        surely: whether an engine of which it is not known is taken not to look into them.

    Returns:
        A new one; indices of CTEs stay as they are.
    """

    def drops(cte: Cte) -> bool:
        is_checked = (UNUSED_RECURSIVE_CTES if cte.recursive else UNUSED_CTES).get(dialect)
        return is_checked is False or (is_checked is None and surely)

    if lowered.rel is None or not lowered.ctes:
        return lowered
    return msgspec.structs.replace(lowered, rel=_without_dead(lowered.rel, set(), drops))


def _without_dead(part: Any, named: set[int], drops: Callable[[Cte], bool]) -> Any:
    """A part of a query; the CTEs it refers to are added to `named`."""
    if type(part) is CteRef:
        named.add(part.index)
        return part
    if type(part) is With:
        body = _without_dead(part.body, named, drops)
        kept = []
        for cte in reversed(part.ctes):
            if cte.index in named or not drops(cte):
                kept.append(msgspec.structs.replace(cte, rel=_without_dead(cte.rel, named, drops)))
        return With(kept[::-1], body)
    if isinstance(part, (list, tuple)):
        return [_without_dead(each, named, drops) for each in part]
    if isinstance(part, msgspec.Struct):
        fields = {name: getattr(part, name) for name in part.__struct_fields__}
        return type(part)(**{n: _without_dead(value, named, drops) for n, value in fields.items()})
    return part
