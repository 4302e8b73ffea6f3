{#-
    What is reached from a column, asset by asset, walked while dbt compiles: how far, which columns, and whether it only
    may read (exposures that declare no column).
-#}
{% macro reached_assets(nodes, column) %}
    {%- set edges, all_nodes = source('ripple_raw', 'edges'), source('ripple_raw', 'nodes') -%}
    {%- set reached = dbt_ripple.walk(dbt_ripple.starts_of_walk(nodes, column), 'downstream') if nodes is not none else {} -%}
    {%- set assets, asked, consumers = {}, [], {} -%}
    {%- for vertex, at in reached.items() -%}
        {%- set node = (vertex[0], vertex[1]) -%}
        {%- if node not in assets -%}{%- do asked.append({'snapshot_id': vertex[0], 'unique_id': vertex[1]}) -%}{%- endif -%}
        {%- set depth, may_read, columns = assets.get(node, [at[1], false, []]) -%}
        {%- do assets.update({node: [[depth, at[1]] | min, false, columns + ([vertex[2]] if vertex[2] != '*rows*' else [])]}) -%}
    {%- endfor -%}
    {%- if asked -%}
        {%- set query -%}
            select e.snapshot_id, e.parent_id, e.child_id
            from {{ edges }} as e
            inner join {{ all_nodes }} as n on e.snapshot_id = n.snapshot_id and e.child_id = n.unique_id
            where n.resource_type = 'exposure' and {{ dbt_ripple.is_among_nodes(asked, 'e.snapshot_id', 'e.parent_id') }}
        {%- endset -%}
        {%- for row in run_query(query).rows -%}
            {%- do consumers.setdefault((row[0], row[2]), []).append(assets[(row[0], row[1])][0] + 1) -%}
        {%- endfor -%}
    {%- endif -%}
    {%- for node in dbt_ripple.without_columns(consumers, 'parent_column') -%}
        {%- set depth, may_read, columns = assets.get(node, [consumers[node] | min, true, []]) -%}
        {%- do assets.update({node: [[depth, consumers[node] | min] | min, may_read, columns]}) -%}
    {%- endfor -%}
    {%- set rows = [] -%}
    {%- for node, at in assets.items() -%}
        {%- do rows.append([node[0], node[1], at[2] | sort(case_sensitive=true) | first | default(none), at[0], at[1], at[2] | length]) -%}
    {%- endfor -%}
    {%- do return(dbt_ripple.rows_of_values(
        ['snapshot_id', 'unique_id', 'one_column', 'depth', 'may_read', 'columns_reached'], rows
    )) -%}
{% endmacro %}
