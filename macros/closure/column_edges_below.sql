{% macro column_edges_below(node, certain=false) %}
select
    column_edges.snapshot_id,
    column_edges.parent_id,
    column_edges.parent_column,
    column_edges.child_id,
    column_edges.child_column,
    max(case when column_edges.type = 'DIRECT' then 1 else 0 end) as is_value
from {{ ref('dbt_ripple', 'fct_column_edges') }} as column_edges
inner join {{ ref('dbt_ripple', 'fct_node_closure') }} as closure
    on
        column_edges.snapshot_id = closure.snapshot_id
        and column_edges.parent_id = closure.descendant_id
inner join ({{ dbt_ripple.nodes_to_start_from(node) }}) as starts
    on
        closure.snapshot_id = starts.snapshot_id
        and closure.ancestor_id = starts.unique_id
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
{% endmacro %}
