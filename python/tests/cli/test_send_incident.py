"""Sending an incident: to a real HTTP server on this machine, the only thing that stands in for a service."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest
from cli_shell import Shell

from dbt_ripple.cli import incident
from dbt_ripple.cli.incident import destination
from dbt_ripple.errors import RippleError

KEY = "0123456789abcdef0123456789abcdef"
PATH = "/services/T000/B000/verysecret"


@dataclass
class Service:
    """What a service got, and what it answers: one status after the other, the last one for ever."""

    url: str
    statuses: list[int] = field(default_factory=lambda: [200])
    headers: dict[str, str] = field(default_factory=dict)
    text: str = "ok"
    got: list[tuple[str, dict[str, str], Any]] = field(default_factory=list)


@pytest.fixture
def service(monkeypatch: pytest.MonkeyPatch) -> Iterator[Service]:
    for name in ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.lower(), raising=False)

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            made.got.append((self.path, dict(self.headers), json.loads(body)))
            status = made.statuses[0] if len(made.statuses) == 1 else made.statuses.pop(0)
            self.send_response(status)
            for name, value in made.headers.items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(made.text)))
            self.end_headers()
            self.wfile.write(made.text.encode())

        def log_message(self, *arguments: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        made = Service(f"http://127.0.0.1:{server.server_port}{PATH}")
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        yield made
        server.shutdown()
        thread.join()


@pytest.fixture
def sent(
    shell: Shell, service: Service, monkeypatch: pytest.MonkeyPatch
) -> Callable[..., tuple[int, str]]:
    """Send an incident of stg_orders; the exit code, and all that was printed."""
    monkeypatch.setenv("DBT_RIPPLE_SLACK_URL", service.url)
    monkeypatch.setenv("DBT_RIPPLE_PAGERDUTY_KEY", KEY)
    monkeypatch.setenv("DBT_RIPPLE_PAGERDUTY_URL", service.url)
    monkeypatch.setenv("DBT_RIPPLE_WEBHOOK_URL", service.url)
    monkeypatch.setenv("DBT_RIPPLE_WEBHOOK_TOKEN", KEY)

    def run(to: str, *more: str) -> tuple[int, str]:
        said = shell("incident", "stg_orders.amount", "--send", to, *more)
        printed = said.out + said.err
        # Whatever happens: no key and no address is printed.
        assert KEY not in printed and "verysecret" not in printed and "127.0.0.1" not in printed
        return said.code, printed

    return run


@pytest.mark.parametrize("to", ["slack", "pagerduty", "webhook"])
def test_it_is_sent_once(sent: Callable[..., tuple[int, str]], service: Service, to: str) -> None:
    code, printed = sent(to, "--format", to)
    assert code == 0 and f"sent to {to} (status 200)" in printed
    ((path, headers, body),) = service.got
    assert path == PATH and headers["Content-Type"].startswith("application/json")
    shown = json.loads(
        printed.partition("{")[1] + printed.partition("{")[2].rpartition("}")[0] + "}"
    )
    if to == "pagerduty":
        assert body.pop("routing_key") == KEY and shown.pop("routing_key") == ""
    assert body == shown
    assert headers.get("Authorization") == (f"Bearer {KEY}" if to == "webhook" else None)


def test_it_is_tried_again_where_that_can_help(
    sent: Callable[..., tuple[int, str]], service: Service
) -> None:
    service.statuses = [503, 429, 202]
    service.headers = {"Retry-After": "0"}
    code, printed = sent("pagerduty")
    assert (code, len(service.got)) == (0, 3) and "status 202" in printed
    # The same alert each time.
    assert len({body["dedup_key"] for _, _, body in service.got}) == 1


@pytest.mark.parametrize(
    ("status", "text", "said"),
    [
        (400, "invalid_blocks", "status 400 (invalid_blocks)"),
        (403, f"no access for {KEY}", "status 403"),
        (500, "oops", "status 500"),
        (302, "", "status 302"),
    ],
)
def test_what_is_refused_is_told_in_one_line(
    sent: Callable[..., tuple[int, str]], service: Service, status: int, text: str, said: str
) -> None:
    service.statuses, service.text = [status], text
    service.headers = {"Retry-After": "0", "Location": "http://127.0.0.1:9/elsewhere"}
    code, printed = sent("slack")
    assert code == 2 and said in printed and printed.count("\n") == 1
    assert len(service.got) == (incident.TRIES if status == 500 else 1)


def test_what_cannot_be_reached_is_told(
    sent: Callable[..., tuple[int, str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(incident, "LONGEST_WAIT", 0.01)
    monkeypatch.setenv("DBT_RIPPLE_SLACK_URL", f"http://127.0.0.1:1{PATH}")
    code, printed = sent("slack")
    assert code == 2 and "cannot be reached" in printed and "DBT_RIPPLE_SLACK_URL" in printed
    assert printed.count("\n") == 1


def test_a_service_that_does_not_answer_is_not_waited_for(
    sent: Callable[..., tuple[int, str]], service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    service.statuses, service.headers = [429, 200], {"Retry-After": "3600"}
    monkeypatch.setattr(incident, "LONGEST_WAIT", 0.1)
    code, _ = sent("slack")
    assert (code, len(service.got)) == (0, 2)


@pytest.mark.parametrize(
    ("service_name", "environment", "said"),
    [
        ("slack", {}, "DBT_RIPPLE_SLACK_URL: is not set"),
        ("pagerduty", {}, "DBT_RIPPLE_PAGERDUTY_KEY: is not set"),
        ("webhook", {"DBT_RIPPLE_WEBHOOK_URL": "ftp://secret.example"}, "is no http"),
        ("webhook", {"DBT_RIPPLE_WEBHOOK_URL": "http://[secret"}, "is no http"),
        ("slack", {"DBT_RIPPLE_SLACK_URL": "http://secret.example/x"}, "unencrypted"),
        (
            "pagerduty",
            {"DBT_RIPPLE_PAGERDUTY_KEY": "k", "DBT_RIPPLE_PAGERDUTY_URL": "http://secret.example"},
            "unencrypted",
        ),
        (
            "webhook",
            {"DBT_RIPPLE_WEBHOOK_URL": "https://x.example", "DBT_RIPPLE_WEBHOOK_TOKEN": "a\nb"},
            "a header cannot have",
        ),
    ],
)
def test_what_is_not_set_or_is_no_address_is_told(
    service_name: str, environment: dict[str, str], said: str
) -> None:
    with pytest.raises(RippleError) as told:
        destination(service_name, environment)
    assert said in str(told.value) and "secret" not in str(told.value).replace("a secret", "")


def test_without_the_key_nothing_is_analysed(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("DBT_RIPPLE_SLACK_URL", raising=False)
    said = shell("incident", "no_such_node", "--send", "slack")
    assert said.code == 2 and "DBT_RIPPLE_SLACK_URL" in said.err


def test_pagerduty_has_its_own_address() -> None:
    made = destination("pagerduty", {"DBT_RIPPLE_PAGERDUTY_KEY": KEY})
    assert made.url.startswith("https://events.pagerduty.com/v2/") and made.key == KEY
