{% macro column_edges_below(node, certain=false) %}
select
    column_edges.snapshot_id,
    column_edges.parent_id,
    column_edges.parent_column,
    column_edges.snapshot_id as child_snapshot_id,
    column_edges.child_id,
    column_edges.child_column,
    max(case when column_edges.type = 'DIRECT' then 1 else 0 end) as is_value
from {{ ref('dbt_ripple', 'fct_column_edges') }} as column_edges
inner join (
    select distinct
        snapshot_id,
        unique_id
    from ({{ dbt_ripple.nodes_below(node) }}) as found
) as below
    on
        column_edges.snapshot_id = below.snapshot_id
        and column_edges.parent_id = below.unique_id
{%- if certain %}
inner join {{ ref('dbt_ripple', 'dim_nodes') }} as readers
    on
        column_edges.snapshot_id = readers.snapshot_id
        and column_edges.child_id = readers.unique_id
        and readers.analysis_status != 'opaque'
{%- endif %}
{%- if certain %}
where
    column_edges.parent_column != '*rows*'
    and column_edges.child_column != '*rows*'
{%- endif %}
group by
    column_edges.snapshot_id,
    column_edges.parent_id,
    column_edges.parent_column,
    column_edges.child_id,
    column_edges.child_column
{%- if var('ripple_max_projects', 2) | int %}
union all
select
    parent_snapshot_id as snapshot_id,
    parent_id,
    parent_column,
    child_snapshot_id,
    child_id,
    child_column,
    1 as is_value
from {{ ref('dbt_ripple', 'fct_cross_project_edges') }}
{%- if certain %}
where parent_column != '*rows*'
{%- endif %}
{%- endif %}
{% endmacro %}
