"""Texts of Jinja in a form for comparison, and what of them decides the runs that were not compiled."""

from __future__ import annotations

import pytest

from dbt_ripple.jinja.text import branches, normalised, normalised_macro


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        (
            "{% set a = '%}' ~ b %} {% if is_incremental() %} x = {{ '{% endif %}' }} {% endif %} c",
            (
                "{% set a = '%}' ~ b %}",
                "{% if is_incremental ( ) %} x = {{ '{% endif %}' }} {% endif %}",
            ),
        ),
        (
            "{% set new = is_incremental() %} a {% if new %} b {% endif %}{% if x %} c {% endif %}",
            (
                "{% set new = is_incremental ( ) %}",
                "{% if new %} b {% endif %}",
                "{% if x %}",
                "{% endif %}",
            ),
        ),
        (
            "{% if is_incremental() %}{% do xs.append('b') %}{% endif %} a {{ xs | join }}{{ ys }}",
            ("{% if is_incremental ( ) %}{% do xs . append ( 'b' ) %}{% endif %}", "{{ xs | join }}"),
        ),
        (
            "{% if is_incremental() %}{% set _ = xs.append('b') %}{% endif %} a {{ xs | join }}",
            ("{% if is_incremental ( ) %}{% set _ = xs . append ( 'b' ) %}{% endif %}", "{{ xs | join }}"),
        ),
        ("a {{ 'b' if is_incremental() }} c", ("{{ 'b' if is_incremental ( ) }}",)),
        ("{{ config(full_refresh=false) }} select 1", ()),
        ("{{ config(tags=['is_incremental']) ~ is_incremental() }} b", ("{{ config ( tags = [ 'is_incremental' ] ) ~ is_incremental ( ) }}",)),
        ("{% set q %} {{ is_incremental() }} {% endset %} a", ("{% set q %} {{ is_incremental ( ) }} {% endset %} a",)),
        ("-- depends_on: {{ ref('a') }}\n{% if is_incremental() %} b {% endif %}", ("{% if is_incremental ( ) %} b {% endif %}",)),
    ],
)  # fmt: skip
def test_the_branches_of_other_runs(text: str, parts: tuple[str, ...]) -> None:
    assert branches(text) == parts


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("select 1 -- a\n, 'x  y'", "select   1,\n'x  y' /* b */"),
        ("{% set x = 1 -- 2 %}", "{%   set x\n= 1 -- 2 %}"),
        ("delete from {{ this }} {# all #}", "delete  from\n{{   this }}"),
        ("a {#- b #} c", "a c"),
        ("tbl_ {{- x }}", "tbl_{{ x }}"),
        ("{{ x['a'] }}", '{{ x ["a"] }}'),
        ("-- depends_on: {{ ref('a') }}\nselect 1", "select 1"),
        ("-- why\n{#- b -#}\n{% set x = 1 %}\nselect 1", " {% set x = 1 %} select 1"),
        (
            "-- why {{ config(tags='a') }} {% do f() %}\nselect 1",
            " {{ config(tags='a') }}{% do f() %} select 1",
        ),
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
        ("-- {{ ref(name) }} 'a  b'", "-- {{ ref(name) }} 'a b'"),
        ("-- why {% set x = 1 %}\n{{ x }}", "-- why {% set x = 2 %}\n{{ x }}"),
        ("-- {% if x %} 'a  b'{% endif %}", "-- {% if x %} 'a b'{% endif %}"),
        ("-- {% set x %} 'a  b'{% endset %}", "-- {% set x %} 'a b'{% endset %}"),
        ("{% raw %}'a  b'{% endraw %}", "{% raw %}'a b'{% endraw %}"),
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
    asked = "{% if is_incremental() %}a  b{% endif %}"
    assert branches(f"select '{asked}'") == ("{% if is_incremental ( ) %}a  b{% endif %}",)
    assert branches(f"select 1 -- {asked}") != branches(f"select 1 --\n {asked}")
    assert branches(f"select 1, {asked}") == ("{% if is_incremental ( ) %}a b{% endif %}",)
