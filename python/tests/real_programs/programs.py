"""PostgreSQL, Airflow and Kafka as processes of their own, on free ports of the loopback.

Each is a context manager: it is up when it is entered, and nothing of it is left when it is left.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from real_programs.environments import (
    AIRFLOW,
    KAFKA,
    Unavailable,
    jars,
    postgres_programs,
    python_with,
)


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as server:
        return int(server.getsockname()[1])


def wait_for(
    what: str, is_there: Callable[[], Any], seconds: float, log: Path | None = None
) -> Any:
    """What `is_there` gives as soon as that is true; the end of the log is in the error."""
    end = time.monotonic() + seconds
    while not (found := is_there()):
        if time.monotonic() > end:
            tail = log.read_text(errors="replace")[-3000:] if log else ""
            raise AssertionError(f"{what} did not come within {seconds} seconds\n{tail}")
        time.sleep(0.2)
    return found


def is_listening(port: int) -> bool:
    with suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=1):
        return True
    return False


class Program:
    """Processes that end together; each has a session of its own, so that its children end too."""

    def __init__(self) -> None:
        self._processes: list[subprocess.Popen[bytes]] = []

    def start(
        self, command: list[str], log: Path, where: Path, environment: Mapping[str, str]
    ) -> subprocess.Popen[bytes]:
        with log.open("ab") as file:
            process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=file,
                stderr=file,
                cwd=where,
                env={**os.environ, **environment},
                start_new_session=True,
            )
        self._processes.append(process)
        return process

    def stop(self) -> None:
        for process in reversed(self._processes):
            self._signal(process, signal.SIGTERM)
            with suppress(subprocess.TimeoutExpired):
                process.wait(20)
            self._signal(process, signal.SIGKILL)
            process.wait(20)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.stop()

    @staticmethod
    def _signal(process: subprocess.Popen[bytes], number: int) -> None:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, number)


class Postgres(Program):
    """A PostgreSQL with an empty database ``shop``, whose user ``shop`` needs no password."""

    def __init__(self) -> None:
        super().__init__()
        programs = postgres_programs()
        # The server refuses to run as root, and its socket's path may not be long.
        self._as = ["runuser", "-u", "postgres", "--"] if os.geteuid() == 0 else []
        self.folder = Path(tempfile.mkdtemp(prefix="ripple_pg_", dir="/tmp"))
        if self._as:
            shutil.chown(self.folder, "postgres")
        data, log = self.folder / "data", self.folder / "log"
        command = [*self._as, str(programs / "initdb"), "--pgdata", str(data)]
        options = ["--username", "shop", "--auth", "trust", "--no-sync", "--encoding", "UTF8"]
        done = subprocess.run(
            [*command, *options], capture_output=True, text=True, check=False, cwd=self.folder
        )
        if done.returncode:
            shutil.rmtree(self.folder, ignore_errors=True)
            raise Unavailable(f"PostgreSQL cannot be started here: {done.stderr.strip()}")
        self.port = free_port()
        server = [*self._as, str(programs / "postgres"), "-D", str(data), "-p", str(self.port)]
        server += ["-c", "listen_addresses=127.0.0.1", "-c", "fsync=off"]
        server += ["-c", f"unix_socket_directories={self.folder}"]
        self._psql = str(programs / "psql")
        self.start(server, log, self.folder, {})
        try:
            wait_for("PostgreSQL", self._is_up, 60, log)
            self.run("create database shop", "postgres")
        except BaseException:
            self.stop()
            raise

    def run(self, sql: str, database: str = "shop") -> str:
        """What psql says to statements: rows without headings, columns parted by a bar."""
        done = subprocess.run(
            [
                *(self._psql, "-X", "-At", "-v", "ON_ERROR_STOP=1", "-h", "127.0.0.1"),
                *("-p", str(self.port), "-U", "shop", "-d", database, "-c", sql),
            ],
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout.strip()

    def stop(self) -> None:
        super().stop()
        shutil.rmtree(self.folder, ignore_errors=True)

    def _is_up(self) -> bool:
        with suppress(AssertionError):
            return self.run("select 1", "postgres") == "1"
        return False


class Airflow(Program):
    """Airflow with its API server, DAG processor and scheduler; the DAGs wait to be triggered.

    Args:
        folder: its home.
        dags: the folder of DAGs.
        collector: the URL that its provider of OpenLineage posts to.
        connections: by name, as URI.
    """

    def __init__(
        self, folder: Path, dags: Path, collector: str, connections: Mapping[str, str]
    ) -> None:
        super().__init__()
        self._bin = python_with("airflow", AIRFLOW)
        self.folder = folder
        self.port = free_port()
        log_port, trigger_port = free_port(), free_port()
        api = f"http://127.0.0.1:{self.port}"
        transport = {"type": "http", "url": collector, "endpoint": "api/v1/lineage"}
        self._environment = {
            "AIRFLOW_HOME": str(folder),
            "AIRFLOW__API__BASE_URL": api,
            "AIRFLOW__API__HOST": "127.0.0.1",
            "AIRFLOW__API__PORT": str(self.port),
            "AIRFLOW__API__WORKERS": "1",
            "AIRFLOW__API_AUTH__JWT_SECRET": "of the tests, long enough for the signature of tokens",
            "AIRFLOW__CORE__DAGS_FOLDER": str(dags),
            "AIRFLOW__CORE__EXECUTION_API_SERVER_URL": f"{api}/execution/",
            "AIRFLOW__CORE__LOAD_EXAMPLES": "False",
            "AIRFLOW__CORE__PARALLELISM": "2",
            "AIRFLOW__CORE__SIMPLE_AUTH_MANAGER_ALL_ADMINS": "True",
            "AIRFLOW__LOGGING__TRIGGER_LOG_SERVER_PORT": str(trigger_port),
            "AIRFLOW__LOGGING__WORKER_LOG_SERVER_PORT": str(log_port),
            "AIRFLOW__OPENLINEAGE__NAMESPACE": "airflow",
            "AIRFLOW__OPENLINEAGE__TRANSPORT": json.dumps(transport),
            "AIRFLOW__SCHEDULER__ENABLE_HEALTH_CHECK": "False",
            "PATH": f"{self._bin}{os.pathsep}{os.environ['PATH']}",
            "PYTHONPATH": "",
            **{f"AIRFLOW_CONN_{name.upper()}": uri for name, uri in connections.items()},
        }
        folder.mkdir(parents=True, exist_ok=True)
        self.command("db", "migrate")
        for part in ("api-server", "dag-processor", "scheduler"):
            self.start(
                [str(self._bin / "airflow"), part],
                self.folder / f"{part}.log",
                folder,
                self._environment,
            )
        try:
            up = lambda: is_listening(self.port)  # noqa: E731
            wait_for("Airflow's API server", up, 180, self.folder / "api-server.log")
        except BaseException:
            self.stop()
            raise

    def command(self, *arguments: str) -> None:
        done = subprocess.run(
            [str(self._bin / "airflow"), *arguments],
            env={**os.environ, **self._environment},
            cwd=self.folder,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    def ask(self, method: str, path: str, body: Any = None) -> Any:
        """One request to its API; None if the thing is not there."""
        headers = {"Content-Type": "application/json"}
        if path.startswith("/api/"):
            headers["Authorization"] = f"Bearer {self.ask('GET', '/auth/token')['access_token']}"
        data = None if body is None else json.dumps(body).encode()
        url = f"http://127.0.0.1:{self.port}{path}"
        request = urllib.request.Request(url, data, headers, method=method)
        try:
            with urllib.request.urlopen(request, timeout=60) as answer:
                return json.loads(answer.read())
        except urllib.error.HTTPError as error:
            if error.code == 404:
                return None
            raise AssertionError(f"{path}: {error.code} {error.read()[:500]!r}") from error

    def run(self, dag: str, run_id: str, expected: str = "success") -> None:
        """Trigger a DAG and wait for its end."""
        path = f"/api/v2/dags/{dag}"
        seen = self.folder / "dag-processor.log"
        wait_for(f"DAG {dag}", lambda: self.ask("GET", path), 120, seen)
        self.ask("PATCH", path, {"is_paused": False})
        self.ask("POST", f"{path}/dagRuns", {"dag_run_id": run_id, "logical_date": None})

        def state() -> str | None:
            found = self.ask("GET", f"{path}/dagRuns/{run_id}")["state"]
            return found if found in ("success", "failed") else None

        found = wait_for(f"the end of {dag}", state, 240, self.folder / "scheduler.log")
        assert found == expected, found


class Kafka(Program):
    """One broker in KRaft mode."""

    def __init__(self, folder: Path) -> None:
        super().__init__()
        libs = jars("kafka", KAFKA)
        self.folder = folder
        folder.mkdir(parents=True, exist_ok=True)
        self.port, controller = free_port(), free_port()
        self.brokers = f"127.0.0.1:{self.port}"
        settings = {
            "process.roles": "broker,controller",
            "node.id": "1",
            "controller.quorum.voters": f"1@127.0.0.1:{controller}",
            "listeners": f"PLAINTEXT://{self.brokers},CONTROLLER://127.0.0.1:{controller}",
            "advertised.listeners": f"PLAINTEXT://{self.brokers}",
            "controller.listener.names": "CONTROLLER",
            "log.dirs": str(folder / "data"),
            "num.partitions": "3",
            "offsets.topic.replication.factor": "1",
            "offsets.topic.num.partitions": "4",
            "transaction.state.log.replication.factor": "1",
            "transaction.state.log.min.isr": "1",
            "group.initial.rebalance.delay.ms": "0",
        }
        properties = folder / "server.properties"
        properties.write_text("".join(f"{key}={value}\n" for key, value in settings.items()))
        self._java = ["java", "-Xmx384m", "-Dlog4j2.level=WARN", "-cp", f"{libs}/*"]
        self._tool("kafka.tools.StorageTool", "format", "-t", "MkU3OEVBNTcwNTJENDM2Qg")
        self.start([*self._java, "kafka.Kafka", str(properties)], folder / "log", folder, {})
        try:
            wait_for("Kafka", lambda: is_listening(self.port), 90, folder / "log")
        except BaseException:
            self.stop()
            raise

    def _tool(self, *arguments: str) -> str:
        done = subprocess.run(
            [*self._java, *arguments, "-c", str(self.folder / "server.properties")],
            cwd=self.folder,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout
