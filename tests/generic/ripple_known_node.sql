{#
    Passes when every unique_id in the column is a node of the same snapshot in dim_nodes.
    The model needs a column snapshot_id beside it.
#}
{% test ripple_known_node(model, column_name) %}
select
    named.snapshot_id,
    named.{{ column_name }}
from {{ model }} as named
left join {{ ref('dbt_ripple', 'dim_nodes') }} as nodes
    on
        named.snapshot_id = nodes.snapshot_id
        and named.{{ column_name }} = nodes.unique_id
where
    named.{{ column_name }} is not null
    and nodes.unique_id is null
{% endtest %}
