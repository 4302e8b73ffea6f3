{% macro downstream_columns(node, column, max_depth=none, certain=false) %}
    {{- return(dbt_ripple.walk_columns(
        dbt_ripple.columns_to_start_from(node, column), dbt_ripple.column_edges_below(node, certain), max_depth
    )) -}}
{% endmacro %}
