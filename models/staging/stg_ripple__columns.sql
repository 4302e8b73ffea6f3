with source as (
    select * from {{ source('ripple_raw', 'columns') }}
),

published as (
    select snapshot_id from {{ ref('dbt_ripple', 'stg_ripple__snapshots') }}
),

final as (
    select
        source.snapshot_id,
        source.unique_id,
        source.column_name,
        source.position,
        source.data_type,
        source.description,
        source.pii,
        source.fingerprint,
        source.expression,
        source.own_fingerprint,
        source.is_repeatable,
        source.pii_reason
    from source
    inner join published on source.snapshot_id = published.snapshot_id
)

select * from final
