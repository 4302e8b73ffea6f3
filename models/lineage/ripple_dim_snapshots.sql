{{ config(file_format=var('ripple_file_format', 'parquet')) }}

with snapshots as (
    select * from {{ ref('dbt_ripple', 'stg_ripple__snapshots') }}
),

ranked as (
    select
        *,
        row_number() over (
            partition by project_name
            order by {{ newest_first() }}
        ) as recency
    from snapshots
),

final as (
    select
        snapshot_id,
        project_name,
        recency = 1 as is_latest,
        {{ columns_of('snapshots', without=['snapshot_id', 'project_name']) }}
    from ranked
)

select * from final
