"""What happened, told by the package's models: hand-made loads and runs in, expected rows out.

A small pipeline (orders → stg → top → report) is loaded three times and run four times. The second
load doubles an amount and rewrites a status, the third takes the latter back.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("dbt.adapters.duckdb")

import duck_project
from duck_project import dbt, insert, loaded, rows
from hand_made import LISTED, RAW, check, node, orders, project

from dbt_ripple.artifacts import Project
from dbt_ripple.governance.gate import gate
from dbt_ripple.graph.analyse_project import analyse
from dbt_ripple.graph.lineage_tables import RECORDED, TABLES, RunHistoryRow
from dbt_ripple.pages.describe_project import describe_project

pytestmark = pytest.mark.slow

TODAY = datetime.now(UTC).replace(hour=0, minute=0, second=0, microsecond=0)
# A Monday, so that all of it is one week, and long enough ago that it is over.
MONDAY = TODAY - timedelta(days=TODAY.weekday() + 14)


def at(clock: str, day: datetime = MONDAY) -> datetime:
    hours, minutes = clock.split(":")
    return day + timedelta(hours=int(hours), minutes=int(minutes))


def naive(moment: datetime) -> datetime:
    return moment.replace(tzinfo=None)


def side(when: datetime, amount: str = "amount", status: str = "status", **more: Any) -> Project:
    """The project as it was; another expression of stg is another file."""
    stg = f"select id, {amount} as amount, {status} as status from s.orders"
    top = more.get("top", "select id, amount, status from s.stg")
    made = project(
        orders(),
        node("model.p.stg", stg, RAW, checksum={"name": "sha256", "checksum": f"{amount}{status}"}),
        node(
            "model.p.top",
            top,
            "model.p.stg",
            access="public",
            group="sales",
            meta={"criticality": "tier1", "certified": True, "owner": "ann"},
        ),
        node("model.p.ids", "select id from s.stg", "model.p.stg"),
        node("model.p.lost", "select * from nowhere(1)", "model.p.stg", language="python"),
        node("exposure.p.report", None, "model.p.top", meta={"owner": "bob"}),
        check("amount", "select amount from s.top where amount is null", "model.p.top"),
        check("status", "select status from s.top where status is null", "model.p.top"),
        check("ids", "select id from s.top group by id having count(*) > 1", "model.p.top"),
        catalog=LISTED,
        types={
            "model.p.top": more.get("types", {"id": "int", "amount": "int", "status": "string"})
        },
        adapter="duckdb",
    )
    made.metadata.generated_at = when
    return made.having(digest=when.isoformat())


def ran(invocation: str, name: str, status: str, clock: str, **more: Any) -> RunHistoryRow:
    """One recorded result, over at the time given after half a minute."""
    kind = "model" if name in ("stg", "top") else "test"
    done = at(clock)
    values: dict[str, Any] = {
        "invocation_id": invocation,
        "unique_id": f"{kind}.p.{name}",
        "project_name": "p",
        "target_name": "dev",
        "command": "build",
        "resource_type": kind,
        "name": name,
        "node_id": f"model.p.{name}" if kind == "model" else "model.p.top",
        "test_name": None,
        "tags": "",
        "status": status,
        "execution_time": 30.0,
        "started_at": done - timedelta(seconds=30),
        "completed_at": done,
        "rows_affected": None,
        "row_count": None,
        "failures": None,
        "message": None,
        "max_loaded_at": None,
        "checksum": None,
        "git_sha": None,
        "recorded_at": done + timedelta(minutes=1),
    }
    return RunHistoryRow(**values | more)


NULLS = {"test_name": "null_rate_at_most", "column_name": "id", "row_count": 10}
RUNS = [
    ran("r1", "stg", "success", "09:10", checksum="amountstatus", row_count=7),
    ran("r1", "top", "success", "09:11"),
    ran("r1", "amount", "pass", "09:12"),
    ran("r1", "status", "pass", "09:12"),
    ran("r1", "ids", "pass", "09:12", **NULLS, null_count=0),
    # The first run with the doubled amount and the rewritten status; loaded five minutes later.
    ran("r2", "stg", "success", "10:00", checksum="amount * 2nullif(status, 'x')", row_count=17),
    ran("r2", "top", "error", "10:01", message="Runtime Error"),
    ran("r2", "amount", "warn", "10:02"),
    ran("r2", "status", "fail", "10:02", message="Got 3 results"),
    ran("r3", "status", "error", "10:10", message="no such table"),
    ran("r3", "amount", "skipped", "10:10"),
    ran("r4", "top", "success", "10:30"),
    ran("r4", "status", "pass", "10:32"),
    # Nothing that it reads was defined otherwise.
    ran("r4", "ids", "fail", "10:32", **NULLS, null_count=5, message="Got 1 result"),
    # What is above it is too old: only a warning, but an SLO.
    ran("r4", "soft", "warn", "10:33", node_id="model.p.stg", test_name="fresh_within"),
    ran("r4", "volume", "pass", "10:32", test_name="volume_within_sigma", tags="a,slo"),
]


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The package built over nothing, over the loads and runs, and over a change of a contract."""
    folder = tmp_path_factory.mktemp("operations")
    with pytest.MonkeyPatch.context() as patch:
        for name in [name for name in os.environ if name.startswith("DBT_")]:
            patch.delenv(name)
        patch.chdir(folder)
        duck_project.make(folder, {})
        build(folder)
        loaded(folder, side(at("09:05")), "a")
        loaded(folder, side(at("10:05"), "amount * 2", "nullif(status, 'x')"), "b")
        loaded(folder, side(at("10:20"), "amount * 2"), "c")
        insert(folder, "run_history", RUNS)
        build(folder)
        yield folder


def build(folder: Path) -> None:
    """Every model is built, every test passes; rules may warn."""
    results = dbt(folder, "build", "--select", "package:dbt_ripple")
    failed = [
        (r.node.name, r.message)
        for r in results
        if str(r.status) not in ("success", "pass", "warn", "no-op")
    ]
    assert results and failed == []


def test_every_model_is_empty_before_anything_is_loaded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    duck_project.make(tmp_path, {})
    build(tmp_path)
    models = [name for (name,) in rows(tmp_path, "from (show tables from dev_ripple) select name")]
    counts = {
        name: rows(tmp_path, f"select count(*) from dev_ripple.{name}")[0][0] for name in models
    }
    assert counts.pop("ripple_lineage_status") == 1
    assert len(counts) > 20 and set(counts.values()) == {0}
    assert len(rows(tmp_path, "show tables from dev_ripple_raw")) == len(TABLES | RECORDED)


def test_incidents_one_for_each_cause(told: Path) -> None:
    result_rows = rows(
        told,
        "select name, state, severity, opened_at, opened_invocation_id, last_passed_at, failures,"
        " failed_nodes, failed_runs, last_status, closed_at, seconds_to_recovery, node_name, owner,"
        " criticality, cause_unique_id, cause_column, cause_change, caused_at, cause_git_sha,"
        " cause_distance, cause_candidates from dev_ripple.ripple_incidents order by opened_at, name",
    )
    dated = naive(at("10:00")) - timedelta(seconds=30)
    # A model that did not build: all of its columns moved, and the first origin is named.
    broken = ("model.p.stg", "amount", "redefined", dated, "b", 1, 2)
    assert result_rows == [
        # The model and the test failed because stg was changed: the incident ends with the later.
        (
            *("top", "closed", "error", naive(at("10:01")), "r2", naive(at("09:11")), 2, 1, 3),
            *("error", naive(at("10:32")), 1860, "top", "ann", "tier1"),
            *broken,
        ),
        # No definition changed: it is put down to what failed above it in the same run.
        (
            *("soft", "open", "error", naive(at("10:32")), "r4", None, 2, 2, 2),
            *("warn", None, None, "stg", None, "tier1"),
            *(None,) * 7,
        ),
    ]


def test_what_failed_in_each_incident(told: Path) -> None:
    result_rows = rows(
        told,
        "select f.name, i.name, f.state, f.severity, f.opened_at, f.failed_runs, f.closed_at,"
        " f.seconds_to_recovery, f.owner, f.cause_column, f.cause_git_sha, f.cause_candidates"
        " from dev_ripple.ripple_incident_failures f join dev_ripple.ripple_incidents i using (incident_id)"
        " order by f.opened_at, f.name",
    )
    first, second, third = naive(at("10:01")), naive(at("10:02")), naive(at("10:32"))
    none = (None, None, None)
    assert result_rows == [
        (
            *("top", "top", "closed", "error", first, 1, naive(at("10:30")), 1740, "ann"),
            *("amount", "b", 2),
        ),
        (
            *("status", "top", "closed", "error", second, 2, third, 1800, "ann"),
            *("status", "b", 1),
        ),
        ("ids", "soft", "open", "error", third, 1, None, None, "ann", *none),
        ("soft", "soft", "open", "warn", naive(at("10:33")), 1, None, None, None, *none),
    ]


def test_a_spike_has_a_picture(told: Path) -> None:
    result_rows = rows(
        told,
        "select node_name, column_name, measure, invocation_id, measured_value, previous_value,"
        " is_violated, picture from dev_ripple.ripple_measurements order by measure, measured_at",
    )
    assert result_rows == [
        ("top", "id", "null_rate", "r1", 0.0, None, False, ""),
        ("top", "id", "null_rate", "r4", 0.5, 0.0, True, "#" * 20),
        ("stg", None, "row_count", "r1", 7.0, None, False, "#" * 8),
        ("stg", None, "row_count", "r2", 17.0, 7.0, False, "#" * 20),
        ("stg", None, "rows_added", "r2", 10.0, None, False, "#" * 20),
    ]


def test_definition_changes(told: Path) -> None:
    result_rows = rows(
        told,
        "select git_sha, base_git_sha, changed_at, name, column_name, change, is_origin,"
        " is_latest from dev_ripple.ripple_definition_changes order by git_sha, name, column_name",
    )
    b = ("b", "a", naive(at("10:00")) - timedelta(seconds=30))
    c = ("c", "b", naive(at("10:20")))
    assert result_rows == [
        (*b, "amount", "*rows*", "redefined", False, False),
        (*b, "lost", "*rows*", "redefined", False, False),
        (*b, "status", "*rows*", "redefined", False, False),
        (*b, "stg", "amount", "redefined", True, False),
        (*b, "stg", "status", "redefined", True, False),
        (*b, "top", "amount", "redefined", False, False),
        (*b, "top", "status", "redefined", False, False),
        (*c, "lost", "*rows*", "redefined", False, True),
        (*c, "status", "*rows*", "redefined", False, True),
        (*c, "stg", "status", "redefined", True, True),
        (*c, "top", "status", "redefined", False, True),
    ]


def test_test_history_and_last_successful_run(told: Path) -> None:
    assert rows(
        told,
        "select invocation_id, status, previous_status, node_name, owner"
        " from dev_ripple.ripple_test_history where name = 'status' order by ran_at",
    ) == [
        ("r1", "pass", None, "top", "ann"),
        ("r2", "fail", "pass", "top", "ann"),
        ("r3", "error", "fail", "top", "ann"),
        ("r4", "pass", "error", "top", "ann"),
    ]
    assert rows(
        told,
        "select name, succeeded_at, invocation_id, last_ran_at, last_status"
        " from dev_ripple.ripple_last_successful_run order by name",
    ) == [
        ("stg", naive(at("10:00")), "r2", naive(at("10:00")), "success"),
        ("top", naive(at("10:30")), "r4", naive(at("10:30")), "success"),
    ]


def test_slo_status(told: Path) -> None:
    assert rows(
        told,
        "select name, state, last_checked_at, last_met_at, violated_since, checks, checks_met,"
        " owner from dev_ripple.ripple_slo_status order by name",
    ) == [
        (
            "ids",
            "violated",
            naive(at("10:32")),
            naive(at("09:12")),
            naive(at("10:32")),
            2,
            1,
            "ann",
        ),
        (
            *("soft", "violated", naive(at("10:33")), None, naive(at("10:33")), 1, 0),
            None,
        ),
        # Nothing was counted yet on three days before today.
        ("volume", "learning", naive(at("10:32")), naive(at("10:32")), None, 1, 1, "ann"),
    ]


def test_health_by_week(told: Path) -> None:
    week = naive(MONDAY)
    # stg, top and ids; lost, the Python model, was not analysed.
    assert rows(
        told,
        "select week, is_latest, nodes, covered_nodes, node_coverage, tier1_columns,"
        " covered_tier1_columns, tier1_column_coverage, tier1_nodes, covered_tier1_nodes,"
        " tier1_node_coverage from dev_ripple.ripple_lineage_coverage",
    ) == [(week, True, 4, 3, 3 / 4, 3, 3, 1.0, 1, 1, 1.0)]
    assert rows(
        told,
        "select name, reason, one_unseen_reader from dev_ripple.ripple_unknown_downstreams order by name",
    ) == [
        ("ids", "no known reader", None),
        ("lost", "no known reader", None),
        ("stg", "a reader that cannot be analysed", "model.p.lost"),
        ("top", "a consumer that does not say which columns it reads", "exposure.p.report"),
    ]
    assert rows(
        told,
        "select name, upstream_nodes, unseen_nodes, is_complete from dev_ripple.ripple_certified_path_integrity",
    ) == [("top", 2, 0, True)]
    # Both changes were made in stg: top, lost and the report read them; ids reads another column.
    first, second = side(at("09:05")), side(at("10:05"), "amount * 2", "nullif(status, 'x')")
    assert gate(first, second).blast_radius == 3
    assert gate(second, side(at("10:20"), "amount * 2")).blast_radius == 3
    assert rows(
        told,
        "select week, changes, median_blast_radius, largest_blast_radius"
        " from dev_ripple.ripple_median_blast_radius",
    ) == [(week, 2, 3.0, 3)]
    assert rows(
        told,
        "select week, node_coverage, tier1_column_coverage, unknown_downstreams,"
        " certified_path_integrity, changes, median_blast_radius, incidents_opened,"
        " incidents_closed, mttr_minutes from dev_ripple.ripple_lineage_kpis",
    ) == [(week, 3 / 4, 1.0, 4, 1.0, 2, 3.0, 2, 1, 31.0)]


def test_figures_by_domain(told: Path) -> None:
    result_rows = rows(
        told,
        "select domain, incidents_opened, incidents_closed, mttr_minutes, downtime_hours,"
        " timely_cause_share, contract_violations, contract_violations_30_days, changes,"
        f" change_failure_rate from dev_ripple.ripple_domain_kpis where week = '{MONDAY:%Y-%m-%d}'"
        " order by domain",
    )
    assert result_rows == [
        # Both changes were made in stg, of no group, and one of them broke something in sales. What
        # is open since half past ten on Monday stays open all week.
        ("no domain", 1, 0, None, pytest.approx(7 * 24 - 10 - 32 / 60), 0.0, 0, 0, 2, 0.5),
        # The cause of the incident was loaded five minutes after the first failure.
        ("sales", 1, 1, 31.0, pytest.approx(31 / 60), 1.0, 3, 3, 0, None),
    ]
    later = "select downtime_hours from dev_ripple.ripple_domain_kpis where domain = 'no domain' and week"
    week = MONDAY + timedelta(days=7)
    assert rows(told, f"{later} = '{week:%Y-%m-%d}'") == [(168.0,)]


def test_lineage_is_behind_where_something_was_built_after_the_last_load(told: Path) -> None:
    query = "select status, newer_run_count, last_run_at from dev_ripple.ripple_lineage_status"
    # The last load was at 10:21; at 10:30 and later something was built.
    assert rows(told, query) == [("behind", 1, naive(at("10:31")))]


def test_dashboard_tiles(told: Path) -> None:
    asked = "{ripple_red_below: {coverage: 0.75, slo: 0.5}}"
    dbt(told, "compile", "--select", "resource_type:analysis", "--vars", asked)
    compiled = told / "target" / "compiled" / "dbt_ripple" / "analyses" / "tiles"
    tiles = {
        file.stem: rows(told, f"select * from ({file.read_text()}) as tile")
        for file in sorted(compiled.glob("*.sql"))
    }
    assert sorted(tiles) == [
        *("tile_badges", "tile_domains_by_week", "tile_health_by_week", "tile_open_incidents"),
    ]
    badges = {tuple(row[1:4]): row[4:] for row in tiles["tile_badges"]}
    (project,) = {row[0] for row in tiles["tile_badges"]}
    # As lineage_coverage says; and two of the promises are violated, one is still learning.
    assert badges["project", project, "coverage"] == (3, 4, 0.75, 0.75, "green")
    assert badges["project", project, "certified"] == (1, 1, 1.0, 1, "green")
    assert badges["project", project, "slo"] == (0, 2, 0.0, 0.5, "red")
    assert badges["dataset", "model.p.top", "coverage"][-1] == "green"
    week = naive(MONDAY)
    told_by_week = {row[2]: row[3] for row in tiles["tile_health_by_week"] if row[1] == week}
    assert (told_by_week["node_coverage"], told_by_week["mttr_minutes"]) == (75.0, 31.0)
    assert (
        len(tiles["tile_open_incidents"])
        == rows(told, "select count(*) from dev_ripple.ripple_incidents where state = 'open'")[0][0]
    )
    assert (
        len(tiles["tile_domains_by_week"])
        == rows(told, "select count(*) from dev_ripple.ripple_domain_kpis")[0][0]
    )


def test_pages_count_as_the_health_models_do(told: Path) -> None:
    project = side(at("10:20"), "amount * 2")
    health = describe_project(project, analyse(project, expressions=True)).health
    assert rows(
        told,
        "select node_coverage, tier1_node_coverage, tier1_column_coverage, unknown_downstreams,"
        " certified_path_integrity from dev_ripple.ripple_lineage_kpis",
    ) == [
        (
            health.node_coverage,
            health.tier1_node_coverage,
            health.tier1_column_coverage,
            health.unknown_downstreams,
            health.certified_path_integrity,
        )
    ]


def test_the_questions_of_a_runbook(told: Path) -> None:
    asked = "{ripple_node: top, ripple_column: status}"
    dbt(told, "compile", "--select", "resource_type:analysis", "--vars", asked)
    compiled = told / "target" / "compiled" / "dbt_ripple" / "analyses"

    def answered(name: str, columns: str) -> list[tuple[Any, ...]]:
        query = (compiled / f"{name}.sql").read_text()
        return rows(told, f"select {columns} from ({query}) as answered")

    seen = "name, column_name, depth, succeeded_at, one_test, open_incidents, open_since, owner"
    steps = answered("diagnose_metric", seen)
    assert [row for row in steps if row[1] == "status"] == [
        ("top", "status", 0, naive(at("10:30")), "status", 1, naive(at("10:32")), "ann"),
        ("stg", "status", 1, naive(at("10:00")), None, 1, naive(at("10:33")), None),
        ("orders", "status", 2, None, None, 0, None, None),
    ]
    assert {row[1] for row in steps} == {"status", "*rows*"}
    assert answered("changed_upstream", "name") == [], "it was two weeks ago"
    # Moved to the last hour, in the order they had: what is asked next reads them, too.
    rows(
        told,
        "update dev_ripple.ripple_definition_changes set changed_at = changed_at"
        " + (cast(now() as timestamp) - interval 1 hour - (select max(changed_at)"
        " from dev_ripple.ripple_definition_changes))",
    )
    assert answered("changed_upstream", "git_sha, depth, name, column_name") == [
        ("c", 1, "stg", "status"),
        ("b", 1, "stg", "status"),
    ]
    changed = "name, column_name, changes, one_git_sha"
    assert [row for row in answered("diagnose_metric", changed) if row[2]] == [
        ("stg", "status", 2, "c")
    ]
    page = "owner, name, criticality, columns_reached, one_column, may_read, is_built_since"
    assert answered("who_to_page", page) == [
        ("ann", "top", "tier1", 1, "status", False, False),
        ("bob", "report", None, 0, None, True, False),
    ]
    # A column is reached by what it is computed from: nothing else of stg is.
    by_column = "{ripple_node: top, ripple_column: AMOUNT, ripple_since: 7d}"
    dbt(told, "compile", "--select", "changed_upstream", "who_to_page", "--vars", by_column)
    assert answered("changed_upstream", "git_sha, name, column_name") == [("b", "stg", "amount")]
    # From a failed test, and at a time before the last commit.
    failed = "{ripple_node: status, ripple_since: '2000-01-01 00:00:00'}"
    dbt(told, "compile", "--select", "changed_upstream", "who_to_page", "--vars", failed)
    assert answered("changed_upstream", "git_sha, name, column_name") == [
        ("c", "stg", "status"),
        ("b", "stg", "status"),
    ]
    assert [row[:2] for row in answered("who_to_page", page)] == [("ann", "top"), ("bob", "report")]
    assert all(row[-1] for row in answered("who_to_page", page) if row[1] == "top")
    # Whose column is not reached is not paged.
    ids = "{ripple_node: orders, ripple_column: status}"
    dbt(told, "compile", "--select", "who_to_page", "--vars", ids)
    assert "ids" not in [row[1] for row in answered("who_to_page", page)]


def test_contract_violations(told: Path) -> None:
    query = (
        "select git_sha, name, column_name, violation, detail, is_latest"
        " from dev_ripple.ripple_contract_violations order by found_at, column_name, violation"
    )
    # The second load redefines both of a public model, the third the one.
    assert rows(told, query) == [
        ("b", "top", "amount", "column_redefined", "amount", False),
        ("b", "top", "status", "column_redefined", "status", False),
        ("c", "top", "status", "column_redefined", "status", True),
    ]
    day = MONDAY + timedelta(days=1)
    top = "select id as key, cast(amount as double) as amount from s.stg"
    loaded(
        folder := told,
        side(at("09:00", day), "amount * 2", top=top, types={"key": "int", "amount": "double"}),
        "d",
    )
    refused = ran(
        "r5", "top", "error", "11:00", message="This model has an enforced contract that failed."
    )
    drifted = ran("r5", "ids", "fail", "11:01", test_name="schema_matches_contract")
    insert(folder, "run_history", [refused, drifted])
    build(folder)
    assert rows(folder, query)[3:] == [
        (
            None,
            "top",
            "*",
            "contract_refused",
            "This model has an enforced contract that failed.",
            True,
        ),
        (None, "top", "*", "schema_drift", None, True),
        ("d", "top", "amount", "column_redefined", "CAST(amount AS DOUBLE)", True),
        ("d", "top", "amount", "column_retyped", "double", True),
        ("d", "top", "id", "column_renamed", "key", True),
        ("d", "top", "status", "column_removed", None, True),
    ]


def test_the_exposure_of_the_tiles_is_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What docs/operations.md gives to copy parses, and names all models that the tiles read."""
    monkeypatch.chdir(tmp_path)
    page = (duck_project.REPOSITORY / "docs" / "operations.md").read_text()
    (snippet,) = re.findall(r"```yaml\n(exposures:\n.*?)```", page, re.S)
    duck_project.make(tmp_path, {"models/exposures.yml": snippet})
    dbt(tmp_path, "parse")
    manifest = json.loads((tmp_path / "target" / "manifest.json").read_text())
    exposure = manifest["exposures"]["exposure.duck.lineage_health"]
    read = {
        parent
        for node in manifest["nodes"].values()
        if node["original_file_path"].startswith("analyses/tiles/")
        for parent in node["depends_on"]["nodes"]
    }
    assert read
    assert {*exposure["depends_on"]["nodes"]} == read
