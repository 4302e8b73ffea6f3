select
    customers.customer_id,
    customers.email,
    customers.full_name,
    customers.country_code,
    countries.country_name,
    customers.signed_up_at
from {{ ref('stg_customers') }} as customers
left join {{ ref('countries') }} as countries
    on customers.country_code = countries.country_code
