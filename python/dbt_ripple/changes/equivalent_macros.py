"""Edited macros that return the same as before: head gets base's text of them.

Only macros of the user's without parameters, which are evaluated on both sides over what each side's
manifest lists (`graph.macro_evaluation`). What such a macro gives is the same wherever it is called from.
"""

from __future__ import annotations

from dbt_ripple.artifacts import Macro, Project
from dbt_ripple.graph.macro_evaluation import Evaluator, sections_of
from dbt_ripple.graph.macros import INTERNAL
from dbt_ripple.jinja.facts import facts_of
from dbt_ripple.jinja.unknown import CannotTellError


def with_same_macros(base: Project, head: Project) -> tuple[Project, list[str]]:
    """Head with base's text of the edited macros that give the same on both sides.

    How head has them written is kept in its ``edited_macros``.

    Returns:
        Head, and the names of those macros.
    """
    if base.metadata.dbt_version != head.metadata.dbt_version:
        return head, []
    edited = [
        (base.macros[unique_id], macro)
        for unique_id, macro in head.macros.items()
        if unique_id in base.macros
        and macro.macro_sql != base.macros[unique_id].macro_sql
        and all(map(_can_be_evaluated, (macro, base.macros[unique_id])))
    ]
    if not edited:
        return head, []
    sides = sections_of(base), sections_of(head)
    if sides[0] is None or sides[1] is None:
        return head, []
    in_both_orders = [
        [Evaluator(*side, backwards=backwards) for side in ((base, sides[0]), (head, sides[1]))]
        for backwards in (False, True)
    ]
    same = []
    for then, macro in edited:
        try:
            if all(before.value(then) == now.value(macro) for before, now in in_both_orders):
                same.append((then, macro))
        except CannotTellError:
            continue
    if same:
        head = head.having(
            edited_macros={macro.unique_id: macro for _, macro in same},
            macros=head.macros | {macro.unique_id: then for then, macro in same},
        )
    return head, [macro.name for _, macro in same]


def _can_be_evaluated(macro: Macro) -> bool:
    """Whether it is worth a try: a macro of the user's without parameters that reads ``graph``."""
    if macro.package_name in INTERNAL or "graph" not in macro.macro_sql:
        return False
    facts = facts_of(macro.macro_sql)
    return facts.readable and not facts.parameters
