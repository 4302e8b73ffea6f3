"""The gate's report for those who read it beside the code: a workflow, a code scanner; and a picture."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from dbt_ripple import __version__
from dbt_ripple.artifacts import Node, Project
from dbt_ripple.changes.gone import Unfound
from dbt_ripple.cli.gate import SHOWN, new_findings, subject
from dbt_ripple.cli.options import count
from dbt_ripple.cli.places import Place, Places, missing_names
from dbt_ripple.cli.shown import mermaid as quoted
from dbt_ripple.cli.shown import sarif_message, workflow_command
from dbt_ripple.governance.rules import RULES

if TYPE_CHECKING:
    from dbt_ripple.changes import Comparison
    from dbt_ripple.governance.affected import Affected
    from dbt_ripple.governance.gate import Finding, GateReport

_SARIF_LEVELS: Final = {"block": "error", "warn": "warning", "approved": "note", "known": "note"}
_GITHUB_LEVELS: Final = {"block": "error", "warn": "warning", "approved": "notice"}
_SHAPES: Final = {"TABLE": ("[(", ")]"), "DBT_MODEL": ("[", "]")}


def mermaid(affected: Iterable[Affected], head: Project, base: Project) -> Iterator[str]:
    """The ripple: where it began, and along which nodes it goes."""
    shown = list(affected)[:SHOWN]
    edges: dict[tuple[str, str], None] = {}
    severity = {asset.unique_id: asset.severity for asset in shown}
    for asset in shown:
        edges |= dict.fromkeys(zip(asset.path, asset.path[1:], strict=False))
    names = list(dict.fromkeys(name for asset in shown for name in asset.path))
    ids = {unique_id: f"n{number}" for number, unique_id in enumerate(names)}
    yield "flowchart LR"
    for unique_id in names:
        node = head.nodes.get(unique_id) or base.nodes.get(unique_id)
        name, kind = (node.display_name, _kind(node)) if node else (unique_id, "TABLE")
        opening, closing = _SHAPES.get(kind, ("([", "])"))
        style = severity.get(unique_id, "changed")
        yield f'  {ids[unique_id]}{opening}"{quoted(name)}"{closing}:::{style}'
    for parent, child in edges:
        yield f"  {ids[parent]} --> {ids[child]}"
    yield "  classDef changed stroke-width:4px"
    yield "  classDef breaking fill:#f8d7da,stroke:#b02a37,color:#58151c"
    yield "  classDef warning fill:#fff3cd,stroke:#997404,color:#332701"
    yield "  classDef info fill:#e2e3e5,stroke:#6c757d,color:#2b2f32"


def _kind(node: Node) -> str:
    from dbt_ripple.artifacts import asset_type

    return asset_type(node)


# --- annotations -----------------------------------------------------------------------------------


def github(report: GateReport, comparison: Comparison, project_dir: Path) -> Iterator[str]:
    """Workflow commands: each finding becomes an annotation of the line it is about."""
    head, base = comparison.head, comparison.base
    places, unfound = Places(head, base, project_dir), Unfound(comparison)
    for finding in new_findings(report):
        place = _place(finding, places, unfound)
        said = f"{subject(finding, head, base)}: {finding.message}"
        at: dict[str, str | int] = place._asdict() if place else {}
        yield workflow_command(_GITHUB_LEVELS[finding.level], said, **at, title=finding.rule)
    reach = f"risk {report.risk_level}, reaches {count(report.blast_radius, 'asset')}"
    level = {"APPROVED": "notice", "CAUTION": "warning", "BLOCKED": "error"}[report.decision]
    yield workflow_command(level, f"{report.decision}: {reach}", title="dbt-ripple gate")


def _place(finding: Finding, places: Places, unfound: Unfound) -> Place | None:
    missing = []
    if finding.rule == "reader_broken":
        missing = missing_names(finding.message)
        missing += [gone.column for gone in unfound.of(finding.unique_id or "")]
    return places.of(finding.unique_id, finding.column, finding.rule, missing)


# --- SARIF -----------------------------------------------------------------------------------------


def sarif(report: GateReport, comparison: Comparison, project_dir: Path) -> dict[str, Any]:
    """A log of SARIF 2.1.0, for code scanners."""
    head, base = comparison.head, comparison.base
    places, unfound = Places(head, base, project_dir), Unfound(comparison)
    names = list(RULES)
    project_file = (project_dir / "dbt_project.yml").as_posix()
    results = []
    for finding in report.findings:
        about = f"{finding.unique_id or ''}/{finding.column or ''}"
        place = _place(finding, places, unfound) or Place(project_file, 1)
        results.append(
            {
                "ruleId": finding.rule,
                "ruleIndex": names.index(finding.rule),
                "level": _SARIF_LEVELS[finding.level],
                "baselineState": "unchanged" if finding.level == "known" else "new",
                "message": {
                    "text": sarif_message(f"{subject(finding, head, base)}: {finding.message}")
                },
                "locations": [
                    {
                        "physicalLocation": {
                            "artifactLocation": {"uri": _uri(place.file)},
                            "region": {"startLine": place.line},
                        },
                        "logicalLocations": [{"fullyQualifiedName": about, "kind": "member"}],
                    }
                ],
                "partialFingerprints": {"finding/v1": f"{finding.rule}/{about}"},
            }
        )
    return {
        "$schema": "https://json.schemastore.org/sarif-2.1.0.json",
        "version": "2.1.0",
        "runs": [
            {
                "tool": {
                    "driver": {
                        "name": "dbt-ripple gate",
                        "semanticVersion": __version__,
                        "rules": [
                            {
                                "id": rule.name,
                                "shortDescription": {"text": rule.asks},
                                "help": {"text": f"{rule.asks} See {rule.page}."},
                                "defaultConfiguration": {
                                    "level": "warning" if rule.level == "warn" else "error"
                                },
                            }
                            for rule in RULES.values()
                        ],
                    }
                },
                "results": results,
                "properties": {
                    "decision": report.decision,
                    "risk_level": report.risk_level,
                    "approved_by": report.approved_by,
                },
            }
        ],
    }


def _uri(path: str) -> str:
    from urllib.parse import quote

    return quote(path, errors="surrogateescape")
