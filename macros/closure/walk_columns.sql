{#- With `each_start`, a row also says where its way began, and ways from two columns are two. -#}
{% macro walk_columns(starts, edges, max_depth=none, each_start=false) %}
    {{- return(adapter.dispatch('walk_columns', 'dbt_ripple')(
        starts, edges, (max_depth if max_depth is not none else var('ripple_max_depth', 12)) | int, each_start
    )) -}}
{% endmacro %}


{% macro default__walk_columns(starts, edges, max_depth, each_start=false) %}
{%- set began = 'start_snapshot_id, start_id, start_column, ' if each_start else '' %}
with recursive starts as (
    {{ starts | indent(4) }}
),

edges as (
    {{ edges | indent(4) }}
),

walk as (
    select
        {{ 'snapshot_id as start_snapshot_id, unique_id as start_id, column_name as start_column,' if each_start }}
        snapshot_id,
        unique_id,
        column_name,
        1 as is_value,
        0 as depth
    from starts

    union

    select
        {{ began }}
        edges.child_snapshot_id as snapshot_id,
        edges.child_id as unique_id,
        edges.child_column as column_name,
        least(walk.is_value, edges.is_value) as is_value,
        walk.depth + 1 as depth
    from walk
    inner join edges
        on
            walk.snapshot_id = edges.snapshot_id
            and walk.unique_id = edges.parent_id
            and walk.column_name = edges.parent_column
    where walk.depth < {{ max_depth }}
)

select
    {{ began }}
    snapshot_id,
    unique_id,
    column_name,
    max(is_value) = 1 as is_value,
    min(depth) as depth
from walk
group by {{ began }}snapshot_id, unique_id, column_name
{% endmacro %}


{#
    Spark has no recursion before 4.1, where a recursive query that reads a partitioned table dies of dynamic partition
    pruning; and a chain of joins, one a step, plans and runs the edges anew for each. So the edges below the node are
    gathered into one array, and one expression walks it.
#}
{% macro spark__walk_columns(starts, edges, max_depth, each_start=false) %}
{%- set began = 'start_snapshot_id, start_id, start_column, ' if each_start else '' %}
with starts as (
    {{ starts | indent(4) }}
),

edges as (
    {{ edges | indent(4) }}
),

readers as (
    select
        snapshot_id,
        parent_id,
        parent_column,
        collect_list(struct(child_snapshot_id, child_id, child_column, is_value)) as columns
    from edges
    group by snapshot_id, parent_id, parent_column
),

graphs as (
    select collect_list(struct(snapshot_id, parent_id, parent_column, columns)) as readers
    from readers
),

walks as (
    select
        {%- if each_start %}
        starts.snapshot_id as start_snapshot_id,
        starts.unique_id as start_id,
        starts.column_name as start_column,
        {%- endif %}
        aggregate(
            sequence(1, {{ max_depth }}),
            array(struct(starts.snapshot_id, starts.unique_id, starts.column_name, 1 as is_value, 0 as depth)),
            (reached, step) -> concat(
                reached,
                filter(
                    array_distinct(flatten(transform(
                        filter(reached, at -> at.depth = step - 1),
                        at -> flatten(transform(
                            filter(
                                coalesce(graphs.readers, array()),
                                edge ->
                                edge.parent_id = at.unique_id
                                and edge.parent_column = at.column_name
                                and edge.snapshot_id = at.snapshot_id
                            ),
                            edge -> transform(
                                edge.columns,
                                reader -> struct(
                                    reader.child_snapshot_id as snapshot_id,
                                    reader.child_id as unique_id,
                                    reader.child_column as column_name,
                                    least(at.is_value, reader.is_value) as is_value,
                                    step as depth
                                )
                            )
                        ))
                    ))),
                    -- Nothing is walked twice, unless it is now the value that is passed on.
                    found -> not exists(
                        reached,
                        known ->
                        known.unique_id = found.unique_id
                        and known.column_name = found.column_name
                        and known.snapshot_id = found.snapshot_id
                        and known.is_value >= found.is_value
                    )
                )
            )
        ) as columns
    from starts
    cross join graphs
),

walk as (
    select {{ began }}explode(walks.columns) as vertex
    from walks
)

select
    {{ began }}
    vertex.snapshot_id,
    vertex.unique_id,
    vertex.column_name,
    max(vertex.is_value) = 1 as is_value,
    min(vertex.depth) as depth
from walk
group by {{ began }}vertex.snapshot_id, vertex.unique_id, vertex.column_name
{% endmacro %}
