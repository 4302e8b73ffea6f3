with source as (
    select * from {{ source('ripple_raw', 'edges') }}
),

published as (
    select snapshot_id from {{ ref('dbt_ripple', 'stg_ripple__snapshots') }}
),

final as (
    select
        {{ columns_of('edges', 'source') }}
    from source
    inner join published on source.snapshot_id = published.snapshot_id
)

select * from final
