select
    currency,
    rate as usd_rate,
    rate_on
from {{ source('market', 'fx_rates') }}
