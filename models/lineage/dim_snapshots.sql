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
        dbt_version,
        dbt_schema_version,
        adapter_type,
        ripple_version,
        invocation_id,
        generated_at,
        loaded_at,
        git_sha,
        target_name
    from ranked
)

select * from final
