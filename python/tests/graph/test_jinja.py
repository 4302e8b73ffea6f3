"""Where tags of Jinja begin and end: Jinja's own lexer is the oracle."""

from __future__ import annotations

import random

import jinja2
import pytest

from dbt_ripple.graph.jinja import branches, tagged, tags


def by_jinja(text: str) -> list[str] | None:
    """The insides of all tags, as Jinja's lexer finds them; None where it refuses the text."""
    found: list[str] = []
    inside = False
    try:
        for _, kind, value in jinja2.Environment().lex(text):
            if kind in ("variable_begin", "block_begin"):
                found.append("")
                inside = True
            elif kind in ("variable_end", "block_end"):
                inside = False
            elif inside:
                found[-1] += value
    except jinja2.TemplateSyntaxError:
        return None
    return None if inside else found


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
