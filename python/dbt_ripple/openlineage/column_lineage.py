"""The column edges of a node between datasets: what is no dataset (an ephemeral model, a declared job) is seen through.

The kinds are those of `graph.column_edges`: OpenLineage's type, subtype and masking.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from dbt_ripple.artifacts import Project
from dbt_ripple.flow.ir import KINDS
from dbt_ripple.flow.relation import compose
from dbt_ripple.graph.column_edges import edges_into, exposure_edges_of
from dbt_ripple.graph.lineage import Analysis, ColumnEdge
from dbt_ripple.graph.lineage_tables import ROWS
from dbt_ripple.graph.relations import RELATIONS
from dbt_ripple.openlineage.dataset_names import is_job

_BIT: Final = {(kind, subtype, masking): bit for bit, kind, subtype, masking in KINDS}
_Deps = dict[tuple[str, str], int]


class Kind(NamedTuple):
    """One way in which something depends on a column."""

    type: str
    subtype: str
    masking: bool


class DatasetDependency(NamedTuple):
    """What one column, or the rows, of a node depend on.

    Attributes:
        column: None stands for which rows the parent has.
    """

    parent_id: str
    column: str | None
    kinds: tuple[Kind, ...]


@dataclass(frozen=True)
class NodeLineage:
    """What a node is made of.

    Attributes:
        parents: the relations it reads, in order; none is ephemeral.
        is_followed: whether its query was followed column by column; if not, only the parents are
            known.
        columns: of each column that depends on anything, in the order of the relation's.
        rows: of which rows it has.
        expressions: the SQL of its columns, by their names.
    """

    parents: list[str]
    is_followed: bool = False
    columns: dict[str, list[DatasetDependency]] = field(default_factory=dict)
    rows: list[DatasetDependency] = field(default_factory=list)
    expressions: dict[str, str] = field(default_factory=dict)


class LineageFinder:
    """What nodes of a project are made of.

    Args:
        project: the artifacts.
        analysis: what was seen in them; None where there is no SQL to be followed.
        wanted: the nodes that will be asked about; only their edges are made.
    """

    def __init__(
        self, project: Project, analysis: Analysis | None, wanted: Collection[str]
    ) -> None:
        self._project = project
        self._analysis = analysis
        # What is no dataset: data goes through it.
        self._ephemeral = {
            u for u, node in project.nodes.items() if node.is_ephemeral or is_job(node)
        }
        self._written = {
            u
            for u, node in project.nodes.items()
            if node.resource_type in ("source", "asset", "dataset")
        }
        self._exposures = {node.unique_id for node in project.of_type("exposure")}
        self._deps: dict[str, dict[str, _Deps]] = {}
        edges: list[ColumnEdge] = []
        if analysis is not None:
            edges += edges_into(analysis.edges, {*wanted, *self._ephemeral})
            edges += exposure_edges_of(analysis.edges, set(wanted) & self._exposures)
        for parent, parent_column, child, child_column, kind, subtype, masking in edges:
            deps = self._deps.setdefault(child, {}).setdefault(child_column, {})
            key = parent, parent_column
            deps[key] = deps.get(key, 0) | _BIT[kind, subtype, masking]

    def of(self, unique_id: str) -> NodeLineage:
        """What a node is made of."""
        analysed = self._analysis.nodes.get(unique_id) if self._analysis else None
        by_column = self._deps.get(unique_id, {})
        declared = unique_id in self._exposures or unique_id in self._written
        if not declared and (analysed is None or analysed.status != "analysed"):
            return NodeLineage(self._parents(unique_id, by_column))
        inputs_of = {column: self._through(deps) for column, deps in by_column.items()}
        rows = inputs_of.pop(ROWS, {})
        own = analysed.columns if analysed else []
        columns = [*own, *(column for column in inputs_of if column not in set(own))]
        expressions = zip(own, analysed.expressions if analysed else (), strict=False)
        return NodeLineage(
            self._parents(unique_id, by_column),
            True,
            {column: _spelled(inputs_of[column]) for column in columns if inputs_of.get(column)},
            _spelled(rows),
            {name: text for name, text in expressions if text},
        )

    def _parents(self, unique_id: str, by_column: dict[str, _Deps]) -> list[str]:
        """What dbt and the query say that it reads, ephemeral models replaced by what they read."""
        parents: dict[str, None] = {}
        ahead = [
            *self._project.parents.get(unique_id, ()),
            *dict.fromkeys(parent for deps in by_column.values() for parent, _ in deps),
        ]
        seen = {unique_id}
        while ahead:
            parent = ahead.pop(0)
            if parent in seen:
                continue
            seen.add(parent)
            if parent in self._ephemeral:
                ahead += self._project.parents.get(parent, ())
                ahead += [of for deps in self._deps.get(parent, {}).values() for of, _ in deps]
                continue
            node = self._project.nodes.get(parent)
            if node is None or node.resource_type in RELATIONS | {"asset", "dataset"}:
                parents[parent] = None
        return sorted(parents)

    def _through(self, deps: _Deps) -> _Deps:
        """Dependencies on ephemeral models as dependencies on what these are made of."""
        if self._ephemeral.isdisjoint(parent for parent, _ in deps):
            return deps
        result: _Deps = {}
        for (parent, column), mask in deps.items():
            if parent in self._ephemeral:
                inner = self._through(self._deps.get(parent, {}).get(column, {}))
                for key, kind in inner.items():
                    result[key] = result.get(key, 0) | compose(mask, kind)
            else:
                result[parent, column] = result.get((parent, column), 0) | mask
        return result


def _spelled(deps: _Deps) -> list[DatasetDependency]:
    return [
        DatasetDependency(
            parent,
            None if column == ROWS else column,
            tuple(Kind(kind, how, masking) for bit, kind, how, masking in KINDS if mask & bit),
        )
        for (parent, column), mask in sorted(deps.items())
    ]
