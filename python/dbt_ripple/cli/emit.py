"""`dbt-ripple emit`: dbt's runs and the lineage of a project, as OpenLineage events."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from dbt_ripple.artifacts.target_path import artifacts_folder
from dbt_ripple.cli.dbt_options import connection_options
from dbt_ripple.cli.options import analysis_options, open_cache, open_target, project_options
from dbt_ripple.dbt_runner.invoke import DbtOptions
from dbt_ripple.errors import RippleError
from dbt_ripple.openlineage.client import (
    Sender,
    ToFile,
    ToTransport,
    is_disabled,
    require_client,
    send_all,
)
from dbt_ripple.rendering.output import answer, count, warn

if TYPE_CHECKING:
    from dbt_ripple.graph.lineage import Analysis
    from dbt_ripple.graph.target_folder import TargetFolder
    from dbt_ripple.openlineage.client import Event


@click.command(
    epilog="""\b
Examples:
  dbt build; dbt-ripple emit
  OPENLINEAGE_URL=http://localhost:5000 dbt-ripple emit
  dbt-ripple emit --output - | jq .eventType
  dbt-ripple emit --static --output lineage.ndjson
""",
)
@click.option(
    "--static",
    is_flag=True,
    help="Send the lineage without runs: a DatasetEvent for each relation, a JobEvent for each "
    "model, seed, snapshot and exposure.",
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
    help="Namespace of the datasets.  [default: what OpenLineage's naming rules make of the profile]",
)
@click.option(
    "--nominal-time",
    metavar="TIME",
    help="When the run was scheduled for, in ISO 8601.  [default: the invocation's start]",
)
@connection_options
@analysis_options
@project_options
def emit(
    static: bool,
    output: str | None,
    namespace: str | None,
    dataset_namespace: str | None,
    nominal_time: str | None,
    cache_dir: Path | None,
    no_cache: bool,
    threads: int | None,
    project_dir: Path,
    target_path: Path | None,
    **dbt_arguments: Any,
) -> None:
    """Send OpenLineage events of dbt's last run: START and COMPLETE or FAIL of every node that ran.

    Reads the artifacts that `dbt build` (or run, test, seed, snapshot) wrote to the target folder.
    Events carry column lineage, schemas, owners, tags, assertions and error messages. Where they go
    is configured as for any producer: OPENLINEAGE_URL, openlineage.yml, OPENLINEAGE_DISABLED. The same
    artifacts give the same events, so it does no harm to send them twice.
    """
    require_client()
    if output is None and is_disabled():
        warn("OPENLINEAGE_DISABLED is true: nothing is sent")
        return
    nominal = _moment(nominal_time) if nominal_time else None
    folder = artifacts_folder(project_dir, target_path)
    with sender_to(output) as sender:
        with open_cache(cache_dir, no_cache) as cache:
            target = open_target(folder, cache, threads)
            events = events_of(
                target,
                project_dir,
                DbtOptions.taken(dbt_arguments),
                static=static,
                namespace=namespace,
                dataset_namespace=dataset_namespace,
                nominal=nominal,
            )
        sent = send_all(events, sender)
    said = f"{count(sent, 'event')} to {sender.where}"
    if output == "-":
        warn(f"wrote {said}")
    else:
        answer([f"{'sent' if output is None else 'wrote'} {said}"])


def events_of(
    target: TargetFolder,
    project_dir: Path,
    options: DbtOptions,
    *,
    static: bool = False,
    namespace: str | None = None,
    dataset_namespace: str | None = None,
    nominal: datetime | None = None,
) -> list[Event]:
    """The events of the artifacts in a folder.

    Raises:
        RippleError: there are none, or the namespace of the datasets cannot be found out.
    """
    from dbt_ripple.openlineage.column_lineage import LineageFinder
    from dbt_ripple.openlineage.dataset_names import DatasetNames
    from dbt_ripple.openlineage.facets import ProjectFacets
    from dbt_ripple.openlineage.invocation import job_namespace, parent_in, read_invocation
    from dbt_ripple.openlineage.run_events import RunEvents
    from dbt_ripple.openlineage.static_events import static_events

    project = target.project
    results = project.run_results
    invocation = None if static else read_invocation(target.folder, results)
    connection = None
    if dataset_namespace is None:
        from dbt_ripple.dbt_runner.profile import connection_of

        connection = connection_of(project_dir, options, project.run_args)
        dataset_namespace = connection.namespace()
    analysis = analysis_of(target, static=static)
    wanted = project.nodes if static else {result.unique_id for result in results}
    wanted = {*wanted, *(p for unique_id in wanted for p in project.parents.get(unique_id, ()))}
    lineage = LineageFinder(project, analysis, wanted)
    names = DatasetNames(project, dataset_namespace, connection)
    facets = ProjectFacets(project, analysis, names, project_dir)
    if invocation is None:
        at = project.metadata.generated_at or datetime.now(UTC)
        return [*static_events(facets, lineage, namespace=job_namespace(namespace), at=at)]
    if project.metadata.invocation_id not in (None, invocation.invocation_id):
        warn(
            "manifest.json is of another command than run_results.json: what ran may have been"
            " other SQL than the events tell of"
        )
    return [
        *RunEvents(
            facets,
            lineage,
            analysis,
            invocation,
            namespace=job_namespace(namespace),
            job_name=os.environ.get("OPENLINEAGE_DBT_JOB_NAME") or None,
            parent=parent_in(os.environ),
            nominal=(nominal, None) if nominal else None,
        ).all(results)
    ]


def analysis_of(target: TargetFolder, *, static: bool = False) -> Analysis | None:
    """What was seen in the artifacts; None where dbt has compiled no model of them.

    Raises:
        RippleError: nothing is compiled, and without runs there would be nothing to tell.
    """
    project = target.project
    models = [node for node in project.of_type("model", "snapshot") if not node.is_python]
    if not static and models and all(node.compiled_code is None for node in models):
        return None
    return target.analysis(expressions=True)


@contextmanager
def sender_to(output: str | None) -> Iterator[Sender]:
    """Where events go: to the transport, to a file, or to stdout.

    Raises:
        RippleError: the file cannot be written, or no transport is configured.
    """
    if output is None:
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
