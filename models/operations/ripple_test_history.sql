{{ config(enabled=part_is_on('operations')) }}

with runs as (
    select
        *,
        lag(status) over (
            partition by project_name, target_name, unique_id
            order by ran_at, invocation_id
        ) as previous_status
    from {{ ref('dbt_ripple', 'ripple_fct_runs') }}
    where resource_type in ('test', 'unit_test')
),

nodes as (
    select * from {{ ref('dbt_ripple', 'ripple_dim_nodes') }}
),

final as (
    select
        runs.project_name,
        runs.target_name,
        runs.unique_id,
        runs.name,
        runs.test_name,
        runs.node_id,
        nodes.name as node_name,
        nodes.owner,
        runs.invocation_id,
        runs.ran_at,
        runs.status,
        runs.previous_status,
        runs.failures,
        runs.execution_time,
        runs.message
    from runs
    left join nodes
        on
            runs.project_name = nodes.project_name
            and runs.node_id = nodes.unique_id
)

select * from final
