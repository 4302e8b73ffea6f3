with

-- The provider sends some payments twice, each time the same row.
payments as (
    select distinct
        payment_id,
        order_id,
        method,
        amount,
        currency,
        status,
        processed_at
    from {{ source('raw', 'raw_payments') }}
)

select
    payment_id,
    order_id,
    method,
    amount,
    if(status = 'refunded', -amount, amount) as signed_amount,
    currency,
    status,
    status in ('succeeded', 'refunded') as is_settled,
    processed_at
from payments
