"""What the explorer's page says of a change: what is changed, impacted, broken, and where it stops.

Made of the answers of ``diff`` and ``select``; nothing is compared here.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass, field
from typing import Any, Final, Literal

import msgspec

from dbt_ripple.changes.comparison import Comparison
from dbt_ripple.changes.diff import Diff, NodeDiff
from dbt_ripple.pages.project_document import DescribedNode, Link, ProjectDocument
from dbt_ripple.reasons import Reason
from dbt_ripple.rendering.diff import Edits
from dbt_ripple.selection.result import Selection

State = Literal["added", "changed", "impacted", "broken", "stopped", "removed"]
"""What a change means to a node.

* ``added``, ``removed``: only head has it, only base has it;
* ``changed``: it differs by itself;
* ``impacted``: it differs, or may, by what it reads;
* ``broken``: it cannot be built any more;
* ``stopped``: it reads something that differs, or is edited, and is the same as before.
"""


class NodeState(msgspec.Struct, kw_only=True):
    """What the page says of one node in a change.

    Attributes:
        why: one sentence.
        difference: column by column, as `diff` says it.
        run: the tests of it that the change can break, each with the reason; ``proven`` and
            ``blocked`` are those that need not or cannot run.
    """

    unique_id: str
    state: State
    why: str
    difference: NodeDiff | None = None
    run: dict[str, str] = {}
    proven: dict[str, str] = {}
    blocked: dict[str, str] = {}


@dataclass
class Compared:
    """A change, as the page shows it.

    Attributes:
        base: what head is compared with, in a few words.
        states: of each node that the change means something to.
        removed: the nodes that only base has, and ``removed_links`` what they fed and were fed by.
    """

    base: str
    states: dict[str, NodeState]
    counts: dict[str, int]
    notes: list[Reason]
    removed: dict[str, DescribedNode] = field(default_factory=dict)
    removed_links: list[Link] = field(default_factory=list)

    def columns(self) -> Iterator[tuple[str, str]]:
        """The columns that the change names, those that are gone among them."""
        for unique_id, state in self.states.items():
            for column in state.difference.columns if state.difference else ():
                yield unique_id, column.name

    @property
    def document(self) -> dict[str, Any]:
        """As the page reads it."""
        return {
            "base": self.base,
            "states": list(self.states.values()),
            "counts": self.counts,
            "notes": [note.message for note in self.notes],
        }


def compared(
    comparison: Comparison,
    difference: Diff,
    selection: Selection,
    document: ProjectDocument,
    base: str,
    describe_base: Callable[[], ProjectDocument],
) -> Compared:
    """What the page says of a change.

    Args:
        comparison: of base and head, with their declared assets.
        difference: of it.
        selection: the tests that it can break.
        document: of head.
        base: what head is compared with, in a few words.
        describe_base: the document of base; asked where base has nodes that head has not.
    """
    states: dict[str, NodeState] = {}
    differing = {node.unique_id: node for node in difference.nodes}
    impacted = [*selection.exposures]
    if selection.assets is not msgspec.UNSET:
        impacted += selection.assets
    edits = Edits(difference, comparison.head)
    for node in difference.nodes:
        if node.change != "removed":
            states[node.unique_id] = _differing(node, edits)
    for unique_id in impacted:
        if unique_id in document.nodes and unique_id not in states:
            why = "It reads something that differs."
            states[unique_id] = NodeState(unique_id=unique_id, state="impacted", why=why)
    for broken in difference.broken:
        if broken.unique_id in document.nodes:
            states[broken.unique_id] = NodeState(
                unique_id=broken.unique_id,
                state="broken",
                why=broken.reason.message,
                difference=differing.get(broken.unique_id),
            )
    for unique_id, rules in comparison.reworded.items():
        if unique_id in document.nodes and unique_id not in states and rules:
            why = f"It is edited and means the same: {', '.join(rules)}."
            states[unique_id] = NodeState(unique_id=unique_id, state="stopped", why=why)
    judged = {*comparison.head_analysis.nodes, *_of_type(document, "exposure")}
    if selection.assets is not msgspec.UNSET:
        judged |= _of_type(document, "asset")
    _stopped(states, document, judged)
    _tests(states, selection, document)
    notes = [*comparison.everything, *difference.notes]
    result = Compared(base, states, {}, notes)
    gone = [node.unique_id for node in difference.nodes if node.change == "removed"]
    if gone:
        _removed(result, gone, document, describe_base())
    for state in result.states.values():
        result.counts[state.state] = result.counts.get(state.state, 0) + 1
    result.counts |= {
        # As `select` counts them: data tests, and beside them unit tests.
        "tests_to_run": selection.counts.impacted_tests,
        "unit_tests_to_run": len(selection.unit_tests),
        "tests_proven": selection.counts.proven_tests,
        "tests_blocked": selection.counts.blocked_tests,
        "tests": selection.counts.all_tests,
    }
    return result


_EDITED: Final = 3
"""How many edits are told of a node."""


def _differing(node: NodeDiff, edits: Edits) -> NodeState:
    state: State = "added" if node.change == "added" else "changed"
    why = "It is new." if state == "added" else "It differs."
    if state == "changed" and (edited := edits.of(node.unique_id)):
        more = [f"and {len(edited) - _EDITED:,} more"] if len(edited) > _EDITED else []
        why = f"Edited: {'; '.join([*edited[:_EDITED], *more])}."
    if node.change == "downstream":
        state, why = "impacted", "It reads something that differs."
    return NodeState(unique_id=node.unique_id, state=state, why=why, difference=node)


def _of_type(document: ProjectDocument, resource_type: str) -> set[str]:
    """The nodes of a type."""
    return {u for u, node in document.nodes.items() if node.resource_type == resource_type}


def _stopped(
    states: dict[str, NodeState], document: ProjectDocument, judged: Collection[str]
) -> None:
    """What reads a node that differs, and does not differ itself: the change goes no further.

    Only what was judged: of a hook or an analysis nobody decided that it is the same.
    """
    reached = [unique_id for unique_id, state in states.items() if state.state != "stopped"]
    for unique_id in reached:
        name = document.nodes[unique_id].name
        for child in document.nodes[unique_id].children:
            if child in judged and child not in states and child in document.nodes:
                why = f"It reads {name}, but nothing of it that differs."
                states[child] = NodeState(unique_id=child, state="stopped", why=why)


def _tests(states: dict[str, NodeState], selection: Selection, document: ProjectDocument) -> None:
    tested: dict[str, list[str]] = {}
    for unique_id, node in document.nodes.items():
        for test in node.tests:
            tested.setdefault(test, []).append(unique_id)
    whys = {test.unique_id: ("run", test.reason.message) for test in selection.tests}
    whys |= dict.fromkeys(
        selection.unit_tests, ("run", "The model it tests, or what that reads, differs.")
    )
    whys |= {test.unique_id: ("proven", test.reason.message) for test in selection.proven}
    whys |= {test.unique_id: ("blocked", test.reason.message) for test in selection.blocked}
    for test_id, (kind, why) in whys.items():
        for unique_id in tested.get(test_id, ()):
            if unique_id in states:
                getattr(states[unique_id], kind)[test_id] = why


def _removed(
    result: Compared, gone: list[str], document: ProjectDocument, base: ProjectDocument
) -> None:
    result.removed = {u: base.nodes[u] for u in gone if u in base.nodes}
    for unique_id in result.removed:
        why = "Base has it, and head has not."
        result.states[unique_id] = NodeState(unique_id=unique_id, state="removed", why=why)
    there = document.nodes.keys() | result.removed.keys()
    result.removed_links = [
        link
        for link in base.links
        if (link.parent_id in result.removed or link.child_id in result.removed)
        and link.parent_id in there
        and link.child_id in there
    ]
