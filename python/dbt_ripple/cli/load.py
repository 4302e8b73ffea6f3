"""`dbt-ripple load`: the lineage of a dbt project into Spark tables."""

from __future__ import annotations

import functools
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from dbt_ripple.artifacts.target_path import artifacts_folder
from dbt_ripple.cli.asset_options import DEFAULT, AssetOptions, open_assets, with_asset_options
from dbt_ripple.cli.help import Command
from dbt_ripple.cli.options import (
    analysis_options,
    format_option,
    open_cache,
    open_target,
    project_options,
)
from dbt_ripple.graph.lineage_tables import TABLES
from dbt_ripple.rendering import terminal
from dbt_ripple.rendering.escaping import styled
from dbt_ripple.rendering.output import answer, as_document, count, warn

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from dbt_ripple.graph.lineage_rows import LineageSnapshot
    from dbt_ripple.graph.query_cache import LowerMany
    from dbt_ripple.graph.target_folder import TargetFolder
    from dbt_ripple.spark.load import Loaded, Progress

_Command = TypeVar("_Command", bound=Callable[..., Any])


def spark_options(command: _Command) -> _Command:
    """Add ``--master`` and ``--remote``, which say what Spark to work on."""
    command = click.option(
        "--remote",
        metavar="URL",
        # The variable is read where the session is made: it gives way to --master.
        help="A Spark Connect server, for example sc://host:15002.  [env var: SPARK_REMOTE]",
    )(command)
    return click.option(
        "--master",
        metavar="URL",
        help="A Spark master to connect to, for example spark://host:7077 or yarn.  "
        "[default: an embedded Spark, as SPARK_CONF_DIR configures it]",
    )(command)


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
@spark_options
@analysis_options
@project_options
def load(
    schema: str | None,
    file_format: str | None,
    max_closure: int | None,
    assets: AssetOptions,
    style: str,
    master: str | None,
    remote: str | None,
    cache_dir: Path | None,
    no_cache: bool,
    threads: int | None,
    project_dir: Path,
    target_path: Path | None,
) -> None:
    """Load the lineage of a dbt project into Spark tables.

    Reads the artifacts that `dbt docs generate` or `dbt compile` of the whole project wrote to the
    target folder. Loading the same artifacts twice adds nothing. If a load fails halfway, readers
    see nothing of it: run it again. If more than 5,000 queries have to be analysed, a cluster's
    executors do it, provided that dbt-ripple is installed there.
    """
    from dbt_ripple.spark.load import destination
    from dbt_ripple.spark.load import load as load_snapshot

    started = time.perf_counter()
    session_of = functools.cache(lambda: open_session(master, remote))
    with open_cache(cache_dir, no_cache) as cache:
        lower_many = lower_on(session_of, threads)
        folder = artifacts_folder(project_dir, target_path)
        target = open_target(folder, cache, threads, lower_many)
        to = destination(target.project, schema, file_format)
        snapshot = snapshot_of(target, project_dir, max_closure=max_closure, assets=assets)
    analysed = time.perf_counter()
    session = session_of()
    connected = time.perf_counter()
    with progress_of(snapshot) as progress:
        loaded = load_snapshot(session, snapshot, to, progress=progress)
    seconds = {"analyse": analysed - started, "session": connected - analysed, **loaded.seconds}
    if style == "json":
        answer(as_document(document(loaded, snapshot, str(to), seconds)))
    else:
        answer(summary(loaded, str(to), seconds))


def open_session(
    master: str | None, remote: str | None, config: Mapping[str, str] | None = None
) -> SparkSession:
    """The Spark session to work on, as `spark.session.get_session` gives it."""
    from dbt_ripple.spark.session import get_session

    with terminal.progress("starting Spark"):
        return get_session(master, remote, config=config, report=warn)


def lower_on(session: Callable[[], SparkSession], threads: int | None) -> LowerMany:
    """How `load` and `build` lower many queries: on a cluster's executors, or else on cores here."""
    from dbt_ripple.graph.process_pool import cores, in_processes
    from dbt_ripple.spark.executors import on_executors

    return on_executors(session, in_processes(threads or cores()), warn)


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
    analysis = target.analysis(expressions=True, own=True)
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
    """The progress line while a snapshot is written."""
    total = sum(map(len, snapshot.rows.values())) or 1
    with terminal.progress("loading") as rename:
        begun = before = 0

        def advance(table: str, rows: int) -> None:
            nonlocal begun, before
            begun, before = begun + before, rows
            rename(f"loading {table}, {begun / total:.0%} of the rows written")

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
