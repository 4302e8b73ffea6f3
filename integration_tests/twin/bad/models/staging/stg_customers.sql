select
    customer_id,
    trim(name) as name,
    lower(email) as email,
    country_code,
    segment
from {{ source('raw', 'raw_customers') }}
