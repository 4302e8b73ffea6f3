{{ config(
    enabled=part_is_on('operations'),
    file_format=var('ripple_file_format', 'parquet')
) }}

{%- set is_joined = projects_are_joined() -%}
{#- Where a change leaves its project: the columns that were changed, and those of sources that stand for them. -#}
{%- set crossed %}
select distinct
    changes.project_name as change_project,
    changes.target_name,
    changes.unique_id as change_id,
    changes.column_name as change_column,
    crossings.child_snapshot_id as snapshot_id,
    crossings.child_id as unique_id,
    children.column_name
from {{ ref('dbt_ripple', 'ripple_definition_changes') }} as changes
inner join {{ ref('dbt_ripple', 'ripple_fct_cross_project_edges') }} as crossings
    on
        changes.project_name = crossings.parent_project
        and changes.unique_id = crossings.parent_id
        and crossings.parent_column = '*rows*'
inner join {{ ref('dbt_ripple', 'ripple_dim_snapshots') }} as builders
    on
        crossings.parent_snapshot_id = builders.snapshot_id
        and changes.target_name = coalesce(builders.target_name, '')
-- By the reader's columns: a column that is gone is an edge no more, and its reader still asks for it.
inner join (
    select
        snapshot_id,
        unique_id,
        column_name
    from {{ ref('dbt_ripple', 'ripple_dim_columns') }}
    union all
    select
        snapshot_id,
        unique_id,
        '*rows*' as column_name
    from {{ ref('dbt_ripple', 'ripple_dim_nodes') }}
) as children
    on
        crossings.child_snapshot_id = children.snapshot_id
        and crossings.child_id = children.unique_id
        and changes.column_name = lower(children.column_name)
where {{ 'true' if is_joined else 'false' }}
{%- endset -%}

{%- set starts %}
select distinct
    snapshot_id as start_snapshot_id,
    unique_id as start_id,
    column_name as start_column,
    snapshot_id,
    unique_id,
    column_name,
    0 as depth
from ({{ crossed }}) as begun
{%- endset %}
{%- set below %}
select
    closure.snapshot_id,
    closure.descendant_id as unique_id
from {{ ref('dbt_ripple', 'ripple_fct_node_closure') }} as closure
inner join {{ ref('dbt_ripple', 'ripple_fct_cross_project_edges') }} as crossings
    on
        closure.snapshot_id = crossings.child_snapshot_id
        and closure.ancestor_id = crossings.child_id
{%- endset %}
{%- set walk = walk_columns(starts, column_edges_in_direction(below, 'parent', 'child'), each_start=true) %}

with crossed as (
    {{ crossed | indent(4) }}
),

reached as (
    {{ (walk if is_joined else starts) | indent(4) }}
),

followed as (
    select
        crossed.change_project,
        crossed.target_name,
        crossed.change_id,
        crossed.change_column,
        reached.snapshot_id,
        reached.unique_id,
        reached.column_name,
        reached.depth + 1 as distance
    from crossed
    inner join reached
        on
            crossed.snapshot_id = reached.start_snapshot_id
            and crossed.unique_id = reached.start_id
            and crossed.column_name = reached.start_column
),

found as (
    select
        change_project,
        target_name,
        change_id,
        change_column,
        snapshot_id,
        unique_id,
        distance
    from followed

    union all

    select
        followed.change_project,
        followed.target_name,
        followed.change_id,
        followed.change_column,
        followed.snapshot_id,
        tested.test_id as unique_id,
        followed.distance + 1 as distance
    from followed
    inner join {{ ref('dbt_ripple', 'stg_ripple__test_columns') }} as tested
        on
            followed.snapshot_id = tested.snapshot_id
            and followed.unique_id = tested.unique_id
            and lower(followed.column_name) = lower(tested.column_name)
),

final as (
    select
        readers.project_name,
        found.unique_id,
        found.change_project,
        found.target_name,
        found.change_id,
        found.change_column,
        min(found.distance) as distance
    from found
    inner join {{ ref('dbt_ripple', 'ripple_dim_snapshots') }} as readers on found.snapshot_id = readers.snapshot_id
    group by
        readers.project_name,
        found.unique_id,
        found.change_project,
        found.target_name,
        found.change_id,
        found.change_column
)

select * from final
