with

customers as (
    select * from {{ ref('stg_customers') }}
),

countries as (
    select * from {{ ref('countries') }}
),

referrals as (
    select * from {{ ref('int_customer_referrals') }}
)

-- No personal value leaves this version in clear text.
select
    customer_id,
    customers.email_hash,
    country_code,
    coalesce(countries.country_name, 'unknown') as country_name,
    coalesce(countries.region, 'unknown') as region,
    customers.signed_up_at,
    cast(customers.signed_up_at as date) as signup_date,
    customers.is_marketing_opted_in,
    coalesce(referrals.referred_customers, 0) as referred_customers
from customers
left join countries using (country_code)
left join referrals using (customer_id)
