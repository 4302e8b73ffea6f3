{% test fresh_within(model, column_name, count, period) %}
{#- One row where the newest timestamp is older than `count` periods, or where there is none. -#}
with newest as (
    select max({{ column_name }}) as newest_at
    from {{ model }}
)

select
    newest_at,
    '{{ count }} {{ period }}' as allowed
from newest
where
    newest_at is null
    or newest_at < {{ dbt.dateadd(period, -(count | int), dbt.current_timestamp()) }}
{% endtest %}
