"""`dbt-ripple incident TEST|MODEL[.COLUMN]`: what on-call needs at 2 a.m., printed, as a page, or sent."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta
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
from dbt_ripple.session.diagnosis_with_changes import DiagnosisWithChanges, diagnose_with_changes

if TYPE_CHECKING:
    from dbt_ripple.artifacts import Node, Project
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
    to = destination(service) if service else None
    options = DbtOptions.taken(dbt_arguments)
    with open_cache(cache_dir, no_cache) as cache:
        asked = diagnose_with_changes(
            node=node,
            states=states,
            others=others,
            assets=assets,
            cache=cache,
            threads=threads,
            project_dir=project_dir,
            target_path=target_path,
            options=options,
        )
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
        document = _document(asked, since, project_dir, from_tables, messages=messages)
    look = f"dbt-ripple incident {node} --format json"
    if html is not None:
        _write_page(document, html)
    if to is not None:
        key = to.key
        body = _body(scrub_value(document), to.service, asked.own, look, key)
        status = send(to, "\n".join(as_json(body)).encode())
        warn(f"sent to {to.service} (status {status})")
    if style == "text":
        from dbt_ripple.rendering.incident import incident_text

        answer(incident_text(document), fit="wrap")
    elif style == "json":
        answer(as_document(document))
    else:
        answer(as_json(_body(document, style, asked.own, look)))


def _document(
    asked: DiagnosisWithChanges,
    since: timedelta,
    project_dir: Path,
    tables: Any = None,
    *,
    messages: bool = False,
) -> Incident:
    from dbt_ripple.governance.incident import incident as put_together
    from dbt_ripple.rendering.selection import dbt_words

    return put_together(
        asked.project,
        asked.analysis,
        asked.root,
        asked.diagnosis,
        lambda unique_ids: dbt_words(unique_ids, asked.own),
        own=asked.own,
        past=asked.past,
        tables=tables,
        since=since,
        messages=messages,
        project_of=asked.whose,
        commit_of=_commit_of(asked.own, project_dir),
    )


def slack_answer(node: str, since: timedelta, **how: Any) -> dict[str, Any]:
    """The incident of a test, node or column as Slack's blocks: what ``--format slack`` prints.

    Args:
        node: what is asked about.
        since: how long ago a change is still recent.
        how: further arguments of `diagnose_with_changes`.

    Raises:
        RippleError: as `diagnose_with_changes`.
    """
    asked = diagnose_with_changes(node=node, states=(), others=(), **how)
    document = scrub_value(_document(asked, since, how["project_dir"]))
    return _body(document, "slack", asked.own, f"dbt-ripple incident {node} --format json")


def _body(
    document: Incident, service: str, own: Project, look: str, key: str = ""
) -> dict[str, Any]:
    from dbt_ripple.flow.identifiers import dialect_of
    from dbt_ripple.rendering.incident_bodies import (
        pagerduty_body,
        sendable,
        slack_body,
        webhook_body,
    )

    shown, left_out = sendable(document, dialect_of(own.metadata.adapter_type))
    if service == "slack":
        return slack_body(shown, left_out, look)
    if service == "pagerduty":
        return pagerduty_body(shown, left_out, key)
    return webhook_body(shown, left_out)


def _commit_of(own: Project, project_dir: Path) -> Callable[[Node], tuple[str, datetime] | None]:
    """The last commit of a node's file; of installed packages it tells nothing."""
    from dbt_ripple.graph.git_history import last_commit

    def commit(node: Node) -> tuple[str, datetime] | None:
        if node.package_name != own.name or not node.original_file_path:
            return None
        file = project_dir / node.original_file_path
        return last_commit(file) if file.is_file() else None

    return commit


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
