"""`dbt-ripple incident TEST|MODEL[.COLUMN]`: what on-call needs at 2 a.m., printed, as a page, or sent.

It is sent by one POST, tried again where that can help. Addresses and keys are secrets. They come from the environment,
and nothing that is printed has them: no address, no text of an exception of the HTTP client (which quotes it), no
answer of a server beyond its status.
"""

from __future__ import annotations

import os
import re
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple
from urllib.parse import urlsplit

import click

from dbt_ripple.cli.options import (
    Command,
    analysis_options,
    connection_options,
    format_option,
    open_cache,
    other_projects_option,
    partial_option,
    project_options,
    states_option,
)
from dbt_ripple.cli.shell_completion import node_names
from dbt_ripple.cli.sides_options import with_asset_options
from dbt_ripple.dbt_runner.invoke import DbtOptions
from dbt_ripple.errors import RippleError
from dbt_ripple.extras import require_extra
from dbt_ripple.rendering.incident import incident_text, timedelta_of
from dbt_ripple.rendering.output import answer, as_document, as_json, warn
from dbt_ripple.secrets import scrub, scrub_value
from dbt_ripple.session.assets import AssetOptions
from dbt_ripple.session.diagnosis_with_changes import body_of, diagnose_with_changes, incident_of

if TYPE_CHECKING:
    from collections.abc import Mapping

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


SLACK_URL: Final = "DBT_RIPPLE_SLACK_URL"
PAGERDUTY_KEY: Final = "DBT_RIPPLE_PAGERDUTY_KEY"
PAGERDUTY_URL: Final = "DBT_RIPPLE_PAGERDUTY_URL"
WEBHOOK_URL: Final = "DBT_RIPPLE_WEBHOOK_URL"
WEBHOOK_TOKEN: Final = "DBT_RIPPLE_WEBHOOK_TOKEN"

_EVENTS: Final = "https://events.pagerduty.com/v2/enqueue"
TRIES: Final = 4
CONNECT_SECONDS: Final = 5.0
READ_SECONDS: Final = 15.0
LONGEST_WAIT: Final = 20.0
"""Seconds that a server may ask to wait before the next try; longer, and it counts as refused."""
_AGAIN: Final = (429, 500, 502, 503, 504)


class IncidentReceiver(NamedTuple):
    """Where something is sent.

    Attributes:
        service: slack, pagerduty or webhook.
        url: the address.
        variable: the environment variable it is from, by which messages name it.
        headers: beside those of JSON.
        key: PagerDuty's routing key; empty for others.
    """

    service: str
    url: str
    variable: str
    headers: dict[str, str]
    key: str = ""


def destination(service: str, environment: Mapping[str, str] = os.environ) -> IncidentReceiver:
    """Where an incident goes, by the environment.

    Raises:
        RippleError: a variable is missing, or is no address; ``requests`` is not installed.
    """
    require_extra("send")
    headers: dict[str, str] = {}
    key = ""
    if service == "pagerduty":
        key = _required(
            environment, PAGERDUTY_KEY, "the integration key of a service (Events API v2)"
        )
        variable, url = PAGERDUTY_URL, environment.get(PAGERDUTY_URL) or _EVENTS
    elif service == "slack":
        variable, url = (
            SLACK_URL,
            _required(environment, SLACK_URL, "the URL of an incoming webhook"),
        )
    else:
        variable = WEBHOOK_URL
        url = _required(environment, WEBHOOK_URL, "the URL that is to get the incident")
        if token := environment.get(WEBHOOK_TOKEN):
            if not token.isascii() or not token.isprintable():
                raise RippleError(
                    "has characters that a header cannot have", WEBHOOK_TOKEN, "mend it"
                )
            headers["Authorization"] = f"Bearer {token}"
    _check(url, variable, secret_in_body=service != "webhook" or bool(headers))
    return IncidentReceiver(service, url, variable, headers, key)


def _required(environment: Mapping[str, str], name: str, what: str) -> str:
    value = environment.get(name, "").strip()
    if not value:
        raise RippleError("is not set", name, f"set it to {what}")
    return value


def _check(url: str, variable: str, *, secret_in_body: bool) -> None:
    try:
        parts = urlsplit(url)
        host = parts.hostname or ""
    except ValueError:
        parts, host = urlsplit(""), ""
    if parts.scheme not in ("http", "https") or not host:
        raise RippleError("is no http or https address", variable, "mend it")
    here = host == "localhost" or host == "::1" or host.startswith("127.")
    if parts.scheme == "http" and secret_in_body and not here:
        raise RippleError("would send a secret unencrypted", variable, "give an https address")


def send(to: IncidentReceiver, body: bytes) -> int:
    """Send a body, and return the status with which it was taken.

    It is tried up to `TRIES` times where the server cannot be reached, is too busy, or fails itself. So it may
    arrive twice; PagerDuty knows it again by its dedup_key. Redirects are not followed: a key would go along.

    Raises:
        RippleError: it was not taken.
    """
    import requests
    from requests.adapters import HTTPAdapter

    with requests.Session() as session:
        session.mount("http://", HTTPAdapter(max_retries=_retries()))
        session.mount("https://", HTTPAdapter(max_retries=_retries()))
        try:
            answer = session.post(
                to.url,
                data=body,
                headers={"Content-Type": "application/json; charset=utf-8", **to.headers},
                timeout=(CONNECT_SECONDS, READ_SECONDS),
                allow_redirects=False,
            )
        except requests.RequestException as error:
            what = _WORDS.get(type(error).__name__, "the request failed")
            # Without its cause: the client's own sentences quote the address.
            raise RippleError(
                f"{to.service} did not take it: {what}, after {TRIES} tries",
                to.variable,
                "check the address, the network and its proxy",
            ) from None
    if 200 <= answer.status_code < 300:
        return answer.status_code
    error_code = answer.text.strip() if len(answer.content) < 100 else ""
    # Slack's own codes, such as invalid_blocks: no word that could quote anything.
    code = (
        f" ({error_code})"
        if to.service == "slack" and re.fullmatch("[a-z]+(_[a-z]+)+", error_code)
        else ""
    )
    raise RippleError(
        f"{to.service} did not take it: status {answer.status_code}{code}",
        to.variable,
        _ADVICE.get(answer.status_code, "check the address and the key"),
    )


_WORDS: Final = {
    "ConnectTimeout": "no connection in time",
    "ReadTimeout": "no answer in time",
    "SSLError": "its certificate cannot be verified",
    "ProxyError": "the proxy refuses",
    "ConnectionError": "it cannot be reached",
    "RetryError": "it cannot be reached",
}
_ADVICE: Final = {
    429: "it takes no more for now: try again later",
    301: "redirects are not followed: give the address itself",
    302: "redirects are not followed: give the address itself",
    307: "redirects are not followed: give the address itself",
    308: "redirects are not followed: give the address itself",
}


def _retries() -> Any:
    from urllib3.util import Retry

    class Patient(Retry):
        """Waits as long as the server asks, but not for ever."""

        def get_retry_after(self, response: Any) -> float | None:
            asked = super().get_retry_after(response)
            return None if asked is None else min(asked, LONGEST_WAIT)

    return Patient(
        total=TRIES - 1,
        backoff_factor=0.5,
        backoff_max=LONGEST_WAIT,
        status_forcelist=_AGAIN,
        allowed_methods=frozenset({"POST"}),
        raise_on_status=False,
    )
