"""The document of an incident, from which every form of it is made."""

from __future__ import annotations

from datetime import datetime
from typing import Literal

import msgspec

from dbt_ripple.governance.diagnose import Freshness, StepChange
from dbt_ripple.reasons import Reason

State = Literal["failing", "passing", "unknown"]
IncidentSeverity = Literal["critical", "error", "warning", "info"]
ReportedBy = Literal["run_results", "state", "tables", "events"]


SuspectKind = Literal["test", "definition", "failure", "freshness"]
Reporter = Literal["state", "run_results", "sources", "tables"]


class LastSuccess(msgspec.Struct, kw_only=True):
    """When something last succeeded.

    Attributes:
        at: when it ended; null where dbt gave no time.
        invocation_id: of dbt's command; of a job outside of dbt its run id.
        reported_by: run_results.json, the artifacts of ``--state``, the lineage tables, or collected events.
    """

    at: datetime | None
    invocation_id: str | None
    reported_by: ReportedBy


class Failure(msgspec.Struct, kw_only=True):
    """A node or test that failed, warned or was skipped.

    Attributes:
        status: dbt's; null where it is not known.
        failures: rows that a test returned.
        at: when it ended.
        first_failed_at: since when it fails; the lineage tables know.
        invocation_id: of dbt's command.
        error_kind: what kind of error it was, out of a closed list; null where it is none of these.
        dbt_message: the message of dbt; null unless it was asked for and may be shown.
        last_passed: null where nothing at hand tells of it.
        tested: unique_id of what a test is on.
    """

    unique_id: str
    name: str
    resource_type: str
    status: str | None
    failures: int | None
    at: datetime | None
    first_failed_at: datetime | None
    invocation_id: str | None
    error_kind: str | None
    dbt_message: str | None
    last_passed: LastSuccess | None
    tested: str | None


class SourceState(msgspec.Struct, kw_only=True):
    """How fresh a source is that it comes from.

    Attributes:
        freshness: null where no result of `dbt source freshness` is at hand.
    """

    unique_id: str
    name: str
    freshness: Freshness | None
    owner: str | None
    owner_email: str | None
    owner_channel: str | None


class JobRun(msgspec.Struct, kw_only=True):
    """A job outside of dbt that it comes from: a DAG, a Spark job, a stream.

    Attributes:
        status: how its last run ended, by the events that were collected; null where none tells.
        at: when that was.
        run_id: of that run, in its own system.
        last_success: the last run that ended well.
    """

    unique_id: str
    name: str
    asset_type: str
    status: str | None
    at: datetime | None
    run_id: str | None
    last_success: LastSuccess | None
    owner: str | None
    owner_email: str | None
    owner_channel: str | None


class Suspect(msgspec.Struct, kw_only=True):
    """One node that may be the cause.

    Attributes:
        kind: whether the test itself changed, a definition did, or data is in trouble: something failed
            above, or a source is not fresh.
        depth: how many steps above what was asked about.
        may_read: whether it is not known to be on the way, only possible.
        changes: what was changed there.
        promises_broken: what it had promised and does not keep.
        changed_at: since when the change is in use; null where only the lineage tables would know.
        git_sha: the commit it came with; of the file's last commit where the tables do not say.
        committed_at: when the file was last committed.
        recent: whether it changed within ``since`` before the failure; true where that is not known.
        ruled_out: why it cannot be the cause; null where it can.
        reported_by: which of them tell of it: the older artifacts, the last results, the lineage tables.
    """

    unique_id: str
    name: str
    asset_type: str
    kind: SuspectKind
    depth: int
    may_read: bool
    reason: Reason
    changes: list[StepChange]
    promises_broken: list[Reason]
    changed_at: datetime | None
    git_sha: str | None
    committed_at: datetime | None
    recent: bool
    ruled_out: Reason | None
    owner: str | None
    owner_email: str | None
    owner_channel: str | None
    reported_by: list[Reporter]


class Violation(msgspec.Struct, kw_only=True):
    """A promise of something upstream that was not kept.

    Attributes:
        rule: the gate's rule, or the kind that the table contract_violations has.
        reason: what is not kept; null of one that the tables tell.
        at: when it was found; the lineage tables know.
    """

    unique_id: str
    name: str
    column: str | None
    rule: str
    reason: Reason | None
    at: datetime | None
    owner: str | None


class Impacted(msgspec.Struct, kw_only=True):
    """An asset of which a column or the rows come from what failed.

    Attributes:
        columns: its own that are reached, or of who only uses data (an exposure, a job outside of dbt) those
            that it reads; ``*rows*`` is which rows there are.
        may_read: whether it is not known, only possible.
        depth: how many steps below.
        matters: whether it is certified or of tier 1.
        project: of another project its name.
    """

    unique_id: str
    name: str
    asset_type: str
    columns: list[str]
    depth: int
    may_read: bool
    criticality: str | None
    matters: bool
    owner: str | None
    owner_name: str | None
    owner_email: str | None
    owner_channel: str | None
    project: str | None


class Commands(msgspec.Struct, kw_only=True):
    """Nodes, and the words by which dbt's ``--select`` and ``--exclude`` take them.

    Attributes:
        nodes: unique_ids.
        words: each is one argument.
        exact: false where the words stand for more: everything below.
        command: as one types it; empty where there is nothing to do.
    """

    nodes: list[str]
    words: list[str]
    exact: bool
    command: str


class Containment(msgspec.Struct, kw_only=True):
    """What to do until the cause is fixed, and after that.

    Attributes:
        pause: what would go on building on what is wrong: the next run without it.
        rebuild: what to build once the cause is mended, from the likeliest one down.
        check: what shows that it is well again.
        dags: declared DAGs that run above or below it, by their names.
        elsewhere: of other projects, what is to be paused there, by unique_id.
    """

    pause: Commands
    rebuild: Commands
    check: Commands
    dags: list[str]
    elsewhere: list[str]


class Incident(msgspec.Struct, kw_only=True):
    """All that is known of a failed test, or of a node or column that is wrong.

    Attributes:
        root: unique_id of what was asked about.
        name: as people call it.
        column: null where all of them were asked about.
        project: dbt's project.
        target: the target of dbt's last command, where it is known.
        state: passing where a test passed in the last command that ran it; unknown where nothing says.
        severity: critical where what failed reaches a consumer, or what is certified or of tier 1.
        dedup_key: the same for the same project, target and name, however often it fails.
        opened_at: since when it fails, as far as is known.
        failed: what failed: first what was asked about.
        last_successful_run: of the node it is about.
        sources: what it comes from in the end.
        jobs: what runs above it outside of dbt, as far as it is declared or was seen.
        suspects: likely causes, the likeliest first (docs/incident.md has the rule).
        contract_violations: of what it comes from.
        impacted: what is critical first, then nearest; exposures are among them.
        exposures: the unique_ids of those of them that are exposures.
        compared_with: when the artifacts of each ``--state`` were made.
        since_hours: how long before the failure a change is called recent.
        not_at_hand: what the answer had to do without.
        messages_withheld: why dbt's messages are left out, where they were asked for.
        sensitive: names of the nodes on the way or failed that hold personal data: their SQL is not sent.
    """

    root: str
    name: str
    column: str | None
    project: str
    target: str | None
    owner: str | None
    owner_name: str | None
    owner_email: str | None
    owner_channel: str | None
    state: State
    severity: IncidentSeverity
    dedup_key: str
    opened_at: datetime | None
    failed: list[Failure]
    last_successful_run: LastSuccess | None
    sources: list[SourceState]
    jobs: list[JobRun]
    suspects: list[Suspect]
    contract_violations: list[Violation]
    impacted: list[Impacted]
    exposures: list[str]
    containment: Containment
    compared_with: list[datetime]
    since_hours: float
    not_at_hand: list[Reason]
    messages_withheld: Reason | None
    sensitive: list[str]

    @property
    def spoken(self) -> str:
        """What it is about, as people call it."""
        return f"{self.name}.{self.column}" if self.column else self.name
