"""`dbt-ripple emit`: dbt's runs and the lineage of a project, as OpenLineage events."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from dbt_ripple.artifacts.paths import artifacts_folder
from dbt_ripple.cli.options import (
    Command,
    analysis_options,
    connection_options,
    open_cache,
    project_options,
)
from dbt_ripple.cli.sides_options import assets_option
from dbt_ripple.dbt_runner.invoke import DbtOptions
from dbt_ripple.errors import RippleError
from dbt_ripple.extras import require_extra
from dbt_ripple.openlineage.client import (
    Nowhere,
    Sender,
    ToFile,
    ToTransport,
    is_disabled,
    send_all,
)
from dbt_ripple.rendering.output import answer, count, warn
from dbt_ripple.session.assets import DEFAULT, AssetOptions, open_assets
from dbt_ripple.session.open_artifacts import open_target

if TYPE_CHECKING:
    from dbt_ripple.artifacts import Project
    from dbt_ripple.graph.cache import Cache
    from dbt_ripple.graph.lineage import Analysis
    from dbt_ripple.graph.target_folder import TargetFolder
    from dbt_ripple.openlineage.client import Event
    from dbt_ripple.openlineage.column_lineage import LineageFinder
    from dbt_ripple.openlineage.dataset_names import Connection, DatasetNames
    from dbt_ripple.openlineage.invocation import Invocation
    from dbt_ripple.openlineage.run_events import RunEvents

RUNS_NODES: Final = frozenset({"build", "run", "test", "seed", "snapshot"})
"""The dbt commands that --follow takes."""


@click.command(
    cls=Command,
    epilog="""\b
Examples:
  dbt build; dbt-ripple emit
  OPENLINEAGE_URL=http://localhost:5000 dbt-ripple emit
  dbt-ripple emit --output - | jq .eventType
  dbt-ripple emit --static --output lineage.ndjson
  dbt-ripple emit --follow -- build --select tag:nightly
""",
)
@click.option(
    "--static",
    is_flag=True,
    help="Send the lineage without runs: a DatasetEvent for each relation, a JobEvent for each "
    "model, seed, snapshot and exposure.",
)
@click.option(
    "--marquez-names",
    is_flag=True,
    help="With --static, name the jobs of dbt as Marquez names those of its runs, below the run's own: "
    "dbt-run-PROJECT.model.PROJECT.NAME. Without it, Marquez has two jobs of a model.",
)
@click.option(
    "--output",
    metavar="FILE",
    help="Write the events to FILE, one a line, in place of sending them; - is stdout.",
)
@click.option(
    "--namespace",
    envvar="OPENLINEAGE_NAMESPACE",
    show_envvar=True,
    help="Namespace of the jobs.  [default: dbt]",
)
@click.option(
    "--dataset-namespace",
    "own_namespace",
    help="Namespace of the datasets.  [default: what OpenLineage's naming rules make of the profile]",
)
@click.option(
    "--nominal-time",
    metavar="TIME",
    help="When the run was scheduled for, in ISO 8601.  [default: the invocation's start]",
)
@click.option(
    "--follow",
    is_flag=True,
    help="Run the dbt command that follows -- and send events while it runs.",
)
@click.argument("command", metavar="[-- DBT_COMMAND...]", nargs=-1, type=click.UNPROCESSED)
@assets_option
@connection_options
@analysis_options
@project_options
def emit(
    static: bool,
    marquez_names: bool,
    output: str | None,
    namespace: str | None,
    own_namespace: str | None,
    nominal_time: str | None,
    follow: bool,
    command: tuple[str, ...],
    assets: AssetOptions,
    cache_dir: Path | None,
    no_cache: bool,
    threads: int | None,
    project_dir: Path,
    target_path: Path | None,
    **dbt_arguments: Any,
) -> int | None:
    """Send OpenLineage events of dbt's last run: START and COMPLETE or FAIL of every node that ran.

    Reads the artifacts that `dbt build` (or run, test, seed, snapshot) wrote to the target folder.
    Events carry column lineage, schemas, owners, tags, assertions and error messages. Where they go
    is configured as for any producer: OPENLINEAGE_URL, openlineage.yml, OPENLINEAGE_DISABLED. The same
    artifacts give the same events, so it does no harm to send them twice.

    With --follow dbt runs in this process, its output on stderr, and the exit code is dbt's: 0, or 1
    if a node failed. A collector that cannot be reached does not stop it.
    """
    require_extra("openlineage")
    _check_command(follow, static, command)
    if marquez_names and not static:
        raise click.UsageError("--marquez-names is of --static: give that, too")
    disabled = output is None and is_disabled()
    if disabled:
        warn("OPENLINEAGE_DISABLED is true: nothing is sent")
        if not follow:
            return None
    options = DbtOptions.taken({**dbt_arguments, "threads": threads if follow else None})
    settings = EventSettings(
        project_dir,
        options,
        namespace,
        own_namespace,
        _moment(nominal_time) if nominal_time else None,
    )
    folder = artifacts_folder(project_dir, target_path)
    code = 0
    with sender_to(output, disabled) as sender, open_cache(cache_dir, no_cache) as cache:
        if follow:
            from dbt_ripple.cli.follow import run_and_send

            sent, code = run_and_send(command, folder, settings, sender, cache, threads)
        else:
            target = open_target(folder, cache, threads)
            of_project = (
                static_of(target, settings, assets, cache, marquez_names=marquez_names)
                if static
                else None
            )
            sent = send_all(
                events_of(target, settings) if of_project is None else of_project, sender
            )
    if not disabled:
        report_sent(sent, sender, output)
    return code


def report_sent(events: int, sender: Sender, output: str | None) -> None:
    """Say how many events went where."""
    summary = f"{count(events, 'event')} to {sender.where}"
    if output == "-":
        warn(f"wrote {summary}")
    else:
        answer([f"{'sent' if output is None else 'wrote'} {summary}"])


def _check_command(follow: bool, static: bool, command: tuple[str, ...]) -> None:
    given = " ".join(command)
    if command and not follow:
        raise click.UsageError(f"what is {given!r}? Did you mean --follow -- {given}?")
    if follow and static:
        raise click.UsageError(
            "--follow sends events of a run, --static events without a run: give one of them"
        )
    if follow and not command:
        raise click.UsageError("--follow needs a dbt command, as in: --follow -- build")
    if follow and command[0] not in RUNS_NODES:
        raise click.UsageError(
            f"`dbt {command[0]}` runs no node; --follow takes {', '.join(sorted(RUNS_NODES))}"
        )


@dataclass(frozen=True)
class EventSettings:
    """The options of events on the command line.

    Attributes:
        options: how dbt is called; they say which profile is read.
        namespace: of jobs; None is the default.
        datasets: the namespace of datasets; None is that of the profile.
        nominal: when the run was to be; None is when it was.
    """

    project_dir: Path
    options: DbtOptions
    namespace: str | None = None
    datasets: str | None = None
    nominal: datetime | None = None

    def names_of(self, project: Project, connection: Connection | None = None) -> DatasetNames:
        """The names of a project's datasets.

        Args:
            project: the artifacts.
            connection: what dbt connects to; by default it is asked to read the profile.

        Raises:
            RippleError: the namespace cannot be found out.
        """
        from dbt_ripple.openlineage.dataset_names import DatasetNames

        if self.datasets is not None:
            return DatasetNames(project, self.datasets, connection)
        if connection is None:
            from dbt_ripple.dbt_runner.profile import connection_of

            connection = connection_of(self.project_dir, self.options, project.run_args)
        return DatasetNames(project, connection.namespace(), connection)

    def run_events(
        self,
        project: Project,
        analysis: Analysis | None,
        names: DatasetNames,
        invocation: Invocation | None,
        wanted: Iterable[str],
    ) -> RunEvents:
        """The events of an invocation.

        Args:
            project: the artifacts.
            analysis: what was seen in them; None where no model is compiled.
            names: of the datasets.
            invocation: None if it is set later.
            wanted: the nodes that ran, or may.
        """
        from dbt_ripple.openlineage.facets import ProjectFacets
        from dbt_ripple.openlineage.invocation import job_namespace, parent_in
        from dbt_ripple.openlineage.run_events import RunEvents

        return RunEvents(
            ProjectFacets(project, analysis, names, self.project_dir),
            lineage_of(project, analysis, wanted),
            analysis,
            invocation,
            namespace=job_namespace(self.namespace),
            parent=parent_in(os.environ),
            nominal=(self.nominal, None) if self.nominal else None,
        )


def lineage_of(project: Project, analysis: Analysis | None, wanted: Iterable[str]) -> LineageFinder:
    """The lineage of nodes and of what they read, which error messages tell of."""
    from dbt_ripple.openlineage.column_lineage import LineageFinder

    nodes = {*wanted}
    nodes |= {parent for unique_id in nodes for parent in project.parents.get(unique_id, ())}
    return LineageFinder(project, analysis, nodes)


def static_of(
    target: TargetFolder,
    settings: EventSettings,
    assets: AssetOptions = DEFAULT,
    cache: Cache | None = None,
    *,
    marquez_names: bool = False,
) -> list[Event]:
    """The events of a project without runs, its declared assets included.

    Raises:
        RippleError: nothing is compiled, or the namespace of the datasets cannot be found out.
    """
    from dbt_ripple.openlineage.facets import ProjectFacets
    from dbt_ripple.openlineage.invocation import job_namespace
    from dbt_ripple.openlineage.run_events import invocation_job, static_events

    project = target.project
    at = project.metadata.generated_at or datetime.now(UTC)
    declared = open_assets(settings.project_dir, assets, lambda: project)
    analysis = target.analysis(expressions=True)
    if declared is not None:
        from dbt_ripple.graph.assets.asset_lineage import AssetLineage

        project = declared.whole
        analysis = AssetLineage(declared, analysis, cache).analysis
    names = settings.names_of(project)
    facets = ProjectFacets(project, analysis, names, settings.project_dir)
    lineage = lineage_of(project, analysis, project.nodes)
    namespace = job_namespace(settings.namespace)
    below = invocation_job(project) if marquez_names else ""
    return [*static_events(facets, lineage, namespace=namespace, at=at, below=below)]


def events_of(
    target: TargetFolder,
    settings: EventSettings,
    connection: Connection | None = None,
) -> list[Event]:
    """The events of the run whose artifacts are in a folder.

    Raises:
        RippleError: there are none, or the namespace of the datasets cannot be found out.
    """
    from dbt_ripple.artifacts.project import as_utc
    from dbt_ripple.openlineage.invocation import read_invocation

    project = target.project
    results = project.run_results
    invocation = read_invocation(target.folder, results)
    names = settings.names_of(project, connection)
    analysis = analysis_of(target)
    written = project.metadata.generated_at
    if (
        project.metadata.invocation_id not in (None, invocation.invocation_id)
        and written is not None
        and invocation.ended_at is not None
        and as_utc(written) > invocation.ended_at
    ):
        warn(
            "manifest.json was written by another command after the run: what ran may have been"
            " other SQL than the events tell of"
        )
    ran = [result.unique_id for result in results]
    return [*settings.run_events(project, analysis, names, invocation, ran).all(results)]


def analysis_of(target: TargetFolder) -> Analysis | None:
    """What was seen in the artifacts; None where dbt has compiled no model of them."""
    project = target.project
    models = [node for node in project.of_type("model", "snapshot") if not node.is_python]
    if models and all(node.compiled_code is None for node in models):
        return None
    return target.analysis(expressions=True)


@contextmanager
def sender_to(output: str | None, disabled: bool = False) -> Iterator[Sender]:
    """Where events go: to the transport, to a file, or to stdout.

    Raises:
        RippleError: the file cannot be written, or no transport is configured.
    """
    if disabled:
        yield Nowhere()
    elif output is None:
        yield ToTransport()
    elif output == "-":
        yield ToFile(sys.stdout, "stdout")
    else:
        with ExitStack() as stack:
            try:
                file = stack.enter_context(Path(output).open("w", encoding="utf-8"))
            except OSError as error:
                where, what = f"--output {output}", f"cannot be written ({error.strerror})"
                raise RippleError(what, where, "name another file") from error
            yield ToFile(file, output)


def _moment(text: str) -> datetime:
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise RippleError(
            f"{text!r} is no time in ISO 8601", "--nominal-time", "write 2026-11-23T06:00:00Z"
        ) from None
    return moment.replace(tzinfo=moment.tzinfo or UTC)
