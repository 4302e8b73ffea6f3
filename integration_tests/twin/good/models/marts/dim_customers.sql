select
    customer_id,
    md5(email) as email_hash,
    country_code,
    segment
from {{ ref('stg_customers') }}
