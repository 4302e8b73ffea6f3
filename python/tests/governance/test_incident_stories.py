"""The stories of docs/incident-stories.md: each command there, and what it prints."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from stories_project import compiled
from twin_project import Command

REPOSITORY = Path(__file__).parents[3]
PAGE = REPOSITORY / "docs" / "incident-stories.md"
SHOWN = re.findall(r"```console\n\$ dbt-ripple ([^\n]*)\n(.*?)```", PAGE.read_text(), re.S)


@pytest.fixture(scope="module")
def stories(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The project, compiled; `last-good` is as it was before customers_clean was edited."""
    pytest.importorskip("dbt.adapters.duckdb")
    return compiled(tmp_path_factory.mktemp("stories"))


def lasting(text: str) -> str:
    """Without the number of days until a date, which is another one every day."""
    return re.sub(r"[\d,]+ days", "N days", text)


@pytest.mark.parametrize(("line", "shown"), SHOWN, ids=[line for line, _ in SHOWN])
def test_the_page_has_what_is_answered(
    stories: Path, command: Command, line: str, shown: str
) -> None:
    target = "edited" if line.startswith("gate") else "last-good"
    _, out, _ = command(*line.split(), "--project-dir", stories, "--target-path", target)
    assert out and lasting(out) == lasting(shown)


def test_the_stories_are_read() -> None:
    assert len(SHOWN) >= 9
