"""What a real Marquez makes of `emit`, `emit --static` and `track`."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import pytest
from real_programs.environments import Unavailable
from real_programs.marquez import Marquez
from real_programs.programs import Postgres
from real_programs.warehouse import Warehouse
from served_collector import PACKAGE

pytestmark = [pytest.mark.matrix, pytest.mark.slow]

TRACKED = """
from dbt_ripple import track
for fails in (False, True):
    try:
        with track(inputs=["raw.a"], outputs=["ml.b"], job="score", namespace="py"):
            if fails:
                raise ValueError("no")
    except ValueError:
        pass
assert track.flush(60)
"""


@pytest.fixture(scope="module")
def emitted(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Marquez, Warehouse]]:
    """A Marquez that has got a run of the shop, twice, its lineage without a run, and a tracked job."""
    folder = tmp_path_factory.mktemp("marquez")
    try:
        with Postgres() as server, Marquez(server, folder / "marquez") as marquez:
            warehouse = Warehouse(server, folder)
            warehouse.build()
            for _ in range(2):
                warehouse.emit(marquez.url)
            warehouse.emit(marquez.url, "--static", "--marquez-names")
            subprocess.run(
                [sys.executable, "-c", TRACKED],
                env={**os.environ, "OPENLINEAGE_URL": marquez.url, "PYTHONPATH": str(PACKAGE)},
                check=True,
                timeout=120,
            )
            yield marquez, warehouse
    except Unavailable as reason:
        pytest.skip(str(reason))


def test_column_lineage_is_ours(emitted: tuple[Marquez, Warehouse]) -> None:
    marquez, warehouse = emitted
    table = f"dataset:{warehouse.namespace}:shop.analytics.fct_orders"
    graph = marquez.get("column-lineage", nodeId=table, depth=1)["graph"]
    fields = {
        node["data"]["field"]: node["data"]
        for node in graph
        if node["data"] is not None and node["data"]["dataset"].endswith("fct_orders")
    }
    assert fields
    told = {
        name: {(i["dataset"], i["field"]) for i in data["inputFields"]}
        for name, data in fields.items()
    }
    ours = _edges(warehouse)
    assert told == ours
    assert {data["transformationType"] for data in fields.values()} <= {
        *("IDENTITY", "TRANSFORMATION", "AGGREGATION", "MASKED"),
        *("CONDITIONAL", "WINDOW"),
    }
    assert any(data["transformationDescription"] for data in fields.values())


def _edges(warehouse: Warehouse) -> dict[str, set[tuple[str, str]]]:
    """Of the columns of fct_orders what they are made of, as `emit` writes it."""
    program = "from dbt_ripple.cli import main; main()"
    command = ["emit", "--static", "--output", "-", "--dataset-namespace", warehouse.namespace]
    done = subprocess.run(
        [sys.executable, "-c", program, *command],
        cwd=warehouse.project,
        env={**os.environ, "PYTHONPATH": str(PACKAGE), "SHOP_PORT": str(warehouse.server.port)},
        capture_output=True,
        text=True,
        check=True,
    )
    events = [json.loads(line) for line in done.stdout.splitlines()]
    (facets,) = [
        e["dataset"]["facets"]
        for e in events
        if e.get("dataset", {}).get("name") == "shop.analytics.fct_orders"
    ]
    return {
        column: {(i["name"], i["field"]) for i in field["inputFields"]}
        for column, field in facets["columnLineage"]["fields"].items()
    }


def test_a_model_is_one_job(emitted: tuple[Marquez, Warehouse]) -> None:
    marquez, _ = emitted
    jobs = [job["name"] for job in marquez.get("namespaces", "dbt", "jobs", limit=200)["jobs"]]
    of_model = [name for name in jobs if name.endswith("model.shop.fct_orders")]
    assert of_model == ["dbt-run-shop.model.shop.fct_orders"]


def test_columns_are_stored_once(emitted: tuple[Marquez, Warehouse]) -> None:
    marquez, warehouse = emitted
    dataset = marquez.get(
        "namespaces", warehouse.namespace, "datasets", "shop.analytics.fct_orders"
    )
    names = [field["name"] for field in dataset["fields"]]
    assert names
    assert len(names) == len(set(names))
    assert all(field["type"] for field in dataset["fields"])


def test_a_tracked_job_that_fails_keeps_its_output(emitted: tuple[Marquez, Warehouse]) -> None:
    marquez, _ = emitted
    job: Any = marquez.get("namespaces", "py", "jobs", "score")
    assert job["latestRun"]["state"] == "FAILED"
    assert [output["name"] for output in job["outputs"]] == ["ml.b"]
