with source as (
    select * from {{ source('ripple_raw', 'edges') }}
),

published as (
    select snapshot_id from {{ ref('dbt_ripple', 'stg_ripple__snapshots') }}
),

final as (
    select
        source.snapshot_id,
        source.parent_id,
        source.child_id
    from source
    inner join published on source.snapshot_id = published.snapshot_id
)

select * from final
