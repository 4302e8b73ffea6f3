{% macro json_value(expression, path) %}
    {{- return(adapter.dispatch('json_value', 'shop')(expression, path)) -}}
{% endmacro %}

{% macro spark__json_value(expression, path) -%}
    get_json_object({{ expression }}, '{{ path }}')
{%- endmacro %}

{% macro duckdb__json_value(expression, path) -%}
    json_extract_string({{ expression }}, '{{ path }}')
{%- endmacro %}
