select distinct
    customer_id,
    lower(email) as email,
    trim(full_name) as full_name
from {{ source('raw', 'raw_customers') }}
where customer_id is not null
