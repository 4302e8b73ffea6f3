{{ config(
    enabled=part_is_on('operations'),
    file_format=var('ripple_file_format', 'parquet')
) }}

with failures as (
    select
        *,
        {{ hash_of(['project_name', 'target_name', 'unique_id', 'opened_at']) }} as failure_id,
        {{ hash_of(['target_name', 'cause_snapshot_id', 'cause_unique_id']) }} as cause_id
    from {{ ref('dbt_ripple', 'ripple_int_failures') }}
),

snapshots as (
    select
        project_name,
        snapshot_id
    from {{ ref('dbt_ripple', 'ripple_dim_snapshots') }}
    where is_latest
),

closure as (
    select
        snapshots.project_name,
        snapshots.project_name as ancestor_project,
        closure.ancestor_id,
        closure.descendant_id,
        closure.depth
    from {{ ref('dbt_ripple', 'ripple_fct_node_closure') }} as closure
    inner join snapshots on closure.snapshot_id = snapshots.snapshot_id

    union all

    -- What another project builds stands above all that is below the source that stands for it.
    select
        crossings.child_project as project_name,
        crossings.parent_project as ancestor_project,
        above.ancestor_id,
        below.descendant_id,
        min(above.depth + 1 + below.depth) as depth
    from {{ ref('dbt_ripple', 'ripple_fct_cross_project_edges') }} as crossings
    inner join {{ ref('dbt_ripple', 'ripple_fct_node_closure') }} as above
        on
            crossings.parent_snapshot_id = above.snapshot_id
            and crossings.parent_id = above.descendant_id
    inner join {{ ref('dbt_ripple', 'ripple_fct_node_closure') }} as below
        on
            crossings.child_snapshot_id = below.snapshot_id
            and crossings.child_id = below.ancestor_id
    where
        crossings.parent_column = '*rows*'
        and {{ 'true' if var('ripple_max_projects', 2) | int else 'false' }}
    group by crossings.child_project, crossings.parent_project, above.ancestor_id, below.descendant_id
),

-- Where no change of a definition is the cause, it is in the data, and comes from above: from what failed in the same
-- run, or has failed since this last passed.
above as (
    select
        failures.failure_id,
        upper_failures.failure_id as upper_id,
        row_number() over (
            partition by failures.failure_id
            order by closure.depth desc, upper_failures.opened_at asc, upper_failures.unique_id asc
        ) as preference
    from failures
    inner join closure
        on
            failures.project_name = closure.project_name
            and failures.node_id = closure.descendant_id
    inner join failures as upper_failures
        on
            closure.ancestor_project = upper_failures.project_name
            and closure.ancestor_id = upper_failures.node_id
            and failures.target_name = upper_failures.target_name
    where
        failures.cause_unique_id is null
        and upper_failures.cause_unique_id is null
        and (
            (closure.depth > 0 and failures.opened_invocation_id = upper_failures.opened_invocation_id)
            or (
                closure.depth > 0
                and upper_failures.opened_at <= failures.opened_at
                and (failures.last_passed_at is null or failures.last_passed_at < upper_failures.opened_at)
                and (upper_failures.closed_at is null or upper_failures.closed_at > failures.opened_at)
            )
            or (
                closure.depth = 0
                and failures.opened_invocation_id = upper_failures.opened_invocation_id
                and (
                    failures.opened_at > upper_failures.opened_at
                    or (
                        failures.opened_at = upper_failures.opened_at
                        and failures.unique_id > upper_failures.unique_id
                    )
                )
            )
        )
),

-- The highest of them is nearly always the first; where it was not seen from here, it is reached in steps.
step_0 as (
    select
        failure_id,
        failure_id as reached_id
    from failures
),
{% for step in range(4) %}
    step_{{ step + 1 }} as (
        select
            walked.failure_id,
            coalesce(above.upper_id, walked.reached_id) as reached_id
        from step_{{ step }} as walked
        left join above
            on
                walked.reached_id = above.failure_id
                and above.preference = 1
    ),
{% endfor %}
final as (
    select
        case when failures.cause_unique_id is null then firsts.reached_id else failures.cause_id end as incident_id,
        failures.failure_id,
        failures.project_name,
        failures.target_name,
        failures.unique_id,
        failures.name,
        failures.resource_type,
        failures.node_id,
        failures.node_name,
        failures.owner,
        nodes.owner_name,
        nodes.owner_email,
        nodes.owner_channel,
        nodes.domain,
        failures.criticality,
        failures.severity,
        failures.state,
        failures.opened_at,
        failures.opened_invocation_id,
        failures.last_passed_at,
        failures.failed_runs,
        failures.last_failed_at,
        failures.last_status,
        failures.last_message,
        failures.closed_at,
        failures.closed_invocation_id,
        failures.seconds_to_recovery,
        failures.cause_project,
        failures.cause_unique_id,
        failures.cause_column,
        failures.cause_change,
        failures.cause_old_expression,
        failures.cause_new_expression,
        failures.caused_at,
        failures.cause_git_sha,
        failures.cause_snapshot_id,
        failures.cause_distance,
        failures.cause_candidates
    from failures
    inner join step_4 as firsts on failures.failure_id = firsts.failure_id
    left join {{ ref('dbt_ripple', 'ripple_dim_nodes') }} as nodes
        on
            failures.project_name = nodes.project_name
            and failures.node_id = nodes.unique_id
)

select * from final
