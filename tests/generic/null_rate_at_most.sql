{% test null_rate_at_most(model, column_name, rate) %}
{#-
    One row where more than this share of the column is null: 0.005, `0.5%`, or `< 0.5%` where half a percent is too
    much already. No rows, no nulls.
-#}
{%- set allowed = dbt_ripple.read_share(rate) -%}
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
where
    null_count {{ '>=' if allowed.strict else '>' }} {{ allowed.share }} * row_count
    {{ 'and null_count > 0' if allowed.strict and allowed.share == 0.0 }}
    {{ 'and row_count > 0' if allowed.strict }}
{% endtest %}
