"""Checks large bodies in a process of its own, so that one of them stops nobody else.

The process has a deadline for each body and a bound on its memory; if it misses one, it is ended, the
body is refused, and the next one gets a new process. It speaks over its stdin and stdout: a frame is
its length in four bytes and a MessagePack document.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import sys
from typing import Any, BinaryIO, Final, Literal

import msgspec

from dbt_ripple.collector.event_schemas import EventProblem
from dbt_ripple.collector.intake import Limits, RefusedError, Taken, read_batch, read_event

MEMORY: Final = 128_000_000
"""Bytes of address space that the process may use beyond what it begins with: a body of 5 MB that is
valid takes two thirds of it, one that is made to be large gigabytes."""
_LENGTH: Final = 4
Kind = Literal["event", "batch"]


class _Job(msgspec.Struct):
    kind: Kind
    body: bytes
    limits: dict[str, int]


class _Refusal(msgspec.Struct):
    reason: str
    detail: str
    problems: list[tuple[str, str]] = []

    @classmethod
    def of(cls, error: RefusedError) -> _Refusal:
        return cls(error.reason, error.detail, [(p.pointer, p.detail) for p in error.problems])

    def error(self) -> RefusedError:
        problems = [EventProblem(*problem) for problem in self.problems]
        return RefusedError(self.reason, self.detail, problems)  # type: ignore[arg-type]


class _Result(msgspec.Struct):
    lines: list[bytes] = []
    refused: list[tuple[int, _Refusal]] = []
    error: _Refusal | None = None


class CheckWorker:
    """The process, from outside; started when there is something for it to do.

    Args:
        limits: of events.
        seconds: for one body.
    """

    def __init__(self, limits: Limits, seconds: float) -> None:
        self._limits = limits
        self._seconds = seconds
        self._process: asyncio.subprocess.Process | None = None

    async def check(self, kind: Kind, body: bytes) -> Taken:
        """The events of a body; one at a time.

        Raises:
            RefusedError: as `read_event` and `read_batch`; or it could not be checked in time.
        """
        try:
            async with asyncio.timeout(self._seconds):
                result = await self._asked(kind, body)
        except asyncio.CancelledError:
            await self.close()
            raise
        except (TimeoutError, OSError, asyncio.IncompleteReadError):
            await self.close()
            detail = f"it could not be checked in {self._seconds:g} seconds and {MEMORY:,} bytes"
            raise RefusedError("check", detail) from None
        if result.error is not None:
            raise result.error.error()
        return Taken(
            result.lines, [(number, refusal.error()) for number, refusal in result.refused]
        )

    async def _asked(self, kind: Kind, body: bytes) -> _Result:
        process = self._process
        if process is None or process.returncode is not None:
            process = self._process = await asyncio.create_subprocess_exec(
                *(sys.executable, "-m", __name__),
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                # Ctrl-C is for the collector, which ends it.
                start_new_session=True,
            )
        assert process.stdin is not None and process.stdout is not None
        limits = {name: getattr(self._limits, name) for name in Limits.__dataclass_fields__}
        process.stdin.write(_frame(_Job(kind, body, limits)))
        await process.stdin.drain()
        length = int.from_bytes(await process.stdout.readexactly(_LENGTH), "big")
        return msgspec.msgpack.decode(await process.stdout.readexactly(length), type=_Result)

    async def close(self) -> None:
        """End the process."""
        process, self._process = self._process, None
        if process is not None:
            with contextlib.suppress(ProcessLookupError):
                if sys.platform == "win32":
                    process.kill()
                else:  # kill() reaps one that has ended itself, and asyncio then misses it
                    os.kill(process.pid, signal.SIGKILL)
            await process.communicate()


def _frame(document: Any) -> bytes:
    content = msgspec.msgpack.encode(document)
    return len(content).to_bytes(_LENGTH, "big") + content


def checked(kind: Kind, body: bytes, limits: Limits) -> Taken:
    """The events of a body, checked here.

    Raises:
        RefusedError: as `read_event` and `read_batch`.
    """
    return Taken([read_event(body, limits)], []) if kind == "event" else read_batch(body, limits)


def _bound_memory() -> None:
    with contextlib.suppress(ImportError, OSError, ValueError):  # Windows has no such bound
        import resource

        pages = int(open("/proc/self/statm").read().split()[0])  # noqa: SIM115, PTH123
        used = pages * os.sysconf("SC_PAGE_SIZE")
        resource.setrlimit(resource.RLIMIT_AS, (used + MEMORY, used + MEMORY))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def _say_only_what_python_says() -> None:
    """Let no library write to stderr: one that gets no memory says so there, and ends the process."""
    sys.stderr = os.fdopen(os.dup(2), "w")
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 2)
    os.close(nowhere)


def _work(jobs: BinaryIO, results: BinaryIO) -> None:
    while header := jobs.read(_LENGTH):
        job = msgspec.msgpack.decode(jobs.read(int.from_bytes(header, "big")), type=_Job)
        try:
            taken = checked(job.kind, job.body, Limits(**job.limits))
            refused = [(number, _Refusal.of(error)) for number, error in taken.refused]
            result = _Result(taken.lines, refused)
        except RefusedError as error:
            result = _Result(error=_Refusal.of(error))
        except MemoryError:
            return  # as if it had been ended: the next body gets a process that has all of it
        results.write(_frame(result))
        results.flush()
        del job, result


if __name__ == "__main__":
    _bound_memory()
    _say_only_what_python_says()
    _work(sys.stdin.buffer, sys.stdout.buffer)
