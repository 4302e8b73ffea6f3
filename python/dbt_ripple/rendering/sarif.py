"""The gate's report as SARIF 2.1.0, for code scanners."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from dbt_ripple import __version__
from dbt_ripple.artifacts.source_locations import FileLine, Places
from dbt_ripple.governance.rules import RULES
from dbt_ripple.rendering.escaping import sarif_message
from dbt_ripple.rendering.findings import RUN_RULES, failures, place_of, subject

if TYPE_CHECKING:
    from dbt_ripple.governance.gate import GateAnswer


_SARIF_LEVELS: Final = {"block": "error", "warn": "warning", "approved": "note", "known": "note"}


def sarif(gate_answer: GateAnswer, project_dir: Path) -> dict[str, Any]:
    """A log of SARIF 2.1.0, for code scanners.

    What was run and failed is a result, too; the tests to run, and the result of each, are properties of
    the run.
    """
    report, head, base = gate_answer.report, gate_answer.head, gate_answer.base
    places = Places(head, base, project_dir)
    rules = {rule.name: (rule.asks, rule.level, f" See {rule.page}.") for rule in RULES.values()}
    if gate_answer.ran is not None:
        rules |= {name: (asks, "block", "") for name, asks in RUN_RULES.items()}
    names = list(rules)
    project_file = (project_dir / "dbt_project.yml").as_posix()
    results = []
    for finding in report.findings:
        about = f"{finding.unique_id or ''}/{finding.column or ''}"
        place = place_of(finding, places, gate_answer) or FileLine(project_file, 1)
        results.append(
            {
                **_result(names, finding.rule, _SARIF_LEVELS[finding.level], place, about),
                "baselineState": "unchanged" if finding.level == "known" else "new",
                "message": {
                    "text": sarif_message(
                        f"{subject(finding, gate_answer.shown, base)}: {finding.reason.message}"
                    )
                },
            }
        )
    for failure in failures(gate_answer):
        place = places.of(failure.unique_id) or FileLine(project_file, 1)
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
    if gate_answer.selection is not None:
        properties["tests"] = [test.unique_id for test in gate_answer.selection.tests]
        properties["unit_tests"] = gate_answer.selection.unit_tests
        properties["models"] = gate_answer.selection.models
    if gate_answer.ran is not None:
        properties["results"] = gate_answer.ran.statuses
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


def _result(names: list[str], rule: str, level: str, place: FileLine, about: str) -> dict[str, Any]:
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
