"""The gate's report as GitHub annotations, as SARIF and as a picture."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from dbt_ripple import __version__
from dbt_ripple.artifacts import Node, Project
from dbt_ripple.changes.gone import Unfound
from dbt_ripple.cli.diff import name_of
from dbt_ripple.cli.gate import SHOWN, new_findings, subject
from dbt_ripple.cli.options import count
from dbt_ripple.cli.places import Place, Places
from dbt_ripple.cli.shown import mermaid as quoted
from dbt_ripple.cli.shown import sarif_message, workflow_command
from dbt_ripple.governance.rules import RULES
from dbt_ripple.reasons import names_missing

if TYPE_CHECKING:
    from dbt_ripple.cli.gate import Said
    from dbt_ripple.governance.affected import Affected
    from dbt_ripple.governance.gate import Finding

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


def github(said: Said, project_dir: Path) -> Iterator[str]:
    """Workflow commands: each finding becomes an annotation of the line it is about.

    So does each test that failed and each model that could not be built. Of the tests that passed, or
    were not run, the number is said: GitHub shows ten annotations of a kind and drops the others.
    """
    report, head, base = said.report, said.head, said.base
    places, unfound = Places(head, base, project_dir), Unfound(said.comparison)
    for finding in new_findings(report):
        place = _place(finding, places, unfound)
        at: dict[str, str | int] = place._asdict() if place else {}
        message = f"{subject(finding, head, base)}: {finding.reason.message}"
        yield workflow_command(_GITHUB_LEVELS[finding.level], message, **at, title=finding.rule)
    for failure in _failures(said):
        place = places.of(failure.unique_id)
        at = place._asdict() if place else {}
        yield workflow_command(failure.level, failure.message, **at, title=failure.rule)
    if (tests := _of_tests(said)) is not None:
        failed = said.ran is not None and said.ran.failed
        yield workflow_command("error" if failed else "notice", tests, title="dbt-ripple select")
    reach = f"risk {report.risk_level}, reaches {count(report.blast_radius, 'asset')}"
    level = {"APPROVED": "notice", "CAUTION": "warning", "BLOCKED": "error"}[report.decision]
    yield workflow_command(level, f"{report.decision}: {reach}", title="dbt-ripple gate")


class _Failure(NamedTuple):
    unique_id: str
    rule: str
    level: str
    message: str


_FAILED: Final = {
    "test_failed": "A test that the change can break passes.",
    "build_failed": "What the change affects can be built.",
}
"""What is asked of what was run (``--run``); the rules of the gate are about definitions."""


def _failures(said: Said) -> Iterator[_Failure]:
    """What was run and did not pass; what dbt skipped stands below one of these."""
    from dbt_ripple.cli.run_selection import PASSED

    if said.ran is None:
        return
    for unique_id, status in said.ran.statuses.items():
        if status in PASSED or status == "skipped":
            continue
        node = said.head.nodes.get(unique_id)
        is_test = node is None or node.resource_type in ("test", "unit_test")
        told = " ".join(said.ran.messages.get(unique_id, "").split())
        yield _Failure(
            unique_id,
            "test_failed" if is_test else "build_failed",
            "warning" if status == "warn" else "error",
            f"{name_of(unique_id, said.head, said.base)}: {status}{': ' if told else ''}{told}",
        )


def _of_tests(said: Said) -> str | None:
    """How many tests there are to run, or what they said."""
    from dbt_ripple.cli.comment import run_in_short
    from dbt_ripple.cli.select import headline

    if said.selection is None:
        return None
    return headline(said.selection) if said.ran is None else run_in_short(said.selection, said.ran)


_PLAIN: Final = re.compile(r"[\w.]+")


def _place(finding: Finding, places: Places, unfound: Unfound) -> Place | None:
    missing = []
    if finding.rule == "reader_broken":
        missing = [n for n in names_missing(finding.reason) if _PLAIN.fullmatch(n)]
        missing += [gone.column for gone in unfound.of(finding.unique_id or "")]
    return places.of(finding.unique_id, finding.column, finding.rule, missing)


# --- SARIF -----------------------------------------------------------------------------------------


def sarif(said: Said, project_dir: Path) -> dict[str, Any]:
    """A log of SARIF 2.1.0, for code scanners.

    What was run and failed is a result, too; the tests to run, and what each said, are properties of
    the run.
    """
    report, head, base = said.report, said.head, said.base
    places, unfound = Places(head, base, project_dir), Unfound(said.comparison)
    rules = {rule.name: (rule.asks, rule.level, f" See {rule.page}.") for rule in RULES.values()}
    if said.ran is not None:
        rules |= {name: (asks, "block", "") for name, asks in _FAILED.items()}
    names = list(rules)
    project_file = (project_dir / "dbt_project.yml").as_posix()
    results = []
    for finding in report.findings:
        about = f"{finding.unique_id or ''}/{finding.column or ''}"
        place = _place(finding, places, unfound) or Place(project_file, 1)
        results.append(
            {
                **_result(names, finding.rule, _SARIF_LEVELS[finding.level], place, about),
                "baselineState": "unchanged" if finding.level == "known" else "new",
                "message": {
                    "text": sarif_message(
                        f"{subject(finding, head, base)}: {finding.reason.message}"
                    )
                },
            }
        )
    for failure in _failures(said):
        place = places.of(failure.unique_id) or Place(project_file, 1)
        results.append(
            {
                **_result(names, failure.rule, failure.level, place, f"{failure.unique_id}/"),
                "message": {"text": sarif_message(failure.message)},
            }
        )
    properties: dict[str, Any] = {
        "decision": report.decision,
        "risk_level": report.risk_level,
        "approved_by": report.approved_by,
    }
    if said.selection is not None:
        properties["tests"] = [test.unique_id for test in said.selection.tests]
        properties["unit_tests"] = said.selection.unit_tests
        properties["models"] = said.selection.models
    if said.ran is not None:
        properties["results"] = said.ran.statuses
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
                                "id": name,
                                "shortDescription": {"text": asks},
                                "help": {"text": asks + more},
                                "defaultConfiguration": {
                                    "level": "warning" if level == "warn" else "error"
                                },
                            }
                            for name, (asks, level, more) in rules.items()
                        ],
                    }
                },
                "results": results,
                "properties": properties,
            }
        ],
    }


def _result(names: list[str], rule: str, level: str, place: Place, about: str) -> dict[str, Any]:
    """What every result of SARIF has: its rule, where it stands and what it is about."""
    return {
        "ruleId": rule,
        "ruleIndex": names.index(rule),
        "level": level,
        "locations": [
            {
                "physicalLocation": {
                    "artifactLocation": {"uri": _uri(place.file)},
                    "region": {"startLine": place.line},
                },
                "logicalLocations": [{"fullyQualifiedName": about, "kind": "member"}],
            }
        ],
        "partialFingerprints": {"finding/v1": f"{rule}/{about}"},
    }


def _uri(path: str) -> str:
    from urllib.parse import quote

    return quote(path, errors="surrogateescape")
