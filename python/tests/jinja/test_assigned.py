"""Names that a text sets before it reads them are its own, though dbt has something of that name."""

from __future__ import annotations

import pytest

from dbt_ripple.jinja.facts import asks, asks_the_graph


@pytest.mark.parametrize(
    ("text", "of_dbt"),
    [
        (
            "{% if execute %}{% set results = run_query('q') %}{{ results.columns }}{% endif %}",
            False,
        ),
        (
            "{% macro m() %}{% if a %}{% set results = 1 %}{{ results }}{% endif %}{% endmacro %}",
            False,
        ),
        (
            "{% if a %}{% set results = 1 %}{% else %}{% set results = 2 %}{% endif %}{{ results }}",
            False,
        ),
        ("{% for r in l %}{% set results = r %}{{ results }}{% endfor %}", False),
        ("{% if a %}{% set results %}x{% endset %}{% do f(results) %}{% endif %}", False),
        ("{% if a %}{% for results in l %}{{ results }}{% endfor %}{% endif %}", False),
        ("{% if execute %}{% set results = run_query('q') %}{% endif %}{{ results }}", True),
        ("{% if a %}{% set results = 1 %}{% else %}{{ results }}{% endif %}", True),
        ("{% if a %}{% set results = 1 %}{% elif results %}{% endif %}", True),
        ("{% if a %}{% set results = results %}{{ results }}{% endif %}", True),
        ("{% for r in l %}{{ results }}{% set results = r %}{% endfor %}", True),
        ("{% for r in l %}{% set results = r %}{% endfor %}{{ results }}", True),
        ("{% if a %}{% for results in results %}{{ results }}{% endfor %}{% endif %}", True),
        (
            "{% if a %}{% set results = 1 %}{% macro m() %}{{ results }}{% endmacro %}{% endif %}",
            True,
        ),
        ("{% if a %}{% set n.results = 1 %}{{ results }}{% endif %}", True),
    ],
)
def test_a_variable_with_a_name_of_dbt_is_the_texts_own_where_it_is_set_before(
    text: str, of_dbt: bool
) -> None:
    assert asks(text, asks_the_graph) is of_dbt
