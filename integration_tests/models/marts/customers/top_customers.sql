select
    ltv.customer_id,
    ltv.region,
    ltv.lifetime_value_usd,
    profile.segment
from {{ ref('customer_ltv') }} as ltv
left join {{ ref('customer_360') }} as profile
    on ltv.customer_id = profile.customer_id
order by ltv.lifetime_value_usd desc, ltv.customer_id asc
limit 50
