"""Queries lowered on all cores.

Lowering a query depends on nothing but its text, so that it can be done by any process; what comes
back is bytes. Where processes cannot be started, everything is done in this one.
"""

from __future__ import annotations

import heapq
import multiprocessing
import os
from collections.abc import Collection, Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from typing import Final

from dbt_ripple.flow.ir import lower_packed
from dbt_ripple.graph.query_cache import LowerMany
from dbt_ripple.tuning import relax_collector

LEAST: Final = 1_000
"""Queries below which starting processes costs more than it saves."""

_CHUNKS_A_PROCESS: Final = 8
"""So that one with the long queries does not keep the others waiting."""


def cores() -> int:
    """How many cores this process may use."""
    try:
        return len(os.sched_getaffinity(0))
    except AttributeError:  # not Linux
        return os.cpu_count() or 1


def in_processes(processes: int, least: int = LEAST) -> LowerMany | None:
    """A way to lower many queries, for `analyse`.

    A script that uses it must be guarded by ``if __name__ == "__main__"``, as `multiprocessing`
    demands: each process is a fresh interpreter, which loads the script.

    Args:
        processes: how many; 1 is this one, and None is returned.
        least: queries below which they are not worth starting.
    """
    if processes <= 1 or multiprocessing.parent_process() is not None:
        return None

    def lower_many(
        queries: Sequence[str], dialect: str, expressions: bool, masking: Collection[str] = ()
    ) -> list[bytes]:
        if len(queries) < least:
            return []
        chunks = balanced(queries, processes * _CHUNKS_A_PROCESS)
        lowered: list[bytes] = [b""] * len(queries)
        context = multiprocessing.get_context("spawn")
        try:
            with ProcessPoolExecutor(processes, context, relax_collector) as pool:
                futures = [
                    pool.submit(
                        lower_packed, [queries[i] for i in chunk], dialect, expressions, masking
                    )
                    for chunk in chunks
                ]
                for chunk, future in zip(chunks, futures, strict=True):
                    for i, packed in zip(chunk, future.result(), strict=True):
                        lowered[i] = packed
        except (BrokenProcessPool, OSError, ImportError, RuntimeError):
            pass  # what is missing is lowered in its turn
        return lowered

    return lower_many


def balanced(queries: Sequence[str], parts: int) -> list[list[int]]:
    """The queries by index in as many parts, none much longer than the others.

    Example:
        >>> balanced(["select a, b, c", "select 1", "select 2", "x"], 2)
        [[0, 3], [1, 2]]
    """
    chunks: list[list[int]] = [[] for _ in range(min(parts, len(queries)))]
    lengths = [(0, i) for i in range(len(chunks))]
    for i in sorted(range(len(queries)), key=lambda i: -len(queries[i])):
        length, chunk = heapq.heappop(lengths)
        chunks[chunk].append(i)
        heapq.heappush(lengths, (length + len(queries[i]), chunk))
    return chunks
