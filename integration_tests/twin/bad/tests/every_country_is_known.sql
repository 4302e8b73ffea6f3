select country_code
from {{ ref('dim_customers') }}
where length(country_code) != 2
