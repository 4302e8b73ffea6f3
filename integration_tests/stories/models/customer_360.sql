select
    customers.customer_id,
    customers.email,
    max(scores.nps) as nps,
    count(orders.order_id) as total_orders,
    sum(orders.amount_usd) as lifetime_value
from {{ ref('customers_clean') }} as customers
left join {{ ref('orders_clean') }} as orders on customers.customer_id = orders.customer_id
left join {{ source('raw', 'nps_scores') }} as scores on customers.customer_id = scores.customer_id
group by customers.customer_id, customers.email
