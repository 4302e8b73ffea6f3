with source as (
    select * from {{ source('ripple_raw', 'node_closure') }}
),

published as (
    select snapshot_id from {{ ref('dbt_ripple', 'stg_ripple__snapshots') }}
),

final as (
    select
        {{ columns_of('node_closure', 'source') }}
    from source
    inner join published on source.snapshot_id = published.snapshot_id
)

select * from final
