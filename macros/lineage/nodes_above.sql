{% macro nodes_above(unique_ids, at_most) %}
    {#- Nodes and what dbt's graph has upstream of them, the nearest first; no step is begun after `at_most` nodes. -#}
    {%- set seen = {} -%}
    {%- for unique_id in unique_ids -%}{%- do seen.update({unique_id: true}) -%}{%- endfor -%}
    {%- set way = namespace(frontier=unique_ids) -%}
    {%- for _ in range(graph.nodes | length + 1) if way.frontier and seen | length < at_most -%}
        {%- set above = [] -%}
        {%- for reader in way.frontier if reader in graph.nodes -%}
            {%- for parent in graph.nodes[reader].depends_on.nodes or [] if parent not in seen -%}
                {%- do seen.update({parent: true}) -%}
                {%- do above.append(parent) -%}
            {%- endfor -%}
        {%- endfor -%}
        {%- set way.frontier = above -%}
    {%- endfor -%}
    {%- do return(seen.keys() | list) -%}
{% endmacro %}
