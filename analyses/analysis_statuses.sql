{%- set loads = loads_shown() %}
-- How well the project could be analysed: what share of each kind of node was analysed, and a reason where not.
-- A leaf has no query to follow.
with columns as (
    select
        snapshot_id,
        unique_id,
        count(*) as columns
    from {{ source('ripple_raw', 'columns') }}
    where snapshot_id in ({{ loads }})
    group by snapshot_id, unique_id
)

select
    nodes.project_name,
    nodes.resource_type,
    nodes.analysis_status,
    count(*) as nodes,
    round(
        100.0 * count(*) / sum(count(*)) over (partition by nodes.project_name, nodes.resource_type), 1
    ) as percent_of_type,
    sum(coalesce(columns.columns, 0)) as columns,
    min(nodes.analysis_reason) as one_reason
from {{ ref('dbt_ripple', 'ripple_dim_nodes') }} as nodes
left join columns
    on
        nodes.snapshot_id = columns.snapshot_id
        and nodes.unique_id = columns.unique_id
where
    nodes.resource_type not in ('test', 'unit_test')
    and nodes.snapshot_id in ({{ loads }})
group by nodes.project_name, nodes.resource_type, nodes.analysis_status
order by nodes.project_name, nodes.resource_type, nodes.analysis_status
