"""A text of SQL and expressions alone is read an expression at a time; its tree is the one of the whole."""

from __future__ import annotations

import pytest
from jinja2 import nodes
from jinja2.exceptions import TemplateSyntaxError

from dbt_ripple.jinja.text import environment, of_adapter, tree_of


@pytest.mark.parametrize(
    "text",
    [
        "",
        "a\n",
        "a\n\n",
        "a {{- x -}} \n b {{ y }}{{ z }}\n",
        "{{ x -}} \n {{- y }}",
        "\n{{- - x -}} {{--y}}",
        "a -{{- x }}-",
        "a\x0b\x85{{- x -}}\u2028b",
        "{{+ x }} a",
        "{{ x +}} a",
        "{{ x, y }}",
        "{{ }} a",
        "{{ x }} {{ y |}} b",
        "{{ x }} {{ 'a",
        "{{ x }}}} a }} b",
        "{{{ x }}}",
        "{ {{ x }} }",
        "{{ '}}' }} {{ \"a'b\" ~ 'c\"d' ~ '{{' }}",
        "{{ 'a\\'}}' }} {{ c }}",
        "{{ {'a': 1}['a'] }} {{ {} }}",
        "'{{ x }}' \"{{ y['a'] }}\"",
        "a\r\n{{ x }}\r\n{{ y }}",
        "a {# {{ x }} #} {{ y }}",
        "{% raw %}{{ x }}{% endraw %}{{ y }}",
        "{{ x\n}}\n",
    ],
)
def test_the_tree_is_that_of_the_whole_text(text: str) -> None:
    whole: nodes.Template | None
    try:
        whole = environment().parse(text)
    except TemplateSyntaxError:
        whole = None
    assert tree_of(text) == whole


def test_what_is_too_deep_has_no_tree() -> None:
    assert tree_of(f"a {{{{ {' + '.join('x' * 100)} }}}}") is not None
    assert tree_of(f"a {{{{ {' + '.join('x' * 200)} }}}}") is None


def test_an_expression_is_parsed_once() -> None:
    one, other = tree_of("a {{ once_and_for_all(1) }}"), tree_of("b {{ once_and_for_all(1) }}")
    assert one is not None and other is not None
    (first,), (second,) = one.find_all(nodes.Call), other.find_all(nodes.Call)
    assert first is second


def test_no_node_is_in_a_tree_twice() -> None:
    """Visitors tell places apart by their nodes."""
    tree = tree_of("'{{ target.name }}' {{ a }} raw_{{ target.name }} {{ a }} {{ a }}")
    assert tree is not None
    names = [*tree.find_all(nodes.Name)]
    assert len({id(name) for name in names}) == len(names) == 5


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("{% if target.type != 'spark' %}a{% else %}b{% endif %}", "{% if target.type != 'spark' %}a{% else %}{% endif %}"),
        ("{% if target.type == 'spark' %}a{% else %}b{% endif %}", "{% if target.type == 'spark' %}{% else %}b{% endif %}"),
        ("{% if target.type not in ('spark', 'duckdb') %}a{% endif %}", "{% if target.type not in ('spark', 'duckdb') %}{% endif %}"),
        ("{% if target.type in ['spark', 'duckdb',] %}a{% endif %}", "{% if target.type in ['spark', 'duckdb',] %}a{% endif %}"),
        (
            "{% if c %}a{% elif target.type == 'duckdb' %}b{% elif d %}c{% else %}d{% endif %}",
            "{% if c %}a{% elif target.type == 'duckdb' %}b{% elif d %}{% else %}{% endif %}",
        ),
        # The ``else`` of a loop, or of another ``if``, is not the one of the adapter's.
        (
            "{% if target.type == 'duckdb' %}{% for x in y %}a{% else %}b{% endfor %}{% endif %}",
            "{% if target.type == 'duckdb' %}{% for x in y %}a{% else %}b{% endfor %}{% endif %}",
        ),
        (
            "{% if target.type == 'spark' %}{% if c %}a{% else %}b{% endif %}{{ f() }}{% else %}{{ g() }}{% endif %}{{ h() }}",
            "{% if target.type == 'spark' %}{% else %}{{ g() }}{% endif %}{{ h() }}",
        ),
        ("{% if x.target.type == 'spark' %}a{% endif %}", None),
        ("{% if not target.type == 'spark' %}a{% endif %}", None),
        ("{% if target.type == spark %}a{% endif %}", None),
        ("{% if target.type == 'sp' ~ 'ark' %}a{% endif %}", None),
        ("{% set target = other %}{% if target.type == 'spark' %}a{% endif %}", None),
        ("{% macro f(target) %}{% if target.type == 'spark' %}a{% endif %}{% endmacro %}", None),
        ("{% if target.type == 'spark' %}a", "{% if target.type == 'spark' %}"),
        ("{% if target.type == 'spark' %}a{% endif", None),
        ("{% endif %}{% if target.type == 'spark' %}a{% endif %}", None),
    ],
)  # fmt: skip
def test_only_branches_that_the_adapter_never_takes_are_left_out(
    text: str, expected: str | None
) -> None:
    assert of_adapter(text, "duckdb") == (text if expected is None else expected)
