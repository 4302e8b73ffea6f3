"""What is made of a text is kept by the text, and by all that it follows from."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from dbt_ripple.graph import cache
from dbt_ripple.graph.cache import Cache
from dbt_ripple.jinja import kept
from dbt_ripple.jinja.facts import Facts, facts_without


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Cache]:
    with Cache(tmp_path) as made:
        kept.keep_in(made)
        yield made
    kept._stores.clear()


def facts_kept(text: str, made: list[str]) -> Facts:
    """The facts of a text, as another process would find them."""

    def facts(text: str) -> Facts:
        made.append(text)
        return facts_without(text, lambda _: False)

    return kept.kept(Facts)(facts)(text)


def test_a_text_is_read_once_in_all_processes(store: Cache) -> None:
    made: list[str] = []
    first = facts_kept("{{ f(x['a']) }}", made)
    assert facts_kept("{{ f(x['a']) }}", made) == first
    assert facts_kept("{{ f(x['b']) }}", made) != first
    assert made == ["{{ f(x['a']) }}", "{{ f(x['b']) }}"]


def test_half_of_a_letter_is_not_kept_and_stops_nothing(store: Cache) -> None:
    made: list[str] = []
    text = "{{ f('\ud800') }}"
    assert facts_kept(text, made).strings == {"\ud800"}
    facts_kept(text, made)
    assert made == [text, text]


@pytest.mark.parametrize(
    ("name", "counts"), [("known_hooks.json", True), ("hooks.py", True), ("hooks.pyc", False)]
)
def test_what_is_known_of_packages_is_part_of_the_key(
    monkeypatch: pytest.MonkeyPatch, name: str, counts: bool
) -> None:
    read = Path.read_bytes
    before = cache.engine.__wrapped__()
    monkeypatch.setattr(Path, "read_bytes", lambda p: read(p) + (b" " if p.name == name else b""))
    assert (cache.engine.__wrapped__() != before) == counts
