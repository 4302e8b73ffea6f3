"""`dbt-ripple build`: artifacts, load, and dbt's build of the lineage models, in one process.

dbt overwrites target/manifest.json at every command, mostly without compiled SQL, so this command
compiles the whole project into a folder of its own, ``ripple`` in the target folder. dbt and the
loader share one connection: the Spark session of this process, or the server of the profile.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import click

from dbt_ripple.artifacts.paths import artifacts_folder
from dbt_ripple.artifacts.read_artifacts import own_nodes_shown
from dbt_ripple.cli.emit import EventSettings, events_of
from dbt_ripple.cli.load import document, progress_of, snapshot_of, summary
from dbt_ripple.cli.options import (
    Command,
    cache_options,
    format_option,
    open_cache,
    project_options,
    threads_option,
)
from dbt_ripple.cli.sides_options import with_asset_options
from dbt_ripple.cli.spark_server import SparkOptions, Way, stage_option, with_spark_options
from dbt_ripple.dbt_runner.invoke import Dbt
from dbt_ripple.dbt_runner.session_settings import keep_settings
from dbt_ripple.errors import RippleError
from dbt_ripple.extras import require_extra
from dbt_ripple.openlineage.client import (
    Sender,
    ToTransport,
    is_disabled,
    send_all,
)
from dbt_ripple.rendering.output import answer, as_document, count, warn
from dbt_ripple.session.assets import AssetOptions
from dbt_ripple.session.open_artifacts import open_target
from dbt_ripple.spark.load import check_adapter, destination, load

PACKAGE = "dbt_ripple"


@click.command(
    cls=Command,
    epilog="""\b
Examples:
  dbt-ripple build
  dbt-ripple build --project-dir shop --target prod --threads 8
  dbt-ripple build --remote sc://spark.internal:15002 --format json
""",
)
@click.option(
    "--emit",
    is_flag=True,
    help="Send OpenLineage events of the lineage models and tests that ran, as `emit` does.",
)
@threads_option
@format_option("text", "json", help="Output format; dbt's own output goes to stderr.")
@with_asset_options
@with_spark_options
@stage_option
@cache_options
@project_options
def build(
    emit: bool,
    style: str,
    assets: AssetOptions,
    where: SparkOptions,
    threads: int | None,
    cache_dir: Path | None,
    no_cache: bool,
    project_dir: Path,
    target_path: Path | None,
) -> None:
    """Compile the project, load its lineage, and build and test the lineage models.

    The same as `dbt docs generate`, `dbt-ripple load` and `dbt build --select package:dbt_ripple`
    in one process, without the tests by which the package checks its own tables: run `dbt test
    --select package:dbt_ripple` for these. dbt's files go to the folder `ripple` in the target
    folder, so your artifacts are not overwritten.
    """
    if not (project_dir / "dbt_project.yml").is_file():
        raise RippleError(
            "no dbt_project.yml in this folder",
            str(project_dir),
            "name the project by --project-dir",
        )
    folder = artifacts_folder(project_dir, target_path).resolve() / "ripple"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        (folder / ".writable").touch()
        (folder / ".writable").unlink()
    except OSError as error:
        raise RippleError(
            f"cannot be written ({error.strerror})",
            str(folder),
            "make it writable or name another folder by --target-path",
        ) from error
    options = replace(where.dbt, threads=threads)
    sender = _sender() if emit else None
    dbt = Dbt(project_dir.resolve(), folder, options)
    clock = _Clock()

    manifest = dbt("parse", *_parsed_before(folder)).result
    check_adapter(manifest.metadata.adapter_type)
    _check_package(manifest, project_dir)
    credentials, target_name = _connected_to()
    way = _way(where, credentials)
    clock.lap("parse")

    way.start()
    clock.lap("session")

    # The package's own nodes are hidden from answers and tables, unless the project reads them.
    parsed = dbt.on(manifest)
    parsed("docs", "generate", *([] if _is_read(manifest) else ["--exclude", f"package:{PACKAGE}"]))
    _take_run_results(folder.parent, folder)
    keep_settings(folder, project_dir, options)
    clock.lap("compile")

    with open_cache(cache_dir, no_cache) as cache:
        target_folder = open_target(folder, cache, threads, way.lower_many(threads))
        snapshot = snapshot_of(target_folder, project_dir, target_name=target_name, assets=assets)
        to = destination(target_folder.project)
    clock.lap("analyse")
    with way.server() as server, progress_of(snapshot) as progress:
        loaded = load(server, snapshot, to, progress=progress)
    clock.lap("load")

    # Into a folder below, so that the compiled artifacts stay for `analyze`, `trace` and `load`.
    below = folder / "build"
    # dbt need not ask the warehouse for what else there is. The package's singular tests check its
    # own figures, and take as long as all its models; the generic ones are the user's rules.
    own_checks = f"package:{PACKAGE},test_type:singular"
    select = ("--select", f"package:{PACKAGE}", "--exclude", own_checks, "--cache-selected-only")
    built = parsed.attempt("build", *select, target_path=below, loud=True)
    clock.lap("build")
    if sender is not None:
        sent = _send(sender, below, EventSettings(project_dir, options), options.threads)
        warn(f"sent {count(sent, 'event')} to {sender.where}")
        clock.lap("emit")
    parsed.check(built, ("build", *select))
    results = built.result

    statuses: dict[str, int] = {}
    for result in results.results:
        statuses[str(result.status)] = statuses.get(str(result.status), 0) + 1
    if style == "json":
        answer(as_document({**document(loaded, snapshot, str(to), clock.laps), "dbt": statuses}))
        return
    there = os.path.relpath(folder, project_dir)
    answer(_text(statuses, [*summary(loaded, str(to), clock.laps)], there))


def _sender() -> Sender | None:
    """Where events go; asked before anything is built. None where nothing is to be sent."""
    require_extra("openlineage")
    if is_disabled():
        warn("OPENLINEAGE_DISABLED is true: nothing is sent")
        return None
    return ToTransport()


def _send(sender: Sender, folder: Path, settings: EventSettings, threads: int | None) -> int:
    """Send the events of what dbt has just run: the package's own models, which are hidden otherwise."""
    from dbt_ripple.dbt_runner.profile import adapter_connection

    if not (folder / "run_results.json").is_file():  # dbt has said why
        return 0
    with own_nodes_shown():
        target = open_target(folder, None, threads)
        return send_all(events_of(target, settings, connection=adapter_connection()), sender)


def _parsed_before(folder: Path) -> list[str]:
    """Have dbt go on from what it parsed last, here or in a command of the user's.

    dbt reads all of it again where it was parsed by another version, or with other vars.
    """
    kept = [place / "partial_parse.msgpack" for place in (folder, folder.parent)]
    kept = sorted((path for path in kept if path.is_file()), key=lambda path: path.stat().st_mtime)
    return ["--partial-parse-file-path", str(kept[-1])] if kept else []


def _take_run_results(target: Path, folder: Path) -> None:
    """Put the results of the user's last run beside the manifest, in place of those of compiling."""
    (folder / "run_results.json").unlink(missing_ok=True)
    with contextlib.suppress(FileNotFoundError):
        shutil.copyfile(target / "run_results.json", folder / "run_results.json")


def _text(statuses: dict[str, int], loaded: list[str], folder: str) -> Iterator[str]:
    yield from loaded[:-1]
    total = sum(statuses.values())
    counts = ", ".join(f"{number} {status}" for status, number in sorted(statuses.items()))
    yield f"  lineage models and their tests: {count(total, 'node')} ({counts})"
    yield loaded[-1]
    yield ""
    yield f"Next: dbt-ripple trace <node> --target-path {folder}"


class _Clock:
    """Wall time between laps, by name."""

    def __init__(self) -> None:
        self.laps: dict[str, float] = {}
        self._last = time.perf_counter()

    def lap(self, name: str) -> None:
        now = time.perf_counter()
        self.laps[name] = now - self._last
        self._last = now


def _check_package(manifest: Any, project_dir: Path) -> None:
    """Refuse a project in which the dbt package is not installed."""
    if any(source.package_name == PACKAGE for source in manifest.sources.values()):
        return
    raise RippleError(
        f"the dbt package {PACKAGE} is not installed in this project",
        str(project_dir / "packages.yml"),
        f"add {PACKAGE} there and run `dbt deps` (`dbt-ripple load --schema` needs no package)",
    )


def _is_read(manifest: Any) -> bool:
    """Whether a node of another package reads a model of ours."""
    return any(
        parent.startswith(f"model.{PACKAGE}.")
        for node in manifest.nodes.values()
        if node.package_name != PACKAGE
        for parent in node.depends_on_nodes
    )


def _connected_to() -> tuple[Any, str | None]:
    """The credentials of the adapter that dbt has registered when it parsed, and the name of the target."""
    from dbt_ripple.dbt_runner.profile import registered_adapter

    config = registered_adapter().config
    return config.credentials, config.target_name


def _way(where: SparkOptions, credentials: Any) -> Way:
    """The way to the Spark that dbt builds on: dbt's own connection, or the session of this process."""
    from dbt_ripple.dbt_runner.profile import by_adapter, registered_adapter

    if by_adapter(credentials):
        # Asked when the load begins: each of dbt's commands makes a new one.
        return Way(where, None if where.given else registered_adapter)
    # Started with these settings, it is the one that dbt would start.
    return Way(where, None, dict(getattr(credentials, "server_side_parameters", None) or {}))
