{#- The rows of the node are asked about, too: which rows there are decides on every number. -#}
{% macro upstream_columns(node, column, max_depth=none) %}
    {{- return(dbt_ripple.walk_columns(
        dbt_ripple.columns_to_start_from(node, column, rows=true), dbt_ripple.column_edges_above(node), max_depth
    )) -}}
{% endmacro %}
