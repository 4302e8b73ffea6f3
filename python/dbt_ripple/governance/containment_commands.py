"""What to do until a cause is fixed, as commands that dbt takes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from dbt_ripple.artifacts import Project, asset_type
from dbt_ripple.governance.at_hand import AtHand
from dbt_ripple.governance.incident_document import Commands, Containment, Impacted, Suspect
from dbt_ripple.graph.traversal import reach, reach_all

Words = Callable[[Sequence[str]], list[str]]
"""Writes nodes of the first project as words of dbt's ``--select``."""

NAMED: Final = 40
"""Nodes up to which a command names each one; above that it says it with dbt's graph operator."""

_BUILT: Final = frozenset({"model", "seed", "snapshot"})
_WRITTEN: Final = frozenset({"asset", "dataset", "source"})


def containment(
    known: AtHand, ranked: Sequence[Suspect], impacted: Sequence[Impacted], words: Words
) -> Containment:
    """What to leave out of the next run, what to build once the cause is fixed, and what shows that it is.

    Args:
        known: of the failure.
        ranked: the likely causes.
        impacted: what is below.
        words: names nodes for dbt.
    """
    own, project, root, is_test = known.own, known.project, known.root, known.is_test
    below = [i.unique_id for i in impacted]
    wrong = [u for u in known.about if _is_built(own, u)]
    if is_test and root.attached_node in wrong:
        wrong = [str(root.attached_node)]
    built_below = [u for u in below if _is_built(own, u)]
    pause = list(dict.fromkeys([*wrong, *built_below]))
    begin = next((s for s in ranked if s.ruled_out is None and _is_built(own, s.unique_id)), None)
    rebuild = pause
    if begin is not None and begin.unique_id not in pause:
        above = reach_all(pause, own.parents)
        between = [u for u in reach(begin.unique_id, own.children) if u in above]
        rebuild = [u for u in between if u in known.steps and _is_built(own, u) and u not in pause]
        rebuild = list(dict.fromkeys([begin.unique_id, *rebuild, *pause]))
    checks = [root.unique_id] if is_test and root.unique_id in own.nodes else []
    checks = checks or list(wrong[:1])
    # What passes on what is wrong, or writes it; who loads what is above has nothing to do with it.
    writers = project.parents.get(root.unique_id, []) if root.resource_type in _WRITTEN else []
    dags = [
        str(node.name)
        for u in dict.fromkeys([root.unique_id, *writers, *below])
        if (node := project.nodes.get(u)) is not None and asset_type(node) == "dag"
    ]
    return Containment(
        pause=_commands("build --exclude", pause, wrong, own, words),
        rebuild=_commands(
            "build --select", rebuild, rebuild[:1] if begin is not None else wrong, own, words
        ),
        check=_commands("test --select", checks, checks, own, words),
        dags=dags,
        elsewhere=[
            u for u in below if u in known.project_of and project.nodes[u].resource_type in _BUILT
        ],
    )


def _is_built(own: Project, unique_id: str) -> bool:
    node = own.nodes.get(unique_id)
    return node is not None and node.resource_type in _BUILT


def _commands(
    verb: str, nodes: Sequence[str], tops: Sequence[str], own: Project, words: Words
) -> Commands:
    """A command on nodes; on many of them it names the topmost, and says everything below."""
    if not nodes:
        return Commands(nodes=[], words=[], exact=True, command="")
    exact = len(nodes) <= NAMED
    named = words(list(nodes)) if exact else [f"{word}+" for word in words(list(tops))]
    return Commands(
        nodes=list(nodes), words=named, exact=exact, command=f"dbt {verb} {' '.join(named)}"
    )
