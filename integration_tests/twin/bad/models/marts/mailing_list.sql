select
    customer_id,
    email as address,
    md5(email) as address_hash
from {{ ref('stg_customers') }}
