"""`dbt-ripple register`: write assets that dbt does not build into ripple_assets.yml."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click
import msgspec

from dbt_ripple.cli.options import (
    Command,
    cache_options,
    format_option,
    open_cache,
    project_options,
)
from dbt_ripple.cli.shell_completion import node_names
from dbt_ripple.errors import RippleError
from dbt_ripple.rendering.output import answer, as_document

if TYPE_CHECKING:
    from dbt_ripple.governance.asset_edits import Edited, Registration
    from dbt_ripple.graph.assets.declared_graph import DeclaredGraph
    from dbt_ripple.graph.lineage import Analysis
    from dbt_ripple.session.registering import ToRegister

_Command = TypeVar("_Command", bound=Callable[..., Any])


def file_option(command: _Command) -> _Command:
    """Add ``--file`` and ``--dry-run``: what is written, and whether."""
    command = click.option(
        "--dry-run", is_flag=True, help="Print what would change, and write nothing."
    )(command)
    return click.option(
        "--file",
        "file",
        metavar="FILE",
        type=click.Path(path_type=Path, dir_okay=False),
        help="File to write.  [default: ripple_assets.yml beside the project]",
    )(command)


def describing_options(command: _Command) -> _Command:
    """Add the options that describe an asset: where its code is, who owns it and when it runs."""
    for option, help_ in (
        ("--source-ref", "Where it is defined: a file, an address, a name in its system."),
        ("--owner", "Who owns it: a name or an email address."),
        ("--schedule", "When it runs, as its scheduler writes it."),
        ("--description", "What it is, in a sentence."),
    ):
        command = click.option(option, metavar="TEXT", help=help_)(command)
    return click.option("--tag", "tags", metavar="TAG", multiple=True, help="Add a tag.")(command)


@click.command(
    cls=Command,
    epilog="""\b
Examples:
  dbt-ripple register api:stripe --owner payments@shop.example
  dbt-ripple register airflow:load_orders --source-ref dags/load_orders.py --upstream api:stripe --downstream raw.raw_orders
  dbt-ripple register dashboard:revenue --upstream fct_orders --column order_total:revenue
  dbt-ripple register --from-mlflow http://mlflow.internal:5000
  dbt-ripple register api:crm table:customers_raw table:customers_clean model:churn --pipeline customer_360
""",
)
@click.argument("ids", metavar="[ID...]", nargs=-1)
@click.option(
    "--from-mlflow",
    "mlflow_uri",
    metavar="URI",
    help="Register the models of an MLflow registry, with the datasets logged as their inputs.",
)
@click.option("--type", "type_", metavar="TYPE", help="What it is, where the ID does not say it.")
@click.option(
    "--upstream",
    "upstreams",
    metavar="NODE",
    multiple=True,
    shell_complete=node_names,
    help="What it reads: a node of dbt or another asset. May be repeated.",
)
@click.option(
    "--downstream",
    "downstreams",
    metavar="NODE",
    multiple=True,
    shell_complete=node_names,
    help="What it writes: a source of dbt or another asset. May be repeated.",
)
@click.option(
    "--column",
    "columns",
    metavar="A[:B]",
    multiple=True,
    help="A column of the only --upstream that it reads, as its column B. May be repeated.",
)
@click.option(
    "--transformation", metavar="TEXT", help="With --column: how the columns are computed."
)
@click.option(
    "--pipeline",
    metavar="NAME",
    help="Tag for all of several IDs, each of which reads the one before it.",
)
@describing_options
@file_option
@format_option("text", "json")
@cache_options
@project_options
def register(
    ids: tuple[str, ...],
    mlflow_uri: str | None,
    type_: str | None,
    upstreams: tuple[str, ...],
    downstreams: tuple[str, ...],
    columns: tuple[str, ...],
    transformation: str | None,
    pipeline: str | None,
    source_ref: str | None,
    owner: str | None,
    schedule: str | None,
    description: str | None,
    tags: tuple[str, ...],
    file: Path | None,
    dry_run: bool,
    style: str,
    cache_dir: Path | None,
    no_cache: bool,
    project_dir: Path,
    target_path: Path | None,
) -> None:
    """Write an asset that dbt does not build into ripple_assets.yml, or say that it is still there.

    An ID is WHAT:NAME: airflow:load_orders, table:orders, model:churn, api:stripe. If the file has the
    asset already, only what is given changes; comments and order stay. Several IDs are a pipeline: each
    reads the one before it. A name that matches nothing is refused, with the nearest name that does,
    and the file is left alone.
    """
    from dbt_ripple.governance.asset_edits import Registration
    from dbt_ripple.session.registering import pipeline_of

    write_registered = partial(
        write,
        file=file,
        dry_run=dry_run,
        style=style,
        cache_dir=cache_dir,
        no_cache=no_cache,
        project_dir=project_dir,
        target_path=target_path,
    )
    if mlflow_uri is not None:
        if ids or type_ or upstreams or downstreams or source_ref:
            raise click.UsageError(
                "--from-mlflow registers what the registry has: give no ID and no node"
            )
        of_mlflow = partial(_of_mlflow, mlflow_uri, tags)
        write_registered(of_mlflow)
        return
    if not ids:
        raise click.UsageError("Missing argument 'ID...'.")
    if columns and len(upstreams) != 1:
        raise click.UsageError("--column says what is read of one --upstream: give one")
    if transformation and not columns:
        raise click.UsageError("--transformation says how a --column is made: give that, too")
    properties = {
        "source_ref": source_ref,
        "owner": owner,
        "schedule": schedule,
        "description": description,
        "tags": (*tags, *([pipeline] if pipeline else [])),
    }
    reads: list[Any] = list(upstreams)
    if columns:
        flows = [_column(text, transformation) for text in columns]
        reads = [{"node": upstreams[0], "columns": flows}]
    if len(ids) == 1:
        one = Registration(id=ids[0], type=type_, reads=reads, writes=downstreams, **properties)  # type: ignore[arg-type]
        write_registered([one])
        return
    if type_ or upstreams or downstreams or source_ref:
        raise click.UsageError(
            "several IDs are a pipeline: give --type, --source-ref, --upstream and --downstream to one ID"
        )
    write_registered(pipeline_of(ids, properties))


def _column(text: str, transformation: str | None) -> Any:
    name, _, to = text.partition(":")
    if not name.strip():
        raise RippleError(f"{text!r} is not COLUMN or COLUMN:NEW", "--column", "name a column")
    if not to and not transformation:
        return name.strip()
    flow = {"from": name.strip(), "to": (to or name).strip()}
    return {**flow, **({"transformation": transformation} if transformation else {})}


def _of_mlflow(
    uri: str, tags: Sequence[str], graph: DeclaredGraph, analysis: Analysis
) -> list[Registration]:
    """The models of a registry, over the project and what is declared already."""
    from dbt_ripple.governance.mlflow_models import registrations_of

    def id_of(name: str) -> str | None:
        try:
            unique_id = graph.find(name, uri)
        except RippleError:
            return None
        asset = graph.declared.get(unique_id)
        return asset.id if asset is not None else name

    def columns_of(name: str) -> set[str] | None:
        unique_id = graph.find(name, uri)
        analysed = analysis.nodes.get(unique_id)
        if analysed is None or unique_id in analysis.unlisted:
            return None
        return {column.lower() for column in analysed.columns}

    registrations = registrations_of(uri, id_of, columns_of)
    return [msgspec.structs.replace(one, tags=tags) for one in registrations]


def write(
    registrations: Sequence[Registration] | ToRegister,
    file: Path | None,
    dry_run: bool,
    style: str,
    cache_dir: Path | None,
    no_cache: bool,
    project_dir: Path,
    target_path: Path | None,
) -> None:
    """Register assets over the project, and say what was written."""
    from dbt_ripple.session.project import Project

    with open_cache(cache_dir, no_cache) as cache:
        project = Project(project_dir, target_path, cache=cache, aloud=True)
        edited = project.register(registrations, file=file, dry_run=dry_run)
    print_edits(edited, style, dry_run)


def print_edits(edited: Edited, style: str, dry_run: bool) -> None:
    """What is, or would be, written."""
    if style == "json":
        document = {"file": str(edited.file), "changed": edited.changed, "written": not dry_run}
        answer(as_document(document))
        return
    lines = [f"{what}: {name}" for name, what in edited.changed.items()] or ["nothing to do"]
    end = "would be written to" if dry_run else "written to"
    answer([*lines, *([f"{end} {edited.file}"] if edited.changed else [])])
