"""The collector over HTTP: an ASGI application, and the process that serves it, its socket and how both end.

A request is answered 201 (200 for a batch) when its events are on disk, never before. Every other
answer has a body of RFC 9457 (``application/problem+json``) that says what is wrong and, for an event
that is not valid, where.
"""

from __future__ import annotations

import asyncio
import ipaddress
import logging
import socket
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from http import HTTPStatus
from typing import Any, Final

import h11
import uvicorn
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route
from uvicorn.protocols.http.h11_impl import H11Protocol

from dbt_ripple.collector.check_worker import CheckWorker, Kind, checked
from dbt_ripple.collector.event_store import EventStore, EventWriter, StoreError
from dbt_ripple.collector.guard import SMALL, Guard, HttpLimits, Refusal, Slot
from dbt_ripple.collector.intake import NOT_GIVEN_WARNING, Limits, RefusedError, Taken, not_given_in
from dbt_ripple.collector.metrics import CONTENT_TYPE_LATEST, Metrics, Served
from dbt_ripple.errors import RippleError

EVENT_PATH: Final = "/api/v1/lineage"
"""Where every producer posts: Marquez's path."""

BATCH_PATH: Final = "/api/v1/lineage/batch"

PATHS: Final = f"events are posted to {EVENT_PATH} or {BATCH_PATH}"

_STATUS_OF: Final = {
    "json": 400,
    "schema": 422,
    "depth": 422,
    "parts": 422,
    "check": 422,
    "size": 413,
    "batch_size": 413,
}
_CHECK_SECONDS: Final = 10.0


class Collector:
    """Answers requests.

    Args:
        writer: what stores events.
        metrics: what counts them.
        limits: of events.
        http_limits: of requests.
        guard: who may ask.
    """

    def __init__(
        self,
        writer: EventWriter,
        metrics: Metrics,
        limits: Limits,
        http_limits: HttpLimits,
        guard: Guard,
    ) -> None:
        self._writer = writer
        self._metrics = metrics
        self._limits = limits
        self._http_limits = http_limits
        self._guard = guard
        self._checking = asyncio.Semaphore(1)
        self._worker = CheckWorker(limits, min(http_limits.seconds, _CHECK_SECONDS))

    async def close(self) -> None:
        """End the process that checks large bodies."""
        await self._worker.close()

    def routes(self) -> list[Route]:
        """The paths of the collector."""
        return [
            Route(EVENT_PATH, self._answered(self._event), methods=["POST"]),
            Route(BATCH_PATH, self._answered(self._batch), methods=["POST"]),
            Route("/metrics", self._answered(self._show_metrics), methods=["GET"]),
            Route("/health", self._health, methods=["GET"]),
        ]

    async def _event(self, request: Request) -> Response:
        async with AsyncExitStack() as held:
            body = await self._guard.json_body(request, held)
            taken = await self._checked("event", body)
            await self._store(taken.lines)
        return Response(status_code=HTTPStatus.CREATED, headers=_warning(taken))

    async def _batch(self, request: Request) -> Response:
        async with AsyncExitStack() as held:
            body = await self._guard.json_body(request, held)
            taken = await self._checked("batch", body)
            self._guard.counted(request, len(taken.lines) + len(taken.refused) - 1)
            for _, error in taken.refused:
                self._metrics.rejected.labels(error.reason).inc()
            outcome = _outcome(taken)
            if taken.refused and not taken.lines:
                detail = "no event of the batch is valid"
                raise Refusal(422, "", detail, further=outcome)
            await self._store(taken.lines)
        return JSONResponse(outcome, headers=_warning(taken))

    async def _checked(self, kind: Kind, body: bytes) -> Taken:
        if len(body) <= SMALL:
            return checked(kind, body, self._limits)
        async with Slot(self._checking, self._http_limits.seconds):
            return await self._worker.check(kind, body)

    async def _store(self, lines: list[bytes]) -> None:
        # Shielded: what is written has to be counted, whether its client still waits or not.
        stored = await asyncio.shield(self._writer.append(lines))
        self._metrics.accepted.inc(stored.new)
        self._metrics.duplicates.inc(stored.duplicates)

    async def _show_metrics(self, request: Request) -> Response:
        return Response(self._metrics.text(), media_type=CONTENT_TYPE_LATEST)

    async def _health(self, request: Request) -> Response:
        return JSONResponse({"status": "ok"})

    def _answered(
        self, handler: Callable[[Request], Awaitable[Response]]
    ) -> Callable[[Request], Awaitable[Response]]:
        return self._guard.answered(handler, _told)


def application(routes: list[Route], metrics: Metrics, paths: str) -> Starlette:
    """An ASGI application whose answers to what it does not have are problems, too.

    Args:
        routes: its paths.
        metrics: count the refusals.
        paths: what is said of a path that is not there.
    """

    def no_such_route(request: Request, error: Exception) -> Response:
        assert isinstance(error, HTTPException)
        reason = "method" if error.status_code == HTTPStatus.METHOD_NOT_ALLOWED else "path"
        metrics.rejected.labels(reason).inc()
        return Refusal(error.status_code, reason, paths, headers=error.headers or {}).response()

    def our_fault(request: Request, error: Exception) -> Response:
        return Refusal(500, "", "the server failed; its log says why").response()

    handlers: Any = {HTTPException: no_such_route, Exception: our_fault}
    app = Starlette(routes=routes, exception_handlers=handlers)
    app.router.redirect_slashes = False
    return app


def _told(error: Exception) -> Refusal | None:
    if isinstance(error, RefusedError):
        return Refusal(_STATUS_OF[error.reason], error.reason, error.detail, error.problems)
    return _not_stored(error) if isinstance(error, StoreError) else None


def _warning(taken: Taken) -> dict[str, str]:
    """The header that says what is missing in events that are stored."""
    number = not_given_in(taken.lines)
    if not number:
        return {}
    events = "the event" if len(taken.lines) == 1 else f"{number} of the events"
    return {"Warning": f'299 - "{events} {NOT_GIVEN_WARNING}"'}


def _outcome(taken: Taken) -> dict[str, Any]:
    """What became of a batch, in the shape of the specification's ``/lineage/batch``."""
    successful, failed = len(taken.lines), len(taken.refused)
    return {
        # The document of a refusal has a status of its own.
        **(
            {"status": "partial_success" if failed else "success"}
            if successful or not failed
            else {}
        ),
        "summary": {
            "received": successful + failed,
            "successful": successful,
            "failed": failed,
            "retriable": 0,
            "non_retriable": failed,
        },
        "failed_events": [
            {"index": number, "reason": str(error), "retriable": False}
            for number, error in taken.refused
        ],
    }


def _not_stored(error: StoreError) -> Refusal:
    headers = {"Retry-After": "30"}
    if error.is_full:
        detail = f"no room is left for events ({error.detail}); nothing of the request is stored"
        return Refusal(507, "full", detail, headers=headers)
    detail = f"events cannot be written ({error.detail}); nothing of the request is stored"
    return Refusal(503, "disk", detail, headers=headers)


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
