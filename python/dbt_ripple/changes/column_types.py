"""The types of a relation's columns on both sides, and those that dbt may give the fixture of a unit test.

dbt types a fixture by the columns of the relations that it stands for. What `catalog.json` and
contracts say of their types is compared elsewhere (`graph.linking.unit_tests`); a catalog is of what was
built, so that it does not have what an edit makes of them.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cached_property
from typing import TYPE_CHECKING, Final

from dbt_ripple.artifacts import Node, Project
from dbt_ripple.flow.identifiers import dialect_of
from dbt_ripple.graph.config_fingerprints import ConfigFingerprints
from dbt_ripple.graph.hooks import Hook
from dbt_ripple.graph.linking.seeds import OF_ONE_TEXT

if TYPE_CHECKING:
    from dbt_ripple.changes.comparison import Comparison
    from dbt_ripple.graph.lineage import UnitTestAnalysis


def declared_types(project: Project, unique_id: str) -> dict[str, str]:
    """Types as the yml files say them, by lower-case column name."""
    node = project.nodes.get(unique_id)
    return {
        (column.name or name).lower(): column.data_type
        for name, column in (node.columns if node else {}).items()
        if column.data_type
    }


def catalog_types(project: Project, unique_id: str) -> dict[str, str]:
    """Types as the warehouse reported them, by lower-case column name."""
    return {c.name.lower(): c.type for c in project.catalog.get(unique_id, ()) if c.type}


def types_of(project: Project, unique_id: str) -> dict[str, str]:
    """Types as far as they are known; the warehouse's word comes first."""
    return {**declared_types(project, unique_id), **catalog_types(project, unique_id)}


def retyped(base: Project, head: Project, unique_id: str) -> dict[str, tuple[str, str]]:
    """Columns of which both sides know the type, from the same kind of artifact, and differ.

    Returns:
        Base's and head's type, by lower-case column name.
    """
    retyped_columns: dict[str, tuple[str, str]] = {}
    dialect = dialect_of(head.metadata.adapter_type)
    kinds = []
    then, now = base.nodes.get(unique_id), head.nodes.get(unique_id)
    if then is not None and now is not None and then.columns != now.columns:
        kinds.append(declared_types)
    if base.catalog.get(unique_id) != head.catalog.get(unique_id):
        kinds.append(catalog_types)
    for types in kinds:
        before = types(base, unique_id)
        for name, is_ in types(head, unique_id).items():
            was = before.get(name)
            if was is None or was.lower() == is_.lower():
                continue
            from dbt_ripple.flow.data_types import same_type

            if not same_type(was, is_, dialect):
                retyped_columns[name] = (was, is_)
    return retyped_columns


_OF_A_QUERY: Final = frozenset({"ephemeral", "incremental", "materialized_view", "table", "view"})
"""Materializations whose columns have the types that the query gives them."""
_OF_LOADING: Final = ("column_types", "delimiter", "quote_columns")


class FixtureTypes:
    """The types by which dbt types fixtures, on head beside base."""

    def __init__(self, comparison: Comparison) -> None:
        self.comparison = comparison
        self._may_differ: dict[str, bool] = {}

    def differ(self, analysed: UnitTestAnalysis) -> tuple[str, str] | None:
        """The first column that types a unit test's fixture and may have another type than on base.

        It may if it is defined otherwise and anything above has changed that is not known to leave
        types as they are: which rows there are, conditions, and the values of constants and seeds.

        Returns:
            Its node and its name in lower case; None where all have the types they had.
        """
        for parent, column in analysed.inputs:
            change = self.comparison.changed.get(parent)
            if (
                change is not None
                and column in {name.lower() for name in change.redefined}
                and not self._is_promised(parent, column)
                and any(map(self._may, self._changed_from(parent)))
            ):
                return parent, column
        return None

    def _is_promised(self, unique_id: str, column: str) -> bool:
        """Whether an enforced contract gives the column one type on both sides."""
        types = set()
        for project in (self.comparison.base, self.comparison.head):
            node = project.nodes.get(unique_id)
            if node is None or not node.contract_enforced:
                return False
            types |= {c.data_type for c in node.columns.values() if c.name.lower() == column}
        return len(types) == 1 and None not in types

    def _changed_from(self, unique_id: str) -> Iterable[str]:
        """A node that changed and all above it that changed, the nearest first."""
        above = [unique_id]
        for here in above:
            above += [
                other
                for other in self.comparison.head.parents.get(here, ())
                if other in self.comparison.changed and other not in above
            ]
        return above

    def _may(self, unique_id: str) -> bool:
        may_differ = self._may_differ.get(unique_id)
        if may_differ is None:
            may_differ = self._may_differ[unique_id] = self._may_have_other_types(unique_id)
        return may_differ

    def _may_have_other_types(self, unique_id: str) -> bool:
        """Whether what a node makes of its parents may have other types, whatever theirs are."""
        base, head = self.comparison.base, self.comparison.head
        then, now = base.nodes.get(unique_id), head.nodes.get(unique_id)
        if then is None or now is None:
            return True
        if self._config_fingerprints[0].of(then) != self._config_fingerprints[1].of(
            now
        ) or self._by_hooks(now):
            return True
        if now.resource_type == "seed":
            return not self._same_file_types(then, now)
        if now.is_python or then.compiled_code is None or now.compiled_code is None:
            return True
        if now.resource_type == "model" and now.materialized not in _OF_A_QUERY:
            return True
        parents = head.parents.get(unique_id, ())
        if set(parents) != set(base.parents.get(unique_id, ())):
            return True
        if any(head.nodes[p].resource_type == "function" for p in parents if p in head.nodes):
            return True
        if then.compiled_code == now.compiled_code:
            # It is its parents that changed, or something that nobody here sees.
            return not any(p in self.comparison.changed for p in parents)
        return self._shape(then) != self._shape(now)

    def _shape(self, node: Node) -> str:
        from dbt_ripple.flow.type_shapes import type_shape  # only here are there queries to parse

        head = self.comparison.head
        above = [head.nodes[p] for p in head.parents.get(node.unique_id, ()) if p in head.nodes]
        names = [(p.identifier or p.alias or p.name).lower() for p in above]
        # Base and head are compiled in schemas of their own; only where two relations have one name
        # do these say which is read.
        return type_shape(
            node.compiled_code or "",
            dialect_of(head.metadata.adapter_type),
            schemas=len({*names}) < len(names),
        )

    @cached_property
    def _config_fingerprints(self) -> list[ConfigFingerprints]:
        return [
            self.comparison.base_context.config_fingerprints,
            self.comparison.head_context.config_fingerprints,
        ]

    @cached_property
    def _hooks(self) -> list[Hook]:
        return [*self.comparison.base_context.hooks_that_write, *self.comparison.hooks]

    def _by_hooks(self, node: Node) -> bool:
        """Whether hooks of others write to a node, or make what its query calls.

        Of a hook that may write to anything, any change selects every unit test.
        """
        code = (node.compiled_code or "").lower()
        return any(
            node.unique_id in hook.writes or any(name.lower() in code for name in hook.makes)
            for hook in self._hooks
        )

    def _same_file_types(self, then: Node, now: Node) -> bool:
        """Whether a seed is loaded with the same types, as far as its files are at hand."""
        seeds = self.comparison.seeds
        before, here = seeds.base.read(then), seeds.head.read(now)
        return (
            self.comparison.head.metadata.adapter_type in OF_ONE_TEXT
            and all(then.config.get(name) == now.config.get(name) for name in _OF_LOADING)
            and before is not None
            and here is not None
            and bool(before.shapes)
            and (before.header, before.shapes) == (here.header, here.shapes)
        )
