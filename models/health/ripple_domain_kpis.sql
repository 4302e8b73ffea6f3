{{ config(enabled=part_is_on('health', also='operations') and part_is_on('governance', also='operations')) }}

-- noqa: disable=LT02
with nodes as (
    select
        project_name,
        unique_id,
        coalesce(domain, 'no domain') as domain
    from {{ ref('dbt_ripple', 'ripple_dim_nodes') }}
),

snapshots as (
    select
        snapshot_id,
        loaded_at
    from {{ ref('dbt_ripple', 'ripple_dim_snapshots') }}
),

-- A cause is known once the load that has the change is there.
incidents as (
    select
        incidents.project_name,
        coalesce(nodes.domain, 'no domain') as domain,
        incidents.incident_id,
        incidents.opened_at,
        incidents.closed_at,
        incidents.cause_unique_id,
        incidents.cause_snapshot_id,
        coalesce(incidents.closed_at, case when incidents.state = 'open' then {{ now_utc() }} end) as ended_at,
        incidents.seconds_to_recovery,
        case
            when {{ seconds_between('incidents.opened_at', 'snapshots.loaded_at') }} <= 30 * 60 then 1
            else 0
        end as has_timely_cause
    from {{ ref('dbt_ripple', 'ripple_incidents') }} as incidents
    left join nodes
        on
            incidents.project_name = nodes.project_name
            and incidents.node_id = nodes.unique_id
    left join snapshots on incidents.cause_snapshot_id = snapshots.snapshot_id
),

opened as (
    select
        project_name,
        domain,
        {{ week_of('opened_at') }} as week,
        count(*) as incidents_opened,
        sum(has_timely_cause) as incidents_with_timely_cause
    from incidents
    group by project_name, domain, {{ week_of('opened_at') }}
),

closed as (
    select
        project_name,
        domain,
        {{ week_of('closed_at') }} as week,
        count(*) as incidents_closed,
        avg(seconds_to_recovery) / 60 as mttr_minutes
    from incidents
    where closed_at is not null
    group by project_name, domain, {{ week_of('closed_at') }}
),

found as (
    select
        violations.project_name,
        coalesce(nodes.domain, 'no domain') as domain,
        violations.found_at
    from {{ ref('dbt_ripple', 'ripple_contract_violations') }} as violations
    left join nodes
        on
            violations.project_name = nodes.project_name
            and violations.unique_id = nodes.unique_id
),

violations as (
    select
        project_name,
        domain,
        {{ week_of('found_at') }} as week,
        count(*) as contract_violations
    from found
    group by project_name, domain, {{ week_of('found_at') }}
),

-- A change is what the nodes of a domain differ by between two loads in a row; it failed if an incident is put down to
-- it.
made as (
    select
        changes.project_name,
        coalesce(nodes.domain, 'no domain') as domain,
        changes.snapshot_id,
        min(changes.changed_at) as changed_at,
        max(case when incidents.incident_id is not null then 1 else 0 end) as has_failed
    from {{ ref('dbt_ripple', 'ripple_definition_changes') }} as changes
    left join nodes
        on
            changes.project_name = nodes.project_name
            and changes.unique_id = nodes.unique_id
    left join incidents
        on
            changes.snapshot_id = incidents.cause_snapshot_id
            and changes.unique_id = incidents.cause_unique_id
    where
        changes.is_origin
        and changes.resource_type not in ('test', 'unit_test')
    group by changes.project_name, coalesce(nodes.domain, 'no domain'), changes.snapshot_id
),

changed as (
    select
        project_name,
        domain,
        {{ week_of('changed_at') }} as week,
        count(*) as changes,
        sum(has_failed) as failed_changes
    from made
    group by project_name, domain, {{ week_of('changed_at') }}
),

-- Times at which at least one incident of the domain was open, cut at the weeks they reach into.
calendar as (
    {%- for weeks_ago in range((var('ripple_history_days', 90) | int) // 7 + 2) %}
        select {{ week_of(days_ago(7 * weeks_ago)) }} as week
        {{ 'union all' if not loop.last }}
    {%- endfor %}
),

ends as (
    select
        week,
        {{ week_after('week') }} as next_week
    from calendar
),

open_times as (
    select
        incidents.project_name,
        incidents.domain,
        ends.week,
        greatest(incidents.opened_at, ends.week) as began_at,
        least(incidents.ended_at, ends.next_week) as ended_at
    from incidents
    inner join ends
        on
            incidents.ended_at > ends.week
            and incidents.opened_at < ends.next_week
),

-- What began while another was open adds only what is longer.
longest_before as (
    select
        *,
        max(ended_at) over (
            partition by project_name, domain, week
            order by began_at, ended_at
            rows between unbounded preceding and 1 preceding
        ) as covered_until
    from open_times
),

down as (
    select
        project_name,
        domain,
        week,
        sum(
            case
                when covered_until is null or covered_until <= began_at
                    then {{ seconds_between('began_at', 'ended_at') }}
                when covered_until < ended_at then {{ seconds_between('covered_until', 'ended_at') }}
                else 0
            end
        ) / 3600.0 as downtime_hours
    from longest_before
    group by project_name, domain, week
),

-- A month of violations, told at the end of each week.
monthly as (
    select
        ends.week,
        found.project_name,
        found.domain,
        count(*) as contract_violations
    from ends
    inner join found
        on
            ends.next_week > found.found_at
            and {{ seconds_between('found.found_at', 'ends.next_week') }} <= 30 * 86400
    group by ends.week, found.project_name, found.domain
),

weeks as (
    {%- for kind in ['opened', 'closed', 'violations', 'changed', 'down'] %}
        select
            project_name,
            domain,
            week
        from {{ kind }}
        {{ 'union' if not loop.last }}
    {%- endfor %}
),

final as (
    select
        weeks.project_name,
        weeks.domain,
        weeks.week,
        coalesce(opened.incidents_opened, 0) as incidents_opened,
        coalesce(closed.incidents_closed, 0) as incidents_closed,
        closed.mttr_minutes,
        coalesce(down.downtime_hours, 0) as downtime_hours,
        {{ share('opened.incidents_with_timely_cause', 'opened.incidents_opened') }} as timely_cause_share,
        coalesce(violations.contract_violations, 0) as contract_violations,
        coalesce(monthly.contract_violations, 0) as contract_violations_30_days,
        coalesce(changed.changes, 0) as changes,
        {{ share('changed.failed_changes', 'changed.changes') }} as change_failure_rate
    from weeks
    {%- for kind in ['opened', 'closed', 'violations', 'monthly', 'changed', 'down'] %}
        left join {{ kind }}
            on
                weeks.project_name = {{ kind }}.project_name
                and weeks.domain = {{ kind }}.domain
                and weeks.week = {{ kind }}.week
    {%- endfor %}
)

select * from final
