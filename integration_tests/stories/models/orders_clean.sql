select
    order_id,
    customer_id,
    account_id,
    amount_cents / 100.0 as amount_usd,
    created_at
from {{ source('raw', 'raw_orders') }}
where amount_cents > 0 and customer_id is not null
