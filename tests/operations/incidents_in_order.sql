-- Incidents that ended before they began, or that are put down to a change made after them.
select
    project_name,
    unique_id,
    opened_at,
    closed_at,
    caused_at
from {{ ref('dbt_ripple', 'incidents') }}
where
    state not in ('open', 'closed', 'gone')
    or (state = 'closed') != (closed_at is not null)
    or closed_at < opened_at
    or caused_at > opened_at
    or failed_runs < 1
