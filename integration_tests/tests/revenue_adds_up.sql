-- What the days add up to is what the lines add up to, but for cents of rounding.
with

days as (
    select sum(total_usd) as total_usd
    from {{ ref('revenue_daily') }}
),

lines as (
    select sum(net_amount_usd) as total_usd
    from {{ ref('fct_order_lines') }}
    where order_status != 'cancelled'
)

select
    days.total_usd as days_total_usd,
    lines.total_usd as lines_total_usd
from days
cross join lines
where abs(days.total_usd - lines.total_usd) > 5 or days.total_usd is null
