{{ config(enabled=part_is_on('health')) }}

with snapshots as (
    select * from {{ ref('dbt_ripple', 'int_weekly_snapshots') }}
),

nodes as (
    select * from {{ ref('dbt_ripple', 'stg_ripple__nodes') }}
    where package_name is null or package_name != 'dbt_ripple'
),

edges as (
    select * from {{ ref('dbt_ripple', 'stg_ripple__edges') }}
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
            edges.snapshot_id = seen.snapshot_id
            and edges.child_id = seen.unique_id
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
