{%- set node = var('ripple_node', none) -%}
{%- set asked = asked_nodes(node) if node else none %}
-- The columns that break when a column (vars ripple_node and ripple_column) is renamed or dropped, nearest first.
-- `value`: its value comes from that column. `condition`: that column only decides on rows, their order or a branch.
with reached as (
    {{ downstream_columns(asked, var('ripple_column', none) or '*rows*') | indent(4) }}
)

select
    reached.depth,
    nodes.asset_type,
    nodes.project_name,
    nodes.name as node,
    reached.column_name,
    case when reached.is_value then 'value' else 'condition' end as through,
    nodes.owner,
    nodes.criticality
from reached
inner join {{ ref('dbt_ripple', 'ripple_dim_nodes') }} as nodes
    on
        reached.snapshot_id = nodes.snapshot_id
        and reached.unique_id = nodes.unique_id
where reached.depth > 0
order by reached.depth, nodes.asset_type, node, reached.column_name
