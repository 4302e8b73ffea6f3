"""What `--help` shows: commands by question, and the options that most commands have behind one line."""

from __future__ import annotations

import re

import click
import pytest
from click.testing import CliRunner

from dbt_ripple.cli import COMMANDS, GROUPS, cli
from dbt_ripple.cli.options import SHARED


def printed(*arguments: str) -> str:
    done = CliRunner().invoke(cli, arguments)
    assert done.exit_code == 0, done.output
    return done.output


def command_of(name: str) -> click.Command:
    command = cli.get_command(click.Context(cli), name)
    assert command is not None
    return command


def test_commands_are_grouped_by_question() -> None:
    shown = re.findall(r"^(\S.*):$|^  (\w+)  ", printed("--help"), re.M)
    sections = [title or name for title, name in shown]
    start = sections.index(next(iter(GROUPS)))
    expected = [word for title, commands in GROUPS.items() for word in (title, *commands)]
    assert sections[start : start + len(expected)] == expected
    assert len(GROUPS) == 5
    assert "dbt-ripple explorer " in printed("--help")


@pytest.mark.parametrize("name", COMMANDS)
def test_every_option_is_explained_once(name: str) -> None:
    options = [p for p in command_of(name).params if isinstance(p, click.Option) and not p.hidden]
    short, full = (
        printed(name, flag).partition("\nOptions:\n")[2] for flag in ("--help", "--help-all")
    )
    of_all = " ".join(re.sub(r"-\n +", "-", short).split())
    for option in options:
        flag = max(option.opts, key=len)
        explained = re.compile(rf"^  (?:-\w, )?{flag}(?![\w-])", re.M)
        assert bool(explained.search(short)) is (option.name not in SHARED), flag
        assert len(explained.findall(full)) == 1, flag
        if option.name in SHARED:
            assert flag in of_all
    assert short.startswith("  -")
    assert "--help-all" in short
    assert "--help-all" not in full
    assert short.count("\n") <= full.count("\n")


def test_what_is_shared_says_the_same_of_each_command() -> None:
    said: dict[str, set[str]] = {}
    for name in COMMANDS:
        for param in command_of(name).params:
            if param.name in SHARED and param.name != "threads":
                assert isinstance(param, click.Option)
                said.setdefault(param.name, set()).add(param.help or "")
    assert {name for name, texts in said.items() if len(texts) > 1} == set()
