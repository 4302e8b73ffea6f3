"""What the collector sustains: events a second and memory, over HTTP with real connections.

    python python/bench/run_collect.py [--events 20000] [--clients 1 4 16] [--write]

Each line is one collector process and its clients, which are threads of one other process; so on
two cores the clients take about half of the time. ``--write`` puts the table into docs/collect.md.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import re
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "python" / "tests"))

from served_collector import BATCH, EVENTS, Served, asked, event  # noqa: E402

HEADERS = {"Content-Type": "application/json"}
PAGE = ROOT / "docs" / "collect.md"


class Measured(NamedTuple):
    way: str
    clients: int
    events: int
    seconds: float
    commits: int
    megabytes: float


def measure(events: int, clients: int, batch: int) -> Measured:
    """Send events, each another one, and wait for every answer."""
    bodies = [
        json.dumps([event(number + more) for more in range(batch)] if batch > 1 else event(number))
        for number in range(0, events, batch)
    ]
    path, expected = (BATCH, 200) if batch > 1 else (EVENTS, 201)
    left = iter([body.encode() for body in bodies])
    with tempfile.TemporaryDirectory() as folder, Served(Path(folder), "--rate", "0") as served:

        def post() -> None:
            connection = served.connection()
            while body := next(left, None):
                assert asked(connection, "POST", path, body, HEADERS).status == expected
            connection.close()

        threads = [threading.Thread(target=post) for _ in range(clients)]
        began = time.perf_counter()
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        seconds = time.perf_counter() - began
        metrics = served.metrics()
    assert metrics["dbt_ripple_collect_accepted_total"] == len(bodies) * batch
    return Measured(
        "one by one" if batch == 1 else f"batches of {batch}",
        clients,
        len(bodies) * batch,
        seconds,
        int(metrics["dbt_ripple_collect_commit_seconds_count"]),
        metrics["process_resident_memory_bytes"] / 1e6,
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--events", type=int, default=20_000)
    parser.add_argument("--clients", type=int, nargs="+", default=[1, 4, 16])
    parser.add_argument("--write", action="store_true", help="put the table into docs/collect.md")
    options = parser.parse_args()
    counts = [measure(options.events, clients, 1) for clients in options.clients]
    counts.append(measure(options.events, 4, 100))
    size = len(json.dumps(event(1)))
    lines = [
        f"Measured by `python/bench/run_collect.py`: {options.events:,} events of {size:,} bytes, Python"
        f" {platform.python_version()}, {os.cpu_count()} cores that the clients share, load"
        f" {os.getloadavg()[0]:.0f} from other work.",
        "",
        "| events sent | clients | events a second | commits | memory |",
        "| --- | --- | --- | --- | --- |",
        *(
            f"| {m.way} | {m.clients} | {m.events / m.seconds:,.0f} | {m.commits:,}"
            f" | {m.megabytes:.0f} MB |"
            for m in counts
        ),
    ]
    print("\n".join(lines))
    if options.write:
        page = PAGE.read_text(encoding="utf-8")
        table = "\n".join(lines)
        page = re.sub(r"(?ms)^(FIGURES|Measured by .*)\n\Z", lambda _: table + "\n", page)
        PAGE.write_text(page, encoding="utf-8")


if __name__ == "__main__":
    main()
