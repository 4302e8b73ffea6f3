-- The checkout rounds each line to what the currency has, for yen a whole one.
select
    orders.order_id,
    orders.order_total,
    sum(order_lines.net_amount) as items_total
from {{ ref('stg_orders') }} as orders
inner join {{ ref('stg_order_items') }} as order_lines
    on orders.order_id = order_lines.order_id
group by orders.order_id, orders.order_total
having abs(orders.order_total - sum(order_lines.net_amount)) > 0.5 * count(*)
