-- Changes of which none was made where it is seen: each must have begun in one of them.
select
    snapshot_id,
    count(*) as changes
from {{ ref('dbt_ripple', 'definition_changes') }}
group by snapshot_id
having max(case when is_origin then 1 else 0 end) = 0
