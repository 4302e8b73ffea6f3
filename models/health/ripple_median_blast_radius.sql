{{ config(enabled=part_is_on('health', also='operations')) }}

-- One change is what two loads in a row differ by. It reaches what the gate counts: assets that were there before and
-- after, were not edited themselves, and of which a column or the rows moved; and consumers of such a column.
with changes as (
    select
        *,
        max(case when column_name = '*rows*' and change in ('added', 'removed') then 1 else 0 end) over (
            partition by snapshot_id, unique_id
        ) = 1 as is_new_or_gone
    from {{ ref('dbt_ripple', 'ripple_definition_changes') }}
    where resource_type not in ('test', 'unit_test')
),

made as (
    select
        project_name,
        snapshot_id,
        {{ week_of('min(changed_at)') }} as week
    from changes
    where is_origin
    group by project_name, snapshot_id
),

moved as (
    select
        snapshot_id,
        base_snapshot_id,
        unique_id,
        column_name
    from changes
    where change in ('removed', 'redefined')
),

-- Consumers have no columns of their own: what one declares to read, it reads; one that declares nothing may read all.
read_by_consumers as (
    select
        edges.snapshot_id,
        edges.parent_id,
        lower(edges.parent_column) as parent_column,
        edges.child_id,
        max(case when edges.parent_column != '*rows*' then 1 else 0 end) over (
            partition by edges.snapshot_id, edges.parent_id, edges.child_id
        ) = 0 as may_read_any
    from {{ ref('dbt_ripple', 'stg_ripple__column_edges') }} as edges
    inner join {{ ref('dbt_ripple', 'stg_ripple__nodes') }} as nodes
        on
            edges.snapshot_id = nodes.snapshot_id
            and edges.child_id = nodes.unique_id
    where nodes.resource_type in ('asset', 'exposure')
),

consumers as (
    select distinct
        moved.snapshot_id,
        read_by_consumers.child_id as unique_id
    from moved
    inner join read_by_consumers
        on
            moved.base_snapshot_id = read_by_consumers.snapshot_id
            and moved.unique_id = read_by_consumers.parent_id
            and (read_by_consumers.may_read_any or moved.column_name = read_by_consumers.parent_column)
    inner join {{ ref('dbt_ripple', 'stg_ripple__nodes') }} as still_there
        on
            moved.snapshot_id = still_there.snapshot_id
            and read_by_consumers.child_id = still_there.unique_id
),

assets as (
    select
        snapshot_id,
        unique_id
    from changes
    where
        not is_origin
        and not is_new_or_gone
        and change != 'retyped'

    union distinct

    select
        snapshot_id,
        unique_id
    from consumers
),

reached as (
    select
        made.project_name,
        made.snapshot_id,
        made.week,
        count(distinct assets.unique_id) as blast_radius
    from made
    left join assets on made.snapshot_id = assets.snapshot_id
    group by made.project_name, made.snapshot_id, made.week
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
