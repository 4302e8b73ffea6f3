"""Queries lowered on Spark's executors come out as they do here."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from dbt_ripple.artifacts import read_project
from dbt_ripple.flow.ir import lower_packed, unpack
from dbt_ripple.graph.analyse_project import analyse
from dbt_ripple.spark import executors
from dbt_ripple.spark.executors import lower_on_executors, on_executors

GENERATE = Path(__file__).resolve().parents[2] / "bench" / "generate.py"


@pytest.fixture
def project(tmp_path):
    subprocess.run(
        [sys.executable, GENERATE, tmp_path, "--models", "60", "--adapter", "spark"],
        check=True,
        capture_output=True,
    )
    return read_project(tmp_path)


@pytest.fixture
def _as_on_a_cluster(monkeypatch):
    """The run's Spark is an embedded one, whose Python workers are as good as executors."""
    monkeypatch.setattr(executors, "has_executors", lambda _session: True)


@pytest.mark.spark
def test_executors_lower_as_the_driver_does(spark, project):
    queries = [node.compiled_code for node in project.nodes.values() if node.compiled_code]
    queries += ["select (((", "", "select '\u00e9' as \u00e9"]
    made = lower_on_executors(spark, queries, "spark", True)
    assert [unpack(packed) for packed in made] == [
        unpack(packed) for packed in lower_packed(queries, "spark", True)
    ]


@pytest.mark.spark
@pytest.mark.usefixtures("_as_on_a_cluster")
def test_a_project_comes_out_the_same(spark, project):
    warnings = []
    lower_many = on_executors(lambda: spark, None, warnings.append, least=1)
    there, here = (
        analyse(project, expressions=True, lower_many=lower_many),
        analyse(project, expressions=True),
    )
    assert (there.nodes, there.edges, there.test_columns) == (
        here.nodes,
        here.edges,
        here.test_columns,
    )
    assert warnings == []


@pytest.mark.spark
@pytest.mark.usefixtures("_as_on_a_cluster")
def test_executors_with_another_engine_are_not_believed(spark, project, monkeypatch):
    monkeypatch.setattr(executors, "engine", lambda: b"another")
    warnings = []
    lower_many = on_executors(lambda: spark, lower_packed, warnings.append, least=1)
    there = analyse(project, lower_many=lower_many)
    assert there.edges == analyse(project).edges
    assert len(warnings) == 1
    assert "another version of dbt-ripple" in warnings[0]


@pytest.mark.spark
def test_an_embedded_spark_and_few_queries_are_left_alone(spark, monkeypatch):
    monkeypatch.setattr(executors, "lower_on_executors", None)
    asked = []
    lower_many = on_executors(lambda: asked.append(1) or spark, lower_packed, asked.append, 3)
    assert len(lower_many(["select 1"] * 2, "spark", False)) == 2
    assert asked == []
    assert len(lower_many(["select 1"] * 3, "spark", False)) == 3
    assert asked == [1]


@pytest.mark.usefixtures("_as_on_a_cluster")
def test_executors_without_the_package_are_done_without(monkeypatch):
    # As Spark says it: the worker's traceback, which ends in the worker's own words.
    said_by_spark = (
        "Job aborted due to stage failure: Task 0 in stage 1.0 failed 4 times\n"
        "Traceback (most recent call last):\n"
        '  File "worker.py", line 1, in lowered\n'
        "    from dbt_ripple.flow.ir import lower_packed\n"
        "ModuleNotFoundError: No module named 'dbt_ripple'\n\n"
        "\tat org.apache.spark.api.python.BasePythonRunner$ReaderIterator.handlePythonException\n"
    )

    def fail(*_):
        raise RuntimeError(said_by_spark)

    monkeypatch.setattr(executors, "lower_on_executors", fail)
    warnings = []
    lower_many = on_executors(lambda: None, lower_packed, warnings.append, least=1)
    queries = ["select 1 as a", "select b from t"]
    assert lower_many(queries, "spark", False) == lower_packed(queries, "spark", False)
    assert warnings == ["analysed here, not on Spark's executors: No module named 'dbt_ripple'"]
