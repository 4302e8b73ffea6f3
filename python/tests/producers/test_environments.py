"""A program that cannot be had gives a reason, with which the tests skip."""

from __future__ import annotations

from pathlib import Path

import pytest
from real_programs import environments
from real_programs.environments import Unavailable, jars, postgres_programs, python_with


@pytest.fixture(autouse=True)
def nothing_is_there(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(environments, "CACHE", tmp_path / "cache")
    monkeypatch.setattr(environments, "POSTGRES", tmp_path / "postgresql")
    monkeypatch.setenv("PATH", str(tmp_path))


def test_no_maven() -> None:
    with pytest.raises(Unavailable, match="mvn is not installed"):
        jars("kafka", ("org.apache.kafka:kafka_2.13:4.3.1",))


def test_no_postgres() -> None:
    with pytest.raises(Unavailable, match=r"PostgreSQL.s server .* is not installed"):
        postgres_programs()


def test_what_cannot_be_installed(tmp_path: Path) -> None:
    """The installer's own words are the reason, and the next run tries again."""
    for _ in range(2):
        with pytest.raises(Unavailable, match=r"nothing could not be installed: .*not-there"):
            python_with("nothing", (str(tmp_path / "not-there"),))


def test_what_was_made_is_kept() -> None:
    first = python_with("empty", ())
    assert python_with("empty", ()) == first
    assert (first / "python").exists()
