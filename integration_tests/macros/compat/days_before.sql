{% macro days_before(day, days) %}
    {{- return(adapter.dispatch('days_before', 'shop')(day, days)) -}}
{% endmacro %}

{% macro spark__days_before(day, days) -%}
    date_sub({{ day }}, {{ days }})
{%- endmacro %}

{% macro duckdb__days_before(day, days) -%}
    cast({{ day }} as date) - {{ days }}
{%- endmacro %}
