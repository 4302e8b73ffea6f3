with

customers as (
    select * from {{ ref('dim_customers', v=2) }}
),

orders as (
    select * from {{ ref('int_customer_orders') }}
),

scored as (
    select
        customers.customer_id,
        customers.region,
        orders.order_count,
        orders.lifetime_value_usd,
        orders.average_order_usd,
        {{ days_between('orders.first_order_date', 'orders.last_order_date') }} as active_days,
        ntile(10) over (order by orders.lifetime_value_usd desc) as value_decile,
        rank() over (
            partition by customers.region
            order by orders.lifetime_value_usd desc
        ) as region_rank,
        sum(orders.lifetime_value_usd) over (partition by customers.region) as region_value_usd
    from customers
    inner join orders
        on customers.customer_id = orders.customer_id
)

select
    customer_id,
    region,
    order_count,
    lifetime_value_usd,
    value_decile,
    region_rank,
    round(lifetime_value_usd / nullif(region_value_usd, 0), 4) as share_of_region,
    round(
        average_order_usd * case
            when order_count >= 4 then 3.5
            when order_count >= 2 and active_days > 0 then least(6, 90.0 / active_days)
            else 0.4
        end,
        2
    ) as predicted_90_day_usd
from scored
