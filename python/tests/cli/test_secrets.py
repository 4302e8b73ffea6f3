"""No value of a secret is printed, written or sent; everything else is as it was."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hand_made import macro, node, project

from dbt_ripple import secrets
from dbt_ripple.pages.checksummed_folder import seal, verify
from dbt_ripple.rendering.output import answer, complain
from dbt_ripple.secrets import scrub, scrub_bytes, scrub_value
from dbt_ripple.session.open_artifacts import learn_secrets_of


@pytest.fixture(autouse=True)
def nothing_learnt(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(secrets, "_learnt", set())


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("DBT_ENV_SECRET_GIT", "abcd"),
        ("SNOWFLAKE_PASSWORD", "tr0ub4dor"),
        ("GITHUB_TOKEN", "ghs_0123456789"),
        ("AWS_SECRET_ACCESS_KEY", "wJalrXUtnFEMI/K7MDENG"),
        ("MY_API_KEY", 'quo"ted<&>ä'),
        ("PRIVATE_KEY", "first line\nsecond line"),
    ],
)
def test_a_variable_whose_name_says_so(
    name: str, value: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert scrub(f"x {value} y") == f"x {value} y"
    monkeypatch.setenv(name, value)
    for text in (value, json.dumps(value), json.dumps([value], ensure_ascii=False)):
        assert "***" in scrub(text)
        assert not any(part in scrub(text) for part in value.split("\n"))
    monkeypatch.delenv(name)
    assert scrub(f"x {value} y") == f"x {value} y"


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("POSTGRES_PASSWORD", "postgres"),
        ("KEYBOARD", "a long value"),
        ("SSL_CERT_FILE", "/etc/ssl/cert.pem"),
        ("PATHS", "some/value"),
        ("A_TOKEN", "short"),
        ("MONKEY", "business as usual"),
    ],
)
def test_a_variable_that_is_none(name: str, value: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(name, value)
    assert scrub(f"x {value} y") == f"x {value} y"


@pytest.mark.parametrize(
    ("text", "clean"),
    [
        ("https://ghp_0123456789abcdefgh@github.com/o/r", "https://***@github.com/o/r"),
        ("http://a:b@c@host/x", "http://a:***@host/x"),
        (
            "jdbc:redshift://h:5439/db?user=u&password=p&x=1",
            "jdbc:redshift://h:5439/db?user=u&password=***&x=1",
        ),
        ("s3://b/k?X-Amz-Signature=abc&X-Amz-Date=1", "s3://b/k?X-Amz-Signature=***&X-Amz-Date=1"),
        ("ssh://git@github.com/o/r", "ssh://git@github.com/o/r"),
        ("https://shop.com/?page=2&sort=key", "https://shop.com/?page=2&sort=key"),
        ("select a :: int, 'x://y'", "select a :: int, 'x://y'"),
    ],
)
def test_addresses(text: str, clean: str) -> None:
    assert scrub(text) == clean


def test_what_the_project_reads_is_not_printed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WAREHOUSE_HANDLE", "no-name-would-tell")
    monkeypatch.setenv("WHERE_TO", "analytics_prod")
    monkeypatch.setenv("OF_MACRO", "told by a macro")
    monkeypatch.setenv("DAYS", "12345678")
    model = node(
        "model.p.m",
        "select 'no-name-would-tell'",
        raw="select '{{ env_var(\"WAREHOUSE_HANDLE\") }}'",
    )
    told = msgspec.structs.replace(
        model, schema="analytics_prod", unrendered_config={"schema": "{{ env_var('WHERE_TO') }}"}
    )
    of_macro = macro(
        "macro.p.x", "{% macro x() %}{{ env_var( 'OF_MACRO', '') ~ env_var('DAYS') }}{% endmacro %}"
    )
    learn_secrets_of(project(told, macros=[of_macro]))
    text = "no-name-would-tell analytics_prod told by a macro 12345678"
    assert scrub(text) == "*** analytics_prod *** 12345678"


def test_what_is_printed(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("MY_TOKEN", "hunter2hunter2")
    answer(["a hunter2hunter2", "b\nhunter2hunter2"])
    complain("could not reach https://ada:pw@host: hunter2hunter2")
    out, err = capsys.readouterr()
    assert out == "a ***\nb\\n***\n"
    assert err == "dbt-ripple: could not reach https://ada:***@host: ***\n"


def test_what_is_written_still_verifies(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("MY_TOKEN", "hunter2hunter2")
    digest = seal({"a.txt": b"x hunter2hunter2", "b.bin": b"\xff\x00"}, tmp_path / "pack")
    assert (tmp_path / "pack" / "a.txt").read_bytes() == b"x ***"
    assert verify(tmp_path / "pack", digest).intact
    assert scrub_bytes(b"\xffhunter2hunter2") == b"\xffhunter2hunter2"


class Inner(msgspec.Struct, frozen=True):
    text: str


@dataclass
class Outer:
    parts: list[Any]
    by_name: dict[str, Any]
    whole: Any = None


def test_what_is_sent(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MY_TOKEN", "hunter2hunter2")
    shared = ["hunter2hunter2"]
    event = Outer(
        ["a hunter2hunter2", 1, None, ("hunter2hunter2",)], {"hunter2hunter2": shared, "b": shared}
    )
    event.whole = event
    event.parts.append(Inner("hunter2hunter2"))
    sent = scrub_value(event)
    assert sent.parts == ["a ***", 1, None, ("***",), Inner("***")]
    assert sent.by_name == {"***": ["***"], "b": ["***"]}
    assert sent.whole is sent


def test_events_of_openlineage(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("openlineage.client")
    from openlineage.client.event_v2 import Job, JobEvent
    from openlineage.client.facet_v2 import sql_job

    from dbt_ripple.openlineage.client import as_json

    monkeypatch.setenv("MY_TOKEN", "hunter2hunter2")
    facet = sql_job.SQLJobFacet(query="select 'hunter2hunter2'")
    event = JobEvent(
        eventTime="2026-11-27T00:00:00Z",
        job=Job("n", "hunter2hunter2", {"sql": facet}),
        producer="p",
    )
    text = as_json(scrub_value(event))
    assert "hunter2" not in text and text.count("***") == 2


def test_metadata_of_datahub(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("datahub")
    from datahub.emitter.mcp import MetadataChangeProposalWrapper
    from datahub.metadata.schema_classes import DatasetPropertiesClass

    monkeypatch.setenv("MY_TOKEN", "hunter2hunter2")
    aspect = DatasetPropertiesClass(
        description="hunter2hunter2", customProperties={"a": "hunter2hunter2"}
    )
    urn = "urn:li:dataset:(urn:li:dataPlatform:spark,s.t,PROD)"
    sent = scrub_value(MetadataChangeProposalWrapper(entityUrn=urn, aspect=aspect))
    text = json.dumps(sent.to_obj())
    assert "hunter2" not in text and "***" in text
