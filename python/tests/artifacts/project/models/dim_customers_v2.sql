select customer_id, sum(amount) as amount, max(c.country) as country
from {{ ref('eph_orders') }} left join {{ ref('countries') }} c using (customer_id) group by 1
