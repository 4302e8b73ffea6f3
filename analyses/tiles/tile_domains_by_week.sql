{{ config(enabled=part_is_on('health', also='operations') and part_is_on('governance', also='operations')) }}

-- A tile of bars, one group for each domain: incidents, downtime, broken contracts and failed changes, week by week.
select
    project_name,
    week,
    domain,
    incidents_opened,
    mttr_minutes,
    downtime_hours,
    contract_violations,
    100 * change_failure_rate as failed_changes_percent
from {{ ref('dbt_ripple', 'ripple_domain_kpis') }}
order by project_name, week, domain
