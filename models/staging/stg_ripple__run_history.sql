with source as (
    select * from {{ source('ripple_raw', 'run_history') }}
),

final as (
    select
        invocation_id,
        unique_id,
        project_name,
        target_name,
        command,
        resource_type,
        name,
        node_id,
        test_name,
        tags,
        status,
        execution_time,
        started_at,
        completed_at,
        rows_affected,
        row_count,
        failures,
        message,
        max_loaded_at,
        checksum,
        git_sha,
        recorded_at,
        column_name,
        null_count,
        compared_days
    from source
)

select * from final
