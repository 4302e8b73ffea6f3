{#- Of every node: the column, or all of them and the rows where none is said. With `rows`, the rows always. -#}
{% macro all_columns_and_rows(column, rows=false) %}
select
    snapshot_id,
    unique_id,
    column_name
from {{ ref('dbt_ripple', 'ripple_dim_columns') }}
{%- if column %}
where lower(column_name) = lower({{ dbt_ripple.text_literal(column) }})
{%- endif %}
{%- if rows or not column or column == '*rows*' %}
union
select
    snapshot_id,
    unique_id,
    '*rows*' as column_name
from {{ ref('dbt_ripple', 'ripple_dim_nodes') }}
where resource_type not in ('test', 'unit_test')
{%- endif %}
{% endmacro %}
