{#- The nodes that `asked_nodes` found, and of a test those that it reads: a load and a unique_id each. -#}
{% macro start_nodes(nodes) %}
    {%- set test_columns = source('ripple_raw', 'test_columns') -%}
    {%- set pairs = [] -%}
    {%- for node in nodes -%}{%- do pairs.append([node.snapshot_id, node.unique_id]) -%}{%- endfor -%}
    {%- set tests = nodes | selectattr('resource_type', 'in', ['test', 'unit_test']) | list -%}
    {%- if tests -%}
        {%- set found = run_query(
            'select distinct snapshot_id, unique_id from ' ~ test_columns
            ~ ' where ' ~ dbt_ripple.is_among_nodes(tests, 'snapshot_id', 'test_id')
        ) -%}
        {%- for row in found.rows -%}{%- do pairs.append([row[0], row[1]]) -%}{%- endfor -%}
    {%- endif -%}
    {%- do return(pairs) -%}
{% endmacro %}
