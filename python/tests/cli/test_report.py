"""`dbt-ripple report`: what is computed of artifacts and of tables, and what is not known."""

from __future__ import annotations

import json
import shutil
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

import pytest
from cli_shell import FIXTURE, Shell
from test_schemas import valid
from two_sides import FROM_RAW, STG

from dbt_ripple.pages.report import domains_of, markdown, mondays, series_of, text, trend
from dbt_ripple.pages.report_from_tables import IncidentRow, downtime_hours, from_tables
from dbt_ripple.rendering.page_documents import ReportDocument

NOW = datetime(2026, 11, 26, 12, tzinfo=UTC)
WEEKS = mondays(NOW.date(), 3)
TEST = "test.shop.no_negative_amount"


def kept(folder: Path, name: str, at: str, amount: str, status: str) -> None:
    """Artifacts of a build at some time."""
    shutil.copytree(FIXTURE, folder / name)
    manifest = json.loads((folder / name / "manifest.json").read_text())
    manifest["metadata"]["generated_at"] = at
    node = manifest["nodes"][STG]
    node |= {
        "access": "public",
        "compiled_code": FROM_RAW.replace("amount,", f"{amount} as amount,"),
    }
    (folder / name / "manifest.json").write_text(json.dumps(manifest))
    results = json.loads((folder / name / "run_results.json").read_text())
    results["metadata"] |= {"generated_at": at, "invocation_id": name.replace("/", " ")}
    results["args"] = {"which": "build", "target": "prod"}
    timing = [{"name": "execute", "started_at": at, "completed_at": at}]
    one = {**results["results"][0], "unique_id": TEST, "status": status, "timing": timing}
    results["results"] = [one]
    (folder / name / "run_results.json").write_text(json.dumps(results))


@pytest.fixture
def history(shell: Shell) -> Shell:
    """Three builds: the second changes what is promised, and a test fails until the third."""
    kept(shell.folder, "kept/1", "2026-11-10T08:00:00Z", "amount", "pass")
    kept(shell.folder, "kept/2", "2026-11-11T08:00:00Z", "amount * 2", "fail")
    shutil.rmtree(shell.folder / "target")
    kept(shell.folder, "target", "2026-11-11T09:30:00Z", "amount", "pass")
    return shell


def report(shell: Shell, *arguments: str) -> Any:
    done = shell("report", "--until", "2026-11-20", "--weeks", "3", *arguments, "--format", "json")
    assert done.code == 0, done.err
    return valid("report", done.json)


def test_artifacts_that_were_kept(history: Shell) -> None:
    said = report(history, "--history", "kept")
    assert (said["source"], said["first_week"], said["last_week"]) == (
        *("artifacts", "2026-11-02", "2026-11-16"),
    )
    before, week, after = said["weeks"]
    assert (week["incidents_opened"], week["incidents_closed"], week["mttr_minutes"]) == (1, 1, 90)
    # The public stg_orders.amount, and what both versions of dim_customers make of it; there and back.
    assert (week["changes"], week["contract_violations"]) == (2, 6)
    assert week["violations_per_change"] == 3
    assert week["median_blast_radius"] == week["largest_blast_radius"] > 1
    assert 0 < week["node_coverage"] < 1
    (domain,) = (one for one in said["domains"] if one["downtime_hours"])
    assert domain["downtime_hours"] == 1.5
    # Of weeks in which nothing was kept nothing is known; nothing is shown as 0.
    for empty in (before, after):
        assert {k for k, v in empty.items() if v is not None} == {"week"}
    whys = " ".join(one["why"] for one in said["absent"])
    assert "2026-11-02, 2026-11-16" in whys


def test_a_folder_that_is_kept_twice_counts_once(history: Shell) -> None:
    shutil.copytree(history.folder / "target", history.folder / "kept" / "3")
    twice = report(history, "--history", "kept", "--state", "kept/1")
    shutil.rmtree(history.folder / "kept" / "3")
    assert twice == report(history, "--state", "kept/2", "--state", "kept/1")


def test_one_set_of_artifacts_says_nothing_of_changes(history: Shell) -> None:
    said = report(history, "--state", "target")
    week = said["weeks"][1]
    assert (week["incidents_opened"], week["changes"], week["contract_violations"]) == (
        0,
        None,
        None,
    )
    assert week["median_blast_radius"] is None
    assert "no earlier artifacts" in " ".join(one["why"] for one in said["absent"])


@pytest.mark.parametrize("style", ["text", "markdown", "html"])
def test_formats(history: Shell, style: str) -> None:
    arguments = ("report", "--history", "kept", "--until", "2026-11-20", "--weeks", "3")
    printed = history(*arguments, "--format", style)
    assert printed.code == 0
    assert "1.5 h" in printed.out
    assert "not known" in printed.out
    written = history(*arguments, "--format", style, "-o", "report.out")
    assert (written.code, written.out) == (0, "")
    content = (history.folder / "report.out").read_bytes().decode()
    assert content.rstrip("\n") == printed.out.rstrip("\n")
    again = history(*arguments, "--format", style, "-o", "again.out")
    assert again.code == 0
    assert (history.folder / "again.out").read_bytes().decode() == content
    if style == "html":
        # One picture for each figure that is known in some week: one of the 11 is not.
        assert content.count('<svg xmlns="http://www.w3.org/2000/svg" class="trend"') == 10


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--until", "yesterday"), "is no date"),
        (("--weeks", "0"), "--weeks"),
        (("--state", "nowhere"), "no such folder"),
        (("--history", "nowhere"), "no such folder"),
        (("--history", "empty"), "no manifest.json"),
        (("--state", "target", "-o", "nowhere/report.html"), "cannot be written"),
        ((), "--history or --state"),
    ],
)
def test_bad_input_is_one_line(shell: Shell, arguments: tuple[str, ...], said: str) -> None:
    (shell.folder / "empty").mkdir()
    assert said in shell.refused("report", *arguments)


def test_artifacts_of_another_project_are_refused(history: Shell) -> None:
    path = history.folder / "kept" / "1" / "manifest.json"
    manifest = json.loads(path.read_text())
    manifest["metadata"]["project_name"] = "other"
    path.write_text(json.dumps(manifest))
    assert "these are artifacts of other" in history.refused("report", "--history", "kept")


# --- the models of the package ---------------------------------------------------------------------

KPI = {
    "snapshot_id": "a",
    "node_coverage": 0.5,
    "unknown_downstreams": 4,
    "changes": 2,
    "median_blast_radius": 3.5,
}


def of_tables(unread: dict[str, str] | None = None, **rows: Any) -> ReportDocument:
    ran = set(WEEKS[:2])
    found = {"lineage_kpis": [], "incidents": [], "domain_kpis": [], "median_blast_radius": []}
    made = {**found, **rows}
    for model in unread or {}:
        del made[model]
    return from_tables("shop", WEEKS, made, unread or {}, ran, NOW)


def incident(opened: str, closed: str | None, domain: str | None, state: str) -> dict[str, Any]:
    return {"opened_at": opened, "closed_at": closed, "domain": domain, "state": state}


def test_tables() -> None:
    said = of_tables(
        lineage_kpis=[{"week": "2026-11-08T23:00:00+00:00", **KPI}],
        median_blast_radius=[{"week": "2026-11-08T23:00:00+00:00", "largest_blast_radius": 5}],
        domain_kpis=[
            {"domain": "sales", "week": "2026-11-08T23:00:00+00:00", "contract_violations": 3}
        ],
        incidents=[
            incident("2026-11-10T08:00:00+00:00", "2026-11-10T10:00:00+00:00", "sales", "closed"),
            incident("2026-11-14T00:00:00+00:00", None, None, "open"),
        ],
    )
    one, two, three = said.weeks
    assert (one.node_coverage, one.changes, one.contract_violations) == (0.5, 2, 3)
    assert (one.median_blast_radius, one.largest_blast_radius) == (3.5, 5)
    assert one.violations_per_change == 1.5
    assert (one.incidents_opened, one.incidents_closed, one.mttr_minutes) == (2, 1, 120)
    # Something ran in the second week, but nothing was loaded; in the third neither.
    assert (two.incidents_opened, two.contract_violations, two.changes) == (0, 0, None)
    assert (three.incidents_opened, three.contract_violations) == (None, None)
    hours = {(d.domain, d.week.day): d.downtime_hours for d in said.domains}
    assert hours["sales", 9] == 2
    assert hours["no domain", 9] == 48
    # It is open until now, whether anything runs or not.
    assert (hours["no domain", 16], hours["no domain", 23]) == (168, 84)


def test_a_model_that_cannot_be_read_makes_no_zero() -> None:
    said = of_tables(unread={"incidents": "it was never built", "domain_kpis": "switched off"})
    week = said.weeks[0]
    assert (week.incidents_opened, week.contract_violations) == (None, None)
    assert {one.why for one in said.absent} > {"it was never built", "switched off"}
    words = " ".join(text(said))
    assert "it was never built" in words
    figures = {one.title: one.as_text(one.whole) for one in series_of(said)}
    assert set(figures.values()) == {"not known"}


def test_incidents_at_the_same_time_are_counted_once() -> None:
    def at(hour: float) -> datetime:
        return datetime(2026, 11, 10, tzinfo=UTC).replace(hour=int(hour), minute=int(hour % 1 * 60))

    overlapping = [
        IncidentRow("d", at(1), at(4), False),
        IncidentRow("d", at(2), at(3), False),
        IncidentRow("d", at(3.5), at(5), False),
        IncidentRow("d", at(8), at(9), False),
        IncidentRow("d", at(10), None, False),
    ]
    assert downtime_hours(overlapping, date(2026, 11, 9), NOW) == 5
    assert downtime_hours(overlapping, date(2026, 11, 16), NOW) == 0


def test_a_gap_is_no_zero_in_the_picture() -> None:
    weeks = ["a", "b", "c"]
    picture = trend("t", weeks, [1.0, None, 3.0], str)
    assert picture.count('class="point"') == 2
    assert picture.count('class="line"') == 0
    assert "b: not known" in picture
    zero = trend("t", weeks, [1.0, 0.0, 3.0], str)
    assert zero.count('class="point"') == 3
    assert zero.count('class="line"') == 2


def test_a_domain_is_text_whatever_it_is_called() -> None:
    said = of_tables(
        incidents=[
            incident("2026-11-10T08:00:00+00:00", None, "a|b`<script>\u202e", "open"),
        ]
    )
    assert domains_of(said)[0][0] == "a|b`<script>\u202e"
    lines = [*markdown(said)]
    (row,) = (line for line in lines if "script" in line)
    assert "<script>" not in row
    assert "\u202e" not in row
    head = next(line for line in lines if line.startswith("| domain |"))
    assert row.count("|") == head.count("|")
