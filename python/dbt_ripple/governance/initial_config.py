"""`gate --init`: a ripple.yml that suits the project, each rule with the reason for its level.

A rule blocks if the project declares what it is about and complies everywhere today, so nobody has
to clean up first; otherwise it warns. Owners are not required in a project without any owner.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from pathlib import Path
from statistics import quantiles
from textwrap import wrap
from typing import Final

from dbt_ripple.artifacts import (
    Node,
    Project,
    contract_version,
    criticality,
    has_pii,
    has_tested_key,
    is_canonical,
    is_public,
    owner,
)
from dbt_ripple.errors import RippleError
from dbt_ripple.governance.affected_assets import matters
from dbt_ripple.governance.checks import of_project
from dbt_ripple.governance.ripple_yml import FILE, REQUIRED, RULES_VAR, config_of_vars
from dbt_ripple.governance.rules import RULES, Level
from dbt_ripple.graph.lineage_tests import is_lineage_test
from dbt_ripple.graph.traversal import reach

_BUILT: Final = frozenset({"model", "seed", "snapshot"})
_HEAD: Final = """\
# The rules of `dbt-ripple gate`, as `gate --init` proposed them from what the
# project declares. Each is off, warn (CAUTION) or block (BLOCKED, exit 1); one
# that is not named here has its default.
"""
_EXCEPTIONS: Final = """\
# Findings that are accepted, each for a reason; or the path of a CSV file
# with these columns.
# exceptions:
#   - rule: pii_exposed
#     unique_id: exposure.shop.partner_feed
#     column_name: email        # left out: the whole node
#     reason: the partners are the customers themselves
"""


def write_config(project: Project, project_dir: Path) -> Path:
    """Write ``ripple.yml`` at the project's root.

    Raises:
        RippleError: there is one, or it cannot be written.
    """
    file = project_dir / FILE
    try:
        with file.open("x", encoding="utf-8") as opened:
            opened.write(proposed(project, _rules_in_vars(project_dir)))
    except FileExistsError:
        raise RippleError(
            "there is one already, and it is not overwritten",
            str(file),
            "move it away first, or edit it",
        ) from None
    except OSError as error:
        raise RippleError(
            f"cannot be written ({error.strerror})", str(file), "make the folder writable"
        ) from None
    return file


def _rules_in_vars(project_dir: Path) -> frozenset[str]:
    """The rules that dbt_project.yml has: each rule is written in one place."""
    config = config_of_vars(project_dir)
    if config is None:
        return frozenset()
    return frozenset({*config.levels, *config.above, *([REQUIRED] if config.required else [])})


def proposed(project: Project, left_out: Collection[str] = ()) -> str:
    """The text of such a file, without the rules that are written elsewhere."""
    lines = [_HEAD, "rules:"]
    for name, level, why in _levels(project):
        if name in left_out:
            lines.append(f"  # {name}: see the var {RULES_VAR} in dbt_project.yml")
            continue
        lines += wrap(
            f"{RULES[name].asks} {why}", 78, initial_indent="  # ", subsequent_indent="  # "
        )
        if name == "blast_radius":
            lines.append(f"  {name}: {{level: {level}, above: {_usual_reach(project)}}}")
        elif name == REQUIRED and level != "off":
            lines.append(f"  {name}: {{level: {level}, tier1: [owner]}}")
        else:
            lines.append(f"  {name}: {level}")
    return "\n".join(lines) + "\n\n" + _EXCEPTIONS


def _levels(project: Project) -> Iterator[tuple[str, Level, str]]:
    nodes = [node for node in project.nodes.values() if node.package_name == project.name]
    relations = [node for node in nodes if node.resource_type in _BUILT | {"source"}]
    public = sum(node.access == "public" for node in relations)
    enforced = sum(node.contract_enforced for node in relations)
    versions = sum(contract_version(node) is not None for node in relations)
    yield "policy_changed", "warn", "Who answers for the rules looks at it."
    promise = f"{public} public, {enforced} with an enforced contract, {versions} with a version."
    yield "column_removed", "block", f"Of {len(relations)} relations {promise}"
    yield "column_renamed", "block", ""
    yield "column_retyped", "block", ""
    yield (
        "column_redefined",
        "warn",
        "A definition that is mended is a redefinition: block it where consumers have to agree first.",
    )
    yield (
        "contract_version_without_migration",
        "block" if versions else "warn",
        f"{_of(versions, relations)} a contract_version, or are versions of a model.",
    )
    yield "promise_lowered", "warn", "Who relies on it hears of it."
    owned = [node for node in nodes if of_project(node, project)]
    having = sum(owner(node, project) is not None for node in owned)
    yield (
        "owner_missing",
        "off" if not having else "block" if having == len(owned) else "warn",
        f"{_of(having, owned)} an owner (a group's, or meta.owner).",
    )
    tier1 = [n for n in nodes if n.resource_type in _BUILT and _is_tier1(n)]
    tier1_owned = sum(owner(node, project) is not None for node in tier1)
    yield (
        "tags_required",
        "off" if not tier1 else "block" if tier1_owned == len(tier1) else "warn",
        f"{len(tier1)} of tier 1 (meta.criticality), {tier1_owned} of them with an owner."
        if tier1
        else "Nothing is of tier 1 (meta.criticality: tier1).",
    )
    yield "owner_removed", "block" if having else "warn", f"{_of(having, owned)} an owner."
    tested = sum(has_tested_key(node, project) for node in tier1)
    yield (
        "tier1_key_untested",
        "block" if tier1 and tested == len(tier1) else "warn",
        f"{len(tier1)} of tier 1 (meta.criticality), {tested} of them with a tested key."
        if tier1
        else "Nothing is of tier 1 (meta.criticality: tier1).",
    )
    personal = sum(has_pii(node) for node in relations)
    yield (
        "pii_untagged",
        "warn",
        f"{_of(personal, relations)} columns that are declared to hold personal data (meta.pii).",
    )
    exposures = [node for node in nodes if node.resource_type == "exposure"]
    shown = sum(is_public(node) for node in exposures)
    yield (
        "pii_exposed",
        "block" if personal and shown else "warn",
        f"{_of(shown, exposures, 'exposure')} said to be public (meta.public).",
    )
    yield "pii_tag_removed", "block" if personal else "warn", ""
    asked = sum(is_lineage_test(node) for node in nodes)
    yield "lineage_broken", "block", f"{asked} test{'' if asked == 1 else 's'} of lineage declared."
    yield "reader_broken", "block", "What is broken is certain."
    yield "syntax_error", "block", "Only what no engine takes for SQL is one."
    yield "unread_sql", "warn", "The engine may know more than is known here."
    yield "unjudged_code", "warn", "It is looked at by hand."
    metrics = sum(node.resource_type == "metric" for node in nodes)
    yield "semantic_removed", "warn", f"{metrics} metric{'' if metrics == 1 else 's'} declared."
    yield "duplicate_introduced", "warn", "A refactoring may have both for a while."
    canonical = sum(is_canonical(node) for node in relations)
    yield "canonical_bypassed", "warn", f"{_of(canonical, relations)} meta.canonical."
    yield (
        "blast_radius",
        "warn",
        f"Nine of ten relations have at most {_usual_reach(project)} readers, however far down.",
    )
    valued = sum(matters(node) for node in nodes)
    yield (
        "certified_reached",
        "warn",
        f"{_of(valued, nodes, 'node')} certified (meta.certified) or of tier 1.",
    )
    sources = sum(node.resource_type == "source" for node in nodes)
    yield "source_drift", "warn", f"{sources} source{'' if sources == 1 else 's'} declared."


def _is_tier1(node: Node) -> bool:
    return (criticality(node) or "").lower() == "tier1"


def _of(number: int, among: list[Node], what: str = "") -> str:
    if what:
        return f"{number} of {len(among)} {what}{'' if len(among) == 1 else 's'} {'is' if number == 1 else 'are'}"
    return f"{number} of {len(among)} {'has' if number == 1 else 'have'}"


def _usual_reach(project: Project) -> int:
    """How many assets nine of ten relations reach at most."""
    reached = [
        len(_below(project, node.unique_id))
        for node in project.nodes.values()
        if node.resource_type in _BUILT | {"source"} and node.package_name == project.name
    ]
    return round(quantiles(reached, n=10)[-1]) if len(reached) > 1 else 0


def _below(project: Project, unique_id: str) -> set[str]:
    apart = ("test", "unit_test", "operation", "analysis")
    nodes = project.nodes
    below = reach(unique_id, project.children, keep=lambda u: nodes[u].resource_type not in apart)
    return below.keys() - {unique_id}
