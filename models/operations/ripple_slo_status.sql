{{ config(enabled=part_is_on('operations')) }}

with checks as (
    select
        *,
        row_number() over (
            partition by project_name, target_name, unique_id
            order by ran_at desc, invocation_id desc
        ) as recency
    from {{ ref('dbt_ripple', 'ripple_fct_runs') }}
    where is_slo
),

nodes as (
    select * from {{ ref('dbt_ripple', 'ripple_dim_nodes') }}
),

incidents as (
    select * from {{ ref('dbt_ripple', 'ripple_incident_failures') }}
    where state = 'open'
),

windowed as (
    select
        project_name,
        target_name,
        unique_id,
        max(case when is_success then ran_at end) as last_met_at,
        count(case when is_success or is_failure or status = 'warn' then 1 end) as checks,
        count(case when is_success then 1 end) as checks_met
    from checks
    where ran_at >= {{ days_ago(var('ripple_slo_days', 30)) }}
    group by project_name, target_name, unique_id
),

-- What volume_within_sigma compares with, which looks as far back as it says.
counted_days as (
    select
        checks.project_name,
        checks.target_name,
        checks.unique_id,
        count(distinct {{ day_of('runs.ran_at') }}) as days
    from checks
    inner join {{ ref('dbt_ripple', 'ripple_fct_runs') }} as runs
        on
            checks.project_name = runs.project_name
            and checks.target_name = runs.target_name
            and checks.node_id = runs.node_id
    where
        checks.recency = 1
        and runs.row_count is not null
        and (runs.test_name is null or runs.test_name = 'volume_within_sigma')
        and runs.ran_at < {{ day_of(now_utc()) }}
        and {{ seconds_between('runs.ran_at', day_of(now_utc())) }} <= 86400 * coalesce(checks.compared_days, 14)
    group by checks.project_name, checks.target_name, checks.unique_id
),

final as (
    select
        checks.project_name,
        checks.target_name,
        checks.unique_id,
        checks.name,
        checks.test_name,
        checks.node_id,
        nodes.name as node_name,
        nodes.owner,
        nodes.criticality,
        case
            when checks.is_failure and checks.status = 'fail' then 'violated'
            when checks.status = 'warn' then 'violated'
            when not checks.is_success then 'unknown'
            when
                checks.test_name = 'volume_within_sigma'
                and coalesce(checks.compared_days, 14) > 0
                and coalesce(counted_days.days, 0) < {{ var('ripple_volume_min_days', 7) }}
                then 'learning'
            else 'met'
        end as state,
        checks.ran_at as last_checked_at,
        windowed.last_met_at,
        incidents.opened_at as violated_since,
        coalesce(windowed.checks, 0) as checks,
        coalesce(windowed.checks_met, 0) as checks_met,
        checks.failures,
        checks.message
    from checks
    left join windowed
        on
            checks.project_name = windowed.project_name
            and checks.target_name = windowed.target_name
            and checks.unique_id = windowed.unique_id
    left join nodes
        on
            checks.project_name = nodes.project_name
            and checks.node_id = nodes.unique_id
    left join incidents
        on
            checks.project_name = incidents.project_name
            and checks.target_name = incidents.target_name
            and checks.unique_id = incidents.unique_id
    left join counted_days
        on
            checks.project_name = counted_days.project_name
            and checks.target_name = counted_days.target_name
            and checks.unique_id = counted_days.unique_id
    where checks.recency = 1
)

select * from final
