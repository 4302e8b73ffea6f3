"""The declared assets of base and head: where base's are found, and what they make of a comparison."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from dbt_ripple.artifacts.assets_file import parse_assets, read_assets
from dbt_ripple.artifacts.assets_path import FILE, assets_files
from dbt_ripple.graph.git_history import content_at
from dbt_ripple.rendering.output import warn
from dbt_ripple.session.assets import AssetOptions, collected_assets_for

if TYPE_CHECKING:
    from dbt_ripple.changes import Comparison
    from dbt_ripple.graph.cache import Cache
    from dbt_ripple.graph.target_folder import TargetFolder


def with_declared(
    base: TargetFolder,
    head: TargetFolder,
    project_dir: Path,
    given: AssetOptions,
    state: Path | None,
    base_ref: str | None,
) -> TargetFolder:
    """Head, with the sources that assets write otherwise than on base as changed; both know their assets.

    Base's assets are those of the files as they were at a commit, or that are kept in a folder of artifacts. Of
    a file that is not kept there, head's are taken, and a note says so. Events are the same on both sides.

    Args:
        base: base's artifacts.
        head: head's.
        project_dir: the project.
        given: what the options name.
        state: the folder of base's artifacts.
        base_ref: the commit of base, in place of these.

    Raises:
        RippleError: a file cannot be read, or what it says is not valid.
    """
    files = assets_files(project_dir, given.files)
    now = read_assets(files)
    then, unknown = [], []
    for file in dict.fromkeys([project_dir / FILE, *files]):
        own = [asset for asset in now if asset.place.rpartition(":")[0] == str(file)]
        if base_ref is not None:
            then += parse_assets(content_at(file, base_ref) or "", f"{base_ref}:{file.name}")
        elif state is not None and (kept := state / file.name).is_file():
            then += read_assets([kept])
        else:
            then += own
            unknown += [file.name] if any(asset.writes or asset.sql for asset in own) else []
    collected = collected_assets_for(project_dir, given, lambda: [head.project, base.project])
    if collected is not None:  # what ran elsewhere is no part of the change
        then, now = collected(then), collected(now)
    if not then and not now:
        return head
    from dbt_ripple.changes.asset_changes import declared_otherwise
    from dbt_ripple.graph.target_folder import TargetFolder
    from dbt_ripple.reasons import Code

    for name in unknown:
        warn(Code.BASE_ASSETS_UNKNOWN(file=name).message)
    rewritten = declared_otherwise(base.project, head.project, then, now, head.analysis, head.cache)
    if rewritten:
        changed = head.project.having(written_otherwise=rewritten)
        head = TargetFolder.of(changed, head.cache, processes=head.processes)
    base.declared, head.declared = then, now
    return head


def with_assets_of_both_sides(
    comparison: Comparison, base: TargetFolder, head: TargetFolder, cache: Cache | None
) -> Comparison:
    """The comparison of two sides with their assets in it (`changes.asset_changes.with_assets`)."""
    if not base.declared and not head.declared:
        return comparison
    from dbt_ripple.changes.asset_changes import with_declared_assets
    from dbt_ripple.graph.assets.declared_graph import DeclaredGraph

    then = DeclaredGraph(comparison.base, base.declared, lenient=True)
    now = DeclaredGraph(comparison.head, head.declared, formerly=comparison.base)
    return with_declared_assets(comparison, then, now, cache)
