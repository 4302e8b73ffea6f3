"""How long it takes to read a store of collected events and to set its jobs around a project.

python bench/run_collected.py [--events 10000] [--jobs 500]

Times are ratios to decoding each line of the store once, which is the floor; memory is a ratio to the size of
the store. Each event has the columns of one dataset read and one written, with column lineage (2 kB), and a
facet that nobody reads (Spark sends its plans).
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
import tracemalloc
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from collected_events import dataset, made_of, run_event
from hand_made import LISTED, RAW, node, orders, project

from dbt_ripple.graph.analyse_project import analyse
from dbt_ripple.graph.assets.asset_lineage import AssetLineage
from dbt_ripple.graph.assets.declared_graph import DeclaredGraph
from dbt_ripple.graph.lineage_rows import build_rows
from dbt_ripple.openlineage.collected.collected_assets import with_collected
from dbt_ripple.openlineage.collected.stored_events import read_events

DB = "postgres://db:5432"
COLUMNS = [f"column_{i}" for i in range(8)]


def main() -> None:
    """Print the figures."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--events", type=int, default=10_000)
    parser.add_argument("--jobs", type=int, default=500)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        store = Path(folder) / "events-00000001.ndjson"
        with store.open("w") as file:
            for event in events(given.events, given.jobs):
                file.write(json.dumps(event, sort_keys=True, separators=(",", ":")) + "\n")
        for name, figure in measured(Path(folder)).items():
            print(f"{name:<40} {figure}")


def events(count: int, jobs: int) -> Iterator[dict[str, Any]]:
    """START and COMPLETE of runs of jobs, each of which reads what the one before it wrote."""
    for i in range(count):
        run, kind = i // 2, ("START", "COMPLETE")[i % 2]
        job = run % jobs
        read = "d.s.fct" if job % 10 == 0 else f"d.work.table_{job - 1}"
        fields = {c: [(DB, read, c, ("DIRECT", "IDENTITY"))] for c in COLUMNS}
        told = made_of(fields, [(DB, read, COLUMNS[0], ("INDIRECT", "FILTER"))])
        yield run_event(
            f"dag.task_{job}",
            kind,
            at=f"2026-11-{1 + run * 28 // count:02d}T10:{i % 60:02d}:00Z",
            run=run,
            inputs=[dataset(DB, read, schema=COLUMNS)],
            outputs=[dataset(DB, f"d.work.table_{job}", schema=COLUMNS, columnLineage=told)],
            run_facets={"spark.logicalPlan": {"plan": [{"class": "Project"}] * 20}},
        )


def measured(store: Path) -> dict[str, str]:
    """The figures of one store, as they are printed."""
    file = next(store.iterdir())
    lines = file.read_bytes().splitlines()
    floor, _ = _timed(lambda: [msgspec.json.decode(line) and None for line in lines])
    reading, found = _timed(lambda: read_events([store]))
    shop = project(
        orders(),
        node("model.p.fct", 'select id, amount, status from "s"."orders"', RAW),
        catalog=LISTED,
        adapter="postgres",
    )
    made, assets = _timed(lambda: with_collected([], found, [shop]))
    analysis = analyse(shop)
    build_rows(shop, analysis)  # imports what it needs
    linking, lineage = _timed(lambda: AssetLineage(DeclaredGraph(shop, assets.assets), analysis))
    rows, _ = _timed(lambda: build_rows(lineage.graph.acyclic, lineage.analysis))
    tracemalloc.start()
    read_events([store])
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    size = file.stat().st_size
    return {
        "events": f"{len(lines):,} of {size / len(lines):,.0f} bytes, {len(found.jobs):,} jobs",
        "decoding each line once": f"1 ({floor:.2f} s here)",
        "reading the store": f"{reading / floor:.1f}",
        "making assets of it": f"{made / floor:.1f}",
        "linking them over the project": f"{linking / floor:.1f}",
        "rows of the tables": f"{rows / floor:.1f}",
        "peak memory of reading, to the store": f"{peak / size:.2f}",
    }


def _timed(what: Callable[[], Any]) -> tuple[float, Any]:
    start = time.perf_counter()
    result = what()
    return time.perf_counter() - start, result


if __name__ == "__main__":
    main()
