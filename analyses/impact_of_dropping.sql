{%- set node = var('ripple_node', none) -%}
{%- set asked = asked_nodes(node) if node else none %}
-- Whom it would reach to drop a column (vars ripple_node and ripple_column), nearest first.
-- breaking: it reads the column, or one that is made of it; warning: its values or rows may differ, or nobody declared
-- what it reads; info: it reads nothing of it, but stands on something that breaks.
with affected as (
    {{ affected_by_dropping(asked, var('ripple_column', none) or '*rows*') | indent(4) }}
)

select
    affected.depth,
    nodes.unique_id,
    nodes.name,
    nodes.asset_type,
    affected.severity,
    nodes.owner
from affected
inner join {{ ref('dbt_ripple', 'ripple_dim_nodes') }} as nodes
    on
        affected.snapshot_id = nodes.snapshot_id
        and affected.unique_id = nodes.unique_id
-- A source that is reached is a relation of another project, under another name.
where nodes.resource_type not in ('test', 'unit_test', 'source')
order by
    affected.depth,
    case affected.severity when 'breaking' then 1 when 'warning' then 2 else 3 end,
    nodes.unique_id
