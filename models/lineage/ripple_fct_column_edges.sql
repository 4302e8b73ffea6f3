{{ config(file_format=var('ripple_file_format', 'parquet')) }}

with column_edges as (
    select * from {{ source('ripple_raw', 'column_edges') }}
),

latest as (
    select * from {{ ref('dbt_ripple', 'ripple_dim_snapshots') }}
    where is_latest
),

columns as (
    select * from {{ source('ripple_raw', 'columns') }}
),

final as (
    select
        {{ columns_of('column_edges', 'column_edges') }},
        columns.expression
    from column_edges
    inner join latest on column_edges.snapshot_id = latest.snapshot_id
    left join columns
        on
            column_edges.snapshot_id = columns.snapshot_id
            and column_edges.child_id = columns.unique_id
            and column_edges.child_column = columns.column_name
)

select * from final
