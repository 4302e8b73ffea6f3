"""`dbt-ripple serve`: the collector, the explorer and a REST API in one process."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from dbt_ripple.cli.collect import may_listen, store_option
from dbt_ripple.cli.options import (
    Command,
    analysis_options,
    listening_options,
    partial_option,
    project_options,
    project_to_ask,
    read_token,
)
from dbt_ripple.cli.sides_options import with_asset_options
from dbt_ripple.extras import require_extra
from dbt_ripple.rendering.output import answer, count, warn
from dbt_ripple.session.assets import STORE, AssetOptions

if TYPE_CHECKING:
    from starlette.routing import Route

    from dbt_ripple.collector.guard import Guard
    from dbt_ripple.collector.metrics import Served
    from dbt_ripple.serve.api import Api

TOKEN: Final = "DBT_RIPPLE_SERVE_TOKEN"
SLACK: Final = "DBT_RIPPLE_SLACK_SIGNING_SECRET"


@click.command(
    cls=Command,
    epilog="""\b
Examples:
  dbt-ripple serve --port 8000
  dbt-ripple serve --host 0.0.0.0 --token-file token --project-dir shop
  curl -H 'Content-Type: application/json' -d '{"asset_type": "table", "name": "raw_orders"}' http://localhost:8000/lineage/trace
""",
)
@listening_options(8000, "requests", TOKEN)
@click.option(
    "--slack-secret-file",
    metavar="FILE",
    type=click.Path(path_type=Path),
    help="File with the signing secret of the Slack app whose slash command posts to /slack/lineage.  "
    f"[env var: {SLACK} has the secret itself]",
)
@click.option(
    "--file",
    metavar="FILE",
    type=click.Path(path_type=Path, dir_okay=False),
    help="File that registered assets are written to.  [default: ripple_assets.yml beside the project]",
)
@store_option(None)
@click.option(
    "--max-body",
    default=5_000_000,
    show_default="5000000",
    type=click.IntRange(1000, 1_000_000_000),
    help="Bytes of a request, also after decompression.",
)
@click.option(
    "--timeout",
    default=30.0,
    show_default="30",
    type=click.FloatRange(0.1),
    help="Seconds in which a request has to arrive, that it waits for its turn, and in which it is answered.",
)
@with_asset_options
@partial_option
@analysis_options
@project_options
def serve(
    host: str,
    port: int,
    token_file: Path | None,
    slack_secret_file: Path | None,
    file: Path | None,
    store: Path | None,
    max_body: int,
    timeout: float,
    assets: AssetOptions,
    cache_dir: Path | None,
    no_cache: bool,
    threads: int | None,
    project_dir: Path,
    target_path: Path | None,
) -> int:
    """Answer about lineage over HTTP, take in events and show the explorer, until SIGTERM or Ctrl-C.

    POST /lineage/trace registers an asset, GET /lineage/ID says what is upstream or downstream of it, POST
    /lineage/impact who would break by a change; /openapi.json describes them. POST /api/v1/lineage takes
    OpenLineage events, as `collect --serve` does. / is the explorer. Without a dbt project the registered
    assets and the events are all there is.
    """
    require_extra("collect")
    token = read_token(token_file, TOKEN)
    may_listen(host, token, TOKEN)
    slack_secret = read_token(slack_secret_file, SLACK, "--slack-secret-file")
    from dbt_ripple.collector.event_store import EventStore
    from dbt_ripple.collector.guard import HttpLimits
    from dbt_ripple.collector.intake import Limits
    from dbt_ripple.collector.serve import serve as serve_events
    from dbt_ripple.serve.api import PATHS, Api
    from dbt_ripple.serve.live_project import LiveProject
    from dbt_ripple.serve.slack import SlackSignature

    events = store or project_dir / STORE
    limits, http_limits = Limits(max_body), HttpLimits(seconds=timeout)
    apis: list[Api] = []

    def routes(guard: Guard) -> list[Route]:
        slack = SlackSignature(slack_secret) if slack_secret is not None else None
        api = Api(guard, limits, timeout, slack)
        apis.append(api)

        api.answers = LiveProject(project, warn)
        return api.routes()

    def ready(url: str) -> None:
        answer([f"listening on {url}/, storing events in {events}"])

    def ended(served: Served) -> None:
        answer([f"stored {count(served.accepted, 'event')}"])

    with EventStore(events, warn) as event_store:
        seen = assets._replace(events=tuple(dict.fromkeys((events, *(assets.events or ())))))
        where = (project_dir, target_path, seen, cache_dir, no_cache, threads)
        project = project_to_ask(*where, file=file)
        try:
            serve_events(
                store=event_store,
                host=host,
                port=port,
                limits=limits,
                http_limits=http_limits,
                token=token,
                on_ready=ready,
                on_end=ended,
                further=routes,
                paths=PATHS,
            )
        finally:
            for api in apis:
                api.close()
    return 0
