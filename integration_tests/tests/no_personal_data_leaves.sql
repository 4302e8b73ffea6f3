-- Whoever said no to letters is not in what partners get.
select exported.customer_id
from {{ ref('customer_export') }} as exported
inner join {{ ref('stg_customers') }} as customers
    on exported.customer_id = customers.customer_id
where not customers.is_marketing_opted_in
