{% macro nodes_above(unique_id) %}
    {#- All that a node is made of and itself, and how many steps the longest way up has. -#}
    {%- set seen = {unique_id: true} -%}
    {%- set way = namespace(steps=0, frontier=[unique_id]) -%}
    {%- for _ in range(graph.nodes | length + 1) if way.frontier -%}
        {%- set above = {} -%}
        {%- for reader in way.frontier if reader in graph.nodes -%}
            {%- for parent in graph.nodes[reader].depends_on.nodes or [] -%}
                {%- do above.update({parent: true}) -%}
            {%- endfor -%}
        {%- endfor -%}
        {%- do seen.update(above) -%}
        {%- set way.steps = way.steps + 1 -%}
        {%- set way.frontier = above.keys() | list -%}
    {%- endfor -%}
    {%- do return({'unique_ids': seen.keys() | list, 'steps': way.steps}) -%}
{% endmacro %}
