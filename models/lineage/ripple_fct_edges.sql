{{ config(file_format=var('ripple_file_format', 'parquet')) }}

with edges as (
    select * from {{ source('ripple_raw', 'edges') }}
),

latest as (
    select * from {{ ref('dbt_ripple', 'ripple_dim_snapshots') }}
    where is_latest
),

final as (
    select
        {{ columns_of('edges', 'edges') }}
    from edges
    inner join latest on edges.snapshot_id = latest.snapshot_id
)

select * from final
