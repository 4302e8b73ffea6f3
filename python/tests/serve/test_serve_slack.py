"""The slash command: what Slack signs is answered, once; nothing else is."""

from __future__ import annotations

import hashlib
import hmac
import json
import time
from collections.abc import Iterator
from datetime import timedelta
from urllib.parse import urlencode

import pytest

pytest.importorskip("jsonschema_rs")
pytest.importorskip("starlette")

import twin_project
from served_collector import Answer, Served

from dbt_ripple.collector.guard import Refusal
from dbt_ripple.serve.slack import PATH, SlackCommand, SlackSignature, command_of

SECRET = "8f742231b10e8888abcd99yyyzzz85a5"


def signature(body: bytes, at: str, secret: str = SECRET) -> str:
    """As Slack's documentation has it."""
    signed = f"v0:{at}:".encode() + body
    return "v0=" + hmac.new(secret.encode(), signed, hashlib.sha256).hexdigest()


def form(text: str) -> bytes:
    return urlencode({"command": "/lineage", "text": text, "user_name": "ada"}).encode()


# --- the signature ---------------------------------------------------------------------------------


def refused(check: SlackSignature, at: str, signed: str, body: bytes) -> str:
    with pytest.raises(Refusal) as error:
        check.check(at, signed, body)
    assert error.value.status == 401
    return error.value.detail


def test_what_slack_has_signed_is_taken_once() -> None:
    now = [1_531_420_618.0]
    check = SlackSignature(SECRET, lambda: now[0])
    body, at = form("orders"), "1531420618"
    check.check(at, signature(body, at), body)
    assert "before" in refused(check, at, signature(body, at), body)
    # Another time is another request, and what was seen is forgotten when it is too old anyway.
    later = "1531420700"
    check.check(later, signature(body, later), body)
    now[0] += 301
    assert "old" in refused(check, at, signature(body, at), body)
    now[0] += 1000
    last = str(int(now[0]))
    check.check(last, signature(body, last), body)
    assert len(check._seen) == 1


@pytest.mark.parametrize(
    ("at", "signed", "why"),
    [
        ("1531420618", "", "signed"),
        ("1531420618", signature(form("orders"), "1531420618", "another"), "signed"),
        ("1531420619", signature(form("orders"), "1531420618"), "signed"),
        ("1531420618", signature(form("order"), "1531420618"), "signed"),
        ("1531420618", signature(form("orders"), "1531420618") + "é", "signed"),
        ("", signature(form("orders"), ""), "no time"),
        ("soon", signature(form("orders"), "soon"), "no time"),
        ("-1", signature(form("orders"), "-1"), "no time"),
        ("9" * 16, signature(form("orders"), "9" * 16), "no time"),
        ("1531420317", signature(form("orders"), "1531420317"), "old"),
        ("1531420919", signature(form("orders"), "1531420919"), "old"),
    ],
)
def test_what_slack_has_not_signed_is_refused(at: str, signed: str, why: str) -> None:
    check = SlackSignature(SECRET, lambda: 1_531_420_618.0)
    assert why in refused(check, at, signed, form("orders"))
    # And it is not remembered as seen.
    right = "1531420618"
    check.check(right, signature(form("orders"), right), form("orders"))


def test_at_the_edge_of_five_minutes_it_is_taken() -> None:
    check = SlackSignature(SECRET, lambda: 1_531_420_618.0)
    for at in ("1531420318", "1531420918"):
        check.check(at, signature(form("orders"), at), form("orders"))


# --- the command -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "command"),
    [
        ("orders", SlackCommand("orders", timedelta(hours=24))),
        (" a.orders.total  --since 90m ", SlackCommand("a.orders.total", timedelta(minutes=90))),
        ("'my test' --since 7d", SlackCommand("my test", timedelta(days=7))),
        ("", None),
        ("orders --since", None),
        ("orders --since soon", None),
        ("orders since 7d", None),
        ("--since 7d orders", None),
        ("--help", None),
        ("a b", None),
        ("'orders", None),
    ],
)
def test_what_is_asked(text: str, command: SlackCommand | None) -> None:
    assert command_of(form(text)) == command


def test_what_is_no_form() -> None:
    assert command_of(b"\xff\xfe=%%") is None
    assert command_of(b"&".join(b"a=1" for _ in range(1000))) is None


# --- over HTTP -------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def slack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """A server of a built project, with a token that Slack does not know."""
    pytest.importorskip("dbt.adapters.duckdb")
    good = twin_project.build("good", tmp_path_factory.mktemp("slack"))
    environment = {"DBT_RIPPLE_SERVE_TOKEN": "t", "DBT_RIPPLE_SLACK_SIGNING_SECRET": SECRET}
    with Served(
        good.parent / "events",
        command=("serve", "--project-dir", str(good)),
        environment=environment,
    ) as served:
        # Slack waits three seconds; by then the project has to be read.
        headers = {"Authorization": "Bearer t"}
        assert served.ask("GET", "/lineage/fct_orders.order_total", headers=headers).status == 200
        yield served


def ask(
    served: Served, text: str, at: str = "", secret: str = SECRET, host: str = "x.ngrok.example"
) -> Answer:
    body = form(text)
    at = at or str(int(time.time()))
    headers = {
        "Host": host,
        "Content-Type": "application/x-www-form-urlencoded",
        "X-Slack-Request-Timestamp": at,
        "X-Slack-Signature": signature(body, at, secret),
    }
    return served.ask("POST", PATH, body, headers)


@pytest.mark.slow
def test_the_answer_is_the_incident_in_blocks(slack: Served) -> None:
    for attempt in range(10):  # on a busy machine it is asked again, as it says
        answer = ask(slack, f"fct_orders.order_total --since {24 + attempt}h")
        assert answer.status == 200
        if "blocks" in answer.json():
            break
        assert "again" in answer.json()["text"]
        time.sleep(3)
    text = json.dumps(answer.json()["blocks"])
    assert "fct_orders" in text
    assert answer.headers["content-type"] == "application/json"


@pytest.mark.slow
def test_who_is_not_slack_is_not_answered(slack: Served) -> None:
    at = str(int(time.time()))
    assert ask(slack, "orders", secret="guessed").status == 401
    assert ask(slack, "orders", at=str(int(at) - 400)).status == 401
    assert slack.ask("POST", PATH, form("orders")).status == 415
    assert ask(slack, "", at=at).status == 200
    assert ask(slack, "", at=at).status == 401  # replayed
    assert slack.ask("GET", PATH).status == 405


@pytest.mark.slow
def test_what_cannot_be_answered_is_said_to_the_one_who_asks(slack: Served) -> None:
    usage = ask(slack, "a b c").json()
    assert (usage["response_type"], "--since" in usage["text"]) == ("ephemeral", True)
    unknown = ask(slack, "<!channel>").json()
    assert unknown["response_type"] == "ephemeral"
    assert "<!" not in unknown["text"]
