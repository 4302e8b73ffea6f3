"""What an evidence pack says: ``evidence.json`` in it, and its page, are made of this document."""

from __future__ import annotations

from datetime import datetime
from typing import Literal

import msgspec

from dbt_ripple.governance.diagnose import Freshness, LastRun
from dbt_ripple.pages.project_document import ContractVersion
from dbt_ripple.reasons import Reason
from dbt_ripple.rendering.page_documents import Absent

Side = Literal["root", "upstream", "downstream"]
Recorded = dict[str, list[dict[str, str | int | float | bool | None]]]


class Artifact(msgspec.Struct, kw_only=True):
    """A file that dbt wrote and that this was made of.

    Attributes:
        sha256: of its bytes.
        generated_at: when dbt wrote it; null where it does not say.
        invocation_id: of the dbt command that wrote it.
        state: null of the project as it is; else the number of the earlier state, from 1, oldest first.
    """

    file: str
    sha256: str
    generated_at: datetime | None
    invocation_id: str | None
    state: int | None


class Tool(msgspec.Struct, kw_only=True):
    """A program and its version."""

    name: str
    version: str


class Dependency(msgspec.Struct, kw_only=True):
    """A column that is read; ``*rows*`` is which rows there are.

    Attributes:
        kinds: OpenLineage's, as ``DIRECT AGGREGATION`` or ``INDIRECT FILTER``.
        masking: whether the value is hidden on the way.
        may_read: whether that is possible and not known.
    """

    unique_id: str
    column: str
    kinds: list[str]
    masking: bool
    may_read: bool


class EvidenceColumn(msgspec.Struct, kw_only=True):
    """A column of a node.

    Attributes:
        type: the warehouse's, as far as it is known.
        expression: the SQL that computes it from the parents; null for what is a column of a parent.
        fingerprint: of its definition, down to the sources: the same wherever it is computed in the same
            way; null where it could not be followed.
        pii: which personal data it holds, null where none is known.
        pii_reason: why it holds none, although it is reached by some.
        comes_from: what it is computed from or decided by.
    """

    name: str
    type: str | None
    description: str | None
    expression: str | None
    fingerprint: str | None
    pii: str | None
    pii_reason: str | None
    comes_from: list[Dependency]


class DataVersion(msgspec.Struct, kw_only=True):
    """Which data a relation has, as far as the last run says.

    Attributes:
        invocation_id: of the dbt command that built it.
        built_at: when.
        rows_affected: what the adapter says it wrote; null where it does not.
    """

    invocation_id: str | None
    built_at: datetime | None
    rows_affected: int | None


class EvidenceNode(msgspec.Struct, kw_only=True):
    """A node of the lineage.

    Attributes:
        side: root, upstream (what it is made of) or downstream (who depends on it).
        depth: steps from the root.
        definition: the file of the pack with its SQL or Python; null where it has none, and of
            downstream nodes.
        checksum: of the file in the project, as dbt has it.
        rows_fingerprint: of which rows there are; null where it could not be followed.
        status: analysed, opaque, broken or leaf (has no query); reason says why.
        columns: of a column's evidence only those that it comes from or goes into.
        rows_come_from: what decides which rows there are.
        last_run: how the last run at hand ended; null where none had it.
        last_success: when a run at hand last built it.
        data: of the last successful run of run_results.json.
        tests: ids of the tests that read it.
    """

    unique_id: str
    name: str
    resource_type: str
    asset_type: str
    side: Side
    depth: int
    path: str | None
    relation: str | None
    materialized: str | None
    description: str | None
    owner: str | None
    owner_name: str | None
    owner_email: str | None
    owner_channel: str | None
    domain: str | None
    access: str | None
    criticality: str | None
    certified: bool
    canonical: bool
    tags: list[str]
    contract_version: str | None
    contract_enforced: bool
    contract_versions: list[ContractVersion]
    definition: str | None
    checksum: str | None
    rows_fingerprint: str | None
    status: str
    reason: str | None
    columns: list[EvidenceColumn]
    rows_come_from: list[Dependency]
    last_run: LastRun | None
    last_success: datetime | None
    freshness: Freshness | None
    data: DataVersion | None
    tests: list[str]


class TestedColumn(msgspec.Struct, kw_only=True):
    """A column that a test reads."""

    unique_id: str
    column: str


class EvidenceTest(msgspec.Struct, kw_only=True):
    """A test that reads the subject, or something that it is made of.

    Attributes:
        fingerprint: of all that decides its outcome; null where it could not be followed.
        status: how it ended in the last run at hand; null where it did not run.
        at: when that was.
        failures: rows that failed.
        message: dbt's message.
    """

    unique_id: str
    name: str
    kind: str
    severity: str
    description: str | None
    columns: list[TestedColumn]
    fingerprint: str | None
    status: str | None
    at: datetime | None
    failures: int | None
    message: str | None


class DefinitionChange(msgspec.Struct, kw_only=True):
    """A definition that differs between two states of the project.

    Attributes:
        state: the number of the later state; null of the project as it is.
        after: when the earlier state was written, and ``seen_at`` the later one: it changed between them.
        column: null of the rows.
        change: redefined, removed, added or renamed.
        began_here: whether it was changed here, and not because something above was.
        old: the expression before, null where there is none or the column is a parent's.
        new: the expression after.
    """

    state: int | None
    after: datetime | None
    seen_at: datetime | None
    unique_id: str
    column: str | None
    change: str
    began_here: bool
    old: str | None
    new: str | None


class ContractViolation(msgspec.Struct, kw_only=True):
    """A promise that a later state does not keep, by the rules of the gate.

    Attributes:
        state: the number of the later state; null of the project as it is.
        after: when the earlier state was written, and ``seen_at`` the later one.
        rule: of docs/gate.md.
    """

    state: int | None
    after: datetime | None
    seen_at: datetime | None
    unique_id: str | None
    column: str | None
    rule: str
    reason: Reason


class EvidenceDocument(msgspec.Struct, kw_only=True):
    """The evidence of a node or of one column.

    Attributes:
        root: unique_id of the node.
        column: null where the whole node is the subject.
        nodes: the root, then upstream, then downstream, nearest first.
        tests: of the root and of what is upstream.
        changes: of definitions of the root and upstream, oldest first; of the states at hand.
        violations: of contracts, likewise.
        recorded: rows of the lineage tables about the root and upstream, by model; empty where they were
            not asked.
        absent: what was not at hand.
    """

    project: str
    adapter_type: str | None
    root: str
    column: str | None
    artifacts: list[Artifact]
    tools: list[Tool]
    nodes: list[EvidenceNode]
    tests: list[EvidenceTest]
    changes: list[DefinitionChange]
    violations: list[ContractViolation]
    recorded: Recorded
    absent: list[Absent]

    @property
    def spoken(self) -> str:
        """The subject, as people call it."""
        name = self.nodes[0].name
        return f"{name}.{self.column}" if self.column else name
