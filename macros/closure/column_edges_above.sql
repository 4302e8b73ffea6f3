{#- Against the lineage: what is read stands where the reader is read below. -#}
{% macro column_edges_above(node) %}
select
    column_edges.snapshot_id,
    column_edges.child_id as parent_id,
    column_edges.child_column as parent_column,
    column_edges.parent_id as child_id,
    column_edges.parent_column as child_column,
    max(case when column_edges.type = 'DIRECT' then 1 else 0 end) as is_value
from {{ ref('dbt_ripple', 'fct_column_edges') }} as column_edges
inner join {{ ref('dbt_ripple', 'fct_node_closure') }} as closure
    on
        column_edges.snapshot_id = closure.snapshot_id
        and column_edges.child_id = closure.ancestor_id
inner join ({{ dbt_ripple.nodes_to_start_from(node) }}) as starts
    on
        closure.snapshot_id = starts.snapshot_id
        and closure.descendant_id = starts.unique_id
group by
    column_edges.snapshot_id,
    column_edges.child_id,
    column_edges.child_column,
    column_edges.parent_id,
    column_edges.parent_column
{% endmacro %}
