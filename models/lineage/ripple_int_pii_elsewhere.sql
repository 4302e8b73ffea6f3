-- noqa: disable=LT02
{{ config(file_format=var('ripple_file_format', 'parquet')) }}

{#- Without several projects there is nothing to walk. -#}
{%- if projects_are_joined() or not execute %}
{%- set starts %}
select distinct
    child_snapshot_id as snapshot_id,
    child_id as unique_id,
    child_column as column_name
from begun
{%- endset %}
{%- set edges %}
select
    parent_snapshot_id as snapshot_id,
    parent_id,
    parent_column,
    child_snapshot_id,
    child_id,
    child_column,
    1 as is_value
from value_edges
{%- endset %}

with nodes as (
    select * from {{ ref('dbt_ripple', 'ripple_dim_nodes') }}
),

columns as (
    select * from {{ ref('dbt_ripple', 'ripple_dim_columns') }}
),

edges as (
    select * from {{ ref('dbt_ripple', 'ripple_fct_column_edges') }}
),

known as (
    select
        pii_columns.*,
        nodes.project_name
    from {{ ref('dbt_ripple', 'stg_ripple__pii_columns') }} as pii_columns
    inner join nodes
        on
            pii_columns.snapshot_id = nodes.snapshot_id
            and pii_columns.unique_id = nodes.unique_id
),

crossings as (
    select
        parent_snapshot_id,
        parent_id,
        lower(parent_column) as parent_column,
        child_snapshot_id,
        child_id,
        lower(child_column) as child_column
    from {{ ref('dbt_ripple', 'ripple_fct_cross_project_edges') }}
    where parent_column != '*rows*'
),

-- Exposures that do not say which columns they read: they may read any.
silent as (
    select
        nodes.snapshot_id,
        nodes.unique_id
    from nodes
    inner join edges
        on
            nodes.snapshot_id = edges.snapshot_id
            and nodes.unique_id = edges.child_id
    where nodes.resource_type = 'exposure'
    group by nodes.snapshot_id, nodes.unique_id
    having max(case when edges.parent_column != '*rows*' then 1 else 0 end) = 0
),

-- One step of a value: passed on unmasked; to each column of what cannot be analysed; to who may read any column; and
-- to the source that stands for it in another project.
handed_on as (
    select
        snapshot_id as parent_snapshot_id,
        parent_id,
        lower(parent_column) as parent_column,
        snapshot_id as child_snapshot_id,
        child_id,
        lower(child_column) as child_column
    from edges
    where
        type = 'DIRECT'
        and not coalesce(masking, false)
        and parent_column != '*rows*'
        and child_column != '*rows*'

    union

    select
        edges.snapshot_id as parent_snapshot_id,
        edges.parent_id,
        lower(edges.parent_column) as parent_column,
        edges.snapshot_id as child_snapshot_id,
        edges.child_id,
        lower(columns.column_name) as child_column
    from edges
    inner join nodes
        on
            edges.snapshot_id = nodes.snapshot_id
            and edges.child_id = nodes.unique_id
    inner join columns
        on
            edges.snapshot_id = columns.snapshot_id
            and edges.child_id = columns.unique_id
    where
        nodes.analysis_status = 'opaque'
        and edges.type = 'DIRECT'
        and not coalesce(edges.masking, false)
        and edges.parent_column != '*rows*'
        and edges.child_column = '*rows*'

    union

    select
        edges.snapshot_id as parent_snapshot_id,
        edges.parent_id,
        lower(columns.column_name) as parent_column,
        edges.snapshot_id as child_snapshot_id,
        edges.child_id,
        lower(columns.column_name) as child_column
    from edges
    inner join silent
        on
            edges.snapshot_id = silent.snapshot_id
            and edges.child_id = silent.unique_id
    inner join columns
        on
            edges.snapshot_id = columns.snapshot_id
            and edges.parent_id = columns.unique_id

    union

    select * from crossings
),

-- What a project knows of itself it has followed, and from what is declassified nothing goes on.
ends as (
    select
        snapshot_id,
        unique_id,
        lower(column_name) as column_name
    from known

    union

    select
        snapshot_id,
        unique_id,
        lower(column_name) as column_name
    from columns
    where pii_reason is not null
),

-- From what is known in the one project to the sources of the others.
begun as (
    select
        crossings.child_snapshot_id,
        crossings.child_id,
        crossings.child_column,
        known.pii,
        known.project_name as source_project,
        known.source_id,
        known.source_column,
        concat(known.path, ' > ', crossings.child_id, '.', crossings.child_column) as path
    from known
    inner join crossings
        on
            known.snapshot_id = crossings.parent_snapshot_id
            and known.unique_id = crossings.parent_id
            and lower(known.column_name) = crossings.parent_column
    where known.origin != 'declassified'
),

-- Only below what another project builds.
below as (
    select distinct
        closure.snapshot_id,
        closure.descendant_id as unique_id
    from {{ ref('dbt_ripple', 'ripple_fct_node_closure') }} as closure
    inner join crossings
        on
            closure.snapshot_id = crossings.child_snapshot_id
            and closure.ancestor_id = crossings.child_id
),

value_edges as (  -- noqa: ST03
    select handed_on.*
    from handed_on
    inner join below
        on
            handed_on.parent_snapshot_id = below.snapshot_id
            and handed_on.parent_id = below.unique_id
    left join ends
        on
            handed_on.parent_snapshot_id = ends.snapshot_id
            and handed_on.parent_id = ends.unique_id
            and handed_on.parent_column = ends.column_name
    where ends.unique_id is null
),

reached as (
    {{ walk_columns(starts, edges, each_start=true) | indent(4) }}
),

nearest as (
    select
        reached.snapshot_id,
        reached.unique_id,
        reached.column_name,
        begun.pii,
        begun.source_project,
        begun.source_id,
        begun.source_column,
        case reached.depth
            when 0 then begun.path
            when 1 then concat(begun.path, ' > ', reached.unique_id, '.', reached.column_name)
            else concat(begun.path, ' > ... > ', reached.unique_id, '.', reached.column_name)
        end as path,
        row_number() over (
            partition by reached.snapshot_id, reached.unique_id, reached.column_name
            order by reached.depth, begun.path
        ) as nearness
    from reached
    inner join begun
        on
            reached.start_snapshot_id = begun.child_snapshot_id
            and reached.start_id = begun.child_id
            and reached.start_column = begun.child_column
),

final as (
    select
        nearest.snapshot_id,
        nearest.unique_id,
        coalesce(columns.column_name, nearest.column_name) as column_name,
        nearest.pii,
        case when columns.pii_reason is null then 'inherited' else 'declassified' end as origin,
        columns.pii_reason as reason,
        nearest.source_project,
        nearest.source_id,
        nearest.source_column,
        nearest.path
    from nearest
    left join columns
        on
            nearest.snapshot_id = columns.snapshot_id
            and nearest.unique_id = columns.unique_id
            and nearest.column_name = lower(columns.column_name)
    left join known
        on
            nearest.snapshot_id = known.snapshot_id
            and nearest.unique_id = known.unique_id
            and nearest.column_name = lower(known.column_name)
    where
        nearest.nearness = 1
        and known.unique_id is null
)

select * from final
{%- else %}
with final as (
    select
        snapshot_id,
        project_name as unique_id,
        project_name as column_name,
        project_name as pii,
        project_name as origin,
        project_name as reason,
        project_name as source_project,
        project_name as source_id,
        project_name as source_column,
        project_name as path
    from {{ ref('dbt_ripple', 'ripple_dim_nodes') }}
    where false
)

select * from final
{%- endif %}
