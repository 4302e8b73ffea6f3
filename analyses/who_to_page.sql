{{ config(enabled=part_is_on('operations')) }}
{%- set node = var('ripple_node', none) -%}
{%- set asked = asked_nodes(node) if node else none %}

-- A number is wrong: whom to tell, the most critical asset first. From a node or one of its columns (vars
-- ripple_node and ripple_column), or from a failed test (its name as ripple_node): each asset of which a column or
-- the rows are reached, with whose it is, in other projects, too. Consumers that declare no columns may read it.
with reached as (
    {{ downstream_columns(asked, var('ripple_column', none)) | indent(4) }}
),

column_edges as (
    select * from {{ ref('dbt_ripple', 'ripple_fct_column_edges') }}
),

dim_nodes as (
    select * from {{ ref('dbt_ripple', 'ripple_dim_nodes') }}
),

undeclared as (
    select
        dim_nodes.snapshot_id,
        dim_nodes.unique_id
    from dim_nodes
    left join column_edges
        on
            dim_nodes.snapshot_id = column_edges.snapshot_id
            and dim_nodes.unique_id = column_edges.child_id
    where dim_nodes.resource_type = 'exposure'
    group by dim_nodes.snapshot_id, dim_nodes.unique_id
    having max(case when column_edges.parent_column != '*rows*' then 1 else 0 end) = 0
),

found as (
    select
        snapshot_id,
        unique_id,
        column_name,
        depth,
        0 as may_read
    from reached

    union all

    select
        reached.snapshot_id,
        undeclared.unique_id,
        cast(null as {{ type_of('string') }}) as column_name,
        reached.depth + 1 as depth,
        1 as may_read
    from reached
    inner join {{ ref('dbt_ripple', 'ripple_fct_edges') }} as edges
        on
            reached.snapshot_id = edges.snapshot_id
            and reached.unique_id = edges.parent_id
    inner join undeclared
        on
            edges.snapshot_id = undeclared.snapshot_id
            and edges.child_id = undeclared.unique_id
),

affected as (
    select
        snapshot_id,
        unique_id,
        min(depth) as depth,
        min(may_read) as may_read,
        count(distinct case when column_name != '*rows*' then column_name end) as columns_reached,
        min(case when column_name != '*rows*' then column_name end) as one_column
    from found
    group by snapshot_id, unique_id
),

-- Built since the time that is asked about (var ripple_since), it holds what is wrong.
built as (
    select
        project_name,
        unique_id,
        max(succeeded_at) as succeeded_at
    from {{ ref('dbt_ripple', 'ripple_last_successful_run') }}
    group by project_name, unique_id
)

select
    nodes.criticality,
    coalesce(nodes.owner, 'nobody') as owner,
    nodes.owner_email,
    nodes.owner_channel,
    nodes.domain,
    nodes.asset_type,
    nodes.project_name,
    nodes.name,
    affected.depth,
    affected.columns_reached,
    affected.one_column,
    affected.may_read = 1 as may_read,
    coalesce(built.succeeded_at >= {{ since() }}, false) as is_built_since,
    nodes.unique_id
from affected
inner join dim_nodes as nodes
    on
        affected.snapshot_id = nodes.snapshot_id
        and affected.unique_id = nodes.unique_id
left join built
    on
        nodes.project_name = built.project_name
        and nodes.unique_id = built.unique_id
-- A source that is reached is a relation of another project, under another name.
where
    nodes.resource_type not in ('test', 'unit_test')
    and not (nodes.resource_type = 'source' and affected.depth > 0)
order by nodes.criticality nulls last, affected.depth, owner, nodes.unique_id
