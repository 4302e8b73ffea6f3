"""From a loaded table to the last consumer, over four programs that really ran: dbt, Airflow, Spark, Kafka."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("dbt.adapters.duckdb")

from package.duck_project import dbt, insert, make, rows
from served_collector import PACKAGE, stored

from dbt_ripple.artifacts.read_artifacts import read_project
from dbt_ripple.graph.analyse_project import analyse
from dbt_ripple.graph.assets.asset_lineage import AssetLineage
from dbt_ripple.graph.assets.declared_graph import DeclaredGraph
from dbt_ripple.graph.lineage_rows import build_rows
from dbt_ripple.openlineage.collected.collected_assets import with_collected
from dbt_ripple.openlineage.collected.stored_events import read_events

pytestmark = [pytest.mark.matrix, pytest.mark.slow]
LTV = "customer_ltv.execute_save_into_data_source_command.ml_customer_ltv"
World = tuple[Path, list[Path]]
"""The dbt project, and the stores."""


def ripple(world: World, *arguments: str) -> tuple[int, str, str]:
    """A command in the project, with what was collected."""
    project, stores = world
    program = "from dbt_ripple.cli import main; main()"
    events = [part for store in stores for part in ("--events", str(store))]
    done = subprocess.run(
        [sys.executable, "-c", program, *arguments, *events],
        cwd=project,
        env={**os.environ, "PYTHONPATH": str(PACKAGE)},
        capture_output=True,
        text=True,
        check=False,
    )
    return done.returncode, done.stdout, done.stderr


def test_trace_goes_through_all_programs(world: World) -> None:
    code, out, err = ripple(world, "trace", "raw_orders", "--direction", "both")
    assert (code, err) == (0, "")
    lines = [line.split("─ ")[-1].strip() for line in out.splitlines()]
    # Who loads it, and from where.
    assert lines[: lines.index("downstream:")] == [
        "upstream:",
        "TABLE raw_orders",
        "DAG load_orders.load_raw_orders",
        "TABLE shop.landing.orders",
        "",
    ]
    found = lines[lines.index("downstream:") + 1 :]
    # In the order of the tree: each chain down to its last consumer.
    for chain in (
        ["DBT_MODEL stg_orders", "DBT_MODEL fct_orders"],
        ["DAG daily_revenue_report.build", "TABLE shop.reports.daily_revenue"],
        [f"SPARK_JOB {LTV}", "TABLE shop.ml.customer_ltv", "JOB score_customers"],
        ["JOB score_customers", "TOPIC customer_scores", "JOB sync_contacts", "TABLE contacts"],
    ):
        place = found.index(chain[0])
        assert found[place : place + len(chain)] == chain


def test_trace_of_a_column_to_the_last_consumer(world: World) -> None:
    code, out, _ = ripple(world, "trace", "raw_orders.shipping_cost", "--format", "json")
    assert code == 0
    reached = json.dumps(json.loads(out))
    for name in ("customer_ltv", "customer_scores", "sync_contacts", "contacts"):
        assert name in reached
    # The report does not read it.
    assert "daily_revenue" not in reached


@pytest.mark.parametrize(
    ("column", "chain"),
    [("shipping_cost", "breaking"), ("channel", "warning")],
)
def test_impact_names_what_only_the_spark_job_reads(world: World, column: str, chain: str) -> None:
    """`channel` is in no column that the job makes: it only decides which orders count."""
    code, out, _ = ripple(world, "impact", "fct_orders", "--drop", column, "--format", "json")
    assert code == 1
    affected = {each["name"]: each for each in json.loads(out)["affected_assets"]}
    assert affected[LTV]["asset_type"] == "spark_job"
    assert affected[LTV]["severity"] == "breaking"
    assert column in json.dumps(affected[LTV]["affected_references"])
    assert affected["contacts"]["severity"] == chain
    assert "daily_revenue_report.build" not in affected
    assert not [each for each in affected.values() if each["asset_type"] == "dbt_model"]


def test_diagnose_goes_back_over_the_broker(world: World) -> None:
    code, out, _ = ripple(world, "diagnose", "contacts.rating")
    assert code == 0
    steps = [line for line in out.splitlines() if line[:1].isdigit()]
    assert [step.split()[1] for step in steps] == [
        *("TABLE", "JOB", "TOPIC", "JOB", "TABLE", "SPARK_JOB", "DBT_MODEL", "DBT_MODEL"),
        *("TABLE", "DAG", "TABLE"),
    ]
    # Spark, dbt, Airflow and both jobs behind the broker say when they ran.
    assert out.count("last run    success at ") == 6


@pytest.fixture(scope="module")
def tables(world: World, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The dbt package's models over all of it."""
    project, stores = world
    folder = tmp_path_factory.mktemp("tables")
    made = read_project(project / "target")
    with pytest.MonkeyPatch.context() as patch:
        for name in [name for name in os.environ if name.startswith("DBT_")]:
            patch.delenv(name)
        patch.chdir(folder)
        make(folder, {})
        dbt(folder, "run", "--select", "ripple_dim_snapshots")
        found = with_collected([], read_events(stores), [made], None)
        graph = DeclaredGraph(made, found.assets)
        seen = AssetLineage(graph, analyse(made, expressions=True, own=True)).analysis
        snapshot = build_rows(
            graph.acyclic, seen, target_name="dev", loaded_at=made.metadata.generated_at
        )
        for table, values in snapshot.rows.items():
            insert(folder, table, values)
        results = dbt(folder, "build", "--select", "package:dbt_ripple")
        bad = [(r.node.name, r.message) for r in results if str(r.status) in ("fail", "error")]
        assert results and not bad
        yield folder


def run_of(world: World, job: str) -> set[Any]:
    """The ids of the runs of a job, from the events themselves."""
    events = [event for store in world[1] for event in stored(store)]
    return {e["run"]["runId"] for e in events if e["job"]["name"] == job}


def test_last_successful_run_names_runs_of_airflow_and_spark(tables: Path, world: World) -> None:
    found = dict(
        rows(tables, "select unique_id, invocation_id from dev_ripple.ripple_last_successful_run")
    )
    for asset, job in (
        ("asset.airflow.load_orders.load_raw_orders", "load_orders.load_raw_orders"),
        (f"asset.spark.{LTV}", LTV),
        ("asset.job.sync_contacts", "sync_contacts"),
    ):
        assert {found[asset]} == run_of(world, job)


def test_changed_upstream_names_runs_of_airflow_and_spark(tables: Path, world: World) -> None:
    dbt(tables, "compile", "--select", "changed_upstream", "--vars", "{ripple_node: contacts}")
    file = tables / "target" / "compiled" / "dbt_ripple" / "analyses" / "changed_upstream.sql"
    found = rows(tables, f"select run_id, change from ({file.read_text()}) as answered")
    ran = {run for run, change in found if change == "ran"}
    for job in ("load_orders.load_raw_orders", LTV, "score_customers"):
        assert run_of(world, job) <= ran, job
