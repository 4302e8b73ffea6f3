"""The collector over HTTP, as an ASGI application.

A request is answered 201 (200 for a batch) when its events are on disk, never before. Every other
answer has a body of RFC 9457 (``application/problem+json``) that says what is wrong and, for an event
that is not valid, where.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from http import HTTPStatus
from typing import Any, Final

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from dbt_ripple.collector.check_worker import CheckWorker, Kind, checked
from dbt_ripple.collector.event_store import StoreError
from dbt_ripple.collector.event_writer import EventWriter
from dbt_ripple.collector.guard import SMALL, Guard, HttpLimits, Refusal, Slot
from dbt_ripple.collector.intake import (
    NOT_GIVEN_WARNING,
    Limits,
    RefusedError,
    Taken,
    not_given_in,
)
from dbt_ripple.collector.metrics import CONTENT_TYPE_LATEST, Metrics

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
