"""The files of an evidence pack: a page, its data, a picture, the SQL, and OpenLineage events.

The same document gives the same bytes: no clock, no path of this machine, no order that changes.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Final

from msgspec import structs

from dbt_ripple.artifacts import Node, Project
from dbt_ripple.graph.lineage import Analysis
from dbt_ripple.graph.lineage_tables import ROWS
from dbt_ripple.pages.evidence_document import EvidenceDocument, EvidenceNode
from dbt_ripple.pages.gather_evidence import Lineage
from dbt_ripple.pages.html import page
from dbt_ripple.pages.lineage_svg import Arrow, Box, Flow, draw
from dbt_ripple.rendering.escaping import json_text
from dbt_ripple.rendering.output import SCHEMA_VERSION, count, plain
from dbt_ripple.rendering.page_documents import Absent

if TYPE_CHECKING:
    from dbt_ripple.openlineage.facets import ProjectFacets

EVENTS: Final = "openlineage.ndjson"
NEAREST: Final = 30
"""Nodes of a side, and tests, that the page lists; the rest is in evidence.json, which it says."""

_DRAWN: Final = 24
_STEPS_DRAWN: Final = 2
"""What the picture on the page shows: nodes of a side, and how far away; lineage.svg has all."""

_ROWS_DRAWN: Final = 12
_WITH_COLUMNS: Final = 12
MOST_COLUMNS: Final = 60
"""Columns of a node that the page lists."""

_PASSED: Final = ("pass", "success")
_FAILED: Final = ("fail", "error", "runtime error")
_HOLD_DATA: Final = frozenset({"source", "seed"})


def definition_files(project: Project, unique_ids: Iterable[str]) -> dict[str, str]:
    """The files for the SQL or Python of nodes, by unique_id; nodes without any have none.

    Names are of plain letters, whatever the nodes are called.
    """
    files = {}
    for unique_id in unique_ids:
        node = project.nodes.get(unique_id)
        if node is not None and definition(node):
            slug = re.sub("[^a-z0-9]+", "-", unique_id.lower()).strip("-")[:60] or "node"
            mark = hashlib.sha256(unique_id.encode("utf-8", "surrogatepass")).hexdigest()[:8]
            # What an assets file says of an asset is JSON (`graph.assets.declared_graph`).
            ending = "json" if node.resource_type == "asset" else "py" if node.is_python else "sql"
            files[unique_id] = f"definitions/{slug}-{mark}.{ending}"
    return files


def definition(node: Node) -> str:
    """The SQL that dbt runs, or else the code as it is written; empty where there is none."""
    return (None if node.is_python else node.compiled_code) or node.raw_code


def files_of(
    evidence: EvidenceDocument, lineage: Lineage, project: Project, events: str | None
) -> dict[str, bytes]:
    """The files of a pack, by path.

    Args:
        evidence: its document.
        lineage: of the same subject.
        project: with the SQL.
        events: OpenLineage events, one a line; None where there are none.
    """
    texts = {
        node.unique_id: definition(project.nodes[node.unique_id])
        for node in evidence.nodes
        if node.definition is not None
    }
    near = _near(evidence)
    files = {
        "index.html": page_of(evidence, picture_of(near, lineage), len(near.nodes), texts),
        "evidence.json": json_text({"schema_version": SCHEMA_VERSION, **plain(evidence)}) + "\n",
        "lineage.svg": picture_of(evidence, lineage),
        **{
            node.definition: texts[node.unique_id]
            for node in evidence.nodes
            if node.definition is not None
        },
    }
    if events is not None:
        files[EVENTS] = events
    return {name: text.encode("utf-8", "backslashreplace") for name, text in files.items()}


def _near(evidence: EvidenceDocument) -> EvidenceDocument:
    """The same with the nodes that a picture on a page has room for: the nearest of both sides."""
    sides: dict[str, list[EvidenceNode]] = {"upstream": [], "downstream": []}
    for node in evidence.nodes[1:]:
        if node.depth <= _STEPS_DRAWN:
            sides[node.side].append(node)
    nodes = [evidence.nodes[0], *(node for side in sides.values() for node in side[:_DRAWN])]
    return structs.replace(evidence, nodes=nodes)


def picture_of(evidence: EvidenceDocument, lineage: Lineage) -> str:
    """The lineage as SVG: nodes, and of a column's evidence the columns that belong to it."""
    by_column = lineage.columns is not None
    drawn = {node.unique_id for node in evidence.nodes}
    rows = {node.unique_id: _rows_of(node, lineage) if by_column else () for node in evidence.nodes}
    boxes = [
        Box(
            node.unique_id,
            node.name,
            " · ".join(filter(None, (node.resource_type.replace("_", " "), node.owner))),
            "root"
            if node.side == "root"
            else "reader"
            if node.side == "downstream"
            else "source"
            if node.resource_type in _HOLD_DATA
            else "model",
            rows=rows[node.unique_id][:_ROWS_DRAWN],
            more=max(len(rows[node.unique_id]) - _ROWS_DRAWN, 0),
            warning=node.status in ("opaque", "broken"),
        )
        for node in evidence.nodes
    ]
    arrows: dict[tuple[str, ...], Arrow] = {}
    for link in lineage.links:
        if not {link.parent_id, link.child_id} <= drawn:
            continue
        flow: Flow = "possible" if link.may_read else "value" if link.is_value else "rows"
        start, end = (link.parent_column, link.child_column) if by_column else (None, None)
        key = (link.parent_id, link.child_id, start or "", end or "")
        if key not in arrows or _STRENGTH[flow] > _STRENGTH[arrows[key].flow]:
            title = f"{_spoken(link.parent)} → {_spoken(link.child)}" if by_column else ""
            kinds = ", ".join(dict.fromkeys(f"{k.type} {k.subtype}" for k in link.kinds))
            arrows[key] = Arrow(
                link.parent_id,
                link.child_id,
                _ROWS_SHOWN if start == ROWS else start,
                _ROWS_SHOWN if end == ROWS else end,
                flow,
                f"{title}: {'may read' if link.may_read else kinds}" if by_column else "",
            )
    what = "what it comes from and who depends on it"
    return draw(boxes, arrows.values(), f"Lineage of {evidence.spoken}: {what}")


_STRENGTH: Final = {"possible": 0, "rows": 1, "value": 2}
_ROWS_SHOWN: Final = "(rows)"


def _spoken(vertex: tuple[str, str]) -> str:
    return f"{vertex[0]} {_ROWS_SHOWN if vertex[1] == ROWS else vertex[1]}"


def _rows_of(node: EvidenceNode, lineage: Lineage) -> tuple[str, ...]:
    part = (lineage.columns or {}).get(node.unique_id, set())
    named = [column.name for column in node.columns]
    others = sorted(part - {*named, ROWS})
    return (*((_ROWS_SHOWN,) if ROWS in part else ()), *named, *others)


def page_of(evidence: EvidenceDocument, picture: str, drawn: int, texts: Mapping[str, str]) -> str:
    """The page, which needs no other file to be read: the subject, and what is nearest to it.

    What it leaves out is in other files of the pack, and it says how much that is and where.

    Args:
        evidence: its document.
        picture: SVG.
        drawn: how many nodes it has.
        texts: the definitions, by unique_id.
    """
    from markupsafe import Markup

    root = evidence.nodes[0]
    upstream = [node for node in evidence.nodes if node.side == "upstream"]
    downstream = [node for node in evidence.nodes if node.side == "downstream"]
    # Where the data comes from is farthest away, and matters.
    holding = [node for node in upstream[NEAREST:] if node.resource_type in _HOLD_DATA][:NEAREST]
    listed = [root, *upstream[:NEAREST], *holding]
    with_columns = [
        node
        for node in ([root, *upstream] if evidence.column else [root])
        if node.columns or node.rows_come_from
    ][:_WITH_COLUMNS]
    status = {test.unique_id: test.status for test in evidence.tests}
    # What did not pass first, and of these the subject's own.
    own = set(root.tests)
    tests = sorted(
        evidence.tests, key=lambda test: (test.status in _PASSED, test.unique_id not in own)
    )
    counts = {
        "passed": sum(s in _PASSED for s in status.values()),
        "failed": sum(s in _FAILED for s in status.values()),
        "warned": sum(s == "warn" for s in status.values()),
    }
    counts["silent"] = len(status) - sum(counts.values())
    return page(
        "evidence.html.jinja",
        {
            "evidence": evidence,
            "root": root,
            "upstream": upstream,
            "downstream": downstream,
            "listed": listed,
            "readers": downstream[:NEAREST],
            "with_columns": with_columns,
            "most_columns": MOST_COLUMNS,
            "tests": tests[:NEAREST],
            "drawn": drawn,
            "unseen": sum(node.status in ("opaque", "broken") for node in upstream),
            "counts": counts,
            "passed_of": {
                node.unique_id: sum(status.get(test) in _PASSED for test in node.tests)
                for node in evidence.nodes
            },
            "contracts": [
                (node, one)
                for node in evidence.nodes
                if node.side != "downstream"
                for one in node.contract_versions
            ],
            "has_states": any(one.state is not None for one in evidence.artifacts),
            "anchors": {
                node.unique_id: f"n{i}" for i, node in enumerate([*listed, *downstream[:NEAREST]])
            },
            "names": {node.unique_id: node.name for node in evidence.nodes},
            "texts": texts,
            "picture": Markup(picture),
        },
    )


def events_of(
    project: Project,
    analysis: Analysis,
    unique_ids: Iterable[str],
    namespaces: tuple[str, str],
) -> tuple[str | None, list[Absent]]:
    """OpenLineage's static events of some nodes, one a line; None, and why, where there are none.

    They say nothing of the git repository that the project is in: what is checked out there now need
    not be what the artifacts were made of.

    Args:
        project: the artifacts.
        analysis: of them.
        unique_ids: of the nodes.
        namespaces: of the jobs and of the datasets.
    """
    what = "OpenLineage events"
    try:
        from openlineage.client.event_v2 import Job  # noqa: F401
    except ImportError:
        return None, [Absent(what=what, why="openlineage-python is not installed")]
    at = project.metadata.generated_at
    if at is None:
        return None, [Absent(what=what, why="the manifest does not say when it was written")]
    from dbt_ripple.openlineage.client import as_json
    from dbt_ripple.openlineage.column_lineage import LineageFinder
    from dbt_ripple.openlineage.dataset_names import DatasetNames
    from dbt_ripple.openlineage.run_events import static_events

    wanted = set(unique_ids)
    part = project.having(nodes={u: n for u, n in project.nodes.items() if u in wanted})
    read = wanted | {p for u in wanted for p in project.parents.get(u, ())}
    facets = _facets(part, analysis, DatasetNames(project, namespaces[1], None))
    lineage = LineageFinder(project, analysis, read)
    lines = [
        as_json(event) + "\n"
        for event in static_events(facets, lineage, namespace=namespaces[0], at=at)
    ]
    if not lines:
        return None, [Absent(what=what, why="no node of the lineage is a dataset or a job")]
    return "".join(lines), []


def _facets(project: Project, analysis: Analysis, names: object) -> ProjectFacets:
    from dbt_ripple.openlineage.facets import ProjectFacets

    class WithoutRepository(ProjectFacets):
        """Facets of what the artifacts say alone."""

        def place(self, node: Node | None) -> dict[str, object]:
            return {}

    return WithoutRepository(project, analysis, names, Path())  # type: ignore[arg-type]


def summary(evidence: EvidenceDocument) -> str:
    """What is in a pack, in one line."""
    up = sum(node.side == "upstream" for node in evidence.nodes)
    down = sum(node.side == "downstream" for node in evidence.nodes)
    passed = sum(test.status in _PASSED for test in evidence.tests)
    tests = count(len(evidence.tests), "test")
    return f"{evidence.spoken}: {up} upstream, {down} downstream, {passed} of {tests} passed"
