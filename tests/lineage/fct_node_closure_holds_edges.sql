-- Node edges that the closure does not have as pairs one step apart, and the other way round.
with edges as (
    select
        snapshot_id,
        parent_id,
        child_id
    from {{ ref('dbt_ripple', 'fct_edges') }}
    -- An incremental model that reads itself is no step.
    where parent_id != child_id
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
