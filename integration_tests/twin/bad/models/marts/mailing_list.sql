select
    customer_id,
    email as address
from {{ ref('stg_customers') }}
