"""What CI must build: building is the check of what no fingerprint sees (rule 13).

Beyond the relations of which a vertex moved, these may have stopped to build:

* A relation that was edited and means the same: an engine may come to the operands of an AND in
  their new order, and an error in a CTE that nothing reads is an error all the same.
* What an edited ephemeral model is inlined into. It has no relation: its text is part of the query
  of every relation and test that refers to it, directly or through other ephemeral ones.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator

from dbt_ripple.artifacts import Project
from dbt_ripple.changes import Comparison
from dbt_ripple.changes.compiled import other_names, rename
from dbt_ripple.flow.names import dialect_of
from dbt_ripple.graph.jinja import normalised

BUILT = frozenset({"model", "seed", "snapshot"})
"""Resource types CI builds before it tests."""


def to_build(comparison: Comparison) -> list[str]:
    """The unique_ids of what CI must build, in head's order."""
    head = comparison.head
    if comparison.everything:
        return [u for u, node in head.nodes.items() if node.resource_type in BUILT]
    found = {*comparison.changed, *edited_alike(comparison)}
    for unique_id in list(found):
        if unique_id in head.nodes and head.nodes[unique_id].is_ephemeral:
            found |= inlined_by(head, unique_id)[0]
    return [u for u, n in head.nodes.items() if u in found and n.resource_type in BUILT]


def edited_alike(comparison: Comparison) -> list[str]:
    """The models and snapshots whose query was edited beyond its layout and means the same."""
    nodes, changed = comparison.head.nodes, comparison.changed
    return list(
        rewritten(
            comparison,
            (
                u
                for u in comparison.modified
                if u not in changed and nodes[u].resource_type in ("model", "snapshot")
            ),
        )
    )


def rewritten(comparison: Comparison, unique_ids: Iterable[str]) -> Iterator[str]:
    """Those of the nodes of head whose own query base has in other words, not only in other layout."""
    base, head = comparison.base, comparison.head
    names: dict[str, str] | None = None
    for unique_id in unique_ids:
        node, then = head.nodes[unique_id], base.nodes.get(unique_id)
        if then is None or not then.compiled_code or not node.compiled_code:
            continue
        if names is None:
            names = other_names(base, head)
        one, other = normalised(rename(then.compiled_code, names)), normalised(node.compiled_code)
        if one == other:
            continue
        # Here, because it takes its time and hardly any change comes here.
        from dbt_ripple.flow.written import same_words

        if not same_words(one, other, dialect_of(head.metadata.adapter_type)):
            yield unique_id


def edited_ephemerals(comparison: Comparison) -> list[str]:
    """The ephemeral models of head of which a vertex moved."""
    nodes = comparison.head.nodes
    return [u for u in comparison.changed if u in nodes and nodes[u].is_ephemeral]


def inlined_by(project: Project, ephemeral: str) -> tuple[set[str], set[str]]:
    """The relations, and the tests, whose queries hold the text of an ephemeral model."""
    relations: set[str] = set()
    tests: set[str] = set()
    seen = {ephemeral}
    ahead = [ephemeral]
    while ahead:
        for child in project.children.get(ahead.pop(), ()):
            if child in seen:
                continue
            seen.add(child)
            node = project.nodes[child]
            if node.resource_type == "test":
                tests.add(child)
            elif node.is_ephemeral:
                ahead.append(child)
            elif node.resource_type in BUILT:
                relations.add(child)
    return relations, tests


def only_tests_compile(comparison: Comparison, running: Collection[str]) -> dict[str, str]:
    """Tests that have to run because nothing else compiles an edited ephemeral model.

    Args:
        comparison: of base and head.
        running: the tests that are to run anyway.

    Returns:
        One test with its reason for each edited ephemeral model that no relation inlines and no
        test that runs.
    """
    head = comparison.head
    chosen: dict[str, str] = {}
    for ephemeral in edited_ephemerals(comparison):
        relations, tests = inlined_by(head, ephemeral)
        if relations or not tests or any(t in running or t in chosen for t in tests):
            continue
        first = next(u for u in head.nodes if u in tests)
        name = head.nodes[ephemeral].display_name
        chosen[first] = f"only tests inline {name}, which changed: one shows whether it compiles"
    return chosen
