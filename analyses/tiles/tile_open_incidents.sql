{{ config(enabled=part_is_on('operations')) }}

-- A table of what is broken now: each open incident with the node, whose it is, and since when.
with incidents as (
    select * from {{ ref('dbt_ripple', 'ripple_incidents') }}
    where state = 'open'
),

nodes as (
    select * from {{ ref('dbt_ripple', 'ripple_dim_nodes') }}
)

select
    incidents.project_name,
    incidents.incident_id,
    incidents.opened_at,
    incidents.node_id,
    incidents.cause_unique_id,
    nodes.name as node_name,
    coalesce(nodes.domain, 'no domain') as domain,
    nodes.owner,
    nodes.owner_email,
    nodes.owner_channel,
    nodes.criticality
from incidents
left join nodes
    on
        incidents.project_name = nodes.project_name
        and incidents.node_id = nodes.unique_id
order by incidents.opened_at, incidents.incident_id
