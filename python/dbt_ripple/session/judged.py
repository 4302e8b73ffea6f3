"""Decisions as a `Project` gives them: of a hypothetical change, of a change, of an edit that is not written yet."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from dbt_ripple.graph.lineage_tables import ROWS
from dbt_ripple.session.answers import Answer, Place, Row

if TYPE_CHECKING:
    from dbt_ripple.artifacts import Project as Artifacts
    from dbt_ripple.changes.diff import Diff
    from dbt_ripple.governance.gate import GateAnswer
    from dbt_ripple.governance.hypothetical_changes import Change
    from dbt_ripple.governance.impact import ImpactReport

Decision = Literal["APPROVED", "CAUTION", "BLOCKED"]
RiskLevel = Literal["low", "medium", "high"]


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


@dataclass(frozen=True, slots=True)
class ColumnChange:
    """A column, or the rows, of a relation that an edit changes.

    Attributes:
        column: ``*rows*`` is which rows there are.
        change: added, removed, renamed, redefined or retyped; of rows, changed.
        before: the SQL that computed it.
        after: likewise, with the edit.
    """

    unique_id: str
    column: str
    change: str
    before: str | None
    after: str | None


@dataclass(frozen=True)
class Checked(Judged[ColumnChange]):
    """What an edit that is not written yet would change and break; iterates over the changed columns.

    Attributes:
        changes: of the relations that are edited; what only reads them is in `affected`.
        broken: unique_ids of what could not compile any more, with the reason.
        gate: the findings.
    """

    changes: tuple[ColumnChange, ...]
    broken: Mapping[str, str]
    gate: Gate

    _row: ClassVar[type] = ColumnChange

    @classmethod
    def of(cls, gate: Gate, diff: Diff) -> Checked:
        """An answer as it was made."""
        changes = []
        for node in diff.nodes:
            for column in node.columns:
                changes.append(
                    ColumnChange(
                        *(node.unique_id, column.name, column.change),
                        *(column.before, column.after),
                    )
                )
            if node.rows is not None:
                changes.append(ColumnChange(node.unique_id, ROWS, "changed", None, None))
        same = ("decision", "risk", "affected_systems", "reason", "recommendation", "affected")
        return cls(
            **{name: getattr(gate, name) for name in (*same, "notes", "not_analysed")},
            changes=tuple(changes),
            broken={one.unique_id: one.reason.message for one in diff.broken},
            gate=gate,
        )

    @property
    def rows(self) -> tuple[ColumnChange, ...]:
        """The changed columns."""
        return self.changes

    def _document(self) -> Any:
        return self.gate._document()


def _in_words(opaque: Mapping[str, Any]) -> dict[str, str]:
    return {unique_id: reason.message for unique_id, reason in opaque.items()}
