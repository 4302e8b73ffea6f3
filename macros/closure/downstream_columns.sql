{% macro downstream_columns(node, column, max_depth=none) %}
    {%- if node is none -%}
        {{- return(dbt_ripple.walk_columns(
            dbt_ripple.all_columns_and_rows(column), dbt_ripple.column_edges_below(), max_depth
        )) -}}
    {%- endif -%}
    {{- return(dbt_ripple.walked_columns(node, column, 'downstream', max_depth)) -}}
{% endmacro %}
