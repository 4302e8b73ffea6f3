"""The gate's report for those who read it elsewhere: a pull request, a workflow, a code scanner."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from dbt_ripple import __version__
from dbt_ripple.artifacts import Node, Project
from dbt_ripple.cli.gate import SHOWN, known_findings, new_findings, subject
from dbt_ripple.cli.options import count
from dbt_ripple.cli.shown import code, prose, sarif_message, workflow_command
from dbt_ripple.cli.shown import mermaid as quoted
from dbt_ripple.governance.rules import RULES

if TYPE_CHECKING:
    from dbt_ripple.governance.affected import Affected
    from dbt_ripple.governance.gate import Finding, GateReport

MARKER: Final = "<!-- dbt-ripple gate -->"
"""First line of the comment: who posts the next one looks for it, and replaces the comment."""

_ICONS: Final = {"APPROVED": "✅", "CAUTION": "⚠️", "BLOCKED": "⛔"}
_SARIF_LEVELS: Final = {"block": "error", "warn": "warning", "approved": "note", "known": "note"}
_GITHUB_LEVELS: Final = {"block": "error", "warn": "warning", "approved": "notice"}
_SHAPES: Final = {"TABLE": ("[(", ")]"), "DBT_MODEL": ("[", "]")}


# --- a comment -------------------------------------------------------------------------------------


def markdown(report: GateReport, head: Project, base: Project, _project_dir: Path) -> Iterator[str]:
    """A comment for a pull request."""
    yield MARKER
    icon = _ICONS[report.decision]
    yield f"### {icon} {report.decision}: risk {report.risk_level}, reaches {count(report.blast_radius, 'asset')}"
    yield ""
    if findings := new_findings(report):
        yield "| | rule | where | what |"
        yield "| --- | --- | --- | --- |"
        for finding in findings:
            where = code(subject(finding, head, base))
            yield f"| {finding.level} | `{finding.rule}` | {where} | {prose(finding.message)} |"
    else:
        yield "No rule has anything to say of this change."
    if known := known_findings(report):
        yield ""
        yield f"Already so on base, and not touched: {known}."
    if report.affected:
        yield ""
        yield "```mermaid"
        yield from mermaid(report.affected, head, base)
        yield "```"
        yield ""
        yield from affected_table(report.affected)
        owners = sorted({asset.owner for asset in report.affected if asset.owner})
        if owners:
            yield ""
            yield f"To tell: {prose(', '.join(owners))}."
    if report.opaque:
        yield ""
        yield "Not seen through, and so taken as changed:"
        yield ""
        yield from (f"- {code(u)}: {prose(said)}" for u, said in report.opaque.items())
    if report.notes:
        yield ""
        yield from (f"- {prose(note)}" for note in report.notes)


def affected_table(affected: list[Affected]) -> Iterator[str]:
    """The assets a change reaches, as a table."""
    yield "| severity | asset | reads | owner |"
    yield "| --- | --- | --- | --- |"
    for asset in affected[:SHOWN]:
        reads = ", ".join(map(code, asset.affected_references))
        yield (
            f"| {asset.severity} | {code(asset.name)} ({asset.asset_type}) | {reads} "
            f"| {prose(asset.owner or '')} |"
        )
    if len(affected) > SHOWN:
        yield f"| | and {len(affected) - SHOWN:,} more | | |"


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


def github(report: GateReport, head: Project, base: Project, project_dir: Path) -> Iterator[str]:
    """Workflow commands: each finding becomes an annotation of the file it is about."""
    for finding in new_findings(report):
        file = _file(finding, head, base, project_dir)
        said = f"{subject(finding, head, base)}: {finding.message}"
        at: dict[str, str | int] = {"file": file, "line": 1} if file else {}
        yield workflow_command(_GITHUB_LEVELS[finding.level], said, **at, title=finding.rule)
    reach = f"risk {report.risk_level}, reaches {count(report.blast_radius, 'asset')}"
    level = {"APPROVED": "notice", "CAUTION": "warning", "BLOCKED": "error"}[report.decision]
    yield workflow_command(level, f"{report.decision}: {reach}", title="dbt-ripple gate")


def _file(finding: Finding, head: Project, base: Project, project_dir: Path) -> str | None:
    """The file a finding is about, from where the command was called."""
    unique_id = finding.unique_id
    node = None if unique_id is None else head.nodes.get(unique_id) or base.nodes.get(unique_id)
    if node is None or node.package_name != head.name or not node.original_file_path:
        return None
    path = project_dir / node.original_file_path
    try:
        return path.resolve().relative_to(Path.cwd()).as_posix()
    except ValueError:
        return path.as_posix()


# --- SARIF -----------------------------------------------------------------------------------------


def sarif(report: GateReport, head: Project, base: Project, project_dir: Path) -> dict[str, Any]:
    """A log of SARIF 2.1.0, for code scanners."""
    names = list(RULES)
    project_file = (project_dir / "dbt_project.yml").as_posix()
    results = []
    for finding in report.findings:
        about = f"{finding.unique_id or ''}/{finding.column or ''}"
        file = _file(finding, head, base, project_dir) or project_file
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
                            "artifactLocation": {"uri": _uri(file)},
                            "region": {"startLine": 1},
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
