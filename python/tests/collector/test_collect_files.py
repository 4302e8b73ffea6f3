"""`dbt-ripple collect FILE`: NDJSON, arrays, single events, stdin."""

from __future__ import annotations

import importlib.util
import io
import json
import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from served_collector import event, stored

from dbt_ripple import cli

Command = Callable[..., tuple[int, str, str]]
EVENTS = [event(number) for number in range(3)]


@pytest.fixture
def command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Command:
    """`dbt-ripple collect` in an empty folder."""
    monkeypatch.chdir(tmp_path)

    def run(*arguments: str, stdin: bytes = b"") -> tuple[int, str, str]:
        monkeypatch.setattr("sys.argv", ["dbt-ripple", "collect", *arguments])
        monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BufferedReader(io.BytesIO(stdin))))
        code: Any = 0
        try:
            cli.main()
        except SystemExit as stopped:
            code = stopped.code
        return (code, *capsys.readouterr())

    return run


def lines(*events: Any) -> bytes:
    return b"".join(json.dumps(each).encode() + b"\n" for each in events)


@pytest.mark.parametrize(
    "text",
    [
        lines(*EVENTS),
        lines(*EVENTS).rstrip(b"\n"),
        lines(*EVENTS).replace(b"\n", b"\r\n\r\n"),
        b"\xef\xbb\xbf\n" + lines(*EVENTS),
        json.dumps(EVENTS).encode(),
        json.dumps(EVENTS, indent=4).encode(),
        b"\xef\xbb\xbf  \n" + json.dumps(EVENTS).encode(),
    ],
)
def test_every_shape_of_a_file(command: Command, text: bytes) -> None:
    Path("events").write_bytes(text)
    summary = "stored 3 events in openlineage_events; 0 were there before, 0 refused\n"
    assert command("events") == (0, summary, "")
    assert stored(Path("openlineage_events")) == EVENTS
    summary = "stored 0 events in openlineage_events; 3 were there before, 0 refused\n"
    assert command("-", stdin=text) == (0, summary, "")


def test_an_event_over_several_lines(command: Command) -> None:
    Path("event.json").write_text(json.dumps(EVENTS[0], indent=2))
    assert command("event.json", "event.json", "--store", "s")[0] == 0
    assert stored(Path("s")) == EVENTS[:1]


def test_an_empty_file(command: Command) -> None:
    assert command("-", stdin=b"\n \n")[:2] == (
        0,
        "stored 0 events in openlineage_events; 0 were there before, 0 refused\n",
    )


def test_what_is_refused_is_named_and_the_rest_is_stored(command: Command) -> None:
    long = lines({"x": "y" * 4000})
    text = b"\n" + lines(EVENTS[0], {"run": {}}) + long + b"nope\n" + lines(EVENTS[1])
    Path("events.ndjson").write_bytes(text)
    code, out, err = command("events.ndjson", "--max-body", "2000")
    assert code == 1
    assert out.startswith("stored 2 events in ")
    assert stored(Path("openlineage_events")) == EVENTS[:2]
    messages = err.splitlines()
    assert len(messages) == 3, err
    assert messages[0].startswith("dbt-ripple: events.ndjson:3: the event: ")
    assert messages[1] == "dbt-ripple: events.ndjson:4: more than 2,000 bytes"
    assert messages[2].startswith("dbt-ripple: events.ndjson:5: no JSON")


def test_what_is_refused_of_an_array(command: Command) -> None:
    code, _, err = command("-", stdin=json.dumps([EVENTS[0], 3, *EVENTS[1:]]).encode())
    assert code == 1
    assert err == "dbt-ripple: stdin[1]: the event: an event is an object, not a number\n"
    assert stored(Path("openlineage_events")) == EVENTS


def test_an_array_that_is_longer_than_a_line_may_be(command: Command) -> None:
    many = [event(number) for number in range(2500)]
    code, out, _ = command("-", "--max-body", "2000", stdin=json.dumps(many).encode())
    assert (code, out[:19]) == (0, "stored 2,500 events")
    assert stored(Path("openlineage_events")) == many


def test_many_refusals_are_counted(command: Command) -> None:
    code, out, err = command("-", stdin=b"nope\n" * 100)
    assert code == 1
    assert out.endswith("100 refused\n")
    assert err.count("\n") == 21
    assert err.endswith("dbt-ripple: and 80 more were refused\n")


def test_a_file_that_is_not_there(command: Command) -> None:
    code, out, err = command("gone")
    assert (code, out) == (2, "")
    assert err.startswith("dbt-ripple: gone: cannot be read (No such file or directory)")
    assert err.count("\n") == 1


@pytest.mark.parametrize(
    "arguments",
    [[], ["--serve", "events"], ["--serve", "--from-kafka", "t"], ["events", "--from-kafka", "t"]],
)
def test_files_or_serve(command: Command, arguments: list[str]) -> None:
    code, out, err = command(*arguments)
    assert (code, out) == (2, "")
    assert "name FILEs to read, --serve, or --from-kafka" in err


@pytest.mark.parametrize("option", [("--brokers", "b:1"), ("--until-end",)])
def test_options_of_kafka_alone(command: Command, option: tuple[str, ...]) -> None:
    code, out, err = command("events", *option)
    assert (code, out) == (2, "")
    assert "need --from-kafka" in err


def test_the_extra_is_missing(command: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    find = importlib.util.find_spec
    monkeypatch.setattr(
        importlib.util, "find_spec", lambda name: None if name == "uvicorn" else find(name)
    )
    code, out, err = command("--serve")
    assert (code, out) == (2, "")
    assert "uvicorn is not installed in this Python" in err
    # Each part by its name: nobody has to publish this package, and anyone may take its name.
    assert re.search(r'; run `pip install "jsonschema-rs\S+" .*"uvicorn\S+"`\n', err)
    assert "dbt-ripple[" not in err
    assert err.count("\n") == 1


def test_the_extra_of_kafka_is_missing(command: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    find = importlib.util.find_spec
    monkeypatch.setattr(
        importlib.util, "find_spec", lambda name: None if "kafka" in name else find(name)
    )
    code, out, err = command("--from-kafka", "t", "--brokers", "b:1")
    assert (code, out) == (2, "")
    assert re.search(r'; run `pip install "confluent-kafka\S+"`\n', err)


def test_nothing_else_imports_the_extra(tmp_path: Path) -> None:
    import subprocess

    from served_collector import PACKAGE

    modules = (
        "{'starlette', 'uvicorn', 'prometheus_client', 'jsonschema_rs', 'anyio', 'confluent_kafka'}"
    )
    for program in (
        "import dbt_ripple",
        "import dbt_ripple.cli.collect, dbt_ripple.cli.emit",
        "import sys; sys.argv = ['dbt-ripple', 'collect', '--help']; from dbt_ripple.cli import main\n"
        "try: main()\nexcept SystemExit: pass",
    ):
        check = f"{program}\nimport sys; assert not {modules} & sys.modules.keys()"
        subprocess.run(
            [sys.executable, "-c", check],
            check=True,
            env={"PYTHONPATH": str(PACKAGE)},
            cwd=tmp_path,
        )
