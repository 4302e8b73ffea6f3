with source as (
    select * from {{ source('ripple_raw', 'snapshots') }}
),

final as (
    select
        snapshot_id,
        project_name,
        dbt_version,
        dbt_schema_version,
        adapter_type,
        ripple_version,
        invocation_id,
        generated_at,
        loaded_at,
        git_sha,
        target_name
    from source
)

select * from final
