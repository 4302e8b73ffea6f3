"""The collector as a process: its socket, its server, and how both end."""

from __future__ import annotations

import asyncio
import ipaddress
import logging
import socket
from collections.abc import Callable
from typing import Any, Final

import h11
import uvicorn
from starlette.routing import Route
from uvicorn.protocols.http.h11_impl import H11Protocol

from dbt_ripple.collector.app import EVENT_PATH, PATHS, Collector, application
from dbt_ripple.collector.event_store import EventStore
from dbt_ripple.collector.event_writer import EventWriter
from dbt_ripple.collector.guard import Guard, HttpLimits
from dbt_ripple.collector.intake import Limits
from dbt_ripple.collector.metrics import Metrics, Served
from dbt_ripple.errors import RippleError

_GRACE: Final = 5.0


def serve(
    store: EventStore,
    host: str,
    port: int,
    limits: Limits,
    http_limits: HttpLimits,
    token: str | None,
    on_ready: Callable[[str], None],
    on_end: Callable[[Served], None],
    further: Callable[[Guard], list[Route]] | None = None,
    paths: str | None = None,
) -> None:
    """Serve until SIGTERM or SIGINT, which are raised again when all is stored.

    Requests that have begun are answered before it ends.

    Args:
        store: where events go; it is not closed.
        host: name or address to listen on.
        port: 0 takes a free one.
        limits: of events.
        http_limits: of requests.
        token: that producers have to show.
        on_ready: is called with the URL for producers when the socket is open.
        on_end: is called when the last event is stored.
        further: gives paths beside those of the collector. The URL of `on_ready` is then that of the server.
        paths: what is said of a path that is not there.

    Raises:
        RippleError: the address cannot be listened on.
    """
    listening = _listen(host, port)
    metrics = Metrics()
    writer = EventWriter(store, metrics.commit_seconds.observe)
    try:
        asyncio.run(
            _serve(listening, writer, metrics, limits, http_limits, token, on_ready, further, paths)
        )
    finally:
        writer.close()
        listening.close()
        on_end(metrics.served())


async def _serve(
    listening: socket.socket,
    writer: EventWriter,
    metrics: Metrics,
    limits: Limits,
    http_limits: HttpLimits,
    token: str | None,
    on_ready: Callable[[str], None],
    further: Callable[[Guard], list[Route]] | None,
    paths: str | None,
) -> None:
    address, port = listening.getsockname()[:2]
    local = ipaddress.ip_address(address).is_loopback
    guard = Guard(metrics, limits.body_bytes, http_limits, token, local=local)
    collector = Collector(writer, metrics, limits, http_limits, guard)
    more = further(guard) if further is not None else []
    # It warns of what clients do wrong, which they are told and which is counted.
    logging.getLogger("uvicorn.error").setLevel(logging.ERROR)
    config = uvicorn.Config(
        application([*collector.routes(), *more], metrics, paths or PATHS),
        http=_bounded_protocol(http_limits.seconds + _GRACE),
        ws="none",
        lifespan="off",
        log_config=None,
        access_log=False,
        # Whoever sends X-Forwarded-For may not choose whose rate is counted.
        proxy_headers=False,
        server_header=False,
        # Shorter, and a producer would often post on a connection that is just being closed.
        timeout_keep_alive=int(http_limits.seconds),
        limit_concurrency=http_limits.connections,
        timeout_graceful_shutdown=int(http_limits.seconds + _GRACE),
    )
    written = f"[{address}]" if ":" in address else address
    on_ready(f"http://{written}:{port}{'' if further is not None else EVENT_PATH}")
    try:
        await uvicorn.Server(config).serve(sockets=[listening])
    finally:
        await collector.close()


def _listen(host: str, port: int) -> socket.socket:
    try:
        (family, _, _, _, address), *_ = socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )
        return socket.create_server(address[:2], family=family, backlog=2048)
    except OSError as error:
        raise RippleError(
            f"cannot be listened on ({error.strerror or error})",
            f"{host}:{port}",
            "choose another --host or --port",
        ) from error


def _bounded_protocol(seconds: float) -> type[asyncio.Protocol]:
    """HTTP/1.1 of uvicorn, which closes connections whose request does not arrive in time.

    uvicorn has a time limit for what is idle between two requests only: who sends the headers, or
    the rest of a body that was refused, byte by byte would keep a connection for ever.
    """

    class BoundedProtocol(H11Protocol):
        _arrival: asyncio.TimerHandle | None = None

        def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
            super().connection_made(transport)
            self._watch()

        def data_received(self, data: bytes) -> None:
            super().data_received(data)
            self._watch()

        def connection_lost(self, exc: Exception | None) -> None:
            self._unwatch()
            super().connection_lost(exc)

        def on_response_complete(self) -> None:
            super().on_response_complete()
            # A request that came behind this one begins its time now.
            self._unwatch()
            self._watch()

        def _watch(self) -> None:
            if self.conn.their_state not in (h11.IDLE, h11.SEND_BODY):
                self._unwatch()
            elif self._arrival is None:
                self._arrival = self.loop.call_later(seconds, self._close)

        def _unwatch(self) -> None:
            if self._arrival is not None:
                self._arrival.cancel()
                self._arrival = None

        def _close(self) -> None:
            self._arrival = None
            if self.transport is not None:
                self.transport.close()

    kind: Any = BoundedProtocol
    return kind  # type: ignore[no-any-return]
