"""`dbt-ripple collect`: OpenLineage events that other programs send, into a store on disk."""

from __future__ import annotations

import sys
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Final, TypeVar

import click

from dbt_ripple.cli.options import Command, listening_options, read_token
from dbt_ripple.errors import RippleError
from dbt_ripple.extras import require_extra
from dbt_ripple.rendering.output import answer, complain, count, warn
from dbt_ripple.session.assets import STORE

if TYPE_CHECKING:
    from dbt_ripple.collector.event_store import EventStore
    from dbt_ripple.collector.files import Collected
    from dbt_ripple.collector.intake import Limits
    from dbt_ripple.collector.metrics import Served

_Command = TypeVar("_Command", bound=Callable[..., Any])
EXIT_REFUSED = 1
_MOST_REFUSALS = 20
TOKEN: Final = "DBT_RIPPLE_COLLECT_TOKEN"
_LOOPBACK = ("127.0.0.1", "::1", "localhost")


def store_option(default: str | None) -> Callable[[_Command], _Command]:
    """Add ``--store``: the folder of events; without a default that beside the project."""
    return click.option(
        "--store",
        default=default,
        show_default=default or f"{STORE} beside the project",
        envvar="DBT_RIPPLE_EVENTS",
        show_envvar=True,
        type=click.Path(path_type=Path, file_okay=False),
        help="Folder that events are kept in.",
    )


@click.command(
    cls=Command,
    epilog="""\b
Examples:
  dbt-ripple collect events.ndjson
  dbt-ripple emit --output - | dbt-ripple collect -
  dbt-ripple collect --serve
  dbt-ripple collect --serve --host 0.0.0.0 --token-file token --store /var/lib/lineage
  dbt-ripple collect --from-kafka openlineage.events --brokers kafka:9092
""",
)
@click.argument("files", nargs=-1, metavar="[FILE]...")
@click.option(
    "--serve", "serves", is_flag=True, help="Take events over HTTP, until SIGTERM or Ctrl-C."
)
@click.option(
    "--from-kafka",
    "topic",
    metavar="TOPIC",
    help="Take events of a Kafka topic, until SIGTERM or Ctrl-C.",
)
@click.option(
    "--brokers",
    metavar="HOST:PORT,...",
    help="Brokers of Kafka, if --kafka-config does not name them.",
)
@click.option(
    "--kafka-config",
    metavar="FILE",
    type=click.Path(path_type=Path),
    help="Settings of Kafka's consumer, name=value a line (security.protocol, group.id, ...).",
)
@click.option("--until-end", is_flag=True, help="Stop at the end that the Kafka topic has now.")
@store_option(STORE)
@listening_options(5000, "producers", TOKEN)
@click.option(
    "--rate",
    default=1000.0,
    show_default="1000",
    type=click.FloatRange(0),
    help="Events a second from one address, averaged over ten seconds; 0 is any number.",
)
@click.option(
    "--max-body",
    default=5_000_000,
    show_default="5000000",
    type=click.IntRange(1000, 1_000_000_000),
    help="Bytes of a request, also after decompression, or of a line of a file.",
)
@click.option(
    "--max-batch",
    default=1000,
    show_default=True,
    type=click.IntRange(1),
    help="Events of a batch over HTTP.",
)
@click.option(
    "--max-depth",
    default=100,
    show_default=True,
    type=click.IntRange(10, 200),
    help="How deeply the JSON of an event may be nested.",
)
@click.option(
    "--max-requests",
    default=64,
    show_default=True,
    type=click.IntRange(1),
    help="Requests that are checked and stored at the same time; more of them wait.",
)
@click.option(
    "--timeout",
    default=30.0,
    show_default="30",
    type=click.FloatRange(0.1),
    help="Seconds in which a request has to arrive, and that it waits for its turn.",
)
@click.pass_context
def collect(
    context: click.Context,
    files: tuple[str, ...],
    serves: bool,
    topic: str | None,
    brokers: str | None,
    kafka_config: Path | None,
    until_end: bool,
    store: Path,
    host: str,
    port: int,
    token_file: Path | None,
    rate: float,
    max_body: int,
    max_batch: int,
    max_depth: int,
    max_requests: int,
    timeout: float,
) -> int:
    """Store OpenLineage events: of FILEs (- is stdin), over HTTP with --serve, or --from-kafka.

    A FILE has one event a line, or a JSON array of events. Over HTTP, producers post to /api/v1/lineage
    as to Marquez (OPENLINEAGE_URL=http://host:5000), or arrays to /api/v1/lineage/batch. A message of
    Kafka is one event. Events are checked against OpenLineage's schemas. An accepted event is on disk,
    and is never stored twice. Exit code 1: an event of a FILE, or of a topic --until-end, was refused.
    """
    if serves + bool(files) + (topic is not None) != 1:
        raise click.UsageError("name FILEs to read, --serve, or --from-kafka", context)
    if topic is None and (brokers or kafka_config or until_end):
        raise click.UsageError("--brokers, --kafka-config, --until-end need --from-kafka", context)
    require_extra("collect")
    if topic is not None:
        require_extra("kafka")
    from dbt_ripple.collector.event_store import EventStore
    from dbt_ripple.collector.intake import Limits

    limits = Limits(max_body, max_depth, max_batch)
    if topic is not None:
        from dbt_ripple.collector.kafka import settings_of

        settings = settings_of(kafka_config, brokers)
        with EventStore(store, warn) as opened:
            return _collect_topic(topic, settings, opened, limits, until_end)
    if not serves:
        with EventStore(store, warn) as opened:
            return _collect_files(files, opened, limits)

    from dbt_ripple.collector.guard import HttpLimits
    from dbt_ripple.collector.serve import serve

    token = read_token(token_file, TOKEN)
    may_listen(host, token, TOKEN)
    http_limits = HttpLimits(rate, max_requests, timeout)

    def ready(url: str) -> None:
        answer([f"listening on {url}, storing in {store}"])

    def ended(served: Served) -> None:
        was = "was" if served.duplicates == 1 else "were"
        answer(
            [
                f"stored {count(served.accepted, 'event')}; {served.duplicates:,} {was} there"
                f" before, {served.rejected:,} refused"
            ]
        )

    with EventStore(store, warn) as opened:
        serve(
            store=opened,
            host=host,
            port=port,
            limits=limits,
            http_limits=http_limits,
            token=token,
            on_ready=ready,
            on_end=ended,
        )
    return 0


def _collect_files(files: tuple[str, ...], store: EventStore, limits: Limits) -> int:
    from dbt_ripple.collector.event_store import StoreError
    from dbt_ripple.collector.files import Collected
    from dbt_ripple.collector.files import collect as collect_file

    collected = Collected()
    for name in files:
        with ExitStack() as stack:
            shown = "stdin" if name == "-" else name
            try:
                file: IO[bytes] = sys.stdin.buffer
                if name != "-":
                    file = stack.enter_context(Path(name).open("rb"))
                for refused in collect_file(file, store, limits, collected):
                    if collected.refused <= _MOST_REFUSALS:
                        place = (
                            refused.where if refused.where.startswith("[") else f":{refused.where}"
                        )
                        complain(f"{shown}{place}: {refused.why}")
            except OSError as error:
                what = f"cannot be read ({error.strerror}), after {_summary(collected, store)}"
                raise RippleError(what, shown) from error
            except StoreError as error:
                raise RippleError(
                    f"events cannot be written ({error.detail}), after {_summary(collected, store)}",
                    str(store.folder),
                    "run it again when there is room: nothing is stored twice",
                ) from error
    if collected.refused > _MOST_REFUSALS:
        complain(f"and {collected.refused - _MOST_REFUSALS:,} more were refused")
    _answer(collected, store)
    return EXIT_REFUSED if collected.refused else 0


def _collect_topic(
    topic: str, settings: dict[str, Any], store: EventStore, limits: Limits, until_end: bool
) -> int:
    from dbt_ripple.collector.event_store import StoreError
    from dbt_ripple.collector.files import Collected
    from dbt_ripple.collector.kafka import consume

    def ready() -> None:
        group = settings["group.id"]
        answer([f"reading {topic} as group {group}, storing in {store.folder}"])
        sys.stdout.flush()

    collected = Collected()
    try:
        consume(
            settings,
            topic,
            store,
            limits,
            collected,
            lambda refused: complain(f"{refused.where}: {refused.why}"),
            until_end=until_end,
            on_ready=ready,
        )
    except StoreError as error:
        raise RippleError(
            f"events cannot be written ({error.detail}), after {_summary(collected, store)}",
            str(store.folder),
            "start it again when there is room: Kafka keeps what is not stored",
        ) from error
    except (KeyboardInterrupt, SystemExit):
        _answer(collected, store)
        raise
    _answer(collected, store)
    return EXIT_REFUSED if collected.refused else 0


def _answer(collected: Collected, store: EventStore) -> None:
    from dbt_ripple.collector.intake import NOT_GIVEN_WARNING

    if collected.not_given:
        warn(f"{count(collected.not_given, 'event')} {NOT_GIVEN_WARNING}")
    answer([f"stored {_summary(collected, store)}"])


def _summary(collected: Collected, store: EventStore) -> str:
    was = "was" if collected.duplicates == 1 else "were"
    return (
        f"{count(collected.new, 'event')} in {store.folder}; {collected.duplicates:,} {was} there"
        f" before, {collected.refused:,} refused"
    )


def may_listen(host: str, token: str | None, variable: str) -> None:
    """Refuse an address that others reach, where no token is asked for.

    Raises:
        RippleError: it is one; the variable that may have the token is named.
    """
    if token is None and host not in _LOOPBACK:
        raise RippleError(
            "whoever reaches this address could post events, because no token is asked for",
            f"--host {host}",
            f"give --token-file or set {variable}",
        )
