-- Whatever is loaded, and when nothing is: one row, with a status one can act on.
select count(*) as times
from {{ ref('dbt_ripple', 'lineage_status') }}
where
    status in ('empty', 'stale', 'loaded')
    and message is not null
having count(*) != 1
