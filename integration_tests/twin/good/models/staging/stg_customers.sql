select
    customer_id,
    name,
    lower(email) as email,
    country_code,
    segment
from {{ source('raw', 'raw_customers') }}
