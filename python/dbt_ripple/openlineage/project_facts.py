"""What every catalogue gets of a project's relations and of who made them."""

from __future__ import annotations

from functools import cached_property
from typing import Final, NamedTuple

from dbt_ripple.artifacts import (
    Node,
    Project,
    contract_version,
    criticality,
    domain,
    is_canonical,
    is_certified,
    owner,
    owner_email,
)
from dbt_ripple.graph.lineage import Analysis, column_names
from dbt_ripple.graph.lineage_rows import data_type_of
from dbt_ripple.graph.pii import pii_columns

_TYPES: Final = {
    "view": ("VIEW", None),
    "materialized_view": ("VIEW", "MATERIALIZED"),
    "dynamic_table": ("TABLE", "DYNAMIC"),
    "table": ("TABLE", None),
    "incremental": ("TABLE", None),
    "seed": ("TABLE", None),
    "snapshot": ("TABLE", None),
    "external": ("TABLE", "EXTERNAL"),
}
"""Materialization -> type and sub-type of the dataset; other materializations have none."""


class RelationColumn(NamedTuple):
    """A column of a relation, by the name that the warehouse or the project has for it."""

    name: str
    type: str | None
    description: str | None


class ProjectFacts:
    """What is known of a project's nodes.

    Args:
        project: the artifacts.
        analysis: what was seen in them; None where there is no SQL to be followed.
    """

    def __init__(self, project: Project, analysis: Analysis | None) -> None:
        self.project = project
        self._analysis = analysis

    @cached_property
    def pii(self) -> dict[str, list[tuple[str, str]]]:
        """Of each node the columns that hold personal data, declared or inherited, with the kind."""
        columns: dict[str, list[tuple[str, str]]] = {}
        analysis = self._analysis or Analysis({}, [], [], {})
        for pii in pii_columns(self.project, analysis):
            if pii.origin != "declassified":
                columns.setdefault(pii.unique_id, []).append((pii.column, pii.pii))
        return columns

    def column_names(self, unique_id: str) -> dict[str, str]:
        """The columns of a relation in order, by their names in lower case."""
        return column_names(
            self.project.nodes.get(unique_id),
            self._analysis.nodes.get(unique_id) if self._analysis else None,
            self.project.catalog.get(unique_id, ()),
        )

    def has_all_columns(self, node: Node) -> bool:
        """Whether `columns` has all that there are: from catalog.json, the query, or a declared asset."""
        if node.unique_id in self.project.catalog or node.resource_type == "asset":
            return True
        analysed = self._analysis.nodes.get(node.unique_id) if self._analysis else None
        return analysed is not None and analysed.status == "analysed"

    def columns(self, unique_id: str) -> list[RelationColumn]:
        """The columns of a relation in order; the types are the warehouse's, as far as they are known."""
        node = self.project.nodes.get(unique_id)
        catalog = {c.name.lower(): c for c in self.project.catalog.get(unique_id, ())}
        declared = {
            (column.name or name).lower(): column
            for name, column in (node.columns if node else {}).items()
        }
        columns = []
        for key, name in self.column_names(unique_id).items():
            there, declared_column = catalog.get(key), declared.get(key)
            description = (declared_column.description if declared_column else "") or (
                there.comment if there else ""
            )
            data_type = data_type_of(declared_column, there.type if there else None)
            columns.append(RelationColumn(name, data_type, description or None))
        return columns

    def owners(self, node: Node) -> list[tuple[str, str | None]]:
        """Name and type of the owner, and where one writes to, if that is another text."""
        name, email = owner(node, self.project), owner_email(node, self.project)
        people: list[tuple[str, str | None]] = [(name, "OWNER")] if name else []
        return [*people, (email, "CONTACT")] if email and email != name else people

    def tags(self, node: Node) -> list[tuple[str, str]]:
        """Keys and values: what the gate and the tables read of ``meta``, and dbt's own tags."""
        pairs = [
            ("contract_version", contract_version(node)),
            ("criticality", criticality(node)),
            ("domain", domain(node, self.project)),
            ("certified", "true" if is_certified(node) else None),
            ("canonical", "true" if is_canonical(node) else None),
        ]
        return [
            *((key, value) for key, value in pairs if value),
            *((tag, "true") for tag in node.tags),
        ]

    def dataset_type(self, node: Node) -> tuple[str, str | None] | None:
        """Type and sub-type of what a node is in the warehouse; None where its materialization does not say."""
        kind = node.resource_type if node.resource_type != "model" else node.materialized
        return _TYPES.get(kind or "")
