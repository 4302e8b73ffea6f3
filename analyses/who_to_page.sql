{{ config(enabled=part_is_on('operations')) }}
{%- set node = var('ripple_node', none) -%}
{%- set asked = asked_nodes(node) if node else none %}

-- A number is wrong: whom to tell, the most critical asset first. From a node or one of its columns (vars
-- ripple_node and ripple_column), or from a failed test (its name as ripple_node): each asset of which a column or
-- the rows are reached, with whose it is, in other projects, too. Consumers that declare no columns may read it.
with affected as (
    {{ reached_assets(asked, var('ripple_column', none)) | indent(4) }}
),

-- Built since the time that is asked about (var ripple_since), it holds what is wrong.
built as (
    select
        project_name,
        unique_id,
        max(succeeded_at) as succeeded_at
    from {{ ref('dbt_ripple', 'ripple_last_successful_run') }}
    where unique_id in (select affected.unique_id from affected)
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
    affected.may_read,
    coalesce(built.succeeded_at >= {{ since() }}, false) as is_built_since,
    nodes.unique_id
from affected
inner join {{ ref('dbt_ripple', 'ripple_dim_nodes') }} as nodes
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
