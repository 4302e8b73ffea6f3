{{ config(
    enabled=part_is_on('operations'),
    file_format=var('ripple_file_format', 'parquet')
) }}

{% set depth = [var('ripple_max_depth', 12) | int, 1] | max %}

with runs as (
    select
        *,
        not is_success as has_failed
    from {{ ref('dbt_ripple', 'ripple_fct_runs') }}
    where
        is_success
        or is_failure
        or (status = 'warn' and is_slo)
),

changes as (
    select * from {{ ref('dbt_ripple', 'ripple_definition_changes') }}
),

moved_edges as (
    select * from {{ ref('dbt_ripple', 'ripple_int_moved_edges') }}
),

nodes as (
    select * from {{ ref('dbt_ripple', 'ripple_dim_nodes') }}
),

projects as (
    select
        project_name,
        generated_at
    from {{ ref('dbt_ripple', 'ripple_dim_snapshots') }}
    where is_latest
),

-- Failures with as many successes before them are one, which the next success ends. An SLO that warns is violated; any
-- other warning, or a skip, is neither.
counted as (
    select
        *,
        sum(case when is_success then 1 else 0 end) over (
            partition by project_name, target_name, unique_id
            order by ran_at, invocation_id
            rows between unbounded preceding and current row
        ) as successes
    from runs
),

failures as (
    select
        *,
        row_number() over (
            partition by project_name, target_name, unique_id, successes
            order by ran_at, invocation_id
        ) as place,
        row_number() over (
            partition by project_name, target_name, unique_id, successes
            order by ran_at desc, invocation_id desc
        ) as place_from_end,
        count(*) over (
            partition by project_name, target_name, unique_id, successes
        ) as failed_runs,
        max(case when is_failure then 1 else 0 end) over (
            partition by project_name, target_name, unique_id, successes
        ) as has_error
    from counted
    where has_failed
),

opened as (
    select
        firsts.project_name,
        firsts.target_name,
        firsts.unique_id,
        firsts.name,
        firsts.resource_type,
        firsts.node_id,
        firsts.invocation_id as opened_invocation_id,
        firsts.ran_at as opened_at,
        firsts.failed_runs,
        case when firsts.has_error = 1 then 'error' else 'warn' end as severity,
        lasts.ran_at as last_failed_at,
        lasts.status as last_status,
        lasts.message as last_message,
        passed.ran_at as last_passed_at,
        ended.ran_at as closed_at,
        ended.invocation_id as closed_invocation_id
    from failures as firsts
    inner join failures as lasts
        on
            firsts.project_name = lasts.project_name
            and firsts.target_name = lasts.target_name
            and firsts.unique_id = lasts.unique_id
            and firsts.successes = lasts.successes
    left join counted as passed
        on
            firsts.project_name = passed.project_name
            and firsts.target_name = passed.target_name
            and firsts.unique_id = passed.unique_id
            and firsts.successes = passed.successes
            and passed.is_success
    left join counted as ended
        on
            firsts.project_name = ended.project_name
            and firsts.target_name = ended.target_name
            and firsts.unique_id = ended.unique_id
            and firsts.successes + 1 = ended.successes
            and ended.is_success
    where
        firsts.place = 1
        and lasts.place_from_end = 1
),

-- Where a change that reaches it is met first: in its own project on the node or test itself, else in the other project
-- where the change is handed over.
met as (
    select
        project_name,
        unique_id,
        target_name as change_target,
        snapshot_id,
        unique_id as at_id,
        column_name as at_column,
        changed_at,
        0 as distance
    from changes

    union all

    select
        elsewhere.project_name,
        elsewhere.unique_id,
        -- Of the target that the relation is of: what targets are called is each project's own affair.
        '' as change_target,
        changes.snapshot_id,
        changes.unique_id as at_id,
        changes.column_name as at_column,
        changes.changed_at,
        elsewhere.distance
    from {{ ref('dbt_ripple', 'ripple_int_reached_elsewhere') }} as elsewhere
    inner join changes
        on
            elsewhere.change_project = changes.project_name
            and elsewhere.target_name = changes.target_name
            and elsewhere.change_id = changes.unique_id
            and elsewhere.change_column = changes.column_name
),

-- Changes that reach it, made since it last passed and before it failed; the nearest is taken to be the cause.
reaching as (
    select
        opened.project_name,
        opened.target_name,
        opened.unique_id,
        opened.opened_at,
        met.snapshot_id,
        met.at_id,
        met.at_column,
        met.distance,
        dense_rank() over (
            partition by opened.project_name, opened.target_name, opened.unique_id, opened.opened_at
            order by met.changed_at desc, met.snapshot_id desc
        ) as recency
    from opened
    inner join met
        on
            opened.project_name = met.project_name
            and opened.unique_id = met.unique_id
            and opened.opened_at >= met.changed_at
    where
        met.change_target in ('', opened.target_name)
        and (opened.last_passed_at is null or opened.last_passed_at < met.changed_at)
),

-- One step against the ripple; where it began, the walk may stay.
steps as (
    select
        snapshot_id,
        child_id,
        child_column,
        parent_id,
        parent_column,
        case when parent_id = child_id then 0 else 1 end as distance
    from moved_edges

    union all

    select
        snapshot_id,
        unique_id as child_id,
        column_name as child_column,
        unique_id as parent_id,
        column_name as parent_column,
        0 as distance
    from changes
    where is_origin
),

walk_0 as (
    select
        project_name,
        target_name,
        unique_id,
        opened_at,
        snapshot_id,
        at_id,
        at_column,
        min(distance) as distance
    from reaching
    where recency = 1
    group by
        project_name,
        target_name,
        unique_id,
        opened_at,
        snapshot_id,
        at_id,
        at_column
),
{% for step in range(depth) %}
    walk_{{ step + 1 }} as (
        select
            walked.project_name,
            walked.target_name,
            walked.unique_id,
            walked.opened_at,
            walked.snapshot_id,
            steps.parent_id as at_id,
            steps.parent_column as at_column,
            min(walked.distance + steps.distance) as distance
        from walk_{{ step }} as walked
        inner join steps
            on
                walked.snapshot_id = steps.snapshot_id
                and walked.at_id = steps.child_id
                and walked.at_column = steps.child_column
        group by
            walked.project_name,
            walked.target_name,
            walked.unique_id,
            walked.opened_at,
            walked.snapshot_id,
            steps.parent_id,
            steps.parent_column
    ),
{% endfor %}
origins as (
    select
        walked.project_name,
        walked.target_name,
        walked.unique_id,
        walked.opened_at,
        changes.project_name as cause_project,
        changes.unique_id as cause_unique_id,
        changes.column_name as cause_column,
        changes.change as cause_change,
        changes.old_expression as cause_old_expression,
        changes.new_expression as cause_new_expression,
        changes.changed_at as caused_at,
        changes.git_sha as cause_git_sha,
        changes.snapshot_id as cause_snapshot_id,
        walked.distance as cause_distance,
        count(*) over (
            partition by walked.project_name, walked.target_name, walked.unique_id, walked.opened_at
        ) as cause_candidates,
        row_number() over (
            partition by walked.project_name, walked.target_name, walked.unique_id, walked.opened_at
            order by walked.distance, changes.unique_id, changes.column_name
        ) as preference
    from walk_{{ depth }} as walked
    inner join changes
        on
            walked.snapshot_id = changes.snapshot_id
            and walked.at_id = changes.unique_id
            and walked.at_column = changes.column_name
    where changes.is_origin
),

judged as (
    select
        opened.*,
        nodes.name as node_name,
        nodes.owner,
        nodes.criticality,
        case
            when opened.closed_at is not null then 'closed'
            when projects.generated_at > opened.last_failed_at and own.unique_id is null then 'gone'
            else 'open'
        end as state,
        {{ seconds_between('opened.opened_at', 'opened.closed_at') }} as seconds_to_recovery
    from opened
    left join nodes
        on
            opened.project_name = nodes.project_name
            and opened.node_id = nodes.unique_id
    left join nodes as own
        on
            opened.project_name = own.project_name
            and opened.unique_id = own.unique_id
    left join projects on opened.project_name = projects.project_name
),

final as (
    select
        judged.project_name,
        judged.target_name,
        judged.unique_id,
        judged.name,
        judged.resource_type,
        judged.node_id,
        judged.node_name,
        judged.owner,
        judged.criticality,
        judged.severity,
        judged.state,
        judged.opened_at,
        judged.opened_invocation_id,
        judged.last_passed_at,
        judged.failed_runs,
        judged.last_failed_at,
        judged.last_status,
        judged.last_message,
        judged.closed_at,
        judged.closed_invocation_id,
        judged.seconds_to_recovery,
        origins.cause_project,
        origins.cause_unique_id,
        origins.cause_column,
        origins.cause_change,
        origins.cause_old_expression,
        origins.cause_new_expression,
        origins.caused_at,
        origins.cause_git_sha,
        origins.cause_snapshot_id,
        origins.cause_distance,
        origins.cause_candidates
    from judged
    left join origins
        on
            judged.project_name = origins.project_name
            and judged.target_name = origins.target_name
            and judged.unique_id = origins.unique_id
            and judged.opened_at = origins.opened_at
            and origins.preference = 1
)

select * from final
