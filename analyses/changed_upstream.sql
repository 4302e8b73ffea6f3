{{ config(enabled=part_is_on('operations')) }}

-- What changed lately (var ripple_since, by default the last 24 hours) upstream of a node, of one of its columns
-- (vars ripple_node and ripple_column) or of what a failed test reads (its name as ripple_node), nearest first: the
-- definitions that were changed there, not those that moved along. Of a column, only what it is computed from, and
-- which rows there are.
with reached as (
    {{ upstream_columns(var('ripple_node', none), var('ripple_column', none)) | indent(4) }}
),

asked as (
    select
        nodes.snapshot_id,
        nodes.project_name,
        nodes.name
    from {{ ref('dbt_ripple', 'dim_nodes') }} as nodes
    where {{ node_is('nodes', var('ripple_node', none)) }}
),

-- A column that is gone has no lineage any more.
nearest as (
    select
        snapshot_id,
        unique_id,
        min(depth) as depth
    from reached
    group by snapshot_id, unique_id
),

changes as (
    select * from {{ ref('dbt_ripple', 'definition_changes') }}
    where
        is_origin
        and changed_at >= {{ since() }}
)

select
    asked.name as asked_about,
    changes.changed_at,
    changes.git_sha,
    coalesce(min(reached.depth), min(nearest.depth)) as depth,
    changes.name,
    changes.column_name,
    changes.change,
    changes.old_expression,
    changes.new_expression,
    nodes.owner,
    nodes.owner_email,
    nodes.owner_channel,
    changes.unique_id
from asked
inner join changes on asked.project_name = changes.project_name
inner join nearest
    on
        asked.snapshot_id = nearest.snapshot_id
        and changes.unique_id = nearest.unique_id
left join reached
    on
        asked.snapshot_id = reached.snapshot_id
        and changes.unique_id = reached.unique_id
        and changes.column_name = lower(reached.column_name)
left join {{ ref('dbt_ripple', 'dim_nodes') }} as nodes
    on
        asked.snapshot_id = nodes.snapshot_id
        and changes.unique_id = nodes.unique_id
where
    reached.unique_id is not null
    or changes.change = 'removed'
group by
    asked.name,
    changes.changed_at,
    changes.git_sha,
    changes.name,
    changes.column_name,
    changes.change,
    changes.old_expression,
    changes.new_expression,
    nodes.owner,
    nodes.owner_email,
    nodes.owner_channel,
    changes.unique_id
order by asked_about asc, changes.changed_at desc, depth asc, changes.name asc, changes.column_name asc
