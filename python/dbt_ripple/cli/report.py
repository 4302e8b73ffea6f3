"""`dbt-ripple report`: how the lineage and the data of a project fared in the last weeks."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

import click

from dbt_ripple.artifacts.paths import artifacts_folder
from dbt_ripple.cli.options import (
    Command,
    analysis_options,
    format_option,
    open_cache,
    partial_option,
    project_options,
    states_option,
)
from dbt_ripple.cli.sides_options import with_asset_options
from dbt_ripple.cli.spark_server import SparkOptions, Way, with_spark_options
from dbt_ripple.errors import RippleError
from dbt_ripple.rendering.output import answer, as_document
from dbt_ripple.secrets import scrub
from dbt_ripple.session.assets import AssetOptions, open_assets
from dbt_ripple.session.complete_artifacts import complete, open_complete
from dbt_ripple.session.open_artifacts import open_target

if TYPE_CHECKING:
    from dbt_ripple.graph.cache import Cache
    from dbt_ripple.graph.target_folder import TargetFolder
    from dbt_ripple.pages.consecutive_loads import Load
    from dbt_ripple.rendering.page_documents import ReportDocument


@click.command(
    cls=Command,
    epilog="""\b
Examples:
  dbt-ripple report --weeks 4
  dbt-ripple report --weeks 12 --format html -o report.html
  dbt-ripple report --history artifacts --format markdown > report.md
  dbt-ripple report --state artifacts/2026-11-16 --state artifacts/2026-11-23
""",
)
@click.option(
    "--weeks",
    type=click.IntRange(min=1, max=104),
    default=4,
    show_default=True,
    help="Number of weeks, from Monday to Sunday; the last is not over yet.",
)
@click.option(
    "--until",
    metavar="DATE",
    help="A day of the last week, as 2026-11-23.  [default: today, in UTC]",
)
@states_option(
    "Compute it from artifacts: from this folder, and from the target folder. May be repeated."
)
@click.option(
    "--history",
    metavar="DIR",
    type=click.Path(path_type=Path),
    help="The same from every folder with a manifest.json below DIR.",
)
@click.option(
    "--output", "-o", metavar="FILE", type=click.Path(path_type=Path), help="Write it to FILE."
)
@format_option("text", "html", "markdown", "json")
@with_asset_options
@with_spark_options
@partial_option
@analysis_options
@project_options
def report(
    weeks: int,
    until: str | None,
    states: tuple[Path, ...],
    history: Path | None,
    output: Path | None,
    style: str,
    assets: AssetOptions,
    where: SparkOptions,
    cache_dir: Path | None,
    no_cache: bool,
    threads: int | None,
    project_dir: Path,
    target_path: Path | None,
) -> None:
    """Report coverage, incidents, MTTR, downtime, broken contracts and blast radius of some weeks.

    The figures are those of the dbt package's models, read from Spark. With --state or --history they
    are computed from artifacts that were kept (manifest.json, run_results.json), by the same
    definitions. What cannot be computed is shown as not known, never as 0.
    """
    from dbt_ripple.pages.report import html, markdown, mondays, text

    now = datetime.now(UTC)
    last = _day(until) if until is not None else now.date()
    of = mondays(last, weeks)
    now = min(now, datetime.combine(of[-1], datetime.min.time(), UTC) + timedelta(weeks=1))
    with open_cache(cache_dir, no_cache) as cache:
        folder = artifacts_folder(project_dir, target_path)
        target = open_complete(folder, cache, threads, project_dir=project_dir)
        if states or history is not None:
            folders = [*_given(project_dir, states), *_below(history)]
            document = _of_artifacts(
                target=target,
                folders=folders,
                weeks=of,
                now=now,
                project_dir=project_dir,
                assets=assets,
                cache=cache,
                threads=threads,
            )
        else:
            document = _of_tables(target, of, now, where, project_dir)
    if style == "json":
        lines = as_document(document)
    elif style == "html":
        lines = html(document).split("\n")
    else:
        lines = [*(markdown if style == "markdown" else text)(document)]
    if output is None:
        answer(lines)
        return
    try:
        output.write_text(scrub("\n".join(lines)) + "\n", encoding="utf-8", newline="\n")
    except OSError as error:
        what = f"cannot be written ({error.strerror})"
        raise RippleError(what, f"--output {output}", "name another file") from error


def _day(text: str) -> date:
    try:
        return date.fromisoformat(text)
    except ValueError:
        raise RippleError(f"{text!r} is no date", "--until", "write it as 2026-11-23") from None


def _given(project_dir: Path, states: Sequence[Path]) -> Iterator[tuple[str, Path]]:
    from dbt_ripple.session.base_and_head import state_folder

    for state in states:
        folder = state_folder(project_dir, state)
        if not folder.is_dir():
            raise RippleError("no such folder", f"--state {state}", "name a folder of artifacts")
        yield f"--state {state}", folder


def _below(history: Path | None) -> Iterator[tuple[str, Path]]:
    """The folders with artifacts below one."""
    if history is None:
        return
    where, fix = f"--history {history}", "name a folder that has folders of artifacts in it"
    if not history.is_dir():
        raise RippleError("no such folder", where, fix)
    folders = sorted(path.parent for path in history.rglob("manifest.json"))
    if not folders:
        raise RippleError("there is no manifest.json below this folder", where, fix)
    for folder in folders:
        yield f"{where}: {folder}", folder


def _of_artifacts(
    target: TargetFolder,
    folders: Sequence[tuple[str, Path]],
    weeks: Sequence[date],
    now: datetime,
    project_dir: Path,
    assets: AssetOptions,
    cache: Cache | None,
    threads: int | None,
) -> ReportDocument:
    from dbt_ripple.pages.consecutive_loads import written_at
    from dbt_ripple.pages.report_from_artifacts import from_artifacts

    name = target.project.name
    kept: list[TargetFolder] = []
    for where, folder in folders:
        earlier = open_target(folder, cache, threads)
        if earlier.project.name != name:
            raise RippleError(
                f"these are artifacts of {earlier.project.name or 'a project without a name'}",
                where,
                f"name artifacts of {name}",
            )
        kept.append(earlier)
    kept.sort(key=lambda earlier: written_at(earlier.project))
    projects = [earlier.project for earlier in kept]
    loads: dict[str, Load] = {}
    for number, earlier in enumerate(kept):
        others = [*projects[:number][::-1], *projects[number + 1 :], target.project]
        earlier = complete(earlier, cache, others=others)
        loads[projects[number].digest] = _load(earlier, project_dir, assets, cache)
    # As it is now: last, and once, where the target folder was kept, too.
    loads.pop(target.project.digest, None)
    return from_artifacts([*loads.values(), _load(target, project_dir, assets, cache)], weeks, now)


def _load(
    target: TargetFolder, project_dir: Path, assets: AssetOptions, cache: Cache | None
) -> Load:
    """A project's rows, with the declared assets, as `load` writes them."""
    from dbt_ripple.artifacts import check_compiled
    from dbt_ripple.pages.consecutive_loads import Load

    project = of_dbt = target.project
    check_compiled(project)
    analysis = target.as_loaded()
    declared = open_assets(project_dir, assets, lambda: of_dbt)
    if declared is not None:
        from dbt_ripple.graph.assets.asset_lineage import AssetLineage

        analysis = AssetLineage(declared, analysis, cache).analysis
        project = declared.acyclic
    return Load(project, analysis)


def _of_tables(
    target: TargetFolder,
    weeks: Sequence[date],
    now: datetime,
    where: SparkOptions,
    project_dir: Path,
) -> ReportDocument:
    from functools import cache as once

    from dbt_ripple.pages.report_from_tables import MODELS, RUNS, from_tables, week_in
    from dbt_ripple.spark.package_models import check_package, read_models, weeks_of

    project = target.project
    try:
        check_package(project)
    except RippleError as error:
        fix = f"{error.fix}, or name artifacts that were kept by --history or --state"
        raise RippleError(error.what, error.where, fix) from error
    with ExitStack() as stack:
        server = once(lambda: stack.enter_context(Way.of(where, project_dir).server()))
        rows, unread = read_models(server, project, MODELS)
        ran = weeks_of(server, project, RUNS, "ran_at")
    if ran is None:
        unread[RUNS] = "it cannot be read, so it is not known in which weeks something ran"
    weeks_of_runs = {week for moment in ran or () if (week := week_in(moment)) is not None}
    return from_tables(project.name, weeks, rows, unread, weeks_of_runs, now)
