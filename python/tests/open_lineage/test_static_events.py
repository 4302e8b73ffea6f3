"""A project's lineage without runs."""

from __future__ import annotations

import eggs_project
import pytest
from event_shell import EventShell


def test_each_relation_and_each_job(shell: EventShell) -> None:
    (shell.folder / "target" / "run_results.json").unlink()
    eggs_project.build(shell.folder, "compile")
    events = shell.events("--static")
    datasets = [e["dataset"]["name"] for e in events if "dataset" in e]
    assert sorted(datasets) == [
        f"eggs.dev.{name}" for name in ("eggs", "hens", "prices", "raw_eggs", "sold", "sold_later")
    ]
    jobs = [e["job"]["name"] for e in events if "job" in e]
    assert "model.eggs.weights" not in jobs  # ephemeral
    assert {"seed.eggs.raw_eggs", "model.eggs.hens", "exposure.eggs.scales"} <= set(jobs)
    assert not any("run" in event or "eventType" in event for event in events)
    assert shell.events("--static") == events


def test_jobs_are_called_as_marquez_calls_those_of_runs(
    shell: EventShell, monkeypatch: pytest.MonkeyPatch
) -> None:
    runs = shell.events()
    eggs_project.build(shell.folder, "compile")

    def jobs(*arguments: str) -> set[str]:
        return {e["job"]["name"] for e in shell.events("--static", *arguments) if "job" in e}

    # Marquez puts the name of the parent's job before that of a run with a parent.
    (event,) = [e for e in runs if e["job"]["name"] == "model.eggs.hens" and e["outputs"]][-1:]
    parent = event["run"]["facets"]["parent"]["job"]["name"]
    assert f"{parent}.model.eggs.hens" == "dbt-run-eggs.model.eggs.hens"
    below = jobs("--marquez-names")
    assert {f"{parent}.model.eggs.hens", f"{parent}.seed.eggs.raw_eggs"} <= below
    assert "exposure.eggs.scales" in below  # dbt runs none
    assert jobs() == {name.removeprefix(f"{parent}.") for name in below}
    monkeypatch.setenv("OPENLINEAGE_DBT_JOB_NAME", "nightly")
    assert "nightly.model.eggs.hens" in jobs("--marquez-names")
    assert "--marquez-names is of --static" in shell.refused("emit", "--marquez-names")


def test_a_dataset_says_what_it_derives_from(shell: EventShell) -> None:
    eggs_project.build(shell.folder, "compile")
    events = shell.events("--static")
    facets = events.dataset("eggs.dev.hens")["facets"]
    (grams,) = facets["lineage"]["fields"]["grams"]["inputs"]
    assert (grams["name"], grams["field"]) == ("eggs.dev.eggs", "grams")
    assert "columnLineage" in facets
    assert "lineage" not in events.dataset("eggs.dev.prices")["facets"]
    job = events.of("model.eggs.hens", None)
    assert job["outputs"][0]["facets"]["columnLineage"] == facets["columnLineage"]


def test_an_exposure_is_a_job_that_reads(shell: EventShell) -> None:
    eggs_project.build(shell.folder, "compile")
    event = shell.events("--static").of("exposure.eggs.scales", None)
    assert [i["name"] for i in event["inputs"]] == ["eggs.dev.hens"]
    assert event["outputs"] == []
    (entry,) = event["job"]["facets"]["lineage"]["entries"]
    assert entry["type"] == "JOB"
    assert [i.get("field") for i in entry["inputs"]] == [None, "grams"]


def test_what_is_not_compiled(shell: EventShell) -> None:
    eggs_project.build(shell.folder, "parse")
    assert "dbt has parsed this project but not compiled it" in shell.refused(
        "emit", "--static", "--output", "-"
    )


ASSETS = """
assets:
  - id: airflow:load_prices
    source_ref: dags/load_prices.py
    owner: farm team
    reads:
      - node: api:market
        columns: [{from: cents, to: price, transformation: cents / 100}]
    writes:
      - node: market.prices
        columns: [{from: price, to: price}]
  - id: api:market
    columns: [cents]
  - id: dashboard:eggs
    reads: [{node: eggs, columns: [grams]}]
  - id: file:lake
    source_ref: s3://lake/silver/eggs
"""


def test_declared_assets(shell: EventShell) -> None:
    eggs_project.build(shell.folder, "compile")
    (shell.folder / "ripple_assets.yml").write_text(ASSETS)
    events = shell.events("--static")
    datasets = {(e["dataset"]["namespace"], e["dataset"]["name"]) for e in events if "dataset" in e}
    assert {("api", "market"), ("s3://lake", "silver/eggs")} <= datasets
    load = events.of("airflow:load_prices", None)
    assert load["job"]["facets"]["jobType"]["jobType"] == "DAG"
    assert [(i["namespace"], i["name"]) for i in load["inputs"]] == [("api", "market")]
    assert [o["name"] for o in load["outputs"]] == ["eggs.dev.prices"]
    # The job is no dataset: the price comes from the API's cents.
    prices = events.dataset("eggs.dev.prices")["facets"]["columnLineage"]["fields"]["price"]
    (cents,) = prices["inputFields"]
    assert (cents["name"], cents["field"]) == ("market", "cents")
    dashboard = events.of("dashboard:eggs", None)
    assert ([i["name"] for i in dashboard["inputs"]], dashboard["outputs"]) == (
        ["eggs.dev.eggs"],
        [],
    )
    (entry,) = dashboard["job"]["facets"]["lineage"]["entries"]
    assert (entry["type"], entry["inputs"][-1]["field"]) == ("JOB", "grams")
