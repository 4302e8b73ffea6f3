-- The models most others rest on: where a mistake costs most, and where tests and an owner pay first.
with readers as (
    select
        edges.snapshot_id,
        edges.parent_id as unique_id,
        count(case when children.resource_type not in ('test', 'unit_test') then 1 end) as direct_readers,
        count(case when children.resource_type in ('test', 'unit_test') then 1 end) as tests
    from {{ ref('dbt_ripple', 'ripple_fct_edges') }} as edges
    inner join {{ ref('dbt_ripple', 'ripple_dim_nodes') }} as children
        on
            edges.snapshot_id = children.snapshot_id
            and edges.child_id = children.unique_id
    group by edges.snapshot_id, edges.parent_id
),

reach as (
    select
        snapshot_id,
        ancestor_id as unique_id,
        count(*) as all_readers
    from {{ ref('dbt_ripple', 'ripple_fct_node_closure') }}
    where depth > 0
    group by snapshot_id, ancestor_id
),

column_reads as (
    select
        snapshot_id,
        parent_id as unique_id,
        count(distinct parent_column) as columns_read
    from {{ ref('dbt_ripple', 'ripple_fct_column_edges') }}
    where parent_column != '*rows*'
    group by snapshot_id, parent_id
),

columns as (
    select
        snapshot_id,
        unique_id,
        count(*) as columns
    from {{ ref('dbt_ripple', 'ripple_dim_columns') }}
    group by snapshot_id, unique_id
)

select
    nodes.name,
    nodes.asset_type,
    readers.direct_readers,
    readers.tests,
    reach.all_readers,
    coalesce(column_reads.columns_read, 0) as columns_read,
    coalesce(columns.columns, 0) as columns,
    nodes.owner,
    nodes.unique_id
from {{ ref('dbt_ripple', 'ripple_dim_nodes') }} as nodes
inner join readers
    on
        nodes.snapshot_id = readers.snapshot_id
        and nodes.unique_id = readers.unique_id
inner join reach
    on
        nodes.snapshot_id = reach.snapshot_id
        and nodes.unique_id = reach.unique_id
left join column_reads
    on
        nodes.snapshot_id = column_reads.snapshot_id
        and nodes.unique_id = column_reads.unique_id
left join columns
    on
        nodes.snapshot_id = columns.snapshot_id
        and nodes.unique_id = columns.unique_id
where
    nodes.resource_type in ('model', 'snapshot')
    and nodes.package_name != 'dbt_ripple'
order by reach.all_readers desc, readers.direct_readers desc, nodes.name asc
limit 10
