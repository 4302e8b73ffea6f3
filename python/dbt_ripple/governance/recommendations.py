"""What to do before a hypothetical change is made, in one sentence."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from dbt_ripple.artifacts import Node
from dbt_ripple.governance.affected_assets import Affected
from dbt_ripple.graph.semantic_references import SEMANTIC
from dbt_ripple.reasons import Reason, names_missing

if TYPE_CHECKING:
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
