with last_orders as (
    select * from {{ ref('orders_clean') }}
)

select
    accounts.account_id,
    accounts.mrr
from {{ source('raw', 'accounts') }} as accounts
inner join last_orders on accounts.account_id = last_orders.account_id
where last_orders.created_at < current_date - 60
