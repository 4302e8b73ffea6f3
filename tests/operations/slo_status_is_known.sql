-- A state nobody can act on.
select
    unique_id,
    state
from {{ ref('dbt_ripple', 'slo_status') }}
where
    state not in ('met', 'violated', 'learning', 'unknown')
    or checks_met > checks
