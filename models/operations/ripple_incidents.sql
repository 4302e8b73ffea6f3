{{ config(
    enabled=part_is_on('operations'),
    file_format=var('ripple_file_format', 'parquet')
) }}

-- One failure speaks for the others: the one they are put down to, else the first.
with failures as (
    select
        *,
        row_number() over (
            partition by incident_id
            order by case when failure_id = incident_id then 0 else 1 end, opened_at, cause_distance, unique_id
        ) as place,
        row_number() over (
            partition by incident_id
            order by closed_at desc nulls last, unique_id asc
        ) as place_of_end
    from {{ ref('dbt_ripple', 'ripple_incident_failures') }}
),

grouped as (
    select
        incident_id,
        count(*) as failures,
        count(distinct node_id) as failed_nodes,
        sum(failed_runs) as failed_runs,
        -- `error` comes before `warn`, and tier1 before tier2.
        min(severity) as severity,
        min(criticality) as criticality,
        min(opened_at) as opened_at,
        max(last_failed_at) as last_failed_at,
        case
            when max(case when state = 'open' then 1 else 0 end) = 1 then 'open'
            when max(case when state = 'closed' then 1 else 0 end) = 1 then 'closed'
            else 'gone'
        end as state,
        max(closed_at) as closed_at,
        max(case when place_of_end = 1 then closed_invocation_id end) as closed_invocation_id
    from failures
    group by incident_id
),

ended as (
    select
        incident_id,
        failures,
        failed_nodes,
        failed_runs,
        severity,
        criticality,
        opened_at,
        last_failed_at,
        state,
        case when state = 'closed' then closed_at end as closed_at,
        case when state = 'closed' then closed_invocation_id end as closed_invocation_id
    from grouped
),

final as (
    select
        ended.incident_id,
        firsts.project_name,
        firsts.target_name,
        firsts.unique_id,
        firsts.name,
        firsts.resource_type,
        firsts.node_id,
        firsts.node_name,
        firsts.owner,
        nodes.owner_name,
        nodes.owner_email,
        nodes.owner_channel,
        nodes.domain,
        ended.criticality,
        ended.severity,
        ended.state,
        ended.opened_at,
        firsts.opened_invocation_id,
        firsts.last_passed_at,
        ended.failures,
        ended.failed_nodes,
        ended.failed_runs,
        ended.last_failed_at,
        firsts.last_status,
        firsts.last_message,
        ended.closed_at,
        ended.closed_invocation_id,
        {{ seconds_between('ended.opened_at', 'ended.closed_at') }} as seconds_to_recovery,
        firsts.cause_project,
        firsts.cause_unique_id,
        firsts.cause_column,
        firsts.cause_change,
        firsts.cause_old_expression,
        firsts.cause_new_expression,
        firsts.caused_at,
        firsts.cause_git_sha,
        firsts.cause_snapshot_id,
        firsts.cause_distance,
        firsts.cause_candidates
    from ended
    inner join failures as firsts
        on
            ended.incident_id = firsts.incident_id
            and firsts.place = 1
    left join {{ ref('dbt_ripple', 'ripple_dim_nodes') }} as nodes
        on
            firsts.project_name = nodes.project_name
            and firsts.node_id = nodes.unique_id
)

select * from final
