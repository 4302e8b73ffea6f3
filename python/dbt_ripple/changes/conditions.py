"""Whether two manifests can be compared at all, and what besides the code differs between them."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from dbt_ripple.artifacts import Project
from dbt_ripple.artifacts.model import CUSTOM_ENVIRONMENT
from dbt_ripple.errors import RippleError
from dbt_ripple.graph.hooks import Hook
from dbt_ripple.graph.macros import ANY, Macros, environment_in, project_hooks
from dbt_ripple.graph.settings import Settings


def check(base: Project, head: Project) -> list[str]:
    """Notes on what differs besides the code.

    Raises:
        RippleError: base is another project's, or of another kind of warehouse.
    """
    before, now = base.metadata, head.metadata
    where = base.target_path
    if before.project_name and now.project_name and before.project_name != now.project_name:
        raise RippleError(
            f"holds the artifacts of project {before.project_name}, not of {now.project_name}",
            where,
            "give the artifacts of this project's deployed state: `dbt docs generate "
            "--target-path DIR` on its commit makes them",
        )
    if before.adapter_type and now.adapter_type and before.adapter_type != now.adapter_type:
        raise RippleError(
            f"was made on {before.adapter_type} and the project's artifacts on {now.adapter_type}, "
            "which compile to different SQL",
            where,
            f"make one of them anew: `dbt docs generate --target TARGET_ON_{now.adapter_type}`",
        )
    notes: list[str] = []
    if before.dbt_version != now.dbt_version and before.dbt_version and now.dbt_version:
        notes.append(
            f"base was made by dbt {before.dbt_version}, head by dbt {now.dbt_version}: what dbt's "
            "own macros do may differ, and is not compared"
        )
    return [*notes, *_unseen_variables(base, head)]


def _unseen_variables(base: Project, head: Project) -> list[str]:
    """Where a changed var or environment variable would not be seen: in what is not compiled."""
    vars_known = base.variables is not None and head.variables is not None
    environment_known = base.same_environment and head.same_environment
    if vars_known and environment_known:
        return []
    settings = Settings(head, Macros(head))
    with_vars: dict[str, None] = {}
    with_environment: dict[str, None] = {}
    for node in head.nodes.values():
        names, of_environment = settings.unseen_variables(node)
        if names and not vars_known:
            with_vars[node.display_name] = None
        unknown = {n for n in of_environment if not n.startswith(CUSTOM_ENVIRONMENT)}
        if unknown and not environment_known:
            with_environment[node.display_name] = None
    notes = []
    if with_vars:
        notes.append(
            "dbt writes no vars into its artifacts: what hooks and branches that are not compiled "
            f"use of them ({_some(with_vars)}) is taken as equal on both sides; `--base-ref` "
            "compares the vars, too"
        )
    if with_environment:
        notes.append(
            "dbt writes no environment variables into its artifacts but those that begin with "
            f"{CUSTOM_ENVIRONMENT}: what hooks, Python and code that is not compiled use of others "
            f"({_some(with_environment)}) is taken as equal on both sides"
        )
    return notes


def _some(names: Collection[str]) -> str:
    return ", ".join(list(names)[:3]) + (", ..." if len(names) > 3 else "")


def environment_differs(base: Project, head: Project) -> bool:
    """Tell both sides which environment variables are known to differ between them.

    Returns:
        Whether something uses one of these that no compiled SQL shows.
    """
    before, now = base.metadata.env, head.metadata.env
    differ = {name for name in {*before, *now} if before.get(name) != now.get(name)}
    for side, values in ((base, before), (head, now)):
        side.environment = {CUSTOM_ENVIRONMENT + n: str(values.get(n)) for n in sorted(differ)}
    if not differ:
        return False
    names = {CUSTOM_ENVIRONMENT + name for name in differ} | {ANY}
    for side in (base, head):
        settings = Settings(side, Macros(side))
        for node in side.nodes.values():
            asked = settings.unseen_variables(node)[1]
            if node.resource_type == "function":
                asked = asked | environment_in(node.raw_code)
            if not names.isdisjoint(asked):
                return True
    return False


def set_variables(
    base: Project, head: Project, before: Mapping[str, str], now: Mapping[str, str]
) -> None:
    """Tell both sides which vars differ between them; what uses these has then changed (rule 7).

    Args:
        base: gets `Project.variables`.
        head: likewise.
        before: base's vars by name, values as text; under `ANY`, what all of them depend on.
        now: head's.
    """
    differ = {name for name in {*before, *now} if before.get(name) != now.get(name)}
    base.variables = {name: before.get(name, "") for name in differ}
    head.variables = {name: now.get(name, "") for name in differ}


def changed_project_hooks(base: Project, head: Project) -> list[str]:
    """What is said of each ``on-run-*`` hook that is not the same on both sides (rule 7).

    Such a hook may do anything to any relation. Reordered hooks are changed hooks.
    """
    before, now = project_hooks(base), project_hooks(head)
    return [
        f"{unique_id.split('.')[-1]} of {unique_id.split('.')[1]} "
        + (
            "is new"
            if unique_id not in before
            else "was removed"
            if unique_id not in now
            else "changed"
        )
        for unique_id in dict.fromkeys([*now, *before])
        if before.get(unique_id) != now.get(unique_id)
    ]


def changed_hooks(base: Project, head: Project, before: list[Hook], now: list[Hook]) -> list[str]:
    """What is said of each node's hook that may write to anything and is not the same on both sides.

    Args:
        base: what is deployed.
        head: what is proposed.
        before: base's hooks that write to other relations than their own.
        now: head's.
    """
    then, here = (
        {(hook.owner, hook.text) for hook in hooks if hook.anything} for hooks in (before, now)
    )
    owners = dict.fromkeys(owner for owner, _ in sorted(then ^ here))
    return [
        f"a hook of {(head.nodes.get(owner) or base.nodes[owner]).display_name}, which may write to "
        "any relation, differs"
        for owner in owners
        if not owner.startswith("operation.")
    ]
