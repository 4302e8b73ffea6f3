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

readers as (
    select
        edges.snapshot_id,
        edges.parent_id as unique_id,
        count(*) as readers,
        count(case when nodes.analysis_status in ('opaque', 'broken') then 1 end) as unseen_readers,
        min(case when nodes.analysis_status in ('opaque', 'broken') then nodes.unique_id end) as one_unseen_reader
    from edges
    inner join nodes
        on
            edges.snapshot_id = nodes.snapshot_id
            and edges.child_id = nodes.unique_id
    where nodes.resource_type not in ('test', 'unit_test')
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
            else 'a reader that cannot be analysed'
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
