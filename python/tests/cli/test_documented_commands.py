"""Every command line of the docs names commands and options that exist."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from dbt_ripple.cli import cli

ROOT = Path(__file__).parents[3]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]


def command_lines(text: str) -> Iterator[str]:
    """What stands behind `dbt-ripple` in code, in a block or in a sentence."""
    text = re.sub(r"\\\n\s*", " ", text)
    blocks = re.findall(r"^```\w*\n(.*?)^```", text, re.S | re.M)
    blocks += re.findall(r"^(?: {4}.*\n)+", text, re.M)
    for block in blocks:
        yield from re.findall(r"(?:^|[\s$(=])dbt-ripple ([a-z-].*)", block)
    prose = re.sub(r"^```\w*\n.*?^```", "", text, flags=re.S | re.M)
    for code in re.findall(r"`([^`]+)`", prose):
        if re.match(r"dbt-ripple [a-z-]", code):
            yield " ".join(code.removeprefix("dbt-ripple ").split())


def problems(line: str) -> Iterator[str]:
    """Commands and options of a command line that dbt-ripple does not have."""
    line = re.split(r"\s(?:[|>&;]|\d?>|#|\\|\|\|)|[;)`]", f"{line} ")[0]
    try:
        words = shlex.split(line)
    except ValueError:
        words = line.split()
    if words and words[0].startswith("-"):
        command: click.Command = cli
    elif (subcommand := cli.get_command(click.Context(cli), words[0])) is None:
        yield f"no command {words[0]}"
        return
    else:
        command = subcommand
    options = {"--help", "--help-all", "-h"}
    for parameter in (*command.params, *cli.params):
        options.update(parameter.opts, parameter.secondary_opts)
    for word in words:
        if word == "--":  # what follows is a command of dbt's
            break
        option = word.partition("=")[0]
        if re.match(r"--?[a-z]", option) and option not in options:
            yield f"{command.name} has no option {option}"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_commands_and_options_exist(page: Path) -> None:
    problems_of = {
        line: wrong
        for line in command_lines(page.read_text(encoding="utf-8"))
        if (wrong := list(problems(line)))
    }
    assert not problems_of


def test_the_docs_are_read() -> None:
    lines = [line for page in PAGES for line in command_lines(page.read_text(encoding="utf-8"))]
    assert len(lines) > 50


@pytest.mark.parametrize(
    ("line", "wrong"),
    [
        ("select --sate x", ["select has no option --sate"]),
        ("slect", ["no command slect"]),
        ("gate --state prod --format markdown > c.md || code=$?", []),
        ("impact orders --rename a:b --drop c", []),
        ("emit --folow -- build --select x", ["emit has no option --folow"]),
    ],
)
def test_what_does_not_exist_is_found(line: str, wrong: list[str]) -> None:
    assert list(problems(line)) == wrong
