-- Nodes that are not their own ancestor at depth 0, and pairs of different nodes at depth 0.
with nodes as (
    select * from {{ ref('dbt_ripple', 'dim_nodes') }}
    -- Tests are not in the closure: nothing lies downstream of one.
    where resource_type not in ('test', 'unit_test')
),

selves as (
    select * from {{ ref('dbt_ripple', 'fct_node_closure') }}
    where depth = 0
)

select
    nodes.snapshot_id,
    nodes.unique_id
from nodes
left join selves
    on
        nodes.snapshot_id = selves.snapshot_id
        and nodes.unique_id = selves.ancestor_id
where
    selves.descendant_id is null
    or selves.descendant_id != nodes.unique_id
