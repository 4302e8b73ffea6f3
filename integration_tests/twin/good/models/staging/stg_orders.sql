select
    order_id,
    customer_id,
    order_date,
    status,
    order_total,
    legacy_discount_code is not null as has_legacy_discount
from {{ source('raw', 'raw_orders') }}
