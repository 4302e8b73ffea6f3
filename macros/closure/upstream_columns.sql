{#- The rows of the node are asked about, too: which rows there are decides on every number. -#}
{% macro upstream_columns(node, column, max_depth=none) %}
    {%- if node is none -%}
        {{- return(dbt_ripple.walk_columns(
            dbt_ripple.all_columns_and_rows(column, rows=true), dbt_ripple.column_edges_above(), max_depth
        )) -}}
    {%- endif -%}
    {{- return(dbt_ripple.walked_columns(node, column, 'upstream', max_depth, rows=true)) -}}
{% endmacro %}
