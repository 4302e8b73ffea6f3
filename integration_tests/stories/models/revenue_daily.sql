with priced as (
    select
        items.ordered_on as revenue_on,
        items.qty * items.unit_price * rates.usd_rate as item_usd
    from {{ source('raw', 'order_items') }} as items
    inner join {{ ref('stg_fx_rates') }} as rates
        on items.currency = rates.currency and items.ordered_on = rates.rate_on
)

select
    revenue_on,
    sum(item_usd) as total_usd
from priced
group by revenue_on
