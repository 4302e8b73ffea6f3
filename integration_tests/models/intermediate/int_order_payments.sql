select
    order_id,
    sum(if(is_settled, signed_amount, 0)) as paid_amount,
    sum(case when status = 'refunded' then amount else 0 end) as refunded_amount,
    count(*) as payment_count,
    count(*) filter (where status = 'failed') as failed_payment_count,
    min(case when status = 'succeeded' then processed_at end) as first_paid_at,
    max_by(method, processed_at) as last_method
from {{ ref('stg_payments') }}
group by order_id
