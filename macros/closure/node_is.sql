{#- `node` is a name, or the nodes that `asked_nodes` has found by it. -#}
{% macro node_is(relation, node) %}
    {%- if node is none -%}
        true
    {%- else -%}
        {{- dbt_ripple.is_among_nodes(
            dbt_ripple.asked_nodes(node) if node is string else node, relation ~ '.snapshot_id', relation ~ '.unique_id'
        ) -}}
    {%- endif -%}
{% endmacro %}


{#- With the loads said as well: each is a partition of the loaded tables. -#}
{% macro is_among_nodes(nodes, snapshot_id, unique_id) %}
    {%- set by_load = {} -%}
    {%- for node in nodes -%}{%- do by_load.setdefault(node.snapshot_id, []).append(node.unique_id) -%}{%- endfor -%}
    {%- if not by_load -%}false{%- endif -%}
    {%- if by_load | length > 1 -%}({%- endif -%}
    {%- for load, unique_ids in by_load.items() -%}
        {{ ' or ' if not loop.first }}({{ snapshot_id }} = {{ dbt_ripple.text_literal(load) }} and {{ unique_id }} in ({{ dbt_ripple.text_literals(unique_ids | unique | list) }}))
    {%- endfor -%}
    {%- if by_load | length > 1 -%}){%- endif -%}
{% endmacro %}
