{% macro days_between(earlier, later) %}
    {{- return(adapter.dispatch('days_between', 'shop')(earlier, later)) -}}
{% endmacro %}

{% macro spark__days_between(earlier, later) -%}
    datediff({{ later }}, {{ earlier }})
{%- endmacro %}

{% macro duckdb__days_between(earlier, later) -%}
    datediff('day', {{ earlier }}, {{ later }})
{%- endmacro %}
