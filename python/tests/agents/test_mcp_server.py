"""`dbt-ripple mcp` as clients of the SDK see it, over stdio and over HTTP, on a project of integration_tests."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from agent_clients import TOKEN, Ask

from dbt_ripple.mcp.budget import CHARACTERS
from dbt_ripple.mcp.tools import TOOLS

pytestmark = pytest.mark.slow

REPOSITORY = Path(__file__).parents[3]
CONTRACT = Path(__file__).with_name("contract.json")
CALLS: dict[str, dict[str, Any]] = {
    "search": {"text": "revenue"},
    "node": {"name": "revenue_daily"},
    "trace": {"name": "order_items.qty"},
    "impact": {"name": "fx_rates", "rename": {"rate": "usd_rate"}},
    "select_tests": {},
    "explain": {"name": "customers_clean"},
    "gate": {},
    "diagnose": {"name": "revenue_daily.total_usd"},
    "check_sql": {
        "name": "revenue_daily",
        "sql": "select rate_on as revenue_on, 2.0 as total from {{ ref('stg_fx_rates') }}",
    },
    "register": {"flows": [{"source": "api:bank", "target": "table:rates"}], "dry_run": True},
}


@pytest.fixture(params=["over_stdio", "over_http"])
def ask(request: pytest.FixtureRequest) -> Ask:
    return request.getfixturevalue(request.param)


def test_each_tool_answers(ask: Ask) -> None:
    async def questions(client: Any) -> tuple[Any, dict[str, Any], dict[str, Any]]:
        tools = (await client.list_tools()).tools
        schemas = {
            name: (await client.read_resource(f"ripple://schema/{name}")).contents[0]
            for name in CALLS
        }
        answers = {name: await client.call_tool(name, given) for name, given in CALLS.items()}
        return tools, schemas, answers

    tools, schemas, answers = ask(questions)
    assert [tool.name for tool in tools] == list(TOOLS) and len(tools) <= 10
    for tool in tools:
        answer = answers[tool.name]
        assert not answer.is_error, answer.content
        values, (content,) = answer.structured_content, answer.content
        assert len(schemas[tool.name].text) < CHARACTERS
        for schema in (tool.output_schema, json.loads(schemas[tool.name].text)):
            jsonschema.Draft202012Validator(schema).validate(values)
            assert set(values) == set(schema["properties"])
        assert json.loads(content.text) == values
        assert (
            len(content.text) + len(json.dumps(values, ensure_ascii=False, separators=(",", ":")))
            <= CHARACTERS
        )
        assert re.fullmatch(r"\S.*[.]", values["verdict"]), values["verdict"]
    said = {name: answer.structured_content for name, answer in answers.items()}
    assert said["impact"]["brief"]["decision"] == "BLOCKED"
    assert (
        said["impact"]["brief"]["affected_systems"] == said["impact"]["data"]["affected_count"] == 4
    )
    assert said["diagnose"]["verdict"].endswith("is stale: fx_rates.")
    assert said["explain"]["data"]["verdict"] == "changed"
    assert {c["column"] for c in said["check_sql"]["data"]["changes"]} >= {"total_usd", "total"}
    assert said["node"]["data"]["columns"][1]["comes_from"]
    assert said["register"]["data"]["written"] is False


def test_answers_are_those_of_the_command_line(over_stdio: Ask, stories: Path) -> None:
    of = ["--project-dir", str(stories), "--target-path", "edited"]
    state = ["--state", str(stories / "last-good")]
    commands = {
        "impact": ["impact", "fx_rates", "--rename", "rate:usd_rate"],
        "gate": ["gate", *state],
        "explain": ["explain", "customers_clean", *state],
        "diagnose": ["diagnose", "revenue_daily.total_usd"],
        "select_tests": ["select", *state],
    }

    async def questions(client: Any) -> dict[str, Any]:
        return {name: await client.call_tool(name, CALLS[name]) for name in commands}

    for name, answer in over_stdio(questions).items():
        command = [sys.executable, "-m", "dbt_ripple", *commands[name], *of, "--format", "json"]
        done = subprocess.run(command, capture_output=True, text=True, cwd=stories)
        assert answer.structured_content["complete"], name
        assert answer.structured_content["data"] == json.loads(done.stdout), name


REFUSED = [
    ("node", {"name": "revenue_dailly"}, "did you mean revenue_daily"),
    ("trace", {"name": "revenue_daily.totl_usd"}, "did you mean total_usd"),
    ("impact", {"name": "fx_rates", "drop": ["rat"]}, "did you mean rate"),
    ("impact", {"name": "fx_rates"}, "no change is given"),
    ("trace", {"nam": "x"}, "its arguments are"),
    ("trace", {"name": "fx_rates", "depth": -1}, ">= 0"),
    ("trace", {"name": "fx_rates", "cursor": "99"}, "is no cursor of this answer"),
    ("search", {"text": ""}, "length >= 1"),
    ("select_tests", {"base": "models"}, "no manifest.json in this folder"),
    ("select_tests", {"base": "--upload-pack=x"}, "no manifest.json in this folder"),
    ("check_sql", {"name": "revenue_daily", "sql": "select {{ nope() }}"}, "correct the text"),
    ("check_sql", {"name": "fx_rates", "sql": "select 1"}, "has no file of SQL"),
    ("register", {"flows": [{"source": "api:a", "target": "table:b"}]}, "--allow-writes"),
    ("nothing", {}, "the tools are search, node"),
]


def test_what_cannot_be_answered_is_an_error_of_one_line(over_stdio: Ask, stories: Path) -> None:
    async def questions(client: Any) -> list[Any]:
        return [await client.call_tool(name, given) for name, given, _ in REFUSED]

    for (name, given, said), answer in zip(REFUSED, over_stdio(questions), strict=True):
        (content,) = answer.content
        assert answer.is_error and said in content.text and "\n" not in content.text, (name, given)
        assert str(stories.parent) not in content.text.replace(str(stories), "")
    assert not (stories / "ripple_assets.yml").exists()


def test_nothing_found_says_so(over_stdio: Ask) -> None:
    async def questions(client: Any) -> tuple[Any, Any]:
        found = await client.call_tool("search", {"text": "revenue_dialy"})
        below = await client.call_tool("trace", {"name": "executive_kpis"})
        return found.structured_content, below.structured_content

    found, below = over_stdio(questions)
    assert found["data"]["hits"] == [] and "nodes were looked at" in found["verdict"]
    assert found["data"]["nearest"][0] == "revenue_daily"
    assert (
        below["verdict"]
        == "Nothing is downstream of executive_kpis, tests aside: the whole project was looked at."
    )


def test_resources_and_prompts(over_http: Ask) -> None:
    async def questions(client: Any) -> tuple[Any, ...]:
        listed = (await client.list_resources()).resources
        node = (await client.read_resource("ripple://node/revenue_daily")).contents[0]
        docs = (await client.read_resource("ripple://docs/revenue_daily")).contents[0]
        prompts = (await client.list_prompts()).prompts
        text = (await client.get_prompt("incident", {"name": "revenue_daily"})).messages[0]
        return listed, node, docs, prompts, text.content.text

    listed, node, docs, prompts, text = over_http(questions)
    assert "ripple://node/model.stories.revenue_daily" in {str(one.uri) for one in listed}
    assert json.loads(node.text)["data"]["unique_id"] == "model.stories.revenue_daily"
    assert docs.text.startswith("# revenue_daily\n")
    assert [one.name for one in prompts] == ["review_change", "incident"]
    assert "`diagnose`" in text and '"revenue_daily"' in text
    assert set(re.findall(r"`(\w+)`", text)) <= {*TOOLS, "since"}


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({}, 401),
        ({"Authorization": "Bearer wrong"}, 401),
        ({"Authorization": f"Basic {TOKEN}"}, 401),
        ({"Authorization": f"Bearer {TOKEN}", "Origin": "http://localhost"}, 403),
    ],
)
def test_only_who_has_the_token_is_answered(
    served: str, headers: dict[str, str], status: int
) -> None:
    body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "tools/list"}).encode()
    also = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream"}
    request = urllib.request.Request(served, body, {**also, **headers})
    with pytest.raises(urllib.error.HTTPError) as refused:
        urllib.request.urlopen(request, timeout=30)
    assert refused.value.code == status
    assert (status == 401) == ("WWW-Authenticate" in refused.value.headers)


def test_a_server_needs_a_token(stories: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "dbt_ripple", "mcp", "--http", "--project-dir", str(stories)],
        capture_output=True,
        text=True,
    )
    assert done.returncode == 2 and "give --token-file or set DBT_RIPPLE_MCP_TOKEN" in done.stderr


def test_what_is_registered_is_asked_about_at_once(over_http: Ask, stories: Path) -> None:
    async def questions(client: Any) -> tuple[Any, Any]:
        flow = {"source": "revenue_daily", "target": "model:forecast", "columns": ["total_usd:y"]}
        written = await client.call_tool("register", {"flows": [flow]})
        below = await client.call_tool("trace", {"name": "revenue_daily.total_usd"})
        return written, below.structured_content

    try:
        written, below = over_http(questions)
        assert not written.is_error, written.content
        assert written.structured_content["data"]["changed"] == {"model:forecast": "added"}
        assert "asset.model.forecast" in {node["unique_id"] for node in below["data"]["nodes"]}
    finally:
        (stories / "ripple_assets.yml").unlink(missing_ok=True)


def test_new_artifacts_are_read(over_http: Ask, stories: Path) -> None:
    manifest = stories / "edited" / "manifest.json"
    before = manifest.read_text()

    async def questions(client: Any) -> list[Any]:
        answers = [(await client.call_tool("node", {"name": "revenue_daily"})).structured_content]
        manifest.write_text(before.replace("finance@stories.example", "nobody@stories.example"))
        return [
            *answers,
            (await client.call_tool("node", {"name": "revenue_daily"})).structured_content,
        ]

    try:
        owners = [answer["data"]["owner"] for answer in over_http(questions)]
    finally:
        manifest.write_text(before)
    assert owners == ["finance@stories.example", "nobody@stories.example"]


def test_the_stories_are_played() -> None:
    """integration_tests/agent_stories.py, and what docs/agents.md shows of it."""
    script = REPOSITORY / "integration_tests" / "agent_stories.py"
    done = subprocess.run(
        [sys.executable, str(script)], capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, done.stderr
    page = (REPOSITORY / "docs" / "agents.md").read_text()
    said = done.stdout
    for line in re.findall(
        r"^(?:DECISION|RISK|AFFECTED SYSTEMS|REASON|RECOMMENDATION): .*$", page, re.M
    ):
        assert (
            line.replace("2026-12-27", "").split("2026")[0] in said or "deprecation_date" in line
        ), line
    for call in re.findall(r"^`(\w+ \{.*\})`$", page, re.M):
        assert call in said, call
