"""What the site of `dbt docs` says of each node and column, as the Markdown of their descriptions.

What the project wrote stands first and as it is. Lists are cut where they are long, so that a node that feeds
thousands does not make a page of megabytes.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from typing import Final

from dbt_ripple.artifacts.project import as_utc
from dbt_ripple.graph.lineage_tables import ROWS
from dbt_ripple.graph.traversal import Vertex, reach
from dbt_ripple.pages.badges import (
    Badge,
    RedBelow,
    badges_of_health,
    badges_of_node,
    file_name,
    percent_or_unknown,
)
from dbt_ripple.pages.docs_markdown import cell, link, referenced, sql, text
from dbt_ripple.pages.health import Health
from dbt_ripple.pages.project_document import (
    ContractVersion,
    DescribedColumn,
    DescribedNode,
    DescribedTest,
    Link,
    ProjectDocument,
)
from dbt_ripple.rendering.output import count

LISTED: Final = 12
"""Links of one kind that a description has at most."""

HEADING: Final = "Lineage and trust"
_MIDNIGHT: Final = "T00:00:00+00:00"
_CONSUMERS: Final = frozenset({"exposure", "asset"})


class Descriptions:
    """The additions to the descriptions of a project.

    Args:
        document: of the project.
        red_below: what the project asks of the figures.
    """

    def __init__(self, document: ProjectDocument, red_below: RedBelow) -> None:
        self._document = document
        self._red_below = red_below
        self._consumers: dict[str, list[str]] = {}
        parents = {unique_id: node.parents for unique_id, node in document.nodes.items()}
        for unique_id, node in document.nodes.items():
            if node.resource_type in _CONSUMERS:
                for above in reach(unique_id, parents):
                    if above != unique_id:
                        self._consumers.setdefault(above, []).append(unique_id)

    # --- links -------------------------------------------------------------------------------------

    def _node(self, unique_id: str, section: str = "") -> str:
        node = self._document.nodes.get(unique_id)
        if node is None:
            return text(unique_id)
        return link(_label(node), unique_id, node.resource_type, section)

    def _vertex(self, vertex: Vertex) -> str:
        unique_id, column = vertex
        node = self._document.nodes.get(unique_id)
        if node is None:
            return text(".".join(vertex))
        if node.resource_type in _CONSUMERS:
            return self._node(unique_id)
        if column == ROWS:
            return f"{self._node(unique_id)} (rows)"
        label = f"{_label(node)}.{column}"
        return link(label, unique_id, node.resource_type, "columns")

    def _nodes(self, unique_ids: Sequence[str]) -> str:
        return _listed([self._node(unique_id) for unique_id in unique_ids])

    def _links(self, links: Iterable[Link], end: str) -> str:
        """The other ends of links, values before what only decides."""
        ordered = sorted(links, key=lambda one: (not one.is_value, one.may_read))
        lines = []
        for one in ordered:
            how = dict.fromkeys(_how(one))
            lines.append(f"{self._vertex(getattr(one, end))} ({', '.join(how)})")
        return _listed(list(dict.fromkeys(lines)))

    # --- columns -----------------------------------------------------------------------------------

    def of_column(self, node: DescribedNode, column: DescribedColumn, written: str) -> str:
        """The description of a column: what the project wrote, and below it what is known."""
        lines = list(self._column_lines(node, column))
        if not lines:
            return written
        # The table of columns shows the beginning in one line: with nothing written, words.
        first = written.rstrip() or self._in_short(node, column)
        return f"{first}\n\n{referenced(_items(lines), first)}"

    def _in_short(self, node: DescribedNode, column: DescribedColumn) -> str:
        into = self._document.links_into.get((node.unique_id, column.name), [])
        names = [self._plain(one.parent) for one in into if one.is_value and not one.may_read]
        if not names:
            return "Not described by the project."
        return f"From {', '.join(names[:3])}{' and others' if len(names) > 3 else ''}."

    def _plain(self, vertex: Vertex) -> str:
        node = self._document.nodes.get(vertex[0])
        return text(f"{_label(node) if node else vertex[0]}.{vertex[1]}")

    def _column_lines(self, node: DescribedNode, column: DescribedColumn) -> Iterator[str]:
        vertex = (node.unique_id, column.name)
        if into := self._document.links_into.get(vertex):
            yield f"Comes from: {self._links(into, 'parent')}"
        if column.expression:
            yield f"Computed as: {sql(column.expression)}"
        if out := self._document.links_out_of.get(vertex):
            yield f"Feeds: {self._links(out, 'child')}"
        if column.pii:
            yield f"Personal data: {self._pii(column)}"
        if column.tests:
            yield f"Tests: {self._tests(column.tests)}"
        if into or out or column.blast_radius:
            below = count(column.blast_radius, "node") if column.blast_radius else "nothing is"
            yield f"Blast radius: {below} below"

    def _pii(self, column: DescribedColumn) -> str:
        pii = column.pii
        assert pii is not None
        kind = text(pii.pii)
        if pii.origin == "declared":
            return f"{kind}, declared here"
        source = self._vertex((pii.source_id, pii.source_column))
        if pii.origin == "declassified":
            reason = text(pii.reason or "", 300)
            return f"none, although {kind} of {source} reaches it: {reason}"
        steps = len(pii.path) - 1
        return f"{kind}, inherited from {source} over {count(steps, 'step')}"

    # --- nodes -------------------------------------------------------------------------------------

    def of_node(self, node: DescribedNode, written: str) -> str:
        """The description of a node: what the project wrote, and below it what is known."""
        # A list ends, and a block of code may not, where the project's own text does.
        first = _closed(written.rstrip()) if written.strip() else ""
        # The site's search shows this raw: words, and no pictures or tables.
        begin = HEADING
        if node.resource_type not in _CONSUMERS:
            badges = badges_of_node(node, self._red_below)
            begin += f": {', '.join(map(_badge_text, badges))}"
        lines = [f"{name}: {value}" for name, value in self._node_rows(node)]
        own = "\n\n".join(part for part in (f"{begin}.", _items(lines)) if part)
        return "\n\n".join(part for part in (first, referenced(own, first)) if part)

    def badges(self, whose: str, badges: Sequence[Badge]) -> str:
        """Badges as pictures with their text, in one line."""
        return " ".join(
            f"![{badge.figure} {badge.text}](badges/{file_name(whose, badge)})" for badge in badges
        )

    def _node_rows(self, node: DescribedNode) -> Iterator[tuple[str, str]]:
        document = self._document
        if node.owner:
            yield "Owner", self._owner(node)
        criticality = [
            text(node.criticality) if node.criticality else None,
            "certified" if node.certified else None,
            "canonical" if node.canonical else None,
        ]
        if any(criticality):
            yield "Criticality", ", ".join(filter(None, criticality))
        if node.domain:
            yield "Domain", text(node.domain)
        if node.contract_version or node.contract_enforced or node.contract_versions:
            yield "Contract", self._contract(node)
        if pii := [column for column in node.columns if column.pii]:
            columns = [
                f"{link(c.name, node.unique_id, node.resource_type, 'columns')}: {self._pii(c)}"
                for c in pii
            ]
            yield "Personal data", _listed(columns, "; ")
        elif node.pii:
            yield "Personal data", "declared of the whole"
        if node.parents:
            yield "Comes from", self._nodes(node.parents)
        rows = document.links_into.get((node.unique_id, ROWS), ())
        if deciding := [one for one in rows if one.parent_column != ROWS]:
            yield "Which rows there are", f"decided by {self._links(deciding, 'parent')}"
        if node.children:
            yield "Feeds", self._nodes(node.children)
        if node.resource_type not in _CONSUMERS:
            yield "Blast radius", self._blast_radius(node)
        if node.status != "leaf" or node.reason:
            yield "Column lineage", _status(node)
        if node.tests:
            yield "Tests", self._tests(node.tests)
        if node.slos != type(node.slos)():
            yield "Service levels", _slos(node)
        if node.last_run or node.last_success:
            yield "Last success", _last_success(node)
        if node.freshness:
            loaded = _moment(node.freshness.max_loaded_at)
            yield "Freshness", f"{text(node.freshness.status)}, loaded until {loaded}"

    def _owner(self, node: DescribedNode) -> str:
        reached = [one for one in (node.owner_email, node.owner_channel) if one]
        name = node.owner_name or node.owner or ""
        others = [text(one) for one in reached if one != name]
        return text(name) + (f" ({', '.join(others)})" if others else "")

    def _contract(self, node: DescribedNode) -> str:
        line = f"version {text(node.contract_version)}" if node.contract_version else "no version"
        if node.contract_enforced:
            line += ", enforced"
        others = [self._version(version) for version in node.contract_versions]
        if len(others) > 1 or any(v.since or v.until for v in node.contract_versions):
            line += f". History: {_listed(others, '; ')}"
        return line

    def _version(self, version: ContractVersion) -> str:
        document = self._document
        name = text(version.version)
        if version.unique_id in document.nodes:
            node = document.nodes[version.unique_id]
            name = link(version.version, node.unique_id, node.resource_type)
        details = [
            f"since {_day(version.since)}" if version.since else None,
            f"until {_day(version.until)}" if version.until else None,
            "latest" if version.is_latest else None,
            f"deprecated from {text(version.deprecation_date.removesuffix(_MIDNIGHT))}"
            if version.deprecation_date
            else None,
        ]
        return f"{name} ({', '.join(filter(None, details))})" if any(details) else name

    def _blast_radius(self, node: DescribedNode) -> str:
        if not node.blast_radius:
            return "nothing is below"
        size = f"{count(node.blast_radius, 'node')} below"
        consumers = self._consumers.get(node.unique_id, ())
        return f"{size}, with {self._nodes(consumers)}" if consumers else size

    def _tests(self, unique_ids: Sequence[str]) -> str:
        tests = [self._document.tests[unique_id] for unique_id in unique_ids]
        ends = Counter(_ended(test) for test in tests)
        counts = ", ".join(f"{ends[end]} {end}" for end in _ENDS if ends[end])
        ordered = sorted(tests, key=lambda test: _ENDS.index(_ended(test)))
        names = [
            f"{link(test.name, test.unique_id, _kind(test))} ({_ended(test)}{_when(test)})"
            for test in ordered
        ]
        return f"{counts}: {_listed(names)}" if names else counts

    # --- the overview ------------------------------------------------------------------------------

    def overview(self, written: str) -> str:
        """The first page: the health of the project and its domains, and then what it was."""
        document = self._document
        health = document.health
        parts = [
            f"# {HEADING} of {text(document.name)}",
            self.badges(PROJECT, badges_of_health(health, self._red_below)),
            _rows(["Figure", "Now"], [list(row) for row in _health_rows(health)]),
        ]
        if document.domains:
            rows = [
                [
                    text(name),
                    self.badges(domain_id(name), badges_of_health(of_domain, self._red_below)),
                    f"{of_domain.covered_nodes} of {of_domain.nodes}",
                    f"{of_domain.unknown_downstreams}",
                ]
                for name, of_domain in document.domains.items()
            ]
            header = ["Domain", "Badges", "Nodes followed", "Readers unknown"]
            parts += ["## Domains", _rows(header, rows)]
        bad = sorted(
            (node for node in document.nodes.values() if node.status in ("opaque", "broken")),
            key=lambda node: (-node.blast_radius, node.unique_id),
        )
        if bad:
            lines = [f"{self._node(n.unique_id)} ({_status(n)})" for n in bad]
            parts += ["## Not followed", "\n".join(f"- {t}" for t in _cut(lines))]
        origin = f"artifacts of {_moment(document.generated_at)}"
        parts.append(f"*Made by dbt-ripple {document.ripple_version} of {origin}.*")
        return "\n\n".join([*(part for part in parts if part), "---", written])


PROJECT: Final = "project"
"""Whose badges the project's are, in the names of their files."""


def domain_id(name: str) -> str:
    """Whose badges those of a domain are, in the names of their files."""
    return f"domain.{name}"


def _label(node: DescribedNode) -> str:
    if node.resource_type in _CONSUMERS and node.label:
        return node.label
    if node.resource_type == "source":
        return ".".join(node.unique_id.split(".")[2:]) or node.name
    return node.name


_HOW: Final = {
    "IDENTITY": "as it is",
    "TRANSFORMATION": "computed",
    "AGGREGATION": "aggregated",
    "JOIN": "join",
    "FILTER": "filter",
    "GROUP_BY": "group by",
    "SORT": "sort",
    "WINDOW": "window",
    "CONDITIONAL": "condition",
}


def _how(one: Link) -> Iterator[str]:
    if one.may_read:
        yield "may read"
        return
    for kind in one.kinds:
        yield _HOW.get(kind.subtype, kind.subtype.lower()) + (", masked" if kind.masking else "")


def _listed(items: Sequence[str], between: str = ", ") -> str:
    return between.join(_cut(items))


def _cut(items: Sequence[str]) -> list[str]:
    if len(items) <= LISTED:
        return list(items)
    return [*items[:LISTED], f"and {len(items) - LISTED} more"]


def _closed(written: str) -> str:
    """The project's text, with a block of code closed that it leaves open."""
    for fence in ("```", "~~~"):
        lines = [one for one in written.splitlines() if one.lstrip().startswith(fence)]
        if len(lines) % 2:
            return f"{written}\n{fence}"
    return written


def _items(lines: Iterable[str]) -> str:
    return "\n".join(f"- {line}" for line in lines)


def _rows(header: list[str], rows: list[list[str]]) -> str:
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join(f"| {' | '.join(map(cell, one))} |" for one in lines)


def _status(node: DescribedNode) -> str:
    if node.status == "analysed":
        return "followed column by column"
    reason = f": {text(node.reason, 300)}" if node.reason else ""
    words = {"opaque": "not followed", "broken": "broken", "leaf": "has no query"}
    return f"{words[node.status]}{reason}"


def _slos(node: DescribedNode) -> str:
    slos = node.slos
    counts = [(slos.met, "met"), (slos.violated, "violated"), (slos.unknown, "unknown")]
    return ", ".join(f"{number} {word}" for number, word in counts if number)


def _last_success(node: DescribedNode) -> str:
    line = _moment(node.last_success) if node.last_success else "none in the runs at hand"
    run = node.last_run
    if run is not None and not run.succeeded:
        line += f"; the last run ({_moment(run.at)}) ended with {text(run.status)}"
    return line


_ENDS: Final = ("failed", "warned", "could not run", "not run", "without a known result", "passed")


def _ended(test: DescribedTest) -> str:
    status = test.last_run.status if test.last_run else None
    if status is None:
        return "without a known result"
    if status in ("skipped", "no-op", "reused"):
        return "not run"
    words = {"pass": "passed", "success": "passed", "fail": "failed", "warn": "warned"}
    return words.get(status, "could not run")


def _when(test: DescribedTest) -> str:
    at = test.last_run.at if test.last_run else None
    return f", {_day(at)}" if at and _ended(test) != "not run" else ""


def _kind(test: DescribedTest) -> str:
    return "unit_test" if test.kind == "unit_test" else "test"


def _moment(at: datetime | None) -> str:
    return "a time that is not known" if at is None else f"{as_utc(at):%Y-%m-%d %H:%M} UTC"


def _day(at: datetime | None) -> str:
    return "" if at is None else f"{as_utc(at):%Y-%m-%d}"


def _badge_text(badge: Badge) -> str:
    return f"{badge.figure} {text(badge.text)}{' (too low)' if badge.is_bad else ''}"


def _health_rows(health: Health) -> Iterator[tuple[str, str]]:
    yield (
        "Node coverage",
        f"{percent_or_unknown(health.node_coverage)} ({health.covered_nodes} of {health.nodes} nodes with a query)",
    )
    if health.tier1_nodes:
        nodes = f"{health.covered_tier1_nodes} of {health.tier1_nodes}"
        yield (
            "Tier-1 node coverage",
            f"{percent_or_unknown(health.tier1_node_coverage)} ({nodes} models)",
        )
        columns = f"{health.covered_tier1_columns} of {health.tier1_columns}"
        yield (
            "Tier-1 column coverage",
            f"{percent_or_unknown(health.tier1_column_coverage)} ({columns})",
        )
    yield "Relations whose readers are not all known", f"{health.unknown_downstreams}"
    if health.certified_nodes:
        whole = f"{health.complete_nodes} of {health.certified_nodes} certified nodes"
        yield (
            "Certified path integrity",
            f"{percent_or_unknown(health.certified_path_integrity)} ({whole})",
        )
    slos = health.slos
    if slos.met + slos.violated + slos.unknown:
        unknown = f", {slos.unknown} unknown" if slos.unknown else ""
        yield (
            "Service levels met",
            f"{percent_or_unknown(slos.share)} ({slos.met} of {slos.met + slos.violated}{unknown})",
        )
