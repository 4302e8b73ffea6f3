"""What `emit` tells of a real run of dbt."""

from __future__ import annotations

import json
import shutil
import uuid

import eggs_project
import pytest
import schemas
from event_shell import EventShell
from schemas import Events

EGGS = "model.eggs.eggs"
HENS = "model.eggs.hens"
DUCK = "duckdb://eggs.duckdb"


def ended(events: Events, ends: str) -> dict[str, object]:
    (event,) = [
        e for e in events if e["job"]["name"].startswith(ends) and e["eventType"] != "START"
    ]
    return event


def kinds(dependency: dict[str, list[dict[str, object]]]) -> set[str]:
    return {str(t["subtype"]) for t in dependency["transformations"]}


def test_every_node_that_ran_starts_and_ends(events: Events) -> None:
    states = events.states()
    assert all(
        len(states_of_node) == 2 and states_of_node[0] == "START"
        for states_of_node in states.values()
    ), states
    by_kind: dict[str, list[str]] = {}
    for job, (_, end) in states.items():
        by_kind.setdefault(end, []).append(job.rpartition(".")[0] or job)
    assert states[EGGS] == states[HENS] == states["seed.eggs.raw_eggs"] == ["START", "COMPLETE"]
    assert states["model.eggs.sold"] == ["START", "FAIL"]
    # Skipped, because `sold` failed; an exposure builds nothing; an ephemeral model never runs.
    assert not {"model.eggs.sold_later", "exposure.eggs.scales", "model.eggs.weights"} & set(states)
    assert states["dbt-run-eggs"] == ["START", "FAIL"]
    assert [events[0]["job"]["name"], events[-1]["job"]["name"]] == ["dbt-run-eggs"] * 2
    times = [event["eventTime"] for event in events]
    assert times == sorted(times)


def test_the_same_artifacts_give_the_same_events(shell: EventShell, events: Events) -> None:
    assert shell.events() == events
    assert shell.events("--no-cache") == events


def test_run_ids_are_of_the_invocation(shell: EventShell, events: Events) -> None:
    results = shell.folder / "target" / "run_results.json"
    document = json.loads(results.read_text())
    own = document["metadata"]["invocation_id"]
    assert {e["run"]["runId"] for e in events if e["job"]["name"] == "dbt-run-eggs"} == {own}
    ids = {e["job"]["name"]: e["run"]["runId"] for e in events}
    assert len(set(ids.values())) == len(ids)
    for event in events[1:-1]:
        parent = event["run"]["facets"]["parent"]
        assert parent["run"]["runId"] == own
        assert parent["root"]["run"]["runId"] == own
        assert parent["job"] == {"namespace": "dbt", "name": "dbt-run-eggs", "facets": {}}
    document["metadata"]["invocation_id"] = str(uuid.UUID(int=7))
    results.write_text(json.dumps(document))
    later = {e["job"]["name"]: e["run"]["runId"] for e in shell.events()}
    assert not set(later.values()) & set(ids.values())


def test_column_lineage_is_between_datasets(events: Events) -> None:
    event = events.of(HENS)
    (output,) = event["outputs"]
    assert (output["namespace"], output["name"]) == (DUCK, "eggs.dev.hens")
    facet = output["facets"]["columnLineage"]
    # `hens` reads the ephemeral `weights`, and that reads `eggs`.
    (grams,) = facet["fields"]["grams"]["inputFields"]
    assert (grams["name"], grams["field"]) == ("eggs.dev.eggs", "grams")
    (how,) = grams["transformations"]
    assert how["type"] == "DIRECT"
    assert how["subtype"] == "AGGREGATION"
    assert how["masking"] is False
    assert how["description"] == "SUM(grams * 2)"
    (hidden,) = facet["fields"]["hidden"]["inputFields"]
    assert [t["masking"] for t in hidden["transformations"]] == [True]
    # How many rows there are is not the value of a column.
    assert "eggs" not in facet["fields"]
    (group,) = facet["dataset"]
    assert (group["field"], kinds(group)) == ("hen", {"GROUP_BY"})
    assert [i["name"] for i in event["inputs"]] == ["eggs.dev.eggs"]


def test_the_lineage_facet_tells_the_same_and_of_rows(events: Events) -> None:
    (entry,) = events.of(HENS)["job"]["facets"]["lineage"]["entries"]
    assert (entry["type"], entry["name"]) == ("DATASET", "eggs.dev.hens")
    (count,) = entry["fields"]["eggs"]["inputs"]
    assert (count["name"], "field" in count) == ("eggs.dev.eggs", False)
    assert kinds(count) == {"AGGREGATION"}
    whole, by_hen = entry["inputs"]
    assert ("field" in whole, by_hen["field"]) == (False, "hen")
    old = events.of(HENS)["outputs"][0]["facets"]["columnLineage"]["fields"]
    for column, field in old.items():
        new = [i for i in entry["fields"][column]["inputs"] if "field" in i]
        assert [i["field"] for i in new] == [i["field"] for i in field["inputFields"]]


def test_a_schema_is_told_with_its_types_or_not_at_all(shell: EventShell) -> None:
    """Marquez stores a field without a type anew with each event, and then fails."""
    before = shell.events()
    assert all("schema" not in o["facets"] for e in before for o in e["outputs"])
    # The yml file has the types of a source's columns.
    reads = {i["name"]: i["facets"] for i in before.of("model.eggs.sold", "FAIL")["inputs"]}
    prices = reads["eggs.dev.prices"]["schema"]["fields"]
    assert [(f["name"], f["type"]) for f in prices] == [("grams", "integer"), ("price", "double")]
    results = shell.folder / "target" / "run_results.json"
    ran = results.read_bytes()
    eggs_project.build(shell.folder, "docs", "generate", "--no-compile")
    results.write_bytes(ran)
    fields = shell.events().of(EGGS)["outputs"][0]["facets"]["schema"]["fields"]
    assert [f["name"] for f in fields] == ["egg_id", "hen", "grams", "email"]
    assert [f["ordinal_position"] for f in fields] == [1, 2, 3, 4]
    assert fields[0]["description"] == "The number on the egg."
    assert all(f["type"] for f in fields)


def test_the_older_words_of_column_lineage_are_there_too(events: Events) -> None:
    """Marquez shows these, and no `transformations`."""
    (output,) = events.of(HENS)["outputs"]
    fields = output["facets"]["columnLineage"]["fields"]

    def older(column: str) -> tuple[str, str]:
        field = fields[column]
        return field["transformationType"], field["transformationDescription"]

    assert older("grams") == ("AGGREGATION", "SUM(grams * 2)")
    assert older("hidden")[0] == "MASKED"
    assert fields["hen"]["transformationType"] == "IDENTITY"


def test_facets_of_what_is_written(events: Events) -> None:
    event = events.of(EGGS)
    facets = event["outputs"][0]["facets"]
    assert facets["datasetType"]["datasetType"] == "TABLE"
    assert facets["documentation"]["description"] == "One row for each egg."
    owners = [(o["name"], o["type"]) for o in facets["ownership"]["owners"]]
    assert owners == [("farm team", "OWNER"), ("farm@eggs.org", "CONTACT")]
    tags = {(t["key"], t.get("field")): t["value"] for t in facets["tags"]["tags"]}
    assert tags == {
        ("contract_version", None): "3",
        ("criticality", None): "tier1",
        ("domain", None): "farm",
        ("nightly", None): "true",
        ("pii", "email"): "email",
    }
    job = event["job"]["facets"]
    assert job["jobType"] == job["jobType"] | {
        "processingType": "BATCH",
        "integration": "DBT",
        "jobType": "MODEL",
    }
    assert job["sql"]["dialect"] == "duckdb"
    assert "where grams > 0" in job["sql"]["query"]
    place = job["sourceCodeLocation"]
    assert place["path"] == "models/eggs.sql"
    assert place["url"] == (
        f"https://git.eggs.org/farm/dbt/blob/{place['version']}/models/eggs.sql"
    )
    assert "secret" not in json.dumps(events)
    engine = event["run"]["facets"]["processing_engine"]
    assert engine["name"] == "dbt"
    assert event["run"]["facets"]["nominalTime"]["nominalStartTime"] == events[0]["eventTime"]


def test_rows_written_where_the_adapter_counts(events: Events) -> None:
    (seed,) = events.of("seed.eggs.raw_eggs")["outputs"]
    assert seed["outputFacets"]["outputStatistics"]["rowCount"] == 3
    (table,) = events.of(EGGS)["outputs"]  # DuckDB does not count a `create table as`
    assert "outputStatistics" not in table["outputFacets"]


@pytest.mark.parametrize(
    ("test", "state", "column", "success", "severity"),
    [
        ("test.eggs.unique_eggs_egg_id", "COMPLETE", "egg_id", True, "error"),
        ("test.eggs.accepted_values_eggs_grams", "COMPLETE", "grams", False, "warn"),
        ("test.eggs.accepted_values_hens_eggs", "FAIL", "eggs", False, "error"),
    ],
)
def test_a_test_is_an_assertion_about_a_column(
    events: Events, test: str, state: str, column: str, success: bool, severity: str
) -> None:
    event = ended(events, test)
    assert event["eventType"] == state
    (tested,) = event["inputs"]
    (assertion,) = tested["inputFacets"]["dataQualityAssertions"]["assertions"]
    assert (assertion["column"], assertion["success"], assertion["severity"]) == (
        column,
        success,
        severity,
    )
    (run,) = event["run"]["facets"]["test"]["tests"]
    assert run["status"] == ("pass" if success else "fail")
    assert (assertion["expected"], assertion["actual"] == "0") == ("0", success)
    assert event["outputs"] == []


def test_a_failing_test_says_what_it_is_about(events: Events) -> None:
    message = ended(events, "test.eggs.accepted_values_hens_eggs")["run"]["facets"]["errorMessage"]
    lines = message["message"].split("\n")
    assert lines[0] == "Got 1 result, configured to fail if != 0"
    assert lines[1].startswith("test accepted_values (accepted_values_hens_eggs__")
    assert lines[2] == "about hens.eggs, dataset eggs.dev.hens"
    assert lines[-1] == "defined in models/_models.yml"


def test_a_test_of_two_relations_is_about_the_one_it_is_attached_to(events: Events) -> None:
    event = ended(events, "test.eggs.relationships_hens")
    facets = {i["name"]: i["inputFacets"] for i in event["inputs"]}
    assert facets["eggs.dev.eggs"] == {}
    (assertion,) = facets["eggs.dev.hens"]["dataQualityAssertions"]["assertions"]
    assert (assertion["assertion"], assertion["column"]) == ("relationships", "hen")
    assert assertion["params"]["field"] == "hen"


def test_a_singular_test_names_what_it_reads(events: Events) -> None:
    event = ended(events, "test.eggs.no_heavy_eggs")
    (tested,) = event["inputs"]
    (assertion,) = tested["inputFacets"]["dataQualityAssertions"]["assertions"]
    assert assertion["assertion"] == "custom_sql"
    assert "grams" in assertion["params"]["columns"]


def test_a_unit_test_reads_no_dataset(events: Events) -> None:
    event = ended(events, "unit_test.eggs.")
    assert (event["inputs"], event["outputs"], event["eventType"]) == ([], [], "COMPLETE")
    assert event["job"]["facets"]["jobType"]["jobType"] == "UNIT_TEST"


def test_a_model_that_fails_writes_nothing(events: Events) -> None:
    event = events.of("model.eggs.sold", "FAIL")
    assert event["outputs"] == []
    assert {i["name"] for i in event["inputs"]} == {"eggs.dev.eggs", "eggs.dev.prices"}
    message = event["run"]["facets"]["errorMessage"]["message"]
    assert "prices does not exist" in message
    assert "models/sold.sql" in message


def test_the_invocation_sums_up(events: Events) -> None:
    last = events[-1]["run"]["facets"]
    assert "2 of " in last["errorMessage"]["message"]
    statuses = {t["name"]: t["status"] for t in last["test"]["tests"]}
    assert statuses["test.eggs.no_heavy_eggs"] == "pass"
    assert sorted(set(statuses.values())) == ["fail", "pass"]


def test_who_started_dbt_is_the_parent(shell: EventShell) -> None:
    run = "0198c3a4-9c6e-7b1c-9b57-3f1ea2a3c001"
    shell.monkeypatch.setenv("OPENLINEAGE_PARENT_ID", f"airflow://prod/orders.dbt/{run}")
    events = shell.events()
    parent = events[0]["run"]["facets"]["parent"]
    assert parent["job"]["namespace"] == "airflow://prod"
    assert parent["job"]["name"] == "orders.dbt"
    of_node = events.of(EGGS)["run"]["facets"]["parent"]
    assert of_node["job"]["name"] == "dbt-run-eggs"
    assert of_node["root"]["run"]["runId"] == run
    context = {
        "parent": {
            "run": {"runId": run},
            "job": {"namespace": "n", "name": "task"},
            "root": {
                "run": {"runId": str(uuid.UUID(int=1))},
                "job": {"namespace": "n", "name": "dag"},
            },
        }
    }
    shell.monkeypatch.setenv("OPENLINEAGE_CONTEXT", json.dumps(context))
    assert shell.events().of(EGGS)["run"]["facets"]["parent"]["root"]["job"]["name"] == "dag"
    shell.monkeypatch.setenv("OPENLINEAGE_CONTEXT", "{}")
    assert "OPENLINEAGE_CONTEXT" in shell.refused("emit", "--output", "-")


def test_namespaces_and_the_nominal_time_can_be_given(shell: EventShell) -> None:
    events = shell.events(
        "--namespace", "prod", "--dataset-namespace", "duck", "--nominal-time", "2026-11-01T02:00"
    )
    assert {e["job"]["namespace"] for e in events} == {"prod"}
    assert events.of(EGGS)["outputs"][0]["namespace"] == "duck"
    assert events[0]["run"]["facets"]["nominalTime"]["nominalStartTime"] == (
        "2026-11-01T02:00:00.000000Z"
    )


def test_the_profile_is_what_dbt_makes_of_it(shell: EventShell) -> None:
    shell.monkeypatch.setenv("EGGS_DB", "/data/other.duckdb")
    namespaces = {d["namespace"] for e in shell.events() for d in e["inputs"]}
    assert namespaces == {"duckdb:///data/other.duckdb"}


def test_the_profile_that_cannot_be_read(shell: EventShell) -> None:
    output = shell.refused("emit", "--output", "-", "--profiles-dir", "gone")
    assert "dbt cannot read the profile" in output
    assert "--dataset-namespace" in output
    events = shell.events("--profiles-dir", "gone", "--dataset-namespace", "duck")
    assert len(events) > 20


def test_after_dbt_test_there_is_no_column_lineage_and_all_else(shell: EventShell) -> None:
    import eggs_project

    assert "Completed" in eggs_project.build(shell.folder, "test", "--select", "test_type:data")
    events = shell.events()
    test = ended(events, "test.eggs.unique_eggs_egg_id")
    (tested,) = test["inputs"]
    (assertion,) = tested["inputFacets"]["dataQualityAssertions"]["assertions"]
    assert (assertion["column"], assertion["success"]) == ("egg_id", True)


def test_a_command_that_runs_nothing(shell: EventShell) -> None:
    import eggs_project

    eggs_project.build(shell.folder, "compile")
    output = shell.refused("emit", "--output", "-")
    assert "is of `dbt compile`, which runs no node" in output


def test_there_was_no_run(shell: EventShell) -> None:
    (shell.folder / "target" / "run_results.json").unlink()
    output = shell.refused("emit", "--output", "-")
    assert output.startswith("dbt-ripple: target: no run_results.json")
    shutil.rmtree(shell.folder / "target")
    assert "no such folder" in shell.refused("emit", "--output", "-")


def test_the_checker_finds_what_is_wrong(events: Events) -> None:
    event = events.of(HENS)
    schemas.valid(event)
    for break_it in (
        lambda e: e["outputs"][0]["facets"]["columnLineage"]["fields"]["grams"].pop("inputFields"),
        lambda e: e["run"].update(runId="seven"),
        lambda e: e.update(eventTime="today"),
        lambda e: e["job"]["facets"]["sql"].pop("query"),
        lambda e: e["run"]["facets"].update(nominal=e["run"]["facets"]["nominalTime"]),
    ):
        wrong = json.loads(json.dumps(event))
        break_it(wrong)
        with pytest.raises(Exception, match=r"."):
            schemas.valid(wrong)
