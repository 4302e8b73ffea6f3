with

orders as (
    select * from {{ ref('stg_orders') }}
),

payments as (
    select * from {{ ref('int_order_payments') }}
),

pivoted as (
    select * from {{ ref('int_payments_pivoted') }}
),

fx_rates as (
    select * from {{ ref('stg_fx_rates') }}
),

items as (
    select
        order_id,
        count(*) as line_count,
        sum(qty) as item_count,
        sum(net_amount) as items_total
    from {{ ref('stg_order_items') }}
    group by order_id
),

final as (
    select
        orders.order_id,
        orders.customer_id,
        orders.order_date,
        orders.ordered_at,
        orders.status,
        orders.status = 'cancelled' as is_cancelled,
        orders.status = 'returned' as is_returned,
        orders.channel,
        orders.country_code,
        orders.currency,
        orders.order_total,
        round(orders.order_total * fx_rates.usd_rate, 2) as order_total_usd,
        items.line_count,
        items.item_count,
        coalesce(payments.paid_amount, 0) as paid_amount,
        orders.order_total - coalesce(payments.paid_amount, 0) as balance_due,
        coalesce(pivoted.gift_card_amount, 0) as gift_card_amount,
        case
            when payments.payment_count is null then 'unpaid'
            when payments.refunded_amount > 0 then 'refunded'
            when payments.paid_amount >= orders.order_total then 'paid'
            else 'open'
        end as payment_state,
        payments.first_paid_at,
        row_number() over (
            partition by orders.customer_id
            order by orders.ordered_at, orders.order_id
        ) as customer_order_number,
        lag(orders.order_date) over (
            partition by orders.customer_id
            order by orders.ordered_at, orders.order_id
        ) as previous_order_date
    from orders
    left join items
        on orders.order_id = items.order_id
    left join payments
        on orders.order_id = payments.order_id
    left join pivoted
        on orders.order_id = pivoted.order_id
    left join fx_rates
        on
            orders.currency = fx_rates.currency
            and orders.order_date = fx_rates.rate_date
)

select * from final
