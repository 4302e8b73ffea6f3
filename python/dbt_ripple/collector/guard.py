"""Who may ask, how often, how large a request may be, and how long it may take: for every server of this package.

A refusal is answered with a body of RFC 9457 (``application/problem+json``) that says what is wrong.
"""

from __future__ import annotations

import asyncio
import hmac
import time
import zlib
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Iterable, Mapping
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Any, Final

from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response

from dbt_ripple.collector.event_schemas import EventProblem
from dbt_ripple.collector.metrics import Metrics

_CLIENTS: Final = 10_000
"""Clients that are remembered; who has not been seen for longest is forgotten, with a full bucket."""


class RateLimit:
    """Allows each client so many events a second, over some seconds on average.

    Args:
        per_second: events; 0 allows any number.
        seconds: over how long it is averaged: a client may send the events of so many seconds at once.
        clock: seconds that only grow.
    """

    def __init__(
        self,
        per_second: float,
        seconds: float = 10,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._per_second = per_second
        self._most = per_second * seconds
        self._clock = clock
        self._left: OrderedDict[str, tuple[float, float]] = OrderedDict()

    def wait(self, client: str) -> float:
        """Seconds until a client may send again; 0 is now."""
        if not self._per_second:
            return 0
        left = self._now(client)
        return 0 if left >= 1 else (1 - left) / self._per_second

    def count(self, client: str, events: int) -> None:
        """Count events; a batch may take more than is left, and has to be waited for."""
        if self._per_second:
            self._left[client] = (self._now(client) - events, self._clock())
            self._left.move_to_end(client)
            if len(self._left) > _CLIENTS:
                self._left.popitem(last=False)

    def _now(self, client: str) -> float:
        left, at = self._left.get(client, (self._most, self._clock()))
        return min(self._most, left + (self._clock() - at) * self._per_second)


SMALL: Final = 64_000
"""Bytes of a body that takes no place: what is done with it takes milliseconds."""
_LARGE_AT_ONCE: Final = 8
"""Larger bodies that are in the memory at one time; the others wait."""
_PACE: Final = 16_000
"""Bytes a second at which a larger body has to come; who is slower gives his place to those who wait."""
_HEAD_START: Final = 1.0
_LOCAL: Final = frozenset({"127.0.0.1", "::1", "localhost"})

Handler = Callable[[Request], Awaitable[Response]]


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
class Refusal(Exception):  # noqa: N818  an answer is no error of ours
    """An answer that is not yes."""

    status: int
    reason: str
    detail: str
    problems: Iterable[EventProblem] = ()
    headers: Mapping[str, str] = field(default_factory=dict)
    further: Mapping[str, Any] = field(default_factory=dict)

    def response(self) -> Response:
        """The answer."""
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


class Guard:
    """Lets requests in.

    Args:
        metrics: what counts them.
        body_bytes: of a body, also after decompression.
        limits: of requests.
        token: that a request has to show; none is asked for if it is None.
        local: whether only this machine can reach the server. Without a token, requests then have to name it
            by an address of this machine: a page of somebody else's, open in a browser here, cannot.
    """

    def __init__(
        self,
        metrics: Metrics,
        body_bytes: int,
        limits: HttpLimits,
        token: str | None = None,
        *,
        local: bool = False,
    ) -> None:
        self._metrics = metrics
        self._body_bytes = body_bytes
        self._limits = limits
        self._token = token.encode() if token is not None else None
        self._rate = RateLimit(limits.rate)
        self._slots = asyncio.Semaphore(limits.requests)
        self._large = asyncio.Semaphore(_LARGE_AT_ONCE)
        self._is_local = local and token is None

    def answered(
        self, handler: Handler, told: Callable[[Exception], Refusal | None], *, asks: bool = True
    ) -> Handler:
        """A handler whose refusals become answers and are counted.

        Args:
            handler: answers, or raises.
            told: what an exception of the handler is as an answer; None of one that is our fault.
            asks: whether it is asked who sends the request; not of one that is signed.
        """

        async def answer(request: Request) -> Response:
            began = time.perf_counter()
            self._metrics.waiting.inc()
            try:
                if asks:
                    self.check_origin(request)
                    self.check_token(request)
                return await handler(request)
            except Refusal as refused:
                refusal = refused
            except ClientDisconnect:
                refusal = Refusal(400, "disconnect", "the connection was closed")
            except Exception as error:
                found = told(error)
                if found is None:
                    raise
                refusal = found
            finally:
                self._metrics.waiting.dec()
                self._metrics.seconds.observe(time.perf_counter() - began)
            if refusal.reason:
                self._metrics.rejected.labels(refusal.reason).inc()
            return refusal.response()

        return answer

    def check_origin(self, request: Request) -> None:
        """Refuse what a page of somebody else's in a browser sends.

        Raises:
            Refusal: 403.
        """
        if "origin" in request.headers:
            raise Refusal(403, "origin", "pages in a browser may not ask here")
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
            raise Refusal(403, "origin", detail)

    def check_token(self, request: Request) -> None:
        """Refuse who does not show the token.

        Raises:
            Refusal: 401.
        """
        if self._token is None:
            return
        scheme, _, shown = request.headers.get("authorization", "").partition(" ")
        # Compared in a time that does not depend on how much of it is right.
        is_right = hmac.compare_digest(shown.strip().encode("latin-1"), self._token)
        if scheme.lower() != "bearer" or not is_right:
            detail = "send the token as Authorization: Bearer ..."
            raise Refusal(401, "token", detail, headers={"WWW-Authenticate": "Bearer"})

    def counted(self, request: Request, events: int = 1) -> None:
        """Count events of a client, beside the one of its request."""
        self._rate.count(_client(request), events)

    async def json_body(self, request: Request, held: AsyncExitStack) -> bytes:
        """The body of a request in JSON, decompressed, if it may be read.

        Args:
            request: whose body it is.
            held: gives back, when it is left, the places that the request has from then on.

        Raises:
            Refusal: it is of another type, too large, too slow, or its client sends too often.
        """
        self._not_too_often(request)
        kind = request.headers.get("content-type", "").partition(";")[0]
        if kind.strip().lower() != "application/json":
            detail = f"the body is {kind.strip()[:100]!r}; send Content-Type: application/json"
            raise Refusal(415, "content_type", detail)
        encoding = request.headers.get("content-encoding", "identity").strip().lower()
        if encoding not in ("gzip", "identity"):
            detail = f"Content-Encoding {encoding[:100]!r}; send gzip or none"
            raise Refusal(415, "content_type", detail, headers={"Accept-Encoding": "gzip"})
        body = await self._read(request, held, may_grow=encoding == "gzip")
        return body if encoding == "identity" else self._decompressed(body)

    async def form_body(self, request: Request, held: AsyncExitStack) -> bytes:
        """The body of a form, as `json_body`."""
        self._not_too_often(request)
        kind = request.headers.get("content-type", "").partition(";")[0]
        if kind.strip().lower() != "application/x-www-form-urlencoded":
            raise Refusal(415, "content_type", f"the body is {kind.strip()[:100]!r}, and no form")
        return await self._read(request, held)

    def _not_too_often(self, request: Request) -> None:
        client = _client(request)
        if wait := self._rate.wait(client):
            detail = f"more than {self._limits.rate:g} events a second"
            raise Refusal(429, "rate", detail, headers={"Retry-After": str(int(wait) + 1)})
        self._rate.count(client, 1)

    async def _read(
        self, request: Request, held: AsyncExitStack, *, may_grow: bool = False
    ) -> bytes:
        """The body as it was sent.

        Who has sent nothing yet has no place, and who has one of the few for large bodies has to keep up a
        pace: those that send byte by byte take nothing from the others.
        """
        try:
            announced = int(request.headers.get("content-length", "0"))
        except ValueError:
            announced = 0  # the server has answered by now
        if announced > self._body_bytes:
            raise self._too_large()
        seconds, time_of = self._limits.seconds, asyncio.get_running_loop().time
        large = Slot(self._large, seconds)
        body, since = bytearray(), 0.0
        try:
            async with asyncio.timeout(seconds) as deadline:
                async for chunk in request.stream():
                    body += chunk
                    self._metrics.bytes.inc(len(chunk))
                    if len(body) > self._body_bytes:
                        raise self._too_large()
                    if len(body) <= SMALL:
                        continue
                    if not since:
                        deadline.reschedule(None)
                        await held.enter_async_context(large)
                        since = time_of()
                    pace = _HEAD_START + (len(body) - SMALL) / _PACE
                    deadline.reschedule(since + min(seconds, pace))
        except TimeoutError:
            detail = f"the body did not arrive in {seconds:g} seconds"
            if since:
                detail += f", or what is beyond {SMALL:,} bytes of it at {_PACE:,} bytes a second"
            raise Refusal(408, "timeout", detail, headers={"Connection": "close"}) from None
        if may_grow and not since:
            await held.enter_async_context(large)
        # Not before: who sends a body byte by byte would have the place of one that is there.
        await held.enter_async_context(Slot(self._slots, seconds))
        return bytes(body)

    def _decompressed(self, body: bytes) -> bytes:
        gzip = zlib.decompressobj(wbits=31)
        try:
            decompressed = gzip.decompress(body, self._body_bytes + 1)
        except zlib.error:
            raise Refusal(400, "gzip", "the body is not gzip") from None
        if len(decompressed) > self._body_bytes:
            raise self._too_large()
        if not gzip.eof or gzip.unused_data:
            raise Refusal(400, "gzip", "the body is not one whole gzip stream")
        return decompressed

    def _too_large(self) -> Refusal:
        return Refusal(413, "size", f"the body has more than {self._body_bytes:,} bytes")


class Slot:
    """One of the requests that are worked on at the same time."""

    def __init__(self, slots: asyncio.Semaphore, seconds: float) -> None:
        self._slots = slots
        self._seconds = seconds

    async def __aenter__(self) -> None:
        try:
            async with asyncio.timeout(self._seconds):
                await self._slots.acquire()
        except TimeoutError:
            detail = "the server is busy"
            raise Refusal(503, "busy", detail, headers={"Retry-After": "1"}) from None

    async def __aexit__(self, *_: object) -> None:
        self._slots.release()


def _client(request: Request) -> str:
    return request.client.host if request.client else ""
