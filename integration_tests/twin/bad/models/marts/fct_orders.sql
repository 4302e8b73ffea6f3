select
    order_id,
    customer_id,
    order_date,
    cast(order_total as double) as order_total
from {{ ref('stg_orders') }}
where status != 'cancelled'
