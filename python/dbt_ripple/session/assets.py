"""The assets that dbt does not build, declared and collected: which files and events of them are read."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from dbt_ripple.artifacts.assets_path import assets_files
from dbt_ripple.artifacts.target_path import artifacts_folder
from dbt_ripple.rendering.output import warn
from dbt_ripple.session.open_artifacts import open_target

if TYPE_CHECKING:
    from dbt_ripple.artifacts import Project
    from dbt_ripple.artifacts.assets_file import DeclaredAsset
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
        from dbt_ripple.artifacts.assets_file import read_assets

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
