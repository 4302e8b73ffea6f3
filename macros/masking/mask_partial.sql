{#- The end of it, and never more than a third: what is short would be told by its end. -#}
{% macro default__mask_partial(column, keep) %}
{%- set text = 'cast(' ~ column ~ ' as ' ~ dbt.type_string() ~ ')' -%}
'***' || right({{ text }}, least({{ keep | int }}, cast(floor(length({{ text }}) / 3) as {{ dbt.type_int() }})))
{% endmacro %}
