select
    customers.customer_id,
    concat(customers.name, ' ', customers.country_code, customers.segment) as label,
    letters.address_hash
from {{ ref('stg_customers') }} as customers
left join {{ ref('mailing_list') }} as letters on customers.customer_id = letters.customer_id
{%- if target.name == 'prod' %}
    where letters.address_hash is not null
{%- endif %}
