select
    customer_id,
    md5(email) as email_hash,
    segment as customer_segment
from {{ ref('stg_customers') }}
