"""Events of real programs: each runs once, and its store is kept for all tests."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest
from real_programs.environments import CLIENT, SPARK, Unavailable, jars, python_with
from real_programs.programs import Airflow, Kafka, Postgres, wait_for
from real_programs.warehouse import HERE, Warehouse
from served_collector import PACKAGE, Served

LISTENER = "io.openlineage.spark.agent.OpenLineageSparkListener"


class Told(NamedTuple):
    """What a program has told.

    Attributes:
        store: the folder that `collect` wrote.
        refused: how many events it did not take.
        said: its last line.
    """

    store: Path
    refused: int
    said: str


def ended(served: Served) -> Told:
    """Stop a collector."""
    refused = sum(
        value
        for name, value in served.metrics().items()
        if name.startswith("dbt_ripple_collect_rejected_total")
    )
    code, out, err = served.stop()
    assert (code, err) == (143, "")
    return Told(served.store, int(refused), out.strip())


@pytest.fixture(scope="session")
def warehouse(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Warehouse]:
    try:
        server = Postgres()
    except Unavailable as reason:
        pytest.skip(str(reason))
    with server:
        yield Warehouse(server, tmp_path_factory.mktemp("warehouse"))


@pytest.fixture(scope="session")
def airflow(warehouse: Warehouse, tmp_path_factory: pytest.TempPathFactory) -> Told:
    """`load_orders`, then dbt, then `daily_revenue_report`, and then a DAG that fails."""
    folder = tmp_path_factory.mktemp("airflow")
    with Served(folder / "events") as served:
        try:
            program = Airflow(
                folder / "home", HERE / "dags", served.url, {"warehouse": warehouse.uri}
            )
            with program:
                program.run("load_orders", "first")
                warehouse.build()
                warehouse.emit(served.url)
                program.run("daily_revenue_report", "first")
                program.run("broken_export", "first", expected="failed")
                # The scheduler sends a DAG's end after it has written it down.
                wait_for("the DAG's end", lambda: b'"airflowState"' in _last(served.store), 60)
        except Unavailable as reason:
            pytest.skip(str(reason))
        return ended(served)


@pytest.fixture(scope="session")
def spark_jobs(
    airflow: Told, warehouse: Warehouse, tmp_path_factory: pytest.TempPathFactory
) -> Told:
    """`customer_ltv` on PostgreSQL and `train_churn` on Spark's own tables, with the listener."""
    pytest.importorskip("pyspark", reason="pyspark is not installed")
    folder = tmp_path_factory.mktemp("spark_jobs")
    try:
        libs = jars("spark", SPARK)
    except Unavailable as reason:
        pytest.skip(str(reason))
    with Served(folder / "events") as served:
        settings = {
            "spark.extraListeners": LISTENER,
            "spark.openlineage.transport.type": "http",
            "spark.openlineage.transport.url": served.url,
            "spark.openlineage.namespace": "spark",
            "spark.jars": ",".join(map(str, sorted(libs.glob("*.jar")))),
            "spark.sql.shuffle.partitions": "1",
            "spark.ui.enabled": "false",
        }
        submitted = " ".join(f"--conf {name}={value}" for name, value in settings.items())
        for job, argument in (
            ("customer_ltv", warehouse.jdbc),
            ("train_churn", str(folder / "tables")),
        ):
            _run(
                [sys.executable, str(HERE / "jobs" / f"{job}.py"), argument],
                folder,
                PYSPARK_SUBMIT_ARGS=f"--master local[1] {submitted} pyspark-shell",
            )
        return ended(served)


@pytest.fixture(scope="session")
def kafka_topic(warehouse: Warehouse, tmp_path_factory: pytest.TempPathFactory) -> Told:
    """Two jobs that know a broker and no HTTP; `collect --from-kafka` reads its topic."""
    folder = tmp_path_factory.mktemp("kafka")
    store = folder / "events"
    program = "from dbt_ripple.cli import main; main()"
    try:
        client = python_with("client", CLIENT)
        broker = Kafka(folder / "broker")
    except Unavailable as reason:
        pytest.skip(str(reason))
    with broker:
        _run(
            [
                str(client / "python"),
                str(HERE / "jobs" / "score_customers.py"),
                broker.brokers,
                "lineage",
                warehouse.namespace,
            ],
            folder,
        )
        said = _run(
            [
                sys.executable,
                "-c",
                program,
                "collect",
                "--from-kafka",
                "lineage",
                "--until-end",
                "--brokers",
                broker.brokers,
                "--store",
                str(store),
            ],
            folder,
            PYTHONPATH=str(PACKAGE),
        )
    return Told(store, 0, said.splitlines()[-1])


def _run(command: list[str], where: Path, **environment: str) -> str:
    done = subprocess.run(
        command,
        cwd=where,
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        check=False,
        timeout=600,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def _last(store: Path) -> bytes:
    """The last event that is there."""
    time.sleep(0.5)
    return b"".join(path.read_bytes() for path in sorted(store.glob("events-*"))).splitlines()[-1]


@pytest.fixture(scope="session")
def world(
    airflow: Told, spark_jobs: Told, kafka_topic: Told, warehouse: Warehouse
) -> tuple[Path, list[Path]]:
    """The dbt project with its artifacts, and the stores of all that was told around it."""
    return warehouse.project, [airflow.store, spark_jobs.store, kafka_topic.store]
