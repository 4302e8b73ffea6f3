"""What decided, and what to do next: one sentence each, made of the findings or of a hypothetical change."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from dbt_ripple.artifacts import Node
from dbt_ripple.governance.affected_assets import Affected
from dbt_ripple.governance.rules import RULES
from dbt_ripple.graph.semantic_references import SEMANTIC
from dbt_ripple.reasons import Reason, names_missing

if TYPE_CHECKING:
    from dbt_ripple.governance.gate import Finding
    from dbt_ripple.governance.hypothetical_changes import Change


def spoken(asset: Affected, node: Node) -> str:
    """An affected asset as people call it; of another project after its name and a dot."""
    return f"{asset.project}.{node.spoken_name}" if asset.project else node.spoken_name


def recommendation(
    node: Node,
    changes: Sequence[Change],
    affected: Sequence[Affected],
    nodes: Mapping[str, Node],
    broken: Sequence[str],
    missing: Mapping[str, Reason],
) -> str:
    """What to do before a change is made.

    Args:
        node: what would be changed.
        changes: what would be done to it.
        affected: what it reaches.
        nodes: these, by unique_id.
        broken: the readers that ask for what is not there any more, by unique_id.
        missing: why relations among them are broken.
    """
    names = {a.unique_id: spoken(a, nodes[a.unique_id]) for a in affected}
    semantic = node.resource_type in SEMANTIC
    if not affected and semantic:
        return (
            f"Nothing in the project reads what would change in {node.spoken_name}: ask who does from "
            "outside, dashboards and queries, before it goes."
        )
    kinds = {change.kind for change in changes}
    if kinds == {"add"}:
        return _before_adding(node, changes, affected, nodes, missing)
    if not affected:
        return f"Go ahead: nothing known reads what would change in {node.display_name}."
    direct = [
        names[a.unique_id]
        for a in affected
        if a.severity == "breaking"
        and (len(a.path) == 2 or nodes[a.unique_id].resource_type == "exposure")
    ]
    asking = {a.unique_id for a in affected} & set(broken)
    if asking and "remove" not in kinds:
        # Who says the name; what only hands it on with a `*` needs no edit.
        direct = [names[a.unique_id] for a in affected if a.unique_id in asking]
    others = (a.unique_id for a in affected if a.counts)
    readers = listed(direct or [names[u] for u in others])
    owners = listed(sorted({a.owner for a in affected if a.owner and a.counts}))
    tell = f", and tell {owners}" if owners else ""
    breaks = any(a.severity == "breaking" for a in affected)
    if "remove" in kinds and semantic:
        return (
            f"Move {readers} to what replaces {node.spoken_name}, and remove it when nothing reads it "
            f"any more, dashboards and queries included{tell}."
        )
    if "remove" in kinds:
        return (
            f"Give {node.display_name} a deprecation_date, move {readers} to what replaces it, and "
            f"remove it when nothing reads it any more{tell}."
        )
    if not breaks and kinds == {"retype"}:
        types = listed([f"{c.column} as {c.to}" for c in changes])
        return f"Build {readers} with {types} beside what is there and compare the values{tell}."
    if not breaks:
        return f"Look at {readers} before it is merged{tell}."
    steps = []
    if renames := [c for c in changes if c.kind == "rename"]:
        pairs = listed([f"{c.to} beside {c.column}" for c in renames])
        steps.append(f"add {pairs}")
    if retypes := [c for c in changes if c.kind == "retype"]:
        steps.append(
            f"cast {listed([c.column for c in retypes])} back where the old type is promised"
        )
    gone = listed([c.column for c in changes if c.kind in ("rename", "drop")])
    if gone:
        steps.append(f"move {readers} off {gone} one by one")
        steps.append(f"then drop {gone}")
    text = ", ".join(steps)
    return f"{text[:1].upper()}{text[1:]}{tell}."


def _before_adding(
    node: Node,
    changes: Sequence[Change],
    affected: Sequence[Affected],
    nodes: Mapping[str, Node],
    broken: Mapping[str, Reason],
) -> str:
    """What to do before columns are added: of each kind of harm, where it is done."""
    new = listed([change.column for change in changes])
    counts = [a for a in affected if a.counts]
    steps = [
        f"mend {spoken(a, nodes[a.unique_id])} ({', '.join(names_missing(broken[a.unique_id]))})"
        for a in counts
        if a.unique_id in broken
    ]
    names = {a.unique_id: spoken(a, nodes[a.unique_id]) for a in counts}
    # By their ids among all projects.
    passing = [(a.unique_id, nodes[a.unique_id]) for a in counts if a.unique_id not in broken]
    kinds: list[tuple[str, list[str]]] = [
        (f"add {new} to the contract of", [u for u, n in passing if n.contract_enforced]),
        (
            "set on_schema_change of",
            [u for u, n in passing if n.config.get("on_schema_change") == "fail"],
        ),
        (
            "expect a new version of every row in",
            [u for u, n in passing if n.config.get("check_cols") == "all"],
        ),
        ("look at", [u for u, n in passing if n.resource_type != "exposure"]),
    ]
    named: set[str] = set()
    for what, of in kinds:
        if unnamed := [names[u] for u in of if u not in named]:
            steps.append(f"{what} {listed(unnamed)}")
        named |= set(of)
    if required := [change.column for change in changes if change.required]:
        writes = f"what writes to {node.spoken_name}"
        steps.append(f"let {writes} fill {listed(required)} first, because a row needs it")
    if not steps:
        return f"Go ahead: nothing known says * over {node.display_name}, or {new} without a table."
    owners = listed(sorted({a.owner for a in counts if a.owner}))
    text = "; ".join(steps)
    return f"{text[:1].upper()}{text[1:]}{f'; and tell {owners}' if owners else ''}."


def listed(names: Sequence[str]) -> str:
    """A few names in a sentence."""
    if len(names) > 5:
        return f"{', '.join(names[:5])} and {len(names) - 5} more"
    return " and ".join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else names)


# --- what decided ----------------------------------------------------------------------------------


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
    noun, is_ = RULES[rule].counted or (rule.replace("_", " "), "")
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


def to_do(finding: Finding) -> str | None:
    """What to do about a finding; None where what is broken is mended where it is."""
    rule = RULES[finding.rule]
    if finding.level == "block" and rule.approval:
        return "somebody has to approve it (`--approved-by`)"
    return rule.to_do


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
            steps[to_do(finding) or "correct what is broken, or bring back what it reads"] = None
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
