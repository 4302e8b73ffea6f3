"""What decided, and what to do next: one sentence each, made of the findings."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Final

from dbt_ripple.artifacts import Node
from dbt_ripple.governance.affected_assets import Affected
from dbt_ripple.governance.recommendations import listed, spoken
from dbt_ripple.governance.rules import RULES
from dbt_ripple.reasons import Reason

if TYPE_CHECKING:
    from dbt_ripple.governance.gate import Finding

_COUNTED: Final = {
    "column_removed": ("promised column", "removed"),
    "column_renamed": ("promised column", "renamed"),
    "column_retyped": ("promised column", "of another type"),
    "column_redefined": ("promised column", "redefined"),
    "contract_version_without_migration": ("contract version", "without a word on migration"),
    "owner_missing": ("node", "without an owner"),
    "owner_removed": ("node", "left without an owner"),
    "tier1_key_untested": ("tier-1 key", "untested"),
    "pii_untagged": ("untagged column", "with personal data"),
    "pii_exposed": ("public column", "with personal data"),
    "policy_changed": ("rule or exception", "changed"),
    "pii_tag_removed": ("column", "no longer tagged as personal data"),
    "unjudged_code": ("edit", "that is not judged in full"),
    "lineage_broken": ("column", "whose lineage is not what a test asks"),
    "reader_broken": ("reader", "broken"),
    "syntax_error": ("query", "with a syntax error"),
    "unread_sql": ("query", "that could not be read"),
    "semantic_removed": ("semantic-layer element", "removed or renamed"),
    "duplicate_introduced": ("column", "computed in two places"),
    "canonical_bypassed": ("reader", "past what is canonical"),
    "certified_reached": ("certified or tier-1 asset", "reached"),
    "source_drift": ("source column", "not as declared"),
}
"""How findings of a rule are counted in the headline."""

_CONTRACT: Final = (
    "leave it as it was, or raise the contract version and say in `meta.migration` how to migrate"
)
TO_DO: Final = {
    "column_removed": _CONTRACT,
    "column_renamed": _CONTRACT,
    "column_retyped": _CONTRACT,
    "column_redefined": _CONTRACT,
    "contract_version_without_migration": "say in `meta.migration` how to migrate",
    "owner_missing": "name an owner",
    "owner_removed": "name an owner",
    "tier1_key_untested": "test its key with `unique` and `not_null`",
    "pii_untagged": "tag it with `meta.pii`, or declassify it with a reason",
    "pii_exposed": "mask it, or take it out of what is public",
    "policy_changed": "let who answers for the rules look at it",
    "pii_tag_removed": "tag it again, or let who answers for personal data look at it",
    "unjudged_code": "look at it by hand",
    "lineage_broken": "compute it from what the test names, or change the test with who declared it",
    "syntax_error": "mend the SQL (`dbt compile` passes, because it does not parse it)",
    "unread_sql": "build it once: what it changes is only known roughly",
    "semantic_removed": "ask who queries it from outside, dashboards among them",
    "duplicate_introduced": "read the other model's column instead",
    "canonical_bypassed": "read the canonical model instead",
    "blast_radius": "look at what reads it",
    "certified_reached": "look at what reads it",
    "source_drift": "look at the source, and mend its declaration",
}
"""What to do about a finding of a rule; what is broken is mended where it is."""


def deciding(
    decision: str, findings: Sequence[Finding], named: Callable[[Finding], str | None] | None = None
) -> str:
    """The findings of the level that decided, counted by rule; empty where none is of that level.

    Args:
        decision: what they led to.
        findings: all of them.
        named: what a finding is about, where names are to be there, too.
    """
    grave = "block" if decision == "BLOCKED" else "warn"
    of_rule: dict[str, list[Finding]] = {}
    for finding in findings:
        if finding.level == grave:
            of_rule.setdefault(finding.rule, []).append(finding)
    # What breaks says the most.
    rules = [rule for rule in dict.fromkeys(["reader_broken", *of_rule]) if rule in of_rule]
    more = f" and {_number(len(rules) - 3, 'other rule')}" if len(rules) > 4 else ""
    parts = []
    for rule in rules[: 3 if more else 4]:
        names = dict.fromkeys(name for f in of_rule[rule] if named and (name := named(f)))
        about = f" ({listed([*names])})" if names else ""
        parts.append(f"{_counted(rule, len(of_rule[rule]))}{about}")
    return ", ".join(parts) + more


def _counted(rule: str, number: int) -> str:
    if rule == "blast_radius":
        return "what was not edited may differ"
    noun, is_ = _COUNTED.get(rule, (rule.replace("_", " "), ""))
    return f"{_number(number, noun)} {is_}".strip()


def _number(number: int, noun: str) -> str:
    several = f"{noun[:-1]}ies" if noun.endswith("ry") else f"{noun}s"
    return f"{number:,} {noun if number == 1 else several}"


def in_few_words(
    findings: Sequence[Finding], approved_by: str | None, shown: Callable[[str], str]
) -> str:
    """Why a change is approved."""
    if approved_by and any(finding.level == "approved" for finding in findings):
        return f"nothing breaks, and {shown(approved_by)} approved what it reaches"
    return "nothing breaks that is read or promised"


def to_do(finding: Finding) -> str:
    """What to do about a finding, whose rule is in `TO_DO`."""
    if finding.level == "block" and RULES[finding.rule].approval:
        return "somebody has to approve it (`--approved-by`)"
    return TO_DO[finding.rule]


def gate_reason(
    decision: str,
    findings: Sequence[Finding],
    approved_by: str | None,
    names: Callable[[str], str],
    affected: Sequence[Affected],
) -> str:
    """Why the gate decided so.

    Args:
        decision: what it decided.
        findings: of all levels.
        approved_by: who said yes to the reach.
        names: what a node is called, by unique_id.
        affected: what the change reaches.
    """

    def named(finding: Finding) -> str | None:
        if finding.unique_id is None:
            return listed([asset.full_name for asset in affected if asset.counts]) or None
        name = names(finding.unique_id)
        return f"{name}.{finding.column}" if finding.column else name

    text = deciding(decision, findings, named) or in_few_words(findings, approved_by, str)
    return f"{text[:1].upper()}{text[1:]}."


def gate_recommendation(decision: str, findings: Sequence[Finding]) -> str:
    """What to do next about a change that was judged."""
    if decision == "APPROVED":
        return "Merge it."
    grave = "block" if decision == "BLOCKED" else "warn"
    steps: dict[str, None] = {}
    for finding in findings:
        if finding.level == grave:
            mend = "correct what is broken, or bring back what it reads"
            steps[to_do(finding) if finding.rule in TO_DO else mend] = None
    text = "; ".join(steps).replace("`", "")
    return f"{text[:1].upper()}{text[1:]}."


def impact_reason(
    affected: Sequence[Affected],
    nodes: Mapping[str, Node],
    broken_tests: Sequence[str],
    promised: Sequence[Reason],
    *,
    later: bool,
) -> str:
    """Why a hypothetical change is judged so.

    Args:
        affected: what it reaches.
        nodes: these, by unique_id.
        broken_tests: the data tests that will not compile.
        promised: what would not be kept.
        later: whether nothing goes yet.
    """

    def those(severity: str) -> list[str]:
        return [spoken(a, nodes[a.unique_id]) for a in affected if a.severity == severity]

    parts = []
    if breaking := those("breaking"):
        references = dict.fromkeys(
            r for a in affected if a.severity == "breaking" for r in a.affected_references
        )
        what = listed(["its rows" if r == "*rows*" else r for r in references])
        reads = f" (what reads {what})" if what else ""
        parts.append(f"{listed(breaking)} would break{reads}")
    if differs := those("warning"):
        parts.append(
            f"{listed(differs)} {'reads' if len(differs) == 1 else 'read'} it"
            if later
            else f"{listed(differs)} may differ"
        )
    if broken_tests:
        parts.append(f"{_number(len(broken_tests), 'test')} will not compile")
    parts += [f"promised: {promise.message}" for promise in promised]
    return (
        f"{'; '.join(parts) or 'Nothing known reads what would change'}."  # a name begins as it is
    )
