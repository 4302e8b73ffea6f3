{#-
    What is reached from a column, walked while dbt compiles: the edges around the nodes that are asked about are read by
    one query for each project on the way, and the answer is a list of rows. A walk in SQL reads and plans the edges of all
    that is loaded, which takes Spark many times as long.
-#}
{% macro walked_columns(node, column, direction, max_depth=none, rows=false) %}
    {%- set nodes = dbt_ripple.asked_nodes(node) if node is string else node -%}
    {%- set starts = dbt_ripple.starts_of_walk(nodes, column, rows) -%}
    {%- do return(dbt_ripple.vertices_as_rows(dbt_ripple.walk(starts, direction, max_depth))) -%}
{% endmacro %}


{#- The vertices of `start_columns`, as `walk` takes them. -#}
{% macro starts_of_walk(nodes, column, rows=false) %}
    {%- set starts = {} -%}
    {%- for vertex in dbt_ripple.start_columns(nodes, column, rows) -%}{%- do starts.update({vertex: [1, 0]}) -%}{%- endfor -%}
    {%- do return(starts) -%}
{% endmacro %}


{#-
    What is reached from vertices, these included: {(load, unique_id, column): [whether the value is passed on, how many
    steps]}. Steps are counted from what the starts say, and at most `max_depth` are made. `edges` are those of
    `edges_around`, where they are at hand.
-#}
{% macro walk(starts, direction, max_depth=none, edges=none) %}
    {%- set reached = {} -%}
    {%- do reached.update(starts) -%}
    {%- set edges = dbt_ripple.edges_around(starts, direction) if edges is none else edges -%}
    {%- set way = namespace(frontier=starts.keys() | list) -%}
    {%- for _ in range((max_depth if max_depth is not none else var('ripple_max_depth', 12)) | int) if way.frontier -%}
        {%- set found = {} -%}
        {%- for vertex in way.frontier -%}
            {%- set is_value, depth = reached[vertex] -%}
            {%- for far, passes_value in edges.get(vertex, []) -%}
                {%- set known_value, known_depth = reached.get(far, [-1, depth + 1]) -%}
                {%- set passed = [is_value, passes_value] | min -%}
                {#- Nothing is walked twice, unless it is now the value that is passed on, or nearer. -#}
                {%- if passed > known_value or depth + 1 < known_depth -%}
                    {%- do reached.update({far: [[passed, known_value] | max, [depth + 1, known_depth] | min]}) -%}
                    {%- do found.update({far: true}) -%}
                {%- endif -%}
            {%- endfor -%}
        {%- endfor -%}
        {%- set way.frontier = found.keys() | list -%}
    {%- endfor -%}
    {%- do return(reached) -%}
{% endmacro %}


{% macro vertices_as_rows(reached) %}
    {%- set rows = [] -%}
    {%- for vertex, at in reached.items() -%}
        {%- do rows.append([vertex[0], vertex[1], vertex[2], at[0] == 1, at[1]]) -%}
    {%- endfor -%}
    {%- do return(dbt_ripple.rows_of_values(['snapshot_id', 'unique_id', 'column_name', 'is_value', 'depth'], rows)) -%}
{% endmacro %}


{#-
    Of a node: the column, or all of them and the rows where none is said. Of a test: the columns that it reads, and rows
    where it reads nothing else. With `rows`, the rows always. Each is (load, unique_id, column).
-#}
{% macro start_columns(nodes, column, rows=false) %}
    {%- set columns, test_columns = source('ripple_raw', 'columns'), source('ripple_raw', 'test_columns') -%}
    {%- set starts = {} -%}
    {%- set relations = nodes | rejectattr('resource_type', 'in', ['test', 'unit_test']) | list -%}
    {%- set tests = nodes | selectattr('resource_type', 'in', ['test', 'unit_test']) | list -%}
    {%- for node in relations -%}
        {%- if rows or not column -%}{%- do starts.update({(node.snapshot_id, node.unique_id, '*rows*'): true}) -%}{%- endif -%}
        {%- if column -%}{%- do starts.update({(node.snapshot_id, node.unique_id, column): true}) -%}{%- endif -%}
    {%- endfor -%}
    {%- set is_asked = ' and lower(column_name) = lower(' ~ dbt_ripple.text_literal(column) ~ ')' if column else '' -%}
    {%- if relations and column != '*rows*' -%}
        {%- set found = run_query(
            'select snapshot_id, unique_id, column_name from ' ~ columns
            ~ ' where ' ~ dbt_ripple.is_among_nodes(relations, 'snapshot_id', 'unique_id') ~ is_asked
        ) -%}
        {%- for row in found.rows -%}{%- do starts.update({(row[0], row[1], row[2]): true}) -%}{%- endfor -%}
    {%- endif -%}
    {%- if tests -%}
        {%- set found = run_query(
            'select snapshot_id, unique_id, column_name from ' ~ test_columns
            ~ ' where ' ~ dbt_ripple.is_among_nodes(tests, 'snapshot_id', 'test_id')
        ) -%}
        {%- set read = namespace(columns=false) -%}
        {%- for row in found.rows if row[2] != '*rows*' -%}{%- set read.columns = true -%}{%- endfor -%}
        {%- for row in found.rows -%}
            {%- if (not column or row[2] | lower == column | lower) and (rows or row[2] != '*rows*' or not read.columns) -%}
                {%- do starts.update({(row[0], row[1], row[2]): true}) -%}
            {%- endif -%}
        {%- endfor -%}
    {%- endif -%}
    {%- do return(starts.keys() | list) -%}
{% endmacro %}


{#-
    The edges that begin in these nodes or beyond them, in other projects, too: {(load, unique_id, column): [(what stands
    there, whether it is the value that is passed on)]}.
-#}
{% macro edges_around(starts, direction) %}
    {%- set near, far = ('parent', 'child') if direction == 'downstream' else ('child', 'parent') -%}
    {%- set from_, to = ('ancestor_id', 'descendant_id') if direction == 'downstream' else ('descendant_id', 'ancestor_id') -%}
    {%- set column_edges, closure = source('ripple_raw', 'column_edges'), source('ripple_raw', 'node_closure') -%}
    {%- set crossings = ref('dbt_ripple', 'ripple_fct_cross_project_edges') -%}
    {%- set edges = {} -%}
    {%- set done = {} -%}
    {%- set way = namespace(nodes={}) -%}
    {%- for vertex in starts -%}{%- do way.nodes.update({(vertex[0], vertex[1]): true}) -%}{%- endfor -%}
    {%- set hops = var('ripple_max_projects', 2) | int if execute and starts and dbt_ripple.projects_are_joined() else 0 -%}
    {%- for hop in range(hops + 1) if way.nodes -%}
        {%- set asked = [] -%}
        {%- for snapshot_id, unique_id in way.nodes -%}
            {%- do asked.append({'snapshot_id': snapshot_id, 'unique_id': unique_id}) -%}
            {%- do done.update({(snapshot_id, unique_id): true}) -%}
        {%- endfor -%}
        {%- set within %}(
            select distinct snapshot_id, {{ to }} as unique_id from {{ closure }}
            where {{ dbt_ripple.is_among_nodes(asked, 'snapshot_id', from_) }}
        ) as within{% endset -%}
        {%- set query %}
            select
                e.snapshot_id, e.{{ near }}_id, e.{{ near }}_column, e.{{ far }}_id, e.{{ far }}_column,
                max(case when e.type = 'DIRECT' then 1 else 0 end)
            from {{ column_edges }} as e
            inner join {{ within }} on e.snapshot_id = within.snapshot_id and e.{{ near }}_id = within.unique_id
            where e.snapshot_id in ({{ dbt_ripple.text_literals(asked | map(attribute='snapshot_id') | unique | list) }})
            group by e.snapshot_id, e.{{ near }}_id, e.{{ near }}_column, e.{{ far }}_id, e.{{ far }}_column
        {% endset -%}
        {%- for row in run_query(query).rows -%}
            {%- do edges.setdefault((row[0], row[1], row[2]), []).append([(row[0], row[3], row[4]), row[5] | int]) -%}
        {%- endfor -%}
        {%- set way.nodes = {} -%}
        {%- if hop < hops -%}
            {%- set query %}
                select
                    c.{{ near }}_snapshot_id, c.{{ near }}_id, c.{{ near }}_column,
                    c.{{ far }}_snapshot_id, c.{{ far }}_id, c.{{ far }}_column
                from {{ crossings }} as c
                inner join {{ within }}
                    on c.{{ near }}_snapshot_id = within.snapshot_id and c.{{ near }}_id = within.unique_id
            {% endset -%}
            {%- for row in run_query(query).rows -%}
                {%- do edges.setdefault((row[0], row[1], row[2]), []).append([(row[3], row[4], row[5]), 1]) -%}
                {%- if (row[3], row[4]) not in done -%}{%- do way.nodes.update({(row[3], row[4]): true}) -%}{%- endif -%}
            {%- endfor -%}
        {%- endif -%}
    {%- endfor -%}
    {%- do return(edges) -%}
{% endmacro %}
