"""What is exported to DataHub, read by its own offline checker and its own classes."""

from __future__ import annotations

import importlib.util
import json
import os
import re
import subprocess
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import eggs_project
import msgspec
import pytest
from event_shell import EventShell
from test_static_events import ASSETS

from dbt_ripple.artifacts import read_project
from dbt_ripple.datahub.dataset_urns import PLATFORMS, DatasetIds

DUCK = "urn:li:dataset:(urn:li:dataPlatform:duckdb,eggs.dev.{},PROD)"


def field(relation: str, column: str) -> str:
    return f"urn:li:schemaField:({DUCK.format(relation)},{column})"


def checked(file: Path) -> subprocess.CompletedProcess[str]:
    """What DataHub's own checker, which needs no server, says of a file."""
    return subprocess.run(
        [sys.executable, "-m", "datahub", "check", "metadata-file", str(file)],
        capture_output=True,
        text=True,
        check=False,
        env=os.environ | {"DATAHUB_TELEMETRY_ENABLED": "false"},
    )


def aspects(proposals: list[dict[str, Any]], urn: str) -> dict[str, Any]:
    """The aspects of an entity, each proposed once."""
    of_entity = [p for p in proposals if p["entityUrn"] == urn]
    names = [p["aspectName"] for p in of_entity]
    assert len(names) == len(set(names)), names
    return {p["aspectName"]: p["aspect"]["json"] for p in of_entity}


def patched(patch: Any) -> dict[str, Any]:
    """Path and value of each addition of a patch."""
    operations = patch["patch"] if isinstance(patch, dict) else patch
    assert {one["op"] for one in operations} == {"add"}
    return {one["path"]: one["value"] for one in operations}


@pytest.fixture
def proposals(shell: EventShell) -> list[dict[str, Any]]:
    eggs_project.build(shell.folder, "docs", "generate", "--no-compile")
    return exported(shell)


def exported(shell: EventShell, *arguments: str) -> list[dict[str, Any]]:
    code, out, err = shell("datahub", *arguments, "--output", "-")
    assert code == 0, err
    document: list[dict[str, Any]] = json.loads(out)
    return document


def test_datahubs_checker_accepts_it(shell: EventShell) -> None:
    eggs_project.build(shell.folder, "docs", "generate", "--no-compile")
    (shell.folder / "ripple_assets.yml").write_text(ASSETS)
    code, out, _ = shell("datahub", "--platform-instance", "farm", "--output", "metadata.json")
    assert code == 0
    file = shell.folder / "metadata.json"
    number = len(json.loads(file.read_text()))
    assert out == f"wrote {number} proposals to metadata.json\n"
    check = checked(file)
    assert check.returncode == 0, check.stderr
    assert f"{number} MCEs found - all valid" in check.stdout


def test_datahubs_checker_refuses_what_is_wrong(shell: EventShell) -> None:
    proposals = exported(shell)
    lineage = next(p for p in proposals if p["aspectName"] == "upstreamLineage")
    lineage["aspect"]["json"]["upstreams"][0]["type"] = "NO SUCH TYPE"
    Path("wrong.json").write_text(json.dumps(proposals))
    assert checked(Path("wrong.json")).returncode != 0


def test_every_aspect_is_valid_by_the_clients_classes(proposals: list[dict[str, Any]]) -> None:
    from datahub.emitter.mcp import MetadataChangeProposalWrapper
    from datahub.metadata.urns import Urn

    whole = [p for p in proposals if p["changeType"] == "UPSERT"]
    for proposal in whole:
        made = MetadataChangeProposalWrapper.from_obj(proposal)
        assert isinstance(made, MetadataChangeProposalWrapper), proposal
        assert made.validate(), proposal
        assert Urn.from_string(proposal["entityUrn"]).entity_type == proposal["entityType"]
    patches = [p for p in proposals if p["changeType"] == "PATCH"]
    assert {p["aspectName"] for p in patches} == {
        "datasetProperties",
        "editableSchemaMetadata",
        "globalTags",
        "ownership",
    }
    assert len(whole) + len(patches) == len(proposals)


def test_column_lineage(proposals: list[dict[str, Any]]) -> None:
    lineage = aspects(proposals, DUCK.format("hens"))["upstreamLineage"]
    (upstream,) = lineage["upstreams"]
    assert upstream["dataset"] == DUCK.format("eggs")  # through the ephemeral model
    assert upstream["type"] == "TRANSFORMED"
    assert upstream["properties"] == {"rows_depend_on": "hen (GROUP_BY)"}
    fine = {one["downstreams"][0]: one for one in lineage["fineGrainedLineages"]}
    grams = fine[field("hens", "grams")]
    assert (grams["upstreamType"], grams["upstreams"]) == ("FIELD_SET", [field("eggs", "grams")])
    assert grams["transformOperation"].startswith("DIRECT AGGREGATION: SUM(")
    assert grams["confidenceScore"] == 1.0
    assert "(masking)" in fine[field("hens", "hidden")]["transformOperation"]
    rows = fine[field("hens", "eggs")]  # count(*)
    assert (rows["upstreamType"], rows["upstreams"]) == ("DATASET", [DUCK.format("eggs")])


def test_a_model_that_could_not_be_followed_has_no_fine_grained_lineage(shell: EventShell) -> None:
    manifest = shell.folder / "target" / "manifest.json"
    written = json.loads(manifest.read_text())
    written["nodes"]["model.eggs.sold"]["compiled_code"] = "select from where"
    manifest.write_text(json.dumps(written))
    lineage = aspects(exported(shell), DUCK.format("sold"))["upstreamLineage"]
    parents = [upstream["dataset"] for upstream in lineage["upstreams"]]
    assert parents == [DUCK.format("eggs"), DUCK.format("prices")]
    assert "fineGrainedLineages" not in lineage


def test_what_a_dataset_is(proposals: list[dict[str, Any]]) -> None:
    eggs = aspects(proposals, DUCK.format("eggs"))
    fields = {one["fieldPath"]: one for one in eggs["schemaMetadata"]["fields"]}
    assert list(fields) == ["egg_id", "hen", "grams", "email"]
    assert list(fields["hen"]["type"]["type"]) == ["com.linkedin.schema.StringType"]
    assert list(fields["grams"]["type"]["type"]) == ["com.linkedin.schema.NumberType"]
    assert fields["egg_id"]["description"] == "The number on the egg."
    properties = patched(eggs["datasetProperties"])
    assert properties["/description"] == "One row for each egg."
    assert properties["/customProperties/dbt_unique_id"] == "model.eggs.eggs"
    assert eggs["status"] == {"removed": False}
    assert eggs["subTypes"] == {"typeNames": ["Table", "Model"]}
    assert aspects(proposals, DUCK.format("raw_eggs"))["subTypes"]["typeNames"] == ["Table", "Seed"]
    # Whether a source is a table or a view is known to the warehouse's own ingestion.
    assert "subTypes" not in aspects(proposals, DUCK.format("prices"))


def test_owners_and_tags_are_added_to_those_that_are_there(proposals: list[dict[str, Any]]) -> None:
    eggs = aspects(proposals, DUCK.format("eggs"))
    (owner,) = patched(eggs["ownership"]).values()
    assert owner == {"owner": "urn:li:corpuser:farm@eggs.org", "type": "TECHNICAL_OWNER"}
    assert [tag["tag"] for tag in patched(eggs["globalTags"]).values()] == [
        "urn:li:tag:contract_version:3",
        "urn:li:tag:criticality:tier1",
        "urn:li:tag:domain:farm",
        "urn:li:tag:dbt:nightly",
    ]
    assert patched(eggs["editableSchemaMetadata"]) == {
        "/editableSchemaFieldInfo/email/globalTags/tags/urn:li:tag:pii:email": {
            "tag": "urn:li:tag:pii:email"
        }
    }
    keys = [p["entityUrn"] for p in proposals if p["aspectName"] == "tagKey"]
    assert "urn:li:tag:pii:email" in keys
    assert len(keys) == len(set(keys)) == 5


def test_names_that_are_hostile(shell: EventShell) -> None:
    manifest = shell.folder / "target" / "manifest.json"
    written = json.loads(manifest.read_text())
    node = written["nodes"]["model.eggs.eggs"]
    node["tags"] = ["", "a,b(c)", "a/b~c", "\u00e9"]
    node["relation_name"] = '"eggs"."dev"."e,g(g)s"'
    node["columns"]["email"]["name"] = "e,mail)"
    manifest.write_text(json.dumps(written))
    proposals = exported(shell)
    tags = aspects(proposals, DUCK.format("e%2Cg%28g%29s"))["globalTags"]
    assert {tag["tag"] for tag in patched(tags).values()} >= {
        "urn:li:tag:dbt:a%2Cb%28c%29",
        "urn:li:tag:dbt:a/b~c",
        "urn:li:tag:dbt:\u00e9",
    }
    assert "urn:li:tag:dbt:" not in {p["entityUrn"] for p in proposals}
    Path("metadata.json").write_text(json.dumps(proposals))
    check = checked(Path("metadata.json"))
    assert check.returncode == 0, check.stderr


def test_tests_and_what_they_found(proposals: list[dict[str, Any]]) -> None:
    info = {
        p["aspect"]["json"]["customProperties"]["dbt_test_name"]: (
            p["entityUrn"],
            p["aspect"]["json"],
        )
        for p in proposals
        if p["aspectName"] == "assertionInfo"
    }
    runs = {
        p["entityUrn"]: p["aspect"]["json"]
        for p in proposals
        if p["aspectName"] == "assertionRunEvent"
    }
    assert len(info) == 7  # a unit test is about its own fixtures
    urn, unique = info["unique_eggs_egg_id"]
    about = unique["datasetAssertion"]
    assert about["fields"] == [field("eggs", "egg_id")]
    assert (about["operator"], about["aggregation"]) == ("EQUAL_TO", "UNIQUE_PROPOTION")
    assert runs[urn]["result"]["type"] == "SUCCESS"
    assert runs[urn]["asserteeUrn"] == about["dataset"] == DUCK.format("eggs")
    urn, values = info["accepted_values_eggs_grams__False__55__60"]
    assert values["datasetAssertion"]["parameters"]["value"]["value"] == "[55, 60]"
    assert runs[urn]["result"]["type"] == "FAILURE"  # it only warns
    assert runs[urn]["result"]["nativeResults"]["status"] == "warn"
    assert runs[urn]["result"]["unexpectedCount"] == 1
    urn, foreign = info["relationships_hens_hen__hen__ref_eggs_"]
    assert foreign["datasetAssertion"]["dataset"] == DUCK.format("hens")
    assert foreign["datasetAssertion"]["operator"] == "_NATIVE_"
    _, singular = info["no_heavy_eggs"]
    assert singular["datasetAssertion"]["scope"] == "DATASET_ROWS"
    assert singular["datasetAssertion"]["fields"] == [
        field("eggs", "egg_id"),
        field("eggs", "grams"),
    ]
    (invocation,) = {run["runId"] for run in runs.values()}
    results = json.loads(Path("target/run_results.json").read_text())
    assert invocation == results["metadata"]["invocation_id"]


def test_a_test_that_could_not_be_executed(shell: EventShell) -> None:
    file = shell.folder / "target" / "run_results.json"
    written = json.loads(file.read_text())
    for result in written["results"]:
        if result["unique_id"].startswith("test.eggs.unique_eggs"):
            result |= {"status": "error", "failures": None, "message": "no such table"}
    file.write_text(json.dumps(written))
    (result,) = (
        p["aspect"]["json"]["result"]
        for p in exported(shell)
        if p["aspectName"] == "assertionRunEvent"
        and p["aspect"]["json"]["result"]["type"] == "ERROR"
    )
    assert result["error"]["properties"] == {"message": "no such table"}


def test_an_exposure_is_a_dashboard(proposals: list[dict[str, Any]]) -> None:
    aspects_of_dashboard = aspects(proposals, "urn:li:dashboard:(dbt,exposure.eggs.scales)")
    assert aspects_of_dashboard["dashboardInfo"]["datasets"] == [DUCK.format("hens")]
    assert aspects_of_dashboard["inputFields"]["fields"] == [
        {"schemaFieldUrn": field("hens", "grams")}
    ]
    assert aspects_of_dashboard["subTypes"] == {"typeNames": ["Dashboard"]}
    (owner,) = patched(aspects_of_dashboard["ownership"]).values()
    assert owner["owner"] == "urn:li:corpGroup:farm team"


def test_declared_assets(shell: EventShell) -> None:
    (shell.folder / "ripple_assets.yml").write_text(ASSETS)
    proposals = exported(shell)
    api = "urn:li:dataset:(urn:li:dataPlatform:api,market,PROD)"
    lineage = aspects(proposals, DUCK.format("prices"))["upstreamLineage"]
    assert [one["dataset"] for one in lineage["upstreams"]] == [api]  # through the DAG
    (price,) = lineage["fineGrainedLineages"]
    assert price["upstreams"] == [f"urn:li:schemaField:({api},cents)"]
    assert aspects(proposals, "urn:li:dataset:(urn:li:dataPlatform:s3,lake/silver/eggs,PROD)")
    dashboard = aspects(proposals, "urn:li:dashboard:(dashboard,eggs)")
    assert dashboard["inputFields"]["fields"] == [{"schemaFieldUrn": field("eggs", "grams")}]


def test_a_schema_that_is_not_known_in_full_is_left_out(shell: EventShell) -> None:
    code, out, err = shell("datahub", "--output", "-")
    assert code == 0
    assert "schemaMetadata" not in {p["aspectName"] for p in json.loads(out)}
    assert "the schemas of 6 relations are left out" in err
    assert "`dbt docs generate --no-compile`" in err


def test_the_instance_and_the_environment(shell: EventShell) -> None:
    proposals = exported(shell, "--platform-instance", "farm", "--env", "dev")
    urn = "urn:li:dataset:(urn:li:dataPlatform:duckdb,farm.eggs.dev.eggs,DEV)"
    instance = aspects(proposals, urn)["dataPlatformInstance"]["instance"]
    assert instance == "urn:li:dataPlatformInstance:(urn:li:dataPlatform:duckdb,farm)"


def test_an_environment_that_datahub_does_not_have(shell: EventShell) -> None:
    output = shell.refused("datahub", "--env", "live", "--output", "-")
    assert "PROD" in output
    assert "not live" in output


def test_it_is_the_same_twice(shell: EventShell) -> None:
    assert exported(shell) == exported(shell)


@pytest.mark.parametrize(
    ("native", "platform", "expected"),
    [
        ("timestamp", "databricks", "TimeType"),
        ("TIMESTAMP", "duckdb", "TimeType"),
        ("timestamp without time zone", "postgres", "TimeType"),
        ("TIMESTAMP_NTZ(9)", "snowflake", "TimeType"),
        ("timestamp", "mssql", "BytesType"),
        ("array<string>", "hive", "ArrayType"),
        ("struct<a:int>", "hive", "RecordType"),
        ("NUMBER(38,0)", "snowflake", "NumberType"),
        ("character varying(20)", "postgres", "StringType"),
        ("decimal(18,2)", "databricks", "NumberType"),
        ("no_such_type", "postgres", "NullType"),
    ],
)
def test_types(native: str, platform: str, expected: str) -> None:
    from dbt_ripple.datahub.proposals import field_type

    assert type(field_type(native, platform).type).__name__ == f"{expected}Class"


# --- names -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("adapter", "relation", "expected"),
    [
        ("snowflake", 'EGGS.DEV."eggs"', ("snowflake", "eggs.dev.eggs")),
        ("postgres", '"eggs"."dev"."Eggs"', ("postgres", "eggs.dev.Eggs")),
        ("bigquery", "`farm-1`.`dev`.`eggs`", ("bigquery", "farm-1.dev.eggs")),
        ("databricks", "`eggs`.`dev`.`eggs`", ("databricks", "eggs.dev.eggs")),
        ("spark", "dev.eggs", ("hive", "dev.eggs")),
        ("athena", '"awsdatacatalog"."dev"."eggs"', ("athena", "dev.eggs")),
        ("glue", "dev.eggs", ("glue", "dev.eggs")),
        ("sqlserver", '"eggs"."dev"."eggs"', ("mssql", "eggs.dev.eggs")),
        ("oracle", "dev.eggs", ("oracle", "DEV.EGGS")),
    ],
)
def test_names_are_those_of_datahubs_sources(
    built: Path, adapter: str, relation: str, expected: tuple[str, str]
) -> None:
    project = of_adapter(built, adapter, relation)
    dataset = DatasetIds(project).of("model.eggs.eggs")
    assert dataset is not None
    assert (dataset.platform, dataset.name) == expected
    assert dataset == DatasetIds(project, expected[0]).of("model.eggs.eggs")


def test_the_table_of_platforms_in_the_docs() -> None:
    page = Path(__file__).parents[3] / "docs" / "datahub.md"
    rows = [line.split("|") for line in page.read_text("utf-8").splitlines() if "| `" in line]
    told = {
        adapter.strip(" `"): row[2].strip(" `")
        for row in rows
        if len(row) == 5
        for adapter in row[1].split(",")
    }
    assert told == PLATFORMS


def of_adapter(built: Path, adapter: str, relation: str) -> Any:
    project = read_project(built / "target")
    model = project.nodes["model.eggs.eggs"]
    node = msgspec.structs.replace(model, relation_name=relation)
    metadata = msgspec.structs.replace(project.metadata, adapter_type=adapter)
    return project.having(metadata=metadata, nodes={**project.nodes, node.unique_id: node})


def test_lower_case_is_said_as_in_a_recipe(built: Path) -> None:
    project = of_adapter(built, "snowflake", "EGGS.DEV.EGGS")
    kept = DatasetIds(project, lowercase=False).of("model.eggs.eggs")
    assert kept is not None
    assert kept.name == "EGGS.DEV.EGGS"


def test_an_adapter_without_a_platform(shell: EventShell) -> None:
    manifest = shell.folder / "target" / "manifest.json"
    manifest.write_text(
        manifest.read_text().replace('"adapter_type": "duckdb"', '"adapter_type": "fabric"')
    )
    output = shell.refused("datahub", "--output", "-")
    assert "platform of the adapter fabric is not known; give it by --platform" in output
    proposals = exported(shell, "--platform", "mssql")
    assert any("dataPlatform:mssql,eggs.dev.eggs" in p["entityUrn"] for p in proposals)


# --- where it goes -----------------------------------------------------------------------------


class Server:
    """A stand-in for DataHub's server: it says what it can, and keeps what it is sent."""

    def __init__(self) -> None:
        self.taken: list[dict[str, Any]] = []
        self.tokens: set[str | None] = set()
        self.status = 200
        server = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                self.answer(200, {"noCode": "true", "statefulIngestionCapable": True})

            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                server.tokens.add(self.headers.get("Authorization"))
                if server.status == 200:
                    server.taken += body.get("proposals") or [body["proposal"]]
                self.answer(server.status, {})

            def answer(self, status: int, document: dict[str, Any]) -> None:
                text = json.dumps(document).encode()
                self.send_response(status)
                self.send_header("Content-Length", str(len(text)))
                self.end_headers()
                self.wfile.write(text)

            def log_message(self, *_: object) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_port}"
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    for name in [name for name in os.environ if name.startswith("DATAHUB_")]:
        monkeypatch.delenv(name)
    running = Server()
    yield running
    running.close()


@pytest.mark.parametrize("by", ["option", "variable"])
def test_by_rest(shell: EventShell, server: Server, by: str) -> None:
    expected = exported(shell)
    shell.monkeypatch.setenv("DATAHUB_GMS_TOKEN", "token")
    arguments = ["--server", server.url]
    if by == "variable":
        shell.monkeypatch.setenv("DATAHUB_GMS_URL", server.url)
        arguments = []
    code, out, err = shell("datahub", *arguments)
    assert code == 0, err
    assert out == f"sent {len(expected)} proposals to {server.url}\n"
    keys = [(p["entityUrn"], p["aspectName"], p["changeType"]) for p in expected]
    sent = [(p["entityUrn"], p["aspectName"], p["changeType"]) for p in server.taken]
    assert sent == keys
    assert server.tokens == {"Bearer token"}


def test_a_server_that_refuses(shell: EventShell, server: Server) -> None:
    eggs_project.build(shell.folder, "docs", "generate", "--no-compile")
    server.status = 422
    output = shell.refused("datahub", "--server", server.url)
    assert "metadata could not be sent" in output


def test_no_server(shell: EventShell, server: Server) -> None:
    shell.monkeypatch.setattr(
        "datahub.cli.config_utils.DATAHUB_CONFIG_PATH", str(shell.folder / "none")
    )
    assert "no DataHub server is configured; give --server URL" in shell.refused("datahub")
    output = shell.refused("datahub", "--server", server.url, "--output", "x.json")
    assert "give one of them" in output


def test_a_file_that_cannot_be_written(shell: EventShell) -> None:
    output = shell.refused("datahub", "--output", "no/such/folder.json")
    assert "--output no/such/folder.json: cannot be written" in output


def test_without_the_client(shell: EventShell) -> None:
    find_spec = importlib.util.find_spec
    shell.monkeypatch.setattr(
        importlib.util,
        "find_spec",
        lambda name, *more: None if name.startswith("datahub") else find_spec(name, *more),
    )
    output = shell.refused("datahub", "--output", "-")
    assert "acryl-datahub is not installed in this Python" in output
    assert re.search(r'run `pip install "acryl-datahub\S*>=1\.7\S*"`', output)
