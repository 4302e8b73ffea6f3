"""A load that is really killed: SIGKILL to Python and its JVM, then what a new process sees.

The processes come one after the other on one metastore and warehouse. The first loads a snapshot
that stays. Each looks at what was left before it, then starts the same load of another snapshot and
is killed at a later point; the last one is let through.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from snapshots_by_hand import snapshot_by_hand

NODES, EDGES_A_NODE = 1_000, 40

CHILD = """
import json, os, signal, sys, threading, time
from pathlib import Path
from snapshots_by_hand import snapshot_by_hand
from dbt_ripple.spark.session import get_session, local_environment
from dbt_ripple.spark.load import Destination, load
from dbt_ripple.spark import load as loading
from dbt_ripple.spark.server import SessionServer

folder, point, nodes, edges = Path(sys.argv[1]), sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
local_environment(folder, short_lived=True)
session = get_session()
to = Destination(("raw",))

def die():
    os.killpg(os.getpgid(0), signal.SIGKILL)  # Python, and the JVM it started

def visible():
    counts = " union all ".join(
        f"select '{table}' as name, r.snapshot_id, count(*) as n from raw.{table} r"
        " join raw.snapshots s on r.snapshot_id = s.snapshot_id group by r.snapshot_id"
        for table in loading.TABLES
    )
    tables = {table: {} for table in loading.TABLES}
    for row in session.sql(counts).collect():
        tables[row["name"]][row["snapshot_id"]] = row["n"]
    return tables

def see():
    print(json.dumps(visible()), flush=True)

if not (folder / "warehouse" / "raw.db").exists():
    load(SessionServer(session), snapshot_by_hand("before"), to)
see()
when, _, table = point.partition(" ")
if when == "in":
    # The folder of unfinished files is there only while a job writes.
    unfinished = folder / "warehouse" / "raw.db" / table / "_temporary"
    def watch():
        while not unfinished.exists():
            time.sleep(0.0005)
        die()
    threading.Thread(target=watch, daemon=True).start()

def progress(name, rows):
    if when == "before" and name == table and not rows:
        die()

load(SessionServer(session), snapshot_by_hand("after", nodes, edges), to, progress=progress)
if when == "in":
    sys.exit("was not killed")
see()
"""


def run(folder, point):
    """One process: its exit code and what it saw, each time it looked."""
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parent)}
    environment.pop("SPARK_REMOTE", None)
    child = subprocess.Popen(
        [sys.executable, "-c", CHILD, str(folder), point, str(NODES), str(EDGES_A_NODE)],
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    out, err = child.communicate(timeout=300)
    assert out, err
    return child.returncode, *map(json.loads, out.splitlines())


@pytest.mark.spark
@pytest.mark.slow
def test_killed_at_any_point_a_load_loses_nothing_and_shows_nothing_half(tmp_path):
    before = {table: {"before": len(rows)} for table, rows in snapshot_by_hand("b").rows.items()}
    whole = {
        table: {"before": before[table]["before"], "after": len(rows)}
        for table, rows in snapshot_by_hand("after", NODES, EDGES_A_NODE).rows.items()
    }
    killed = -signal.SIGKILL
    assert run(tmp_path, "in column_edges") == (killed, before)
    assert run(tmp_path, "before snapshots") == (killed, before)
    assert run(tmp_path, "in snapshots") == (killed, before)
    # That one died while it committed: it is published or not, but nothing in between.
    code, visible_rows, loaded = run(tmp_path, "")
    assert code == 0
    assert visible_rows in (before, whole)
    assert loaded == whole
