"""Whether two manifests can be compared at all, and what besides the code differs between them."""

from __future__ import annotations

from dbt_ripple.artifacts import Project
from dbt_ripple.errors import RippleError
from dbt_ripple.graph.macros import project_hooks


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
    notes = []
    if before.dbt_version != now.dbt_version and before.dbt_version and now.dbt_version:
        notes.append(
            f"base was made by dbt {before.dbt_version}, head by dbt {now.dbt_version}: what dbt's "
            "own macros do may differ, and is not compared"
        )
    return notes


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
