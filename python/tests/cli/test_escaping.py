"""What any text becomes in each rendering: itself, visibly, and nothing more."""

from __future__ import annotations

import fnmatch
import json
import re

import pytest
from hostile import PARTS, SURROGATES, hostile, unsafe
from hypothesis import example, given, settings
from markdown_it import MarkdownIt

from dbt_ripple.rendering import escaping as s

MARKDOWN = MarkdownIt("commonmark").enable(["table", "strikethrough"])


def texts(markdown: str) -> tuple[str, set[str]]:
    """What a reader of some Markdown sees of its text, and the kinds of token it is made of."""
    seen, kinds = "", set()
    for token in MARKDOWN.parse(markdown):
        kinds.add(token.type)
        for child in token.children or ():
            kinds.add(child.type)
            # An entity is text; in `<code>` it is between two tags.
            seen += child.content if child.type in ("text", "text_special", "code_inline") else ""
    return seen.replace("\u200b", ""), kinds


@settings(deadline=None)
@given(hostile)
def test_nothing_unseen_is_left_and_a_line_stays_a_line(text: str) -> None:
    for rendered in (
        *(
            s.shown(text),
            s.line(text),
            s.code(text),
            s.prose(text),
            s.markup(text),
            s.mermaid(text),
        ),
        *(s.workflow_command("error", text, file=text), s.sarif_message(text), s.dbt_word(text)),
        *(s.json_text(text), *s.wrapped(text * 9, 40), s.cut(text * 9, 40)),
    ):
        assert not unsafe(rendered)
        assert "\n" not in rendered


def test_what_can_be_seen_stays_as_it_is() -> None:
    for text in ("fct_orders", "naïve straße", "日本語", "a\\b", "🙂", "❤️", "sum(`a`) over ()"):
        assert s.shown(text) == s.line(text) == text


@pytest.mark.parametrize("text", SURROGATES)
def test_a_lone_surrogate_is_shown(text: str) -> None:
    assert s.line(f"a{text}") == f"a\\u{ord(text):04x}"
    assert json.loads(s.json_text({"a": [text]})) == {"a": [text]}
    assert s.json_text(text).isascii()


@settings(deadline=None)
@given(hostile)
def test_json_is_read_back_as_it_was(text: str) -> None:
    assert json.loads(s.json_text({text: [text, {"x": text}]})) == {text: [text, {"x": text}]}
    assert "##[" not in s.json_text(text)


PLACES = {
    "{}": "",
    "- {}": "",
    "x: {}": "x: ",
    "### x: {}": "x: ",
    "| head |\n| - |\n| {} |": "head",
}
OF_PLACES = {
    *("heading_open", "heading_close"),
    *("paragraph_open", "paragraph_close", "inline", "text", "text_special"),
    *("bullet_list_open", "bullet_list_close", "list_item_open", "list_item_close"),
    *(f"{x}_open" for x in ("table", "thead", "tbody", "tr", "th", "td")),
    *(f"{x}_close" for x in ("table", "thead", "tbody", "tr", "th", "td")),
}


@settings(deadline=None)
@given(hostile)
def test_a_name_is_code_wherever_it_stands_in_markdown(name: str) -> None:
    for place, before in PLACES.items():
        seen, kinds = texts(place.format(s.code(name)))
        assert seen == before + s.shown(name)
        assert kinds - OF_PLACES in ({"code_inline"}, {"html_inline"})
        if "html_inline" in kinds:
            assert re.fullmatch("<code>(&#\\d+;|[^\\W_]|[^\x00-\x7f])*</code>", s.code(name))


@pytest.mark.parametrize("rendered", [s.code("a@b.co|x"), s.markup("a@b.co"), s.prose("a@b.co")])
def test_an_address_is_no_link(rendered: str) -> None:
    """GitHub links what looks like one in the text it has made, where entities are characters."""
    assert re.search("(@|&#64;)&#8203;", rendered)


def test_a_heading_keeps_its_last_sign() -> None:
    assert texts(f"### x {s.prose('in C #')}")[0] == "x in C #"


@settings(deadline=None)
@given(hostile)
def test_prose_has_no_markup_and_calls_nobody(text: str) -> None:
    for place, before in PLACES.items():
        seen, kinds = texts(place.format(s.prose(text)))
        assert seen == before + s.shown(text)
        assert kinds <= OF_PLACES
    entities = re.sub(r"&#\d+;", "&", s.prose(text))
    assert not re.search(r"@\w|#\d|gh-\d|://|www\.|:\w+:", entities, re.IGNORECASE)


@settings(deadline=None)
@given(hostile)
def test_markup_is_text_in_html_and_in_markdown(text: str) -> None:
    import html

    assert html.unescape(s.markup(text)).replace("\u200b", "") == s.shown(text)
    assert texts(f"x {s.markup(text)}x")[0] == f"x {s.shown(text)}x"


@settings(deadline=None)
@given(hostile)
@example("::error::x")
@example("##[error]x")
@example("##vso[task.x]")
def test_no_line_is_a_command_to_a_log(text: str) -> None:
    for styled_text in (text, f"  {text}", s.styled(text, "red"), f" {s.styled(text)}"):
        printed = s.line(styled_text)
        assert not printed.lstrip().startswith("::")
        assert not re.search(r"##\w*\[", printed)


@pytest.mark.parametrize("indent", ["", " ", "    "])
def test_a_command_to_a_log_is_shown_wherever_a_line_begins_with_it(indent: str) -> None:
    assert s.line(f"{indent}::error::x").endswith("\\x3a:error::x")
    assert s.line(f"{indent}a ::error::x").endswith("a ::error::x")


@settings(deadline=None)
@given(hostile)
def test_a_workflow_command_says_what_it_was_given(text: str) -> None:
    command = s.workflow_command("error", text, file=text, line=1)
    match = re.fullmatch(r"::error file=([^,:]*),line=1::(.*)", command)
    assert match

    def read(part: str) -> str:
        for code, char in (("%3A", ":"), ("%2C", ","), ("%25", "%")):
            part = part.replace(code, char)
        return part

    assert read(match[1]) == s.shown(text)
    assert match[2].replace("%25", "%") == s.shown(text)


def test_only_styled_makes_colours() -> None:
    text = s.styled("re\x1b[1md", "red", bold=True) + " \x1b[31mplain\x1b[0m"
    assert s.line(text, colours=True) == ("\x1b[1;31mre\\x1b[1md\x1b[0m \\x1b[31mplain\\x1b[0m")
    assert s.line(text) == "re\\x1b[1md \\x1b[31mplain\\x1b[0m"


@settings(deadline=None)
@given(hostile)
def test_a_word_of_dbt_matches_the_name_it_stands_for(name: str) -> None:
    word = s.dbt_word(name)
    assert not word.split()[1:] and word == word.strip() and word
    assert fnmatch.fnmatchcase(name, word)
    assert not set(word) & set(",:@+*[]") and not word.startswith("-")


def test_plain_names_are_words_of_dbt() -> None:
    for name in ("fct_orders", "not_null_a.b", "straße", "a-b", "v1.2"):
        assert s.dbt_word(name) == name


@settings(deadline=None)
@given(hostile)
def test_wrapping_loses_nothing_and_keeps_to_the_width(text: str) -> None:
    long = f"  {s.styled('name', 'cyan')}: " + f"{text} and more " * 8
    lines = list(s.wrapped(long, 40))
    assert all(s.columns(printed) <= 40 for printed in lines)
    assert "".join(lines).replace(" ", "") == s.line(long).replace(" ", "")
    assert all(printed.startswith(" " * 6) for printed in lines[1:])
    assert s.columns(s.cut(long, 40)) <= 40 and s.cut(long, 40).endswith("…")


def test_what_fits_is_not_wrapped() -> None:
    assert list(s.wrapped("a b", 80)) == ["a b"] == [s.cut("a b", 80)]


def test_every_part_is_tried() -> None:
    assert {"\n", "\x1b", "\u202e", "@everyone", "::error::x"} <= set(PARTS)


def test_everything_is_printed_through_the_gate() -> None:
    """A command that printed by itself would send what it was told."""
    import ast
    from pathlib import Path

    import dbt_ripple

    gates = {"rendering/output.py": ["complain", "answer"], "cli/__init__.py": ["main"]}
    folder = Path(dbt_ripple.__file__).parent
    for path in folder.rglob("*.py"):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        printing = [
            function.name
            for function in ast.walk(tree)
            if isinstance(function, ast.FunctionDef)
            for call in ast.walk(function)
            if isinstance(call, ast.Call)
            and ast.unparse(call.func)
            in ("print", "click.echo", "click.secho", "click.style", "sys.stdout.write")
        ]
        assert printing == gates.get(path.relative_to(folder).as_posix(), []), path
