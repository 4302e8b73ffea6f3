select
    order_id,
    customer_id,
    order_date,
    order_total,
    shipping_cost,
    channel,
    discount_code is not null as is_discounted
from {{ ref('stg_orders') }}
where order_total >= 0
