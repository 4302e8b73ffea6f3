"""A Thrift server of the installed pyspark, with a metastore and a warehouse of its own.

It is what a profile of ``method: thrift`` connects to. Spark Connect can run in the same server.
"""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pyspark

PATIENCE = 120
"""Seconds until the server takes connections."""

_PREPARE = (
    "import json, sys; from pathlib import Path;"
    "from dbt_ripple.spark.session import local_environment;"
    "made = local_environment(Path(sys.argv[1]), sys.argv[2], short_lived=sys.argv[3] == 'short');"
    "print(json.dumps(made.variables))"
)


@dataclass(frozen=True)
class ThriftServer:
    """A server that takes connections on this machine.

    Attributes:
        port: of Thrift.
        connect: the URL of Spark Connect in the same server; None where it was not asked for.
        folder: where its metastore and its warehouse are.
    """

    port: int
    connect: str | None
    folder: Path


@contextlib.contextmanager
def thrift_server(
    folder: Path, file_format: str = "parquet", *, connect: bool = False, short_lived: bool = True
) -> Iterator[ThriftServer]:
    """Start a server, and end it and its Java at the end.

    Args:
        folder: for its metastore, warehouse and log.
        file_format: what its tables can be made of.
        connect: whether Spark Connect runs in it, too.
        short_lived: as :func:`dbt_ripple.spark.session.local_environment` has it.
    """
    import json

    folder.mkdir(parents=True, exist_ok=True)
    # In a process of its own, which leaves the environment of this one alone.
    life = "short" if short_lived else "long"
    made = subprocess.run(
        [sys.executable, "-c", _PREPARE, str(folder), file_format, life],
        capture_output=True,
        text=True,
        check=True,
    )
    port, connect_port = free_port(), free_port()
    plugin = "spark.plugins=org.apache.spark.sql.connect.SparkConnectPlugin"
    command = [
        str(Path(pyspark.__file__).parent / "bin" / "spark-submit"),
        *(["--conf", plugin] if connect else []),
        # A pool has ten connections to the metastore, and each thread keeps its own: sessions of clients that
        # were killed keep theirs, and after some of them a query waits for ever.
        *("--conf", "spark.hadoop.datanucleus.connectionPoolingType=NONE"),
        *("--conf", f"spark.connect.grpc.binding.port={connect_port}"),
        *("--class", "org.apache.spark.sql.hive.thriftserver.HiveThriftServer2", "spark-internal"),
        *("--hiveconf", f"hive.server2.thrift.port={port}"),
        *("--hiveconf", "hive.server2.thrift.bind.host=127.0.0.1"),
    ]
    environment = {k: v for k, v in os.environ.items() if k not in ("SPARK_REMOTE", "SPARK_HOME")}
    with (folder / "server.log").open("w") as log:
        server = subprocess.Popen(
            command,
            stdout=log,
            stderr=log,
            cwd=folder,
            env=environment | json.loads(made.stdout),
            start_new_session=True,
        )
    try:
        _await(server, port, folder / "server.log")
        yield ThriftServer(port, f"sc://127.0.0.1:{connect_port}" if connect else None, folder)
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(server.pid, signal.SIGKILL)
        server.wait()


def profile(server: ThriftServer, schema: str, name: str = "shop") -> str:
    """The text of a profiles.yml that connects to a server by Thrift."""
    return (
        f"{name}:\n  target: thrift\n  outputs:\n    thrift:\n      type: spark\n"
        f"      method: thrift\n      host: 127.0.0.1\n      port: {server.port}\n      user: dbt\n"
        f"      schema: {schema}\n      threads: 4\n      poll_interval: 0\n"
    )


def free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])


def _await(server: subprocess.Popen[bytes], port: int, log: Path) -> None:
    until = time.monotonic() + PATIENCE
    while time.monotonic() < until and server.poll() is None:
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
            return
        time.sleep(0.2)
    raise AssertionError(f"the Thrift server did not start: {log.read_text()[-3000:]}")
