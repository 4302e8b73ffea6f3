{{ config(file_format=var('ripple_file_format', 'parquet')) }}

with columns as (
    select * from {{ source('ripple_raw', 'columns') }}
),

latest as (
    select * from {{ ref('dbt_ripple', 'ripple_dim_snapshots') }}
    where is_latest
),

nodes as (
    select * from {{ ref('dbt_ripple', 'ripple_dim_nodes') }}
),

final as (
    select
        columns.snapshot_id,
        columns.unique_id,
        nodes.name as node_name,
        nodes.resource_type,
        {{ columns_of('columns', 'columns', without=['snapshot_id', 'unique_id']) }}
    from columns
    inner join latest on columns.snapshot_id = latest.snapshot_id
    -- A left join, so that a column without its node stays to be seen (a test looks for it).
    left join nodes
        on
            columns.snapshot_id = nodes.snapshot_id
            and columns.unique_id = nodes.unique_id
)

select * from final
