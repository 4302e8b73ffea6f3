"""`ripple_assets.yml` on the command line, over a project compiled by dbt 1.11."""

from __future__ import annotations

import json
import subprocess
from datetime import date, timedelta
from pathlib import Path
from typing import Any

import click
import pytest
from cli_shell import Shell
from test_schemas import valid
from two_sides import FROM_RAW, STG, Sides

from dbt_ripple.cli.shell_completion import node_names
from dbt_ripple.graph.target_folder import TargetFolder
from dbt_ripple.session.assets import DEFAULT, with_declared

FILE = "ripple_assets.yml"

SHOP = """\
# Who stands around the shop.
assets:
  - id: api:checkout   # the web shop
    columns: [key, cents]
  - id: airflow:load_orders
    owner: data@shop.example
    tags: [nightly]
    reads: [{node: "api:checkout", columns: [key, cents]}]
    writes:
      - node: raw.orders
        columns: {key: order_id, cents: amount}
  - id: dashboard:sales
    owner: {name: Sales, email: sales@shop.example}
    reads: [{node: stg_orders, columns: [amount]}]
  - id: spark:train
    sql: insert into ml.training select customer_id from stg_orders where amount > 0
"""


@pytest.fixture
def declared(shell: Shell) -> Shell:
    (shell.folder / FILE).write_text(SHOP)
    return shell


def names(tree: str) -> list[str]:
    return [line.strip("└├─│ ") for line in tree.splitlines()]


def test_trace_shows_who_loads_a_source(declared: Shell) -> None:
    assert names(declared("trace", "raw.orders", "-d", "upstream").out) == [
        "TABLE orders",
        "DAG load_orders",
        "API checkout",
    ]
    down = names(declared("trace", "airflow:load_orders").out)
    assert {"TABLE orders", "DBT_MODEL stg_orders", "DASHBOARD sales", "TABLE ml.training"} <= {
        *down
    }


def test_trace_follows_columns_through_jobs(declared: Shell) -> None:
    up = declared("trace", "stg_orders.amount", "-d", "upstream").out
    assert "API checkout.cents" in up
    down = declared("trace", "api:checkout.cents").out
    assert "SPARK_JOB train (rows)  INDIRECT FILTER" in down
    assert "DASHBOARD sales.amount  DIRECT IDENTITY" in down
    document = valid("trace", declared("trace", "api:checkout.cents", "--format", "json").json)
    type_of = {node["unique_id"]: node.get("asset_type") for node in document["nodes"]}
    assert type_of["asset.airflow.load_orders"] == "dag"
    assert type_of[STG] is None


@pytest.mark.parametrize(
    "name",
    [
        "airflow:load_orders",
        "load_orders",
        "dag:load_orders",
        "asset:load_orders",
        "AIRFLOW:LOAD_ORDERS",
    ],
)
def test_an_asset_by_its_names(declared: Shell, name: str) -> None:
    assert declared("trace", name, "--format", "json").json["root"] == "asset.airflow.load_orders"


def test_a_name_of_dbt_comes_before_that_of_an_asset(declared: Shell) -> None:
    (declared.folder / FILE).write_text("assets:\n  - id: topic:stg_orders\n")
    assert declared("trace", "stg_orders", "--format", "json").json["root"] == STG
    assert declared("trace", "table:stg_orders", "--format", "json").json["root"] == STG
    assert (
        declared("trace", "topic:stg_orders", "--format", "json").json["root"].startswith("asset.")
    )


def test_a_name_that_is_nearly_one(declared: Shell) -> None:
    assert "did you mean airflow:load_orders or" in declared.refused("trace", "airflow:lod_orders")


def test_analyze_counts_them(declared: Shell) -> None:
    document = valid("analyze", declared("analyze", "--format", "json").json)
    assert document["assets"] == 4
    assert "4 assets" in declared("analyze").out
    (declared.folder / FILE).unlink()
    without = valid("analyze", declared("analyze", "--format", "json").json)
    assert "assets" not in without
    assert without["edges"] < document["edges"]


def test_impact_names_a_job_that_uses_a_column_only_inside(declared: Shell) -> None:
    done = declared("impact", "stg_orders", "--drop", "amount", "--format", "json")
    by_name = {a["name"]: a for a in valid("impact", done.json)["affected_assets"]}
    assert (by_name["train"]["severity"], by_name["train"]["asset_type"]) == (
        "breaking",
        "spark_job",
    )
    assert by_name["sales"]["owner_email"] == "sales@shop.example"
    assert done.code == 1


def test_impact_of_an_asset(declared: Shell) -> None:
    report = declared("impact", "api:checkout", "--drop", "cents", "--format", "json").json
    severity_of = {a["name"]: a["severity"] for a in report["affected_assets"]}
    assert (
        severity_of["load_orders"]
        == severity_of["stg_orders"]
        == severity_of["sales"]
        == "breaking"
    )
    assert "did you mean cents?" in declared.refused("impact", "api:checkout", "--drop", "cent")


def test_diagnose_goes_up_to_who_loads(declared: Shell) -> None:
    document = valid("diagnose", declared("diagnose", "stg_orders.amount", "--format", "json").json)
    by_id = {step["unique_id"]: step for step in document["steps"]}
    assert by_id["asset.airflow.load_orders"]["owner"] == "data@shop.example"
    assert by_id["asset.api.checkout"]["asset_type"] == "api"


def test_an_incident_names_the_dags_and_their_runs(declared: Shell) -> None:
    document = valid("incident", declared("incident", "stg_orders.amount", "--format", "json").json)
    (job,) = [job for job in document["jobs"] if job["name"] == "load_orders"]
    assert (job["asset_type"], job["status"], job["owner"]) == ("dag", None, "data@shop.example")
    # An exposure below that says it is a DAG; to pause who loads what is above it mends nothing.
    assert document["containment"]["dags"] == ["daily_revenue_report"]
    assert "sales" in [asset["name"] for asset in document["impacted"]]
    events = declared.folder / "events.ndjson"
    events.write_text("".join(f"{json.dumps(ended(*end))}\n" for end in RUNS))
    asked = ("incident", "stg_orders.amount", "--events", "events.ndjson")
    document = valid("incident", declared(*asked, "--format", "json").json)
    (job,) = [job for job in document["jobs"] if job["name"] == "load_orders"]
    assert (job["status"], job["run_id"]) == ("error", RUNS[1][2])
    assert job["last_success"]["invocation_id"] == RUNS[0][2]
    assert job["last_success"]["reported_by"] == "events"
    # Its run failed: that may be the cause.
    first = document["suspects"][0]
    assert (first["name"], first["kind"]) == ("load_orders", "failure")
    assert f"run {RUNS[1][2]}; last well" in declared(*asked).out


RUNS = [
    ("COMPLETE", "2026-11-19T01:00:00Z", "0190a1b2-0000-7000-8000-000000000001"),
    ("FAIL", "2026-11-20T01:00:00Z", "0190a1b2-0000-7000-8000-000000000002"),
]


def test_an_incident_says_what_is_read_and_what_is_affected(shell: Shell) -> None:
    (shell.folder / FILE).write_text(
        "assets:\n  - id: table:scores\n  - id: airflow:score\n"
        "    sql: create table scores as select sum(amount) as total from stg_orders\n"
        "  - id: airflow:publish\n    reads: [{node: 'table:scores', columns: [total]}]\n"
    )
    lines = [line.strip() for line in shell("incident", "stg_orders.amount").out.splitlines()]
    assert "score [dag]  reads amount  (no owner)" in lines  # total is what it writes
    assert "scores [table]  affected: total  (no owner)" in lines
    out = shell("incident", "table:scores.total").out
    assert "publish [dag]  reads total  (no owner)" in out
    assert "DAGs to pause: score, publish" in out


def ended(kind: str, at: str, run: str) -> dict[str, Any]:
    """An event of Airflow: how a run of the DAG ended."""
    job_type = {"integration": "AIRFLOW", "jobType": "DAG", "processingType": "BATCH"}
    return {
        "eventType": kind,
        "eventTime": at,
        "producer": "https://example.com/airflow",
        "schemaURL": "https://openlineage.io/spec/2-0-2/OpenLineage.json#/$defs/RunEvent",
        "run": {"runId": run, "facets": {}},
        "job": {"namespace": "prod", "name": "load_orders", "facets": {"jobType": job_type}},
        "inputs": [],
        "outputs": [],
    }


def test_more_files(declared: Shell) -> None:
    more = declared.folder / "more.yml"
    more.write_text("assets:\n  - id: notebook:look\n    reads: [stg_orders]\n")
    assert "NOTEBOOK look" in declared("trace", "stg_orders", "--assets", "more.yml").out
    assert "NOTEBOOK look" not in declared("trace", "stg_orders").out
    more.write_text("# nothing yet\n")
    done = declared("trace", "stg_orders", "--assets", "more.yml")
    assert (done.code, done.err) == (0, "dbt-ripple: more.yml declares no assets\n")
    assert "no such file" in declared.refused("trace", "stg_orders", "--assets", "gone.yml")


@pytest.mark.parametrize(
    ("line", "place", "message"),
    [
        ("  - id: dag:x\n    reeds: []\n", 18, "unknown key 'reeds'; did you mean reads or"),
        (
            "  - id: dag:x\n    reads: [stg_order]\n",
            18,
            "nothing is called stg_order; did you mean stg_orders",
        ),
        ("\t- id: dag:x\n", 17, "a tab stands where YAML wants spaces; indent by spaces"),
        ("  - id: API:checkout\n", 17, f"API:checkout is declared twice, first at {FILE}:3"),
        ("  - id: dag:x\n    type: dogs\n", 18, "'dogs' is no type of an asset; did you mean dag?"),
    ],
)
def test_a_bad_file_stops_every_command_with_one_line(
    declared: Shell, line: str, place: int, message: str
) -> None:
    (declared.folder / FILE).write_text(SHOP + line)
    for command in (
        ["trace", "stg_orders"],
        ["analyze"],
        ["impact", "stg_orders", "--drop", "amount"],
    ):
        assert declared.refused(*command).startswith(f"dbt-ripple: {FILE}:{place}: {message}")


# --- two sides -------------------------------------------------------------------------------------


@pytest.fixture
def both(sides: Sides) -> Sides:
    for side in ("", "state/"):
        (sides.shell.folder / f"{side}{FILE}").write_text(SHOP)
    return sides


def test_select_lists_who_reads_what_changed(both: Sides) -> None:
    assert both("select", "--format", "json").json["assets"] == []
    both.write_sql(STG, FROM_RAW.replace("amount,", "amount * 2 as amount,"))
    document = valid("select", both("select", "--format", "json").json)
    assert document["assets"] == ["asset.dashboard.sales", "asset.spark.train"]
    assert not [test for test in document["tests"] if "asset" in test["unique_id"]]
    assert "assets: dashboard:sales, spark:train" in both("select").out
    (both.shell.folder / FILE).unlink()
    (both.shell.folder / "state" / FILE).unlink()
    plain = both("select", "--format", "json").json
    assert "assets" not in plain
    assert plain["tests"] == document["tests"]


def test_a_source_counts_where_it_is_declared_otherwise(both: Sides) -> None:
    (both.shell.folder / FILE).write_text(
        SHOP.replace("cents: amount}", "cents: amount}\n    source_ref: v2")
    )
    done = both("select", "--format", "json")
    assert "what the declared assets write to orders changed" in done.err
    assert [t for t in done.json["tests"] if t["reason_code"] != "new_test"]
    assert STG in done.json["models"]


def test_base_without_its_file_is_reported(both: Sides) -> None:
    (both.shell.folder / "state" / FILE).unlink()
    done = both("select", "--format", "json")
    assert done.json["tests"] == []
    assert f"base has no {FILE}: its assets are taken to be head's" in done.err


def test_base_of_a_commit_has_the_assets_of_that_commit(both: Sides) -> None:
    folder = both.shell.folder
    git = ["git", "-C", str(folder), "-c", "user.name=a", "-c", "user.email=a@b.example"]
    for arguments in (["init", "-q"], ["add", FILE], ["commit", "-qm", "first"]):
        subprocess.run([*git, *arguments], check=True)
    (folder / FILE).write_text(SHOP.replace("cents: amount}", "cents: customer_id}"))
    base, head = TargetFolder(folder / "state"), TargetFolder(folder / "target")
    now = with_declared(base, head, folder, DEFAULT, None, "HEAD")
    assert [asset.id for asset in base.declared] == [asset.id for asset in now.declared]
    assert set(now.project.written_otherwise["source.shop.raw.orders"]) == {"amount", "customer_id"}
    (folder / FILE).unlink()
    without = with_declared(base, TargetFolder(folder / "target"), folder, DEFAULT, None, "HEAD")
    assert "order_id" in without.project.written_otherwise["source.shop.raw.orders"]


def test_the_gate_blocks_what_breaks_an_asset(both: Sides) -> None:
    both.write_sql(STG, FROM_RAW.replace("amount, ", ""))
    document = valid("gate", both("gate", "--format", "json").json)
    broken = {f["unique_id"] for f in document["findings"] if f["rule"] == "reader_broken"}
    assert {"asset.dashboard.sales", "asset.spark.train"} <= broken
    assert document["decision"] == "BLOCKED"
    (run,) = both("gate", "--format", "sarif").json["runs"]
    places = {
        (at["artifactLocation"]["uri"], at["region"]["startLine"])
        for result in run["results"]
        for at in (location["physicalLocation"] for location in result.get("locations", ()))
    }
    assert {(FILE, 12), (FILE, 15)} <= places
    assert f"file={FILE},line=12" in both("gate", "--format", "github").out
    assert "dashboard:sales" in both("gate", "--format", "markdown").out


# --- the file is written ---------------------------------------------------------------------------


def test_register_keeps_comments_and_order(declared: Shell) -> None:
    declared(
        "register",
        "dashboard:sales",
        "--upstream",
        "stg_orders",
        "--column",
        "order_id:id",
        "--tag",
        "bi",
    )
    declared("register", "api:stripe", "--owner", "pay@shop.example")
    text = (declared.folder / FILE).read_text()
    assert "# Who stands around the shop." in text
    assert "- id: api:checkout   # the web shop" in text
    today = date.today().isoformat()
    assert text.startswith(SHOP[: SHOP.index("  - id: dashboard")])
    assert text.endswith(
        f"  - id: api:stripe\n    owner: pay@shop.example\n    last_seen: {today}\n"
    )
    assert "&" not in text
    assert "DASHBOARD sales.id" in declared("trace", "stg_orders.order_id").out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["dashboard:x", "--upstream", "stg_order"], "--upstream stg_order: nothing is called stg_order; did you mean stg_orders"),
        (["dag:x", "--downstream", "stg_orders"], f"--downstream stg_orders: stg_orders is {STG}, which dbt builds"),
        (["dag:x", "--downstream", "api:chekout"], "--downstream api:chekout: nothing is called api:chekout; did you mean api:checkout?"),
        (["table:stg_orders"], f"table:stg_orders: table:stg_orders is {STG} of the dbt project"),
        (["x"], "x: 'x' is no id of an asset"),
        (["dashbord:x"], "dashbord:x: 'dashbord' says no type; did you mean dashboard"),
        (["x:y", "--type", "tabel"], "--type tabel: 'tabel' is no type of an asset; did you mean table?"),
        (["dashboard:x", "--upstream", "stg_orders", "--column", "amont"], "dashboard:x: reads stg_orders.amont, and there is no such column; did you mean amount"),
        (["dag:x", "--column", "a"], "--column says what is read of one --upstream"),
    ],
)  # fmt: skip
def test_a_bad_registration_is_refused_and_the_file_left_alone(
    declared: Shell, arguments: list[str], message: str
) -> None:
    refused = declared.refused("register", *arguments)
    assert refused.removeprefix("dbt-ripple: ").startswith(message)
    assert (declared.folder / FILE).read_text() == SHOP


def test_a_pipeline(shell: Shell) -> None:
    done = shell("register", "api:crm", "raw.orders", "table:clean", "model:churn", "--pipeline", "p", "--format", "json")  # fmt: skip
    document = valid("register", done.json)
    assert document["changed"] == dict.fromkeys(("api:crm", "table:clean", "model:churn"), "added")
    up = names(shell("trace", "model:churn", "-d", "upstream").out)
    assert up == ["ML_MODEL churn", "TABLE clean", "TABLE orders", "API crm"]
    assert "both of dbt" in shell.refused("register", "api:crm", "raw.orders", "stg_orders")


def test_capture_follows_the_sql_of_a_job(shell: Shell) -> None:
    job = shell.folder / "job.sql"
    job.write_text(
        "insert into clean\nselect order_id, amount / 100 as euros\nfrom stg_orders where amount > 0\n"
    )
    document = valid("capture", shell("capture", "job.sql", "--format", "json").json)
    assert (document["id"], document["source_tables"], document["target_tables"]) == (
        "job:clean",
        ["stg_orders"],
        ["clean"],
    )
    by_name = {c["column"]: [s["column"] for s in c["from"]] for c in document["columns"]}
    assert (by_name["order_id"], by_name["euros"]) == (["order_id"], ["amount"])
    text = (shell.folder / FILE).read_text()
    assert "    sql: |\n      insert into clean\n" in text
    assert "    source_ref: job.sql\n" in text
    assert "JOB clean.euros" in shell("trace", "stg_orders.amount").out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--sql", "selec x", "--id", "job:x"], "the SQL: it is not a query"),
        (["--sql", "select ("], "the SQL: cannot parse"),
        (["--sql", "select 1 as a"], "--id: the SQL writes to nothing it could be named after; give an id"),
        (["--sql", "insert into x select nowhere from stg_orders"], "job:x: reads nowhere, and there is no such column"),
        (["--sql", "select 1", "--dialect", "sparc"], "--dialect: 'sparc' is no dialect of SQL; did you mean spark"),
        (["gone.sql"], "gone.sql: no such file"),
        ([], "give the SQL by FILE or by --sql"),
    ],
)  # fmt: skip
def test_what_cannot_be_captured(shell: Shell, arguments: list[str], message: str) -> None:
    assert shell.refused("capture", *arguments).removeprefix("dbt-ripple: ").startswith(message)
    assert not (shell.folder / FILE).exists()


def test_prune_retires_what_nothing_has_shown(declared: Shell) -> None:
    old, new = (date.today() - timedelta(days=n) for n in (40, 3))
    text = SHOP.replace(
        "    columns: [key, cents]\n", f"    columns: [key, cents]\n    last_seen: {old}\n"
    )
    text = text.replace("    tags: [nightly]\n", f"    tags: [nightly]\n    last_seen: {new}\n")
    text = text.replace(
        "    owner: {name: Sales", f"    last_seen: {old}\n    owner: {{name: Sales"
    )
    file = declared.folder / FILE
    file.write_text(text)
    dry = declared("prune", "--days", "30", "--dry-run", "--format", "json")
    assert valid("prune", dry.json)["changed"] == {"dashboard:sales": "retired"}
    assert (
        "api:checkout is kept: airflow:load_orders, which was shown, reads or writes it" in dry.err
    )
    assert file.read_text() == text
    declared("prune", "--days", "30")
    assert f"retired: {date.today()}" in file.read_text()
    assert "sales" not in declared("trace", "stg_orders").out
    assert "dashboard:sales is retired" in declared.refused("trace", "dashboard:sales")
    assert "nothing to do" in declared("prune", "--days", "30").out
    assert "back: dashboard:sales" in declared("register", "dashboard:sales").out
    assert "DASHBOARD sales" in declared("trace", "stg_orders").out


def test_a_file_is_written_in_one_go(declared: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    file = declared.folder / FILE
    file.chmod(0o640)
    real = declared.folder / "elsewhere.yml"
    file.rename(real)
    file.symlink_to(real)
    declared("register", "api:stripe")
    assert file.is_symlink()
    assert real.stat().st_mode & 0o777 == 0o640
    assert "api:stripe" in real.read_text()

    def fail(self: Path, target: Path) -> Path:
        raise OSError(28, "No space left on device")

    before = real.read_text()
    monkeypatch.setattr(Path, "replace", fail)
    assert "cannot be written: No space left on device" in declared.refused("register", "api:other")
    assert real.read_text() == before
    assert [p.name for p in declared.folder.iterdir() if p.name.startswith(".")] == []


def test_completion_knows_them(declared: Shell) -> None:
    def completed(typed: str) -> list[str]:
        context = click.Context(click.Command("trace"))
        context.params = {"project_dir": declared.folder, "target_path": None}
        return node_names(context, click.Argument(["node"]), typed)

    assert completed("airflow:") == ["airflow:load_orders"]
    assert completed("api:checkout.") == ["api:checkout.cents", "api:checkout.key"]
    assert "stg_orders" in completed("stg")
    (declared.folder / FILE).write_text("assets: [")
    assert completed("stg_o") == ["stg_orders"]


def test_a_job_and_the_table_it_writes_are_told_apart(shell: Shell) -> None:
    (shell.folder / FILE).write_text("assets: []\n")
    for sql in (
        "create table orders_clean as select order_id, amount from stg_orders",
        "create table daily as select sum(amount) as total from orders_clean",
    ):
        assert shell("capture", "--sql", sql).code == 0
    for command in (
        ("impact", "orders_clean", "--drop", "amount"),
        ("trace", "orders_clean.amount"),
    ):
        error = shell.refused(*command)
        assert "2 nodes have this name: job:orders_clean, table:orders_clean" in error
    # Whichever is meant: what is listed as breaking decides, and a column that only its readers name is one.
    for name in ("job:orders_clean", "table:orders_clean"):
        done = shell("impact", name, "--drop", "amount", "--format", "json")
        severities = {a["severity"] for a in done.json["affected_assets"]}
        assert "breaking" in severities
        assert (done.code, done.json["decision"]) == (1, "BLOCKED"), name
    assert shell("impact", "table:orders_clean", "--drop", "order_id").code == 0


def test_a_column_of_which_only_readers_know_can_be_asked_about(shell: Shell) -> None:
    (shell.folder / FILE).write_text(
        "assets:\n  - id: table:customers_clean\n  - id: job:churn\n"
        "    sql: select customer_id, count(*) as n from customers_clean group by 1\n"
    )
    done = shell("impact", "table:customers_clean", "--rename", "customer_id:id")
    assert (done.code, done.out.split()[0]) == (1, "BLOCKED")
    assert "has no column 'country'" in shell.refused(
        "impact", "table:customers_clean", "--drop", "country"
    )
