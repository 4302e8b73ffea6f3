{%- set loads = loads_shown() %}
-- The models most others rest on: where a mistake costs most, and where tests and an owner pay first.
with nodes as (
    select * from {{ source('ripple_raw', 'nodes') }}
    where snapshot_id in ({{ loads }})
),

facts as (
    select
        edges.snapshot_id,
        edges.parent_id as unique_id,
        case when children.resource_type in ('test', 'unit_test') then 'test' else 'reader' end as fact,
        cast(null as {{ type_of('string') }}) as column_name
    from {{ source('ripple_raw', 'edges') }} as edges
    inner join nodes as children
        on
            edges.snapshot_id = children.snapshot_id
            and edges.child_id = children.unique_id
    where edges.snapshot_id in ({{ loads }})

    union all

    select
        snapshot_id,
        ancestor_id as unique_id,
        'below' as fact,
        cast(null as {{ type_of('string') }}) as column_name
    from {{ source('ripple_raw', 'node_closure') }}
    where
        depth > 0
        and snapshot_id in ({{ loads }})

    union all

    select
        snapshot_id,
        parent_id as unique_id,
        'read' as fact,
        parent_column as column_name
    from {{ source('ripple_raw', 'column_edges') }}
    where
        parent_column != '*rows*'
        and snapshot_id in ({{ loads }})

    union all

    select
        snapshot_id,
        unique_id,
        'column' as fact,
        cast(null as {{ type_of('string') }}) as column_name
    from {{ source('ripple_raw', 'columns') }}
    where snapshot_id in ({{ loads }})
),

-- All of it counted at once.
counted as (
    select
        snapshot_id,
        unique_id,
        count(case when fact = 'reader' then 1 end) as direct_readers,
        count(case when fact = 'test' then 1 end) as tests,
        count(case when fact = 'below' then 1 end) as all_readers,
        count(distinct column_name) as columns_read,
        count(case when fact = 'column' then 1 end) as columns
    from facts
    group by snapshot_id, unique_id
)

select
    nodes.name,
    nodes.asset_type,
    counted.direct_readers,
    counted.tests,
    counted.all_readers,
    counted.columns_read,
    counted.columns,
    nodes.owner,
    nodes.unique_id
from nodes
inner join counted
    on
        nodes.snapshot_id = counted.snapshot_id
        and nodes.unique_id = counted.unique_id
where
    nodes.resource_type in ('model', 'snapshot')
    and nodes.package_name != 'dbt_ripple'
    and counted.all_readers > 0
order by counted.all_readers desc, counted.direct_readers desc, nodes.name asc
limit 10
