{#-
    Whom dropping a column reaches, judged while dbt compiles as `dbt-ripple impact --drop` judges it: a row for each
    relation below, with how severe it is and how far below.
-#}
{% macro affected_by_dropping(nodes, column) %}
    {%- set rows = [] -%}
    {#- Nothing is found while dbt parses; but it has to see what is read. -#}
    {%- if nodes is not none -%}
        {%- set starts = dbt_ripple.starts_of_walk(nodes, column) -%}
        {%- set around = {} -%}
        {%- do around.update(starts) -%}
        {%- set distances = {} -%}
        {%- for snapshot_id, unique_id in dbt_ripple.start_nodes(nodes) -%}
            {%- do around.update({(snapshot_id, unique_id, '*rows*'): [1, 0]}) -%}
            {%- do distances.update({(snapshot_id, unique_id): 0}) -%}
        {%- endfor -%}
        {%- set edges = dbt_ripple.edges_around(around, 'downstream') -%}
        {%- set readers, kinds = dbt_ripple.readers_around(distances, edges) -%}
        {%- do dbt_ripple.walk_nodes(distances, readers) -%}

        {#- Breaking: it reads what is lost, by an edge of its own project. -#}
        {%- set lost = dbt_ripple.walk(starts, 'downstream', edges=dbt_ripple.edges_that_pass_on(edges, kinds)) -%}
        {%- set breaking = {} -%}
        {%- for vertex in lost -%}
            {%- for far, _ in edges.get(vertex, []) if far[0] == vertex[0] and dbt_ripple.is_followed(far, kinds) -%}
                {%- do breaking.update({(far[0], far[1]): 0}) -%}
            {%- endfor -%}
        {%- endfor -%}
        {%- set standing = {} -%}
        {%- do standing.update(breaking) -%}
        {%- do dbt_ripple.walk_nodes(standing, readers) -%}

        {#- Warning: its values or rows may differ, or it reads and nobody says which columns. -#}
        {%- set warned, consumers = {}, {} -%}
        {%- for vertex, at in dbt_ripple.walk(starts, 'downstream', edges=edges).items() -%}
            {%- if at[1] > 0 -%}{%- do warned.update({(vertex[0], vertex[1]): true}) -%}{%- endif -%}
            {%- for reader in readers.get((vertex[0], vertex[1]), []) -%}
                {%- if kinds.get(reader, [''])[0] in ('exposure', 'metric', 'semantic_model', 'saved_query') -%}
                    {%- do consumers.update({reader: true}) -%}
                {%- endif -%}
            {%- endfor -%}
        {%- endfor -%}
        {%- do warned.update(dbt_ripple.without_columns(consumers, 'child_column')) -%}

        {%- for node, depth in distances.items() -%}
            {%- set severity = 'breaking' if node in breaking else 'warning' if node in warned else 'info' if node in standing -%}
            {%- if severity -%}{%- do rows.append([node[0], node[1], severity, depth]) -%}{%- endif -%}
        {%- endfor -%}
    {%- endif -%}
    {%- do return(dbt_ripple.rows_of_values(['snapshot_id', 'unique_id', 'severity', 'depth'], rows)) -%}
{% endmacro %}


{#-
    Who reads what, node by node, below some nodes and where `edges` go on in other projects: {node: [nodes]}; and of each
    reader its type and whether it was analysed. A node is (load, unique_id).
-#}
{% macro readers_around(nodes, edges) %}
    {%- set closure, all_nodes = source('ripple_raw', 'node_closure'), source('ripple_raw', 'nodes') -%}
    {%- set readers, kinds, asked = {}, {}, [] -%}
    {%- for node in nodes -%}{%- do asked.append({'snapshot_id': node[0], 'unique_id': node[1]}) -%}{%- endfor -%}
    {%- for vertex, ends in edges.items() -%}
        {%- for far, _ in ends if far[0] != vertex[0] -%}
            {%- set known = readers.setdefault((vertex[0], vertex[1]), []) -%}
            {%- if (far[0], far[1]) not in known -%}
                {%- do known.append((far[0], far[1])) -%}
                {%- do asked.append({'snapshot_id': far[0], 'unique_id': far[1]}) -%}
            {%- endif -%}
        {%- endfor -%}
    {%- endfor -%}
    {%- set query %}
        select c.snapshot_id, c.ancestor_id, c.descendant_id, n.resource_type, n.analysis_status
        from {{ closure }} as c
        inner join (
            select distinct snapshot_id, descendant_id as unique_id from {{ closure }}
            where {{ dbt_ripple.is_among_nodes(asked, 'snapshot_id', 'ancestor_id') }}
        ) as within on c.snapshot_id = within.snapshot_id and c.ancestor_id = within.unique_id
        inner join {{ all_nodes }} as n on c.snapshot_id = n.snapshot_id and c.descendant_id = n.unique_id
        where c.depth = 1
    {% endset -%}
    {%- for row in (run_query(query).rows if asked else []) -%}
        {%- do readers.setdefault((row[0], row[1]), []).append((row[0], row[2])) -%}
        {%- do kinds.update({(row[0], row[2]): [row[3], row[4]]}) -%}
    {%- endfor -%}
    {%- do return([readers, kinds]) -%}
{% endmacro %}


{#- Adds to {node: how far} what is below these nodes. -#}
{% macro walk_nodes(reached, readers) %}
    {%- set way = namespace(frontier=reached.keys() | list) -%}
    {%- for _ in range(readers | length + 1) if way.frontier -%}
        {%- set found = {} -%}
        {%- for node in way.frontier -%}
            {%- for reader in readers.get(node, []) if reached.get(reader, reached[node] + 2) > reached[node] + 1 -%}
                {%- do reached.update({reader: reached[node] + 1}) -%}
                {%- do found.update({reader: true}) -%}
            {%- endfor -%}
        {%- endfor -%}
        {%- set way.frontier = found.keys() | list -%}
    {%- endfor -%}
{% endmacro %}


{#- The edges by which a column that is lost is lost below, too: between columns, into what could be analysed. -#}
{% macro edges_that_pass_on(edges, kinds) %}
    {%- set kept = {} -%}
    {%- for vertex, ends in edges.items() if vertex[2] != '*rows*' -%}
        {%- for far, is_value in ends if far[2] != '*rows*' and (far[0] != vertex[0] or dbt_ripple.is_followed(far, kinds)) -%}
            {%- do kept.setdefault(vertex, []).append([far, is_value]) -%}
        {%- endfor -%}
    {%- endfor -%}
    {%- do return(kept) -%}
{% endmacro %}


{% macro is_followed(vertex, kinds) %}
    {%- do return(kinds.get((vertex[0], vertex[1]), [none, none])[1] not in (none, 'opaque')) -%}
{% endmacro %}


{#- Of some nodes, those of which no edge says a column on this side. -#}
{% macro without_columns(nodes, side) %}
    {%- set column_edges = source('ripple_raw', 'column_edges') -%}
    {%- set undeclared, asked = {}, [] -%}
    {%- for node in nodes -%}
        {%- do undeclared.update({node: true}) -%}
        {%- do asked.append({'snapshot_id': node[0], 'unique_id': node[1]}) -%}
    {%- endfor -%}
    {%- if asked -%}
        {%- set query -%}
            select distinct snapshot_id, child_id from {{ column_edges }}
            where {{ dbt_ripple.is_among_nodes(asked, 'snapshot_id', 'child_id') }} and {{ side }} != '*rows*'
        {%- endset -%}
        {%- for row in run_query(query).rows -%}{%- do undeclared.pop((row[0], row[1]), none) -%}{%- endfor -%}
    {%- endif -%}
    {%- do return(undeclared) -%}
{% endmacro %}
