{#- A query that is its rows. -#}
{% macro rows_of_values(columns, rows) %}
select
    {{ columns | join(',\n    ') }}
{%- if rows %}
from (
    values
{%- for row in rows %}
        ({% for value in row %}{{ dbt_ripple.text_literal(value) if value is string else 'null' if value is none else value | lower }}{{ ', ' if not loop.last }}{% endfor %}){{ ',' if not loop.last }}
{%- endfor %}
) as found ({{ columns | join(', ') }})
{%- else %}
from (
    select{% for column in columns %} {{ 'false' if column in ('is_value', 'may_read') else 0 if column in ('depth', 'columns_reached') else 'cast(null as ' ~ dbt.type_string() ~ ')' }} as {{ column }}{{ ',' if not loop.last }}{% endfor %}
) as found
where 1 = 0
{%- endif %}
{% endmacro %}
