"""The gate's answers on the twins do not depend on the order of their artifacts."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from shuffling import shuffle_folder
from twin_project import Command

COMMANDS = [
    *(("gate", "--format", style) for style in ("text", "json", "markdown", "github", "sarif")),
    *(("select", "--format", style) for style in ("text", "json")),
    ("diff", "--format", "json"),
    ("impact", "raw_orders", "--drop", "order_total", "--format", "json"),
    ("trace", "fct_orders", "--format", "json"),
]


def test_shuffled_twins(
    twin: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: Command
) -> None:
    monkeypatch.chdir(tmp_path)

    def answers() -> list[tuple[int, str]]:
        answers_of_commands = []
        for name, *arguments in COMMANDS:
            state = () if name in ("impact", "trace") else ("--state", "state")
            answers_of_commands.append(command(name, *arguments, *state)[:2])
        return answers_of_commands

    expected: list[tuple[int, str]] = []
    for number in range(6):
        rng = random.Random(number)
        for side, kept in (("target", "bad"), ("state", "good")):
            (tmp_path / side).mkdir(exist_ok=True)
            shuffle_folder(tmp_path / side, twin / kept / "target", rng)
        expected = expected or answers()
        assert answers() == expected, number
