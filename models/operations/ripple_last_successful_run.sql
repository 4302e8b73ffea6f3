{{ config(enabled=part_is_on('operations')) }}

with runs as (
    select
        *,
        row_number() over (
            partition by project_name, target_name, unique_id
            order by ran_at desc, invocation_id desc
        ) as recency,
        row_number() over (
            partition by project_name, target_name, unique_id, is_success
            order by ran_at desc, invocation_id desc
        ) as recency_of_kind
    from {{ ref('dbt_ripple', 'ripple_fct_runs') }}
    where resource_type not in ('test', 'unit_test')
),

latest as (
    select * from runs
    where recency = 1
),

successes as (
    select * from runs
    where is_success and recency_of_kind = 1
),

final as (
    select
        latest.project_name,
        latest.target_name,
        latest.unique_id,
        latest.name,
        latest.resource_type,
        successes.ran_at as succeeded_at,
        successes.invocation_id,
        successes.rows_affected,
        successes.row_count,
        successes.max_loaded_at,
        latest.ran_at as last_ran_at,
        latest.status as last_status
    from latest
    left join successes
        on
            latest.project_name = successes.project_name
            and latest.target_name = successes.target_name
            and latest.unique_id = successes.unique_id
)

select * from final
