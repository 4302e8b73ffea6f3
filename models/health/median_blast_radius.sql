{{ config(enabled=part_is_on('health', also='operations')) }}

with origins as (
    select distinct
        project_name,
        snapshot_id,
        changed_at,
        unique_id
    from {{ ref('dbt_ripple', 'definition_changes') }}
    where
        is_origin
        and resource_type not in ('test', 'unit_test')
),

closure as (
    select * from {{ ref('dbt_ripple', 'stg_ripple__node_closure') }}
),

-- One change is what two loads in a row differ by.
reached as (
    select
        origins.project_name,
        origins.snapshot_id,
        {{ week_of('min(origins.changed_at)') }} as week,
        count(distinct closure.descendant_id) as blast_radius
    from origins
    left join closure
        on
            origins.snapshot_id = closure.snapshot_id
            and origins.unique_id = closure.ancestor_id
            and closure.depth > 0
    group by origins.project_name, origins.snapshot_id
),

placed as (
    select
        *,
        row_number() over (
            partition by project_name, week
            order by blast_radius, snapshot_id
        ) as place,
        count(*) over (partition by project_name, week) as changes
    from reached
),

final as (
    select
        project_name,
        week,
        max(changes) as changes,
        avg(case when 2 * place between changes and changes + 2 then blast_radius end) as median_blast_radius,
        max(blast_radius) as largest_blast_radius
    from placed
    group by project_name, week
)

select * from final
