{% test null_rate_at_most(model, column_name, rate) %}
{#- One row where more than this share (0.005 is half a percent) of the column is null. No rows, no nulls. -#}
with counted as (
    select
        count(*) as row_count,
        count(*) - count({{ column_name }}) as null_count
    from {{ model }}
)

select
    row_count,
    null_count
from counted
where null_count > {{ rate }} * row_count
{% endtest %}
