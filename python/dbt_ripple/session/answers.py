"""What a `Project` answers: frozen values, which are also tables, graphs and JSON.

Each answer iterates over its rows, which are frozen dataclasses of plain values. `notes` has, in words, what the
answer had to assume or could not see; `document()` is what the command of the same name prints with
``--format json`` (docs/schemas).
"""

from __future__ import annotations

import html
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
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
from dbt_ripple.graph.lineage_tables import ROWS

if TYPE_CHECKING:
    import networkx
    import pandas
    import pyarrow
    from pyspark.sql import DataFrame, SparkSession

    from dbt_ripple.artifacts import Project as Artifacts
    from dbt_ripple.governance.diagnose import Diagnosis
    from dbt_ripple.governance.hypothetical_changes import Change
    from dbt_ripple.governance.impact import ImpactReport
    from dbt_ripple.rendering.gate import GateAnswer
    from dbt_ripple.rendering.trace import TraceView
    from dbt_ripple.selection import Selection
    from dbt_ripple.selection.explain import Explanation
    from dbt_ripple.session.sides import Sides

Row = TypeVar("Row")
Decision = Literal["APPROVED", "CAUTION", "BLOCKED"]
RiskLevel = Literal["low", "medium", "high"]
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


# --- impact ----------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class AffectedAsset:
    """An asset that a change reaches.

    Attributes:
        severity: breaking, warning (its values or rows may differ) or info (it only stands below what breaks).
        references: what it reads of the change; ``*rows*`` is which rows there are.
        may_read: whether that is not known, only possible.
        owner: who is to be told; None where nobody is named.
        path: unique_ids from the changed node down to this one.
    """

    unique_id: str
    name: str
    asset_type: str
    severity: str
    references: tuple[str, ...]
    may_read: bool
    owner: str | None
    path: tuple[str, ...]
    project: str | None

    @classmethod
    def of(cls, asset: Any) -> AffectedAsset:
        """As the gate and `impact` have it."""
        return cls(
            *(asset.unique_id, asset.name, asset.asset_type, asset.severity),
            *(tuple(asset.affected_references), asset.may_read, asset.owner),
            *(tuple(asset.path), asset.project),
        )


@dataclass(frozen=True)
class Judged(Answer[Row]):
    """A decision: what `gate` and `impact` have in common.

    Attributes:
        decision: BLOCKED, CAUTION or APPROVED.
        risk: low, medium or high.
        affected_systems: how many assets break or may change.
        reason: what decided, in one sentence made of the findings.
        recommendation: what to do next, in one sentence.
        affected: those assets, and what only stands below them; nearest first.
    """

    decision: Decision
    risk: RiskLevel
    affected_systems: int
    reason: str
    recommendation: str
    affected: tuple[AffectedAsset, ...]

    def brief(self) -> str:
        """The decision as a form has it, in five lines: DECISION, RISK, AFFECTED SYSTEMS, REASON, RECOMMENDATION."""
        lines = {
            "DECISION": self.decision,
            "RISK": self.risk.upper(),
            "AFFECTED SYSTEMS": f"{self.affected_systems:,}",
            "REASON": self.reason,
            "RECOMMENDATION": self.recommendation,
        }
        return "\n".join(f"{name}: {text}" for name, text in lines.items())

    def _edges(self) -> Iterator[tuple[Place, Place, dict[str, Any]]]:
        pairs = (pair for a in self.affected for pair in zip(a.path, a.path[1:], strict=False))
        for parent, child in dict.fromkeys(pairs):
            yield (parent, None), (child, None), {}

    def _headline(self) -> str:
        return (
            f"{self.decision}, risk {self.risk}, {self.affected_systems:,} affected. {self.reason}"
        )


@dataclass(frozen=True)
class Impact(Judged[AffectedAsset]):
    """Who would break if a relation were changed; iterates over the affected assets.

    Attributes:
        node: unique_id of what would be changed.
        changes: what would be done to it.
        broken_tests: unique_ids of the data tests that will not compile.
        affected_tests: of the other tests that read something of the change.
        broken_promises: what is promised of the relation and would not be kept.
    """

    node: str
    changes: tuple[Change, ...]
    broken_tests: tuple[str, ...]
    affected_tests: tuple[str, ...]
    broken_promises: tuple[str, ...]
    report: ImpactReport = field(repr=False, compare=False)
    """For renderers."""
    shown: Artifacts = field(repr=False, compare=False)
    """The project with all that has a name in the answer, for renderers."""

    _row: ClassVar[type] = AffectedAsset

    @classmethod
    def of(
        cls,
        report: ImpactReport,
        node: str,
        changes: Sequence[Change],
        shown: Artifacts,
        **known: Any,
    ) -> Impact:
        """An answer as it was made."""
        affected = tuple(map(AffectedAsset.of, report.affected_assets))
        return cls(
            decision=report.decision,
            risk=report.risk_level,
            affected_systems=sum(asset.counts for asset in report.affected_assets),
            reason=report.reason,
            recommendation=report.recommendation,
            affected=affected,
            node=node,
            changes=tuple(changes),
            broken_tests=tuple(report.broken_tests),
            affected_tests=tuple(report.tests),
            broken_promises=tuple(promise.message for promise in report.promises),
            not_analysed=_in_words(report.opaque),
            report=report,
            shown=shown,
            **known,
        )

    @property
    def rows(self) -> tuple[AffectedAsset, ...]:
        """The affected assets."""
        return self.affected

    def _document(self) -> Any:
        return self.report.document()


# --- gate ------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class RuleFinding:
    """A place where a rule of the gate is not kept.

    Attributes:
        level: warn or block; approved, or known where it is so on base (both decide nothing).
        unique_id: None where it is about the change as a whole.
        column: None where it is about the whole node.
        message: what is so.
    """

    rule: str
    level: str
    unique_id: str | None
    column: str | None
    message: str
    owner: str | None
    project: str | None


@dataclass(frozen=True)
class Gate(Judged[RuleFinding]):
    """May a change be merged? Iterates over the findings.

    Attributes:
        findings: by rule, then by node and column.
        removed: unique_ids of what base has and head has not, except sources and tests.
    """

    findings: tuple[RuleFinding, ...]
    removed: tuple[str, ...]
    answer: GateAnswer = field(repr=False, compare=False)
    """For renderers."""

    _row: ClassVar[type] = RuleFinding

    @classmethod
    def of(cls, answer: GateAnswer, **known: Any) -> Gate:
        """An answer as it was made."""
        report = answer.report
        return cls(
            decision=report.decision,
            risk=report.risk_level,
            affected_systems=report.blast_radius,
            reason=report.reason,
            recommendation=report.recommendation,
            affected=tuple(map(AffectedAsset.of, report.affected)),
            findings=tuple(
                RuleFinding(
                    *(f.rule, f.level, f.unique_id, f.column, f.reason.message, f.owner, f.project)
                )
                for f in report.findings
            ),
            removed=tuple(report.removed),
            not_analysed=_in_words(report.opaque),
            answer=answer,
            **known,
        )

    @property
    def rows(self) -> tuple[RuleFinding, ...]:
        """The findings."""
        return self.findings

    def _document(self) -> Any:
        from dbt_ripple.rendering.gate import document

        return document(self.answer)


# --- select and explain ----------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class ChosenTest:
    """A data test or unit test that a change can break.

    Attributes:
        reason: what changed, and where it began; empty of unit tests.
        path: from where it began down to the test, as ``unique_id.column`` (``*rows*`` for which rows there are).
    """

    unique_id: str
    name: str
    reason: str
    path: tuple[str, ...]


@dataclass(frozen=True)
class Selected(Answer[ChosenTest]):
    """The tests that a change can break; iterates over them, data tests first.

    Attributes:
        tests: to run.
        models: unique_ids of what has to be built for them.
        proven: unique_ids of impacted tests that need not run, because base's passed tests prove them.
        blocked: of those below a relation that cannot be built.
        all_tests: how many there are in the project.
        seconds: how long it took to answer, wall time.
    """

    tests: tuple[ChosenTest, ...]
    models: tuple[str, ...]
    proven: tuple[str, ...]
    blocked: tuple[str, ...]
    all_tests: int
    seconds: float = field(compare=False)
    selection: Selection = field(repr=False, compare=False)
    """For renderers."""
    sides: Sides = field(repr=False, compare=False)
    """What was compared."""
    explain: Callable[[str], Explained] = field(repr=False, compare=False)

    _row: ClassVar[type] = ChosenTest

    @classmethod
    def of(
        cls,
        selection: Selection,
        sides: Sides,
        seconds: float,
        explain: Callable[[str], Explained],
        **known: Any,
    ) -> Selected:
        """An answer as it was made."""
        nodes = sides.head.project.nodes
        data = (
            ChosenTest(t.unique_id, t.name, t.reason.message, tuple(t.path))
            for t in selection.tests
        )
        unit = (ChosenTest(u, nodes[u].display_name, "", ()) for u in selection.unit_tests)
        return cls(
            tests=(*data, *unit),
            models=tuple(selection.models),
            proven=tuple(test.unique_id for test in selection.proven),
            blocked=tuple(test.unique_id for test in selection.blocked),
            all_tests=selection.counts.all_tests,
            seconds=seconds,
            not_analysed={one.unique_id: one.reason.message for one in selection.opaque},
            selection=selection,
            sides=sides,
            explain=explain,
            **known,
        )

    @property
    def rows(self) -> tuple[ChosenTest, ...]:
        """The tests."""
        return self.tests

    def __len__(self) -> int:
        return len(self.tests)

    def why(self, test: ChosenTest | str) -> Explained:
        """Why a test is selected, or why not.

        Args:
            test: one of the tests, a unique_id, a name, or a part of a name that only one test has.

        Raises:
            RippleError: there is no such test; the nearest are given.
        """
        return self.explain(test if isinstance(test, str) else test.unique_id)

    def to_dbt_args(self) -> list[str]:
        """Arguments for ``dbt build``: the models, and these tests alone; empty where there is nothing to do."""
        from dbt_ripple.rendering.selection import names

        words = names(self.selection, self.sides.head.project)
        return ["--indirect-selection", "empty", "--select", *words] if words else []

    def _document(self) -> Any:
        return self.selection

    def _edges(self) -> Iterator[tuple[Place, Place, dict[str, Any]]]:
        def place(vertex: str) -> Place:
            nodes = self.sides.head.project.nodes
            node, _, column = vertex.rpartition(".")
            return (vertex, None) if vertex in nodes else (node, column)

        pairs = (p for t in self.tests for p in zip(t.path, t.path[1:], strict=False))
        for parent, child in dict.fromkeys(pairs):
            yield place(parent), place(child), {}

    def _headline(self) -> str:
        return f"{len(self):,} of {self.all_tests:,} tests, {len(self.models):,} to build"


@dataclass(frozen=True, slots=True)
class ExplainedStep:
    """A step on the way of a change.

    Attributes:
        column: None for a test; ``*rows*`` is which rows there are.
        expression: the SQL that computes it on head, where it is at hand.
    """

    unique_id: str
    column: str | None
    expression: str | None


@dataclass(frozen=True)
class Explained(Answer[ExplainedStep]):
    """Why a test is selected or not, or a node or column differs or not; iterates over the way of the change.

    Attributes:
        verdict: of a test: selected, proven, blocked or not selected. Of a node or a column: new, changed (by
            itself), affected (by what it reads) or not changed.
        reason: why, in a sentence.
        path: from where the change began, or to where it stops.
        before: at the beginning of the path, what base has there.
        after: likewise, of head.
    """

    unique_id: str
    verdict: str
    reason: str
    path: tuple[ExplainedStep, ...]
    before: tuple[str, ...]
    after: tuple[str, ...]
    explanation: Explanation = field(repr=False, compare=False)
    """For renderers."""

    _row: ClassVar[type] = ExplainedStep

    @classmethod
    def of(cls, explained: Explanation, **known: Any) -> Explained:
        """An answer as it was made."""
        return cls(
            unique_id=explained.unique_id,
            verdict=explained.verdict,
            reason=explained.reason.message,
            path=tuple(
                ExplainedStep(step.unique_id, step.column, step.expression)
                for step in explained.path
            ),
            before=tuple(explained.before),
            after=tuple(explained.after),
            explanation=explained,
            **known,
        )

    @property
    def rows(self) -> tuple[ExplainedStep, ...]:
        """The steps."""
        return self.path

    def _document(self) -> Any:
        return self.explanation

    def _edges(self) -> Iterator[tuple[Place, Place, dict[str, Any]]]:
        for one, next_ in zip(self.path, self.path[1:], strict=False):
            yield (one.unique_id, one.column), (next_.unique_id, next_.column), {}

    def _headline(self) -> str:
        return f"{self.unique_id}: {self.verdict}. {self.reason}"


# --- diagnose --------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class DiagnosedStep:
    """One relation that a number comes from.

    Attributes:
        depth: how many steps above.
        columns: those that the number comes from; ``*rows*`` is which rows there are.
        last_run: dbt's status of the last command that ran it; None where none did.
        freshness: that of ``dbt source freshness``; None where it was not asked.
        changes: what is not as it was at `since`, as ``column: what``.
        failed_tests: names of the tests of these columns that did not pass when they last ran.
    """

    unique_id: str
    name: str
    depth: int
    columns: tuple[str, ...]
    may_read: bool
    owner: str | None
    last_run: str | None
    freshness: str | None
    changes: tuple[str, ...]
    failed_tests: tuple[str, ...]


@dataclass(frozen=True)
class Diagnosed(Answer[DiagnosedStep]):
    """All that a number is computed from; iterates over it, nearest first, the number's own node before all.

    Attributes:
        root: unique_id of the node.
        column: None where all of them were asked about.
    """

    root: str
    column: str | None
    steps: tuple[DiagnosedStep, ...]
    diagnosis: Diagnosis = field(repr=False, compare=False)
    """For renderers."""

    _row: ClassVar[type] = DiagnosedStep

    @classmethod
    def of(cls, diagnosis: Diagnosis, **known: Any) -> Diagnosed:
        """An answer as it was made."""
        return cls(
            root=diagnosis.root,
            column=diagnosis.column,
            steps=tuple(
                DiagnosedStep(
                    *(step.unique_id, step.full_name, step.depth),
                    *(tuple(column.name for column in step.columns), step.may_read, step.owner),
                    step.last_run.status if step.last_run else None,
                    step.freshness.status if step.freshness else None,
                    tuple(f"{c.column or ROWS}: {c.change}" for c in step.changes),
                    tuple(t.name for t in step.tests if t.status not in (None, "pass", "success")),
                )
                for step in diagnosis.steps
            ),
            diagnosis=diagnosis,
            **known,
        )

    @property
    def rows(self) -> tuple[DiagnosedStep, ...]:
        """The steps."""
        return self.steps

    def _document(self) -> Any:
        return self.diagnosis

    def _headline(self) -> str:
        return f"{self.diagnosis.spoken}: {len(self.steps):,} steps"


def _in_words(opaque: Mapping[str, Any]) -> dict[str, str]:
    return {unique_id: reason.message for unique_id, reason in opaque.items()}
