{% macro unknown_nodes(relation, columns) %}
with named as (
    select * from {{ relation }}
),

nodes as (
    select * from {{ ref('dbt_ripple', 'dim_nodes') }}
)
{% for column in columns %}
select
    named.snapshot_id,
    named.{{ column }} as unique_id,
    '{{ column }}' as found_in
from named
left join nodes
    on
        named.snapshot_id = nodes.snapshot_id
        and named.{{ column }} = nodes.unique_id
where nodes.unique_id is null
{{ 'union all' if not loop.last }}
{%- endfor %}
{% endmacro %}
