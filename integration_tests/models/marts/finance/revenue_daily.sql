with

lines as (
    select * from {{ ref('int_order_items_priced') }}
    where order_status != 'cancelled'
),

daily as (
    select
        order_date,
        currency,
        count(*) as line_count,
        count(distinct order_id) as order_count,
        sum(qty) as units_sold,
        sum(net_amount) as total_local,
        sum(round(qty * unit_price * (1 - discount_pct) * usd_rate, 2)) as total_usd
    from lines
    group by order_date, currency
)

select
    order_date,
    currency,
    line_count,
    order_count,
    units_sold,
    total_local,
    total_usd,
    round(total_usd / order_count, 2) as average_order_usd,
    sum(total_usd) over (
        partition by currency, date_trunc('month', order_date)
        order by order_date
    ) as month_to_date_usd
from daily
