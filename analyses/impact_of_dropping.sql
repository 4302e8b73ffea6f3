{%- set node = var('ripple_node', none) -%}
{%- set asked = asked_nodes(node) if node else none %}
-- Whom it would reach to drop a column (vars ripple_node and ripple_column), nearest first.
-- breaking: it reads the column, or one that is made of it; warning: its values or rows may differ, or nobody declared
-- what it reads; info: it reads nothing of it, but stands on something that breaks.
with lost as (
    {{ downstream_columns(asked, var('ripple_column', none) or '*rows*', certain=true) | indent(4) }}
),

reached as (
    {{ downstream_columns(asked, var('ripple_column', none) or '*rows*') | indent(4) }}
),

column_edges as (
    select * from {{ ref('dbt_ripple', 'ripple_fct_column_edges') }}
),

dim_nodes as (
    select * from {{ ref('dbt_ripple', 'ripple_dim_nodes') }}
),

closure as (
    select * from {{ ref('dbt_ripple', 'ripple_fct_node_closure') }}
),

breaking as (
    select distinct
        column_edges.snapshot_id,
        column_edges.child_id as unique_id
    from column_edges
    inner join lost
        on
            column_edges.snapshot_id = lost.snapshot_id
            and column_edges.parent_id = lost.unique_id
            and column_edges.parent_column = lost.column_name
    inner join dim_nodes
        on
            column_edges.snapshot_id = dim_nodes.snapshot_id
            and column_edges.child_id = dim_nodes.unique_id
    where dim_nodes.analysis_status != 'opaque'
),

-- Consumers of which no column is known: they may read any.
undeclared as (
    select
        dim_nodes.snapshot_id,
        dim_nodes.unique_id
    from dim_nodes
    left join column_edges
        on
            dim_nodes.snapshot_id = column_edges.snapshot_id
            and dim_nodes.unique_id = column_edges.child_id
    where dim_nodes.resource_type in ('exposure', 'metric', 'semantic_model', 'saved_query')
    group by dim_nodes.snapshot_id, dim_nodes.unique_id
    having max(case when column_edges.child_column != '*rows*' then 1 else 0 end) = 0
),

warned as (
    select
        reached.snapshot_id,
        reached.unique_id
    from reached
    where reached.depth > 0
    union
    select
        undeclared.snapshot_id,
        undeclared.unique_id
    from reached
    inner join closure
        on
            reached.snapshot_id = closure.snapshot_id
            and reached.unique_id = closure.ancestor_id
            and closure.depth = 1
    inner join undeclared
        on
            closure.snapshot_id = undeclared.snapshot_id
            and closure.descendant_id = undeclared.unique_id
),

standing_0 as (
    select distinct
        closure.snapshot_id,
        closure.descendant_id as unique_id
    from breaking
    inner join closure
        on
            breaking.snapshot_id = closure.snapshot_id
            and breaking.unique_id = closure.ancestor_id
),
{% for step in range(var('ripple_max_projects', 2) | int) %}
    standing_{{ step + 1 }} as (
        select * from standing_{{ step }}
        union distinct
        select
            closure.snapshot_id,
            closure.descendant_id as unique_id
        from standing_{{ step }} as stands
        inner join {{ ref('dbt_ripple', 'ripple_fct_cross_project_edges') }} as crossings
            on
                stands.snapshot_id = crossings.parent_snapshot_id
                and stands.unique_id = crossings.parent_id
        inner join closure
            on
                crossings.child_snapshot_id = closure.snapshot_id
                and crossings.child_id = closure.ancestor_id
    ),
{% endfor %}
affected as (
    select
        snapshot_id,
        unique_id,
        min(severity) as severity
    from (
        select
            snapshot_id,
            unique_id,
            1 as severity
        from breaking
        union all
        select
            snapshot_id,
            unique_id,
            2 as severity
        from warned
        union all
        select
            snapshot_id,
            unique_id,
            3 as severity
        from standing_{{ var('ripple_max_projects', 2) | int }}
    ) as found
    group by snapshot_id, unique_id
),

distances as (
    select
        snapshot_id,
        unique_id,
        min(depth) as depth
    from ({{ nodes_below(asked) | indent(4) }}) as below
    group by snapshot_id, unique_id
)

select
    distances.depth,
    nodes.unique_id,
    nodes.name,
    nodes.asset_type,
    case affected.severity when 1 then 'breaking' when 2 then 'warning' else 'info' end as severity,
    nodes.owner
from affected
inner join dim_nodes as nodes
    on
        affected.snapshot_id = nodes.snapshot_id
        and affected.unique_id = nodes.unique_id
inner join distances
    on
        affected.snapshot_id = distances.snapshot_id
        and affected.unique_id = distances.unique_id
-- A source that is reached is a relation of another project, under another name.
where nodes.resource_type not in ('test', 'unit_test', 'source')
order by distances.depth, affected.severity, nodes.unique_id
