-- Node edges that the closure does not have as pairs one step apart, and the other way round.
with all_edges as (
    select * from {{ ref('dbt_ripple', 'fct_edges') }}
),

nodes as (
    select * from {{ ref('dbt_ripple', 'dim_nodes') }}
),

steps as (
    select * from {{ ref('dbt_ripple', 'fct_node_closure') }}
    where depth = 1
),

edges as (
    select all_edges.*
    from all_edges
    left join nodes
        on
            all_edges.snapshot_id = nodes.snapshot_id
            and all_edges.child_id = nodes.unique_id
    -- Tests are not in the closure: nothing lies downstream of one.
    where
        nodes.resource_type not in ('test', 'unit_test')
        or nodes.resource_type is null
)

select
    coalesce(edges.snapshot_id, steps.snapshot_id) as snapshot_id,
    coalesce(edges.parent_id, steps.ancestor_id) as parent_id,
    coalesce(edges.child_id, steps.descendant_id) as child_id
from edges
full outer join steps
    on
        edges.snapshot_id = steps.snapshot_id
        and edges.parent_id = steps.ancestor_id
        and edges.child_id = steps.descendant_id
where
    edges.parent_id is null
    or steps.ancestor_id is null
