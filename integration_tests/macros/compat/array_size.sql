{% macro array_size(expression) %}
    {{- return(adapter.dispatch('array_size', 'shop')(expression)) -}}
{% endmacro %}

{% macro spark__array_size(expression) -%}
    size({{ expression }})
{%- endmacro %}

{% macro duckdb__array_size(expression) -%}
    len({{ expression }})
{%- endmacro %}
