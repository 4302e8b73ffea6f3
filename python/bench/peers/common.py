"""What every contender's runner shares. Standard library only: it runs in their environments.

A runner is a script ``run_NAME.py TARGET [--edges FILE] [--tests]`` that analyses the artifacts in TARGET and
prints one line of JSON. The clock stops, and the peak of memory is taken, before edges are put into
the common form, so that no tool pays for being compared.
"""

from __future__ import annotations

import argparse
import json
import resource
import sys
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

Edge = tuple[str, str, str, str]
"""Parent unique_id, parent column, child unique_id, child column."""

ROWS = "*rows*"
"""Stands for the row set where a column is used by a join, a filter or a grouping."""


class Job:
    """What a runner shall do, and the clock of its phases.

    Attributes:
        target: the folder of the artifacts.
        tests: whether to analyse the SQL of data tests, too; the others never do.
        phases: wall and CPU seconds of each phase.
    """

    def __init__(self, target: Path, tests: bool) -> None:
        self.target = target
        self.tests = tests
        self.phases: dict[str, dict[str, float]] = {}
        self._wall = time.perf_counter()
        self._cpu = time.process_time()

    def lap(self, phase: str) -> None:
        """What has passed since the last lap was `phase`: ``import``, ``load``, ``analyse``."""
        wall, cpu = time.perf_counter(), time.process_time()
        self.phases[phase] = {"wall": wall - self._wall, "cpu": cpu - self._cpu}
        self._wall, self._cpu = wall, cpu


def run(
    analyse: Callable[[Job], tuple[int, Any]],
    edges: Callable[[Any], Iterable[Edge]],
) -> None:
    """Run one contender and print what it did.

    Args:
        analyse: does the job; returns how many models it has analysed, and what it found.
        edges: turns that into edges of the common form.
    """
    parser = argparse.ArgumentParser()
    parser.add_argument("target", type=Path)
    parser.add_argument("--edges", type=Path, help="write the edges here, tab-separated")
    parser.add_argument("--tests", action="store_true", help="analyse data tests, too")
    given = parser.parse_args()
    job = Job(given.target, given.tests)
    models, analysis = analyse(job)
    usage = resource.getrusage(resource.RUSAGE_SELF)
    answer: dict[str, Any] = {
        "models": models,
        "ended": time.time(),
        "cpu": usage.ru_utime + usage.ru_stime,
        "peak_mb": usage.ru_maxrss / (1024**2 if sys.platform == "darwin" else 1024),
        "phases": job.phases,
    }
    unique = {
        (parent, parent_column.lower(), child, child_column.lower())
        for parent, parent_column, child, child_column in edges(analysis)
    }
    answer["edges"] = len(unique)
    answer["value_edges"] = sum(ROWS not in (edge[1], edge[3]) for edge in unique)
    if given.edges is not None:
        with given.edges.open("w", encoding="utf-8") as out:
            out.writelines("\t".join(edge) + "\n" for edge in sorted(unique))
    print(json.dumps(answer), flush=True)
