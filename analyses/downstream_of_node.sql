-- Everything that depends on a node (var ripple_node), nearest first: whom to tell before it changes.
select
    asked.name as node,
    closure.depth,
    found.asset_type,
    found.name,
    found.owner,
    found.criticality,
    found.unique_id
from {{ ref('dbt_ripple', 'fct_node_closure') }} as closure
inner join {{ ref('dbt_ripple', 'dim_nodes') }} as asked
    on
        closure.snapshot_id = asked.snapshot_id
        and closure.ancestor_id = asked.unique_id
inner join {{ ref('dbt_ripple', 'dim_nodes') }} as found
    on
        closure.snapshot_id = found.snapshot_id
        and closure.descendant_id = found.unique_id
where
    {{ node_is('asked', var('ripple_node', none)) }}
    and closure.depth > 0
order by node, closure.depth, found.asset_type, found.name
