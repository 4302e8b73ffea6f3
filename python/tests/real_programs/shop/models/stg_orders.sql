select
    order_id,
    customer_id,
    cast(ordered_at as date) as order_date,
    order_total,
    shipping_cost,
    channel,
    nullif(trim(legacy_discount_code), '') as discount_code
from {{ source('raw', 'raw_orders') }}
