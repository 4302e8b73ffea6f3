"""The assets that dbt does not build, declared and collected: which files and events of them are read.

Of a comparison: where base's are found, and what the assets of both sides make of it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from dbt_ripple.artifacts.assets_file import DeclaredAsset, parse_assets, read_assets
from dbt_ripple.artifacts.paths import FILE, artifacts_folder, assets_files
from dbt_ripple.graph.git import content_at
from dbt_ripple.rendering.output import warn
from dbt_ripple.session.open_artifacts import open_target

if TYPE_CHECKING:
    from dbt_ripple.artifacts import Project
    from dbt_ripple.changes import Comparison
    from dbt_ripple.graph.assets.declared_graph import DeclaredGraph
    from dbt_ripple.graph.cache import Cache
    from dbt_ripple.graph.target_folder import TargetFolder

STORE: Final = "openlineage_events"
"""Where `dbt-ripple collect` keeps events by default."""


class AssetOptions(NamedTuple):
    """What the options for declared assets and collected events say.

    Attributes:
        files: what ``--assets`` names.
        events: what ``--events`` names; None where a command reads no events at all.
        namespace: what ``--dataset-namespace`` says of dbt's own datasets.
    """

    files: tuple[Path, ...] = ()
    events: tuple[Path, ...] | None = ()
    namespace: str | None = None


DEFAULT: Final = AssetOptions()
"""What is read where no option says anything: ripple_assets.yml and the store beside the project."""


def open_dbt_or_assets(
    project_dir: Path,
    target_path: Path | None,
    given: AssetOptions | None,
    cache: Cache | None,
    threads: int | None = None,
) -> TargetFolder:
    """The artifacts of dbt's project; where there is none, a project without nodes, for assets alone.

    Args:
        project_dir: of the dbt project, or the folder of the assets.
        target_path: as ``--target-path`` says it; who names one has artifacts.
        given: what the options name. Without a dbt project there must be an asset or an event;
            None of a command that writes the first one.
        cache: as for `open_target`.
        threads: as for `open_target`.

    Raises:
        RippleError: there are no artifacts, and dbt's project or no asset is there.
    """
    folder = artifacts_folder(project_dir, target_path)
    no_dbt = not ((project_dir / "dbt_project.yml").exists() or folder.exists())
    if target_path is None and no_dbt and (given is None or _has_assets(project_dir, given)):
        from dbt_ripple.artifacts import Project
        from dbt_ripple.artifacts.project import Metadata
        from dbt_ripple.graph.target_folder import TargetFolder

        nothing = Project(
            target_path=str(folder), metadata=Metadata(), nodes={}, parents={}, children={}
        )
        return TargetFolder.of(nothing, cache)
    return open_target(folder, cache, threads)


def _has_assets(project_dir: Path, given: AssetOptions) -> bool:
    return bool(
        given.events
        or assets_files(project_dir, given.files)
        or any((project_dir / STORE).glob("events-*.ndjson"))
    )


def files_of_assets(project_dir: Path, given: AssetOptions) -> Iterator[Path]:
    """The files that declared assets and collected events of a project are read from.

    Raises:
        RippleError: a file that is given is not there.
    """
    yield from assets_files(project_dir, given.files)
    if given.events is not None:
        from dbt_ripple.collector.event_store import segments

        for place in (*given.events, project_dir / STORE):
            yield from segments(place) if place.is_dir() else [place]


def as_they_are(files: Iterable[Path]) -> tuple[tuple[str, int, int, int], ...]:
    """By what files are told apart from what they were."""
    found = {}
    for file in files:
        try:
            status = file.stat()
        except OSError:
            continue
        found[str(file)] = status.st_mtime_ns, status.st_size, status.st_ino
    return tuple((name, *seen) for name, seen in found.items())


def open_assets(
    project_dir: Path, given: AssetOptions, project: Callable[[], Project]
) -> DeclaredGraph | None:
    """The assets of a project, declared and collected, over it; None where there is none.

    Args:
        project_dir: beside which ``ripple_assets.yml`` and the store of events are looked for.
        given: what the options name.
        project: gives dbt's project; it is asked only where there are assets.

    Raises:
        RippleError: a file is not there, or what it says is not valid.
    """
    declared: list[DeclaredAsset] = []
    if files := assets_files(project_dir, given.files):
        declared = read_assets(files)
    for file in given.files:
        if not any(asset.place.startswith(f"{file}:") for asset in declared):
            warn(f"{file} declares no assets")
    collected = collected_assets_for(project_dir, given, lambda: [project()])
    if collected is not None:
        declared = collected(declared)
    if not declared:
        return None
    from dbt_ripple.graph.assets.declared_graph import DeclaredGraph

    return DeclaredGraph(project(), declared)


def collected_assets_for(
    project_dir: Path, given: AssetOptions, projects: Callable[[], Sequence[Project]]
) -> Callable[[Sequence[DeclaredAsset]], list[DeclaredAsset]] | None:
    """Adds what collected events tell to declared assets; None where there are no events.

    What was left out of the events, or assumed, is printed on stderr, once.

    Args:
        project_dir: beside which the store is looked for.
        given: what the options name.
        projects: gives the project, and of a comparison the other side of it.

    Raises:
        RippleError: a store is not there, or cannot be read.
    """
    if given.events is None:
        return None
    places = list(dict.fromkeys(given.events))
    store = project_dir / STORE
    if any(store.glob("events-*.ndjson")) and not any(
        place.resolve() == store.resolve() for place in places
    ):
        places.append(store)
    if not places:
        return None
    from dbt_ripple.openlineage.collected.collected_assets import with_collected
    from dbt_ripple.openlineage.collected.stored_events import read_events

    events = read_events(places)
    noted: set[str] = set()

    def collected(declared: Sequence[DeclaredAsset]) -> list[DeclaredAsset]:
        with_events = with_collected(declared, events, projects(), given.namespace)
        for note in with_events.notes:
            if note not in noted:
                noted.add(note)
                warn(note)
        return with_events.assets

    return collected


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
