select
    customer_id,
    email as address,
    md5(email) as address_hash,
    md5(trim(email)) as email_hash
from {{ ref('stg_customers') }}
