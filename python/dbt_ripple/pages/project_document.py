"""All that a page says of a project, as one document of plain values.

Nobody who draws a page looks into artifacts or walks over the analysis: `pages.describe_project` makes the
document once, and what is not in it is not shown.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from functools import cached_property

import msgspec

from dbt_ripple.governance.diagnose import Freshness, LastRun
from dbt_ripple.graph.lineage_tables import ROWS
from dbt_ripple.graph.pii import PiiColumn
from dbt_ripple.graph.traversal import EdgeKind, Vertex
from dbt_ripple.pages.health import Health, Slos


class Link(msgspec.Struct, frozen=True):
    """How a column, or the rows, of one node depends on a column, or the rows, of a node above it.

    Attributes:
        parent_column: ``*rows*`` is which rows there are; likewise ``child_column``.
        kinds: every kind of dependency, in OpenLineage's terms.
        may_read: whether that is possible and not known.
    """

    parent_id: str
    parent_column: str
    child_id: str
    child_column: str
    kinds: tuple[EdgeKind, ...]
    may_read: bool = False

    @property
    def parent(self) -> Vertex:
        """The end above."""
        return self.parent_id, self.parent_column

    @property
    def child(self) -> Vertex:
        """The end below."""
        return self.child_id, self.child_column

    @property
    def is_value(self) -> bool:
        """Whether the value goes from one column into the other; else one decides about the other."""
        return ROWS not in (self.parent_column, self.child_column) and any(
            kind.type == "DIRECT" for kind in self.kinds
        )


class ContractVersion(msgspec.Struct, frozen=True, kw_only=True):
    """A version of what a node promises.

    Attributes:
        since: when the first artifacts with it were made; None where the oldest ones have it already,
            so that it is not known since when.
        until: when the first artifacts without it were made; None while it stands.
        unique_id: of the node that stands for it now; None where there is none any more.
        is_latest: whether ``ref`` without a version means it.
        deprecation_date: from when on dbt warns of it, as the project spells it.
    """

    version: str
    since: datetime | None = None
    until: datetime | None = None
    unique_id: str | None = None
    is_latest: bool = False
    deprecation_date: str | None = None


class DescribedTest(msgspec.Struct, frozen=True, kw_only=True):
    """A data test or unit test.

    Attributes:
        kind: ``not_null``, ``dbt_utils.equal_rowcount``, ``custom_sql``, ``unit_test``.
        severity: ``error`` or ``warn``.
        is_slo: whether it checks a service level: one of the package's four tests for them, or tagged ``slo``.
        reads: the columns and sets of rows that it reads.
        last_run: None where no run at hand ran it.
        failures: rows that failed in that run; None where there is no such number.
    """

    unique_id: str
    name: str
    kind: str
    severity: str
    is_slo: bool
    description: str | None
    reads: tuple[Vertex, ...]
    last_run: LastRun | None
    failures: int | None
    message: str | None


class DescribedColumn(msgspec.Struct, frozen=True, kw_only=True):
    """A column of a node.

    Attributes:
        name: as the relation, or else the project, spells it.
        type: the warehouse's, as far as it is known.
        expression: the SQL that computes it from the parents; None for what is a column of a parent.
        pii: which personal data it holds and where it comes from; or why it holds none although it is
            reached by some (origin ``declassified``).
        is_followed: whether it is known what it is made of; not so in a node that could not be analysed, and
            of what only the yml files list.
        tests: unique_ids of the tests that read it.
        blast_radius: how many nodes, consumers included and tests not, depend on it or may.
    """

    name: str
    type: str | None
    description: str | None
    expression: str | None
    pii: PiiColumn | None
    is_followed: bool
    tests: tuple[str, ...]
    blast_radius: int


class DescribedNode(msgspec.Struct, frozen=True, kw_only=True):
    """A node of the project: a relation, a consumer, an element of the semantic layer, a declared asset.

    Attributes:
        name: as it is called on the command line (``dim_customers.v2``).
        label: what people call it, where the project says so.
        relation: its name in the warehouse.
        layer: ``meta.layer``, else of a model the folder that it is in below its package, else its
            resource type.
        owner: who answers for it, by name or else address.
        canonical: whether it is the definition that others should use.
        contract_versions: of what it promises, oldest first.
        pii: whether it or a column is declared to hold personal data.
        status: ``analysed``, ``opaque``, ``broken`` or ``leaf`` (has no query), with the ``reason``.
        parents: what it depends on directly, and ``children`` what depends on it; tests are in ``tests``.
        last_run: how the last run at hand that had it ended.
        last_success: when a run at hand last built it.
        freshness: of a source, the result of `dbt source freshness`.
        slos: how its service levels stand.
        path_is_complete: whether it, and all that is above it, could be followed.
        blast_radius: how many nodes are below it, consumers included and tests not.
    """

    unique_id: str
    name: str
    label: str | None
    resource_type: str
    asset_type: str
    package_name: str | None
    path: str | None
    relation: str | None
    materialized: str | None
    layer: str
    tags: tuple[str, ...]
    description: str | None
    owner: str | None
    owner_name: str | None
    owner_email: str | None
    owner_channel: str | None
    domain: str | None
    group: str | None
    access: str | None
    criticality: str | None
    certified: bool
    canonical: bool
    contract_version: str | None
    contract_enforced: bool
    contract_versions: tuple[ContractVersion, ...]
    pii: bool
    status: str
    reason: str | None
    columns: tuple[DescribedColumn, ...]
    parents: tuple[str, ...]
    children: tuple[str, ...]
    tests: tuple[str, ...]
    last_run: LastRun | None
    last_success: datetime | None
    freshness: Freshness | None
    slos: Slos
    path_is_complete: bool
    blast_radius: int


class ProjectDocument(msgspec.Struct, frozen=True, kw_only=True, dict=True):
    """A project and what is known of it. The same artifacts give the same document.

    Attributes:
        generated_at: when dbt wrote the manifest.
        has_catalog: whether the warehouse's types and columns are known.
        nodes: by unique_id, in the order of the ids; no tests.
        tests: by unique_id, in the order of the ids.
        links: of columns and rows, in the order of their ends.
        health: of the whole project.
        domains: health of the nodes of each domain, by its name.
        notes: what had to be left out or assumed, one sentence each.
    """

    name: str
    adapter_type: str | None
    dbt_version: str | None
    ripple_version: str
    generated_at: datetime | None
    has_catalog: bool
    nodes: dict[str, DescribedNode]
    tests: dict[str, DescribedTest]
    links: tuple[Link, ...]
    health: Health
    domains: dict[str, Health]
    notes: tuple[str, ...]

    @cached_property
    def links_into(self) -> dict[Vertex, list[Link]]:
        """The links into each column or set of rows, from what is above it."""
        return _by(self.links, "child")

    @cached_property
    def links_out_of(self) -> dict[Vertex, list[Link]]:
        """The links out of each column or set of rows, to what is below it."""
        return _by(self.links, "parent")


def _by(links: Sequence[Link], end: str) -> dict[Vertex, list[Link]]:
    by_vertex: dict[Vertex, list[Link]] = {}
    for link in links:
        by_vertex.setdefault(getattr(link, end), []).append(link)
    return by_vertex
