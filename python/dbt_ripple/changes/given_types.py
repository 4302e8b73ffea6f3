"""Whether dbt may give the fixture of a unit test other types than on base.

dbt types a fixture by the columns of the relations that it stands for. What `catalog.json` and
contracts say of their types is compared elsewhere (`graph.dbt_tests`); a catalog is of what was
built, so that it does not have what an edit makes of them.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Final

from dbt_ripple.artifacts import Node
from dbt_ripple.flow.identifiers import dialect_of
from dbt_ripple.graph.config_fingerprints import hooks_of
from dbt_ripple.graph.sources_and_seeds import OF_ONE_TEXT

if TYPE_CHECKING:
    from dbt_ripple.changes.compare import Comparison
    from dbt_ripple.graph.lineage import UnitTestAnalysis

_OF_A_QUERY: Final = frozenset({"ephemeral", "incremental", "materialized_view", "table", "view"})
"""Materializations whose columns have the types that the query gives them."""
_OF_LOADING: Final = frozenset({"column_types", "delimiter", "quote_columns"})


def given_otherwise(comparison: Comparison, seen: UnitTestAnalysis) -> tuple[str, str] | None:
    """The first column that dbt types the fixture by and that may have another type than on base.

    It may if it is defined otherwise and, anywhere above, more than rows and values has changed.

    Returns:
        Its node and its name in lower case; None where all have the types they had.
    """
    for parent, column in seen.inputs:
        change = comparison.changed.get(parent)
        if change is None or column not in {name.lower() for name in change.redefined}:
            continue
        if _promised(comparison, parent, column):
            continue
        if any(
            _may_have_other_types(comparison, other) for other in _changed_from(comparison, parent)
        ):
            return parent, column
    return None


def _promised(comparison: Comparison, unique_id: str, column: str) -> bool:
    """Whether an enforced contract gives the column one type on both sides."""
    types = set()
    for project in (comparison.base, comparison.head):
        node = project.nodes.get(unique_id)
        if node is None or not node.contract_enforced:
            return False
        types |= {c.data_type for c in node.columns.values() if c.name.lower() == column}
    return len(types) == 1 and None not in types


def _changed_from(comparison: Comparison, unique_id: str) -> Iterable[str]:
    """A node that moved and all above it that moved, the nearest first."""
    above = [unique_id]
    for here in above:
        above += [
            other
            for other in comparison.head.parents.get(here, ())
            if other in comparison.changed and other not in above
        ]
    return above


def _may_have_other_types(comparison: Comparison, unique_id: str) -> bool:
    base, head = comparison.base, comparison.head
    then, now = base.nodes.get(unique_id), head.nodes.get(unique_id)
    if then is None or now is None or hooks_of(then) != hooks_of(now):
        return True
    if now.resource_type == "seed":
        return not _same_file_types(comparison, then, now)
    if now.is_python or then.compiled_code is None or now.compiled_code is None:
        return True
    if now.resource_type == "model" and now.materialized not in _OF_A_QUERY:
        return True
    parents = head.parents.get(unique_id, ())
    if set(parents) != set(base.parents.get(unique_id, ())):
        return True
    if then.compiled_code == now.compiled_code:
        return False
    from dbt_ripple.flow.type_shapes import type_shape  # only here are there queries to parse

    names = [
        (head.nodes[p].identifier or head.nodes[p].alias or head.nodes[p].name).lower()
        for p in parents
        if p in head.nodes
    ]
    dialect = dialect_of(head.metadata.adapter_type)
    shapes = {
        # Base and head are compiled in schemas of their own; only where two relations have one name
        # do these say which is read.
        type_shape(node.compiled_code or "", dialect, schemas=len({*names}) < len(names))
        for node in (then, now)
    }
    return len(shapes) > 1


def _same_file_types(comparison: Comparison, then: Node, now: Node) -> bool:
    """Whether a seed is loaded with the same types, as far as its files are at hand."""
    config = [
        {key: value for key, value in node.config.items() if key in _OF_LOADING}
        for node in (then, now)
    ]
    before, here = comparison.seeds.base.read(then), comparison.seeds.head.read(now)
    return (
        comparison.head.metadata.adapter_type in OF_ONE_TEXT
        and config[0] == config[1]
        and before is not None
        and here is not None
        and bool(before.shapes)
        and (before.header, before.shapes) == (here.header, here.shapes)
    )
