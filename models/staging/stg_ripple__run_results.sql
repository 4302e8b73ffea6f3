with source as (
    select * from {{ source('ripple_raw', 'run_results') }}
),

published as (
    select snapshot_id from {{ ref('dbt_ripple', 'stg_ripple__snapshots') }}
),

final as (
    select
        {{ columns_of('run_results', 'source') }}
    from source
    inner join published on source.snapshot_id = published.snapshot_id
)

select * from final
