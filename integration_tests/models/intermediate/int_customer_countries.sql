-- Where a customer lives and where they ship to, each once.
select
    customer_id,
    country_code
from {{ ref('stg_customers') }}
where country_code is not null

union

select
    customer_id,
    country_code
from {{ ref('stg_orders') }}
