"""Where tags of Jinja begin and end: Jinja's own lexer is the oracle."""

from __future__ import annotations

import random

import jinja2
import pytest

from dbt_ripple.graph.jinja import branches, normalised, normalised_macro, tagged, tags


def by_jinja(text: str) -> list[str] | None:
    """The insides of all tags, as Jinja's lexer finds them; None where it refuses the text."""
    pieces: list[str] = []
    inside = False
    try:
        for _, kind, value in jinja2.Environment().lex(text):
            if kind in ("variable_begin", "block_begin"):
                pieces.append("")
                inside = True
            elif kind in ("variable_end", "block_end"):
                inside = False
            elif inside:
                pieces[-1] += value
    except jinja2.TemplateSyntaxError:
        return None
    return None if inside else pieces


@pytest.mark.parametrize(
    "text",
    [
        "{{ f('}}') ~ g() }}",
        '{{ f("%}") }} {% set a = "%}" ~ h() %} {{ b }}',
        "{{ {'a': {'b': 1}} }} {{ c }}",
        "{{ [{'a': 1}][0]['a'] }}",
        "{{ '{#' }} {{ hidden() }} {{ '#}' }}",
        "{# {{ no() }} #}{{ yes() }}",
        "{% raw %}{{ it's }}{% endraw %}{{ yes() }}",
        "{%- if a -%} {{- b -}} {%+ endif +%}",
        r"{{ 'it\'s }}' }} {{ b }}",
        "it's {{ a }} isn't {{ b }}",
        "{{ '\n}}\n' }}",
    ],
)
def test_tags_end_where_jinja_ends_them(text: str) -> None:
    expected = by_jinja(text)
    assert expected is not None
    assert tags(text) == expected


def test_tags_of_random_texts_end_where_jinja_ends_them() -> None:
    words = ["{{", "}}", "{%", "%}", "{#", "#}", "'", '"', "{", "}", "(", ")", "[", "]", "\\", "-"]
    words += [
        "a",
        " ",
        "\n",
        "f(",
        "if ",
        "{% raw %}",
        "{% endraw %}",
        "'}}'",
        '"%}"',
        "b",
        "{{ x }}",
    ]
    rng = random.Random(7)
    compared = 0
    for _ in range(60_000):
        text = "".join(rng.choices(words, k=rng.randint(1, 14)))
        expected = by_jinja(text)
        if expected is None or not expected:
            continue
        compared += 1
        # Jinja takes a `-` before the end for its sign of white space control, as we do.
        assert [t.strip() for t in tags(text)] == [t.strip() for t in expected], text
    assert compared > 2_000


def test_a_tag_that_does_not_end_goes_to_the_end() -> None:
    assert tags("a {{ f('x }} {{ g() }}") == [" f('x }} {{ g() }}"]


def test_tags_say_where_they_stand() -> None:
    text = "a {{ b }}{% c %}"
    assert [text[t.start : t.end] for t in tagged(text)] == ["{{ b }}", "{% c %}"]


def test_a_branch_goes_to_the_end_of_its_last_tag() -> None:
    text = "{% set a = '%}' ~ b %} {% if is_incremental() %} x = {{ '{% endif %}' }} {% endif %} c"
    assert branches(text) == [
        "{% set a = '%}' ~ b %}",
        "{% if is_incremental() %} x = {{ '{% endif %}' }} {% endif %}",
    ]


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("select 1 -- a\n, 'x  y'", "select   1,\n'x  y' /* b */"),
        ("{% set x = 1 -- 2 %}", "{%   set x\n= 1 -- 2 %}"),
        ("delete from {{ this }} {# all #}", "delete  from\n{{   this }}"),
        ("a {#- b #} c", "a c"),
    ],
)
def test_layout_and_comments_are_not_compared(one: str, other: str) -> None:
    def plain(text: str) -> str:
        return normalised(text).replace(" ,", ",")

    assert plain(one) == plain(other)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("select 'x  y'", "select 'x y'"),
        ("select '{{ a }}  {{ b }}'", "select '{{ a }} {{ b }}'"),
        ("select '{{ f(\"'\") }}  y'", "select '{{ f(\"'\") }} y'"),
        ("{% set x = 1 -- 2 %}", "{% set x = 1 -- 3 %}"),  # no comment in Jinja
        ("{% set x = a /* b */ %}", "{% set x = a %}"),
        (r"select '\' || '--x'", r"select '\' || '--y'"),  # where a backslash is a letter
        ("select $$ -- a $$", "select $$ -- b $$"),
        ("select '''a -- b", "select '''a -- c"),
        ("select 1 # it's\n, 'a  b'", "select 1 # it's\n, 'a b'"),
        ("-- {{ two_lines() }} 'a  b'", "-- {{ two_lines() }} 'a b'"),
        ("/* a /* b */ 'c  d' */", "/* a /* b */ 'c d' */"),
        ("tbl_{{ x }}", "tbl_ {{ x }}"),
        ("tbl_ {{- x }}", "tbl_ {{ x }}"),
        ("{% raw %}a  b{% endraw %}", "{% raw %}a b{% endraw %}"),
        ("select /*+ broadcast(a) */ 1", "select 1"),
    ],
)
def test_what_can_be_data_is_compared(one: str, other: str) -> None:
    assert normalised(one) != normalised(other)


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("{% macro m() %}a  b{% endmacro %}", "{% macro m() %}a b{% endmacro %}", False),
        ("{% macro m() %} a{% endmacro %}", "{% macro m() -%} a{% endmacro %}", False),
        ("{% macro m() %}a{# b #}{% endmacro %}", "{% macro m() %}a{% endmacro %}", True),
        ("{% macro m() %}a {#- b #}{% endmacro %}", "{% macro m() %}a {% endmacro %}", False),
        (
            "{% macro m() %}delete  from t{% endmacro %}",
            "{% macro m() %}delete from t{% endmacro %}",
            True,
        ),
        (
            "{% macro m() %}delete 'a  b'{% endmacro %}",
            "{% macro m() %}delete 'a b'{% endmacro %}",
            False,
        ),
        (
            "{% macro m() %} {{ return(1) }}{% endmacro %}",
            "{% macro m() %}\n\n{{ return(1) }}{% endmacro %}",
            True,
        ),
    ],
)
def test_what_a_macro_writes_may_stand_in_a_literal(one: str, other: str, same: bool) -> None:
    assert (normalised_macro(one) == normalised_macro(other)) == same


def test_a_branch_in_a_literal_or_a_comment() -> None:
    def only(text: str) -> list[str]:
        return branches(text)

    asked = "{% if is_incremental() %}a  b{% endif %}"
    assert only(f"select '{asked}'") == [asked]
    assert only(f"select 1 -- {asked}") != only(f"select 1 --\n {asked}")
    assert only(f"select 1, {asked}") == ["{% if is_incremental() %}a b{% endif %}"]
