{{ config(enabled=part_is_on('health')) }}

with snapshots as (
    select * from {{ ref('dbt_ripple', 'ripple_int_weekly_snapshots') }}
),

nodes as (
    select * from {{ ref('dbt_ripple', 'stg_ripple__nodes') }}
    where package_name is null or package_name != 'dbt_ripple'
),

relations as (
    select
        snapshots.project_name,
        snapshots.week,
        snapshots.is_latest,
        nodes.*
    from snapshots
    inner join nodes on snapshots.snapshot_id = nodes.snapshot_id
    where nodes.resource_type in ('model', 'seed', 'snapshot', 'source')
),

-- The last load of a project stands until there is one in a later week.
standing as (
    select
        snapshot_id,
        project_name,
        week,
        lead(week) over (partition by project_name order by week) as next_week
    from snapshots
),

-- A relation is also read by what reads it in another project, as a source or taken over (a model without a file).
read_elsewhere as (
    select distinct
        relations.snapshot_id,
        relations.unique_id,
        standing.snapshot_id as reader_snapshot_id,
        theirs.unique_id as theirs_id
    from relations
    inner join standing
        on
            relations.project_name != standing.project_name
            and relations.week >= standing.week
            and (standing.next_week is null or relations.week < standing.next_week)
    inner join nodes as theirs
        on
            standing.snapshot_id = theirs.snapshot_id
            and (
                (theirs.resource_type = 'source' and relations.relation_key = theirs.relation_key)
                or (
                    theirs.resource_type = 'model'
                    and theirs.path is null
                    and relations.project_name = theirs.package_name
                    and relations.unique_id = theirs.unique_id
                )
            )
    where {{ 'true' if var('ripple_max_projects', 2) | int else 'false' }}
),

edges as (
    select
        snapshot_id,
        parent_id,
        snapshot_id as reader_snapshot_id,
        child_id as reader_id
    from {{ ref('dbt_ripple', 'stg_ripple__edges') }}

    union all

    select
        read_elsewhere.snapshot_id,
        read_elsewhere.unique_id as parent_id,
        read_elsewhere.reader_snapshot_id,
        theirs.child_id as reader_id
    from read_elsewhere
    inner join {{ ref('dbt_ripple', 'stg_ripple__edges') }} as theirs
        on
            read_elsewhere.reader_snapshot_id = theirs.snapshot_id
            and read_elsewhere.theirs_id = theirs.parent_id
),

-- Consumers that do not say which columns they read: they may read any.
silent as (
    select
        nodes.snapshot_id,
        nodes.unique_id
    from nodes
    left join {{ ref('dbt_ripple', 'stg_ripple__column_edges') }} as column_edges
        on
            nodes.snapshot_id = column_edges.snapshot_id
            and nodes.unique_id = column_edges.child_id
    where nodes.resource_type in ('exposure', 'metric', 'semantic_model', 'saved_query')
    group by nodes.snapshot_id, nodes.unique_id
    having max(case when column_edges.parent_column != '*rows*' then 1 else 0 end) = 0
),

seen as (
    select
        nodes.snapshot_id,
        nodes.unique_id,
        nodes.resource_type,
        case when nodes.analysis_status in ('opaque', 'broken') then 1 else 0 end as is_unseen,
        case when silent.unique_id is not null then 1 else 0 end as is_silent
    from nodes
    left join silent
        on
            nodes.snapshot_id = silent.snapshot_id
            and nodes.unique_id = silent.unique_id
),

readers as (
    select
        edges.snapshot_id,
        edges.parent_id as unique_id,
        count(*) as readers,
        max(seen.is_unseen) as is_unseen,
        count(case when seen.is_unseen = 1 or seen.is_silent = 1 then 1 end) as unseen_readers,
        min(case when seen.is_unseen = 1 or seen.is_silent = 1 then seen.unique_id end) as one_unseen_reader
    from edges
    inner join seen
        on
            edges.reader_snapshot_id = seen.snapshot_id
            and edges.reader_id = seen.unique_id
    where seen.resource_type not in ('test', 'unit_test')
    group by edges.snapshot_id, edges.parent_id
),

final as (
    select
        relations.project_name,
        relations.week,
        relations.snapshot_id,
        relations.is_latest,
        relations.unique_id,
        relations.name,
        relations.resource_type,
        relations.owner,
        relations.criticality,
        case
            when readers.unique_id is null then 'no known reader'
            when readers.is_unseen = 1 then 'a reader that cannot be analysed'
            else 'a consumer that does not say which columns it reads'
        end as reason,
        coalesce(readers.unseen_readers, 0) as unseen_readers,
        readers.one_unseen_reader
    from relations
    left join readers
        on
            relations.snapshot_id = readers.snapshot_id
            and relations.unique_id = readers.unique_id
    where
        readers.unique_id is null
        or readers.unseen_readers > 0
)

select * from final
