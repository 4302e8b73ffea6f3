with

settled as (
    select
        order_id,
        method,
        signed_amount
    from {{ ref('stg_payments') }}
    where is_settled
)

select *
from settled
    pivot (
        sum(signed_amount) for method in (
            'card' as card_amount,
            'paypal' as paypal_amount,
            'bank_transfer' as bank_transfer_amount,
            'gift_card' as gift_card_amount
        )
    )
