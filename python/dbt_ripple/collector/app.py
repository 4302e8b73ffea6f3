"""The collector over HTTP, as an ASGI application.

A request is answered 201 (200 for a batch) when its events are on disk, never before. Every other
answer has a body of RFC 9457 (``application/problem+json``) that says what is wrong and, for an event
that is not valid, where.
"""

from __future__ import annotations

import asyncio
import hmac
import time
import zlib
from collections.abc import Awaitable, Callable, Iterable, Mapping
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Any, Final

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from dbt_ripple.collector.check_worker import CheckWorker, Kind, checked
from dbt_ripple.collector.event_schemas import EventProblem
from dbt_ripple.collector.event_store import StoreError
from dbt_ripple.collector.event_writer import EventWriter
from dbt_ripple.collector.intake import (
    NOT_GIVEN_WARNING,
    Limits,
    RefusedError,
    Taken,
    not_given_in,
)
from dbt_ripple.collector.metrics import CONTENT_TYPE_LATEST, Metrics
from dbt_ripple.collector.rate_limit import RateLimit

EVENT_PATH: Final = "/api/v1/lineage"
"""Where every producer posts: Marquez's path."""

BATCH_PATH: Final = "/api/v1/lineage/batch"

_STATUS_OF: Final = {
    "json": 400,
    "schema": 422,
    "depth": 422,
    "parts": 422,
    "check": 422,
    "size": 413,
    "batch_size": 413,
}
SMALL: Final = 64_000
"""Bytes of a body that is checked at once: it takes milliseconds. Larger ones have a process of their own."""
_LARGE_AT_ONCE: Final = 8
"""Large bodies that are in the memory at one time; the others wait."""
_CHECK_SECONDS: Final = 10.0
_LOCAL: Final = frozenset({"127.0.0.1", "::1", "localhost"})


@dataclass(frozen=True, slots=True)
class HttpLimits:
    """What a client may ask for.

    Attributes:
        rate: events a second of each client, averaged over ten seconds; 0 is any number.
        requests: that are checked and stored at the same time; the others wait.
        seconds: for a body to arrive, and for a request to wait for its turn.
        connections: open at the same time; further ones get 503.
    """

    rate: float = 1000
    requests: int = 64
    seconds: float = 30
    connections: int = 1000


@dataclass(eq=False)
class _Answer(Exception):  # noqa: N818  an answer is no error of ours
    """An answer that is not yes."""

    status: int
    reason: str
    detail: str
    problems: Iterable[EventProblem] = ()
    headers: Mapping[str, str] = field(default_factory=dict)
    further: Mapping[str, Any] = field(default_factory=dict)

    def response(self) -> Response:
        body = {
            "title": HTTPStatus(self.status).phrase,
            "status": self.status,
            "detail": self.detail,
            **self.further,
        }
        if errors := [problem._asdict() for problem in self.problems]:
            body["errors"] = errors
        return JSONResponse(
            body, self.status, dict(self.headers), media_type="application/problem+json"
        )


class Collector:
    """Answers requests.

    Args:
        writer: what stores events.
        metrics: what counts them.
        token: that every request but ``/health`` has to show; none is asked for if it is None.
        local: whether only this machine can reach it. Without a token, requests then have to name it by
            an address of this machine: a page of somebody else's, open in a browser here, cannot.
    """

    def __init__(
        self,
        writer: EventWriter,
        metrics: Metrics,
        limits: Limits,
        http_limits: HttpLimits,
        token: str | None = None,
        *,
        local: bool = False,
    ) -> None:
        self._writer = writer
        self._metrics = metrics
        self._limits = limits
        self._http_limits = http_limits
        self._token = token.encode() if token is not None else None
        self._rate = RateLimit(http_limits.rate)
        self._slots = asyncio.Semaphore(http_limits.requests)
        self._large = asyncio.Semaphore(_LARGE_AT_ONCE)
        self._checking = asyncio.Semaphore(1)
        self._worker = CheckWorker(limits, min(http_limits.seconds, _CHECK_SECONDS))
        self._is_local = local and token is None

    async def close(self) -> None:
        """End the process that checks large bodies."""
        await self._worker.close()

    def app(self) -> Starlette:
        """The ASGI application."""
        routes = [
            Route(EVENT_PATH, self._answered(self._event), methods=["POST"]),
            Route(BATCH_PATH, self._answered(self._batch), methods=["POST"]),
            Route("/metrics", self._answered(self._show_metrics), methods=["GET"]),
            Route("/health", self._health, methods=["GET"]),
        ]
        app = Starlette(
            routes=routes,
            exception_handlers={HTTPException: self._no_such_route, Exception: self._our_fault},
        )
        app.router.redirect_slashes = False
        return app

    async def _event(self, request: Request) -> Response:
        async with AsyncExitStack() as held:
            taken = await self._checked("event", await self._body(request, held))
            await self._store(taken.lines)
        return Response(status_code=HTTPStatus.CREATED, headers=_warning(taken))

    async def _batch(self, request: Request) -> Response:
        async with AsyncExitStack() as held:
            taken = await self._checked("batch", await self._body(request, held))
            self._rate.count(_client(request), len(taken.lines) + len(taken.refused) - 1)
            for _, error in taken.refused:
                self._metrics.rejected.labels(error.reason).inc()
            outcome = _outcome(taken)
            if taken.refused and not taken.lines:
                detail = "no event of the batch is valid"
                raise _Answer(422, "", detail, further=outcome)
            await self._store(taken.lines)
        return JSONResponse(outcome, headers=_warning(taken))

    async def _checked(self, kind: Kind, body: bytes) -> Taken:
        if len(body) <= SMALL:
            return checked(kind, body, self._limits)
        async with _Slot(self._checking, self._http_limits.seconds):
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
        """A handler behind the token, whose refusals become answers and are counted."""

        async def answer(request: Request) -> Response:
            began = time.perf_counter()
            self._metrics.waiting.inc()
            try:
                self._check_origin(request)
                self._check_token(request)
                return await handler(request)
            except _Answer as refused:
                answer_of_error = refused
            except RefusedError as error:
                status = _STATUS_OF[error.reason]
                answer_of_error = _Answer(status, error.reason, error.detail, error.problems)
            except StoreError as error:
                answer_of_error = _not_stored(error)
            except ClientDisconnect:
                answer_of_error = _Answer(400, "disconnect", "the connection was closed")
            finally:
                self._metrics.waiting.dec()
                self._metrics.seconds.observe(time.perf_counter() - began)
            if answer_of_error.reason:
                self._metrics.rejected.labels(answer_of_error.reason).inc()
            return answer_of_error.response()

        return answer

    def _check_origin(self, request: Request) -> None:
        """Refuse what a page in a browser sends: no producer is one."""
        if "origin" in request.headers:
            raise _Answer(403, "origin", "pages in a browser may not send events")
        if not self._is_local:
            return
        host = request.headers.get("host", "")
        name = (
            host.partition("]")[0].lstrip("[") if host.startswith("[") else host.partition(":")[0]
        )
        if name.lower() not in _LOCAL:
            detail = (
                f"this machine is not called {host[:100]!r} here; post to localhost, or use a token"
            )
            raise _Answer(403, "origin", detail)

    def _check_token(self, request: Request) -> None:
        if self._token is None:
            return
        scheme, _, shown = request.headers.get("authorization", "").partition(" ")
        # Compared in a time that does not depend on how much of it is right.
        is_right = hmac.compare_digest(shown.strip().encode("latin-1"), self._token)
        if scheme.lower() != "bearer" or not is_right:
            detail = "send the collector's token as Authorization: Bearer ..."
            raise _Answer(401, "token", detail, headers={"WWW-Authenticate": "Bearer"})

    async def _body(self, request: Request, held: AsyncExitStack) -> bytes:
        """The body, decompressed, if it may be read; one that is large holds one of a few places."""
        client = _client(request)
        if wait := self._rate.wait(client):
            detail = f"more than {self._http_limits.rate:g} events a second"
            raise _Answer(429, "rate", detail, headers={"Retry-After": str(int(wait) + 1)})
        self._rate.count(client, 1)
        kind = request.headers.get("content-type", "").partition(";")[0]
        if kind.strip().lower() != "application/json":
            detail = f"the body is {kind.strip()[:100]!r}; send Content-Type: application/json"
            raise _Answer(415, "content_type", detail)
        encoding = request.headers.get("content-encoding", "identity").strip().lower()
        if encoding not in ("gzip", "identity"):
            detail = f"Content-Encoding {encoding[:100]!r}; send gzip or none"
            raise _Answer(415, "content_type", detail, headers={"Accept-Encoding": "gzip"})
        try:
            announced = int(request.headers.get("content-length", "0"))
        except ValueError:
            announced = 0  # the server has answered by now
        if announced > self._limits.body_bytes:
            raise self._too_large()
        is_held = announced > SMALL or encoding == "gzip"
        if is_held:
            await held.enter_async_context(_Slot(self._large, self._http_limits.seconds))
        body = bytearray()
        try:
            async with asyncio.timeout(self._http_limits.seconds):
                async for chunk in request.stream():
                    body += chunk
                    self._metrics.bytes.inc(len(chunk))
                    if len(body) > self._limits.body_bytes:
                        raise self._too_large()
                    if len(body) > SMALL and not is_held:
                        is_held = True
                        await held.enter_async_context(
                            _Slot(self._large, self._http_limits.seconds)
                        )
        except TimeoutError:
            detail = f"the body did not arrive in {self._http_limits.seconds:g} seconds"
            raise _Answer(408, "timeout", detail, headers={"Connection": "close"}) from None
        # Not before: who sends a body byte by byte would have the place of one that is there.
        await held.enter_async_context(_Slot(self._slots, self._http_limits.seconds))
        return bytes(body) if encoding == "identity" else self._decompressed(bytes(body))

    def _decompressed(self, body: bytes) -> bytes:
        gzip = zlib.decompressobj(wbits=31)
        try:
            decompressed = gzip.decompress(body, self._limits.body_bytes + 1)
        except zlib.error:
            raise _Answer(400, "gzip", "the body is not gzip") from None
        if len(decompressed) > self._limits.body_bytes:
            raise self._too_large()
        if not gzip.eof or gzip.unused_data:
            raise _Answer(400, "gzip", "the body is not one whole gzip stream")
        return decompressed

    def _too_large(self) -> _Answer:
        detail = f"the body has more than {self._limits.body_bytes:,} bytes"
        return _Answer(413, "size", detail)

    def _no_such_route(self, request: Request, error: Exception) -> Response:
        assert isinstance(error, HTTPException)
        reason, detail = "path", f"events are posted to {EVENT_PATH} or {BATCH_PATH}"
        if error.status_code == HTTPStatus.METHOD_NOT_ALLOWED:
            reason = "method"
        self._metrics.rejected.labels(reason).inc()
        return _Answer(error.status_code, reason, detail, headers=error.headers or {}).response()

    def _our_fault(self, request: Request, error: Exception) -> Response:
        return _Answer(500, "", "the collector failed; its log says why").response()


class _Slot:
    """One of the requests that are worked on at the same time."""

    def __init__(self, slots: asyncio.Semaphore, seconds: float) -> None:
        self._slots = slots
        self._seconds = seconds

    async def __aenter__(self) -> None:
        try:
            async with asyncio.timeout(self._seconds):
                await self._slots.acquire()
        except TimeoutError:
            detail = "the collector is busy"
            raise _Answer(503, "busy", detail, headers={"Retry-After": "1"}) from None

    async def __aexit__(self, *_: object) -> None:
        self._slots.release()


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


def _not_stored(error: StoreError) -> _Answer:
    headers = {"Retry-After": "30"}
    if error.is_full:
        detail = f"no room is left for events ({error.detail}); nothing of the request is stored"
        return _Answer(507, "full", detail, headers=headers)
    detail = f"events cannot be written ({error.detail}); nothing of the request is stored"
    return _Answer(503, "disk", detail, headers=headers)


def _client(request: Request) -> str:
    return request.client.host if request.client else ""
