-- noqa: disable=LT02
{% if is_idle() %}
{{ nothing() }}
{% else %}
-- One query of many checks: of each, what breaks it, by its name.
with changes as (
    select * from {{ ref('dbt_ripple', 'ripple_definition_changes') }}
),

incidents as (
    select * from {{ ref('dbt_ripple', 'ripple_incidents') }}
),

slos as (
    select * from {{ ref('dbt_ripple', 'ripple_slo_status') }}
),

-- Changes of which none was made where it is seen: each must have begun in one of them.
without_origin as (
    select
        'definition_changes_begin_somewhere' as check_name,
        snapshot_id as found
    from changes
    group by snapshot_id
    having max(case when is_origin then 1 else 0 end) = 0
),

-- Incidents that ended before they began, or that are put down to a change made after them.
out_of_order as (
    select
        'incidents_in_order' as check_name,
        {{ in_words(['project_name', 'unique_id', 'opened_at']) }} as found
    from incidents
    where
        state not in ('open', 'closed', 'gone')
        or (state = 'closed') != (closed_at is not null)
        or closed_at < opened_at
        or caused_at > opened_at
        or failed_runs < 1
        or severity not in ('error', 'warn')
),

-- A state nobody can act on.
unclear as (
    select
        'slo_status_is_known' as check_name,
        {{ in_words(['unique_id', 'state']) }} as found
    from slos
    where
        state not in ('met', 'violated', 'learning', 'unknown')
        or checks_met > checks
),

repeated as (
    {{ bad_keys({
        'run_results_key': (source('ripple_raw', 'run_results'), ['snapshot_id', 'invocation_id', 'unique_id']),
        'run_history_key': (source('ripple_raw', 'run_history'), ['invocation_id', 'unique_id']),
        'fct_runs_key': (ref('dbt_ripple', 'ripple_fct_runs'), ['invocation_id', 'unique_id']),
        'test_history_key': (ref('dbt_ripple', 'ripple_test_history'), ['invocation_id', 'unique_id']),
        'last_successful_run_key': (
            ref('dbt_ripple', 'ripple_last_successful_run'), ['project_name', 'target_name', 'unique_id']
        ),
        'definition_changes_key': ('changes', ['snapshot_id', 'unique_id', 'column_name']),
        'incident_failures_key': (
            ref('dbt_ripple', 'ripple_incident_failures'), ['project_name', 'target_name', 'unique_id', 'opened_at']
        ),
        'incidents_key': ('incidents', ['incident_id']),
        'measurements_key': (
            ref('dbt_ripple', 'ripple_measurements'),
            ['project_name', 'target_name', 'unique_id', 'measure', 'invocation_id']
        ),
        'slo_status_key': ('slos', ['project_name', 'target_name', 'unique_id']),
    }) | indent(4) }}
)
{% for check in ['without_origin', 'out_of_order', 'unclear', 'repeated'] %}
select * from {{ check }}
{{ 'union all' if not loop.last }}
{%- endfor %}
{% endif %}
