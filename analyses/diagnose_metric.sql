{{ config(enabled=part_is_on('operations')) }}
{%- set node = var('ripple_node', none) -%}
{%- set asked = asked_nodes(node) if node else none %}

-- A number looks wrong (vars ripple_node and ripple_column; ripple_node may be a failed test): all that it comes
-- from, column by column, nearest first and down to the sources. Of each, how it is computed, how fresh it is, what
-- changed since ripple_since, which tests guard it, what is wrong with it now, and whose it is. `*rows*` is which
-- rows there are.
with reached as (
    {{ upstream_columns(asked, var('ripple_column', none)) | indent(4) }}
),

dim_nodes as (
    select * from {{ ref('dbt_ripple', 'ripple_dim_nodes') }}
),

-- A name is spelled as the analysis spells it.
steps as (
    select
        snapshot_id,
        unique_id,
        lower(column_name) as column_name,
        min(depth) as depth
    from reached
    group by snapshot_id, unique_id, lower(column_name)
),

columns as (
    select
        snapshot_id,
        unique_id,
        lower(column_name) as column_name,
        min(expression) as expression
    from {{ ref('dbt_ripple', 'ripple_dim_columns') }}
    group by snapshot_id, unique_id, lower(column_name)
),

last_runs as (
    select
        project_name,
        unique_id,
        max(succeeded_at) as succeeded_at,
        max(max_loaded_at) as newest_row_at
    from {{ ref('dbt_ripple', 'ripple_last_successful_run') }}
    group by project_name, unique_id
),

changes as (
    select
        project_name,
        unique_id,
        column_name,
        count(*) as changes,
        max(changed_at) as last_changed_at,
        max(git_sha) as one_git_sha
    from {{ ref('dbt_ripple', 'ripple_definition_changes') }}
    where
        is_origin
        and changed_at >= {{ since() }}
    group by project_name, unique_id, column_name
),

tests as (
    select
        tested.snapshot_id,
        tested.unique_id,
        lower(tested.column_name) as column_name,
        count(distinct tested.test_id) as tests,
        min(nodes.name) as one_test
    from {{ ref('dbt_ripple', 'stg_ripple__test_columns') }} as tested
    inner join dim_nodes as nodes
        on
            tested.snapshot_id = nodes.snapshot_id
            and tested.test_id = nodes.unique_id
    group by tested.snapshot_id, tested.unique_id, lower(tested.column_name)
),

open_incidents as (
    select
        project_name,
        node_id,
        count(*) as open_incidents,
        min(opened_at) as open_since
    from {{ ref('dbt_ripple', 'ripple_incident_failures') }}
    where state = 'open'
    group by project_name, node_id
)

select
    steps.depth,
    nodes.asset_type,
    nodes.project_name,
    nodes.name,
    steps.column_name,
    columns.expression,
    last_runs.newest_row_at,
    last_runs.succeeded_at,
    coalesce(changes.changes, 0) as changes,
    changes.last_changed_at,
    changes.one_git_sha,
    coalesce(tests.tests, 0) as tests,
    tests.one_test,
    coalesce(open_incidents.open_incidents, 0) as open_incidents,
    open_incidents.open_since,
    nodes.analysis_status,
    nodes.owner,
    nodes.owner_email,
    nodes.owner_channel,
    nodes.unique_id
from steps
inner join dim_nodes as nodes
    on
        steps.snapshot_id = nodes.snapshot_id
        and steps.unique_id = nodes.unique_id
left join columns
    on
        steps.snapshot_id = columns.snapshot_id
        and steps.unique_id = columns.unique_id
        and steps.column_name = columns.column_name
left join last_runs
    on
        nodes.project_name = last_runs.project_name
        and nodes.unique_id = last_runs.unique_id
left join changes
    on
        nodes.project_name = changes.project_name
        and nodes.unique_id = changes.unique_id
        and steps.column_name = changes.column_name
left join tests
    on
        steps.snapshot_id = tests.snapshot_id
        and steps.unique_id = tests.unique_id
        and steps.column_name = tests.column_name
left join open_incidents
    on
        nodes.project_name = open_incidents.project_name
        and nodes.unique_id = open_incidents.node_id
order by steps.depth, nodes.asset_type, nodes.name, steps.column_name
