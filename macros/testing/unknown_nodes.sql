{#- In a query that has the nodes as a CTE. -#}
{% macro unknown_nodes(named) %}
select
    named.check_name,
    {{ dbt_ripple.in_words(['named.snapshot_id', 'named.unique_id']) }} as found
from (
    {%- for check, (relation, column) in named.items() %}
    select
        '{{ check }}' as check_name,
        snapshot_id,
        {{ column }} as unique_id
    from {{ relation }}
    {{ 'union all' if not loop.last }}
    {%- endfor %}
) as named
left join nodes
    on
        named.snapshot_id = nodes.snapshot_id
        and named.unique_id = nodes.unique_id
where nodes.unique_id is null
{% endmacro %}
