{% macro column_edges_below() %}
{{- dbt_ripple.column_edges_in_direction(none, 'parent', 'child') }}
{% endmacro %}


{#- Against the lineage: what is read stands where the reader is read below. -#}
{% macro column_edges_above() %}
{{- dbt_ripple.column_edges_in_direction(none, 'child', 'parent') }}
{% endmacro %}


{#- `nodes` is a query for the nodes that an edge may begin in; none for all. -#}
{% macro column_edges_in_direction(nodes, near, far) %}
select
    column_edges.snapshot_id,
    column_edges.{{ near }}_id as parent_id,
    column_edges.{{ near }}_column as parent_column,
    column_edges.snapshot_id as child_snapshot_id,
    column_edges.{{ far }}_id as child_id,
    column_edges.{{ far }}_column as child_column,
    max(case when column_edges.type = 'DIRECT' then 1 else 0 end) as is_value
from {{ ref('dbt_ripple', 'ripple_fct_column_edges') }} as column_edges
{%- if nodes %}
inner join (
    select distinct
        snapshot_id,
        unique_id
    from ({{ nodes }}) as found
) as within
    on
        column_edges.snapshot_id = within.snapshot_id
        and column_edges.{{ near }}_id = within.unique_id
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
    {{ near }}_snapshot_id as snapshot_id,
    {{ near }}_id as parent_id,
    {{ near }}_column as parent_column,
    {{ far }}_snapshot_id as child_snapshot_id,
    {{ far }}_id as child_id,
    {{ far }}_column as child_column,
    1 as is_value
from {{ ref('dbt_ripple', 'ripple_fct_cross_project_edges') }}
{%- endif %}
{% endmacro %}
