"""Texts of Jinja as people write them (`texts.yml`): what each calls, asks, reads and looks at."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import rendered_macros
import yaml
from hand_made import macro, node, project
from rendered_macros import compare

from dbt_ripple.graph.introspection import Introspection
from dbt_ripple.graph.macros import Macros
from dbt_ripple.jinja.facts import NOTHING, Facts, asks, asks_the_graph, facts_of
from dbt_ripple.jinja.reads import reads_of

TEXTS: list[dict[str, Any]] = yaml.safe_load(
    Path(__file__).with_name("texts.yml").read_text(encoding="utf-8")
)
ASKS = {
    "other runs": Facts.asks_whether_it_exists,
    "full refresh": Facts.asks_for_full_refresh,
    "command": Facts.asks_which_command,
}


def all_of(key: str) -> set[str]:
    return {name for said in TEXTS for name in said.get(key, ())}


MACROS = [macro(f"macro.p.{name}", "select 1") for name in sorted(all_of("calls") | all_of("not"))]
"""Whatever any of the texts may call."""


def told(text: str) -> dict[str, Any]:
    """What is found in a text, under the keys of `texts.yml`; what it does not do is left out."""
    facts, reads = facts_of(text), reads_of(text, {"persist_docs"})
    of = node("model.p.m", "select 1", raw=text)
    side = project(of, macros=MACROS)
    macros = Macros(side)
    looks = Introspection(side, macros).of(of)
    found: dict[str, Any] = {
        "calls": []
        if facts.calls_any_macro
        else sorted(u.removeprefix("macro.p.") for u in macros.named_in(text)),
        "any_macro": facts.calls_any_macro,
        "vars": sorted(facts.variables),
        "env": sorted(facts.environment),
        "asks": sorted(name for name, asks in ASKS.items() if asks(facts)),
        "reads": "everything"
        if reads.everything
        else sorted([*reads.names, *(f"{name}.{key}" for name, key in reads.parts)]),
        "graph": asks(text, asks_the_graph),
        "looks": looks.parts.name.lower(),
        "exist": looks.exist,
    }
    if found["graph"]:
        del found["reads"]  # every word of the text
    return {k: v for k, v in found.items() if v and v != "nothing"}


@pytest.mark.parametrize("said", TEXTS, ids=lambda said: said["name"])
def test_what_a_text_uses(said: dict[str, Any], request: pytest.FixtureRequest) -> None:
    if "wrong" in said:
        request.applymarker(pytest.mark.xfail(strict=True, reason=said["wrong"]))
    expected = {k: v for k, v in said.items() if k not in ("name", "text", "not", "wrong")}
    for name in ("calls", "vars", "env", "asks", "reads"):
        if isinstance(expected.get(name), list):
            expected[name] = sorted(expected[name])
    if expected.get("looks") == "nothing":
        del expected["looks"]
    assert told(said["text"]) == expected


def test_the_texts_are_many_and_each_says_what_stands_in_it() -> None:
    assert len(TEXTS) >= 60 and len({said["name"] for said in TEXTS}) == len(TEXTS)
    for said in TEXTS:
        for key in ("calls", "not", "vars", "env"):
            for name in said.get(key, ()):
                assert name == "*" or name in said["text"].replace("' '", ""), (said["name"], name)


def test_what_jinja_uses_of_them_is_told() -> None:
    """dbt's own Jinja renders them; what happens then is among the facts."""
    result = compare(((said["name"], said["text"]) for said in TEXTS), rounds=6)
    assert result.wrong == {}
    assert result.unreadable == 0 and result.rendered >= 55 and result.uses > 1_000, result


def test_what_is_not_told_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the facts said nothing, the comparison would find nearly every text."""
    monkeypatch.setattr(rendered_macros, "facts_of", lambda text: NOTHING)
    result = compare(((said["name"], said["text"]) for said in TEXTS), rounds=2)
    assert len(result.wrong) > 40
