-- A status nobody can act on.
select
    status,
    message
from {{ ref('dbt_ripple', 'lineage_status') }}
where
    status is null
    or status not in ('empty', 'stale', 'loaded')
    or message is null
