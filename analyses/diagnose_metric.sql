{{ config(enabled=part_is_on('operations')) }}

-- A number looks wrong (var ripple_node, and ripple_column): all that it comes from, nearest first and down to the
-- sources, with how fresh each is, what is wrong with it now, and whose it is. `direct_columns` are what the column's
-- own expression reads.
with asked as (
    select
        nodes.snapshot_id,
        nodes.project_name,
        nodes.unique_id,
        nodes.name
    from {{ ref('dbt_ripple', 'dim_nodes') }} as nodes
    where {{ node_is('nodes', var('ripple_node', none)) }}
),

direct as (
    select
        snapshot_id,
        child_id,
        parent_id,
        count(distinct parent_column) as direct_columns,
        min(parent_column) as one_direct_column
    from {{ ref('dbt_ripple', 'fct_column_edges') }}
    where
        type = 'DIRECT'
        and lower(child_column) = lower({{ text_literal(var('ripple_column', none)) }})
    group by snapshot_id, child_id, parent_id
),

last_runs as (
    select
        project_name,
        unique_id,
        max(succeeded_at) as succeeded_at,
        max(max_loaded_at) as newest_row_at
    from {{ ref('dbt_ripple', 'last_successful_run') }}
    group by project_name, unique_id
),

open_incidents as (
    select
        project_name,
        node_id,
        count(*) as open_incidents,
        min(opened_at) as open_since
    from {{ ref('dbt_ripple', 'incident_failures') }}
    where state = 'open'
    group by project_name, node_id
)

select
    asked.name as asked_about,
    closure.depth,
    nodes.asset_type,
    nodes.name,
    direct.one_direct_column,
    coalesce(direct.direct_columns, 0) as direct_columns,
    columns.expression,
    last_runs.newest_row_at,
    last_runs.succeeded_at,
    coalesce(open_incidents.open_incidents, 0) as open_incidents,
    open_incidents.open_since,
    nodes.analysis_status,
    nodes.owner,
    nodes.unique_id
from asked
inner join {{ ref('dbt_ripple', 'fct_node_closure') }} as closure
    on
        asked.snapshot_id = closure.snapshot_id
        and asked.unique_id = closure.descendant_id
inner join {{ ref('dbt_ripple', 'dim_nodes') }} as nodes
    on
        closure.snapshot_id = nodes.snapshot_id
        and closure.ancestor_id = nodes.unique_id
left join direct
    on
        asked.snapshot_id = direct.snapshot_id
        and asked.unique_id = direct.child_id
        and nodes.unique_id = direct.parent_id
left join {{ ref('dbt_ripple', 'dim_columns') }} as columns
    on
        nodes.snapshot_id = columns.snapshot_id
        and nodes.unique_id = columns.unique_id
        and lower(columns.column_name) = lower(
            case
                when closure.depth = 0 then {{ text_literal(var('ripple_column', none)) }}
                else direct.one_direct_column
            end
        )
left join last_runs
    on
        asked.project_name = last_runs.project_name
        and nodes.unique_id = last_runs.unique_id
left join open_incidents
    on
        asked.project_name = open_incidents.project_name
        and nodes.unique_id = open_incidents.node_id
order by asked_about, closure.depth, nodes.asset_type, nodes.name
