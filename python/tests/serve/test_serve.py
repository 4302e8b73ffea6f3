"""`dbt-ripple serve` as a process of its own, asked by a script that knows the base URL alone."""

from __future__ import annotations

import http.client
import json
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("jsonschema_rs")
pytest.importorskip("starlette")

import jsonschema
import twin_project
from serve.pipeline_client import CHANGES, PIPELINE, Client, drawn, is_safe, reported
from served_collector import EVENTS, Answer, Served, event

from dbt_ripple import cli
from dbt_ripple.rendering.json_documents import schema

TRACE, IMPACT = "/lineage/trace", "/lineage/impact"
TREE = [
    "[TABLE] raw_orders",
    " └── [DBT_MODEL] stg_orders",
    "  └── [DBT_MODEL] fct_orders",
    "   └── [DAG] daily_revenue_report",
    "   └── [SPARK_JOB] customer_ltv_model",
]


def serving(folder: Path, *arguments: str, **more: Any) -> Served:
    command = ("serve", "--project-dir", str(folder))
    return Served(folder / "events", *arguments, command=command, **more)


@pytest.fixture
def bare(tmp_path: Path) -> Iterator[Served]:
    """A server where there is no dbt project."""
    with serving(tmp_path) as served:
        yield served


@pytest.fixture(scope="module")
def orders(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """One that nobody changes: it knows the table `orders`."""
    with serving(tmp_path_factory.mktemp("orders")) as served:
        assert served.post({"asset_type": "table", "name": "orders"}, TRACE).status == 201
        yield served


@pytest.fixture(scope="module")
def good(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A built dbt project in which the pipeline is: models, and exposures for the DAG and the Spark job."""
    pytest.importorskip("dbt.adapters.duckdb")
    return twin_project.build("good", tmp_path_factory.mktemp("good"))


def post(served: Served, path: str, body: Any, **headers: str) -> Answer:
    return served.post(body, path, **headers)


def registered(served: Served) -> tuple[Client, Any]:
    client = Client(served.url)
    raw, *_ = [client.register(*asset) for asset in PIPELINE]
    return client, raw


# --- the pipeline ----------------------------------------------------------------------------------


def test_a_pipeline_that_is_registered_has_its_tree_and_its_report(tmp_path: Path) -> None:
    with serving(tmp_path) as served:
        client, raw = registered(served)
        assert raw["id"] == "table:raw_orders"
        assert list(drawn(client.lineage(raw["id"])["graph"])) == TREE
        report = client.impact(raw["id"], CHANGES)
        # Nobody has said which columns they read, so that they may read any: none is called broken.
        names = [asset[1] for asset in PIPELINE[1:]]
        assert [a["name"] for a in report["affected_assets"]] == names
        for affected in report["affected_assets"]:
            assert affected["affected_references"] == ["order_total", "legacy_discount_code"]
            assert (affected["severity"], affected["may_read"]) == ("warning", True)
        assert (report["decision"], report["affected_count"]) == ("CAUTION", 4)
        assert "asset.dbt_model.stg_orders" in report["not_analysed"]
        assert is_safe(report)
    # It is written down: the next server knows it, and so do the commands.
    with serving(tmp_path) as served:
        assert list(drawn(Client(served.url).lineage("table:raw_orders")["graph"])) == TREE
    ids = [
        line.split()[-1]
        for line in (tmp_path / "ripple_assets.yml").read_text().splitlines()
        if "- id:" in line
    ]
    assert ids == [f"{kind}:{name}" for kind, name, _, _ in PIPELINE]


@pytest.mark.slow
def test_over_dbt_the_report_is_of_columns(good: Path) -> None:
    before = sorted(p.name for p in good.iterdir())
    with serving(good, "--store", str(good.parent / "events")) as served:
        client, raw = registered(served)
        assert raw["kept_in"] == "dbt"
        assert list(drawn(client.lineage(raw["id"])["graph"])) == TREE
        report = client.impact(raw["id"], CHANGES)
        assert list(reported(report)) == [
            "Risk level: HIGH",
            "Affected assets: 4",
            "stg_orders (dbt_model)",
            "  References: order_total, legacy_discount_code",
            "  Severity: breaking",
            "fct_orders (dbt_model)",
            "  References: order_total",
            "  Severity: breaking",
            "daily_revenue_report (dag)",
            "  References: order_total",
            "  Severity: breaking",
            "customer_ltv_model (spark_job)",
            "  References: order_total",
            "  Severity: warning",
        ]
        assert not is_safe(report)
        rename = client.impact(raw["id"], CHANGES[:1])["affected_assets"]
        assert [
            (a["name"], a["affected_references"]) for a in rename if a["severity"] == "breaking"
        ] == [
            (name, ["order_total"]) for name in ("stg_orders", "fct_orders", "daily_revenue_report")
        ]
        document = {k: v for k, v in report.items() if k not in ("asset_id", "not_analysed")}
        jsonschema.validate({"schema_version": 1, **document}, schema("impact"))
        # A column, and the other way.
        up = client.lineage("fct_orders.order_total", "upstream")["graph"]
        assert up["name"] == "fct_orders.order_total"
        assert up["upstream"][0]["name"] == "stg_orders.order_total"
        assert up["upstream"][0]["kinds"]
        both = client.lineage("stg_orders", "both", 1)["graph"]
        assert [n["name"] for n in both["upstream"]] == ["raw_orders"]
        assert "fct_orders" in [n["name"] for n in both["downstream"]]
        page = served.ask("GET", "/")
        assert (page.status, page.body[:15]) == (200, b"<!doctype html>")
    assert sorted(p.name for p in good.iterdir()) == before  # nothing is written beside dbt's


def test_sql_that_is_registered_is_followed(bare: Served) -> None:
    sql = {"asset_type": "job", "name": "load", "sql": "create table clean as select id from raw"}
    assert post(bare, "/lineage/trace", {"asset_type": "table", "name": "raw"}).status == 201
    assert post(bare, "/lineage/trace", {"asset_type": "table", "name": "clean"}).status == 201
    assert post(bare, "/lineage/trace", {**sql, "dialect": "spark"}).status == 201
    client = Client(bare.url)
    down = client.lineage("table:raw.id")["graph"]
    assert [n["name"] for n in down["downstream"]] == ["load.id"]
    report = client.impact("table:raw", [{"type": "column_drop", "column": "id"}])
    assert (report["decision"], report["affected_assets"][0]["severity"]) == ("BLOCKED", "breaking")


def test_events_are_lineage_as_soon_as_they_are_stored(bare: Served) -> None:
    client = Client(bare.url)
    with pytest.raises(LookupError):
        client.lineage("job:job.1")
    assert bare.post(event(1)).status == 201
    graph = client.lineage("job:job.1", "both")["graph"]
    assert [n["name"] for n in graph["upstream"]] == ["shop.raw.orders"]
    assert [n["name"] for n in graph["downstream"]] == ["shop.public.orders"]
    assert (bare.ask("GET", "/health").status, bare.ask("GET", "/metrics").status) == (200, 200)


# --- what is refused -------------------------------------------------------------------------------

DROP = {"type": "column_drop", "column": "a"}


@pytest.mark.parametrize(
    ("path", "body", "status", "detail"),
    [
        (TRACE, {"name": "x"}, 422, "asset_type"),
        (TRACE, {"asset_type": "table", "name": 3}, 422, "$.name"),
        (TRACE, {"asset_type": "table", "name": "x", "upstream": []}, 422, "upstream"),
        (TRACE, {"asset_type": "tabel", "name": "x"}, 422, "did you mean table"),
        (TRACE, {"asset_type": "table", "name": "a b"}, 422, "without blanks"),
        (TRACE, {"asset_type": "dag", "name": "x", "upstream_assets": ["orderz"]}, 422, "orders"),
        (TRACE, [], 422, "object"),
        (TRACE, b"{", 400, "no JSON"),
        (TRACE, b"[" * 200, 422, "deep"),
        (IMPACT, {"asset_id": "orders", "proposed_changes": []}, 400, "no change"),
        (IMPACT, {"asset_id": "orders", "proposed_changes": [{"type": "x"}]}, 400, "no change is"),
        (IMPACT, {"asset_id": "orders", "proposed_changes": [{"type": "column_drop"}]}, 400, "col"),
        (IMPACT, {"proposed_changes": [DROP]}, 400, "asset_id"),
        (IMPACT, {"asset_id": "orders.a", "proposed_changes": [DROP]}, 400, "name its table"),
        (IMPACT, {"asset_id": "orderz", "proposed_changes": [DROP]}, 404, "did you mean"),
        (IMPACT, b"no", 400, "no JSON"),
    ],
)
def test_what_is_wrong_is_said(
    orders: Served, path: str, body: Any, status: int, detail: str
) -> None:
    file = orders.store.parent / "ripple_assets.yml"
    written = file.read_bytes()
    answer = post(orders, path, body)
    assert answer.status == status, answer.body
    assert detail in answer.json()["detail"]
    assert file.read_bytes() == written


@pytest.mark.parametrize(
    ("path", "status"),
    [
        ("/lineage/orders", 200),
        ("/lineage/orders?direction=sideways", 422),
        ("/lineage/orders?depth=-1", 422),
        ("/lineage/orders?depth=101", 422),
        ("/lineage/orders?depth=9999999999999999999999", 422),
        ("/lineage/orders?depth=0", 200),
        ("/lineage/nothing", 404),
        ("/lineage/", 404),
        ("/lineage/trace", 404),  # nothing is called so; "/lineage/impact" likewise
        ("/lineage/../../../../etc/passwd", 404),
        ("/lineage/%2e%2e%2f%2e%2e%2fetc%2fpasswd", 404),
        ("/..%2f..%2fetc/passwd", 404),
        ("/lineage/%00", 404),
        ("/lineage/" + "a" * 5000, 404),
        ("/nothing", 404),
        ("/slack/lineage", 404),
    ],
)
def test_paths(orders: Served, path: str, status: int) -> None:
    answer = orders.ask("GET", path)
    assert answer.status == status, answer.body
    assert b"root:" not in answer.body
    if status >= 400:
        assert answer.json()["detail"]


def test_bodies_are_bounded_and_typed(orders: Served) -> None:
    bare, asset = orders, {"asset_type": "table", "name": "x"}
    assert post(bare, TRACE, {**asset, "description": "x" * 6_000_000}).status == 413
    assert post(bare, TRACE, asset, Content_Type="text/plain").status == 415
    assert post(bare, TRACE, asset, Origin="https://evil.example").status == 403
    assert post(bare, TRACE, asset, Host="evil.example").status == 403
    assert bare.ask("GET", "/lineage/x", headers={"Host": "evil.example"}).status == 403


def test_slow_clients_stop_nothing(tmp_path: Path) -> None:
    with serving(tmp_path, "--timeout", "5") as served:
        slow = [socket.create_connection(("127.0.0.1", served.port)) for _ in range(80)]
        head = f"POST {TRACE} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
        for connection in slow:
            connection.sendall(f"{head}Content-Length: 1000\r\n\r\n{{".encode())
        assert post(served, TRACE, {"asset_type": "table", "name": "x"}).status == 201
        assert slow[0].recv(100).startswith(b"HTTP/1.1 408")
        for connection in slow:
            connection.close()


def test_with_a_token_nobody_else_is_answered(tmp_path: Path) -> None:
    (tmp_path / "token").write_text("secret\n")
    with serving(tmp_path, "--token-file", str(tmp_path / "token")) as served:
        for path in ("/", "/openapi.json", "/lineage/x", "/metrics"):
            assert served.ask("GET", path).status == 401
        for path in (TRACE, IMPACT, EVENTS):
            assert served.post({}, path).status == 401
            assert served.post({}, path, Authorization="Bearer secre").status == 401
        assert served.ask("GET", "/health").status == 200
        client = Client(served.url, "secret")
        client.register(*PIPELINE[0])
        assert client.lineage("raw_orders")["node_count"] == 1


def test_others_are_not_served_without_a_token(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.delenv("DBT_RIPPLE_SERVE_TOKEN", raising=False)
    argv = ["dbt-ripple", "serve", "--host", "0.0.0.0", "--project-dir", str(tmp_path)]
    monkeypatch.setattr("sys.argv", argv)
    with pytest.raises(SystemExit) as exit_:
        cli.main()
    assert exit_.value.code == 2
    assert "DBT_RIPPLE_SERVE_TOKEN" in capsys.readouterr().err


def test_a_file_that_is_broken_is_said_and_mended_without_a_new_start(tmp_path: Path) -> None:
    file = tmp_path / "ripple_assets.yml"
    file.write_text("assets: [{id: table:orders}]\n")
    with serving(tmp_path) as served:
        assert served.ask("GET", "/lineage/orders").status == 200
        file.write_text("assets: {")
        answer = served.ask("GET", "/lineage/orders")
        assert (answer.status, "ripple_assets.yml" in answer.json()["detail"]) == (503, True)
        file.write_text("assets: [{id: table:orders}, {id: table:items}]\n")
        assert served.ask("GET", "/lineage/items").status == 200


def test_many_ask_at_once(bare: Served) -> None:
    registered(bare)
    connections = [
        http.client.HTTPConnection("127.0.0.1", bare.port, timeout=60) for _ in range(20)
    ]
    for number, connection in enumerate(connections):
        body = {"asset_type": "table", "name": f"t{number}", "upstream_assets": ["raw_orders"]}
        headers = {"Content-Type": "application/json"}
        connection.request("POST", TRACE, json.dumps(body), headers)
    assert {connection.getresponse().status for connection in connections} == {201}
    assert Client(bare.url).lineage("raw_orders", depth=1)["node_count"] == 22
