"""`dbt-ripple load`: the lineage of a dbt project into Spark tables."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from dbt_ripple.artifacts.paths import artifacts_folder
from dbt_ripple.cli.options import (
    Command,
    analysis_options,
    format_option,
    open_cache,
    project_options,
)
from dbt_ripple.cli.sides_options import with_asset_options
from dbt_ripple.cli.spark_server import SparkOptions, Way, stage_option, with_spark_options
from dbt_ripple.dbt_runner.session_settings import keep_settings
from dbt_ripple.graph.lineage_tables import TABLES
from dbt_ripple.rendering import terminal
from dbt_ripple.rendering.escaping import styled
from dbt_ripple.rendering.output import answer, as_document, count, warn
from dbt_ripple.session.assets import DEFAULT, AssetOptions, open_assets
from dbt_ripple.session.open_artifacts import open_target

if TYPE_CHECKING:
    from dbt_ripple.graph.lineage_rows import LineageSnapshot
    from dbt_ripple.graph.target_folder import TargetFolder
    from dbt_ripple.spark.load import Loaded, Progress

SAY_EVERY: Final = 10.0
"""Seconds between two lines of a load that takes longer."""


@click.command(
    cls=Command,
    epilog="""\b
Examples:
  dbt-ripple load --target-path target/ripple
  dbt-ripple load --remote sc://spark.internal:15002 --format json
  dbt-ripple load --schema lake.lineage_raw --file-format delta
""",
)
@click.option(
    "--schema",
    metavar="SCHEMA",
    help="Schema (or catalog.schema) of the lineage tables.  "
    "[default: where the project's dbt_ripple package reads them]",
)
@click.option(
    "--file-format",
    type=click.Choice(["parquet", "delta", "iceberg"]),
    help="File format of tables that are created.  [default: the package's ripple_file_format]",
)
@click.option(
    "--max-closure",
    type=click.IntRange(min=0),
    metavar="PAIRS",
    help="Limit the node closure to this many pairs: it is cut at the largest depth that fits.  "
    "[default: 5,000,000]",
)
@format_option("text", "json", help="Output format.")
@with_asset_options
@with_spark_options
@stage_option
@analysis_options
@project_options
def load(
    schema: str | None,
    file_format: str | None,
    max_closure: int | None,
    assets: AssetOptions,
    style: str,
    where: SparkOptions,
    cache_dir: Path | None,
    no_cache: bool,
    threads: int | None,
    project_dir: Path,
    target_path: Path | None,
) -> None:
    """Load the lineage of a dbt project into Spark tables.

    Reads the artifacts that `dbt docs generate` or `dbt compile` of the whole project wrote to the
    target folder. Loading the same artifacts twice adds nothing. If a load fails halfway, readers
    see nothing of it: run it again. Rows go through dbt's own connection (Thrift, HTTP, ODBC, Databricks),
    unless the profile says `method: session` or a Spark is named. If more than 5,000 queries have to be
    analysed, the executors of a cluster that is named do it, provided that dbt-ripple is installed there.
    """
    from dbt_ripple.spark.load import destination
    from dbt_ripple.spark.load import load as load_snapshot

    started = time.perf_counter()
    way = Way.of(where, project_dir)
    with open_cache(cache_dir, no_cache) as cache:
        lower_many = way.lower_many(threads)
        folder = artifacts_folder(project_dir, target_path)
        target = open_target(folder, cache, threads, lower_many)
        to = destination(target.project, schema, file_format)
        snapshot = snapshot_of(target, project_dir, max_closure=max_closure, assets=assets)
    keep_settings(folder, project_dir, where.dbt)
    analysed = time.perf_counter()
    with way.server() as server, progress_of(snapshot) as progress:
        connected = time.perf_counter()
        loaded = load_snapshot(server, snapshot, to, progress=progress)
    seconds = {"analyse": analysed - started, "session": connected - analysed, **loaded.seconds}
    if style == "json":
        answer(as_document(document(loaded, snapshot, str(to), seconds)))
    else:
        answer(summary(loaded, str(to), seconds))


def snapshot_of(
    target: TargetFolder,
    project_dir: Path,
    *,
    target_name: str | None = None,
    max_closure: int | None = None,
    assets: AssetOptions = DEFAULT,
) -> LineageSnapshot:
    """Analyse a project and make its rows; a note on stderr says if the closure was cut.

    Declared assets are nodes, too.

    Raises:
        RippleError: dbt has compiled nothing of it, or what an assets file says is not valid.
    """
    from dbt_ripple.artifacts import check_compiled
    from dbt_ripple.graph.lineage_rows import MAX_CLOSURE, build_rows, git_commit

    project = target.project
    check_compiled(project)
    if missing := len(project.uncompiled()):
        warn(
            f"{count(missing, 'node')} not compiled, so their columns are not followed; "
            "`dbt docs generate` of the whole project into its own --target-path compiles them"
        )
    analysis = target.as_loaded()
    declared = open_assets(project_dir, assets, lambda: target.project)
    if declared is not None:
        from dbt_ripple.graph.assets.asset_lineage import AssetLineage

        analysis = AssetLineage(declared, analysis, target.cache).analysis
        project = declared.acyclic
    snapshot = build_rows(
        project,
        analysis,
        git_sha=git_commit(project_dir),
        target_name=target_name,
        max_closure=MAX_CLOSURE if max_closure is None else max_closure,
    )
    if snapshot.closure_depth is not None:
        warn(
            f"the node closure is cut at depth {snapshot.closure_depth}; "
            "--max-closure allows more pairs"
        )
    return snapshot


@contextmanager
def progress_of(snapshot: LineageSnapshot) -> Iterator[Progress]:
    """The progress line while a snapshot is written, and a line every ten seconds, for logs."""
    total = sum(map(len, snapshot.rows.values())) or 1
    begun = said = time.monotonic()
    written = 0
    with terminal.progress("loading") as rename:

        def advance(table: str, rows: int) -> None:
            nonlocal written, said
            written += rows
            share = f"{written / total:.0%} of the rows written"
            rename(f"loading {table}, {share}")
            now = time.monotonic()
            if now - said >= SAY_EVERY:
                said = now
                warn(f"{share} after {now - begun:.0f} seconds")

        yield advance


def document(
    loaded: Loaded, snapshot: LineageSnapshot, schema: str, seconds: dict[str, float]
) -> dict[str, Any]:
    """What was loaded, as ``--format json`` prints it."""
    return {
        "snapshot_id": loaded.snapshot_id,
        "schema": schema,
        "already_loaded": loaded.already,
        "rows": loaded.rows,
        "closure_depth": snapshot.closure_depth,
        "seconds": {stage: round(time_, 3) for stage, time_ in seconds.items()},
    }


def summary(loaded: Loaded, schema: str, seconds: dict[str, float]) -> Iterator[str]:
    """What was loaded, as text."""
    done = "was already loaded: nothing was written" if loaded.already else "loaded"
    yield styled(f"snapshot {loaded.snapshot_id} in {schema}: {done}", bold=True)
    yield ""
    for table in TABLES:
        yield f"  {table:<13} {count(loaded.rows[table], 'row'):>16}"
    yield ""
    yield "  " + stages(seconds)


def stages(seconds: dict[str, float]) -> str:
    """Stages and their wall times, on one line."""
    return "seconds: " + ", ".join(f"{stage} {time_:.1f}" for stage, time_ in seconds.items())
