select
    currency,
    rate / 100 as usd_rate,
    rate_on
from {{ source('market', 'fx_rates') }}
