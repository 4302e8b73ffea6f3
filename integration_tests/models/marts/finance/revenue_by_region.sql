{{ config(materialized='view') }}

with

lines as (
    select
        channel,
        country_code,
        net_amount_usd
    from {{ ref('int_order_items_priced') }}
    where order_status not in ('cancelled', 'returned')
)

select
    case when grouping(countries.region) = 1 then 'all regions' else countries.region end as region,
    case when grouping(lines.channel) = 1 then 'all channels' else lines.channel end as channel,
    sum(lines.net_amount_usd) as revenue_usd,
    count(*) as line_count
from lines
inner join {{ ref('countries') }} as countries
    on lines.country_code = countries.country_code
group by rollup (countries.region, lines.channel)
