{% macro explode_as(expression, element) %}
    {{- return(adapter.dispatch('explode_as', 'shop')(expression, element)) -}}
{% endmacro %}

{% macro spark__explode_as(expression, element) -%}
    lateral view explode({{ expression }}) exploded_{{ element }} as {{ element }}
{%- endmacro %}

{% macro duckdb__explode_as(expression, element) -%}
    cross join unnest({{ expression }}) as exploded_{{ element }} ({{ element }})
{%- endmacro %}
