"""docs/architecture.md: the rules that the code cites are there, and so are the files and tests it names."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[3]
TEXT = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
RULES = re.findall(r"^\| (\d+) \| .* \| (.*?) \|$", TEXT, re.M)


def cited() -> set[str]:
    numbers: set[str] = set()
    for path in (ROOT / "python" / "dbt_ripple").rglob("*.py"):
        for first, last, more in re.findall(
            r"\b[Rr]ules? (\d+)(?:-(\d+)|((?:(?:, | and )\d+)+))?", path.read_text(encoding="utf-8")
        ):
            numbers.update([first, *re.findall(r"\d+", more)])
            numbers.update(map(str, range(int(first), int(last or first) + 1)))
    return numbers


def test_every_rule_that_is_cited_is_written_down() -> None:
    numbers = [number for number, _ in RULES]
    assert numbers == [str(i) for i in range(1, 17)]
    assert len(cited()) > 10
    assert cited() <= set(numbers)


def test_the_tests_that_guard_a_rule_exist() -> None:
    for number, guard in RULES:
        path, _, name = guard.strip("`").partition("::")
        file = ROOT / "python" / "tests" / path
        assert file.is_file(), (number, path)
        wanted = f"def {name}(" if name else "def test_"
        assert wanted in file.read_text(encoding="utf-8"), (number, name)


def test_the_files_it_names_exist() -> None:
    named = re.findall(
        r"`((?:artifacts|flow|graph|changes|selection|governance|spark|rendering|dbt_runner|cli)/[\w/]+\.py)`",
        TEXT,
    )
    assert len(named) > 20
    for path in set(named) - {guard.strip("`") for _, guard in RULES}:
        assert (ROOT / "python" / "dbt_ripple" / path).is_file(), path


def test_each_question_names_one_place() -> None:
    section = TEXT.partition("## Which file to open\n")[2]
    rows = re.findall(r"^\| ([^|-][^|]*) \| ([^|]*) \| ([^|]*) \|$", section, re.M)[1:]
    assert len(rows) >= 6
    for question, place, _ in rows:
        named = re.fullmatch(r"`([\w/.]+)`", place)
        assert named is not None, question
        assert (ROOT / "python" / "dbt_ripple" / named[1]).exists(), (question, place)
