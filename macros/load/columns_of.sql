{#- The columns of a raw table, for a select list; `relation` is what the query calls the table. -#}
{% macro columns_of(table, relation=none, without=[]) -%}
    {%- for column in dbt_ripple.raw_table_columns()[table] | reject('in', without) -%}
        {{ relation ~ '.' if relation }}{{ column }}{{ ',\n        ' if not loop.last }}
    {%- endfor -%}
{%- endmacro %}
