{% macro last_known(expression, window) %}
    {{- return(adapter.dispatch('last_known', 'shop')(expression, window)) -}}
{% endmacro %}

{% macro spark__last_known(expression, window) -%}
    last_value({{ expression }}, true) over ({{ window }})
{%- endmacro %}

{% macro duckdb__last_known(expression, window) -%}
    last_value({{ expression }} ignore nulls) over ({{ window }})
{%- endmacro %}
