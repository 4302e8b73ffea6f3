with source as (
    select * from {{ source('ripple_raw', 'run_results') }}
),

published as (
    select snapshot_id from {{ ref('dbt_ripple', 'stg_ripple__snapshots') }}
),

final as (
    select
        source.snapshot_id,
        source.invocation_id,
        source.unique_id,
        source.status,
        source.execution_time,
        source.started_at,
        source.completed_at,
        source.rows_affected,
        source.failures,
        source.message
    from source
    inner join published on source.snapshot_id = published.snapshot_id
)

select * from final
