-- A day with less than half of the revenue of the day before.
select today.revenue_on
from {{ ref('revenue_daily') }} as today
inner join {{ ref('revenue_daily') }} as yesterday on today.revenue_on = yesterday.revenue_on + 1
where today.total_usd < 0.5 * yesterday.total_usd
