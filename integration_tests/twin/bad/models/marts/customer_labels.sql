select
    customer_id,
    concat(name, ' ', country_code) as label
from {{ ref('stg_customers') }}
