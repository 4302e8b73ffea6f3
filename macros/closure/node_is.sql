{% macro node_is(relation, node) %}
    {%- if node is none -%}
        true
    {%- else -%}
        {%- set literal = dbt.string_literal(dbt.escape_single_quotes(node)) -%}
        ({{ relation }}.name = {{ literal }} or {{ relation }}.unique_id = {{ literal }})
    {%- endif -%}
{% endmacro %}
