"""What a `Project` answers: frozen values, which are also tables, graphs and JSON.

Each answer iterates over its rows, which are frozen dataclasses of plain values. `notes` has, in words, what the
answer had to assume or could not see; `document()` is what the command of the same name prints with
``--format json`` (docs/schemas).
"""

from __future__ import annotations

import html
import sys
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from datetime import UTC, datetime
from functools import cache
from types import UnionType
from typing import (
    TYPE_CHECKING,
    Any,
    ClassVar,
    Final,
    Generic,
    Literal,
    TypeVar,
    get_args,
    get_origin,
    get_type_hints,
)

from dbt_ripple.errors import RippleError

if TYPE_CHECKING:
    from pathlib import Path

    import networkx
    import pandas
    import pyarrow
    from pyspark.sql import DataFrame, SparkSession

    from dbt_ripple.artifacts import Project
    from dbt_ripple.dbt_runner.invoke import DbtOptions
    from dbt_ripple.graph.lineage import Analysis
    from dbt_ripple.rendering.trace import TraceView

Row = TypeVar("Row")
Place = tuple[str, str | None]
"""A node by its unique_id, and a column of it; None for the node."""

_SHOWN: Final = 50
"""Rows of a table in a notebook."""
_DRAWN: Final = 30
"""Nodes of a picture in a notebook."""


@dataclass(frozen=True)
class Answer(Generic[Row]):
    """What all answers can do.

    Attributes:
        notes: what the answer had to assume or could not see, one sentence each.
        not_analysed: the nodes in it that could not be analysed, by unique_id, with the reason. They count as
            depending on all that they read.
    """

    notes: tuple[str, ...] = field(default=(), kw_only=True)
    not_analysed: Mapping[str, str] = field(default_factory=dict, kw_only=True)

    _row: ClassVar[type]

    @property
    def rows(self) -> tuple[Row, ...]:
        """Its rows, in the order of the answer."""
        raise NotImplementedError

    def document(self) -> dict[str, Any]:
        """What the command of the same name prints with ``--format json``, as plain values."""
        from dbt_ripple.rendering.output import document

        return document(self._document())

    def _document(self) -> Any:
        raise NotImplementedError

    def _edges(self) -> Iterator[tuple[Place, Place, dict[str, Any]]]:
        """What depends on what, as far as it is in the answer."""
        return iter(())

    def __iter__(self) -> Iterator[Row]:
        return iter(self.rows)

    def to_arrow(self) -> pyarrow.Table:
        """A table with a column for each field of a row; its types do not depend on what is in it."""
        import pyarrow as pa

        kinds = {
            str: pa.string(),
            int: pa.int64(),
            bool: pa.bool_(),
            float: pa.float64(),
            tuple: pa.list_(pa.string()),
        }
        schema = pa.schema([(name, kinds[kind]) for name, kind in _kinds(self._row).items()])
        columns = [[getattr(row, name) for row in self.rows] for name in schema.names]
        return pa.table(columns, schema=schema)

    def to_pandas(self) -> pandas.DataFrame:
        """The same as a pandas DataFrame.

        Raises:
            RippleError: pandas is not installed.
        """
        _installed("pandas")
        return self.to_arrow().to_pandas()

    def to_spark(self, spark: SparkSession) -> DataFrame:
        """The same as a DataFrame of a session, classic or Connect."""
        kinds = {
            str: "string",
            int: "bigint",
            bool: "boolean",
            float: "double",
            tuple: "array<string>",
        }
        columns = {name: kinds[kind] for name, kind in _kinds(self._row).items()}
        schema = ", ".join(f"`{name}` {kind}" for name, kind in columns.items())
        rows = [
            tuple(list(v) if isinstance(v := getattr(row, n), tuple) else v for n in columns)
            for row in self.rows
        ]
        return spark.createDataFrame(rows, schema)

    def graph(self) -> networkx.MultiDiGraph:
        """A networkx graph: a vertex is ``(unique_id, column)``, the column None for a whole node.

        Edges go from what is read to who reads it; those between columns have ``type``, ``subtype``, ``masking``
        and ``may_read``.

        Raises:
            RippleError: networkx is not installed.
        """
        _installed("networkx")
        import networkx

        drawn: networkx.MultiDiGraph = networkx.MultiDiGraph()
        for parent, child, of in self._edges():
            drawn.add_edge(parent, child, **of)
        return drawn

    def _headline(self) -> str:
        """One line above the table in a notebook."""
        return ""

    def _repr_html_(self) -> str:
        names = [one.name for one in fields(self._row)]
        parts = [f"<p>{html.escape(self._headline())}</p>"]
        parts += [f"<p>{html.escape(note)}</p>" for note in self.notes]
        if self.rows:
            head = "".join(f"<th>{name}</th>" for name in names)
            body = "".join(
                f"<tr>{''.join(f'<td>{_cell(getattr(row, name))}</td>' for name in names)}</tr>"
                for row in self.rows[:_SHOWN]
            )
            parts.append(f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>")
            if (more := len(self.rows) - _SHOWN) > 0:
                parts.append(f"<p>and {more:,} more: to_pandas() has them all</p>")
        parts.append(_picture([*self._edges()], self._headline()))
        return "".join(parts)


@cache
def _kinds(row: type) -> dict[str, type]:
    """What is in each field of a row, None aside."""
    kinds: dict[str, type] = {}
    for name, hint in get_type_hints(row).items():
        if isinstance(hint, UnionType):
            hint = next(one for one in get_args(hint) if one is not type(None))
        kinds[name] = str if get_origin(hint) is Literal else get_origin(hint) or hint
    return kinds


def _installed(module: str) -> None:
    import importlib.util

    if importlib.util.find_spec(module) is None:
        what = f"{module} is not installed in this Python"
        raise RippleError(what, sys.prefix, f"run `pip install {module}`")


def _cell(value: Any) -> str:
    if value is None or value is False:
        return ""
    return html.escape(", ".join(value) if isinstance(value, tuple) else str(value))


def _picture(edges: Sequence[tuple[Place, Place, dict[str, Any]]], title: str) -> str:
    """The nodes nearest to the beginning, as SVG; nothing where there are no edges."""
    if not edges:
        return ""
    from dbt_ripple.pages.lineage_svg import Arrow, Box, Flow, draw

    nodes = list(dict.fromkeys(place[0] for edge in edges for place in edge[:2]))[:_DRAWN]
    boxes = [Box(u, u.split(".", 2)[-1], u.partition(".")[0], "model") for u in nodes]
    flows: dict[tuple[str, str], Flow] = {}
    for (parent, _), (child, _), of in edges:
        if parent in nodes and child in nodes:
            flow: Flow = "possible" if of.get("may_read") else "value"
            flows[parent, child] = "value" if flows.get((parent, child)) == "value" else flow
    return draw(boxes, [Arrow(*ends, flow=flow) for ends, flow in flows.items()], title)


# --- trace -----------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Reached:
    """A node, or a column of it, that a trace reaches.

    Attributes:
        name: what people call the node.
        column: None where whole nodes were traced; ``*rows*`` is which rows there are.
        depth: steps from where the trace began.
        kinds: how it depends on the step before, or that on it: IDENTITY, TRANSFORMATION, AGGREGATION, JOIN,
            FILTER, GROUP_BY, SORT, WINDOW, CONDITIONAL; empty between whole nodes.
        transformation: the SQL that computes the column; None where it is a column of a parent as it is.
        masking: whether its values are hidden on the way.
        may_read: whether it is only known that it may depend on the beginning, or that on it.
        project: the dbt project it is of, where that is another one.
    """

    unique_id: str
    name: str
    resource_type: str
    column: str | None
    depth: int
    kinds: tuple[str, ...]
    transformation: str | None
    masking: bool
    may_read: bool
    project: str | None


@dataclass(frozen=True)
class Trace(Answer[Reached]):
    """What is upstream or downstream of a node or a column; iterates over it, nearest first, without the root.

    Attributes:
        root: unique_id of where it began.
        column: the column it began with; None for the node.
        direction: which way it went.
        depth: how many steps; None for all.
    """

    root: str
    column: str | None
    direction: Literal["upstream", "downstream", "both"]
    depth: int | None
    reached: tuple[Reached, ...]
    view: TraceView[Any] = field(repr=False, compare=False)
    """For renderers."""

    _row: ClassVar[type] = Reached

    @classmethod
    def of(cls, view: TraceView[Any], **known: Any) -> Trace:
        """A trace as it was made."""
        document = view.document
        kinds: dict[Place, dict[str, bool]] = {}
        for edge in document["edges"]:
            if "subtype" not in edge:
                continue
            ends = (edge["from"], edge["from_column"]), (edge["to"], edge["to_column"])
            near = {"upstream": ends[:1], "downstream": ends[1:], "both": ends}
            for place in near[document["direction"]]:
                of = kinds.setdefault(place, {})
                of[edge["subtype"]] = of.get(edge["subtype"], False) or edge["masking"]
        reached = []
        for node in document["nodes"][1:]:
            column = node.get("column")
            of = kinds.get((node["unique_id"], column), {})
            reached.append(
                Reached(
                    *(node["unique_id"], node["name"], node["resource_type"], column),
                    *(node["depth"], tuple(of), node.get("expression"), any(of.values())),
                    *(node.get("may_read", False), node.get("project")),
                )
            )
        return cls(
            root=document["root"],
            column=document.get("column"),
            direction=document["direction"],
            depth=document["depth"],
            reached=tuple(reached),
            view=view,
            **known,
        )

    @property
    def rows(self) -> tuple[Reached, ...]:
        """What was reached."""
        return self.reached

    def __len__(self) -> int:
        return len(self.reached)

    def _document(self) -> Any:
        return self.view.document

    def _edges(self) -> Iterator[tuple[Place, Place, dict[str, Any]]]:
        for edge in self.view.document["edges"]:
            of = {key: edge[key] for key in ("type", "subtype", "masking") if key in edge}
            may_read = {"may_read": edge.get("may_read", False)} if of else {}
            parent = edge["from"], edge.get("from_column")
            yield parent, (edge["to"], edge.get("to_column")), {**of, **may_read}

    def _headline(self) -> str:
        name = f"{self.root}.{self.column}" if self.column else self.root
        return f"{self.direction} of {name}: {len(self):,}"


def openlineage_events(
    project: Project,
    analysis: Analysis,
    unique_ids: Collection[str],
    project_dir: Path,
    options: DbtOptions,
) -> list[str]:
    """What ``dbt-ripple emit --static`` sends of some nodes, one event a text of JSON.

    Args:
        project: with the declared assets.
        analysis: of it.
        unique_ids: the nodes.
        project_dir: dbt's project, whose profile names the datasets.
        options: how dbt is called.

    Raises:
        RippleError: openlineage-python is not installed, or the profile cannot be read.
    """
    from dbt_ripple.extras import require_extra

    require_extra("openlineage")
    from dbt_ripple.dbt_runner.profile import connection_of
    from dbt_ripple.openlineage.client import as_json
    from dbt_ripple.openlineage.column_lineage import LineageFinder
    from dbt_ripple.openlineage.dataset_names import DatasetNames
    from dbt_ripple.openlineage.facets import ProjectFacets
    from dbt_ripple.openlineage.invocation import job_namespace
    from dbt_ripple.openlineage.run_events import static_events

    connection = connection_of(project_dir, options, project.run_args)
    names = DatasetNames(project, connection.namespace(), connection)
    of = {u: node for u, node in project.nodes.items() if u in unique_ids}
    above = {parent for u in of for parent in project.parents.get(u, ())}
    lineage = LineageFinder(project, analysis, {*of, *above})
    facets = ProjectFacets(project.having(nodes=of), analysis, names, project_dir)
    at = project.metadata.generated_at or datetime.now(UTC)
    return [
        as_json(e) for e in static_events(facets, lineage, namespace=job_namespace(None), at=at)
    ]
