{#- A node; of a test, the nodes that it reads. -#}
{% macro nodes_to_start_from(node) %}
select
    nodes.snapshot_id,
    nodes.unique_id
from {{ ref('dbt_ripple', 'dim_nodes') }} as nodes
where {{ dbt_ripple.node_is('nodes', node) }}
union
select
    tested.snapshot_id,
    tested.unique_id
from {{ ref('dbt_ripple', 'stg_ripple__test_columns') }} as tested
inner join {{ ref('dbt_ripple', 'dim_nodes') }} as nodes
    on
        tested.snapshot_id = nodes.snapshot_id
        and tested.test_id = nodes.unique_id
where {{ dbt_ripple.node_is('nodes', node) }}
{% endmacro %}
