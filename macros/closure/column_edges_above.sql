{#- Against the lineage: what is read stands where the reader is read below. -#}
{% macro column_edges_above(node) %}
select
    column_edges.snapshot_id,
    column_edges.child_id as parent_id,
    column_edges.child_column as parent_column,
    column_edges.snapshot_id as child_snapshot_id,
    column_edges.parent_id as child_id,
    column_edges.parent_column as child_column,
    max(case when column_edges.type = 'DIRECT' then 1 else 0 end) as is_value
from {{ ref('dbt_ripple', 'fct_column_edges') }} as column_edges
inner join (
    select distinct
        snapshot_id,
        unique_id
    from ({{ dbt_ripple.nodes_upstream(node) }}) as found
) as above
    on
        column_edges.snapshot_id = above.snapshot_id
        and column_edges.child_id = above.unique_id
group by
    column_edges.snapshot_id,
    column_edges.child_id,
    column_edges.child_column,
    column_edges.parent_id,
    column_edges.parent_column
{%- if var('ripple_max_projects', 2) | int %}
union all
select
    child_snapshot_id as snapshot_id,
    child_id as parent_id,
    child_column as parent_column,
    parent_snapshot_id as child_snapshot_id,
    parent_id as child_id,
    parent_column as child_column,
    1 as is_value
from {{ ref('dbt_ripple', 'fct_cross_project_edges') }}
{%- endif %}
{% endmacro %}
