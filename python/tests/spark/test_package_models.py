"""The package's models, read from Spark as the pages want them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import msgspec
import pytest
import rows_of_all_types
from hand_made import node, project

from dbt_ripple.artifacts import Node, Project
from dbt_ripple.cli import cli
from dbt_ripple.errors import RippleError
from dbt_ripple.spark.package_models import _rows_of, read_models, rows_about, weeks_of
from dbt_ripple.spark.server import SessionServer

pytestmark = pytest.mark.spark

SCHEMA = "page_models"
MONDAY = datetime(2026, 11, 16, tzinfo=UTC)
BUILT = ("dim_snapshots", "fct_runs", "incidents", "lineage_kpis", "domain_kpis")
DECLARED = (*BUILT, "median_blast_radius")
"""What the manifest has; the last was never built."""


def nodes() -> list[Node]:
    return [
        msgspec.structs.replace(
            node(f"model.dbt_ripple.ripple_{name}", "select 1 as one"),
            relation_name=f"`{SCHEMA}`.`{name}`",
        )
        for name in DECLARED
    ]


def at_hand(name: str = "p") -> Project:
    made = project()
    made.metadata.project_name = name
    return made.having(hidden={model.unique_id: model for model in nodes()})


@pytest.fixture(scope="module")
def spark_with_models(spark: Any) -> Iterator[Any]:
    spark.sql(f"create schema if not exists {SCHEMA}")
    monday = "timestamp_seconds(1794787200)"  # 2026-11-16 00:00 UTC
    tables = {
        "dim_snapshots": f"select 'p' as project_name, 'a' as snapshot_id, {monday} as loaded_at",
        "fct_runs": f"select n as project_name, {monday} + make_interval(0, 0, 0, 0, h) as ran_at"
        " from values ('p', 10), ('p', 20), ('other', 24 * 8) as t(n, h)",
        "incidents": "select n as project_name, i as node_id, i as unique_id, 'sales' as domain,"
        f" {monday} + make_interval(0, 0, 0, 0, h) as opened_at,"
        f" {monday} + make_interval(0, 0, 0, 0, h + 2) as closed_at, 'closed' as state"
        " from values ('p', 'model.p.b', 9), ('p', 'model.p.a', 30), ('other', 'model.p.a', 10)"
        " as t(n, i, h)",
        "lineage_kpis": "select 'p' as project_name, date_trunc('week', w) as week,"
        " 'a' as snapshot_id, cast(0.75 as double) as node_coverage,"
        " cast(2 as bigint) as changes, cast(1.5 as decimal(10, 2)) as median_blast_radius"
        f" from (select {monday} + make_interval(0, 0, 0, 3) as w)",
        "domain_kpis": "select 'p' as project_name, 'sales' as domain,"
        f" date_trunc('week', {monday} + make_interval(0, 0, 0, 3)) as week,"
        " cast(4 as bigint) as contract_violations, cast(2 as bigint) as changes",
    }
    for name, query in tables.items():
        spark.sql(f"drop table if exists {SCHEMA}.{name}")
        spark.sql(f"create table {SCHEMA}.{name} using parquet as {query}")
    yield spark
    spark.sql(f"drop schema {SCHEMA} cascade")


def test_rows_of_this_project_in_an_order_of_their_own(spark_with_models: Any) -> None:
    rows, unread = read_models(lambda: SessionServer(spark_with_models), at_hand(), DECLARED)
    assert list(unread) == ["median_blast_radius"]
    assert "dbt-ripple build" in unread["median_blast_radius"]
    assert "\n" not in unread["median_blast_radius"]
    ids = [row["unique_id"] for row in rows["incidents"]]
    assert sorted(ids, key=str) == ["model.p.a", "model.p.b"]
    again, _ = read_models(lambda: SessionServer(spark_with_models), at_hand(), DECLARED)
    assert again == rows
    times = {row["unique_id"]: row["opened_at"] for row in rows["incidents"]}
    assert times["model.p.b"] == (MONDAY + timedelta(hours=9)).isoformat()
    (kpi,) = rows["lineage_kpis"]
    assert (kpi["node_coverage"], kpi["changes"], kpi["median_blast_radius"]) == (0.75, 2, 1.5)
    json.dumps(rows)


def test_rows_are_read_as_they_are(spark: Any) -> None:
    """`test_thrift.py` reads the same through dbt's adapter."""
    for statement in rows_of_all_types.statements("read_by_session"):
        spark.sql(statement)
    relation = "`read_by_session`.`of_all_types`"
    rows = _rows_of(SessionServer(spark), relation, rows_of_all_types.PROJECT)
    assert sorted(rows, key=lambda row: str(row["many"])) == rows_of_all_types.expected()
    spark.sql("drop schema read_by_session cascade")


def test_rows_about_some_nodes(spark_with_models: Any) -> None:
    rows, unread = rows_about(lambda: SessionServer(spark_with_models), at_hand(), {"model.p.a"})
    assert [row["unique_id"] for row in rows["incidents"]] == ["model.p.a"]
    assert {"contract_violations", "definition_changes"} <= unread.keys()


def test_weeks_in_which_something_ran(spark_with_models: Any) -> None:
    (week,) = (
        weeks_of(lambda: SessionServer(spark_with_models), at_hand(), "fct_runs", "ran_at") or ()
    )
    assert abs(datetime.fromisoformat(week) - MONDAY) <= timedelta(hours=14)
    assert (
        weeks_of(lambda: SessionServer(spark_with_models), at_hand(), "median_blast_radius", "x")
        is None
    )
    assert weeks_of(lambda: SessionServer(spark_with_models), at_hand(), "nothing", "x") is None


def test_a_project_without_the_package_is_refused_before_spark_is_started() -> None:
    def never() -> Any:
        raise AssertionError

    with pytest.raises(RippleError, match="does not have the dbt package"):
        read_models(never, project(), DECLARED)
    with pytest.raises(RippleError, match="duckdb"):
        read_models(never, project(adapter="duckdb"), DECLARED)


def written(folder: Path) -> Path:
    """A project with the package, as dbt writes it."""
    import msgspec

    made = [
        node("model.p.a", "select id from s.orders", "source.p.raw.orders"),
        *nodes(),
    ]
    source = node("source.p.raw.orders", columns=["id"])
    manifest = {
        "metadata": {
            "dbt_schema_version": "https://schemas.getdbt.com/dbt/manifest/v12.json",
            "project_name": "p",
            "adapter_type": "spark",
            "generated_at": "2026-11-18T08:00:00Z",
        },
        "nodes": {n.unique_id: msgspec.to_builtins(n) for n in made},
        "sources": {source.unique_id: msgspec.to_builtins(source)},
    }
    (folder / "target").mkdir(parents=True)
    (folder / "target" / "manifest.json").write_text(json.dumps(manifest))
    return folder


def run(*arguments: str) -> None:
    assert not cli([*arguments], prog_name="dbt-ripple", standalone_mode=False, obj=[])


def test_a_report_of_the_tables(
    spark_with_models: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = str(written(tmp_path))
    run(
        "report",
        "--until",
        "2026-11-25",
        "--weeks",
        "2",
        "--format",
        "json",
        "--project-dir",
        folder,
    )
    said = json.loads(capsys.readouterr().out)
    assert said["source"] == "tables"
    week, after = said["weeks"]
    assert (week["week"], week["node_coverage"], week["changes"]) == ("2026-11-16", 0.75, 2)
    assert (week["incidents_opened"], week["mttr_minutes"]) == (2, 120)
    assert (week["contract_violations"], week["violations_per_change"]) == (4, 2)
    assert after["incidents_opened"] is None
    assert sum(one["downtime_hours"] or 0 for one in said["domains"]) == 4
    whys = " ".join(one["what"] for one in said["absent"])
    assert "median_blast_radius" in whys


def test_evidence_with_the_tables(spark_with_models: Any, tmp_path: Path) -> None:
    folder = written(tmp_path)
    packs = []
    for name in ("one", "two"):
        pack = folder / name
        run("evidence", "model.p.a", "-o", str(pack), "--tables", "--project-dir", str(folder))
        packs.append({path.name: path.read_bytes() for path in pack.rglob("*") if path.is_file()})
    assert packs[0] == packs[1]
    said = json.loads(packs[0]["evidence.json"])
    (incident,) = said["recorded"]["incidents"]
    assert incident["opened_at"] == (MONDAY + timedelta(hours=30)).isoformat()
    assert incident["opened_at"] in packs[0]["index.html"].decode()
    assert any("contract_violations" in one["what"] for one in said["absent"])
