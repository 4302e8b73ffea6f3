{{ config(materialized='ephemeral') }}

with

items as (
    select * from {{ ref('stg_order_items') }}
),

orders as (
    select * from {{ ref('stg_orders') }}
),

fx_rates as (
    select * from {{ ref('stg_fx_rates') }}
),

final as (
    select
        items.*,
        orders.customer_id,
        orders.order_date,
        orders.status as order_status,
        orders.channel,
        orders.country_code,
        orders.currency,
        fx_rates.usd_rate,
        round(items.net_amount * fx_rates.usd_rate, 2) as net_amount_usd
    from items
    inner join orders
        on items.order_id = orders.order_id
    left join fx_rates
        on
            orders.currency = fx_rates.currency
            and orders.order_date = fx_rates.rate_date
)

select * from final
