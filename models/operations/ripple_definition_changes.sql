{{ config(
    enabled=part_is_on('operations'),
    file_format=var('ripple_file_format', 'parquet')
) }}

with pairs as (
    select * from {{ ref('dbt_ripple', 'ripple_int_consecutive_snapshots') }}
),

moved as (
    select * from {{ ref('dbt_ripple', 'ripple_int_moved_definitions') }}
),

-- A node that is gone is known to the old side only.
sides as (
    select
        snapshot_id as pair_id,
        snapshot_id,
        0 as side
    from pairs

    union all

    select
        snapshot_id as pair_id,
        base_snapshot_id as snapshot_id,
        1 as side
    from pairs
),

nodes as (
    select
        sides.pair_id as snapshot_id,
        nodes.unique_id,
        nodes.name,
        nodes.resource_type,
        nodes.owner,
        row_number() over (
            partition by sides.pair_id, nodes.unique_id
            order by sides.side
        ) as preference
    from sides
    inner join {{ ref('dbt_ripple', 'stg_ripple__nodes') }} as nodes on sides.snapshot_id = nodes.snapshot_id
),

carried as (
    select distinct
        snapshot_id,
        child_id,
        child_column
    from {{ ref('dbt_ripple', 'ripple_int_moved_edges') }}
),

judged as (
    select
        moved.*,
        -- Nothing it reads moved, or what the node itself makes of its parents did. A column that came or went,
        -- and one of a load without own fingerprints, is told by its text.
        carried.child_id is null
        or case
            when moved.change in ('redefined', 'retyped') and moved.old_own_fingerprint is not null
                then moved.old_own_fingerprint != coalesce(moved.new_own_fingerprint, moved.old_own_fingerprint)
            else coalesce(moved.old_expression, '') != coalesce(moved.new_expression, '')
        end as is_origin
    from moved
    left join carried
        on
            moved.snapshot_id = carried.snapshot_id
            and moved.unique_id = carried.child_id
            and moved.column_name = carried.child_column
),

final as (
    select
        pairs.project_name,
        pairs.target_name,
        pairs.base_snapshot_id,
        pairs.snapshot_id,
        pairs.is_latest,
        pairs.changed_at,
        pairs.base_git_sha,
        pairs.git_sha,
        judged.unique_id,
        nodes.name,
        nodes.resource_type,
        nodes.owner,
        judged.column_name,
        judged.change,
        judged.is_origin,
        judged.old_fingerprint,
        judged.new_fingerprint,
        judged.old_expression,
        judged.new_expression,
        judged.old_data_type,
        judged.new_data_type
    from judged
    inner join pairs on judged.snapshot_id = pairs.snapshot_id
    left join nodes
        on
            judged.snapshot_id = nodes.snapshot_id
            and judged.unique_id = nodes.unique_id
            and nodes.preference = 1
)

select * from final
