with source as (
    select * from {{ source('ripple_raw', 'node_closure') }}
),

published as (
    select snapshot_id from {{ ref('dbt_ripple', 'stg_ripple__snapshots') }}
),

final as (
    select
        source.snapshot_id,
        source.ancestor_id,
        source.descendant_id,
        source.depth
    from source
    inner join published on source.snapshot_id = published.snapshot_id
)

select * from final
