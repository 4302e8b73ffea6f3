{{ config(file_format=var('ripple_file_format', 'parquet')) }}

with nodes as (
    select * from {{ source('ripple_raw', 'nodes') }}
),

latest as (
    select * from {{ ref('dbt_ripple', 'ripple_dim_snapshots') }}
    where is_latest
),

final as (
    select
        nodes.snapshot_id,
        latest.project_name,
        {{ columns_of(
            'nodes', 'nodes',
            without=[
                'snapshot_id', 'test_fingerprint', 'typed_fingerprint',
                'orders_seen', 'above_fingerprint', 'order_fingerprint', 'layout_fingerprint'
            ]
        ) }}
    from nodes
    inner join latest on nodes.snapshot_id = latest.snapshot_id
)

select * from final
