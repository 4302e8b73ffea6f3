"""The REST API and the pages of `dbt-ripple serve`, beside the paths of the collector.

An answer is made by one thread at a time: who comes meanwhile waits for a while, and is then told that
the server is busy. Every refusal has a body of RFC 9457 with a ``detail``.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import AsyncExitStack
from datetime import timedelta
from typing import Any, Final, Literal, Protocol, TypeVar

import msgspec
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, Response
from starlette.routing import Route

from dbt_ripple.collector.guard import Guard, Handler, Refusal
from dbt_ripple.collector.intake import Limits, RefusedError, parsed
from dbt_ripple.errors import RippleError
from dbt_ripple.governance.hypothetical_changes import Change, proposed_in
from dbt_ripple.serve.openapi import DEPTH, MOST_STEPS, Asset, Lineage, RegisteredAsset, document
from dbt_ripple.serve.slack import PATH, USAGE, SlackSignature, command_of

PATHS: Final = (
    "there are POST /lineage/trace, GET /lineage/{id}, POST /lineage/impact, POST /api/v1/lineage, and / for "
    "the explorer; /openapi.json describes them"
)
_SLACK_WAITS: Final = 2.5
"""Seconds in which Slack wants an answer, and half a second less."""
_Direction = Literal["upstream", "downstream", "both"]
_DIRECTIONS: Final[tuple[_Direction, ...]] = ("upstream", "downstream", "both")
_T = TypeVar("_T")


class UnknownError(RippleError):
    """Nothing has the id that was asked for."""

    def __init__(self, error: RippleError) -> None:
        super().__init__(error.what, error.where, error.fix)
        self.error = error


class MalformedError(RippleError):
    """What was sent says nothing that holds together."""

    def __init__(self, error: RippleError) -> None:
        super().__init__(error.what, error.where, error.fix)


class Answers(Protocol):
    """What is asked about; its methods raise `UnknownError`, `MalformedError` and `RippleError`."""

    def register(self, asset: Asset) -> RegisteredAsset:
        """Write an asset down."""

    def lineage(self, asked: str, direction: _Direction, depth: int) -> Lineage:
        """What is upstream or downstream."""

    def impact(self, asked: str, changes: list[Change]) -> dict[str, object]:
        """Who would break."""

    def page(self) -> str:
        """The explorer."""

    def incident(self, asked: str, since: timedelta) -> dict[str, Any]:
        """What on-call has to know, as Slack's blocks."""


class Api:
    """The paths.

    Args:
        guard: who may ask.
        limits: of bodies.
        seconds: in which an answer has to be made, and that a request waits for its turn.
        slack: checks requests of Slack; None where there is no slash command.
    """

    answers: Answers
    """What is asked about; to be given before the first request."""

    def __init__(
        self,
        guard: Guard,
        limits: Limits,
        seconds: float,
        slack: SlackSignature | None = None,
    ) -> None:
        self._guard = guard
        self._limits = limits
        self._seconds = seconds
        self._slack = slack
        self._thread = ThreadPoolExecutor(1, "answers")
        self._turn = asyncio.Semaphore(1)

    def run(self, task: Callable[[], _T]) -> _T:
        """Do something in the thread that answers, before and after the requests."""
        return self._thread.submit(task).result()

    def close(self) -> None:
        """Wait for the last answer, and end the thread."""
        self._thread.shutdown(wait=True)

    def routes(self) -> list[Route]:
        """The paths, behind the token."""
        routes = [
            Route("/", self._guarded(self._page), methods=["GET"]),
            Route("/openapi.json", self._guarded(self._description), methods=["GET"]),
            Route("/lineage/trace", self._guarded(self._register), methods=["POST"]),
            Route("/lineage/impact", self._guarded(self._impact), methods=["POST"]),
            Route("/lineage/{id:path}", self._guarded(self._lineage), methods=["GET"]),
        ]
        if self._slack is not None:
            answered = self._guard.answered(self._slash_command, _told, asks=False)
            routes.append(Route(PATH, answered, methods=["POST"]))
        return routes

    def _guarded(self, handler: Handler) -> Handler:
        return self._guard.answered(handler, _told)

    async def _ask(self, question: Callable[[], _T], seconds: float | None = None) -> _T:
        """The answer to a question, made in the thread.

        Raises:
            Refusal: 503 if others are asked for too long, 504 if this one takes too long.
        """
        limit = seconds or self._seconds
        try:
            async with asyncio.timeout(limit):
                await self._turn.acquire()
        except TimeoutError:
            raise Refusal(503, "busy", "the server is busy", headers={"Retry-After": "5"}) from None
        answering = asyncio.get_running_loop().run_in_executor(self._thread, question)

        def ended(done: asyncio.Future[Any]) -> None:
            self._turn.release()
            if not done.cancelled():
                done.exception()  # of one that nobody waits for any more

        answering.add_done_callback(ended)
        try:
            async with asyncio.timeout(limit):
                return await asyncio.shield(answering)
        except TimeoutError:
            detail = f"the answer was not made in {limit:g} seconds"
            raise Refusal(504, "slow", detail, headers={"Retry-After": "30"}) from None

    async def _page(self, request: Request) -> Response:
        return HTMLResponse(await self._ask(self.answers.page))

    async def _description(self, request: Request) -> Response:
        return JSONResponse(document(with_slack=self._slack is not None))

    async def _register(self, request: Request) -> Response:
        async with AsyncExitStack() as held:
            body = parsed(await self._guard.json_body(request, held), self._limits)
            try:
                asset = msgspec.convert(body, Asset)
            except msgspec.ValidationError as error:
                raise Refusal(422, "schema", str(error)) from None
            try:
                registered = await self._ask(lambda: self.answers.register(asset))
            except MalformedError as error:
                raise Refusal(422, "schema", str(error)) from None
        return _json(registered, 201)

    async def _impact(self, request: Request) -> Response:
        async with AsyncExitStack() as held:
            body = parsed(await self._guard.json_body(request, held), self._limits)
            try:
                asked, changes = proposed_in(body, "the body")
                if asked is None:
                    raise RippleError("has no asset_id", "the body", "name what would change")
                report = await self._ask(lambda: self.answers.impact(asked, changes))
            except UnknownError:
                raise
            except MalformedError as error:
                raise Refusal(400, "schema", str(error)) from None
            except RippleError as error:
                if error.where == "the body":
                    raise Refusal(400, "schema", str(error)) from None
                raise
        return _json(report)

    async def _lineage(self, request: Request) -> Response:
        word = request.query_params.get("direction", "downstream")
        direction = next((one for one in _DIRECTIONS if one == word), None)
        if direction is None:
            raise Refusal(422, "schema", "direction is upstream, downstream or both")
        steps = request.query_params.get("depth", str(DEPTH))
        if not (steps.isascii() and steps.isdigit() and len(steps) < 5):
            raise Refusal(422, "schema", "depth is a number of steps")
        if int(steps) > MOST_STEPS:
            raise Refusal(422, "schema", f"depth is at most {MOST_STEPS}")
        asked = request.path_params["id"]
        return _json(await self._ask(lambda: self.answers.lineage(asked, direction, int(steps))))

    async def _slash_command(self, request: Request) -> Response:
        assert self._slack is not None
        async with AsyncExitStack() as held:
            body = await self._guard.form_body(request, held)
            headers = request.headers
            self._slack.check(
                headers.get("x-slack-request-timestamp", ""),
                headers.get("x-slack-signature", ""),
                body,
            )
            command = command_of(body)
            if command is None:
                return JSONResponse(_only_to_you(USAGE))
            try:
                return JSONResponse(
                    await self._ask(lambda: self.answers.incident(*command), _SLACK_WAITS)
                )
            except RippleError as error:
                return JSONResponse(_only_to_you(str(error)))
            except Refusal as refusal:
                if refusal.status not in (503, 504):
                    raise
                return JSONResponse(
                    _only_to_you("this takes longer than Slack waits: ask again in a minute")
                )


def _only_to_you(text: str) -> dict[str, str]:
    shown = text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return {"response_type": "ephemeral", "text": shown}


def _json(value: object, status: int = 200) -> Response:
    return Response(msgspec.json.encode(value), status, media_type="application/json")


def _told(error: Exception) -> Refusal | None:
    if isinstance(error, RefusedError):
        status = {"json": 400, "size": 413}.get(error.reason, 422)
        return Refusal(status, error.reason, error.detail)
    if isinstance(error, UnknownError):
        return Refusal(404, "unknown", str(error))
    if isinstance(error, RippleError):
        detail = f"the project cannot be asked: {error}"
        return Refusal(503, "project", detail, headers={"Retry-After": "60"})
    return None
