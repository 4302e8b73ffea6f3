with source as (
    select * from {{ source('ripple_raw', 'pii_columns') }}
),

published as (
    select snapshot_id from {{ ref('dbt_ripple', 'stg_ripple__snapshots') }}
),

final as (
    select
        source.snapshot_id,
        source.unique_id,
        source.column_name,
        source.pii,
        source.origin,
        source.reason,
        source.source_id,
        source.source_column,
        source.path
    from source
    inner join published on source.snapshot_id = published.snapshot_id
)

select * from final
