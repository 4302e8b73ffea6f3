{#-
    What a column comes from: for each column and node that is reached, whether it is certain that its value is handed
    on. Above the columns of `stops` nothing is looked at.

    The walk is made here and not in SQL: Spark before 4.1 has no recursion, and one query of all the steps took five
    times as long as these small ones (35 s against 7 s). `nodes` keeps what was read, for the next walk.
-#}
{% macro lineage_walk(tables, snapshot_id, node_id, column, stops, unmasked, nodes) %}
    {%- set reached = {node_id: {column: 1}} -%}
    {%- set way = namespace(frontier=[[node_id, column, 1]]) -%}
    {%- for _ in range(100000) if way.frontier -%}
        {%- do dbt_ripple.read_lineage(
            tables, snapshot_id, way.frontier | map('first') | unique | list, nodes
        ) -%}
        {%- set found = [] -%}
        {%- for unique_id, column_name, is_value in way.frontier
            if not dbt_ripple.is_among(unique_id, column_name, stops) -%}
            {%- set node = nodes[unique_id] -%}
            {%- for edge in node.edges.get(column_name, []) if not (unmasked and edge.is_masked) -%}
                {%- do found.append([edge.parent_id, edge.parent_column, [is_value, 1 - node.is_unread] | min]) -%}
            {%- endfor -%}
            {#- Where it has too many pairs of columns, only its rows tell what it reads. -#}
            {%- if node.is_unread and column_name in node.columns -%}
                {%- do found.append([unique_id, '*rows*', 0]) -%}
            {%- endif -%}
        {%- endfor -%}
        {%- set frontier = [] -%}
        {#- Nothing is walked twice, unless it is now the value that is passed on. -#}
        {%- for unique_id, column_name, is_value in found
            if is_value > reached.get(unique_id, {}).get(column_name, -1) -%}
            {%- do reached.setdefault(unique_id, {}).update({column_name: is_value}) -%}
            {%- do frontier.append([unique_id, column_name, is_value]) -%}
        {%- endfor -%}
        {%- set way.frontier = frontier -%}
    {%- endfor -%}
    {%- do return(reached) -%}
{% endmacro %}


{% macro read_lineage(tables, snapshot_id, unique_ids, nodes) %}
    {#- Add to `nodes` what the load has of these nodes; and of some above them, so that few queries do. -#}
    {%- set missing = unique_ids | reject('in', nodes) | list -%}
    {%- if not missing -%}{%- do return(none) -%}{%- endif -%}
    {%- set wanted = dbt_ripple.nodes_above(missing, 30) | reject('in', nodes) | list -%}
    {%- for unique_id in wanted -%}
        {%- do nodes.update({unique_id: {
            'is_loaded': false, 'name': none, 'reason': none, 'is_given': 0, 'is_unread': 0, 'edges': {}, 'columns': {}
        }}) -%}
    {%- endfor -%}
    {%- set found = run_query(dbt_ripple.lineage_of_nodes(tables, snapshot_id, wanted)) -%}
    {%- for row in found.rows -%}
        {%- set node = nodes[row[0]] -%}
        {%- do node.update({
            'is_loaded': true,
            'name': row[1],
            'reason': row[2],
            'is_given': row[3] | int,
            'is_unread': row[4] | int if not row[3] | int or row[5] is not none else 0,
        }) -%}
        {%- if row[5] is not none and (row[8] | int or node.is_unread) -%}
            {%- do node.edges.setdefault(row[7], []).append(
                {'parent_id': row[5], 'parent_column': row[6], 'is_masked': row[9] | int}
            ) -%}
        {%- endif -%}
    {%- endfor -%}
    {%- set unread = [] -%}
    {%- for unique_id in wanted if nodes[unique_id].is_unread -%}{%- do unread.append(unique_id) -%}{%- endfor -%}
    {%- for unique_id, columns in dbt_ripple.loaded_columns(tables, snapshot_id, unread).items() -%}
        {%- do nodes[unique_id].update({'columns': columns}) -%}
    {%- endfor -%}
{% endmacro %}


{#- A row for each pair of columns, and for a node without any. -#}
{% macro lineage_of_nodes(tables, snapshot_id, unique_ids) %}
select
    nodes.unique_id,
    nodes.name,
    nodes.analysis_reason,
    nodes.is_given,
    nodes.is_unread,
    edges.parent_id,
    lower(edges.parent_column) as parent_column,
    lower(edges.child_column) as child_column,
    case when edges.type = 'DIRECT' then 1 else 0 end as is_direct,
    case when not edges.masking then 0 else 1 end as is_masked
from (
    select
        unique_id,
        name,
        analysis_reason,
        case when resource_type in ('model', 'snapshot') then 0 else 1 end as is_given,
        -- What cannot be analysed may make its columns of anything that it reads.
        case
            when analysis_status = 'broken' then 1
            when analysis_reason is not null and analysis_reason not like 'may not build:%' then 1
            else 0
        end as is_unread
    from {{ tables['nodes'] }}
    where
        snapshot_id = {{ dbt_ripple.text_literal(snapshot_id) }}
        and unique_id in ({{ dbt_ripple.text_literals(unique_ids) }})
) as nodes
left join (
    select
        child_id,
        child_column,
        parent_id,
        parent_column,
        type,
        masking
    from {{ tables['column_edges'] }}
    where
        snapshot_id = {{ dbt_ripple.text_literal(snapshot_id) }}
        and child_id in ({{ dbt_ripple.text_literals(unique_ids) }})
) as edges
    on
        nodes.unique_id = edges.child_id
        and (edges.type = 'DIRECT' or nodes.is_unread = 1)
{% endmacro %}


{% macro loaded_columns(tables, snapshot_id, unique_ids) %}
    {#-
        The columns that the load has of nodes: {unique_id: {column: true}}. Of a query that was followed they are all
        known: what only a yml file declares is none.
    -#}
    {%- set columns = {} -%}
    {%- if unique_ids -%}
        {%- set found = run_query(
            "select columns.unique_id, lower(columns.column_name) as column_name"
            ~ " from " ~ tables['columns'] ~ " as columns"
            ~ " inner join " ~ tables['nodes'] ~ " as nodes"
            ~ " on columns.snapshot_id = nodes.snapshot_id and columns.unique_id = nodes.unique_id"
            ~ " where columns.snapshot_id = " ~ dbt_ripple.text_literal(snapshot_id)
            ~ " and nodes.snapshot_id = " ~ dbt_ripple.text_literal(snapshot_id)
            ~ " and columns.unique_id in (" ~ dbt_ripple.text_literals(unique_ids) ~ ")"
            ~ " and (nodes.analysis_status != 'analysed' or columns.fingerprint is not null)"
        ) -%}
        {%- for row in found.rows -%}
            {%- do columns.setdefault(row[0], {}).update({row[1]: true}) -%}
        {%- endfor -%}
    {%- endif -%}
    {%- do return(columns) -%}
{% endmacro %}


{% macro is_among(unique_id, column_name, stops) %}
    {#- Whether `stops`, {unique_id: {column: ...}}, has the column, or `*` of its node. -#}
    {%- set columns = stops.get(unique_id, {}) -%}
    {%- do return(column_name in columns or '*' in columns) -%}
{% endmacro %}
