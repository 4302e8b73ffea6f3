select
    customer_id,
    case when nps < 5 then 1.0 else 0.1 end as churn_risk
from {{ ref('customer_360') }}
