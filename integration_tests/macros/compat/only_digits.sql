{% macro only_digits(expression) %}
    {{- return(adapter.dispatch('only_digits', 'shop')(expression)) -}}
{% endmacro %}

{% macro spark__only_digits(expression) -%}
    regexp_replace({{ expression }}, '[^0-9]', '')
{%- endmacro %}

{% macro duckdb__only_digits(expression) -%}
    regexp_replace({{ expression }}, '[^0-9]', '', 'g')
{%- endmacro %}
