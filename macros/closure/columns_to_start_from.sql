{% macro columns_to_start_from(node, column) %}
select
    snapshot_id,
    unique_id,
    {{ dbt.string_literal(dbt.escape_single_quotes(column)) }} as column_name
from {{ ref('dbt_ripple', 'dim_nodes') }} as nodes
where {{ dbt_ripple.node_is('nodes', node) }}
{% endmacro %}
