{{ config(enabled=part_is_on('health', also='operations')) }}

with coverage as (
    select * from {{ ref('dbt_ripple', 'ripple_lineage_coverage') }}
),

unknowns as (
    select
        snapshot_id,
        count(*) as unknown_downstreams
    from {{ ref('dbt_ripple', 'ripple_unknown_downstreams') }}
    group by snapshot_id
),

-- What was seen last: it is said of the newest load only.
unlisted as (
    select
        project_name,
        count(*) as unlisted_relations
    from {{ ref('dbt_ripple', 'ripple_unlisted_relations') }}
    group by project_name
),

integrity as (
    select
        snapshot_id,
        count(*) as certified_nodes,
        count(case when is_complete then 1 end) as complete_nodes
    from {{ ref('dbt_ripple', 'ripple_certified_path_integrity') }}
    group by snapshot_id
),

blast as (
    select * from {{ ref('dbt_ripple', 'ripple_median_blast_radius') }}
),

opened as (
    select
        project_name,
        {{ week_of('opened_at') }} as week,
        count(*) as incidents_opened
    from {{ ref('dbt_ripple', 'ripple_incidents') }}
    group by project_name, {{ week_of('opened_at') }}
),

closed as (
    select
        project_name,
        {{ week_of('closed_at') }} as week,
        count(*) as incidents_closed,
        avg(seconds_to_recovery) / 60 as mttr_minutes
    from {{ ref('dbt_ripple', 'ripple_incidents') }}
    where closed_at is not null
    group by project_name, {{ week_of('closed_at') }}
),

weeks as (
    select
        project_name,
        week
    from coverage

    union

    select
        project_name,
        week
    from opened

    union

    select
        project_name,
        week
    from closed

    union

    select
        project_name,
        week
    from blast
),

final as (
    select
        weeks.project_name,
        weeks.week,
        coverage.snapshot_id,
        coverage.node_coverage,
        coverage.tier1_node_coverage,
        coverage.tier1_column_coverage,
        case
            when coverage.snapshot_id is not null then coalesce(unknowns.unknown_downstreams, 0)
        end as unknown_downstreams,
        case when coverage.is_latest then coalesce(unlisted.unlisted_relations, 0) end as unlisted_relations,
        {{ share('integrity.complete_nodes', 'integrity.certified_nodes') }} as certified_path_integrity,
        coalesce(blast.changes, 0) as changes,
        blast.median_blast_radius,
        coalesce(opened.incidents_opened, 0) as incidents_opened,
        coalesce(closed.incidents_closed, 0) as incidents_closed,
        closed.mttr_minutes
    from weeks
    left join coverage
        on
            weeks.project_name = coverage.project_name
            and weeks.week = coverage.week
    left join unknowns on coverage.snapshot_id = unknowns.snapshot_id
    left join unlisted on coverage.project_name = unlisted.project_name
    left join integrity on coverage.snapshot_id = integrity.snapshot_id
    left join blast
        on
            weeks.project_name = blast.project_name
            and weeks.week = blast.week
    left join opened
        on
            weeks.project_name = opened.project_name
            and weeks.week = opened.week
    left join closed
        on
            weeks.project_name = closed.project_name
            and weeks.week = closed.week
)

select * from final
