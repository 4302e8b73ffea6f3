"""Hostile names, every command, every format: as many lines, rows and names as with tame ones."""

from __future__ import annotations

import csv
import fnmatch
import json
import re
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from cli_shell import Done, Shell
from hostile import PARTS, hostile, unsafe
from hostile_project import COLUMNS, NODES, OTHERS, TESTS, Naming, unique_id, write
from hypothesis import HealthCheck, Phase, assume, example, given, settings
from markdown_it import MarkdownIt
from ruamel.yaml import YAML

from dbt_ripple.rendering.escaping import dbt_word, sarif_message, shown
from dbt_ripple.secrets import scrub

MARKDOWN = MarkdownIt("commonmark").enable(["table", "strikethrough"])

STATE = ("--state", "state")
COMMANDS: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "analyze": (("analyze", "--no-cache"), ("text", "json", "markdown")),
    "trace": (
        ("trace", "{s_raw}", "-d", "both", "--include-tests"),
        ("tree", "text", "json", "mermaid", "markdown"),
    ),
    "trace a column": (
        ("trace", "{m_stg}.{c_amount}", "-d", "both"),
        ("tree", "json", "mermaid", "markdown"),
    ),
    "select": (("select", *STATE), ("text", "json", "markdown")),
    "select --full": (("select", "--full", *STATE), ("text", "json", "markdown")),
    "explain": (("explain", "{t_below}", *STATE), ("text", "json", "markdown")),
    "explain what is not selected": (
        ("explain", "{t_unique}", *STATE),
        ("text", "json", "markdown"),
    ),
    "explain a relation": (("explain", "{m_stg}", *STATE), ("text", "json", "markdown")),
    "explain what is broken": (("explain", "{t_kind}", *STATE), ("text", "json", "markdown")),
    "diff": (("diff", *STATE), ("text", "json", "markdown")),
    "gate": (("gate", *STATE), ("text", "json", "markdown", "github", "sarif")),
    "gate --with select": (("gate", "--with", "select", *STATE), ("text", "json", "markdown")),
    "impact": (("impact", "{m_stg}", "--drop", "{c_amount}"), ("text", "json", "markdown")),
    "impact, two": (
        ("impact", "{m_stg}", "--rename", "{c_id}:{c_email}", "--retype", "{c_amount}:varchar"),
        ("text", "json", "markdown"),
    ),
    "incident": (("incident", "{t_unique}", *STATE), ("text", "json")),
    "incident of a column": (("incident", "{m_stg}.{c_amount}", *STATE), ("text", "json")),
    "impact, the node": (("impact", "{m_mart}", "--deprecate"), ("text", "json", "markdown")),
}
REFUSED: dict[str, tuple[str, ...]] = {
    "no such node": ("trace", "{m_stg}{m_fct}"),
    "no such column": ("trace", "{m_stg}.{c_total}"),
    "no such test": ("explain", "{m_stg}{m_fct}", *STATE),
    "no such state": ("select", "--state", "{m_stg}"),
    "no such project": ("select", "--project-dir", "{m_stg}", *STATE),
    "no such command": ("{m_stg}",),
    "no such option": ("select", "--{m_stg}"),
    "no such format": ("select", "--format", "{m_stg}"),
    "no such type": ("impact", "{m_stg}", "--retype", "{c_amount}:{c_new}"),
    "a bad rename": ("impact", "{m_stg}", "--rename", "{c_id}"),
    "a column for a node": ("impact", "{m_stg}.{c_id}", "--deprecate"),
}


def tame(name: str) -> str:
    return f"{name}/x"


def called(before: str, after: str) -> Naming:
    def name(of: str) -> str:
        if of.startswith(("owner", "tier")):
            return "o" + before + tame(of + after)  # spaces around it are not part of what is said
        if of not in COLUMNS:
            return before + tame(of + after)
        # A dot ends the name of a table where somebody writes TABLE.COLUMN; spaces around are none;
        # a sign in the beginning, or a dollar, may make it one that an engine knows by itself.
        return re.sub("[.$]", "", f"c{before}{of}{after}") + tame("")

    return name


class Worlds:
    """The same project with tame and with hostile names, and what each command says of both."""

    def __init__(self, shell: Shell, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.shell, self.folder, self._monkeypatch = shell, folder, monkeypatch
        self._tame: dict[tuple[str, ...], Done] = {}

    def run(self, name: Naming, command: tuple[str, ...]) -> Done:
        folder = self.folder / ("tame" if name is tame else "hostile")
        self._monkeypatch.chdir(folder)
        value_of = {part: name(part) for part in COLUMNS}
        value_of |= {part: unique_id(part, name) for part in (*NODES, *TESTS)}
        words = [re.sub(r"\{(\w+)\}", lambda match: value_of[match[1]], word) for word in command]
        return self.shell(*words)

    def both(self, name: Naming, *command: str) -> tuple[Done, Done]:
        if command not in self._tame:
            self._tame[command] = self.run(tame, command)
        hostile, tamed = self.run(name, command), self._tame[command]
        for printed in (hostile.out, hostile.err, tamed.out, tamed.err):
            assert not unsafe(printed)
            for line in printed.splitlines():
                assert not re.search(r"##\w*\[", line), line
                assert "github" in command or not line.lstrip().startswith("::"), line
        assert (hostile.code, tamed.code) == (tamed.code, hostile.code), hostile.err + tamed.err
        assert hostile.err.count("\n") == tamed.err.count("\n"), (hostile.err, tamed.err)
        return hostile, tamed


@pytest.fixture
def worlds(shell: Shell, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Worlds:
    monkeypatch.setenv("DBT_RIPPLE_CACHE_DIR", str(tmp_path / "cache"))
    return Worlds(shell, tmp_path, monkeypatch)


def same_lines(hostile: str, tamed: str) -> None:
    assert len(hostile.split("\n")) == len(tamed.split("\n")), f"{hostile}\n---\n{tamed}"


def tokens(markdown: str) -> Counter[str]:
    """What a page is made of; a name is code, however it is written."""
    kinds: Counter[str] = Counter()
    for token in MARKDOWN.parse(markdown):
        kinds[token.type] += 1
        if token.type == "html_block":
            kinds |= Counter(re.findall(r"</?\w+|<!--", token.content))
            continue
        for child in token.children or ():
            kind = child.type
            if kind == "html_inline":
                kind = "code_inline" if child.content == "<code>" else ""
                kind = kind or ("" if child.content == "</code>" else child.content)
            if kind and not kind.startswith("text"):
                kinds[kind] += 1
        if token.type == "fence":
            kinds[f"fence {token.info} of {token.content.count(chr(10))}"] += 1
    return kinds


def same_page(hostile: str, tamed: str) -> None:
    same_lines(hostile, tamed)
    assert tokens(hostile) == tokens(tamed), hostile
    # A backtick that is escaped begins no code.
    prose = re.sub(r"^ *(`{3,})[^`\n]*\n.*?^ *\1`*$", "", hostile, flags=re.S | re.M)
    prose = re.sub(r"(?<!\\)`[^`]*`", "", prose, flags=re.S)
    assert not re.search(r"(?<![`\w])@\w", prose)


def addressed(document: Any) -> Any:
    """A document without the ways to reach an owner: an owner with an @ is an address."""
    if isinstance(document, dict):
        # A name with a line feed divides the lines of code that differ: there are other causes.
        ways = (
            "owner_name",
            "owner_email",
            "edited",
            *(["causes"] if document.keys() & {"opaque", "findings", "broken"} else []),
        )
        return {key: addressed(value) for key, value in document.items() if key not in ways}
    return [addressed(item) for item in document] if isinstance(document, list) else document


def same_document(name: Naming) -> Callable[[str, str], None]:
    """The hostile document is the tame one, with its names in place of the tame ones."""
    parts = [*COLUMNS, *NODES, *TESTS, *OTHERS, "folder", "said", "src", "macro_a"]

    def check(hostile: str, tamed: str) -> None:
        found_document, expected = addressed(json.loads(hostile)), addressed(json.loads(tamed))
        same_lines(json.dumps(found_document, indent=2), json.dumps(expected, indent=2))
        shapes = [Counter(shape(document)) for document in (found_document, expected)]
        assert shapes[0] == shapes[1]
        strings = " ".join(texts(found_document))
        # The text near a syntax error is cut after some letters.
        names = re.sub(r"near `[^`]*`", "", " ".join(texts(expected)))
        for part in parts:
            if tame(part) in names:
                assert name(part) in strings or shown_in(name(part), strings), part

    return check


def shown_in(name: str, text: str) -> bool:
    """Whether a message quotes a name as SQL does, as a message does, or in one line."""
    ways = (
        shown(name),
        shown(" ".join(name.split())),
        sarif_message(name),
        name.replace('"', '""'),
        repr(name)[1:-1],
        name,
    )
    in_one_line = " ".join(text.split())
    return any(way in text or " ".join(way.split()) in in_one_line for way in ways)


def shape(document: Any, at: str = "") -> list[str]:
    if isinstance(document, dict):
        if document and all(key.count(".") > 1 for key in document):  # by unique_id
            return [at, *(line for value in document.values() for line in shape(value, f"{at}.id"))]
        return [
            at,
            *(line for key, value in document.items() for line in shape(value, f"{at}.{key}")),
        ]
    if isinstance(document, list):
        return [at, *(line for value in document for line in shape(value, f"{at}[]"))]
    return [f"{at} {type(document).__name__}"]


def texts(document: Any) -> list[str]:
    if isinstance(document, dict):
        return [t for key, value in document.items() for t in (key, *texts(value))]
    if isinstance(document, list):
        return [t for value in document for t in texts(value)]
    return [document] if isinstance(document, str) else []


def check_all(worlds: Worlds, before: str, after: str) -> None:
    name = called(before, after)
    write(worlds.folder / "hostile", name)
    write(worlds.folder / "tame", tame)
    checks = {"json": same_document(name), "markdown": same_page}
    checks["sarif"] = checks["json"]
    for command, styles in COMMANDS.values():
        if ":" in name("x") and any("}:" in word for word in command):
            continue  # a colon ends the column on a command line
        for style in styles:
            hostile, tamed = worlds.both(name, *command, "--format", style)
            assert tamed.out, (command, tamed.err)
            checks.get(style, same_lines)(hostile.out, tamed.out)
            if style == "github":
                assert all(
                    re.match("::(error|warning|notice) ", x) for x in hostile.out.splitlines()
                )
            if style == "mermaid":
                assert [re.sub('".*"', '""', line) for line in hostile.out.splitlines()] == [
                    re.sub('".*"', '""', line) for line in tamed.out.splitlines()
                ]
    hostile, tamed = worlds.both(name, "select", *STATE, "--output", "names")
    same_lines(hostile.out, tamed.out)
    assert len(hostile.out.split()) == len(tamed.out.split())
    assert {word.rpartition(".")[2] for word in hostile.out.split()} <= {
        dbt_word(name(part)).rpartition(".")[2] for part in (*NODES, *TESTS)
    }
    for command in REFUSED.values():
        if "\0" in name("x") and any("m_stg" in w for w in command[2:]):
            continue  # no command line can hold it
        hostile, tamed = worlds.both(name, *command)
        assert (hostile.code, hostile.out) == (2, "")
        assert hostile.err.count("\n") == 1


EVERYTHING = [
    pytest.param("".join(PARTS[start : start + 12]), id=f"parts {start}")
    for start in range(0, len(PARTS), 12)
]


@pytest.mark.parametrize("text", EVERYTHING)
def test_names_with_all_of_it_inside(worlds: Worlds, text: str) -> None:
    check_all(worlds, "", text)


@pytest.mark.parametrize(
    "text", ["::error::", "##[error]", "@everyone ", "# ", "\n", "\x1b[2J", "| ", "<!--", "\u202e"]
)
def test_names_that_begin_with_it(worlds: Worlds, text: str) -> None:
    check_all(worlds, text, "")


@pytest.mark.slow
@settings(
    max_examples=10,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
    # An example takes a second: making a failing one shorter would take minutes.
    phases=[Phase.explicit, Phase.reuse, Phase.generate],
)
@given(hostile, hostile)
@example("{0}\\`@org/team", "\n\n\n")
@example("\U000e0041```", "@everyone")
@example("\n", "```@everyone")
def test_names_of_any_hostile_parts(worlds: Worlds, before: str, after: str) -> None:
    name = called(before, after)("m_a")
    assume(scrub(name) == name)  # what may be a password in an address is never shown
    check_all(worlds, before, after)


@pytest.mark.parametrize("text", EVERYTHING)
def test_files_hold_the_real_names(worlds: Worlds, text: str) -> None:
    name = called("", text)
    write(worlds.folder / "hostile", name)
    ids = {unique_id(node, name) for node in NODES}
    for suffix in ("csv", "jsonl", "parquet"):
        done = worlds.run(name, ("analyze", "--edges", f"edges.{suffix}"))
        assert done.code == 0 and not unsafe(done.out + done.err)
    path = worlds.folder / "hostile" / "edges"
    with path.with_suffix(".csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    with path.with_suffix(".jsonl").open(encoding="utf-8") as file:
        lines = [json.loads(line) for line in file]
    assert [row["parent_id"] for row in rows] == [line["parent_id"] for line in lines]
    assert len(ids & {row["parent_id"] for row in rows}) >= 3
    columns = {name(column) for column in COLUMNS}
    assert len(columns & {row["child_column"] for row in rows}) >= 3


@pytest.mark.parametrize("text", EVERYTHING)
def test_a_selector_holds_one_name_as_one_name(worlds: Worlds, text: str) -> None:
    name = called("", text)
    write(worlds.folder / "hostile", name)
    done = worlds.run(name, ("select", *STATE, "--output", "selector"))
    assert (done.code, done.out) == (0, "dbt_ripple\n")
    content = (worlds.folder / "hostile" / "selectors.yml").read_text(encoding="utf-8")
    assert not unsafe(content)
    [selector] = YAML(typ="safe").load(content)["selectors"]
    chosen = worlds.run(name, ("select", *STATE, "--output", "names")).out.split()
    assert len(selector["definition"]["union"]) == len(chosen) > 3
    for entry in selector["definition"]["union"]:
        value = entry.get("value") or entry["intersection"][0]["value"]
        assert any(fnmatch.fnmatchcase(f"shop.{name('folder')}.{name(n)}", value) for n in ALL)
        assert not set("*[]") & set(value)


ALL = (*NODES, *TESTS)


@pytest.mark.parametrize("text", ["\ud800", "\udc80x", "🙂\ud83d", "\ud83d\ud83d"])
def test_halves_of_characters_are_shown(worlds: Worlds, text: str) -> None:
    write(worlds.folder / "hostile", called("", text))
    name = called("", re.sub("[\ud800-\udfff]", lambda half: f"\\u{ord(half[0]):04x}", text))
    for command in (("select", *STATE), ("analyze",), ("gate", *STATE), ("trace", "{m_stg}")):
        done = worlds.run(name, command)
        assert done.code in (0, 1) and not unsafe(done.out + done.err)
        assert command == ("analyze",) or name("m_stg") in done.out


@pytest.mark.parametrize("text", EVERYTHING)
def test_the_first_ripple_yml_is_yaml(worlds: Worlds, text: str) -> None:
    name = called("", text)
    write(worlds.folder / "hostile", name)
    done = worlds.run(name, ("gate", "--init"))
    assert done.code == 0 and not unsafe(done.out + done.err), done.err
    content = (worlds.folder / "hostile" / "ripple.yml").read_text(encoding="utf-8")
    assert not unsafe(content)
    read = YAML(typ="safe").load(content)
    assert set(read or ()) <= {"rules", "exceptions"}
    assert worlds.run(name, ("gate", *STATE)).code in (0, 1)
