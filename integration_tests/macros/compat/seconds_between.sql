{% macro seconds_between(earlier, later) %}
    {{- return(adapter.dispatch('seconds_between', 'shop')(earlier, later)) -}}
{% endmacro %}

{% macro spark__seconds_between(earlier, later) -%}
    (unix_timestamp({{ later }}) - unix_timestamp({{ earlier }}))
{%- endmacro %}

{% macro duckdb__seconds_between(earlier, later) -%}
    datediff('second', {{ earlier }}, {{ later }})
{%- endmacro %}
