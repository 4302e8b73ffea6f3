"""`dbt-ripple incident TEST|MODEL[.COLUMN]`: what on-call needs at 2 a.m., printed, as a page, or sent."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from dbt_ripple.cli.asset_options import with_asset_options
from dbt_ripple.cli.dbt_options import connection_options
from dbt_ripple.cli.help import Command
from dbt_ripple.cli.options import (
    analysis_options,
    format_option,
    open_cache,
    other_projects_option,
    partial_option,
    project_options,
    states_option,
)
from dbt_ripple.cli.send_incident import destination, send
from dbt_ripple.cli.shell_completion import node_names
from dbt_ripple.dbt_runner.invoke import DbtOptions
from dbt_ripple.errors import RippleError
from dbt_ripple.rendering.durations import timedelta_of
from dbt_ripple.rendering.output import answer, as_document, as_json, warn
from dbt_ripple.secrets import scrub, scrub_value
from dbt_ripple.session.assets import AssetOptions
from dbt_ripple.session.diagnosis_with_changes import diagnose_with_changes
from dbt_ripple.session.incidents import body_of, incident_of

if TYPE_CHECKING:
    from dbt_ripple.governance.incident_document import Incident

SERVICES: Final = ("slack", "pagerduty", "webhook")


def _since(context: click.Context, parameter: click.Parameter, value: str) -> timedelta:
    since = timedelta_of(value)
    if since is None:
        raise click.BadParameter("say it as 90m, 24h or 7d")
    return since


@click.command(
    cls=Command,
    epilog="""\b
Examples:
  dbt-ripple incident not_null_revenue_daily_total_usd --state last-good
  dbt-ripple incident revenue_daily.total_usd --tables --since 7d
  dbt-ripple incident revenue_holds --state last-good --html incident.html
  DBT_RIPPLE_SLACK_URL=... dbt-ripple incident revenue_holds --send slack
""",
)
@click.argument("node", metavar="TEST|NODE[.COLUMN]", shell_complete=node_names)
@click.option(
    "--since",
    default="24h",
    show_default=True,
    metavar="TIME",
    callback=_since,
    help="How long before the failure a change counts as recent: 90m, 24h, 7d. Older ones come last.",
)
@states_option(
    "Folder with artifacts from when the result was right. Once for each project that is to be compared."
)
@click.option(
    "--tables",
    is_flag=True,
    help="Also ask the lineage tables, by `dbt show` in this project.",
)
@click.option(
    "--tables-project",
    metavar="DIR",
    type=click.Path(path_type=Path, exists=True, file_okay=False),
    help="The same in the dbt project in DIR, where that one has the package dbt_ripple.",
)
@with_asset_options
@other_projects_option("the answer goes on where this one reads what that one builds")
@click.option("--html", metavar="FILE", type=click.Path(path_type=Path), help="Write a page, too.")
@click.option(
    "--send",
    "service",
    type=click.Choice(SERVICES),
    help="Send it. Address and key are read from DBT_RIPPLE_SLACK_URL, DBT_RIPPLE_PAGERDUTY_KEY, or "
    "DBT_RIPPLE_WEBHOOK_URL and DBT_RIPPLE_WEBHOOK_TOKEN.",
)
@click.option(
    "--messages",
    is_flag=True,
    help="Show and send dbt's error messages, which may quote values; not where anything on the way "
    "holds personal data.",
)
@format_option(
    "text", "json", *SERVICES, help="Output format; the last three are what --send sends."
)
@partial_option
@connection_options
@analysis_options
@project_options
def incident(
    node: str,
    since: timedelta,
    states: tuple[Path, ...],
    tables: bool,
    tables_project: Path | None,
    assets: AssetOptions,
    others: tuple[Path, ...],
    html: Path | None,
    service: str | None,
    messages: bool,
    style: str,
    cache_dir: Path | None,
    no_cache: bool,
    threads: int | None,
    project_dir: Path,
    target_path: Path | None,
    **dbt_arguments: Any,
) -> None:
    """Print what on-call has to know about a failed TEST, or a NODE or column that is wrong.

    What failed and when it last passed, how fresh the sources are, what changed above it (the likeliest
    cause first), who owns it, which assets are reached below, and dbt commands to contain it. It reads
    the artifacts of the last command; --state and --tables add what was before.

    No value of a row is printed or sent. With --send, exit code 0 means that the service took it, 2 that
    it did not.
    """
    from dbt_ripple.session.project import Project

    to = destination(service) if service else None
    options = DbtOptions.taken(dbt_arguments)
    with open_cache(cache_dir, no_cache) as cache:
        project = Project(
            *(project_dir, target_path),
            assets=assets,
            others=others,
            cache=cache,
            threads=threads,
            dbt=options,
            aloud=True,
        )
        asked = diagnose_with_changes(project, node, states)
        from_tables = None
        if tables or tables_project is not None:
            from dbt_ripple.dbt_runner.incident_tables import ask_tables

            own = {result.unique_id: result for result in asked.own.executed}
            last = own.get(asked.root.unique_id)
            from_tables = ask_tables(
                folder=tables_project or project_dir,
                options=options,
                own=asked.own,
                root=asked.root,
                column=asked.diagnosis.column,
                since=since,
                opened_at=last.completed_at if last is not None else None,
            )
        document = incident_of(asked, since, project_dir, from_tables, messages=messages)
    if html is not None:
        _write_page(document, html)
    if to is not None:
        body = body_of(scrub_value(document), to.service, asked.own, node, to.key)
        status = send(to, "\n".join(as_json(body)).encode())
        warn(f"sent to {to.service} (status {status})")
    if style == "text":
        from dbt_ripple.rendering.incident import incident_text

        answer(incident_text(document), fit="wrap")
    elif style == "json":
        answer(as_document(document))
    else:
        answer(as_json(body_of(document, style, asked.own, node)))


def _write_page(document: Incident, file: Path) -> None:
    from dbt_ripple.pages.incident import incident_page

    try:
        file.write_text(scrub(incident_page(document)), encoding="utf-8")
    except OSError as error:
        raise RippleError(
            f"cannot be written ({error.strerror})",
            str(file),
            "name a file in a folder that is there",
        ) from error
