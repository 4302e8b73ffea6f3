{#-
    Of a node: the column, or all of them and the rows where none is said. Of a test: the columns that it reads, and rows
    where it reads nothing else. With `rows`, the rows always.
-#}
{% macro columns_to_start_from(node, column, rows=false) %}
{%- set said = dbt.string_literal(dbt.escape_single_quotes(column or '*rows*')) %}
select
    nodes.snapshot_id,
    nodes.unique_id,
    {{ said }} as column_name
from {{ ref('dbt_ripple', 'dim_nodes') }} as nodes
where
    {{ dbt_ripple.node_is('nodes', node) }}
    and nodes.resource_type not in ('test', 'unit_test')
{%- if rows and column %}
union
select
    nodes.snapshot_id,
    nodes.unique_id,
    '*rows*' as column_name
from {{ ref('dbt_ripple', 'dim_nodes') }} as nodes
where
    {{ dbt_ripple.node_is('nodes', node) }}
    and nodes.resource_type not in ('test', 'unit_test')
{%- endif %}
union
select
    columns.snapshot_id,
    columns.unique_id,
    columns.column_name
from {{ ref('dbt_ripple', 'dim_columns') }} as columns
inner join {{ ref('dbt_ripple', 'dim_nodes') }} as nodes
    on
        columns.snapshot_id = nodes.snapshot_id
        and columns.unique_id = nodes.unique_id
where
    {{ dbt_ripple.node_is('nodes', node) }}
{%- if column %}
    and lower(columns.column_name) = lower({{ said }})
{%- endif %}
union
select
    tested.snapshot_id,
    tested.unique_id,
    tested.column_name
from (
    select
        *,
        max(case when column_name != '*rows*' then 1 else 0 end) over (partition by snapshot_id, test_id) as has_columns
    from {{ ref('dbt_ripple', 'stg_ripple__test_columns') }}
) as tested
inner join {{ ref('dbt_ripple', 'dim_nodes') }} as nodes
    on
        tested.snapshot_id = nodes.snapshot_id
        and tested.test_id = nodes.unique_id
where
    {{ dbt_ripple.node_is('nodes', node) }}
{%- if not rows %}
    and (tested.column_name != '*rows*' or tested.has_columns = 0)
{%- endif %}
{%- if column %}
    and lower(tested.column_name) = lower({{ said }})
{%- endif %}
{% endmacro %}
