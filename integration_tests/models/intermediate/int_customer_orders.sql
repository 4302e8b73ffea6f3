{{ config(materialized='ephemeral') }}

select
    customer_id,
    count(distinct order_id) as order_count,
    min(order_date) as first_order_date,
    max(order_date) as last_order_date,
    sum(order_total_usd) as lifetime_value_usd,
    avg(order_total_usd) as average_order_usd,
    max(is_returned) as has_returned
from {{ ref('fct_orders') }}
where not is_cancelled
group by customer_id
