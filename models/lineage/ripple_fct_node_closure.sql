{{ config(file_format=var('ripple_file_format', 'parquet')) }}

with closure as (
    select * from {{ source('ripple_raw', 'node_closure') }}
),

latest as (
    select * from {{ ref('dbt_ripple', 'ripple_dim_snapshots') }}
    where is_latest
),

final as (
    select
        {{ columns_of('node_closure', 'closure') }}
    from closure
    inner join latest on closure.snapshot_id = latest.snapshot_id
)

select * from final
