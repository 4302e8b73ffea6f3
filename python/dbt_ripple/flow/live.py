"""The part of a query that its result is made of.

A CTE that nothing refers to is part of the text only: some engines check the names in it, some do not.
"""

from __future__ import annotations

from typing import Any

import msgspec

from dbt_ripple.flow.ir import CteRef, Lowered, With


def live(lowered: Lowered) -> Lowered:
    """A lowered query without the CTEs that nothing refers to.

    Returns:
        A new one; indices of CTEs stay as they are.
    """
    if lowered.rel is None or not lowered.ctes:
        return lowered
    return msgspec.structs.replace(lowered, rel=_without_dead(lowered.rel, set()))


def _without_dead(part: Any, named: set[int]) -> Any:
    """A part of a query; the CTEs it refers to are added to `named`."""
    if type(part) is CteRef:
        named.add(part.index)
        return part
    if type(part) is With:
        body = _without_dead(part.body, named)
        kept = []
        for cte in reversed(part.ctes):
            if cte.index in named:
                kept.append(msgspec.structs.replace(cte, rel=_without_dead(cte.rel, named)))
        return With(kept[::-1], body)
    if isinstance(part, list):
        return [_without_dead(each, named) for each in part]
    if isinstance(part, msgspec.Struct):
        said = {name: getattr(part, name) for name in part.__struct_fields__}
        return type(part)(**{name: _without_dead(value, named) for name, value in said.items()})
    return part
