with

customers as (
    select * from {{ ref('stg_customers') }}
)

select
    referrers.customer_id,
    count(*) as referred_customers,
    count(distinct referred.country_code) as referred_countries,
    min(referred.signed_up_at) as first_referral_at
from customers as referred
inner join customers as referrers
    on referred.referrer_customer_id = referrers.customer_id
group by 1
