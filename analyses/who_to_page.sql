-- A node is broken (var ripple_node): whom to tell, the most critical first, and which of their assets are downstream.
with reached as (
    select
        asked.name as asked_about,
        found.owner,
        found.criticality,
        found.name,
        found.asset_type,
        closure.depth
    from {{ ref('dbt_ripple', 'dim_nodes') }} as asked
    inner join {{ ref('dbt_ripple', 'fct_node_closure') }} as closure
        on
            asked.snapshot_id = closure.snapshot_id
            and asked.unique_id = closure.ancestor_id
    inner join {{ ref('dbt_ripple', 'dim_nodes') }} as found
        on
            closure.snapshot_id = found.snapshot_id
            and closure.descendant_id = found.unique_id
    where {{ node_is('asked', var('ripple_node', none)) }}
)

select
    asked_about,
    coalesce(owner, 'nobody') as owner,
    count(*) as assets,
    min(criticality) as highest_criticality,
    min(depth) as nearest,
    min(case when asset_type not in ('DBT_MODEL', 'TABLE') then name end) as one_consumer,
    min(name) as one_asset
from reached
group by asked_about, coalesce(owner, 'nobody')
order by asked_about, highest_criticality nulls last, nearest, owner
