{% macro mask(expression) %}
    {{- return(adapter.dispatch('mask', 'shop')(expression)) -}}
{% endmacro %}

{% macro spark__mask(expression) -%}
    sha2({{ expression }}, 256)
{%- endmacro %}

{% macro duckdb__mask(expression) -%}
    sha256({{ expression }})
{%- endmacro %}
