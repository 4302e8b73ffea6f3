-- Node edges that the closure does not have as pairs one step apart, and the other way round.
-- Edges to tests aside: tests are not in the closure.
with edges as (
    select
        edges.snapshot_id,
        edges.parent_id,
        edges.child_id
    from {{ ref('dbt_ripple', 'fct_edges') }} as edges
    left join {{ ref('dbt_ripple', 'dim_nodes') }} as children
        on
            edges.snapshot_id = children.snapshot_id
            and edges.child_id = children.unique_id
    where
        children.resource_type not in ('test', 'unit_test')
        or children.resource_type is null
),

steps as (
    select
        snapshot_id,
        ancestor_id,
        descendant_id
    from {{ ref('dbt_ripple', 'fct_node_closure') }}
    where depth = 1
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
where edges.parent_id is null or steps.ancestor_id is null
