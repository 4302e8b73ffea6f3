"""What the commands that write pages print as JSON: evidence packs, their verification, and reports."""

from __future__ import annotations

from datetime import date
from typing import Literal

import msgspec


class Absent(msgspec.Struct, kw_only=True):
    """What the page could have shown and does not, because an input was missing."""

    what: str
    why: str


class WrittenEvidence(msgspec.Struct, kw_only=True):
    """An evidence pack that was written.

    Attributes:
        root: unique_id of the node.
        column: null where the whole node is the subject.
        folder: as it was given.
        files: of the pack, without SHA256SUMS.
        digest: SHA-256 of SHA256SUMS.
        absent: what was not at hand.
    """

    root: str
    column: str | None
    folder: str
    files: list[str]
    digest: str
    absent: list[Absent]


class Difference(msgspec.Struct, frozen=True, kw_only=True):
    """One thing that is not as it was written.

    Attributes:
        file: its path in the folder, with slashes.
        what: changed, removed or added; sums where SHA256SUMS is not what was written, digest where it
            is not the one whose digest was given.
        message: the same in words.
    """

    file: str
    what: Literal["changed", "removed", "added", "sums", "digest"]
    message: str


class Verification(msgspec.Struct, kw_only=True):
    """Whether an evidence pack is as it was written.

    Attributes:
        intact: whether no difference was found.
        digest: SHA-256 of SHA256SUMS as it is now.
        digest_compared: whether it was compared with one that was given: without, somebody who changed
            a file and its sum is not found.
        files: how many files SHA256SUMS lists.
        differences: by file.
    """

    intact: bool
    digest: str
    digest_compared: bool
    files: int
    differences: list[Difference]


class WeekFigures(msgspec.Struct, kw_only=True):
    """The figures of one week, as the model lineage_kpis has them; null where one is not known.

    Attributes:
        week: its Monday.
        node_coverage: share of the nodes with a query that were followed, from 0 to 1.
        tier1_node_coverage: share of the nodes of tier 1 of which all columns were.
        tier1_column_coverage: share of their columns.
        certified_path_integrity: share of the certified nodes above which everything could be followed.
        unknown_downstreams: relations whose readers, or the columns they read, are not known.
        changes: loads that changed a definition.
        median_blast_radius: how many assets such a change broke or may have changed, in the middle.
        largest_blast_radius: at most.
        incidents_opened: in the week.
        incidents_closed: likewise.
        mttr_minutes: from the first failure to the recovery, the mean of the incidents closed.
        contract_violations: broken promises found in the week.
        violations_per_change: these by the changes of the week; null without changes.
    """

    week: date
    node_coverage: float | None = None
    tier1_node_coverage: float | None = None
    tier1_column_coverage: float | None = None
    certified_path_integrity: float | None = None
    unknown_downstreams: int | None = None
    changes: int | None = None
    median_blast_radius: float | None = None
    largest_blast_radius: int | None = None
    incidents_opened: int | None = None
    incidents_closed: int | None = None
    mttr_minutes: float | None = None
    contract_violations: int | None = None
    violations_per_change: float | None = None


class DomainWeek(msgspec.Struct, kw_only=True):
    """One week of a domain, as the model domain_kpis has it; null where it is not known.

    Attributes:
        domain: `no domain` where the project names none.
        week: its Monday.
        downtime_hours: hours in which at least one incident of the domain was open.
        incidents_opened: in the week.
        incidents_closed: likewise.
        mttr_minutes: the mean of the incidents closed in the week.
        contract_violations: broken promises found in the week.
        changes: loads in which a definition of the domain was changed.
        change_failure_rate: share of these to which an incident is put down.
    """

    domain: str
    week: date
    downtime_hours: float | None = None
    incidents_opened: int | None = None
    incidents_closed: int | None = None
    mttr_minutes: float | None = None
    contract_violations: int | None = None
    changes: int | None = None
    change_failure_rate: float | None = None


class ReportDocument(msgspec.Struct, kw_only=True):
    """The health of a project's lineage and data over some weeks.

    Attributes:
        source: tables of the dbt package, or artifacts.
        first_week: the Monday of the first week; last_week of the last.
        weeks: every week of these, oldest first.
        domains: by domain, then by week; weeks in which nothing is known of a domain are left out.
        absent: what could not be computed, and why.
    """

    project: str
    source: Literal["tables", "artifacts"]
    first_week: date
    last_week: date
    weeks: list[WeekFigures]
    domains: list[DomainWeek]
    absent: list[Absent]
