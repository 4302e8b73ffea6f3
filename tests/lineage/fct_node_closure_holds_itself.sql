-- Nodes that are not their own ancestor at depth 0, and pairs of different nodes at depth 0.
-- Tests are not in the closure: nothing lies downstream of one.
select
    nodes.snapshot_id,
    nodes.unique_id
from {{ ref('dbt_ripple', 'dim_nodes') }} as nodes
left join {{ ref('dbt_ripple', 'fct_node_closure') }} as closure
    on
        nodes.snapshot_id = closure.snapshot_id
        and nodes.unique_id = closure.ancestor_id
        and closure.depth = 0
where
    nodes.resource_type not in ('test', 'unit_test')
    and (closure.descendant_id is null or closure.descendant_id != nodes.unique_id)
