{{ config(enabled=part_is_on('operations')) }}
{%- set node = var('ripple_node', none) -%}
{%- set column = var('ripple_column', none) -%}
{%- set asked = asked_nodes(node) if node else none -%}
{%- set starts = {} -%}
{%- for vertex in start_columns(asked or [], column, rows=true) -%}
    {%- do starts.update({vertex: [1, 0]}) -%}
{%- endfor -%}
{%- set reached = walk(starts, 'upstream') if node else {} %}

-- What changed lately (var ripple_since, by default the last 24 hours) upstream of a node, of one of its columns
-- (vars ripple_node and ripple_column) or of what a failed test reads (its name as ripple_node), nearest first: the
-- definitions that were changed there, not those that moved along. Of a column, only what it is computed from, and
-- which rows there are. And which runs of jobs that dbt does not start (collected events) ended there since: `run_id`.
with reached as (
    {{ (vertices_as_rows(reached) if node else upstream_columns(none, column)) | indent(4) }}
),

-- A column that is gone has no lineage any more: what was read of it, the load before says.
read_before as (
    {{ vertices_as_rows(walk_before(reached, asked, column) if node else {}) | indent(4) }}
),

asked as (
    select distinct
        {{ 'nodes.snapshot_id,' if not node }}
        nodes.name
    from {{ ref('dbt_ripple', 'ripple_dim_nodes') }} as nodes
    where {{ node_is('nodes', asked) }}
),

nearest as (
    select
        snapshot_id,
        unique_id,
        min(depth) as depth
    from reached
    group by snapshot_id, unique_id
),

changes as (
    select * from {{ ref('dbt_ripple', 'ripple_definition_changes') }}
    where
        is_origin
        and changed_at >= {{ since() }}
),

redefined as (
    select
        asked.name as asked_about,
        changes.changed_at,
        changes.git_sha,
        coalesce(min(reached.depth), min(read_before.depth), 0) as depth,
        nodes.project_name,
        changes.name,
        changes.column_name,
        changes.change,
        changes.old_expression,
        changes.new_expression,
        nodes.owner,
        nodes.owner_email,
        nodes.owner_channel,
        changes.unique_id,
        cast(null as {{ type_of('string') }}) as run_id
    from changes
    inner join {{ ref('dbt_ripple', 'ripple_dim_nodes') }} as nodes
        on
            changes.project_name = nodes.project_name
            and changes.unique_id = nodes.unique_id
    inner join asked on {{ 'true' if node else 'nodes.snapshot_id = asked.snapshot_id' }}
    left join reached
        on
            nodes.snapshot_id = reached.snapshot_id
            and nodes.unique_id = reached.unique_id
            and changes.column_name = lower(reached.column_name)
    left join read_before
        on
            changes.base_snapshot_id = read_before.snapshot_id
            and changes.unique_id = read_before.unique_id
            and changes.column_name = lower(read_before.column_name)
    where
        reached.unique_id is not null
        or (changes.change = 'removed' and {{ 'read_before.unique_id is not null' if node else 'true' }})
    group by
        asked.name,
        changes.changed_at,
        changes.git_sha,
        nodes.project_name,
        changes.name,
        changes.column_name,
        changes.change,
        changes.old_expression,
        changes.new_expression,
        nodes.owner,
        nodes.owner_email,
        nodes.owner_channel,
        changes.unique_id
),

runs as (
    select * from {{ ref('dbt_ripple', 'ripple_fct_runs') }}
    where
        resource_type = 'asset'
        and ran_at >= {{ since() }}
),

ran as (
    select
        asked.name as asked_about,
        runs.ran_at as changed_at,
        cast(null as {{ type_of('string') }}) as git_sha,
        nearest.depth,
        nodes.project_name,
        nodes.name,
        '*rows*' as column_name,
        case when runs.is_failure then 'run failed' else 'ran' end as change,
        cast(null as {{ type_of('string') }}) as old_expression,
        cast(null as {{ type_of('string') }}) as new_expression,
        nodes.owner,
        nodes.owner_email,
        nodes.owner_channel,
        nodes.unique_id,
        runs.invocation_id as run_id
    from nearest
    inner join {{ ref('dbt_ripple', 'ripple_dim_nodes') }} as nodes
        on
            nearest.snapshot_id = nodes.snapshot_id
            and nearest.unique_id = nodes.unique_id
    inner join runs
        on
            nodes.project_name = runs.project_name
            and nodes.unique_id = runs.unique_id
    inner join asked on {{ 'true' if node else 'nearest.snapshot_id = asked.snapshot_id' }}
),

final as (
    select * from redefined

    union all

    select * from ran
)

select * from final
order by asked_about asc, changed_at desc, depth asc, name asc, column_name asc, run_id asc
