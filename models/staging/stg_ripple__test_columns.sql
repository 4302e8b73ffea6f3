with source as (
    select * from {{ source('ripple_raw', 'test_columns') }}
),

published as (
    select snapshot_id from {{ ref('dbt_ripple', 'stg_ripple__snapshots') }}
),

final as (
    select
        source.snapshot_id,
        source.test_id,
        source.unique_id,
        source.column_name
    from source
    inner join published on source.snapshot_id = published.snapshot_id
)

select * from final
