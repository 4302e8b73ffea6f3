"""Collected events on the command line, over a project compiled by dbt 1.11."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from cli_shell import Shell
from collected_events import Event, dataset, made_of, run_event
from test_assets import names
from test_schemas import valid
from two_sides import FROM_RAW, STG, Sides

from dbt_ripple.openlineage.collected.lineage_facets import dataset_lineage
from dbt_ripple.openlineage.declared_lineage import Dataset

STORE = "openlineage_events"
LAKE = "s3://lake"


def relation(shell: Shell, unique_id: str) -> tuple[str, str]:
    """What DuckDB's relation is called in OpenLineage."""
    manifest = json.loads((shell.folder / "target" / "manifest.json").read_text())
    node = {**manifest["nodes"], **manifest["sources"]}[unique_id]
    scheme = manifest["metadata"]["adapter_type"]
    return f"{scheme}://shop", node["relation_name"].replace('"', "")


def events(shell: Shell) -> list[Event]:
    """A task that loads a source, a job that reads a model, and a check of that."""
    source = relation(shell, "source.shop.raw.orders")
    model = relation(shell, STG)
    loads = made_of({"amount": [(LAKE, "landing/orders", "cents", ("DIRECT", "TRANSFORMATION"))]})
    kind = ("INDIRECT", "FILTER")
    reads = made_of(
        {"n": [(*model, "order_id", ("DIRECT", "AGGREGATION"))]}, [(*model, "amount", kind)]
    )
    checked = dataset(*model)
    said = {
        "assertion": "not_null",
        "column": "amount",
        "success": False,
        "name": "amount is there",
    }
    checked["inputFacets"] = {"dataQualityAssertions": {"assertions": [said]}}
    return [
        run_event(
            "load_orders.load",
            inputs=[dataset(LAKE, "landing/orders")],
            outputs=[dataset(*source, columnLineage=loads)],
        ),
        run_event(
            "train",
            integration="SPARK",
            inputs=[dataset(*model)],
            outputs=[dataset(LAKE, "churn", columnLineage=reads)],
        ),
        run_event("expectations", integration="", inputs=[checked]),
    ]


def store(shell: Shell, folder: str = STORE) -> Path:
    """A store beside the project."""
    file = shell.folder / folder / "events-00000001.ndjson"
    file.parent.mkdir()
    file.write_text("".join(json.dumps(e) + "\n" for e in events(shell)))
    return file


@pytest.fixture
def collecting(shell: Shell) -> Shell:
    store(shell)
    return shell


def test_trace_goes_through_collected_jobs(collecting: Shell) -> None:
    assert names(collecting("trace", "raw.orders", "-d", "upstream").out) == [
        "TABLE orders",
        "DAG load_orders.load",
        "FILE landing/orders",
    ]
    down = collecting("trace", "file:landing/orders.cents").out
    assert "SPARK_JOB train (rows)  INDIRECT FILTER" in down
    document = valid(
        "trace", collecting("trace", "spark:train", "-d", "upstream", "--format", "json").json
    )
    assert {"asset.airflow.load_orders.load", STG} <= {n["unique_id"] for n in document["nodes"]}


@pytest.mark.parametrize(
    "id_", ["table:raw_events", "file:lake/x", "topic:clicks", "kafka:clicks", "model:churn"]
)
def test_an_id_means_one_thing_in_code_events_and_answers(shell: Shell, id_: str) -> None:
    read = Dataset.of(id_)
    assert Dataset.of(read.written) == read
    file = shell.folder / STORE / "events-00000001.ndjson"
    file.parent.mkdir()
    made = run_event(
        "__main__.sessions",
        integration="",
        inputs=[dataset(read.namespace, read.name)],
        outputs=[dataset("table", "session_metrics")],
    )
    file.write_text(json.dumps(made) + "\n")
    expected = ["JOB __main__.sessions", "TABLE session_metrics"]
    assert names(shell("trace", id_).out)[1:] == expected
    assert names(shell("trace", "job:__main__.sessions").out) == expected
    # The same asset as a person registers: not a second one beside it.
    assert shell("register", id_, "--owner", "data@shop.example").code == 0
    assert names(shell("trace", id_).out)[1:] == expected


def test_a_job_that_is_called_by_an_id_has_that_id(shell: Shell) -> None:
    file = shell.folder / STORE / "events-00000001.ndjson"
    file.parent.mkdir()
    inputs = [dataset("table", "raw_events")]
    made = [run_event("airflow:score", integration="", inputs=inputs)]
    made.append(run_event("daily:score", integration="", inputs=inputs))  # no kind of job
    file.write_text("".join(json.dumps(e) + "\n" for e in made))
    assert sorted(names(shell("trace", "table:raw_events").out)[1:]) == [
        "DAG score",
        "JOB daily_score",
    ]
    assert names(shell("trace", "airflow:score").out)[0] == "DAG score"


@pytest.mark.parametrize("by_kind", [True, False])
def test_how_a_job_makes_a_column_is_shown(shell: Shell, by_kind: bool) -> None:
    source = relation(shell, "source.shop.raw.orders")
    made = made_of({"amount": [(LAKE, "landing", "cents", ("DIRECT", "AGGREGATION"))]})
    if by_kind:
        made["fields"]["amount"]["inputFields"][0]["transformations"][0]["description"] = (
            "SUM( cents)\n/ 100"
        )
    else:  # as before there were transformations
        made["fields"]["amount"] |= {
            "transformationType": "",
            "transformationDescription": "SUM( cents) / 100",
        }
    file = shell.folder / STORE / "events-00000001.ndjson"
    file.parent.mkdir()
    outputs = [dataset(*source, columnLineage=made)]
    event = run_event("load", inputs=[dataset(LAKE, "landing")], outputs=outputs)
    file.write_text(json.dumps(event) + "\n")
    tree = shell("trace", "raw.orders.amount", "-d", "upstream").out
    assert "DAG load.amount  DIRECT IDENTITY  = SUM( cents) / 100\n" in tree
    assert "FILE landing.cents  DIRECT AGGREGATION" in tree
    assert "SUM( cents) / 100" in shell("diagnose", "raw.orders.amount").out
    file.write_text(json.dumps(event).replace("SUM(", "SUM(" + "c + " * 1000) + "\n")
    assert "= SUM(c + c + " in shell("trace", "raw.orders.amount", "-d", "upstream").out
    facets = json.loads(file.read_text())["outputs"][0]["facets"]
    [source] = dataset_lineage(facets).fields["amount"]
    assert source.description is not None
    assert len(source.description) == 1000  # not lost, as a name of that length is


def test_where_events_are_read_from(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    plain = shell("trace", STG).out
    file = store(shell, "elsewhere")
    assert shell("trace", STG).out == plain
    for given in ("elsewhere", str(file)):
        assert "SPARK_JOB train" in shell("trace", STG, "--events", given).out
    monkeypatch.setenv("DBT_RIPPLE_EVENTS", "elsewhere")
    assert "SPARK_JOB train" in shell("trace", STG).out
    monkeypatch.delenv("DBT_RIPPLE_EVENTS")
    assert "no such file or folder" in shell.refused("trace", STG, "--events", "gone")
    other = shell("trace", STG, "--events", "elsewhere", "--dataset-namespace", "duckdb://other")
    assert "train" not in other.out


def test_a_damaged_store_is_one_line(collecting: Shell) -> None:
    file = collecting.folder / STORE / "events-00000001.ndjson"
    file.write_bytes(file.read_bytes() + b'{}\nnonsense\n\xff\xfe\n{"half')
    for command in (["trace", STG], ["analyze"], ["impact", STG, "--drop", "amount"]):
        done = collecting(*command)
        assert (
            "3 of 6 lines are left out as no event of OpenLineage, the first is line 4" in done.err
        )
        assert done.err.count("OpenLineage") == 1
        assert "train" in done.out or command == ["analyze"]


def test_impact_names_what_is_used_inside_a_job(collecting: Shell) -> None:
    document = valid(
        "impact", collecting("impact", STG, "--drop", "amount", "--format", "json").json
    )
    found = {a["unique_id"]: a["severity"] for a in document["affected_assets"]}
    assert found["asset.spark.train"] == "breaking"
    assert [test for test in document["affected_tests"] if "amount_is_there" in test]
    document = collecting("impact", STG, "--drop", "customer_id", "--format", "json").json
    assert "asset.spark.train" not in {a["unique_id"] for a in document["affected_assets"]}
    assert not [test for test in document["affected_tests"] if "amount_is_there" in test]


def test_diagnose_says_when_a_job_ran(collecting: Shell) -> None:
    document = valid("diagnose", collecting("diagnose", "spark:train", "--format", "json").json)
    steps = {step["unique_id"]: step for step in document["steps"]}
    run = steps["asset.airflow.load_orders.load"]["last_run"]
    assert (run["status"], run["at"]) == ("success", "2026-11-23T10:00:00Z")
    guards = {guard["name"]: guard["status"] for guard in steps[STG]["tests"]}
    assert guards["amount is there"] == "fail"


def test_analyze_counts_collected_assets(collecting: Shell) -> None:
    document = valid("analyze", collecting("analyze", "--format", "json").json)
    assert document["assets"] == 5


def test_emit_sends_no_events_of_others(collecting: Shell) -> None:
    pytest.importorskip("openlineage.client")
    out = collecting(
        "emit", "--static", "--output", "-", "--dataset-namespace", "duckdb://shop"
    ).out
    assert out and '"train"' not in out and "landing/orders" not in out


# --- two sides -------------------------------------------------------------------------------------


@pytest.fixture
def both(sides: Sides) -> Sides:
    store(sides.shell)
    return sides


def test_select_lists_jobs_that_read_what_changed(both: Sides) -> None:
    document = both("select", "--format", "json").json
    assert document["assets"] == [] and document["tests"] == []
    both.write_sql(STG, FROM_RAW.replace("amount,", "amount * 2 as amount,"))
    document = valid("select", both("select", "--format", "json").json)
    found = ["asset.file.churn", "asset.job.expectations", "asset.spark.train"]
    assert document["assets"] == found
    assert not [t for t in document["tests"] if "amount is there" in t["unique_id"]]
    (both.shell.folder / STORE / "events-00000001.ndjson").unlink()
    assert both("select", "--format", "json").json["tests"] == document["tests"]


def test_the_gate_has_collected_jobs_as_readers(both: Sides) -> None:
    both.write_sql(STG, FROM_RAW.replace("amount, ", ""))
    document = valid("gate", both("gate", "--format", "json").json)
    broken = {f["unique_id"] for f in document["findings"] if f["rule"] == "reader_broken"}
    assert "asset.spark.train" in broken
    for style in ("sarif", "github", "markdown", "text"):
        assert both("gate", "--format", style).code in (0, 1)


def test_a_pack_of_evidence_has_the_job_that_loads(collecting: Shell) -> None:
    collecting("evidence", f"{STG}.amount", "-o", "pack")
    said = json.loads((collecting.folder / "pack" / "evidence.json").read_text(encoding="utf-8"))
    sides = {node["name"]: node["side"] for node in said["nodes"]}
    assert sides["load_orders.load"] == sides["landing/orders"] == "upstream"


def test_a_report_has_collected_jobs(collecting: Shell) -> None:
    def coverage() -> float:
        said = collecting("report", *"--state target --format json --until 2026-11-20".split())
        coverage: float = said.json["weeks"][-1]["node_coverage"]
        return coverage

    without_columns = coverage()
    (collecting.folder / STORE).rename(collecting.folder / "elsewhere")
    assert without_columns < coverage()


def test_incident_asks_the_tables_of_this_project_or_of_another(
    shell: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    from dbt_ripple.dbt_runner import incident_tables
    from dbt_ripple.governance.at_hand import FromTables

    asked: list[Path] = []

    def ask(folder: Path, **_: object) -> FromTables:
        asked.append(folder.resolve())
        return FromTables()

    monkeypatch.setattr(incident_tables, "ask_tables", ask)
    other = shell.folder / "lineage"
    other.mkdir()
    without = shell("incident", STG).out
    own = shell("incident", STG, "--tables").out
    shell("incident", STG, "--tables-project", str(other))
    assert asked == [shell.folder.resolve(), other]
    assert "(--tables)" in without and "(--tables)" not in own
