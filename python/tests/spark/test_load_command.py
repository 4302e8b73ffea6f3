"""`dbt-ripple load` and `build` as commands: what they print, and how they refuse."""

from __future__ import annotations

import json
import sys
from types import SimpleNamespace

import jsonschema
import pytest
from click.testing import CliRunner
from snapshots_by_hand import snapshot_by_hand
from thrift_server import free_port

from dbt_ripple.cli import cli
from dbt_ripple.cli.build import _way
from dbt_ripple.cli.load import progress_of
from dbt_ripple.cli.spark_server import SparkOptions
from dbt_ripple.dbt_runner.invoke import DbtOptions
from dbt_ripple.dbt_runner.profile import adapter_of
from dbt_ripple.errors import RippleError
from dbt_ripple.graph.lineage_tables import TABLES
from dbt_ripple.rendering.json_documents import schema


def run(*arguments):
    result = CliRunner().invoke(cli, list(map(str, arguments)))
    if result.exception and not isinstance(result.exception, SystemExit | RippleError):
        raise result.exception
    return result


@pytest.fixture
def project(tmp_path):
    """A compiled project of a source and a model, as dbt would have written it."""
    target = tmp_path / "target"
    target.mkdir()
    source = {
        "unique_id": "source.shop.raw.orders",
        "name": "orders",
        "resource_type": "source",
        "package_name": "shop",
        "schema": "raw",
        "identifier": "orders",
        "relation_name": "`raw`.`orders`",
        "columns": {"id": {"name": "id"}, "total": {"name": "total"}},
    }
    model = {
        "unique_id": "model.shop.big_orders",
        "name": "big_orders",
        "resource_type": "model",
        "package_name": "shop",
        "language": "sql",
        "relation_name": "`dev`.`big_orders`",
        "config": {"materialized": "view"},
        "compiled": True,
        "compiled_code": "select id, total * 2 as twice from `raw`.`orders` where total > 100",
        "depends_on": {"nodes": ["source.shop.raw.orders"]},
    }
    manifest = {
        "metadata": {
            "dbt_schema_version": "https://schemas.getdbt.com/dbt/manifest/v12.json",
            "project_name": "shop",
            "adapter_type": "spark",
        },
        "sources": {source["unique_id"]: source},
        "nodes": {model["unique_id"]: model},
    }
    (target / "manifest.json").write_text(json.dumps(manifest))
    (tmp_path / "dbt_project.yml").write_text("name: shop\nprofile: shop\n")
    return tmp_path


def test_without_the_package_a_schema_is_needed(project):
    result = run("load", "--project-dir", project)
    assert isinstance(result.exception, RippleError)
    assert "packages.yml" in str(result.exception)
    assert "--schema" in str(result.exception)


def test_build_refuses_what_is_no_project(tmp_path):
    result = run("build", "--project-dir", tmp_path)
    assert "no dbt_project.yml in this folder" in str(result.exception)


def test_build_refuses_a_target_it_cannot_write(project):
    (project / "file").touch()
    result = run("build", "--project-dir", project, "--target-path", "file/below")
    assert "cannot be written" in str(result.exception)


def way_of_build(where, **credentials):
    """Whether `build` loads through dbt's own connection, and the settings of a session otherwise."""
    way = _way(where, SimpleNamespace(**credentials))
    return way._adapter is not None, way._config


def test_build_loads_through_the_connection_that_dbt_has(monkeypatch):
    for variable in ("SPARK_REMOTE", "PYSPARK_GATEWAY_PORT"):
        monkeypatch.delenv(variable, raising=False)
    thrift = {"type": "spark", "method": "thrift", "server_side_parameters": {"a": "b"}}
    databricks = {"type": "databricks", "method": None}
    session = {**thrift, "method": "session"}
    assert way_of_build(SparkOptions(), **thrift) == (True, None)
    assert way_of_build(SparkOptions(), **databricks) == (True, None)
    # A Spark that is named comes first, and has settings of its own.
    assert way_of_build(SparkOptions(remote="sc://host"), **thrift) == (False, None)
    assert way_of_build(SparkOptions(master="yarn"), **databricks) == (False, None)
    assert way_of_build(SparkOptions(), **session) == (False, {"a": "b"})
    monkeypatch.setenv("SPARK_REMOTE", "sc://host")
    assert way_of_build(SparkOptions(), **thrift) == (False, None)


def test_a_stage_is_for_the_connection_of_dbt(project):
    """Refused before anything is analysed or started."""
    result = run("load", "--schema", "raw", "--project-dir", project, "--stage", "s3://bucket/x")
    assert "through a Spark session; leave --stage out" in str(result.exception)
    assert str(result.exception).startswith("--stage s3://bucket/x: ")


def test_a_long_load_says_how_far_it_is(monkeypatch, capsys):
    snapshot = snapshot_by_hand("s1", nodes=10)
    total = sum(map(len, snapshot.rows.values()))
    with progress_of(snapshot) as progress:
        progress("nodes", 0)
        progress("nodes", 10)
    assert capsys.readouterr().err == ""  # not yet ten seconds
    monkeypatch.setattr(sys.modules["dbt_ripple.cli.load"], "SAY_EVERY", 0)
    with progress_of(snapshot) as progress:
        progress("nodes", 0)
        progress("nodes", 10)
        progress("columns", total - 10)
    said = capsys.readouterr().err.splitlines()
    assert said == [
        f"dbt-ripple: {share:.0%} of the rows written after 0 seconds"
        for share in (0, 10 / total, 1)
    ]


def profile_of(project, **target):
    outputs = {"shop": {"target": "prod", "outputs": {"prod": {"schema": "dev", **target}}}}
    (project / "profiles.yml").write_text(json.dumps(outputs))


def test_load_takes_the_connection_of_the_profile(project, monkeypatch):
    monkeypatch.delenv("SPARK_REMOTE", raising=False)
    monkeypatch.delenv("PYSPARK_GATEWAY_PORT", raising=False)
    thrift = {"type": "spark", "method": "thrift", "host": "127.0.0.1", "user": "dbt"}
    profile_of(project, **thrift, port=free_port())
    arguments = ["load", "--schema", "raw", "--project-dir", project, "--profiles-dir", project]
    said = str(run(*arguments).exception)
    assert said.startswith(
        "profiles.yml: dbt's connection to spark does not work (failed to connect"
    )
    assert "\n" not in said
    assert "`dbt debug` tells more" in said
    # A profile that cannot be read is not passed over: the load would go into another Spark.
    profile_of(project, **thrift, port="{{ env_var('NOT_SET_ANYWHERE') }}")
    said = str(run(*arguments).exception)
    assert "dbt cannot read the profile" in said
    assert "NOT_SET_ANYWHERE" in said
    assert "--master or --remote" in said


def test_a_profile_of_a_session_or_of_another_adapter_has_no_server(project):
    options = DbtOptions(profiles_dir=project)
    assert adapter_of(project, options) is None  # there is no profiles.yml
    profile_of(project, type="spark", method="session", host="none")
    assert adapter_of(project, options) is None
    profile_of(project, type="duckdb", path=":memory:")
    assert adapter_of(project, options) is None
    profile_of(project, type="spark", method="thrift", host="h", user="u", port=1)
    assert adapter_of(project, options).type() == "spark"


def test_build_on_another_adapter_is_one_line_and_compiles_nothing(project):
    pytest.importorskip("dbt.adapters.duckdb")
    (project / "profiles.yml").write_text(
        "shop:\n  target: dev\n  outputs:\n    dev: {type: duckdb, path: ':memory:', schema: dev}\n"
    )
    result = run("build", "--project-dir", project, "--profiles-dir", project)
    assert "for Spark and Databricks only, and this project is on duckdb" in str(result.exception)
    assert not (project / "target" / "ripple" / "compiled").exists()


def test_build_without_the_package_says_how_to_install_it(project):
    pytest.importorskip("dbt.cli.main")
    (project / "profiles.yml").write_text(
        "shop:\n  target: dev\n  outputs:\n"
        "    dev: {type: spark, method: session, host: localhost, schema: dev}\n"
    )
    result = run("build", "--project-dir", project, "--profiles-dir", project)
    assert "the dbt package dbt_ripple is not installed" in str(result.exception)
    assert "run `dbt deps`" in str(result.exception)
    # dbt's files of this command are in a folder of their own.
    assert "compiled_code" in (project / "target" / "manifest.json").read_text()
    assert (project / "target" / "ripple" / "manifest.json").exists()


@pytest.mark.spark
def test_load_prints_what_it_did(project, spark):
    arguments = ["load", "--project-dir", project, "--schema", "load_command_raw"]
    document = json.loads(run(*arguments, "--format", "json").stdout)
    jsonschema.Draft202012Validator(schema("load")).validate(document)
    assert document["already_loaded"] is False
    assert document["schema"] == "load_command_raw"
    assert set(document["rows"]) == set(TABLES)
    assert document["rows"]["nodes"] == 2
    assert document["rows"]["node_closure"] == 3
    edges = spark.table("load_command_raw.column_edges")
    assert edges.count() == document["rows"]["column_edges"]
    assert edges.where("child_column = 'twice' and parent_column = 'total'").count() >= 1
    again = run(*arguments)
    assert "was already loaded: nothing was written" in again.stdout
    assert spark.table("load_command_raw.snapshots").count() == 1
    assert spark.table("load_command_raw.column_edges").count() == edges.count()


@pytest.mark.spark
def test_declared_assets_are_rows_of_the_tables(project, spark):
    arguments = [
        "load",
        "--project-dir",
        project,
        "--schema",
        "load_assets_raw",
        "--format",
        "json",
    ]
    without = json.loads(run(*arguments).stdout)
    (project / "ripple_assets.yml").write_text(
        "assets:\n"
        "  - id: airflow:load\n    owner: data@shop.example\n    tags: [nightly]\n"
        "    writes: [{node: raw.orders, columns: {cents: total}}]\n"
        "  - id: stream:back\n    reads: [{node: big_orders, columns: [twice]}]\n"
        "    writes: [{node: raw.orders, columns: {twice: total}}]\n"
    )
    document = json.loads(run(*arguments).stdout)
    assert document["snapshot_id"] != without["snapshot_id"]
    assert document["rows"]["nodes"] == without["rows"]["nodes"] + 2
    of = f"snapshot_id = '{document['snapshot_id']}'"

    def rows(table, *columns):
        return {
            tuple(r)
            for r in spark.table(f"load_assets_raw.{table}").where(of).select(*columns).collect()
        }

    nodes = rows("nodes", "unique_id", "resource_type", "asset_type", "owner", "tags", "path")
    loads = (
        "asset.airflow.load",
        "asset",
        "dag",
        "data@shop.example",
        "nightly",
        "ripple_assets.yml",
    )
    assert loads in nodes
    # What comes back into the source would close a cycle: only its column edges are there.
    source, back = "source.shop.raw.orders", "asset.stream.back"
    edges = rows("edges", "parent_id", "child_id")
    assert {("asset.airflow.load", source), ("model.shop.big_orders", back)} <= edges
    assert (back, source) not in edges
    columns = rows("column_edges", "parent_id", "parent_column", "child_id", "child_column")
    assert {
        ("asset.airflow.load", "cents", source, "total"),
        (back, "twice", source, "total"),
    } <= columns
    assert json.loads(run(*arguments).stdout)["already_loaded"] is True
