{%- set node = var('ripple_node', none) -%}
{%- set asked = asked_nodes(node) if node else none %}
-- Everything that depends on a node (var ripple_node), nearest first: whom to tell before it changes. What another
-- project reads as a source is followed there.
with reached as (
    {{ nodes_below(asked) | indent(4) }}
)

select
    asked.name as node,
    min(reached.depth) as depth,
    found.asset_type,
    found.name,
    found.owner,
    found.criticality,
    found.project_name,
    found.unique_id
from reached
inner join {{ ref('dbt_ripple', 'ripple_dim_nodes') }} as asked
    on
        reached.start_snapshot_id = asked.snapshot_id
        and reached.start_id = asked.unique_id
inner join {{ ref('dbt_ripple', 'ripple_dim_nodes') }} as found
    on
        reached.snapshot_id = found.snapshot_id
        and reached.unique_id = found.unique_id
where reached.depth > 0
group by
    asked.name,
    asked.snapshot_id,
    asked.unique_id,
    found.asset_type,
    found.name,
    found.owner,
    found.criticality,
    found.project_name,
    found.unique_id
order by node, depth, found.asset_type, found.name
