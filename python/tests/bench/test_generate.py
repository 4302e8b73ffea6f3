"""The made-up projects of the benchmark: the same by seed, and wholly visible to our engine."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from dbt_ripple.artifacts import read_project
from dbt_ripple.graph.analyse_project import analyse

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SCRIPT = Path(__file__).resolve().parents[2] / "bench" / "generate.py"


def generate(folder: Path, models: int, *options: str) -> Path:
    subprocess.run(
        [sys.executable, SCRIPT, folder, "--models", str(models), *options],
        check=True,
        capture_output=True,
    )
    return folder


def check(folder: Path) -> None:
    """Everything is analysed, and every model has the columns that the catalog says."""
    project = read_project(folder)
    analysis = analyse(project)
    unseen = {
        unique_id: (node.status, node.reason and node.reason.message)
        for unique_id, node in {**analysis.nodes, **analysis.tests}.items()
        if node.status in ("opaque", "broken")
    }
    assert unseen == {}
    for node in project.of_type("model"):
        listed = [column.name for column in project.catalog[node.unique_id]]
        assert analysis.nodes[node.unique_id].columns == listed
        parents = {e.parent_id for e in analysis.edges if e.child_id == node.unique_id}
        assert parents == set(project.parents[node.unique_id])


@pytest.mark.parametrize("adapter", ["databricks", "spark"])
def test_project_is_seen_through(tmp_path: Path, adapter: str) -> None:
    check(generate(tmp_path, 50, "--adapter", adapter))


@pytest.mark.parametrize(("shape", "size"), [("wide", 200), ("long", 300), ("deep", 30)])
def test_shapes_are_seen_through(tmp_path: Path, shape: str, size: int) -> None:
    folder = generate(tmp_path, size, "--shape", shape)
    check(folder)
    nodes = json.loads((folder / "manifest.json").read_text())["nodes"].values()
    models = [node for node in nodes if node["resource_type"] == "model"]
    if shape == "deep":
        assert len(models) == size
    if shape == "long":
        assert max(node["compiled_code"].count("\n") for node in models) >= size
    if shape == "wide":
        catalog = json.loads((folder / "catalog.json").read_text())
        assert max(len(table["columns"]) for table in catalog["nodes"].values()) >= size


def test_seed_decides(tmp_path: Path) -> None:
    first, again, other = (
        generate(tmp_path / name, 20, "--seed", seed)
        for name, seed in (("first", "1"), ("again", "1"), ("other", "2"))
    )
    for name in ("manifest.json", "catalog.json"):
        assert (first / name).read_bytes() == (again / name).read_bytes()
        assert (first / name).read_bytes() != (other / name).read_bytes()


def test_size_and_tests(tmp_path: Path) -> None:
    folder = generate(tmp_path, 70, "--tests-per-model", "2")
    nodes = json.loads((folder / "manifest.json").read_text())["nodes"].values()
    own = [node for node in nodes if node["package_name"] == "bench"]
    kinds = [node["resource_type"] for node in own]
    assert (kinds.count("model"), kinds.count("test")) == (70, 140)
    sql = [len(node["compiled_code"]) for node in own if node["resource_type"] == "model"]
    assert 1_500 < sum(sql) / len(sql) < 4_500


def test_macros_and_hooks_are_as_in_real_projects(tmp_path: Path) -> None:
    """Macros call each other, hooks reach many of them, and every name that a node calls is there."""
    manifest = json.loads((generate(tmp_path, 60) / "manifest.json").read_text())
    macros = manifest["macros"]
    called = {name: macro["depends_on"]["macros"] for name, macro in macros.items()}
    assert len(macros) >= 1_700
    for name in (
        name for node in manifest["nodes"].values() for name in node["depends_on"]["macros"]
    ):
        assert name in macros
    reached, new = set(), {"macro.observer.on_run_end"}
    while new:
        reached |= new
        new = {above for name in new for above in called[name]} - reached
    assert len(reached) > 100
    hooked = [
        node["resource_type"]
        for node in manifest["nodes"].values()
        if node["config"].get("post-hook")
    ]
    assert hooked.count("seed") == 9
    assert hooked.count("model") > 9  # those of the observer, and some of the project


@pytest.mark.parametrize("options", [("--models", "0"), ("--adapter", "oracle")])
def test_nonsense_is_refused(tmp_path: Path, options: tuple[str, ...]) -> None:
    done = subprocess.run([sys.executable, SCRIPT, tmp_path, *options], capture_output=True)
    assert done.returncode != 0
    assert not list(tmp_path.iterdir())


@pytest.mark.spark
def test_spark_analyses_all(tmp_path: Path, spark: SparkSession) -> None:
    """Spark itself takes every query and finds the columns that the catalog lists."""
    folder = generate(tmp_path, 30, "--adapter", "spark", "--seed", "3")
    project = read_project(folder)
    relations = project.of_type("source", "model")
    # Views instead of tables, because a metastore takes its time.
    schemas = "|".join({node.schema for node in relations if node.schema})
    view = re.compile(rf"\b({schemas})\.(\w+)")
    for node in relations:
        columns = ", ".join(
            f"cast(null as {c.type}) as {c.name}" for c in project.catalog[node.unique_id]
        )
        name = view.sub(r"\1__\2", node.relation_name or "")
        spark.sql(f"create or replace temporary view {name} as select {columns}")
    for node in project.of_type("model", "test"):
        frame = spark.sql(view.sub(r"\1__\2", node.compiled_code or "")).columns
        if node.resource_type == "model":
            assert frame == [c.name for c in project.catalog[node.unique_id]]


@pytest.mark.parametrize("runner", ["run_ripple.py", "run_floor.py", "run_whole.py"])
def test_what_is_timed_runs(runner: str, tmp_path: Path) -> None:
    project = generate(tmp_path / "project", 10)
    done = subprocess.run(
        [sys.executable, SCRIPT.parent / "peers" / runner, project, "--tests"],
        check=True,
        capture_output=True,
        text=True,
    )
    assert json.loads(done.stdout)["models"] == 10 + 9  # the tables of a package, too
