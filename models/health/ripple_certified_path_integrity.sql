{{ config(enabled=part_is_on('health')) }}

with snapshots as (
    select * from {{ ref('dbt_ripple', 'ripple_int_weekly_snapshots') }}
),

nodes as (
    select * from {{ ref('dbt_ripple', 'stg_ripple__nodes') }}
),

closure as (
    select * from {{ ref('dbt_ripple', 'stg_ripple__node_closure') }}
),

certified as (
    select
        snapshots.project_name,
        snapshots.week,
        snapshots.is_latest,
        nodes.snapshot_id,
        nodes.unique_id,
        nodes.name,
        nodes.owner
    from snapshots
    inner join nodes on snapshots.snapshot_id = nodes.snapshot_id
    where nodes.certified
),

paths as (
    select
        certified.snapshot_id,
        certified.unique_id,
        count(case when closure.depth > 0 then 1 end) as upstream_nodes,
        count(case when nodes.analysis_status in ('opaque', 'broken') then 1 end) as unseen_nodes,
        min(case when nodes.analysis_status in ('opaque', 'broken') then nodes.unique_id end) as one_unseen_node
    from certified
    inner join closure
        on
            certified.snapshot_id = closure.snapshot_id
            and certified.unique_id = closure.descendant_id
    inner join nodes
        on
            closure.snapshot_id = nodes.snapshot_id
            and closure.ancestor_id = nodes.unique_id
    group by certified.snapshot_id, certified.unique_id
),

judged as (
    select
        certified.*,
        coalesce(paths.upstream_nodes, 0) as upstream_nodes,
        coalesce(paths.unseen_nodes, 0) as unseen_nodes,
        paths.one_unseen_node,
        coalesce(paths.unseen_nodes, 0) = 0 as is_complete
    from certified
    left join paths
        on
            certified.snapshot_id = paths.snapshot_id
            and certified.unique_id = paths.unique_id
),

final as (
    select
        project_name,
        week,
        snapshot_id,
        is_latest,
        unique_id,
        name,
        owner,
        upstream_nodes,
        unseen_nodes,
        one_unseen_node,
        is_complete
    from judged
)

select * from final
